//! The lines of a journal, all of version 1. What that version wrote stays readable.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json;
use crate::message::{NestedCalls, ToolCall, ToolResult};
use crate::tool::Replay;

use super::IdOrigin;

/// The first line of every journal.
pub(super) const HEADER: &str = "{\"journal\":\"pitool\",\"version\":1}\n";
const VERSION: u64 = 1;

/// What a first line says about its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Header {
    Readable,
    Newer,
    Foreign,
}

impl Header {
    pub(super) fn read(line: &[u8]) -> Self {
        if !line.ends_with(b"\n") {
            return Self::Foreign;
        }
        let header = json::parse(line).unwrap_or_default();
        match (header["journal"].as_str(), header["version"].as_u64()) {
            (Some("pitool"), Some(VERSION)) => Self::Readable,
            (Some("pitool"), Some(_)) => Self::Newer,
            _ => Self::Foreign,
        }
    }
}

/// One line after the header. `batch` is the number of a [`Record::Batch`], `call` a position in it.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub(super) enum Record<'a> {
    /// A batch of which a call is about to execute.
    Batch {
        batch: u64,
        /// How often the same batch came before in its input; absent: never to be recognised.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        occurrence: Option<u64>,
        calls: Cow<'a, [BatchCall]>,
    },
    /// A call is about to execute.
    Intent {
        batch: u64,
        call: usize,
        tool_call_id: Cow<'a, str>,
        tool_name: Cow<'a, str>,
        timestamp: u64,
    },
    /// A call is answered.
    Outcome {
        batch: u64,
        call: usize,
        tool_call_id: Cow<'a, str>,
        tool_name: Cow<'a, str>,
        outcome: Cow<'a, RecordedOutcome>,
    },
    /// The call at `call` makes a call itself.
    NestedIntent {
        batch: u64,
        call: usize,
        tool_call_id: Cow<'a, str>,
        tool_name: Cow<'a, str>,
        arguments: Cow<'a, Value>,
        replay: Replay,
        timestamp: u64,
    },
    /// A call that the call at `call` made is answered.
    NestedOutcome {
        batch: u64,
        call: usize,
        tool_call_id: Cow<'a, str>,
        tool_name: Cow<'a, str>,
        outcome: Cow<'a, RecordedOutcome>,
    },
}

impl Record<'_> {
    /// The line, with its line break.
    pub(super) fn to_line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).expect("a record has only string keys");
        line.push(b'\n');
        line
    }

    /// `None` for a line that is no record.
    pub(super) fn read(line: &[u8]) -> Option<Record<'static>> {
        serde_json::from_value(json::parse(line).ok()?).ok()
    }
}

/// A call as its batch lists it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BatchCall {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) arguments_error: Option<String>,
    /// The id was made up here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) made_up: bool,
}

impl BatchCall {
    pub(super) fn all(calls: &[ToolCall], origins: &[IdOrigin]) -> Vec<Self> {
        calls
            .iter()
            .enumerate()
            .map(|(position, call)| Self {
                id: call.id.clone(),
                name: call.name.clone(),
                arguments: call.arguments.clone(),
                arguments_error: call.arguments_error.clone(),
                made_up: origins.get(position) == Some(&IdOrigin::MadeUp),
            })
            .collect()
    }

    pub(super) fn has_arguments_of(&self, other: &Self) -> bool {
        self.arguments == other.arguments && self.arguments_error == other.arguments_error
    }
}

/// What a batch is recognised by, as text.
pub(super) fn identity(calls: &[BatchCall]) -> String {
    let parts: Vec<(&str, &str, Option<&Value>)> = calls
        .iter()
        .map(|call| {
            let arguments = call.made_up.then_some(&call.arguments);
            (call.id.as_str(), call.name.as_str(), arguments)
        })
        .collect();
    serde_json::to_string(&parts).expect("values have only string keys")
}

/// What a call came to: all that is needed to print its message, its events and its outcome once more.
///
/// Shape: `{"result":{…},"isError":false,"durationMs":5,"nestedCalls":…,"timestamp":1760000000000}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedOutcome {
    /// The final result.
    pub result: ToolResult,
    /// Whether the call failed.
    pub is_error: bool,
    /// Milliseconds of `execute`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The calls that it made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nested_calls: Option<NestedCalls>,
    /// The message's Unix milliseconds.
    pub timestamp: u64,
}
