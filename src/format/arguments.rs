//! Arguments that arrive as text, parsed as pi's `parseToolCallArguments` does.
//!
//! Blank text is `{}`. Text that JSON refuses is read once more with its strings repaired: models write raw line
//! breaks and Windows paths into them. What is still no JSON object becomes the call's `argumentsError`, which
//! carries the text back to the model; nothing is ever made of half an object.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::json;

/// The arguments of a call as they are on the wire.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum RawArguments<'v> {
    /// The call has no arguments field.
    Absent,
    /// A JSON value.
    Value(&'v Value),
    /// Text that should be a JSON object.
    Text(&'v str),
    /// Free text of a tool that takes no JSON (OpenAI's custom tools).
    Free(&'v str),
}

impl<'v> RawArguments<'v> {
    /// A field that may hold a value, text or nothing.
    pub(crate) fn of(field: Option<&'v Value>) -> Self {
        match field {
            None => Self::Absent,
            Some(Value::String(text)) => Self::Text(text),
            Some(value) => Self::Value(value),
        }
    }
}

impl RawArguments<'_> {
    /// Whether parsing would only copy them.
    pub(crate) fn can_be_left(self) -> bool {
        matches!(self, Self::Value(value) if json::depth(value) <= json::MAX_DEPTH)
    }

    /// Whether an API refuses them in a request: they are no object, or no text of one where it wants text.
    pub(crate) fn are_bad(self, wants_text: bool) -> bool {
        match self {
            Self::Absent | Self::Free(_) => false,
            Self::Value(value) => wants_text || !value.is_object(),
            Self::Text(text) => !wants_text || parse_text(text).is_err(),
        }
    }
}

/// What a call's arguments came to: the value, and why it is only `{}` where the text was no JSON object.
pub(crate) type Parsed = Result<Value, String>;

/// Parses the arguments of a call; the error is the `argumentsError`.
pub(crate) fn parse(arguments: RawArguments<'_>) -> Parsed {
    match arguments {
        RawArguments::Absent => Ok(Value::Object(Map::new())),
        RawArguments::Value(value) => shallow(value.clone()),
        RawArguments::Text(text) => parse_text(text),
        RawArguments::Free(text) => Err(refusal(NOT_AN_OBJECT, text)),
    }
}

/// Refuses a value that is nested too deeply to be worked with.
pub(crate) fn shallow(value: Value) -> Parsed {
    if json::depth(&value) > json::MAX_DEPTH {
        Err(too_deep())
    } else {
        Ok(value)
    }
}

const NOT_AN_OBJECT: &str = "Tool arguments must be a JSON object";

/// Parses arguments text: an object, or the `argumentsError`.
pub fn parse_text(text: &str) -> Result<Value, String> {
    if is_blank(text) {
        return Ok(Value::Object(Map::new()));
    }
    match parse_repaired(text) {
        Ok(value @ Value::Object(_)) => shallow(value),
        Ok(_) => Err(refusal(NOT_AN_OBJECT, text)),
        Err(reason) => Err(refusal(&reason, text)),
    }
}

fn too_deep() -> String {
    format!(
        "Tool arguments are nested more than {} levels deep",
        json::MAX_DEPTH
    )
}

fn refusal(reason: &str, text: &str) -> String {
    format!("{reason}\n\nReceived arguments:\n{text}")
}

/// Whether JavaScript's `trim` leaves nothing: Unicode white space and the byte order mark.
fn is_blank(text: &str) -> bool {
    text.chars()
        .all(|character| character.is_whitespace() || character == '\u{feff}')
}

fn parse_repaired(text: &str) -> Result<Value, String> {
    if text.starts_with('\u{feff}') {
        return Err("line 1 column 1: unexpected byte order mark".to_owned());
    }
    json::parse(text.as_bytes()).or_else(|error| match repair(text) {
        Cow::Owned(repaired) => json::parse(repaired.as_bytes()).map_err(|error| error.to_string()),
        Cow::Borrowed(_) => Err(error.to_string()),
    })
}

/// Repairs the inside of strings: raw control characters are escaped, and a backslash that starts no JSON escape
/// is doubled, so that it stands for itself. Borrowed when there is nothing to repair.
pub fn repair(text: &str) -> Cow<'_, str> {
    let mut repaired = String::new();
    let mut copied = 0;
    let mut in_string = false;
    let mut at = 0;
    let bytes = text.as_bytes();
    while let Some(&byte) = bytes.get(at) {
        let mut width = 1;
        let replacement = match byte {
            b'"' => {
                in_string = !in_string;
                None
            }
            b'\\' if in_string => match escape_width(&bytes[at..]) {
                Some(escape) => {
                    width = escape;
                    None
                }
                None => Some("\\\\".to_owned()),
            },
            0..=0x1f if in_string => Some(escaped_control(byte)),
            _ => None,
        };
        if let Some(replacement) = replacement {
            repaired.push_str(&text[copied..at]);
            repaired.push_str(&replacement);
            copied = at + width;
        }
        at += width;
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    repaired.push_str(&text[copied..]);
    Cow::Owned(repaired)
}

/// The length of the JSON escape that the bytes start with, if it is one.
fn escape_width(bytes: &[u8]) -> Option<usize> {
    match bytes.get(1)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(2),
        b'u' => {
            let digits = bytes.get(2..6)?;
            digits.iter().all(u8::is_ascii_hexdigit).then_some(6)
        }
        _ => None,
    }
}

