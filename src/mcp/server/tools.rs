//! A tool as MCP declares it.

use std::sync::Arc;

use rmcp::model::{JsonObject, ToolAnnotations};
use serde_json::{Value, json};

use crate::tool::{Replay, Tool};

/// The declaration of a tool (MCP 2025-11-25, tools/list).
pub(super) fn declaration(tool: &Tool) -> rmcp::model::Tool {
    let mut declared = rmcp::model::Tool::new(
        tool.declaration.name.clone(),
        tool.declaration.description.clone(),
        Arc::new(input_schema(&tool.declaration.parameters.read())),
    );
    declared.title.clone_from(&tool.label);
    declared.output_schema = tool
        .output_schema
        .as_ref()
        .and_then(|schema| output_schema(&schema.read()))
        .map(Arc::new);
    declared.annotations = annotations(tool);
    declared
}

/// The protocol wants `"type": "object"` at the root. Arguments are objects anyway, so nothing is lost by saying it.
fn input_schema(parameters: &Value) -> JsonObject {
    let mut schema = match parameters {
        Value::Object(schema) => schema.clone(),
        Value::Bool(false) => json!({"not": {}}).as_object().cloned().unwrap_or_default(),
        _ => JsonObject::new(),
    };
    if schema.get("type") != Some(&Value::from("object")) {
        schema.insert("type".into(), "object".into());
    }
    schema
}

/// A schema that promises something other than an object cannot be said here: clients refuse the whole list for it.
fn output_schema(schema: &Value) -> Option<JsonObject> {
    let schema = schema.as_object()?;
    (schema.get("type") == Some(&Value::from("object"))).then(|| schema.clone())
}

/// What a server said of its own tool, else what our manifests know.
fn annotations(tool: &Tool) -> Option<ToolAnnotations> {
    if let Some(annotations) = &tool.annotations {
        return serde_json::from_value(annotations.clone()).ok();
    }
    (tool.replay == Replay::Safe).then(|| ToolAnnotations::new().idempotent(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn input(parameters: &Value, expected: &Value) {
        assert_eq!(&Value::Object(input_schema(parameters)), expected);
    }

    #[test]
    fn input_schemas_are_objects() {
        input(
            &json!({"type": "object", "x": 1}),
            &json!({"type": "object", "x": 1}),
        );
        input(
            &json!({"$ref": "#/$defs/a"}),
            &json!({"$ref": "#/$defs/a", "type": "object"}),
        );
        input(
            &json!({"type": ["object", "null"]}),
            &json!({"type": "object"}),
        );
        input(&json!(true), &json!({"type": "object"}));
        input(&json!(false), &json!({"not": {}, "type": "object"}));
    }

    #[test]
    fn output_schemas_that_are_no_objects_are_not_declared() {
        assert_eq!(output_schema(&json!({"type": "array"})), None);
        assert_eq!(output_schema(&json!(true)), None);
        assert!(output_schema(&json!({"type": "object"})).is_some());
    }
}
