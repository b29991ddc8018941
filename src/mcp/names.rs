//! How tools of MCP servers are called here: `mcp__SERVER__TOOL`.

use std::collections::HashMap;

/// What every name of a server's tool starts with.
const PREFIX: &str = "mcp__";

/// The name in letters, digits and `_` of ASCII; every other character becomes `_`.
pub(crate) fn sanitized(name: &str) -> String {
    let plain = |character: char| {
        if character.is_ascii_alphanumeric() {
            character
        } else {
            '_'
        }
    };
    name.chars().map(plain).collect()
}

/// What all names of this server's tools start with, `mcp__SERVER__`.
pub(crate) fn server_prefix(server: &str) -> String {
    format!("{PREFIX}{}__", sanitized(server))
}

/// The names of a server's tools, in their order. Names that would be the same get a suffix made from the tool's
/// own name, all of them, so that no name depends on the order in which a server lists its tools.
pub(crate) fn full_names(server: &str, tools: &[&str]) -> Vec<String> {
    let prefix = server_prefix(server);
    let plain: Vec<String> = tools.iter().map(|tool| sanitized(tool)).collect();
    let mut owners: HashMap<&str, usize> = HashMap::new();
    for name in &plain {
        *owners.entry(name).or_default() += 1;
    }
    tools
        .iter()
        .zip(&plain)
        .map(|(tool, name)| match owners[name.as_str()] {
            1 => format!("{prefix}{name}"),
            _ => format!("{prefix}{name}_{:08x}", hash(tool)),
        })
        .collect()
}

/// FNV-1a: the same in every version of pitool, so that names in old transcripts keep their meaning.
fn hash(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn case(server: &str, tools: &[&str], expected: &[&str]) {
        assert_eq!(full_names(server, tools), expected);
    }

    #[test]
    fn names_are_made_of_letters_digits_and_underscores() {
        case("fs", &["read_file"], &["mcp__fs__read_file"]);
        case(
            "my-server.v2",
            &["get/it é"],
            &["mcp__my_server_v2__get_it__"],
        );
    }

    #[test]
    fn names_that_collide_get_a_suffix_of_their_own() {
        let (dot, dash) = (hash("a.b"), hash("a-b"));
        assert_ne!(dot, dash);
        case(
            "s",
            &["a.b", "c", "a-b"],
            &[
                &format!("mcp__s__a_b_{dot:08x}"),
                "mcp__s__c",
                &format!("mcp__s__a_b_{dash:08x}"),
            ],
        );
    }

    #[test]
    fn the_suffix_never_changes() {
        // The published test vectors of 32-bit FNV-1a.
        assert_eq!(hash(""), 0x811c_9dc5);
        assert_eq!(hash("foobar"), 0xbf9c_f968);
    }
}
