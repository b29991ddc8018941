//! Which format a value is in: by its shape, and never by guessing.
//!
//! A value whose calls or results can be read in two ways is refused with both names. A value without calls needs no
//! decision: there is nothing to answer.

use serde_json::Value;

use super::Format;
use super::wire::{Fit, text_at};

/// What a value was recognised as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Recognised {
    /// Calls or results in this format.
    Calls(Format),
    /// A message without calls; the first format whose shape fits.
    Message(Format),
    /// No message of any format.
    Nothing,
}

/// Recognises one value, or the elements of one array together.
pub(super) fn recognise(values: &[Value], from: Option<Format>) -> Result<Recognised, String> {
    if let Some(format) = from {
        return match with_format(values, format) {
            Recognised::Message(_) => without_calls(values, format),
            recognised => Ok(recognised),
        };
    }
    if let [value] = values
        && is_plainly_pi(value)
    {
        return Ok(Recognised::Calls(Format::Pi));
    }
    let mut with_calls = Vec::new();
    let mut certain = None;
    let mut shape = None;
    for format in Format::ALL {
        match best_fit(values, format) {
            Fit::Calls => with_calls.push(format),
            Fit::Certain => certain = certain.or(Some(format)),
            Fit::Shape => shape = shape.or(Some(format)),
            Fit::No => {}
        }
    }
    match with_calls.as_slice() {
        [] => Ok(certain
            .or(shape)
            .map_or(Recognised::Nothing, Recognised::Message)),
        [format] => Ok(Recognised::Calls(*format)),
        several => Err(ambiguous(several)),
    }
}

/// Fields by which other formats, or pi's session files, are recognised.
const FOREIGN: [&str; 9] = [
    "candidates",
    "choices",
    "function_call",
    "jsonrpc",
    "output",
    "parts",
    "promptFeedback",
    "tool_calls",
    "type",
];

/// Whether a field of a message could make it one of another format.
pub(super) fn is_foreign(field: &str) -> bool {
    FOREIGN.contains(&field)
}

/// Whether a value is an assistant message of pi with calls, and has nothing that any other format could read: most of
/// a large stream is such messages, and asking every format costs as much as parsing them.
fn is_plainly_pi(value: &Value) -> bool {
    let Value::Object(fields) = value else {
        return false;
    };
    let mut is_assistant = false;
    let mut has_calls = false;
    for (key, field) in fields {
        match (key.as_str(), field) {
            ("role", role) => is_assistant = role == "assistant",
            ("content", Value::Array(blocks)) => {
                for block in blocks {
                    match text_at(block, "type") {
                        Some("toolCall") => has_calls = true,
                        Some("text" | "thinking") => {}
                        _ => return false,
                    }
                }
            }
            (key, _) if is_foreign(key) => return false,
            _ => {}
        }
    }
    is_assistant && has_calls
}

fn with_format(values: &[Value], format: Format) -> Recognised {
    match best_fit(values, format) {
        Fit::Calls => Recognised::Calls(format),
        Fit::Certain | Fit::Shape => Recognised::Message(format),
        Fit::No => Recognised::Nothing,
    }
}

/// A message of a given format that has no calls must not have those of another: nobody would answer them.
fn without_calls(values: &[Value], format: Format) -> Result<Recognised, String> {
    match recognise(values, None) {
        Ok(Recognised::Calls(other)) if other != format => Err(format!(
            "expected a message in the {format} format, got one in the {other} format"
        )),
        _ => Ok(Recognised::Message(format)),
    }
}

fn best_fit(values: &[Value], format: Format) -> Fit {
    let wire = format.wire();
    values
        .iter()
        .map(|value| wire.fit(value))
        .max()
        .unwrap_or(Fit::No)
}

fn ambiguous(formats: &[Format]) -> String {
    let names: Vec<&str> = formats.iter().map(|format| format.name()).collect();
    format!(
        "the calls can be read as {}; say which with --from",
        names.join(" and as ")
    )
}

/// Why a value is no message, for people.
pub(super) fn not_a_message(value: &Value, from: Option<Format>) -> String {
    if let Some(message) = api_error(value) {
        return format!("expected a message, got an API error: {message}");
    }
    let expected = from.map_or_else(
        || "a message of a known format".to_owned(),
        |format| format!("a message in the {format} format"),
    );
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            let keys: Vec<&str> = fields.keys().take(8).map(String::as_str).collect();
            format!(
                "expected {expected}, got an object with {}",
                keys.join(", ")
            )
        }
        other => format!("expected {expected}, got {}", kind_with_article(other)),
    }
}

