//! From the text of a filter to something that runs, with nothing in it that reaches out of the filter.

use std::collections::BTreeSet;
use std::sync::LazyLock;
use std::thread;

use jaq_core::data::JustLut;
use jaq_core::load::parse::Def;
use jaq_core::load::{self, Arena, File, Loader};
use jaq_core::native::{Fun, bome, run, v};
use jaq_core::{Compiler, compile};
use jaq_json::{Val, ValR};

use super::convert::to_val;
use crate::json;

pub(super) type Data = JustLut<Val>;
pub(super) type Compiled = jaq_core::Filter<Data>;

/// Natives that reach out of the filter: the process, its environment, its stderr, the machine's time zone.
const REMOVED: [&str; 9] = [
    "env",
    "halt",
    "halt_error",
    "stderr",
    "stderr_empty",
    "debug",
    "debug_empty",
    "localtime",
    "strflocaltime",
];

/// The longest filter. Its text may be nested as deep as it is long, and each level takes stack.
const MAX_BYTES: usize = 64 * 1024;

/// A text of so few tokens cannot overflow any stack.
const SHALLOW: usize = 512;

/// Stack for the longest; only what is used takes memory.
const STACK: usize = 512 * 1024 * 1024;

/// jq's own definitions, parsed once for all filters.
static DEFINITIONS: LazyLock<Vec<Def>> = LazyLock::new(|| {
    jaq_core::defs()
        .chain(jaq_std::defs())
        .chain(jaq_json::defs())
        .filter(|def| !REMOVED.contains(&def.name))
        .collect()
});

/// Compiles a filter; the error says where and what.
///
/// Compiling all of jq's definitions takes far longer than compiling a filter, and most filters need none of them. So a
/// filter is compiled without, and again with those that it turned out to lack, until it lacks nothing.
pub(super) fn compiled(text: &str) -> Result<Compiled, String> {
    if text.len() > MAX_BYTES {
        return Err(format!("it is longer than {} KiB", MAX_BYTES >> 10));
    }
    if tokens(text) <= SHALLOW {
        return compiled_here(text);
    }
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(STACK);
        let compiling = thread.spawn_scoped(scope, || compiled_here(text));
        match compiling.map(thread::ScopedJoinHandle::join) {
            Ok(Ok(compiled)) => compiled,
            Ok(Err(_)) | Err(_) => Err("it cannot be compiled".to_owned()),
        }
    })
}

/// At least as many as the levels of a filter: its words and numbers, and each sign as if it were one of its own.
fn tokens(text: &str) -> usize {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    text.as_bytes()
        .chunk_by(|one, next| is_word(one) && is_word(next))
        .filter(|token| !token[0].is_ascii_whitespace())
        .count()
}

fn compiled_here(text: &str) -> Result<Compiled, String> {
    let arena = Arena::default();
    let mut needed = BTreeSet::new();
    loop {
        match compiled_with(text, &arena, &needed)? {
            Ok(filter) => return Ok(filter),
            Err(errors) => {
                let known = needed.len();
                needed.extend(lacking(&errors));
                if needed.len() == known {
                    return Err(compile_error(text, errors));
                }
            }
        }
    }
}

type CompileErrors<'t> = compile::Errors<&'t str, ()>;

/// Compiles a filter with those of jq's definitions that have one of the names.
fn compiled_with<'t>(
    text: &'t str,
    arena: &'t Arena,
    needed: &BTreeSet<&'static str>,
) -> Result<Result<Compiled, CompileErrors<'t>>, String> {
    let funs = jaq_core::funs::<Data>()
        .chain(jaq_std::funs())
        .chain(jaq_json::funs())
        .filter(|(name, ..)| !REMOVED.contains(name) && *name != "fromjson")
        .chain([from_json()]);
    let definitions = if needed.is_empty() {
        Vec::new()
    } else {
        let chosen = DEFINITIONS.iter().filter(|def| needed.contains(def.name));
        chosen.cloned().collect()
    };
    let file = File {
        code: text,
        path: (),
    };
    let modules = Loader::new(definitions)
        .load(arena, file)
        .map_err(|errors| load_error(text, errors))?;
    load::import(&modules, |_| Err("there are no modules here".to_owned()))
        .map_err(|errors| load_error(text, errors))?;
    Ok(Compiler::default()
        .with_funs(funs)
        .with_global_vars(["$call"])
        .compile(modules))
}

