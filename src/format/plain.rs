//! The calls of a plain message of pi, read without reading the rest of it.
//!
//! Most of a large stream of recorded calls is such messages. Whoever wants their calls only does not need the message
//! as a value: texts and thoughts are passed over. Everything that is unusual in any way (another format, an id that is
//! missing or there twice, arguments that are text or deep, a field twice) is left to the reading of any message.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::recognise::is_foreign;
use crate::message::ToolCall;

/// More calls than this in one message are not plain: their ids are compared with each other.
const MOST_CALLS: usize = 16;

/// The calls of `text` if it is one plain assistant message with calls, as [`super::Document`] would read them.
pub fn plain_calls(text: &str) -> Option<Vec<ToolCall>> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let calls = Message.deserialize(&mut deserializer).ok()?;
    deserializer.end().ok()?;
    let are_distinct = || {
        let later = |index: usize| calls[index + 1..].iter();
        let is_only = |(index, call): (usize, &ToolCall)| later(index).all(|one| one.id != call.id);
        calls.iter().enumerate().all(is_only)
    };
    let is_plain = !calls.is_empty() && calls.len() <= MOST_CALLS && are_distinct();
    is_plain.then_some(calls)
}

/// Why reading goes no further; nobody sees it.
fn not_plain<E: Error>() -> E {
    E::custom("not plain")
}

/// Sets what must not be set twice.
fn once<T, E: Error>(place: &mut Option<T>, value: T) -> Result<(), E> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(not_plain()),
    }
}

/// An assistant message.
struct Message;

impl<'de> DeserializeSeed<'de> for Message {
    type Value = Vec<ToolCall>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Message {
    type Value = Vec<ToolCall>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let mut role = None;
        let mut calls = None;
        while let Some(key) = fields.next_key_seed(Text)? {
            match key {
                "role" => once(&mut role, fields.next_value_seed(Text)?)?,
                "content" => once(&mut calls, fields.next_value_seed(Content)?)?,
                key if is_foreign(key) => return Err(not_plain()),
                _ => {
                    fields.next_value::<IgnoredAny>()?;
                }
            }
        }
        match (role, calls) {
            (Some("assistant"), Some(calls)) => Ok(calls),
            _ => Err(not_plain()),
        }
    }
}

/// The content of a message: its calls among texts and thoughts.
struct Content;

impl<'de> DeserializeSeed<'de> for Content {
    type Value = Vec<ToolCall>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Content {
    type Value = Vec<ToolCall>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("blocks")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut blocks: A) -> Result<Self::Value, A::Error> {
        let mut calls = Vec::new();
        while let Some(call) = blocks.next_element_seed(Block)? {
            calls.extend(call);
        }
        Ok(calls)
    }
}

/// A block: a call, or a text or thought without anything of interest.
struct Block;

impl<'de> DeserializeSeed<'de> for Block {
    type Value = Option<ToolCall>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Block {
    type Value = Option<ToolCall>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a block")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        // What kind of block it is stands first nearly always, and tells what its fields may be.
        match fields.next_key_seed(Text)? {
            Some("type") => {}
            _ => return Err(not_plain()),
        }
        let is_call = match fields.next_value_seed(Text)? {
            "toolCall" => true,
            "text" | "thinking" => false,
            _ => return Err(not_plain()),
        };
        let (mut id, mut name, mut arguments) = (None, None, None);
        while let Some(key) = fields.next_key_seed(Text)? {
            match key {
                "type" | "argumentsError" => return Err(not_plain()),
                "id" if is_call => once(&mut id, fields.next_value_seed(Text)?)?,
                "name" if is_call => once(&mut name, fields.next_value_seed(Text)?)?,
                "arguments" if is_call => once(&mut arguments, fields.next_value::<Value>()?)?,
                _ => {
                    fields.next_value::<IgnoredAny>()?;
                }
            }
        }
        if !is_call {
            return Ok(None);
        }
        match (id, name, arguments) {
            (Some(id), Some(name), Some(arguments @ Value::Object(_)))
                if !id.is_empty() && !name.is_empty() =>
            {
                Ok(Some(ToolCall {
                    id: id.to_owned(),
                    name: name.to_owned(),
                    arguments,
                    arguments_error: None,
                }))
            }
            _ => Err(not_plain()),
        }
    }
}

