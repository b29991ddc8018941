//! Gemini's generateContent: `functionCall` parts, answered by `functionResponse` parts of one user content.
//!
//! Calls may come without an id; their responses then pair by name and order. Parts of tools that run at Google
//! (`executableCode`, `toolCall`, …) are carried. Fields are also read as Google's Python client prints them
//! (`function_call`); the API takes both.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use crate::message::ToolCall;

use super::Format;
use super::answer::Reply;
use super::arguments::RawArguments;
use super::pi;
use super::stop_reason;
use super::turn::Turn;
use super::wire::{
    Answer, Author, Element, Entry, Fit, RawCall, RawResult, Wire, WireId, items_at, split_items,
    text_at,
};

/// Gemini's generateContent.
pub(super) struct Gemini;

/// A field as the API writes it, and as its Python client prints it.
type Field = [&'static str; 2];

const CALL: Field = ["functionCall", "function_call"];
const RESPONSE: Field = ["functionResponse", "function_response"];
const FINISH_REASON: Field = ["finishReason", "finish_reason"];
const PROMPT_FEEDBACK: Field = ["promptFeedback", "prompt_feedback"];

/// The image types that the API takes in a function response.
const IMAGE_TYPES: [&str; 3] = ["image/png", "image/jpeg", "image/webp"];

impl Wire for Gemini {
    fn fit(&self, value: &Value) -> Fit {
        if let Some(Value::Array(candidates)) = value.get("candidates") {
            let contents = candidates
                .iter()
                .filter_map(|candidate| candidate.get("content"));
            return Fit::with_calls(contents.into_iter().any(has_calls));
        }
        if is_blocked(value) {
            return Fit::Shape;
        }
        match value.get("parts") {
            Some(Value::Array(parts)) => {
                Fit::with_calls(has_calls(value) || parts.iter().any(is_result))
            }
            _ => Fit::No,
        }
    }

    fn unwrap(&self, mut value: Value) -> Result<Vec<Element>, String> {
        if let Some(Value::Array(candidates)) = value.get_mut("candidates") {
            return candidate(std::mem::take(candidates));
        }
        Ok(if is_blocked(&value) {
            Vec::new()
        } else {
            vec![Element::bare(value)]
        })
    }

    fn read<'v>(&self, element: &'v Value) -> Entry<'v> {
        let parts = items_at(element, "parts").iter();
        // A candidate's content may leave the role out.
        if text_at(element, "role") == Some("model") || has_calls(element) {
            return Entry {
                author: Author::Model,
                calls: parts.filter_map(read_call).collect(),
                ..Entry::default()
            };
        }
        Entry {
            results: parts.filter_map(read_result).collect(),
            ..Entry::default()
        }
    }

    fn slots<'v>(&self, element: &'v mut Value) -> Vec<&'v mut Map<String, Value>> {
        objects_inside(element, CALL)
    }

    fn id_key(&self) -> &'static str {
        "id"
    }

    fn set_arguments(&self, slot: &mut Map<String, Value>, arguments: Value) {
        slot.insert("args".to_owned(), arguments);
    }

    fn take_arguments(&self, slot: &mut Map<String, Value>) -> Value {
        slot.get_mut("args").map_or(Value::Null, Value::take)
    }

    fn result_slots<'v>(&self, element: &'v mut Value) -> Vec<&'v mut Map<String, Value>> {
        objects_inside(element, RESPONSE)
    }

    fn result_id_key(&self) -> &'static str {
        "id"
    }

    fn to_pi(&self, elements: &[&Value], calls: Vec<ToolCall>) -> Map<String, Value> {
        let parts = elements
            .iter()
            .flat_map(|element| items_at(element, "parts"));
        pi::message(parts.map(Cow::Borrowed), is_call, calls, to_pi_block)
    }

    fn answer(&self, turn: &Turn, replies: &[Reply<'_>]) -> Answer {
        let units = replies
            .iter()
            .zip(turn.origins_in(Format::Gemini))
            .map(|(reply, origin)| {
                let had_no_id = origin.is_some_and(|origin| origin.id.is_none());
                let mut response = Map::new();
                if !had_no_id {
                    let id = reply.message.tool_call_id.as_str();
                    response.insert("id".to_owned(), id.into());
                }
                let name = reply.message.tool_name.as_str();
                response.insert("name".to_owned(), name.into());
                let (fields, images) = content(reply);
                response.insert("response".to_owned(), fields);
                if !images.is_empty() {
                    response.insert("parts".to_owned(), images.into());
                }
                json!({"functionResponse": response})
            });
        Answer {
            units: units.collect(),
            extras: Vec::new(),
        }
    }

    /// The number of responses has to be that of the calls, in one content.
    fn joins(&self, next: &Value) -> bool {
        text_at(next, "role") == Some("user")
    }

    fn place(&self, answer: Answer, next: Option<Value>) -> Vec<Value> {
        let mut parts = answer.units;
        let mut content = next.unwrap_or_else(|| json!({"role": "user", "parts": []}));
        if let Value::Array(more) = content["parts"].take() {
            parts.extend(more);
        }
        content["parts"] = parts.into();
        vec![content]
    }

    fn take_results(&self, element: Value, indexes: &[usize]) -> (Vec<Value>, Option<Value>) {
        split_items(element, "parts", indexes, is_result)
    }
}

