//! OpenAI's Responses API: `function_call` items, answered by one `function_call_output` item each.
//!
//! A turn is a run of items by the model. Items of tools that run at OpenAI (`web_search_call`, `mcp_call`, …) are
//! carried; items that the caller would have to run, but that are no calls of its own tools (`computer_call`,
//! `shell_call`, …), are named in a warning.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use crate::json;
use crate::message::{Content, ToolCall};

use super::Format;
use super::answer::{Image, Reply};
use super::arguments::RawArguments;
use super::openai::IMAGE_TYPES;
use super::pi;
use super::stop_reason;
use super::turn::Turn;
use super::wire::{
    Answer, Author, Element, Entry, Fit, RawCall, RawResult, Wire, WireId, items_at, text_at,
};

/// OpenAI's Responses API.
pub(super) struct OpenaiResponses;

const CALLS: [&str; 2] = ["function_call", "custom_tool_call"];
const RESULTS: [&str; 2] = ["function_call_output", "custom_tool_call_output"];
/// Calls that the caller has to run, though not with its own tools.
const FOREIGN_CALLS: [&str; 4] = [
    "computer_call",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
];
/// Items that the caller sends, beside results and messages.
const OF_CALLER: [&str; 6] = [
    "computer_call_output",
    "local_shell_call_output",
    "shell_call_output",
    "apply_patch_call_output",
    "mcp_approval_response",
    "item_reference",
];

impl Wire for OpenaiResponses {
    fn fit(&self, value: &Value) -> Fit {
        if let Some(Value::Array(items)) = value.get("output") {
            return Fit::with_calls(items.iter().any(|item| is_one_of(item, &CALLS)));
        }
        if is_one_of(value, &CALLS) || is_one_of(value, &RESULTS) {
            return Fit::Calls;
        }
        let kind = text_at(value, "type");
        let is_item = matches!(kind, Some("message" | "reasoning" | "item_reference"))
            || kind.is_some_and(|kind| kind.ends_with("_call") || kind.ends_with("_call_output"));
        match text_at(value, "role") {
            Some("user" | "assistant" | "system" | "developer") => Fit::Shape,
            None if is_item => Fit::Shape,
            _ => Fit::No,
        }
    }

    fn unwrap(&self, mut value: Value) -> Result<Vec<Element>, String> {
        let incomplete_reason = value
            .get("incomplete_details")
            .and_then(|details| text_at(details, "reason"));
        let stop_reason = text_at(&value, "status")
            .map(|status| stop_reason::from_openai_response(status, incomplete_reason));
        let Some(Value::Array(items)) = value.get_mut("output") else {
            return Ok(vec![Element::bare(value)]);
        };
        let items = std::mem::take(items).into_iter();
        Ok(items
            .map(|value| Element {
                value,
                stop_reason: stop_reason.clone(),
            })
            .collect())
    }

