//! The tools of a server, as `tools/list` gives them.

use std::sync::Arc;

use serde_json::{Map, Value, json};

/// A tool as its server lists it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ListedTool {
    /// What the server calls it.
    pub(crate) name: String,
    /// What it is called here.
    pub(crate) full_name: String,
    pub(crate) title: Option<String>,
    pub(crate) description: String,
    pub(crate) input_schema: Value,
    pub(crate) output_schema: Option<Value>,
    pub(crate) annotations: Option<Value>,
}

/// The tools of a server, until it says that they changed.
pub(crate) type Listing = Arc<Vec<ListedTool>>;

impl ListedTool {
    /// Reads one element of `tools/list`; the full name is not known yet. Everything but a name may be missing.
    pub(super) fn read(tool: Value) -> Option<Self> {
        let Value::Object(mut fields) = tool else {
            return None;
        };
        let Some(Value::String(name)) = fields.remove("name") else {
            return None;
        };
        let annotations = fields.remove("annotations").filter(Value::is_object);
        let title = text(fields.remove("title")).or_else(|| {
            text(
                annotations
                    .as_ref()
                    .and_then(|hints| hints.get("title"))
                    .cloned(),
            )
        });
        Some(Self {
            name,
            full_name: String::new(),
            title,
            description: text(fields.remove("description")).unwrap_or_default(),
            input_schema: given(&mut fields, "inputSchema")
                .unwrap_or_else(|| json!({"type": "object"})),
            output_schema: given(&mut fields, "outputSchema"),
            annotations,
        })
    }
}

fn text(value: Option<Value>) -> Option<String> {
    match value {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

fn given(fields: &mut Map<String, Value>, key: &str) -> Option<Value> {
    fields.remove(key).filter(|value| !value.is_null())
}