fn escaped_control(byte: u8) -> String {
    match byte {
        b'\n' => "\\n".to_owned(),
        b'\r' => "\\r".to_owned(),
        b'\t' => "\\t".to_owned(),
        8 => "\\b".to_owned(),
        12 => "\\f".to_owned(),
        _ => format!("\\u{byte:04x}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn parsed(text: &str, expected: Value) {
        assert_eq!(parse_text(text), Ok(expected));
    }

    /// The reason's start, and that the text received is carried whole.
    #[track_caller]
    fn refused(text: &str, reason: &str) {
        let error = parse_text(text).unwrap_err();
        assert!(error.starts_with(reason), "{error}");
        assert!(
            error.ends_with(&format!("\n\nReceived arguments:\n{text}")),
            "{error}"
        );
    }

    #[test]
    fn blank_text_is_an_empty_object() {
        for text in ["", "  \n", "\u{a0}", "\u{feff}"] {
            parsed(text, json!({}));
        }
    }

    #[test]
    fn json_objects_are_read_as_they_are() {
        parsed("{\"a\":1}", json!({"a": 1}));
        parsed(" {\"a\":[{}]}\n", json!({"a": [{}]}));
    }

    #[test]
    fn raw_control_characters_in_strings_are_repaired() {
        parsed("{\"a\":\"x\ny\"}", json!({"a": "x\ny"}));
        parsed(
            "{\"a\":\"\t\u{1}\u{1f}\u{8}\u{c}\"}",
            json!({"a": "\t\u{1}\u{1f}\u{8}\u{c}"}),
        );
        parsed("{\"a\nb\":1}", json!({"a\nb": 1}));
        parsed("{\"a\":\"\\\n\"}", json!({"a": "\\\n"}));
    }

    #[test]
    fn backslashes_that_escape_nothing_stand_for_themselves() {
        parsed(r#"{"p":"C:\dir\new"}"#, json!({"p": "C:\\dir\new"}));
        parsed(r#"{"p":"C:\users"}"#, json!({"p": "C:\\users"}));
        parsed(r#"{"p":"\u12"}"#, json!({"p": "\\u12"}));
        parsed(r#"{"p":"\u12G4\x"}"#, json!({"p": "\\u12G4\\x"}));
        parsed(r#"{"r":"\d+\w"}"#, json!({"r": "\\d+\\w"}));
        parsed("{\"p\":\"\u{e9}\\\u{e9}\"}", json!({"p": "\u{e9}\\\u{e9}"}));
    }

    #[test]
    fn what_is_no_object_is_refused_with_the_text() {
        for text in ["null", "[]", "3", "\"x\"", "true", "[1,\"\\d\"]"] {
            refused(text, NOT_AN_OBJECT);
        }
    }

    #[test]
    fn what_is_no_json_is_refused_with_the_text() {
        for text in [
            "{\"a\":1",
            "nope",
            "{'a':1}",
            "{\"a\":1,}",
            "{\"a\":1}}",
            "{\"p\":\"a\\",
            "\u{feff}{\"a\":1}",
            "{\"a\":\"x\ny\"} trailing",
        ] {
            refused(text, "line ");
        }
    }

    #[test]
    fn nothing_is_repaired_outside_of_strings() {
        assert_eq!(repair(r#"x"\u00e9\q"\q"#), r#"x"\u00e9\\q"\q"#);
        assert!(matches!(repair("{\"a\": 1}\n\u{1}"), Cow::Borrowed(_)));
    }

    #[test]
    fn depth_is_an_error_of_the_call_and_never_a_crash() {
        for levels in [513, 5_000, 200_000] {
            let text = format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
            let error = parse_text(&text).unwrap_err();
            assert_eq!(error, too_deep());
        }
        let text = format!("{{\"a\":{}{}}}", "[".repeat(511), "]".repeat(511));
        assert!(parse_text(&text).is_ok());
    }

    #[test]
    fn ten_megabytes_of_arguments_are_read() {
        let long = "x\n".repeat(5 << 20);
        let text = format!("{{\"body\":\"{long}\"}}");
        assert_eq!(parse_text(&text).unwrap()["body"], json!(long));
    }
}
