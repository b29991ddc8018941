//! JSON in and out, as JavaScript reads and prints it, without ever failing a message for one odd value in it.
//!
//! [`parse`] reads one text, [`Values`] a stream of values of any layout, [`compact`] and [`pretty`] print.
//! What a text means (a message, a manifest, arguments) is the business of the modules that ask for it;
//! the repair of arguments text that is no JSON at all is that of [`crate::format`].

mod lenient;
pub mod pointer;
#[cfg(test)]
mod properties;
mod scan;
mod text;
mod values;

use std::fmt;

use serde_json::Value;

pub use text::{compact, fitted, number_text, pretty, spaced};
pub use values::{Located, Values};

/// How deep arguments may be nested; a scalar has depth 0, `[]` has depth 1.
///
/// [`parse`] reads deeper values too (so that the message around them survives), up to a level at which
/// nothing that walks or drops them can overflow the stack; see [`depth`].
pub const MAX_DEPTH: usize = 512;

const BYTE_ORDER_MARK: &[u8] = "\u{FEFF}".as_bytes();

/// Why a text is no JSON, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonError {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong there, in a few words.
    pub message: String,
}

impl JsonError {
    /// An error at a byte of a text.
    fn at(text: &[u8], offset: usize, message: impl Into<String>) -> Self {
        let (line, column) = Position::START.after(&text[..offset]).line_and_column();
        Self {
            line,
            column,
            message: message.into(),
        }
    }
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            line,
            column,
            message,
        } = self;
        write!(f, "line {line} column {column}: {message}")
    }
}

impl std::error::Error for JsonError {}

/// A place in a text, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Position {
    line: usize,
    column: usize,
}

impl Position {
    const START: Self = Self { line: 0, column: 0 };

    /// The place behind `bytes` that begin here.
    fn after(self, bytes: &[u8]) -> Self {
        let count = |bytes: &[u8], counts: fn(u8) -> bool| {
            bytes
                .iter()
                .map(|byte| usize::from(counts(*byte)))
                .sum::<usize>()
        };
        let begins_character = |byte| byte & 0xC0 != 0x80;
        match bytes.iter().rposition(|byte| *byte == b'\n') {
            None => Self {
                line: self.line,
                column: self.column + count(bytes, begins_character),
            },
            Some(last) => Self {
                line: self.line + count(&bytes[..=last], |byte| byte == b'\n'),
                column: count(&bytes[last + 1..], begins_character),
            },
        }
    }

    fn line_and_column(self) -> (usize, usize) {
        (self.line + 1, self.column + 1)
    }
}

/// Reads one JSON value.
///
/// Everything that is JSON by its grammar is read: a lone surrogate escape becomes U+FFFD, and so do bytes
/// that are no UTF-8; a number beyond the range of a double becomes the largest double, an integer beyond
/// 64 bits the nearest one; of two equal keys the last value counts, at the first one's place; containers
/// below level 1024 become `null`. A byte order mark in front is skipped.
/// Neither the depth nor the size of a text can overflow the stack.
pub fn parse(text: &[u8]) -> Result<Value, JsonError> {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    if let Ok(value) = serde_json::from_slice(text) {
        return Ok(value);
    }
    let value =
        scan::only_value(text).map_err(|error| JsonError::at(text, error.offset, error.message))?;
    Ok(lenient::read(value))
}

/// How deep a value is nested: 0 for a scalar, 1 for `[]`, 2 for `[{}]`.
pub fn depth(value: &Value) -> usize {
    let mut deepest = 0;
    let mut open = vec![(value, 0)];
    while let Some((value, above)) = open.pop() {
        let level = above + 1;
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, level))),
            Value::Object(members) => open.extend(members.values().map(|member| (member, level))),
            _ => continue,
        }
        deepest = deepest.max(level);
    }
    deepest
}

/// Whether the values of a text nest deeper than `levels`; a text that is no JSON may be judged either way.
pub(crate) fn is_deeper_than(levels: usize, text: &str) -> bool {
    let openings = memchr::memchr2_iter(b'[', b'{', text.as_bytes());
    // Few texts are long enough, and few of those have enough brackets.
    if text.len() <= 2 * levels || openings.count() <= levels {
        return false;
    }
    let (mut depth, mut in_string) = (0_usize, false);
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => _ = bytes.next(),
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > levels {
            return true;
        }
    }
    false
}

