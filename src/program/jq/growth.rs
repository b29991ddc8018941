//! Whether a filter might take memory or stack without bound, judged by its text alone.
//!
//! Most filters pick, build and compare: what they take is bounded by their input and their text. Those that can go on by
//! themselves (a definition that calls itself, `range`, `repeat`, …) or make much of little (`*` repeats strings) are told
//! apart here; they run in a process of their own, see [`super::apart`].

use jaq_core::load::Lexer;
use jaq_core::load::lex::{StrPart, Tok, Token};

/// A longer text is not looked into: its own nesting may be deep.
const SHORT: usize = 2048;

/// jq's own filters that go on by themselves.
const UNBOUNDED: [&str; 6] = [
    "combinations",
    "range",
    "recurse",
    "repeat",
    "until",
    "while",
];

/// Whether what it takes is bounded by its input and its text.
pub(super) fn is_bounded(text: &str) -> bool {
    if text.len() > SHORT {
        return false;
    }
    // What is no filter never runs.
    Lexer::new(text)
        .lex()
        .map_or(true, |tokens| are_bounded(&tokens))
}

fn are_bounded(tokens: &[Token<&str>]) -> bool {
    tokens.iter().enumerate().all(|(at, token)| match &token.1 {
        Tok::Word if token.0 == "def" => !calls_itself(&tokens[at + 1..]),
        Tok::Word => !UNBOUNDED.contains(&token.0),
        Tok::Sym => !matches!(token.0, "*" | "*="),
        _ => inner(token).all(are_bounded),
    })
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
    use super::*;

    #[test]
    fn picking_and_building_is_bounded() {
        for text in [
            ".",
            "{a: .b, c: [.d[] | select(. > 1)]}",
            "if .args.path | test(\"a.*b|range\") then {block: true} else empty end",
            "reduce .[] as $x (0; . + $x)",
            "def f($x): $x + 1; def g: f(.); [.[] | g]",
            "\"\\(.a | tojson)\"",
            "[..] | map(tostring) | join(\",\")",
            "this is { no filter",
        ] {
            assert!(is_bounded(text), "{text}");
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
            assert!(!is_bounded(text), "{text}");
        }
        assert!(!is_bounded(&" ".repeat(SHORT + 1)));
    }
}
