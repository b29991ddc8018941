//! The part of JSON Schema that Gemini reads.
//!
//! Source: the reference of `responseJsonSchema`, whose rules hold for `parametersJsonSchema` as well
//! (`@google/genai` 3.3.0).

use serde_json::{Map, Value, json};

use super::Report;
use super::walk::{map_subschemas, pointer, texts};

const READ: [&str; 20] = [
    "$anchor",
    "$defs",
    "$id",
    "$ref",
    "additionalProperties",
    "anyOf",
    "description",
    "enum",
    "format",
    "items",
    "maxItems",
    "maximum",
    "minItems",
    "minimum",
    "oneOf",
    "prefixItems",
    "properties",
    "propertyOrdering",
    "required",
    "title",
];
/// Keywords that say nothing about which values are valid.
const ANNOTATIONS: [&str; 11] = [
    "$comment",
    "$schema",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "default",
    "deprecated",
    "example",
    "examples",
    "readOnly",
    "writeOnly",
];

/// Reduces a schema to what Gemini reads.
pub(super) fn subset(schema: Value, report: &mut Report) -> Value {
    let schema = subset_at("", schema, report);
    report_cycles(&schema, report);
    schema
}

fn subset_at(path: &str, schema: Value, report: &mut Report) -> Value {
    let Value::Object(mut keywords) = schema else {
        return schema;
    };
    rename_definitions(&mut keywords);
    constant_as_enum(&mut keywords);
    exclusive_bounds(&mut keywords);
    merge_all_of(&mut keywords);
    scalar_enum(&mut keywords, path, report);
    keywords.retain(|keyword, _| {
        let is_read = READ.contains(&keyword.as_str()) || keyword == "type";
        let says_something = !ANNOTATIONS.contains(&keyword.as_str()) && !keyword.starts_with("x-");
        if !is_read && says_something {
            let message = format!("gemini does not read {keyword}; it was left out");
            report.note("keyword", &format!("{path}/{keyword}"), message);
        }
        is_read
    });
    let keywords = map_subschemas(keywords, path, &mut |path, schema| {
        subset_at(path, schema, report)
    });
    Value::Object(alone_with_reference(keywords))
}

fn rename_definitions(keywords: &mut Map<String, Value>) {
    if let Some(Value::Object(definitions)) = keywords.shift_remove("definitions") {
        let known = keywords.entry("$defs").or_insert_with(|| Map::new().into());
        if let Value::Object(known) = known {
            for (name, schema) in definitions {
                known.entry(name).or_insert(schema);
            }
        }
    }
    if let Some(Value::String(reference)) = keywords.get_mut("$ref")
        && let Some(name) = reference.strip_prefix("#/definitions/")
    {
        *reference = format!("#/$defs/{name}");
    }
}

fn constant_as_enum(keywords: &mut Map<String, Value>) {
    let is_free = !keywords.contains_key("enum");
    if is_free && let Some(constant) = keywords.shift_remove("const") {
        keywords.insert("enum".to_owned(), json!([constant]));
    }
}

/// For whole numbers an exclusive bound is the inclusive one beside it.
fn exclusive_bounds(keywords: &mut Map<String, Value>) {
    if keywords.get("type").and_then(Value::as_str) != Some("integer") {
        return;
    }
    for (exclusive, inclusive, step) in [
        ("exclusiveMinimum", "minimum", 1),
        ("exclusiveMaximum", "maximum", -1),
    ] {
        let bound = keywords.get(exclusive).and_then(Value::as_i64);
        let bound = bound.and_then(|bound| bound.checked_add(step));
        if let Some(bound) = bound.filter(|_| !keywords.contains_key(inclusive)) {
            keywords.shift_remove(exclusive);
            keywords.insert(inclusive.to_owned(), bound.into());
        }
    }
}

