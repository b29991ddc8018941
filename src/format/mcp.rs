//! MCP's `tools/call` requests as JSON-RPC, single or as a batch, answered by JSON-RPC responses.
//!
//! Source: MCP 2025-06-18, server/tools; batches as in 2025-03-26. Serving a client is the business of `pitool serve`;
//! this is for recorded requests.

use serde_json::{Map, Value, json};

use crate::message::ToolCall;

use super::Format;
use super::answer::Reply;
use super::arguments::RawArguments;
use super::pi;
use super::turn::Turn;
use super::wire::{Answer, Author, Entry, Fit, RawCall, RawResult, Wire, WireId, text_at};

/// MCP's `tools/call`.
pub(super) struct Mcp;

impl Wire for Mcp {
    fn fit(&self, value: &Value) -> Fit {
        if text_at(value, "jsonrpc").is_none() {
            return Fit::No;
        }
        Fit::with_calls(is_call(value) || is_response(value))
    }

    fn read<'v>(&self, element: &'v Value) -> Entry<'v> {
        if is_response(element) {
            return Entry {
                results: vec![read_response(element)],
                ..Entry::default()
            };
        }
        Entry {
            author: Author::Model,
            calls: read_call(element).into_iter().collect(),
            warnings: other_request(element).into_iter().collect(),
            ..Entry::default()
        }
    }

    fn slots<'v>(&self, element: &'v mut Value) -> Vec<&'v mut Map<String, Value>> {
        if is_call(element) {
            element.as_object_mut().into_iter().collect()
        } else {
            Vec::new()
        }
    }

    fn id_key(&self) -> &'static str {
        "id"
    }

    fn set_arguments(&self, slot: &mut Map<String, Value>, arguments: Value) {
        if let Some(Value::Object(params)) = slot.get_mut("params") {
            params.insert("arguments".to_owned(), arguments);
        }
    }

    fn take_arguments(&self, slot: &mut Map<String, Value>) -> Value {
        let arguments = slot
            .get_mut("params")
            .and_then(|params| params.get_mut("arguments"));
        arguments.map_or(Value::Null, Value::take)
    }

    fn result_slots<'v>(&self, element: &'v mut Value) -> Vec<&'v mut Map<String, Value>> {
        if is_response(element) {
            element.as_object_mut().into_iter().collect()
        } else {
            Vec::new()
        }
    }

    fn result_id_key(&self) -> &'static str {
        "id"
    }

    fn to_pi(&self, elements: &[&Value], calls: Vec<ToolCall>) -> Map<String, Value> {
        let requests = elements.iter().copied().filter(|element| is_call(element));
        let blocks = requests.map(std::borrow::Cow::Borrowed);
        pi::message(blocks, is_call, calls, Value::clone)
    }

    fn answer(&self, turn: &Turn, replies: &[Reply<'_>]) -> Answer {
        let units = replies
            .iter()
            .zip(turn.origins_in(Format::Mcp))
            .map(|(reply, origin)| {
                let id = origin.and_then(|origin| origin.id.clone());
                let id = id.unwrap_or_else(|| reply.message.tool_call_id.as_str().into());
                json!({"jsonrpc": "2.0", "id": id, "result": result(reply)})
            });
        Answer {
            units: units.collect(),
            extras: Vec::new(),
        }
    }

    fn groups(&self) -> bool {
        true
    }

    fn answers_in_array(&self) -> bool {
        true
    }
}

fn is_call(request: &Value) -> bool {
    text_at(request, "method") == Some("tools/call")
}

fn is_response(value: &Value) -> bool {
    value.get("method").is_none() && value.get("id").is_some()
}

fn read_call(request: &Value) -> Option<RawCall<'_>> {
    if !is_call(request) {
        return None;
    }
    let params = request.get("params");
    let field = |key| params.and_then(|params| params.get(key));
    Some(RawCall::new(
        WireId::required(request.get("id")),
        field("name"),
        RawArguments::of(field("arguments")),
    ))
}

fn read_response(response: &Value) -> RawResult<'_> {
    let is_error = response.get("error").is_some()
        || response
            .get("result")
            .is_some_and(|result| result.get("isError") == Some(&Value::Bool(true)));
    RawResult {
        id: WireId::required(response.get("id")),
        name: None,
        is_error: Some(is_error),
    }
}

fn other_request(request: &Value) -> Option<String> {
    let method = text_at(request, "method")?;
    let wants_answer = !is_call(request) && request.get("id").is_some();
    wants_answer.then(|| format!("{method} is not answered: only tools/call is"))
}

/// A `CallToolResult`.
fn result(reply: &Reply<'_>) -> Map<String, Value> {
    let mut result = Map::new();
    result.insert("content".to_owned(), pi::to_value(&reply.message.content));
    if let Some(structured) = reply.structured_content {
        result.insert("structuredContent".to_owned(), structured.clone());
    }
    result.insert("isError".to_owned(), reply.message.is_error.into());
    result
}
