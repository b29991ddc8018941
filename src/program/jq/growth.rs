//! Whether a filter might take memory or stack without bound, judged by its text alone.
//!
//! Most filters pick, build and compare: what they take is bounded by their input and their text. Those that can go on by
//! themselves (a definition that calls itself, `range`, `repeat`, …) or make much of little (`*` repeats strings) are told
//! apart here, and so are those that put together too many copies of it ([`super::copies`]); they run in a process of their
//! own, see [`super::apart`]. A loop over the input (`reduce`, `foreach`) can nest as deep as the input is long, which is
//! no matter where that is short.

use jaq_core::load::Lexer;
use jaq_core::load::lex::{StrPart, Tok, Token};
use serde_json::Value;

use super::copies::{MANY, copies};

/// A longer text is not looked into: its own nesting may be deep.
const SHORT: usize = 2048;

/// What builds on its own last value, once for each of the input.
const LOOPS: [&str; 2] = ["foreach", "reduce"];

/// jq's own filters that go on by themselves.
const UNBOUNDED: [&str; 7] = [
    "combinations",
    "range",
    "recurse",
    "repeat",
    "until",
    "walk",
    "while",
];

/// The words that stand before a term or between two.
pub(super) const KEYWORDS: [&str; 15] = [
    "and", "as", "catch", "def", "elif", "else", "foreach", "if", "import", "include", "label",
    "or", "reduce", "then", "try",
];

/// How many values an input has at most that loops may nest in the process itself: even all pairs of them are too few to
/// overflow its stack.
const FEW_VALUES: usize = 1000;

/// A longer text is not simple, nor one with more than one pipe: each may make much of what the one before made.
const SIMPLE: usize = 256;

/// The words of filters that pick, build and compare.
const SIMPLE_WORDS: [&str; 15] = [
    "and", "elif", "else", "empty", "end", "false", "if", "length", "not", "null", "or", "then",
    "tojson", "tostring", "true",
];

/// The symbols of such filters, beside those that pick a field and those that end a block.
const SIMPLE_SYMBOLS: [&str; 16] = [
    ".", "|", ":", ",", "?", "//", "+", "-", "==", "!=", "<", "<=", ">", ">=", ")", "]",
];

/// An input is small up to so many values, and so many bytes of text in them.
const SMALL_VALUES: usize = 64;
const SMALL_TEXT: usize = 4096;

/// What bounds the memory and the stack that a filter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Growth {
    /// Its input and its text, and what it takes of time as well: it picks and builds, and gives one output at most.
    Simple,
    /// Its input and its text.
    Bounded,
    /// The length of its input, which it may nest.
    Loops,
    /// Nothing.
    Unbounded,
}

impl Growth {
    /// Judges the text of a filter.
    pub(super) fn of(text: &str) -> Self {
        if text.len() > SHORT {
            return Self::Unbounded;
        }
        // What is no filter never runs.
        let Ok(tokens) = Lexer::new(text).lex() else {
            return Self::Bounded;
        };
        match growth(&tokens) {
            _ if copies(&tokens) > MANY => Self::Unbounded,
            Self::Bounded
                if text.len() <= SIMPLE && pipes(&tokens) <= 1 && is_simple_item(&tokens) =>
            {
                Self::Simple
            }
            growth => growth,
        }
    }

    /// Whether the filter is done with this input sooner than a thread could be told of it.
    pub(super) fn is_done_at_once(self, input: &Value) -> bool {
        self == Self::Simple && is_small(input)
    }

    /// Whether the filter can run with this input without a process of its own.
    pub(super) fn is_harmless(self, input: &Value) -> bool {
        match self {
            Self::Simple | Self::Bounded => true,
            Self::Loops => has_few_values(input),
            Self::Unbounded => false,
        }
    }
}

fn has_few_values(input: &Value) -> bool {
    let mut open = vec![input];
    let mut count = 0;
    while let Some(value) = open.pop() {
        count += 1;
        if count + open.len() > FEW_VALUES {
            return false;
        }
        match value {
            Value::Array(items) if items.len() > FEW_VALUES => return false,
            Value::Array(items) => open.extend(items),
            Value::Object(members) if members.len() > FEW_VALUES => return false,
            Value::Object(members) => open.extend(members.values()),
            _ => {}
        }
    }
    true
}

fn is_small(input: &Value) -> bool {
    let mut open = vec![input];
    let (mut values, mut text) = (0, 0);
    while let Some(value) = open.pop() {
        values += 1;
        match value {
            Value::String(string) => text += string.len(),
            Value::Array(items) if items.len() <= SMALL_VALUES => open.extend(items),
            Value::Object(members) if members.len() <= SMALL_VALUES => {
                text += members.keys().map(String::len).sum::<usize>();
                open.extend(members.values());
            }
            Value::Array(_) | Value::Object(_) => return false,
            _ => {}
        }
        if values + open.len() > SMALL_VALUES || text > SMALL_TEXT {
            return false;
        }
    }
    true
}

