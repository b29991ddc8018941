//! OpenAI's chat completions: `tool_calls` of an assistant message, answered by one `tool` message each.
//!
//! A `tool` message holds text only, so images follow behind all of them in a user message.

use serde_json::{Map, Value, json};

use crate::json;
use crate::message::ToolCall;

use super::answer::Reply;
use super::arguments::RawArguments;
use super::pi;
use super::stop_reason;
use super::turn::Turn;
use super::wire::{
    Answer, Author, Element, Entry, Fit, RawCall, RawResult, Wire, WireId, items_at,
    objects_at_mut, text_at,
};

/// OpenAI's chat completions.
pub(super) struct Openai;

/// The image types that OpenAI takes.
pub(super) const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/webp", "image/gif"];

impl Wire for Openai {
    fn fit(&self, value: &Value) -> Fit {
        if let Some(Value::Array(choices)) = value.get("choices") {
            let messages = choices.iter().filter_map(|choice| choice.get("message"));
            return Fit::with_calls(messages.into_iter().any(has_calls));
        }
        match text_at(value, "role") {
            Some("assistant") => Fit::with_calls(has_calls(value)),
            Some("tool") => Fit::Calls,
            Some("user" | "system" | "developer" | "function") => Fit::Shape,
            _ => Fit::No,
        }
    }

    fn unwrap(&self, mut value: Value) -> Result<Vec<Element>, String> {
        let element = match value.get_mut("choices") {
            Some(Value::Array(choices)) => choice(std::mem::take(choices))?,
            _ => Some(Element::bare(value)),
        };
        if let Some(element) = &element
            && element
                .value
                .get("function_call")
                .is_some_and(Value::is_object)
        {
            return Err("function_call is no longer part of the API; \
                ask for tool_calls by declaring tools instead of functions"
                .to_owned());
        }
        Ok(element.into_iter().collect())
    }

    fn read<'v>(&self, element: &'v Value) -> Entry<'v> {
        match text_at(element, "role") {
            Some("assistant") => Entry {
                author: Author::Model,
                calls: items_at(element, "tool_calls")
                    .iter()
                    .filter(|call| call.is_object())
                    .map(read_call)
                    .collect(),
                ..Entry::default()
            },
            Some("tool") => Entry {
                results: vec![RawResult {
                    id: WireId::required(element.get("tool_call_id")),
                    name: None,
                    is_error: None,
                }],
                ..Entry::default()
            },
            _ => Entry::default(),
        }
    }

    fn slots<'v>(&self, element: &'v mut Value) -> Vec<&'v mut Map<String, Value>> {
        objects_at_mut(element, "tool_calls", |_| true)
    }

    fn id_key(&self) -> &'static str {
        "id"
    }

    fn wants_text(&self) -> bool {
        true
    }

    fn set_arguments(&self, slot: &mut Map<String, Value>, arguments: Value) {
        if let Some(Value::Object(function)) = slot.get_mut("function") {
            function.insert("arguments".to_owned(), json::compact(&arguments).into());
        }
    }

    fn take_arguments(&self, slot: &mut Map<String, Value>) -> Value {
        let arguments = slot
            .get_mut("function")
            .and_then(|function| function.get_mut("arguments"));
        arguments.map_or(Value::Null, Value::take)
    }

    fn result_slots<'v>(&self, element: &'v mut Value) -> Vec<&'v mut Map<String, Value>> {
        if text_at(element, "role") == Some("tool") {
            element.as_object_mut().into_iter().collect()
        } else {
            Vec::new()
        }
    }

    fn result_id_key(&self) -> &'static str {
        "tool_call_id"
    }

    fn to_pi(&self, elements: &[&Value], calls: Vec<ToolCall>) -> Map<String, Value> {
        let blocks = elements.iter().flat_map(|element| {
            pi::blocks_of(&element["content"]).chain(
                items_at(element, "tool_calls")
                    .iter()
                    .map(std::borrow::Cow::Borrowed),
            )
        });
        pi::message(blocks, is_call, calls, Value::clone)
    }

    fn answer(&self, _: &Turn, replies: &[Reply<'_>]) -> Answer {
        let mut answer = Answer::default();
        for reply in replies {
            let (content, images) = content(reply);
            answer.units.push(json!({
                "role": "tool",
                "tool_call_id": reply.message.tool_call_id,
                "content": content,
            }));
            answer.extras.extend(images);
        }
        answer
    }

    fn place(&self, answer: Answer, next: Option<Value>) -> Vec<Value> {
        let mut messages = answer.units;
        if !answer.extras.is_empty() {
            messages.push(json!({"role": "user", "content": answer.extras}));
        }
        messages.extend(next);
        messages
    }
}

fn has_calls(message: &Value) -> bool {
    items_at(message, "tool_calls").iter().any(Value::is_object)
        || message.get("function_call").is_some_and(Value::is_object)
}

fn is_call(block: &Value) -> bool {
    matches!(text_at(block, "type"), Some("function" | "custom"))
}

/// The one choice of a response that counts: choices are alternatives, and only one can be answered.
fn choice(mut choices: Vec<Value>) -> Result<Option<Element>, String> {
    if choices.iter().any(|choice| choice.get("delta").is_some()) {
        return Err("a piece of a streamed response cannot be answered; \
            put the response together first"
            .to_owned());
    }
    let with_calls: Vec<usize> = choices
        .iter()
        .enumerate()
        .filter(|(_, choice)| choice.get("message").is_some_and(has_calls))
        .map(|(index, _)| index)
        .collect();
    let index = match with_calls.as_slice() {
        [] if choices.is_empty() => return Ok(None),
        [] => 0,
        [index] => *index,
        several => {
            return Err(format!(
                "{} of the response's choices have calls; pass the message of one",
                several.len()
            ));
        }
    };
    let mut choice = choices.swap_remove(index);
    let stop_reason = text_at(&choice, "finish_reason").map(stop_reason::from_openai);
    match choice.get_mut("message").map(Value::take) {
        Some(value @ Value::Object(_)) => Ok(Some(Element { value, stop_reason })),
        _ => Err("the response's choice holds no message".to_owned()),
    }
}

fn read_call(call: &Value) -> RawCall<'_> {
    let id = WireId::required(call.get("id"));
    if let Some(custom) = call.get("custom") {
        let input = text_at(custom, "input").unwrap_or_default();
        return RawCall::new(id, custom.get("name"), RawArguments::Free(input));
    }
    let function = call.get("function");
    let field = |key| function.and_then(|function| function.get(key));
    RawCall::new(id, field("name"), RawArguments::of(field("arguments")))
}

/// The text of a result, and its images for the message behind.
fn content(reply: &Reply<'_>) -> (String, Vec<Value>) {
    let mut text = reply.text();
    let mut images = Vec::new();
    for image in reply.images() {
        if IMAGE_TYPES.contains(&image.mime_type) {
            images.push(json!({"type": "image_url", "image_url": {"url": image.data_url()}}));
        } else {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&image.omitted());
        }
    }
    if !images.is_empty() {
        let of = format!("Image of tool call {}:", reply.message.tool_call_id);
        images.insert(0, json!({"type": "text", "text": of}));
        if text.is_empty() {
            text.push_str("(see the image in the next message)");
        }
    }
    (text, images)
}
