//! Everything observable about a batch, in the reference's names, and who listens.
//!
//! An [`Event`] is what happened; how it is shown (a line of JSON, a progress row) is the listener's business.
//! A [`Notice`] is a sentence for people that belongs to no result.

use std::time::Instant;

use serde::Serialize;
use serde_json::Value;

use crate::message::{ToolCall, ToolResult, ToolResultMessage};

/// One event of a batch, borrowed from the batch for the time of the call to the listener.
///
/// Wire shapes are those of pi's `AgentEvent`, for example
/// `{"type":"tool_execution_start","toolCallId":"call-1","toolName":"echo","args":{…}}`.
/// `args` are always what the model sent, never what coercion made of it.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// A call begins: before lookup, validation and hooks.
    Start {
        /// The call as the model sent it.
        call: &'a ToolCall,
        /// Answered from a journal.
        replayed: bool,
    },
    /// A running tool reports a partial result. Always before its `End`.
    Update {
        /// The call as the model sent it.
        call: &'a ToolCall,
        /// What the tool reported, as it reported it.
        partial_result: &'a Value,
    },
    /// A call is finalized: after `afterToolCall`.
    End {
        /// The call as the model sent it.
        call: &'a ToolCall,
        /// The final result, with `structuredContent` and `terminate`.
        result: &'a ToolResult,
        /// Whether the call failed.
        is_error: bool,
        /// Milliseconds of `execute`; absent when it did not run.
        duration_ms: Option<u64>,
        /// Answered from a journal.
        replayed: bool,
    },
    /// A result message begins (always followed by its end).
    MessageStart {
        /// The message.
        message: &'a ToolResultMessage,
    },
    /// A result message is complete.
    MessageEnd {
        /// The message.
        message: &'a ToolResultMessage,
    },
    /// The batch is answered.
    TurnEnd {
        /// The assistant message, in pi form.
        message: &'a Value,
        /// One per call, in source order.
        tool_results: &'a [ToolResultMessage],
        /// Whether every outcome of the batch asked to terminate.
        terminate: bool,
    },
}

/// The wire form of an [`Event`]; `at_ms` is the caller's clock.
#[derive(Serialize)]
#[serde(tag = "type")]
enum Line<'a> {
    #[serde(rename = "tool_execution_start", rename_all = "camelCase")]
    Start {
        tool_call_id: &'a str,
        tool_name: &'a str,
        args: &'a Value,
        #[serde(skip_serializing_if = "is_false")]
        replayed: bool,
        at_ms: u64,
    },
    #[serde(rename = "tool_execution_update", rename_all = "camelCase")]
    Update {
        tool_call_id: &'a str,
        tool_name: &'a str,
        args: &'a Value,
        partial_result: &'a Value,
        at_ms: u64,
    },
    #[serde(rename = "tool_execution_end", rename_all = "camelCase")]
    End {
        tool_call_id: &'a str,
        tool_name: &'a str,
        result: &'a ToolResult,
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
        #[serde(skip_serializing_if = "is_false")]
        replayed: bool,
        at_ms: u64,
    },
    #[serde(rename = "message_start", rename_all = "camelCase")]
    MessageStart {
        message: &'a ToolResultMessage,
        at_ms: u64,
    },
    #[serde(rename = "message_end", rename_all = "camelCase")]
    MessageEnd {
        message: &'a ToolResultMessage,
        at_ms: u64,
    },
    #[serde(rename = "turn_end", rename_all = "camelCase")]
    TurnEnd {
        message: &'a Value,
        tool_results: &'a [ToolResultMessage],
        terminate: bool,
        at_ms: u64,
    },
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde asks for"
)]
fn is_false(value: &bool) -> bool {
    !value
}

impl<'a> Event<'a> {
    fn line(self, at_ms: u64) -> Line<'a> {
        match self {
            Self::Start { call, replayed } => Line::Start {
                tool_call_id: &call.id,
                tool_name: &call.name,
                args: &call.arguments,
                replayed,
                at_ms,
            },
            Self::Update {
                call,
                partial_result,
            } => Line::Update {
                tool_call_id: &call.id,
                tool_name: &call.name,
                args: &call.arguments,
                partial_result,
                at_ms,
            },
            Self::End {
                call,
                result,
                is_error,
                duration_ms,
                replayed,
            } => Line::End {
                tool_call_id: &call.id,
                tool_name: &call.name,
                result,
                is_error,
                duration_ms,
                replayed,
                at_ms,
            },
            Self::MessageStart { message } => Line::MessageStart { message, at_ms },
            Self::MessageEnd { message } => Line::MessageEnd { message, at_ms },
            Self::TurnEnd {
                message,
                tool_results,
                terminate,
            } => Line::TurnEnd {
                message,
                tool_results,
                terminate,
                at_ms,
            },
        }
    }

    /// The event as one JSON object with `atMs`: monotonic milliseconds since `start`.
    /// No line break; never fails.
    pub fn to_json(self, start: Instant) -> String {
        let at_ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
        serde_json::to_string(&self.line(at_ms)).expect("an event has only string keys")
    }
}

/// Something a person should know that is in no result: lines of a tool's stderr or of a server, a warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// Lines of a tool's stderr, as many as came at once, without the last line break; they may hold control characters.
    ToolStderr {
        /// The tool's name.
        tool_name: String,
        /// The call's id.
        tool_call_id: String,
        /// The lines.
        lines: String,
    },
    /// One line that an MCP server printed beside the protocol; may hold control characters.
    ServerLine {
        /// The server's name.
        server: String,
        /// The line, without its line break.
        line: String,
    },
    /// A sentence without a period: lowercase, what and where.
    Warning(String),
}

/// Who hears of a batch. Called on the task that runs it, in order; a slow listener slows the batch.
pub trait Listener: Send + Sync {
    /// Something happened.
    fn event(&self, event: Event<'_>);

    /// Something a person should know.
    fn notice(&self, notice: Notice) {
        let _ = notice;
    }
}

/// A listener that hears nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Listener for Silent {
    fn event(&self, _event: Event<'_>) {}
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn end_without_execute_has_no_duration() {
        let call = ToolCall {
            id: "c".into(),
            name: "t".into(),
            arguments: json!({}),
            arguments_error: None,
        };
        let event = Event::End {
            call: &call,
            result: &ToolResult::text("x"),
            is_error: true,
            duration_ms: None,
            replayed: false,
        };
        let mut line: Value = serde_json::from_str(&event.to_json(Instant::now())).unwrap();
        assert!(
            line.as_object_mut()
                .unwrap()
                .remove("atMs")
                .unwrap()
                .is_u64()
        );
        assert_eq!(
            line,
            json!({"type": "tool_execution_end", "toolCallId": "c", "toolName": "t",
                   "result": {"content": [{"type": "text", "text": "x"}]}, "isError": true})
        );
    }
}