/// A string that stands in the input as it is, without an escape.
struct Text;

impl<'de> DeserializeSeed<'de> for Text {
    type Value = &'de str;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<&'de str, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Text {
    type Value = &'de str;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("text without escapes")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<&'de str, E> {
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Document, InputOptions, Keep, Rerun};
    use super::*;

    const OPTIONS: InputOptions = InputOptions {
        from: None,
        rerun: Rerun::Unanswered,
        keep: Keep::Calls,
    };

    /// What is read plainly is what is read otherwise, without a word about it.
    #[track_caller]
    fn plain(text: &str, calls: usize) {
        let read = plain_calls(text).expect("it is plain");
        assert_eq!(read.len(), calls, "{text}");
        let value = crate::json::parse(text.as_bytes()).unwrap();
        let document = Document::read_alone(1, value, OPTIONS).unwrap().unwrap();
        let [turn] = document.turns.as_slice() else {
            panic!("one turn: {text}");
        };
        assert_eq!(
            (turn.calls.as_slice(), turn.warnings.len()),
            (read.as_slice(), 0)
        );
    }

    #[track_caller]
    fn other(text: &str) {
        assert_eq!(plain_calls(text), None, "{text}");
    }

    fn block(more: &str) -> String {
        format!(r#"{{"type":"toolCall","id":"1","name":"a","arguments":{{}}{more}}}"#)
    }

    fn message(blocks: &str, more: &str) -> String {
        format!(r#"{{"role":"assistant","content":[{blocks}]{more}}}"#)
    }

    #[test]
    fn plain_messages_are_read_as_others_are() {
        plain(&message(&block(""), ""), 1);
        plain(
            &message(
                &block(r#","more":[1]"#),
                r#","stopReason":"length","usage":{"n":1}"#,
            ),
            1,
        );
        let text = r#"{"type":"text","text":"\ud800 \"x\"","name":"n"}"#;
        let second = block("")
            .replace("\"1\"", "\"2\"")
            .replace("{}", r#"{"a":"\u00e9","a":[1.0]}"#);
        plain(&message(&format!("{text},{},{second}", block("")), ""), 2);
        plain(&format!(" {} \r", message(&block(""), "")), 1);
    }

    #[test]
    fn everything_else_is_left() {
        other("");
        other("[]");
        other(r#"{"role":"assistant"}"#);
        other(&message("", ""));
        other(&message(r#"{"type":"text","text":"x"}"#, ""));
        other(&message(&block(""), r#","role":"assistant""#));
        other(&message(&block(""), r#","tool_calls":[]"#));
        other(&message(&block(""), r#","type":"message""#));
        other(&message(&block(r#","id":"2""#), ""));
        other(&message(&block(r#","argumentsError":"x""#), ""));
        other(&message(&block("").replace("\"1\"", "\"\""), ""));
        other(&message(&block("").replace("\"1\"", "1"), ""));
        other(&message(&block("").replace("\"1\"", r#""\u0031""#), ""));
        other(&message(&block("").replace("{}", "\"{}\""), ""));
        other(&message(&block("").replace("toolCall", "tool_use"), ""));
        other(&message(&format!("{0},{0}", block("")), ""));
        other(&message(&block(""), "").replace("assistant", "user"));
        other(&format!("{0}{0}", message(&block(""), "")));
        other(&format!("{}}}", message(&block(""), "")));
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        other(&message(
            &block("").replace("{}", &format!("{{\"a\":{deep}}}")),
            "",
        ));
        let value = json!({"role": "assistant", "content": [5]});
        other(&value.to_string());
    }
}
