//! Name patterns: `*` stands for any run of characters, everything else for itself.
//!
//! Hooks (`tools`), nested calls (`callsTools`) and the command line (`list`, `--only`, `--allow`, `--deny`,
//! `--confirm`) choose tools with them.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A name with `*` in it, such as `edit_*`. It matches whole names, case by case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Pattern(String);

impl From<&str> for Pattern {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl Pattern {
    /// Makes a pattern; any text is one.
    pub fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the whole of `name` fits. Takes time linear in the name for each `*`, never exponential.
    pub fn matches(&self, name: &str) -> bool {
        let mut parts = self.0.split('*');
        let head = parts.next().unwrap_or_default();
        let Some(mut rest) = name.strip_prefix(head) else {
            return false;
        };
        let Some(tail) = parts.next_back() else {
            return rest.is_empty();
        };
        for part in parts {
            // The first place where a part fits leaves most for the parts after it.
            let Some(at) = rest.find(part) else {
                return false;
            };
            rest = &rest[at + part.len()..];
        }
        rest.ends_with(tail)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn case(pattern: &str, fits: &[&str], fits_not: &[&str]) {
        let pattern = Pattern::new(pattern);
        for name in fits {
            assert!(pattern.matches(name), "{pattern} should match {name:?}");
        }
        for name in fits_not {
            assert!(
                !pattern.matches(name),
                "{pattern} should not match {name:?}"
            );
        }
    }

    #[test]
    fn without_a_star_only_the_name_itself_matches() {
        case("write", &["write"], &["write_file", "rewrite", "Write", ""]);
        case("", &[""], &["a"]);
    }

    #[test]
    fn a_star_is_any_run_also_an_empty_one() {
        case("*", &["", "a", "a*b"], &[]);
        case("edit_*", &["edit_", "edit_file"], &["edit", "re_edit_x"]);
        case("*_file", &["read_file", "_file"], &["file", "read_files"]);
        case("a*b*c", &["abc", "axbxc", "abcbc"], &["ab", "acb", "abcd"]);
        case("a**b", &["ab", "axb"], &["a"]);
    }

    #[test]
    fn head_and_tail_do_not_overlap() {
        case("ab*ba", &["abba", "ab-ba"], &["aba"]);
        case("a*a", &["aa", "aba"], &["a"]);
        case("*ab*ab", &["abab", "xabxab"], &["ab", "xab"]);
    }

    #[test]
    fn other_special_characters_stand_for_themselves() {
        case("a.b?[c]", &["a.b?[c]"], &["axb?[c]", "a.bx[c]", "a.b?c"]);
        case("mcp__ü*", &["mcp__über"], &["mcp__u"]);
    }
}
