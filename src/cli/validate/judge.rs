//! One input judged: a value, or a call with its own tool. Nothing is printed here.

use std::borrow::Cow;
use std::sync::Arc;

use pitool::call::{self, CallError};
use pitool::message::ToolCall;
use pitool::registry::Registry;
use pitool::schema::{AcceptOptions, Accepted, Coercion, Lossy, Rejected, Schema, Step, Violation};
use pitool::tool::Tool;
use serde_json::Value;

use super::prepare;

/// What inputs are, and what they are judged by.
pub(super) enum Subject {
    /// Values, by a schema of their own.
    Schema(Box<Schema>),
    /// Arguments of one tool.
    Tool(Arc<Tool>),
    /// Messages, each call by its own tool.
    Messages(Arc<Registry>),
}

/// How strictly inputs are judged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// Overrides what the manifests say.
    pub(super) coerce: Option<Coercion>,
    pub(super) lossy: Lossy,
}

impl Rules {
    fn for_tool(self, tool: &Tool) -> AcceptOptions {
        AcceptOptions {
            coercion: self.coerce.unwrap_or(tool.coerce),
            unknown_arguments: tool.unknown_arguments,
            lossy: self.lossy,
        }
    }

    fn for_schema(self) -> AcceptOptions {
        AcceptOptions {
            coercion: self.coerce.unwrap_or_default(),
            lossy: self.lossy,
            ..AcceptOptions::default()
        }
    }
}

/// Where an input stands and what it calls.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin<'a> {
    /// The line where its value or message begins, from 1.
    pub(super) line: usize,
    /// Which of the calls, or of the values, that begin on this line, from 1.
    pub(super) call: usize,
    /// The id of the call; a value has none.
    pub(super) tool_call_id: Option<&'a str>,
    /// The tool; none where a schema judges.
    pub(super) tool: Option<&'a str>,
}

/// What the judgement came to.
pub(super) type Judged<'v> = Result<Accepted<'v>, Refusal>;

/// Why an input is not valid.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Refusal {
    /// In the words that the model would read.
    pub(super) text: String,
    /// Violations of the schema; empty where the input did not come to it.
    pub(super) violations: Vec<Violation>,
    /// What coercion did before.
    pub(super) steps: Vec<Step>,
}

impl Refusal {
    fn of_call(error: CallError, tool_name: &str) -> Self {
        let text = error.text(tool_name).into_owned();
        let (violations, steps) = match error {
            CallError::Rejected {
                violations, steps, ..
            } => (violations, steps),
            _ => (Vec::new(), Vec::new()),
        };
        Self {
            text,
            violations,
            steps,
        }
    }

    fn of_value(rejected: Rejected) -> Self {
        let words = |violation: &Violation| {
            let path = crate::report::steps::path(&violation.path);
            format!("\n  - {path}: {}", violation.message)
        };
        let words: String = rejected.violations.iter().map(words).collect();
        Self {
            text: format!("Validation failed:{words}"),
            violations: rejected.violations,
            steps: rejected.steps,
        }
    }
}

/// Judges any value by a schema.
pub(super) fn value<'v>(schema: &Schema, value: &'v Value, rules: Rules) -> Judged<'v> {
    schema
        .accept(value, &rules.for_schema())
        .map_err(Refusal::of_value)
}

/// Judges a call by its tool, after `prepareArguments`.
pub(super) fn call<'c>(tool: &Tool, call: &'c ToolCall, rules: Rules) -> Judged<'c> {
    let judged = match prepare::arguments(tool, call) {
        Err(error) => Err(error),
        Ok(Cow::Borrowed(arguments)) => accept(tool, call, arguments, rules),
        Ok(Cow::Owned(arguments)) => accept(tool, call, &arguments, rules).map(into_owned),
    };
    judged.map_err(|error| Refusal::of_call(error, &call.name))
}

/// A call to a tool that nobody has.
pub(super) fn unknown(call: &ToolCall) -> Refusal {
    Refusal::of_call(CallError::NotFound, &call.name)
}

fn accept<'v>(
    tool: &Tool,
    call: &ToolCall,
    arguments: &'v Value,
    rules: Rules,
) -> Result<Accepted<'v>, CallError> {
    call::accept(
        tool,
        call.arguments_error.as_deref(),
        arguments,
        &rules.for_tool(tool),
    )
}

fn into_owned(accepted: Accepted<'_>) -> Accepted<'static> {
    Accepted {
        value: Cow::Owned(accepted.value.into_owned()),
        steps: accepted.steps,
    }
}