/// `allOf` whose members say different things is the same as saying them side by side.
fn merge_all_of(keywords: &mut Map<String, Value>) {
    let Some(Value::Array(members)) = keywords.get("allOf") else {
        return;
    };
    let mut merged = keywords.clone();
    merged.shift_remove("allOf");
    for member in members {
        let Some(member) = member.as_object() else {
            return;
        };
        for (keyword, value) in member {
            match merged.get(keyword) {
                Some(known) if known != value => return,
                _ => merged.insert(keyword.clone(), value.clone()),
            };
        }
    }
    *keywords = merged;
}

/// Gemini's enums are of strings and numbers.
fn scalar_enum(keywords: &mut Map<String, Value>, path: &str, report: &mut Report) {
    let Some(Value::Array(choices)) = keywords.get_mut("enum") else {
        return;
    };
    let with_null = choices.iter().any(Value::is_null);
    choices.retain(|choice| !choice.is_null());
    let is_scalar = |choice: &Value| choice.is_string() || choice.is_number();
    if !choices.iter().all(is_scalar) || choices.is_empty() {
        keywords.shift_remove("enum");
        let message = "gemini takes only strings and numbers in enum; it was left out";
        report.note("keyword", &format!("{path}/enum"), message);
    } else if with_null {
        let choices = keywords.shift_remove("enum");
        keywords.shift_remove("type");
        keywords.insert(
            "anyOf".to_owned(),
            json!([{"enum": choices}, {"type": "null"}]),
        );
    }
}

/// Beside a `$ref` nothing may stand but keywords with a `$`; what else is said goes around it.
fn alone_with_reference(mut keywords: Map<String, Value>) -> Map<String, Value> {
    let is_alone = keywords.keys().all(|keyword| keyword.starts_with('$'));
    if is_alone || keywords.contains_key("anyOf") {
        return keywords;
    }
    if let Some(reference) = keywords.shift_remove("$ref") {
        keywords.insert("anyOf".to_owned(), json!([{"$ref": reference}]));
    }
    keywords
}

/// A reference that leads back to a schema around it may stand only in a property that is not required.
fn report_cycles(schema: &Value, report: &mut Report) {
    let mut references = Vec::new();
    collect_references("", schema, false, &mut references);
    for reference in &references {
        if !reference.may_be_absent && leads_back(&references, reference) {
            let message = "gemini takes a recursive $ref only in a property that is not required";
            report.error("recursive-ref", &reference.at, message);
        }
    }
}

/// A `$ref`: where it stands, where it leads, and whether a property around it may be absent.
struct Reference {
    at: String,
    to: String,
    may_be_absent: bool,
}

fn collect_references(path: &str, schema: &Value, may_be_absent: bool, found: &mut Vec<Reference>) {
    let Value::Object(keywords) = schema else {
        return;
    };
    if let Some(to) = keywords
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(pointer)
    {
        found.push(Reference {
            at: path.to_owned(),
            to,
            may_be_absent,
        });
    }
    let required = texts(keywords, "required");
    let properties = format!("{path}/properties/");
    let definitions = format!("{path}/$defs/");
    map_subschemas(keywords.clone(), path, &mut |at, schema| {
        let optional = at
            .strip_prefix(&properties)
            .is_some_and(|name| !required.contains(&name));
        // A definition is reached through its references only.
        let inherited = may_be_absent && !at.starts_with(&definitions);
        collect_references(at, &schema, inherited || optional, found);
        schema
    });
}

/// Whether following `start` leads to a schema that `start` stands in.
fn leads_back(references: &[Reference], start: &Reference) -> bool {
    let mut seen: Vec<&str> = Vec::new();
    let mut pending = vec![start.to.as_str()];
    while let Some(place) = pending.pop() {
        if is_inside(&start.at, place) {
            return true;
        }
        if seen.contains(&place) {
            continue;
        }
        seen.push(place);
        let inside = references
            .iter()
            .filter(|reference| is_inside(&reference.at, place) && !reference.may_be_absent);
        pending.extend(inside.map(|reference| reference.to.as_str()));
    }
    false
}

fn is_inside(at: &str, place: &str) -> bool {
    at == place
        || at
            .strip_prefix(place)
            .is_some_and(|rest| rest.starts_with('/'))
}
