//! The keywords whose value holds schemas, and how it holds them.
//!
//! Every walk through a schema as it is written asks here, so that all of them find the same places. What the keywords
//! mean is read by `node`.

use serde_json::Value;

/// How the value of a keyword holds schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    /// It is a schema.
    Schema,
    /// It is a list of schemas.
    List,
    /// It is a schema or, as in older drafts, a list of them.
    SchemaOrList,
    /// It is an object whose members are schemas.
    Members,
}

/// How a keyword holds schemas; `None` if it holds none. Members of `dependencies` may be lists of names instead.
pub(crate) fn holds(keyword: &str) -> Option<Holds> {
    let holds = match keyword {
        "$defs" | "definitions" | "dependencies" | "dependentSchemas" | "patternProperties"
        | "properties" => Holds::Members,
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Holds::List,
        "items" => Holds::SchemaOrList,
        "additionalItems"
        | "additionalProperties"
        | "contains"
        | "contentSchema"
        | "else"
        | "if"
        | "not"
        | "propertyNames"
        | "then"
        | "unevaluatedItems"
        | "unevaluatedProperties" => Holds::Schema,
        _ => return None,
    };
    Some(holds)
}

/// Whether a value can be a schema at all.
pub(crate) fn is_schema(value: &Value) -> bool {
    value.is_object() || value.is_boolean()
}