/// The objects in that field of the parts that have it.
fn objects_inside(content: &mut Value, field: Field) -> Vec<&mut Map<String, Value>> {
    let Some(Value::Array(parts)) = content.get_mut("parts") else {
        return Vec::new();
    };
    parts
        .iter_mut()
        .filter_map(|part| {
            let name = field.into_iter().find(|name| part[name].is_object())?;
            part.get_mut(name)?.as_object_mut()
        })
        .collect()
}

/// The object in that field, if it is there.
fn object_at(value: &Value, field: Field) -> Option<&Value> {
    let mut values = field.into_iter().filter_map(|name| value.get(name));
    values.find(|value| value.is_object())
}

fn is_call(part: &Value) -> bool {
    object_at(part, CALL).is_some()
}

fn is_result(part: &Value) -> bool {
    object_at(part, RESPONSE).is_some()
}

/// A blocked prompt has feedback and no candidates.
fn is_blocked(response: &Value) -> bool {
    PROMPT_FEEDBACK
        .into_iter()
        .any(|name| response.get(name).is_some())
}

fn has_calls(content: &Value) -> bool {
    items_at(content, "parts").iter().any(is_call)
}

/// The one candidate that counts: candidates are alternatives, and only one can be answered.
fn candidate(mut candidates: Vec<Value>) -> Result<Vec<Element>, String> {
    let with_calls: Vec<usize> = candidates
        .iter()
        .enumerate()
        .filter(|(_, candidate)| candidate.get("content").is_some_and(has_calls))
        .map(|(index, _)| index)
        .collect();
    let index = match with_calls.as_slice() {
        [] if candidates.is_empty() => return Ok(Vec::new()),
        [] => 0,
        [index] => *index,
        several => {
            return Err(format!(
                "{} of the response's candidates have calls; pass the content of one",
                several.len()
            ));
        }
    };
    let mut candidate = candidates.swap_remove(index);
    let stop_reason = FINISH_REASON
        .into_iter()
        .find_map(|name| text_at(&candidate, name))
        .map(stop_reason::from_gemini);
    Ok(match candidate.get_mut("content") {
        Some(content) if content.is_object() => vec![Element {
            value: content.take(),
            stop_reason,
        }],
        Some(_) | None => Vec::new(),
    })
}

fn read_call(part: &Value) -> Option<RawCall<'_>> {
    let call = object_at(part, CALL)?;
    Some(RawCall::new(
        WireId::optional(call.get("id")),
        call.get("name"),
        RawArguments::of(call.get("args")),
    ))
}

fn read_result(part: &Value) -> Option<RawResult<'_>> {
    let response = object_at(part, RESPONSE)?;
    Some(RawResult {
        id: WireId::optional(response.get("id")),
        name: text_at(response, "name"),
        is_error: Some(
            response
                .get("response")
                .is_some_and(|fields| fields.get("error").is_some()),
        ),
    })
}

fn to_pi_block(part: &Value) -> Value {
    let is_thought = part.get("thought") == Some(&Value::Bool(true));
    match text_at(part, "text") {
        Some(text) if is_thought => json!({"type": "thinking", "thinking": text}),
        Some(text) => json!({"type": "text", "text": text}),
        None => part.clone(),
    }
}

/// The `response` of a result (the API's own words for output and error), and its images.
fn content(reply: &Reply<'_>) -> (Value, Vec<Value>) {
    let mut text = reply.text();
    let mut images = Vec::new();
    for image in reply.images() {
        if IMAGE_TYPES.contains(&image.mime_type) {
            images.push(json!({
                "inlineData": {"mimeType": image.mime_type, "data": image.data},
            }));
        } else {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&image.omitted());
        }
    }
    let key = if reply.message.is_error {
        "error"
    } else {
        "output"
    };
    (json!({key: text}), images)
}