fn pipes(tokens: &[Token<&str>]) -> usize {
    let pipes_of = |token: &Token<&str>| match token.0 {
        "|" => 1,
        _ => inner(token).map(pipes).sum(),
    };
    tokens.iter().map(pipes_of).sum()
}

/// Whether these tokens only pick and build, and give one value at most.
fn is_simple(tokens: &[Token<&str>]) -> bool {
    tokens.iter().enumerate().all(|(at, token)| {
        let follows = |expected: &str| tokens.get(at + 1).is_some_and(|next| next.0 == expected);
        match &token.1 {
            Tok::Word => SIMPLE_WORDS.contains(&token.0) || follows(":"),
            Tok::Var | Tok::Num => true,
            Tok::Fmt => false,
            Tok::Sym => is_simple_symbol(token.0),
            Tok::Str(_) => inner(token).all(is_simple_item),
            Tok::Block(inside) if token.0.starts_with('{') => is_simple(inside),
            Tok::Block(inside) if is_list(tokens, at) => is_simple(inside),
            // Parentheses and indexes: several values in them are several outputs, none are all of a list.
            Tok::Block(inside) => inside.len() > 1 && is_simple_item(inside),
        }
    })
}

/// Whether these tokens are simple and give no value after another.
fn is_simple_item(tokens: &[Token<&str>]) -> bool {
    is_simple(tokens) && !tokens.iter().any(|token| token.0 == ",")
}

fn is_simple_symbol(symbol: &str) -> bool {
    let picks_field = symbol.len() > 1 && symbol.starts_with('.') && symbol != "..";
    picks_field || symbol == "}" || SIMPLE_SYMBOLS.contains(&symbol)
}

/// Whether the block at this place is a list: nothing stands before it that it could be an index of.
fn is_list(tokens: &[Token<&str>], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| tokens.get(before));
    tokens[at].0.starts_with('[') && before.is_none_or(is_operator)
}

/// Whether a term may follow this token, instead of an index of it.
pub(super) fn is_operator(token: &Token<&str>) -> bool {
    match &token.1 {
        Tok::Sym => !token.0.starts_with('.') && token.0 != "?",
        Tok::Word => KEYWORDS.contains(&token.0),
        _ => false,
    }
}

fn growth(tokens: &[Token<&str>]) -> Growth {
    let growths = tokens.iter().enumerate().map(|(at, token)| match &token.1 {
        Tok::Word if token.0 == "def" && calls_itself(&tokens[at + 1..]) => Growth::Unbounded,
        Tok::Word if UNBOUNDED.contains(&token.0) => Growth::Unbounded,
        Tok::Word if LOOPS.contains(&token.0) => Growth::Loops,
        Tok::Sym if matches!(token.0, "*" | "*=") => Growth::Unbounded,
        _ => inner(token).map(growth).max().unwrap_or(Growth::Bounded),
    });
    let growth = growths.max().unwrap_or(Growth::Bounded);
    // Every level is changed after those below it, and may hold copies of them.
    let updates_all_levels = mentions(tokens, "..") > 0 && mentions(tokens, "|=") > 0;
    if updates_all_levels {
        Growth::Unbounded
    } else {
        growth
    }
}

/// The token lists inside a token: of brackets, and of what is interpolated into a string.
pub(super) fn inner<'t, 's>(
    token: &'t Token<&'s str>,
) -> Box<dyn Iterator<Item = &'t [Token<&'s str>]> + 't> {
    match &token.1 {
        Tok::Block(tokens) => Box::new(std::iter::once(&tokens[..])),
        Tok::Str(parts) => Box::new(parts.iter().filter_map(|part| match part {
            StrPart::Term(token) => Some(std::slice::from_ref(token)),
            StrPart::Str(_) | StrPart::Char(_) => None,
        })),
        Tok::Word | Tok::Var | Tok::Fmt | Tok::Num | Tok::Sym => Box::new(std::iter::empty()),
    }
}

/// Whether the definition whose name comes first names itself before its end. A parameter of that name counts too.
fn calls_itself(tokens: &[Token<&str>]) -> bool {
    let Some((Token(name, _), rest)) = tokens.split_first() else {
        return false;
    };
    // Each definition inside ends with a semicolon as well.
    let mut open = 1;
    let body = rest.iter().take_while(|token| {
        match token.0 {
            "def" => open += 1,
            ";" => open -= 1,
            _ => {}
        }
        open > 0
    });
    let body = &rest[..body.count()];
    mentions(body, name) > 0
}

