//! Why a call ended before `execute`, in the words that the model reads.

use std::borrow::Cow;

use serde_json::Value;

use crate::message::ToolResult;
use crate::schema::{self, Step, Violation};

/// Why a call ended before `execute`, in the words that the model reads.
#[derive(Debug, Clone, PartialEq)]
pub enum CallError {
    /// No such tool; never a guess.
    NotFound,
    /// The MCP server that may have the tool could not be asked, for this reason.
    ServerFailed(String),
    /// `prepareArguments` threw this.
    PrepareThrew(String),
    /// The arguments text was no JSON object, for this reason.
    ArgumentsText(String),
    /// The tool's own `parameters` do not compile.
    SchemaBroken(String),
    /// The arguments do not fit.
    Rejected {
        /// What does not fit, in order.
        violations: Vec<Violation>,
        /// The arguments that were judged, before coercion.
        received: Value,
        /// What coercion did before.
        steps: Vec<Step>,
    },
    /// A hook, or the person in front of the terminal, said no.
    Blocked {
        /// Why; empty counts as not given.
        reason: Option<String>,
        /// The hook's wish to end the run.
        terminate: bool,
    },
    /// A before hook itself failed, which blocks the call.
    HookFailed(String),
    /// The program could not even be started, for this reason.
    CannotStart(String),
    /// The batch was stopped before the call started.
    Aborted,
    /// No tool may run, for this reason: what could not be loaded may have been a guard.
    NotLoaded(String),
    /// The call was not to run, for this reason.
    NotExecuted(String),
    /// A wait for this file could never end.
    Deadlock(String),
    /// This tool, which made the call, may not call the one that it names.
    MayNotCall(String),
    /// So many calls stand above this one already.
    TooDeep(usize),
    /// An earlier run started the call, and what came of it is unknown.
    OutcomeUnknown,
    /// The recording that is replayed has no such call.
    NotRecorded,
}

impl CallError {
    /// The sentence for the model (those of pi's agent loop where it has them).
    pub fn text(&self, tool_name: &str) -> Cow<'_, str> {
        match self {
            Self::NotFound => format!("Tool {tool_name} not found").into(),
            Self::PrepareThrew(message)
            | Self::SchemaBroken(message)
            | Self::HookFailed(message)
            | Self::ServerFailed(message)
            | Self::CannotStart(message) => message.into(),
            Self::ArgumentsText(reason) => {
                format!("Invalid arguments for tool \"{tool_name}\": {reason}").into()
            }
            Self::Rejected {
                violations,
                received,
                ..
            } => schema::error_text(tool_name, violations, received).into(),
            Self::Blocked {
                reason: Some(reason),
                ..
            } if !reason.is_empty() => reason.into(),
            Self::Blocked { .. } => "Tool execution was blocked".into(),
            Self::Aborted => "Operation aborted".into(),
            Self::NotLoaded(reason) => {
                format!("Tool \"{tool_name}\" was not executed: {reason}").into()
            }
            Self::NotExecuted(reason) => {
                format!("Tool call \"{tool_name}\" was not executed: {reason}").into()
            }
            Self::Deadlock(file) => {
                format!("Tool \"{tool_name}\" was not run: waiting for {file} would deadlock")
                    .into()
            }
            Self::MayNotCall(caller) => {
                format!("Tool \"{caller}\" may not call tool \"{tool_name}\"").into()
            }
            Self::TooDeep(depth) => format!(
                "Tool \"{tool_name}\" was not run: tools call each other more than {depth} deep"
            )
            .into(),
            Self::OutcomeUnknown => format!(
                "Tool \"{tool_name}\" was started before an interruption and its outcome is unknown; \
                 it was not run again."
            )
            .into(),
            Self::NotRecorded => format!("No recorded outcome for tool \"{tool_name}\"").into(),
        }
    }

    /// The result that says so; `message` is its text.
    pub(super) fn into_result(self, mut result: ToolResult) -> ToolResult {
        if let Self::Blocked {
            terminate: true, ..
        } = self
        {
            result.terminate = Some(true);
        }
        result
    }
}
