//! One keyword alone, asked of the validator: which of a node's keywords is to blame for a rejection?

use jsonschema::Draft;
use serde_json::{Value, json};

use super::formats;

/// Whether a value has a format; one that nobody knows every value has.
pub(super) fn has_format(value: &Value, name: &str) -> bool {
    match (value, formats::check(name)) {
        (Value::String(text), Some(check)) => check(text),
        _ => accepts("format", &json!(name), value),
    }
}

/// Whether no two items of an array are equal.
pub(super) fn has_unique_items(array: &Value) -> bool {
    accepts("uniqueItems", &json!(true), array)
}

fn accepts(keyword: &str, argument: &Value, value: &Value) -> bool {
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .should_validate_formats(true)
        .build(&json!({keyword: argument}))
        .is_ok_and(|validator| validator.is_valid(value))
}