/// How often a name or a symbol occurs, in brackets and in strings as well.
pub(super) fn mentions(tokens: &[Token<&str>], name: &str) -> u32 {
    let mentions_of = |token: &Token<&str>| match &token.1 {
        Tok::Word | Tok::Var | Tok::Sym => u32::from(token.0 == name),
        _ => inner(token).map(|tokens| mentions(tokens, name)).sum(),
    };
    tokens.iter().map(mentions_of).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn picking_and_building_is_bounded() {
        for text in [
            ".",
            "{a: .b, c: [.d[] | select(. > 1)]}",
            "if .args.path | test(\"a.*b|range\") then {block: true} else empty end",
            "def f($x): $x + 1; def g: f(.); [.[] | g]",
            "\"\\(.a | tojson)\"",
            "[..] | map(tostring) | join(\",\")",
            "this is { no filter",
        ] {
            assert!(Growth::of(text) <= Growth::Bounded, "{text}");
        }
    }

    #[test]
    fn picking_and_building_one_value_is_simple() {
        for text in [
            ".",
            ".a.b[0][\"c\"]?",
            "{content: [{type: \"text\", text: .value}], details: {source: \"echo\"}}",
            "if .a == [] then {b: [1, 2]} else empty end",
            "{text: \"\\(.a | tostring) of \\($call.toolName)\", (.key): (.a // [.b, []])}",
        ] {
            assert_eq!(Growth::of(text), Growth::Simple, "{text}");
        }
        for text in [
            ".[]",
            ".a[]",
            ".a.b[]?",
            "[.a[]]",
            "[.[]]",
            "\"\\(1, 2)\"",
            "..",
            "., .",
            "(1, 2)",
            ".[0, 1]",
            "[1, (2, 3)]",
            ". as $x | $x",
            "map(.)",
            "test(\"a\")",
            "@json",
            ".a |= 1",
            "[.,.] | [.,.] | [.,.]",
            "{(.a, .b): 1}",
        ] {
            assert_eq!(Growth::of(text), Growth::Bounded, "{text}");
        }
        let long = format!(".{}", " ".repeat(SIMPLE));
        assert_eq!(Growth::of(&long), Growth::Bounded);
    }

    #[test]
    fn small_inputs_have_few_values_and_little_text() {
        let simple = Growth::of(".");
        assert!(simple.is_done_at_once(&json!({"a": [1, "x"]})));
        assert!(!simple.is_done_at_once(&json!({"a": "x".repeat(SMALL_TEXT)})));
        assert!(!simple.is_done_at_once(&json!(vec![1; SMALL_VALUES])));
        assert!(!Growth::of(".[]").is_done_at_once(&json!(1)));
    }

    #[test]
    fn what_may_go_on_by_itself_is_not() {
        for text in [
            "def f: f; f",
            "def f: def g: 1; [g, f]; f",
            "def f: \"\\(1 | f)\"; f",
            "[range(1; 5)]",
            "[limit(3; repeat(1))]",
            "{a: {b: [recurse(.)]}}",
            ".a * .b",
            ".a *= 3",
            "walk([., .])",
            "(.. | strings) |= \"\\(.)\\(.)\"",
            "\"\\([range(3)])\"",
        ] {
            assert_eq!(Growth::of(text), Growth::Unbounded, "{text}");
        }
        assert_eq!(Growth::of(&" ".repeat(SHORT + 1)), Growth::Unbounded);
    }

    #[test]
    fn what_doubles_again_and_again_is_not() {
        for doubling in [
            ". + .",
            "[., .]",
            "\"\\(.)\\(.)\"",
            "(., .)",
            "{a: ., b: .}",
            "@sh",
        ] {
            let times = |times| Growth::of(&vec![doubling; times].join(" | "));
            assert!(times(3) <= Growth::Bounded, "{doubling}");
            assert_eq!(times(9), Growth::Unbounded, "{doubling}");
        }
        let growth = Growth::of("reduce .[] as $x (.; [., .])");
        assert_eq!(growth, Growth::Unbounded);
    }

    #[test]
    fn no_short_text_is_nested_too_deep_to_be_judged() {
        for (open, close) in [("[", "]"), ("(", ")"), ("if ", " end"), ("def f: ", "; .")] {
            let levels = SHORT / (open.len() + close.len()) - 1;
            let text = format!("{}.{}", open.repeat(levels), close.repeat(levels));
            Growth::of(&text);
        }
    }

    #[test]
    fn loops_are_as_harmless_as_their_input_is_short() {
        let growth = Growth::of("[reduce .[] as $x (0; . + $x)]");
        assert_eq!(growth, Growth::Loops);
        assert!(growth.is_harmless(&json!({"a": [1, 2, {"b": null}]})));
        assert!(growth.is_harmless(&json!(vec![1; 999])));
        assert!(!growth.is_harmless(&json!(vec![1; 1001])));
        assert!(!growth.is_harmless(&json!([vec![1; 600], vec![1; 600]])));
        let both = Growth::of("reduce range(3) as $x (0; .)");
        assert_eq!(both, Growth::Unbounded);
    }
}
