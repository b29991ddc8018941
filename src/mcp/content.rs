//! The result of a `tools/call` as a tool result, and back.
//!
//! A tool result knows text and images; MCP also knows audio, links and embedded resources. What has no place of its
//! own becomes text for the model, and the blocks as they came stay in `details.mcp.content`.

use serde_json::{Map, Value, json};

use crate::json;
use crate::message::{Content, ToolResult};

/// Reads a `CallToolResult` (MCP 2025-11-25, server/tools), as leniently as no text gets lost.
pub(crate) fn tool_result(result: Value) -> ToolResult {
    let Value::Object(mut fields) = result else {
        return ToolResult::text(json::compact(&result));
    };
    let blocks = blocks(fields.remove("content"));
    let structured_content = fields
        .remove("structuredContent")
        .filter(|value| !value.is_null());
    let is_error = fields.remove("isError") == Some(Value::Bool(true));
    let meta = fields.remove("_meta");
    let mut content: Vec<Content> = blocks.iter().map(content).collect();
    if content.is_empty() {
        content.extend(
            structured_content
                .as_ref()
                .map(|value| Content::text(json::compact(value))),
        );
    }
    if content.is_empty() && !is_error && has_other_fields(&fields) {
        // A shape that is no tool result (such as that of the protocol's first version): shown as it is.
        content.push(Content::text(json::compact(&Value::Object(fields))));
    }
    ToolResult {
        content,
        details: details(blocks, meta),
        structured_content,
        is_error: is_error.then_some(true),
        ..ToolResult::default()
    }
}

fn blocks(content: Option<Value>) -> Vec<Value> {
    match content {
        Some(Value::Array(blocks)) => blocks,
        None | Some(Value::Null) => Vec::new(),
        Some(other) => vec![other],
    }
}

fn has_other_fields(fields: &Map<String, Value>) -> bool {
    fields.keys().any(|key| key != "resultType")
}

/// What of a result has no other place.
fn details(blocks: Vec<Value>, meta: Option<Value>) -> Option<Value> {
    let mut kept = Map::new();
    if !blocks.iter().all(is_whole) {
        kept.insert("content".into(), Value::Array(blocks));
    }
    if let Some(meta) = meta {
        kept.insert("_meta".into(), meta);
    }
    (!kept.is_empty()).then(|| json!({ "mcp": kept }))
}

/// Whether a content block says all that the MCP block does.
fn is_whole(block: &Value) -> bool {
    let has_only = |names: &[&str]| {
        let fields = block.as_object();
        fields.is_some_and(|fields| fields.keys().all(|key| names.contains(&key.as_str())))
    };
    match text_of(block, "type") {
        Some("text") => has_only(&["type", "text"]),
        Some("image") => has_only(&["type", "data", "mimeType"]),
        _ => false,
    }
}

fn text_of<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key).and_then(Value::as_str)
}

/// One block in the words that a model understands.
fn content(block: &Value) -> Content {
    let text = |key| text_of(block, key);
    match (text("type"), block.get("resource")) {
        (Some("text"), _) => match text("text") {
            Some(text) => Content::text(text),
            None => Content::text(json::compact(block)),
        },
        (Some("image"), _) => match (text("data"), text("mimeType")) {
            (Some(data), Some(mime_type)) => image(data, mime_type),
            _ => Content::text(json::compact(block)),
        },
        (Some("audio"), _) => Content::text(format!(
            "[Audio {}, {}]",
            text("mimeType").unwrap_or("of an unknown kind"),
            size(text("data").unwrap_or_default())
        )),
        (Some("resource_link"), _) => Content::text(resource_link(block)),
        (Some("resource"), Some(resource)) => embedded(resource),
        _ => match block {
            Value::String(text) => Content::text(text),
            other => Content::text(json::compact(other)),
        },
    }
}

fn image(data: &str, mime_type: &str) -> Content {
    Content::Image {
        data: data.to_owned(),
        mime_type: mime_type.to_owned(),
    }
}

fn resource_link(link: &Value) -> String {
    let mut line = format!("[Resource {}", text_of(link, "uri").unwrap_or_default());
    if let Some(mime_type) = text_of(link, "mimeType") {
        line.push_str(&format!(" ({mime_type})"));
    }
    if let Some(name) = text_of(link, "title").or_else(|| text_of(link, "name")) {
        line.push_str(&format!(": {name}"));
    }
    line.push(']');
    match text_of(link, "description") {
        Some(description) => format!("{line}\n{description}"),
        None => line,
    }
}

