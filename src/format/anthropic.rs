//! Anthropic's Messages API: `tool_use` blocks, answered by `tool_result` blocks at the head of one user message.
//!
//! Blocks of tools that run at Anthropic (`server_tool_use`, `web_search_tool_result`, …) are carried, not answered.

use serde_json::{Map, Value, json};

use crate::message::{Content, ToolCall};

use super::answer::{Image, Reply};
use super::arguments::RawArguments;
use super::pi;
use super::stop_reason;
use super::turn::Turn;
use super::wire::{
    Answer, Author, Element, Entry, Fit, RawCall, RawResult, Wire, WireId, has_type, items_at,
    objects_at_mut, split_items, text_at,
};

/// Anthropic's Messages API.
pub(super) struct Anthropic;

/// The image types that the API takes.
const IMAGE_TYPES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

impl Wire for Anthropic {
    fn fit(&self, value: &Value) -> Fit {
        let holds = |wanted: fn(&Value) -> bool| items_at(value, "content").iter().any(wanted);
        match text_at(value, "role") {
            Some("assistant") if holds(is_call) => Fit::Calls,
            Some("assistant") if is_response(value) => Fit::Certain,
            Some("user") => Fit::with_calls(holds(is_result)),
            Some("assistant" | "system") => Fit::Shape,
            _ => Fit::No,
        }
    }

    fn unwrap(&self, mut value: Value) -> Result<Vec<Element>, String> {
        let stop_reason = text_at(&value, "stop_reason").map(stop_reason::from_anthropic);
        if is_response(&value) {
            value = json!({"role": "assistant", "content": value["content"].take()});
        }
        Ok(vec![Element { value, stop_reason }])
    }

    fn read<'v>(&self, element: &'v Value) -> Entry<'v> {
        let blocks = items_at(element, "content").iter();
        match text_at(element, "role") {
            Some("assistant") => Entry {
                author: Author::Model,
                calls: blocks
                    .filter(|block| is_call(block))
                    .map(read_call)
                    .collect(),
                ..Entry::default()
            },
            _ => Entry {
                results: blocks
                    .filter(|block| is_result(block))
                    .map(read_result)
                    .collect(),
                ..Entry::default()
            },
        }
    }

    fn slots<'v>(&self, element: &'v mut Value) -> Vec<&'v mut Map<String, Value>> {
        objects_at_mut(element, "content", |block| has_type(block, "tool_use"))
    }

    fn id_key(&self) -> &'static str {
        "id"
    }

    fn set_arguments(&self, slot: &mut Map<String, Value>, arguments: Value) {
        slot.insert("input".to_owned(), arguments);
    }

    fn take_arguments(&self, slot: &mut Map<String, Value>) -> Value {
        slot.get_mut("input").map_or(Value::Null, Value::take)
    }

    fn result_slots<'v>(&self, element: &'v mut Value) -> Vec<&'v mut Map<String, Value>> {
        objects_at_mut(element, "content", |block| has_type(block, "tool_result"))
    }

    fn result_id_key(&self) -> &'static str {
        "tool_use_id"
    }

    fn results_lead(&self, element: &Value) -> bool {
        items_at(element, "content")
            .iter()
            .skip_while(|block| is_result(block))
            .all(|block| !is_result(block))
    }

    fn to_pi(&self, elements: &[&Value], calls: Vec<ToolCall>) -> Map<String, Value> {
        let content = elements.iter().map(|element| &element["content"]);
        pi::message(content.flat_map(pi::blocks_of), is_call, calls, to_pi_block)
    }

    fn answer(&self, turn: &Turn, replies: &[Reply<'_>]) -> Answer {
        let mut answer = Answer::default();
        for (reply, origin) in replies
            .iter()
            .zip(turn.origins_in(super::Format::Anthropic))
        {
            let mut block = Map::new();
            block.insert("type".to_owned(), "tool_result".into());
            block.insert(
                "tool_use_id".to_owned(),
                reply.message.tool_call_id.as_str().into(),
            );
            let (content, images) = content(reply);
            if !content.is_empty() {
                block.insert("content".to_owned(), content.into());
            }
            if reply.message.is_error {
                block.insert("is_error".to_owned(), true.into());
            }
            for (field, value) in origin.iter().flat_map(|origin| &origin.echo) {
                block.insert((*field).to_owned(), value.clone());
            }
            answer.units.push(Value::Object(block));
            answer.extras.extend(images);
        }
        answer
    }

    /// All results of a turn have to be in the one user message behind it, before anything else in it.
    fn joins(&self, next: &Value) -> bool {
        text_at(next, "role") == Some("user")
    }

    fn place(&self, answer: Answer, next: Option<Value>) -> Vec<Value> {
        let mut content = answer.units;
        content.extend(answer.extras);
        let mut message = next.unwrap_or_else(|| json!({"role": "user", "content": []}));
        match message["content"].take() {
            Value::String(text) => content.push(json!({"type": "text", "text": text})),
            Value::Array(blocks) => content.extend(blocks),
            _ => {}
        }
        message["content"] = content.into();
        vec![message]
    }

    fn take_results(&self, element: Value, indexes: &[usize]) -> (Vec<Value>, Option<Value>) {
        split_items(element, "content", indexes, is_result)
    }
}

fn is_response(value: &Value) -> bool {
    text_at(value, "type") == Some("message") && value.get("stop_reason").is_some()
}

fn is_call(block: &Value) -> bool {
    text_at(block, "type") == Some("tool_use")
}

fn is_result(block: &Value) -> bool {
    text_at(block, "type") == Some("tool_result")
}

fn read_call(block: &Value) -> RawCall<'_> {
    let toolset = block.get("toolset_name").filter(|name| name.is_string());
    RawCall {
        echo: toolset
            .map(|name| ("toolset_name", name))
            .into_iter()
            .collect(),
        ..RawCall::new(
            WireId::required(block.get("id")),
            block.get("name"),
            RawArguments::of(block.get("input")),
        )
    }
}

fn read_result(block: &Value) -> RawResult<'_> {
    RawResult {
        id: WireId::required(block.get("tool_use_id")),
        name: None,
        is_error: Some(block.get("is_error") == Some(&Value::Bool(true))),
    }
}

fn to_pi_block(block: &Value) -> Value {
    match text_at(block, "type") {
        Some("thinking") => json!({
            "type": "thinking",
            "thinking": block["thinking"],
            "thinkingSignature": block["signature"],
        }),
        _ => block.clone(),
    }
}

/// The content of a result, and what does not go into it: the API refuses blank text, and anything but text in an
/// error.
fn content(reply: &Reply<'_>) -> (Vec<Value>, Vec<Value>) {
    let mut content = Vec::new();
    let mut beside = Vec::new();
    for block in &reply.message.content {
        match block {
            Content::Text { text } if text.trim().is_empty() => {}
            Content::Text { text } => content.push(text_block(text)),
            Content::Image { data, mime_type } => {
                let image = Image { data, mime_type };
                if !IMAGE_TYPES.contains(&mime_type.as_str()) {
                    content.push(text_block(&image.omitted()));
                } else if reply.message.is_error {
                    beside.push(image_block(image));
                } else {
                    content.push(image_block(image));
                }
            }
        }
    }
    if !beside.is_empty() {
        let of = format!(
            "Image of the failed tool call {}:",
            reply.message.tool_call_id
        );
        beside.insert(0, text_block(&of));
    }
    (content, beside)
}

fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn image_block(image: Image<'_>) -> Value {
    json!({
        "type": "image",
        "source": {"type": "base64", "media_type": image.mime_type, "data": image.data},
    })
}