/// The text of an error object as the providers answer it (`{"error":{"message":…}}`).
fn api_error(value: &Value) -> Option<&str> {
    value.get("error")?.get("message")?.as_str()
}

fn kind_with_article(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an empty object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pi() -> Value {
        json!({"role": "assistant", "content": [{"type": "toolCall", "id": "1", "name": "a", "arguments": {}}]})
    }

    fn anthropic() -> Value {
        json!({"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "a", "input": {}}]})
    }

    fn openai() -> Value {
        json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "a", "arguments": "{}"}},
        ]})
    }

    fn openai_responses() -> Value {
        json!({"type": "function_call", "call_id": "1", "name": "a", "arguments": "{}"})
    }

    fn gemini() -> Value {
        json!({"role": "model", "parts": [{"functionCall": {"name": "a", "args": {}}}]})
    }

    fn mcp() -> Value {
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a"}})
    }

    #[track_caller]
    fn case(values: &[Value], expected: &Result<Recognised, String>) {
        assert_eq!(recognise(values, None), *expected);
    }

    #[test]
    fn calls_of_another_format_than_the_given_one_are_no_message() {
        for (value, from) in [(anthropic(), Format::Openai), (openai(), Format::Pi)] {
            let error = recognise(&[value], Some(from)).unwrap_err();
            assert!(
                error.starts_with(&format!(
                    "expected a message in the {from} format, got one in"
                )),
                "{error}"
            );
        }
        let plain = json!({"role": "assistant", "content": "hi"});
        let message = Ok(Recognised::Message(Format::Openai));
        assert_eq!(recognise(&[plain], Some(Format::Openai)), message);
    }

    #[test]
    fn calls_are_recognised_by_their_shape() {
        case(&[pi()], &Ok(Recognised::Calls(Format::Pi)));
        case(&[anthropic()], &Ok(Recognised::Calls(Format::Anthropic)));
        case(&[openai()], &Ok(Recognised::Calls(Format::Openai)));
        case(
            &[openai_responses()],
            &Ok(Recognised::Calls(Format::OpenaiResponses)),
        );
        case(&[gemini()], &Ok(Recognised::Calls(Format::Gemini)));
        case(&[mcp()], &Ok(Recognised::Calls(Format::Mcp)));
    }

    #[test]
    fn the_short_way_to_pi_overlooks_no_other_reading() {
        assert!(is_plainly_pi(&pi()));
        for (key, value) in [
            ("tool_calls", openai()["tool_calls"].clone()),
            ("parts", gemini()["parts"].clone()),
            ("choices", json!([{"message": openai()}])),
            ("output", json!([openai_responses()])),
            ("candidates", json!([{"content": gemini()}])),
        ] {
            let mut both = pi();
            both[key] = value;
            assert!(recognise(&[both], None).is_err(), "{key}");
        }
        let mut both = pi();
        let block = anthropic()["content"][0].clone();
        both["content"].as_array_mut().unwrap().push(block);
        assert!(recognise(&[both], None).is_err());
    }

    #[test]
    fn two_readings_of_calls_are_refused_with_both_names() {
        let mut both = anthropic();
        both["tool_calls"] = openai()["tool_calls"].clone();
        let error = Err(
            "the calls can be read as anthropic and as openai; say which with --from".to_owned(),
        );
        case(&[both], &error);
        case(&[openai(), anthropic()], &error);
        let result = json!({"role": "tool", "tool_call_id": "1", "content": "x"});
        case(&[anthropic(), result], &error);
    }

    #[test]
    fn being_told_decides() {
        let mut both = anthropic();
        both["tool_calls"] = openai()["tool_calls"].clone();
        assert_eq!(
            recognise(&[both], Some(Format::Openai)),
            Ok(Recognised::Calls(Format::Openai))
        );
        assert_eq!(
            recognise(&[pi()], Some(Format::Mcp)),
            Ok(Recognised::Nothing)
        );
    }

    #[test]
    fn without_calls_nothing_has_to_be_decided() {
        let text = json!({"role": "assistant", "content": "hi"});
        case(&[text], &Ok(Recognised::Message(Format::Pi)));
        let response = json!({"type": "message", "role": "assistant", "content": [], "stop_reason": "end_turn"});
        case(&[response], &Ok(Recognised::Message(Format::Anthropic)));
        case(
            &[json!({"choices": []})],
            &Ok(Recognised::Message(Format::Openai)),
        );
        case(&[json!({"a": 1})], &Ok(Recognised::Nothing));
        case(&[], &Ok(Recognised::Nothing));
    }
}
