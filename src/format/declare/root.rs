//! The root of `parameters`: every API wants an object there, and most want it without alternatives.

use serde_json::{Map, Value, json};

use super::Report;
use super::strict::Reach;
use super::walk::{target, texts};

/// Makes the root an object schema.
pub(super) fn as_object(schema: Value, report: &mut Report) -> Value {
    let mut keywords = match schema {
        Value::Object(keywords) => keywords,
        Value::Bool(true) => Map::new(),
        _ => {
            report.error("root-type", "", "the schema accepts no arguments at all");
            Map::new()
        }
    };
    follow_reference(&mut keywords);
    let allows_object = match keywords.get("type") {
        None => true,
        Some(Value::Array(names)) => names.iter().any(|name| name == "object"),
        Some(name) => name == "object",
    };
    if !allows_object {
        let message = "arguments are always an object, which the schema does not accept";
        report.error("root-type", "", message);
    }
    let mut object = Map::new();
    object.insert("type".to_owned(), "object".into());
    keywords.shift_remove("type");
    object.extend(keywords);
    Value::Object(object)
}

/// How the properties of the root, as it is made here, stood in the schema as it was written.
pub(super) fn reach(parameters: &Value) -> Reach {
    let has = |keyword| parameters.get(keyword).is_some();
    if has("allOf") || has("anyOf") || has("oneOf") {
        Reach::Union
    } else if has("$ref") {
        Reach::Reference
    } else {
        Reach::Direct
    }
}

/// A `$ref` at the root is replaced by what it names; beside it, the root's own keywords win.
fn follow_reference(keywords: &mut Map<String, Value>) {
    // Each step removes one reference, and the names of a document are finite.
    for _ in 0..16 {
        let Some(Value::String(reference)) = keywords.get("$ref").cloned() else {
            return;
        };
        let root = Value::Object(keywords.clone());
        let Some(Value::Object(named)) = target(&root, &reference).filter(|_| reference != "#")
        else {
            return;
        };
        keywords.shift_remove("$ref");
        for (keyword, value) in named {
            keywords.entry(keyword).or_insert_with(|| value.clone());
        }
    }
}

/// Takes `allOf`, `anyOf` and `oneOf` out of the root, where OpenAI, Anthropic and Gemini refuse them, and what says
/// something of the object as a whole.
pub(super) fn without_unions(schema: Value, report: &mut Report) -> Value {
    let root = schema.clone();
    let Value::Object(mut keywords) = schema else {
        return schema;
    };
    if let Some(Value::Array(members)) = keywords.shift_remove("allOf")
        && !merge_all(&mut keywords, &resolved(&root, &members))
    {
        let message = "allOf is not possible at the root; its properties were merged, \
            what else it says was left out";
        report.note("root-union", "/allOf", message);
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(Value::Array(branches)) = keywords.shift_remove(keyword) {
            merge_any(&mut keywords, &resolved(&root, &branches));
            let message = format!(
                "{keyword} is not possible at the root; the properties of its alternatives were merged, \
                 and which of them go together is not said"
            );
            report.note("root-union", &format!("/{keyword}"), message);
        }
    }
    for keyword in ["enum", "const", "not", "if", "then", "else"] {
        if keywords.shift_remove(keyword).is_some() {
            let message = format!("{keyword} is not possible at the root and was left out");
            report.note("keyword", &format!("/{keyword}"), message);
        }
    }
    Value::Object(keywords)
}

fn resolved(root: &Value, members: &[Value]) -> Vec<Map<String, Value>> {
    members
        .iter()
        .filter_map(|member| {
            let named = member.get("$ref").and_then(Value::as_str);
            let named = named.and_then(|reference| target(root, reference));
            named.unwrap_or(member).as_object().cloned()
        })
        .collect()
}

/// Merges what holds in any case; whether that is all that was said.
fn merge_all(keywords: &mut Map<String, Value>, members: &[Map<String, Value>]) -> bool {
    let mut is_complete = true;
    for member in members {
        for (keyword, value) in member {
            match keyword.as_str() {
                "properties" => is_complete &= add_properties(keywords, value, "allOf"),
                "required" => {
                    let names = texts(member, "required");
                    add_required(keywords, &names);
                }
                "type" | "title" | "$comment" | "$id" | "default" | "examples" => {}
                "description" => {
                    keywords
                        .entry("description")
                        .or_insert_with(|| value.clone());
                }
                "additionalProperties" if value == &Value::Bool(true) => {}
                _ => is_complete = false,
            }
        }
    }
    is_complete
}

/// Merges alternatives: every property that one of them has, required only what all require.
fn merge_any(keywords: &mut Map<String, Value>, branches: &[Map<String, Value>]) {
    for branch in branches {
        if let Some(properties) = branch.get("properties") {
            add_properties(keywords, properties, "anyOf");
        }
    }
    let mut lists = branches.iter().map(|branch| texts(branch, "required"));
    let first = lists.next().unwrap_or_default();
    let rest: Vec<Vec<&str>> = lists.collect();
    let in_all: Vec<&str> = first
        .into_iter()
        .filter(|name| rest.iter().all(|list| list.contains(name)))
        .collect();
    add_required(keywords, &in_all);
    let is_closed = |branch: &Map<String, Value>| {
        branch.get("additionalProperties") == Some(&Value::Bool(false))
    };
    if !branches.is_empty() && branches.iter().all(is_closed) {
        keywords
            .entry("additionalProperties")
            .or_insert(Value::Bool(false));
    }
}

/// Adds properties; two of one name become one that combines them by `keyword`. Whether none met another.
fn add_properties(keywords: &mut Map<String, Value>, added: &Value, keyword: &str) -> bool {
    let properties = keywords
        .entry("properties")
        .or_insert_with(|| Map::new().into());
    let (Value::Object(properties), Value::Object(added)) = (properties, added) else {
        return true;
    };
    let mut is_disjoint = true;
    for (name, schema) in added {
        match properties.get_mut(name) {
            None => {
                properties.insert(name.clone(), schema.clone());
            }
            Some(known) if known == schema => {}
            Some(known) => {
                is_disjoint = false;
                combine(known, schema, keyword);
            }
        }
    }
    is_disjoint
}

fn combine(known: &mut Value, schema: &Value, keyword: &str) {
    let is_combination = known.as_object().is_some_and(|known| known.len() == 1);
    match known.get_mut(keyword) {
        Some(Value::Array(alternatives)) if is_combination => {
            if !alternatives.contains(schema) {
                alternatives.push(schema.clone());
            }
        }
        _ => *known = json!({keyword: [known.take(), schema]}),
    }
}

fn add_required(keywords: &mut Map<String, Value>, names: &[&str]) {
    if names.is_empty() {
        return;
    }
    let required = keywords
        .entry("required")
        .or_insert_with(|| Vec::<Value>::new().into());
    if let Value::Array(required) = required {
        for &name in names {
            if required.iter().all(|known| known != name) {
                required.push(name.into());
            }
        }
    }
}

/// OpenAI refuses an object schema that does not say `properties`.
pub(super) fn with_properties(mut schema: Value) -> Value {
    if let Value::Object(keywords) = &mut schema {
        keywords
            .entry("properties")
            .or_insert_with(|| Map::new().into());
    }
    schema
}
