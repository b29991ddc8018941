//! The words of the strict teaching executor ([`super::Profile::Course`]).

use std::borrow::Cow;

use serde_json::{Value, json};

use super::{CallError, Runner};
use crate::json::pointer::unescaped;
use crate::message::{ToolCall, ToolResult};
use crate::schema::Violation;

/// `Tool NAME failed: MESSAGE`, with the message alone in `details`.
pub(super) fn failure(tool_name: &str, message: &str) -> ToolResult {
    ToolResult {
        details: Some(json!({"error": message})),
        ..ToolResult::text(format!("Tool {tool_name} failed: {message}"))
    }
}

/// What is wrong with a call that does not run.
pub(super) fn message<'e>(runner: &Runner, call: &ToolCall, error: &'e CallError) -> Cow<'e, str> {
    match error {
        CallError::NotFound => "未知工具".into(),
        CallError::Rejected { violations, .. } if !violations.is_empty() => {
            let tool = runner.registry.get(&call.name);
            let parameters = tool.map(|tool| tool.declaration.parameters.read());
            first(
                parameters.as_deref().unwrap_or(&Value::Null),
                &violations[0],
            )
            .into()
        }
        _ => error.text(&call.name),
    }
}

/// The first violation, without its path.
fn first(parameters: &Value, violation: &Violation) -> String {
    let expected = match violation.keyword.as_str() {
        "type" => {
            let expected = violation.message.strip_prefix("expected ");
            expected
                .and_then(|rest| rest.split(", got ").next())
                .map(str::to_owned)
        }
        "required" => declared_type(parameters, &violation.path),
        _ => None,
    };
    expected.map_or_else(
        || violation.message.clone(),
        |expected| format!("必须是 {expected}"),
    )
}

/// The `type` that a schema declares at a path of the value, through `properties` and `items`.
fn declared_type(parameters: &Value, path: &str) -> Option<String> {
    let mut schema = parameters;
    for token in path.split('/').skip(1) {
        let key = unescaped(token);
        let property = schema
            .get("properties")
            .and_then(|properties| properties.get(&key));
        schema = property.or_else(|| schema.get("items"))?;
    }
    match schema.get("type")? {
        Value::String(one) => Some(one.clone()),
        Value::Array(several) => {
            let several: Vec<&str> = several.iter().filter_map(Value::as_str).collect();
            Some(several.join(" or "))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn case(path: &str, keyword: &str, message: &str, expected: &str) {
        let parameters = json!({"properties": {
            "value": {"type": "string"},
            "list": {"items": {"properties": {"a/b": {"type": ["integer", "null"]}}}},
        }});
        let violation = Violation {
            path: path.into(),
            keyword: keyword.into(),
            message: message.into(),
        };
        assert_eq!(first(&parameters, &violation), expected);
    }

    #[test]
    fn wrong_types_and_missing_values_name_the_type() {
        case(
            "/value",
            "type",
            "expected string, got array",
            "必须是 string",
        );
        case(
            "/n",
            "type",
            "expected integer or null, got string",
            "必须是 integer or null",
        );
        case("/value", "required", "missing", "必须是 string");
        case(
            "/list/0/a~1b",
            "required",
            "missing",
            "必须是 integer or null",
        );
    }

    #[test]
    fn other_violations_keep_their_message() {
        case("/n", "minimum", "expected >= 3", "expected >= 3");
        case("/unknown", "required", "missing", "missing");
    }
}
