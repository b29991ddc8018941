//! Messages of the pi agent: `toolCall` blocks in assistant messages, one `toolResult` message per call.
//!
//! Source: spec section 2, and pi's message types (`@earendil-works/pi-ai` 1.6.0, `docs/message-types.md`).

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use crate::message::ToolCall;

use super::answer::Reply;
use super::arguments::RawArguments;
use super::stop_reason;
use super::turn::Turn;
use super::wire::{
    Answer, Author, Entry, Fit, RawCall, RawResult, Wire, WireId, has_type, items_at,
    objects_at_mut, text_at,
};

/// The pi agent's own form.
pub(super) struct Pi;

impl Wire for Pi {
    fn fit(&self, value: &Value) -> Fit {
        match text_at(value, "role") {
            Some("assistant") => Fit::with_calls(items_at(value, "content").iter().any(is_call)),
            Some("toolResult") => Fit::Calls,
            Some(_) if value.get("parts").is_none() => Fit::Shape,
            _ => Fit::No,
        }
    }

    fn read<'v>(&self, element: &'v Value) -> Entry<'v> {
        match text_at(element, "role") {
            Some("assistant") => Entry {
                author: Author::Model,
                calls: items_at(element, "content")
                    .iter()
                    .filter(|block| is_call(block))
                    .map(read_call)
                    .collect(),
                stop_reason: text_at(element, "stopReason").map(stop_reason::from_pi),
                ..Entry::default()
            },
            Some("toolResult") => Entry {
                results: vec![RawResult {
                    id: WireId::required(element.get("toolCallId")),
                    name: text_at(element, "toolName"),
                    is_error: element.get("isError").and_then(Value::as_bool),
                }],
                ..Entry::default()
            },
            _ => Entry::default(),
        }
    }

    fn slots<'v>(&self, element: &'v mut Value) -> Vec<&'v mut Map<String, Value>> {
        objects_at_mut(element, "content", |block| has_type(block, "toolCall"))
    }

    fn id_key(&self) -> &'static str {
        "id"
    }

    fn set_arguments(&self, slot: &mut Map<String, Value>, arguments: Value) {
        slot.insert("arguments".to_owned(), arguments);
    }

    fn take_arguments(&self, slot: &mut Map<String, Value>) -> Value {
        slot.get_mut("arguments").map_or(Value::Null, Value::take)
    }

    fn result_slots<'v>(&self, element: &'v mut Value) -> Vec<&'v mut Map<String, Value>> {
        if text_at(element, "role") == Some("toolResult") {
            element.as_object_mut().into_iter().collect()
        } else {
            Vec::new()
        }
    }

    fn result_id_key(&self) -> &'static str {
        "toolCallId"
    }

    fn to_pi(&self, elements: &[&Value], calls: Vec<ToolCall>) -> Map<String, Value> {
        let mut message = elements
            .first()
            .and_then(|element| element.as_object())
            .cloned()
            .unwrap_or_default();
        put_calls(&mut message, calls);
        message
    }

    fn answer(&self, _: &Turn, replies: &[Reply<'_>]) -> Answer {
        Answer {
            units: replies
                .iter()
                .map(|reply| to_value(reply.message))
                .collect(),
            extras: Vec::new(),
        }
    }
}

fn is_call(block: &Value) -> bool {
    text_at(block, "type") == Some("toolCall")
}

fn read_call(block: &Value) -> RawCall<'_> {
    RawCall {
        arguments_error: text_at(block, "argumentsError"),
        ..RawCall::new(
            WireId::required(block.get("id")),
            block.get("name"),
            RawArguments::of(block.get("arguments")),
        )
    }
}

/// Puts calls into the places of a message's call blocks; fields that only the block has are kept.
pub(super) fn put_calls(message: &mut Map<String, Value>, calls: Vec<ToolCall>) {
    let Some(Value::Array(blocks)) = message.get_mut("content") else {
        return;
    };
    let places = blocks.iter_mut().filter(|block| is_call(block));
    for (block, call) in places.zip(calls) {
        let block = block.as_object_mut().expect("a call block is an object");
        block.insert("id".to_owned(), call.id.into());
        block.insert("name".to_owned(), call.name.into());
        block.insert("arguments".to_owned(), call.arguments);
        if let Some(error) = call.arguments_error {
            block.insert("argumentsError".to_owned(), error.into());
        }
    }
}

/// A message as a JSON value.
pub(super) fn to_value<T: serde::Serialize>(data: &T) -> Value {
    serde_json::to_value(data).expect("messages have only text keys")
}

/// An assistant message in pi form from the blocks of another: calls in their places, other blocks through `convert`.
pub(super) fn message<'v>(
    blocks: impl Iterator<Item = Cow<'v, Value>>,
    is_call: impl Fn(&Value) -> bool,
    calls: Vec<ToolCall>,
    convert: impl Fn(&Value) -> Value,
) -> Map<String, Value> {
    let mut calls = calls.into_iter();
    let content: Vec<Value> = blocks
        .filter_map(|block| {
            if is_call(&block) {
                calls.next().map(|call| to_value(&call))
            } else {
                Some(convert(&block))
            }
        })
        .collect();
    let mut message = Map::new();
    message.insert("role".to_owned(), "assistant".into());
    message.insert("content".to_owned(), content.into());
    message
}

/// The blocks of a content field that may be one text instead.
pub(super) fn blocks_of(content: &Value) -> impl Iterator<Item = Cow<'_, Value>> {
    let blocks: Vec<Cow<'_, Value>> = match content {
        Value::String(text) if text.is_empty() => Vec::new(),
        Value::String(text) => vec![Cow::Owned(json!({"type": "text", "text": text}))],
        Value::Array(blocks) => blocks.iter().map(Cow::Borrowed).collect(),
        _ => Vec::new(),
    };
    blocks.into_iter()
}