fn embedded(resource: &Value) -> Content {
    let mime_type = text_of(resource, "mimeType");
    let kind = mime_type
        .map(|kind| format!(" ({kind})"))
        .unwrap_or_default();
    let uri = text_of(resource, "uri").unwrap_or_default();
    if let Some(text) = text_of(resource, "text") {
        return Content::text(format!("[Resource {uri}{kind}]\n{text}"));
    }
    match (text_of(resource, "blob"), mime_type) {
        (Some(data), Some(mime_type)) if mime_type.starts_with("image/") => image(data, mime_type),
        (data, _) => {
            let size = size(data.unwrap_or_default());
            Content::text(format!("[Resource {uri}{kind}, {size}]"))
        }
    }
}

/// How much base64 text stands for.
fn size(base64: &str) -> String {
    let padding = base64
        .bytes()
        .rev()
        .take_while(|byte| *byte == b'=')
        .count();
    let bytes = (base64.len() * 3 / 4).saturating_sub(padding);
    match bytes {
        1 => "1 byte".to_owned(),
        bytes => format!("{bytes} bytes"),
    }
}

/// A result's content as MCP blocks: those that came from a server as they came, unless a hook changed them since.
pub(crate) fn mcp_blocks(result: &ToolResult) -> Vec<Value> {
    let details = result.details.as_ref();
    let kept = details
        .and_then(|details| details.pointer("/mcp/content"))
        .and_then(Value::as_array);
    if let Some(kept) = kept
        && kept.iter().map(content).eq(result.content.iter().cloned())
    {
        return kept.clone();
    }
    let blocks = result.content.iter().map(serde_json::to_value);
    blocks
        .map(|block| block.expect("content has only string keys"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn texts(result: Value, expected: &[&str]) {
        let content: Vec<Content> = expected.iter().map(|text| Content::text(*text)).collect();
        assert_eq!(tool_result(result).content, content);
    }

    #[test]
    fn structured_content_without_content_is_its_text() {
        texts(
            json!({"content": [], "structuredContent": {"answer": 42}}),
            &[r#"{"answer":42}"#],
        );
        texts(json!({"structuredContent": []}), &["[]"]);
        texts(json!({"structuredContent": {}}), &["{}"]);
        texts(json!({"structuredContent": null}), &[]);
        let both =
            json!({"content": [{"type": "text", "text": "a"}], "structuredContent": {"b": 1}});
        let result = tool_result(both);
        assert_eq!(
            result,
            ToolResult {
                structured_content: Some(json!({"b": 1})),
                ..ToolResult::text("a")
            }
        );
    }

    #[test]
    fn errors_and_images_are_kept() {
        let result = tool_result(json!({
            "content": [{"type": "image", "data": "aGk=", "mimeType": "image/png"}], "isError": true, "_meta": {"k": 1}
        }));
        assert_eq!(result.is_error, Some(true));
        assert_eq!(result.content, [image("aGk=", "image/png")]);
        assert_eq!(result.details, Some(json!({"mcp": {"_meta": {"k": 1}}})));
    }

    #[test]
    fn what_is_neither_text_nor_image_becomes_text() {
        texts(
            json!({"content": [
                {"type": "audio", "data": "aGVsbG8=", "mimeType": "audio/wav"},
                {"type": "resource_link", "uri": "file:///a", "name": "a", "mimeType": "text/x", "description": "An a"},
                {"type": "resource", "resource": {"uri": "file:///b", "text": "inside"}},
                {"type": "resource", "resource": {"uri": "file:///c", "blob": "aA==", "mimeType": "x/y"}},
                {"type": "hologram", "beam": 1},
                "loose"
            ]}),
            &[
                "[Audio audio/wav, 5 bytes]",
                "[Resource file:///a (text/x): a]\nAn a",
                "[Resource file:///b]\ninside",
                "[Resource file:///c (x/y), 1 byte]",
                r#"{"type":"hologram","beam":1}"#,
                "loose",
            ],
        );
    }

    #[test]
    fn a_shape_that_is_no_result_is_shown() {
        texts(
            json!({"toolResult": 9_007_199_254_740_993_u64}),
            &[r#"{"toolResult":9007199254740993}"#],
        );
        texts(json!("plain"), &["\"plain\""]);
        texts(json!({}), &[]);
    }

    #[test]
    fn blocks_come_back_as_they_came() {
        let blocks = json!([
            {"type": "text", "text": "a", "annotations": {"audience": ["user"]}},
            {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}
        ]);
        let mut result = tool_result(json!({"content": blocks.clone()}));
        assert_eq!(Value::Array(mcp_blocks(&result)), blocks);
        result.content[0] = Content::text("redacted");
        assert_eq!(
            Value::Array(mcp_blocks(&result)),
            json!([{"type": "text", "text": "redacted"}, {"type": "text", "text": "[Audio audio/wav, 2 bytes]"}])
        );
    }
}