    fn read<'v>(&self, element: &'v Value) -> Entry<'v> {
        if is_one_of(element, &RESULTS) {
            return Entry {
                results: vec![RawResult {
                    id: WireId::required(element.get("call_id")),
                    name: None,
                    is_error: None,
                }],
                ..Entry::default()
            };
        }
        if !is_by_model(element) {
            return Entry::default();
        }
        Entry {
            author: Author::Model,
            calls: read_call(element).into_iter().collect(),
            stop_reason: text_at(element, "status").and_then(stop_reason::from_openai_item),
            warnings: foreign_call(element).into_iter().collect(),
            ..Entry::default()
        }
    }

    fn slots<'v>(&self, element: &'v mut Value) -> Vec<&'v mut Map<String, Value>> {
        if is_one_of(element, &CALLS) {
            element.as_object_mut().into_iter().collect()
        } else {
            Vec::new()
        }
    }

    fn id_key(&self) -> &'static str {
        "call_id"
    }

    fn wants_text(&self) -> bool {
        true
    }

    fn set_arguments(&self, slot: &mut Map<String, Value>, arguments: Value) {
        slot.insert("arguments".to_owned(), json::compact(&arguments).into());
    }

    fn take_arguments(&self, slot: &mut Map<String, Value>) -> Value {
        slot.get_mut("arguments").map_or(Value::Null, Value::take)
    }

    fn result_slots<'v>(&self, element: &'v mut Value) -> Vec<&'v mut Map<String, Value>> {
        if is_one_of(element, &RESULTS) {
            element.as_object_mut().into_iter().collect()
        } else {
            Vec::new()
        }
    }

    fn result_id_key(&self) -> &'static str {
        "call_id"
    }

    fn to_pi(&self, elements: &[&Value], calls: Vec<ToolCall>) -> Map<String, Value> {
        let blocks = elements.iter().flat_map(|item| {
            if text_at(item, "role").is_some() {
                pi::blocks_of(&item["content"]).collect()
            } else {
                vec![Cow::Borrowed(*item)]
            }
        });
        let is_call = |block: &Value| is_one_of(block, &CALLS);
        pi::message(blocks, is_call, calls, to_pi_block)
    }

    fn answer(&self, turn: &Turn, replies: &[Reply<'_>]) -> Answer {
        let origins = turn.origins_in(Format::OpenaiResponses);
        let units = replies.iter().zip(origins).map(|(reply, origin)| {
            let is_custom = origin.is_some_and(|origin| origin.is_custom);
            let mut item = Map::new();
            item.insert("type".to_owned(), RESULTS[usize::from(is_custom)].into());
            item.insert(
                "call_id".to_owned(),
                reply.message.tool_call_id.as_str().into(),
            );
            item.insert("output".to_owned(), output(reply));
            for (field, value) in origin.iter().flat_map(|origin| &origin.echo) {
                item.insert((*field).to_owned(), value.clone());
            }
            Value::Object(item)
        });
        Answer {
            units: units.collect(),
            extras: Vec::new(),
        }
    }

    fn groups(&self) -> bool {
        true
    }
}

fn is_one_of(item: &Value, kinds: &[&str]) -> bool {
    text_at(item, "type").is_some_and(|kind| kinds.contains(&kind))
}

fn is_by_model(item: &Value) -> bool {
    match text_at(item, "role") {
        Some(role) => role == "assistant",
        None => !is_one_of(item, &OF_CALLER),
    }
}

fn read_call(item: &Value) -> Option<RawCall<'_>> {
    let arguments = match text_at(item, "type")? {
        "function_call" => RawArguments::of(item.get("arguments")),
        "custom_tool_call" => RawArguments::Free(text_at(item, "input").unwrap_or_default()),
        _ => return None,
    };
    let caller = item.get("caller").filter(|caller| caller.is_object());
    Some(RawCall {
        echo: caller
            .map(|caller| ("caller", caller))
            .into_iter()
            .collect(),
        ..RawCall::new(
            WireId::required(item.get("call_id")),
            item.get("name"),
            arguments,
        )
    })
}

fn foreign_call(item: &Value) -> Option<String> {
    let kind = text_at(item, "type").filter(|kind| FOREIGN_CALLS.contains(kind))?;
    let id = text_at(item, "call_id").unwrap_or_default();
    Some(format!(
        "{kind} {id} is no call of a declared tool and is not answered"
    ))
}

fn to_pi_block(block: &Value) -> Value {
    match text_at(block, "type") {
        Some("output_text") => json!({"type": "text", "text": block["text"]}),
        Some("reasoning") => {
            let texts: Vec<&str> = items_at(block, "summary")
                .iter()
                .filter_map(|part| text_at(part, "text"))
                .collect();
            json!({"type": "thinking", "thinking": texts.join("\n\n")})
        }
        _ => block.clone(),
    }
}

/// The output of a result: a text, or a list where images are in it.
fn output(reply: &Reply<'_>) -> Value {
    if !reply.has_images() {
        return reply.text().into();
    }
    let items = reply
        .message
        .content
        .iter()
        .filter_map(|block| match block {
            Content::Text { text } if text.is_empty() => None,
            Content::Text { text } => Some(input_text(text)),
            Content::Image { data, mime_type } => {
                let image = Image { data, mime_type };
                Some(if IMAGE_TYPES.contains(&image.mime_type) {
                    json!({"type": "input_image", "image_url": image.data_url(), "detail": "auto"})
                } else {
                    input_text(&image.omitted())
                })
            }
        });
    items.collect()
}

fn input_text(text: &str) -> Value {
    json!({"type": "input_text", "text": text})
}
