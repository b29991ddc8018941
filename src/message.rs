//! What a model says and hears: tool calls, content, results and the message that pairs them.
//!
//! Pure data, no I/O. How a provider writes these is the business of [`crate::format`];
//! what happens between a call and its result is that of [`crate::call`].

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// One `toolCall` block of an assistant message.
///
/// Wire shape: `{"type":"toolCall","id":"call-1","name":"echo","arguments":{"value":"Pi"}}`.
/// Ids may repeat inside one message, so nothing may be keyed by them: a call is its position.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename = "toolCall", rename_all = "camelCase")]
pub struct ToolCall {
    /// What the result is paired with; never empty once decoded.
    pub id: String,
    /// The tool that the model asked for, whether it exists or not; may be empty.
    pub name: String,
    /// The arguments as the model sent them (arguments text is parsed already); any JSON value.
    pub arguments: Value,
    /// Why the arguments text was no JSON object; `arguments` is then `{}`. Never empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments_error: Option<String>,
}

impl ToolCall {
    /// A call whose arguments could be read.
    pub fn new(id: impl Into<String>, name: impl Into<String>, arguments: Value) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            arguments,
            arguments_error: None,
        }
    }
}

/// One block of a result's content.
///
/// Wire shapes: `{"type":"text","text":"…"}` and
/// `{"type":"image","data":"<base64>","mimeType":"image/png"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum Content {
    /// Text for the model.
    Text {
        /// The text.
        text: String,
    },
    /// An image for the model.
    #[serde(rename_all = "camelCase")]
    Image {
        /// The bytes, base64.
        data: String,
        /// The media type, such as `image/png`.
        mime_type: String,
    },
}

impl Content {
    /// Makes a text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

/// What a tool came to, as its program says it and as `afterToolCall` may rewrite it.
///
/// Wire shape: `{"content":[…],"details":…,"structuredContent":…,"usage":…,"isError":true,"terminate":true}`,
/// absent fields absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// What the model reads.
    #[serde(default)]
    pub content: Vec<Content>,
    /// For programs and people, not for the model; any JSON value, `null` too.
    #[serde(
        default,
        deserialize_with = "given",
        skip_serializing_if = "Option::is_none"
    )]
    pub details: Option<Value>,
    /// The result as data, checked against the tool's `outputSchema`; any JSON value, `null` too.
    #[serde(
        default,
        deserialize_with = "given",
        skip_serializing_if = "Option::is_none"
    )]
    pub structured_content: Option<Value>,
    /// What the tool itself spent, as the tool says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Value>,
    /// The tool's own word that it failed; content and details are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// The tool's wish to end the agent's run after this batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminate: Option<bool>,
}

/// A field that is given as `null` is given.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl ToolResult {
    /// A result of one text block and nothing else.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![Content::text(text)],
            ..Self::default()
        }
    }

    /// What a throw becomes: the message as text, `details` `{}`, everything else lost
    /// (as pi's `createErrorToolResult`).
    pub fn thrown(message: impl Into<String>) -> Self {
        Self {
            details: Some(Value::Object(serde_json::Map::new())),
            ..Self::text(message)
        }
    }

    /// All text blocks, joined by line breaks.
    pub fn joined_text(&self) -> String {
        joined_text(&self.content)
    }
}

/// All text blocks of some content, joined by line breaks.
pub(crate) fn joined_text(content: &[Content]) -> String {
    let texts: Vec<&str> = content
        .iter()
        .filter_map(|block| match block {
            Content::Text { text } => Some(text.as_str()),
            Content::Image { .. } => None,
        })
        .collect();
    texts.join("\n")
}

/// One call that a running tool made, as the parent's message lists it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NestedCall {
    /// `PARENT/1`, `PARENT/2`, … in the order of their starts.
    pub id: String,
    /// The tool that was asked for.
    pub name: String,
    /// The arguments as they were sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// How it ended.
    pub status: NestedStatus,
    /// Milliseconds of `execute` alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The error's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// How a nested call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NestedStatus {
    /// With a result.
    Ok,
    /// With an error.
    Error,
    /// Not before its parent did.
    Unfinished,
}

/// The calls that a tool made while it ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NestedCalls {
    /// In the order of their starts.
    pub calls: Vec<NestedCall>,
    /// Whether all of them had ended when the parent did.
    pub complete: bool,
}

/// The message that answers one call.
///
/// Wire shape: `{"role":"toolResult","toolCallId":"call-1","toolName":"echo","content":[…],"details":…,
/// "isError":false,"durationMs":0,"timestamp":1760000000000}`; absent fields are absent, never `null`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "role", rename = "toolResult", rename_all = "camelCase")]
pub struct ToolResultMessage {
    /// The id of the call that is answered.
    pub tool_call_id: String,
    /// The name that the model asked for.
    pub tool_name: String,
    /// What the model reads.
    pub content: Vec<Content>,
    /// For programs and people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// What the tool spent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Value>,
    /// Calls that the tool made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nested_calls: Option<NestedCalls>,
    /// Whether the call failed, in whatever way.
    pub is_error: bool,
    /// Monotonic milliseconds of `execute` alone; absent when it did not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Unix milliseconds.
    pub timestamp: u64,
}

/// Milliseconds since the Unix epoch, now.
pub fn unix_millis() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| {
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn absent_fields_are_absent_on_the_wire() {
        assert_eq!(
            serde_json::to_value(ToolResult::thrown("no")).unwrap(),
            json!({"content": [{"type": "text", "text": "no"}], "details": {}})
        );
    }

    #[test]
    fn tool_call_is_written_as_a_pi_block() {
        let call = ToolCall {
            id: "call-1".into(),
            name: "echo".into(),
            arguments: json!({"value": 1}),
            arguments_error: None,
        };
        assert_eq!(
            serde_json::to_string(&call).unwrap(),
            r#"{"type":"toolCall","id":"call-1","name":"echo","arguments":{"value":1}}"#
        );
    }
}
