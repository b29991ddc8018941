//! Where subschemas stand inside of a schema.

use serde_json::{Map, Value};

use crate::json::pointer::escaped;
use crate::schema::applicator::{Holds, holds, is_schema};

/// Replaces every direct subschema of `keywords` by what `change` makes of it; `path` is the JSON Pointer of the
/// schema, and `change` gets that of the subschema. Order is kept.
pub(super) fn map_subschemas(
    keywords: Map<String, Value>,
    path: &str,
    change: &mut dyn FnMut(&str, Value) -> Value,
) -> Map<String, Value> {
    let changed = keywords.into_iter().map(|(keyword, value)| {
        let at = step(path, &keyword);
        let value = match (holds(&keyword), value) {
            (Some(Holds::Members), Value::Object(map)) => map
                .into_iter()
                .map(|(key, schema)| {
                    let schema = change(&step(&at, &key), schema);
                    (key, schema)
                })
                .collect::<Map<_, _>>()
                .into(),
            (Some(Holds::List | Holds::SchemaOrList), Value::Array(list)) => list
                .into_iter()
                .enumerate()
                .map(|(index, schema)| change(&format!("{at}/{index}"), schema))
                .collect(),
            (Some(Holds::Schema | Holds::SchemaOrList), schema) if is_schema(&schema) => {
                change(&at, schema)
            }
            (_, other) => other,
        };
        (keyword, value)
    });
    changed.collect()
}

/// A JSON Pointer one key longer.
pub(super) fn step(path: &str, key: &str) -> String {
    format!("{path}/{}", escaped(key))
}

/// What a `$ref` into the same document names, if it does: `#`, or `#` and a JSON Pointer.
pub(super) fn target<'v>(root: &'v Value, reference: &str) -> Option<&'v Value> {
    root.pointer(&pointer(reference)?)
}

/// The JSON Pointer of a `$ref` into the same document.
pub(super) fn pointer(reference: &str) -> Option<String> {
    let fragment = reference.strip_prefix('#')?;
    (fragment.is_empty() || fragment.starts_with('/')).then(|| percent_decoded(fragment))
}

/// `$ref`s are URIs, so that names in them may be percent-encoded.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        let escape = behind.get(..2).filter(|_| byte == b'%');
        let decoded = escape
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(decoded.unwrap_or(byte));
        rest = if decoded.is_some() {
            &behind[2..]
        } else {
            behind
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The texts in an array field.
pub(super) fn texts<'v>(keywords: &'v Map<String, Value>, keyword: &str) -> Vec<&'v str> {
    keywords
        .get(keyword)
        .and_then(Value::as_array)
        .map_or_else(Vec::new, |list| {
            list.iter().filter_map(Value::as_str).collect()
        })
}
