//! Whether a filter might take memory or stack without bound, judged by its text alone.
//!
//! Most filters pick, build and compare: what they take is bounded by their input and their text. Those that can go on by
//! themselves (a definition that calls itself, `range`, `repeat`, …) or make much of little (`*` repeats strings) are told
//! apart here; they run in a process of their own, see [`super::apart`]. A loop over the input (`reduce`, `foreach`) can nest
//! as deep as the input is long, which is no matter where that is short.

use jaq_core::load::Lexer;
use jaq_core::load::lex::{StrPart, Tok, Token};
use serde_json::Value;

/// A longer text is not looked into: its own nesting may be deep.
const SHORT: usize = 2048;

/// What builds on its own last value, once for each of the input.
const LOOPS: [&str; 2] = ["foreach", "reduce"];

/// jq's own filters that go on by themselves.
const UNBOUNDED: [&str; 6] = [
    "combinations",
    "range",
    "recurse",
    "repeat",
    "until",
    "while",
];

/// How many values an input has at most that loops may nest in the process itself: even all pairs of them are too few to
/// overflow its stack.
const FEW_VALUES: usize = 1000;

/// What bounds the memory and the stack that a filter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Growth {
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
        let tokens = Lexer::new(text).lex();
        tokens.map_or(Self::Bounded, |tokens| growth(&tokens))
    }

    /// Whether the filter can run with this input without a process of its own.
    pub(super) fn is_harmless(self, input: &Value) -> bool {
        match self {
            Self::Bounded => true,
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

fn growth(tokens: &[Token<&str>]) -> Growth {
    let growths = tokens.iter().enumerate().map(|(at, token)| match &token.1 {
        Tok::Word if token.0 == "def" && calls_itself(&tokens[at + 1..]) => Growth::Unbounded,
        Tok::Word if UNBOUNDED.contains(&token.0) => Growth::Unbounded,
        Tok::Word if LOOPS.contains(&token.0) => Growth::Loops,
        Tok::Sym if matches!(token.0, "*" | "*=") => Growth::Unbounded,
        _ => inner(token).map(growth).max().unwrap_or(Growth::Bounded),
    });
    growths.max().unwrap_or(Growth::Bounded)
}

/// The token lists inside a token: of brackets, and of what is interpolated into a string.
fn inner<'t, 's>(token: &'t Token<&'s str>) -> Box<dyn Iterator<Item = &'t [Token<&'s str>]> + 't> {
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
    body.into_iter().any(|token| names(token, name))
}

fn names(token: &Token<&str>, name: &str) -> bool {
    match &token.1 {
        Tok::Word => token.0 == name,
        _ => inner(token).any(|tokens| tokens.iter().any(|token| names(token, name))),
    }
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
            assert_eq!(Growth::of(text), Growth::Bounded, "{text}");
        }
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
            "\"\\([range(3)])\"",
        ] {
            assert_eq!(Growth::of(text), Growth::Unbounded, "{text}");
        }
        assert_eq!(Growth::of(&" ".repeat(SHORT + 1)), Growth::Unbounded);
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
