//! Whether a result keeps what its tool's `outputSchema` promises.

use serde_json::Value;

use super::{OutputCheck, Scope, thrown};
use crate::event::Notice;
use crate::message::{ToolCall, ToolResult};
use crate::schema::{self, Violation};
use crate::tool::Tool;

/// Checks `structuredContent` of a successful result against `outputSchema`.
pub(super) fn check(
    scope: Scope<'_>,
    call: &ToolCall,
    tool: &Tool,
    result: &mut ToolResult,
    is_error: &mut bool,
) -> Vec<Violation> {
    if *is_error {
        return Vec::new();
    }
    let violations = output_errors(tool, result);
    if violations.is_empty() {
        return violations;
    }
    let text = output_error_text(&call.name, &violations, result.structured_content.as_ref());
    match scope.runner.options.output_check {
        OutputCheck::Warn => {
            let first_lines = text.split("\n\n").next().unwrap_or_default();
            scope
                .listener
                .notice(Notice::Warning(first_lines.to_owned()));
        }
        OutputCheck::Fail => {
            *result = thrown(scope.runner, call, &text);
            *is_error = true;
        }
    }
    violations
}

/// Where a successful result does not keep what its tool's `outputSchema` promises.
pub(crate) fn output_errors(tool: &Tool, result: &ToolResult) -> Vec<Violation> {
    match tool.compiled_output_schema() {
        None => Vec::new(),
        Some(Err(error)) => vec![output_violation("outputSchema", &error.to_string())],
        Some(Ok(schema)) => match &result.structured_content {
            Some(value) => schema.violations(value),
            None => vec![output_violation("required", "missing")],
        },
    }
}

fn output_violation(keyword: &str, message: &str) -> Violation {
    Violation {
        path: String::new(),
        keyword: keyword.into(),
        message: message.into(),
    }
}

fn output_error_text(
    tool_name: &str,
    violations: &[Violation],
    received: Option<&Value>,
) -> String {
    let text = schema::error_text(tool_name, violations, received.unwrap_or(&Value::Null));
    let text = text.replacen(
        "Validation failed for tool",
        "Output validation failed for tool",
        1,
    );
    match received {
        Some(_) => text.replacen(
            "\n\nReceived arguments:\n",
            "\n\nReceived structuredContent:\n",
            1,
        ),
        None => text.split("\n\n").next().unwrap_or_default().to_owned(),
    }
}