/// The names of jq's definitions among what a filter lacks.
fn lacking(errors: &CompileErrors<'_>) -> impl Iterator<Item = &'static str> {
    let undefined = errors.iter().flat_map(|(_, errors)| errors);
    undefined
        .filter(|(_, undefined)| matches!(undefined, compile::Undefined::Filter(_)))
        .filter_map(|(name, _)| DEFINITIONS.iter().find(|def| def.name == *name))
        .map(|def| def.name)
}

/// `fromjson` on text that a model may have written: no depth of it may overflow the stack.
fn from_json() -> Fun<Data> {
    run(("fromjson", v(0), |cv| bome(parsed(&cv.1))))
}

fn parsed(text: &Val) -> ValR {
    let wrong = |wrong: &str| jaq_json::Error::str(format!("cannot parse as JSON: {wrong}"));
    let value =
        json::parse(&text.try_as_utf8_bytes_owned()?).map_err(|error| wrong(&error.to_string()))?;
    if json::depth(&value) > json::MAX_DEPTH {
        return Err(wrong(&format!("more than {} levels deep", json::MAX_DEPTH)));
    }
    Ok(to_val(value))
}

fn load_error(text: &str, errors: load::Errors<&str, ()>) -> String {
    let first = errors.into_iter().next();
    match first.map(|(_, error)| error) {
        Some(load::Error::Lex(errors)) => match errors.into_iter().next() {
            Some((expected, found)) => unexpected(text, expected.as_str(), found),
            None => "it cannot be read".to_owned(),
        },
        Some(load::Error::Parse(errors)) => match errors.into_iter().next() {
            Some((expected, found)) => unexpected(text, expected.as_str(), found),
            None => "it cannot be parsed".to_owned(),
        },
        Some(load::Error::Io(errors)) => match errors.into_iter().next() {
            Some((path, _)) => {
                format!(
                    "{}: cannot load {path:?}: there are no modules here",
                    place(text, path)
                )
            }
            None => "there are no modules here".to_owned(),
        },
        None => "it cannot be read".to_owned(),
    }
}

fn unexpected(text: &str, expected: &str, found: &str) -> String {
    let found_words: String = found.chars().take(20).take_while(|c| *c != '\n').collect();
    let found_words = if found.is_empty() {
        "the end".to_owned()
    } else {
        format!("`{found_words}`")
    };
    format!(
        "{}: expected {expected}, found {found_words}",
        place(text, found)
    )
}

fn compile_error(text: &str, errors: CompileErrors<'_>) -> String {
    let first = errors.into_iter().flat_map(|(_, errors)| errors).next();
    match first {
        Some((name, compile::Undefined::Filter(arity))) => {
            format!("{}: no filter is named {name}/{arity}", place(text, name))
        }
        Some((name, undefined)) => {
            format!(
                "{}: no {} is named {name}",
                place(text, name),
                undefined.as_str()
            )
        }
        None => "it cannot be compiled".to_owned(),
    }
}

/// Where a part of the text stands.
fn place(text: &str, part: &str) -> String {
    let offset = (part.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before
        .rsplit('\n')
        .next()
        .unwrap_or_default()
        .chars()
        .count()
        + 1;
    format!("line {line} column {column}")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[track_caller]
    fn wrong(text: &str, expected: &str) {
        let wrong = compiled(text).err().unwrap();
        assert_eq!(wrong, expected, "{text}");
    }

    #[test]
    fn nothing_outside_can_be_reached() {
        wrong("env", "line 1 column 1: no filter is named env/0");
        wrong("$ENV", "line 1 column 1: no variable is named $ENV");
        wrong("1 | halt", "line 1 column 5: no filter is named halt/0");
        wrong(
            "halt_error",
            "line 1 column 1: no filter is named halt_error/0",
        );
        wrong("debug", "line 1 column 1: no filter is named debug/0");
        wrong("stderr", "line 1 column 1: no filter is named stderr/0");
        wrong("input", "line 1 column 1: no filter is named input/0");
        wrong(
            "localtime",
            "line 1 column 1: no filter is named localtime/0",
        );
        wrong(
            "import \"a\" as a; .",
            "line 1 column 9: cannot load \"a\": there are no modules here",
        );
        wrong(
            "import \"a\" as $a; .",
            "line 1 column 9: cannot load \"a\": there are no modules here",
        );
        wrong(
            "include \"a\"; .",
            "line 1 column 10: cannot load \"a\": there are no modules here",
        );
    }

    /// Otherwise a filter could mean something else as long as the definition is missing.
    #[test]
    fn no_definition_stands_before_a_native_of_its_name() {
        let natives: HashSet<(&str, usize)> = jaq_core::funs::<Data>()
            .chain(jaq_std::funs())
            .chain(jaq_json::funs())
            .map(|(name, arguments, _)| (name, arguments.len()))
            .collect();
        for def in &*DEFINITIONS {
            let native = natives.contains(&(def.name, def.args.len()));
            assert!(!native, "{}/{}", def.name, def.args.len());
        }
    }

    #[test]
    fn every_definition_brings_what_it_needs() {
        for def in &*DEFINITIONS {
            let arguments = vec!["."; def.args.len()].join("; ");
            let call = match (def.name.starts_with('@'), def.args.len()) {
                (true, _) => format!("{} \"\\(.)\"", def.name),
                (false, 0) => def.name.to_owned(),
                (false, _) => format!("{}({arguments})", def.name),
            };
            assert_eq!(compiled(&call).map(|_| ()), Ok(()), "{call}");
        }
    }

    #[test]
    fn words_count_once_and_signs_each() {
        assert_eq!(tokens(""), 0);
        assert_eq!(tokens(" .abc_1 |  map( 12 )\n"), 7);
        assert_eq!(tokens("[[[]]]"), 6);
        assert_eq!(tokens("\"é\""), 4);
    }

    /// The deepest filters that are compiled where they are.
    #[test]
    fn shallow_filters_fit_on_a_small_stack() {
        let filters = [
            "[".repeat(SHALLOW),
            "-".repeat(SHALLOW),
            format!(".{}", "|.".repeat(SHALLOW / 2 - 1)),
            format!("{}.", "def f: ".repeat(SHALLOW / 3 - 1)),
            "if ".repeat(SHALLOW),
            format!("{}.", "try ".repeat(SHALLOW - 1)),
            "\"\\(".repeat(SHALLOW / 3),
        ];
        for filter in filters {
            assert!(tokens(&filter) <= SHALLOW, "{filter}");
            let thread = thread::Builder::new().stack_size(8 * 1024 * 1024);
            let compiling = thread.spawn(move || compiled(&filter).is_ok());
            compiling.unwrap().join().unwrap();
        }
    }

    #[test]
    fn wrong_text_names_its_place() {
        wrong(".a |", "line 1 column 5: expected term, found the end");
        wrong(
            "{a: 1",
            "line 1 column 6: expected closing brace, found the end",
        );
        wrong(
            ".a\n| nosuch(1)",
            "line 2 column 3: no filter is named nosuch/1",
        );
        wrong("\"é\" | $x", "line 1 column 7: no variable is named $x");
        assert_eq!(compiled("[.a[] | select(. > 1)]").map(|_| ()), Ok(()));
    }
}