/// The name of a value's type, as error texts say it: an integral number is an `integer`.
pub fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
        Value::String(_) => "string",
        Value::Bool(_) => "boolean",
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() != 0.0 => "number",
            _ => "integer",
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn case(text: &str, value: &Value) {
        assert_eq!(parse(text.as_bytes()).as_ref(), Ok(value), "{text}");
    }

    #[track_caller]
    fn refused(text: &str, error: &str) {
        assert_eq!(
            parse(text.as_bytes()).unwrap_err().to_string(),
            error,
            "{text}"
        );
    }

    fn nested(levels: usize) -> String {
        "[".repeat(levels) + &"]".repeat(levels)
    }

    #[test]
    fn lone_surrogates_become_replacement_characters() {
        case(r#""\ud83d""#, &json!("\u{FFFD}"));
        case(r#""x\udc00y""#, &json!("x\u{FFFD}y"));
        case(r#""\ud83d\ud83d""#, &json!("\u{FFFD}\u{FFFD}"));
        case(r#""\ud83d\ude00 \ud83d""#, &json!("\u{1F600} \u{FFFD}"));
        case(r#""\ud83d\n""#, &json!("\u{FFFD}\n"));
        case(r#""\udc00\ud83d\ude00""#, &json!("\u{FFFD}\u{1F600}"));
        case(
            r#"{"\ud83d":[1,{"a":"\u00e9"}]}"#,
            &json!({"\u{FFFD}": [1, {"a": "é"}]}),
        );
        case(
            r#"["\ud83d","\"\\\/\b\f\n\r\t"]"#,
            &json!(["\u{FFFD}", "\"\\/\u{8}\u{c}\n\r\t"]),
        );
    }

    #[test]
    fn numbers_beyond_double_stay_finite() {
        case("1e400", &json!(f64::MAX));
        case("[-1e400, 1e-400]", &json!([f64::MIN, 0.0]));
        case(
            "{\"a\": 1E+999, \"b\": -0, \"c\": -0.0}",
            &json!({"a": f64::MAX, "b": -0.0, "c": -0.0}),
        );
    }

    #[test]
    fn integers_of_64_bits_keep_every_digit() {
        for text in [
            "[1e400,18446744073709551615,-9223372036854775808]",
            "[0,18446744073709551615,-9223372036854775808]",
        ] {
            let value = parse(text.as_bytes()).unwrap();
            assert_eq!(value[1], json!(u64::MAX));
            assert_eq!(value[2], json!(i64::MIN));
        }
        case(
            "[1e400,18446744073709551616]",
            &json!([f64::MAX, 18_446_744_073_709_551_616.0]),
        );
    }

    #[test]
    fn last_of_equal_keys_counts_at_the_first_place() {
        for text in [r#"{"a":1,"b":2,"a":3}"#, r#"{"a":1e400,"b":2,"a":3}"#] {
            assert_eq!(
                compact(&parse(text.as_bytes()).unwrap()),
                r#"{"a":3,"b":2}"#
            );
        }
    }

    #[test]
    fn byte_order_mark_and_invalid_bytes_do_not_fail_the_text() {
        case("\u{FEFF}{}", &json!({}));
        assert_eq!(parse(b"\"a\xff\xf0b\""), Ok(json!("a\u{FFFD}\u{FFFD}b")));
    }

    #[test]
    fn depth_is_no_reason_to_refuse_and_deep_levels_are_clipped() {
        for levels in [127, 128, 512, 1024] {
            assert_eq!(depth(&parse(nested(levels).as_bytes()).unwrap()), levels);
        }
        for levels in [1025, 5000, 1_000_000] {
            assert_eq!(depth(&parse(nested(levels).as_bytes()).unwrap()), 1024);
        }
        refused(
            &"[".repeat(1_000_000),
            "line 1 column 1000001: unexpected end of the text",
        );
        let objects = r#"{"a":"#.repeat(3000) + "1" + &"}".repeat(3000);
        assert_eq!(depth(&parse(objects.as_bytes()).unwrap()), 1024);
    }

    #[test]
    fn depth_of_a_text_is_that_of_its_value() {
        for levels in 0..20 {
            let text = nested(levels);
            for limit in 0..20 {
                assert_eq!(is_deeper_than(limit, &text), levels > limit);
            }
        }
        let text = format!(r#"{{"[[\"[[{{{{":{}, "[[":[{{}},{{}}]}}"#, "[ ]");
        assert!(is_deeper_than(2, &text));
        assert!(!is_deeper_than(3, &text));
    }

    #[test]
    fn what_follows_a_clipped_container_is_kept() {
        let text = format!(
            "[{}{{\"k\":[1,2],\"l\":\"]\"}},7{}]",
            "[".repeat(1023),
            "]".repeat(1023)
        );
        let mut value = &parse(text.as_bytes()).unwrap();
        while value[0].is_array() {
            value = &value[0];
        }
        assert_eq!(value, &json!([null, 7]));
    }

    #[test]
    fn errors_name_line_and_column() {
        refused("", "line 1 column 1: unexpected end of the text");
        refused("{\"é\": tru}", "line 1 column 10: expected `true`");
        refused("{\n  \"a\" 1}", "line 2 column 7: expected `:`");
        refused("[1 2]", "line 1 column 4: expected `,` or `]`");
        refused("{\"a\":1 \"b\":2}", "line 1 column 8: expected `,` or `}`");
        refused(
            "{a:1}",
            "line 1 column 2: expected a key in double quotes or `}`",
        );
        refused(
            "{\"a\":1,}",
            "line 1 column 8: expected a key in double quotes",
        );
        refused("[1,]", "line 1 column 4: expected a value");
        refused("[01]", "line 1 column 3: expected the end of the number");
        refused("[1.]", "line 1 column 4: expected a digit");
        refused("-", "line 1 column 2: unexpected end of the text");
        refused("\"\\x\"", "line 1 column 3: invalid escape in a string");
        refused("\"\\u12g4\"", "line 1 column 6: invalid escape in a string");
        refused("\"a\nb\"", "line 1 column 3: control character in a string");
        refused("{} x", "line 1 column 4: unexpected text after the value");
        refused("nullx", "line 1 column 5: expected the end of `null`");
    }

    #[test]
    fn kinds_are_those_of_error_texts() {
        let kinds = |values: &[Value]| values.iter().map(kind).collect::<Vec<_>>().join(" ");
        assert_eq!(
            kinds(&[
                json!(null),
                json!([]),
                json!({}),
                json!(""),
                json!(true),
                json!(1),
                json!(1.5)
            ]),
            "null array object string boolean integer number"
        );
        assert_eq!(
            kinds(&[json!(1.0), json!(1e300), json!(u64::MAX)]),
            "integer integer integer"
        );
    }
}
