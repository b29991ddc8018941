//! Schemas in the words of draft 2020-12, which is what APIs check them against.
//!
//! pitool reads older tuples and `dependencies` as well, and overlooks keywords whose value is of the wrong type; an
//! API would refuse the whole request for them. The meaning stays the same.

use serde_json::{Map, Value};

use crate::schema::applicator::{Holds, holds, is_schema};

use super::walk::map_subschemas;

const TYPES: [&str; 7] = [
    "null", "boolean", "object", "array", "number", "string", "integer",
];

/// Rewrites a schema and all its subschemas.
pub(super) fn modernise(schema: Value) -> Value {
    let Value::Object(mut keywords) = schema else {
        return schema;
    };
    keywords.shift_remove("$schema");
    modernise_tuple(&mut keywords);
    split_dependencies(&mut keywords);
    let keywords = keywords
        .into_iter()
        .filter_map(|(keyword, value)| Some((well_formed(&keyword, value)?, keyword)))
        .map(|(value, keyword)| (keyword, value))
        .collect();
    Value::Object(map_subschemas(keywords, "", &mut |_, schema| {
        modernise(schema)
    }))
}

/// A list of `items` is `prefixItems` today, and what follows it is `items`.
fn modernise_tuple(keywords: &mut Map<String, Value>) {
    let further = keywords.shift_remove("additionalItems");
    if keywords.get("items").is_some_and(Value::is_array) {
        let items = keywords.shift_remove("items").unwrap_or_default();
        keywords.entry("prefixItems").or_insert(items);
        if let Some(further) = further {
            keywords.insert("items".to_owned(), further);
        }
    }
}

fn split_dependencies(keywords: &mut Map<String, Value>) {
    let Some(Value::Object(dependencies)) = keywords.shift_remove("dependencies") else {
        return;
    };
    for (key, dependency) in dependencies {
        let keyword = if dependency.is_array() {
            "dependentRequired"
        } else {
            "dependentSchemas"
        };
        let map = keywords.entry(keyword).or_insert_with(|| Map::new().into());
        if let Value::Object(map) = map {
            map.entry(key).or_insert(dependency);
        }
    }
}

/// The value of a keyword, or nothing where it is of the wrong type.
fn well_formed(keyword: &str, value: Value) -> Option<Value> {
    let is_well_formed = match holds(keyword) {
        Some(Holds::Members) => return only_schemas(value),
        Some(Holds::List) => value
            .as_array()
            .is_some_and(|list| !list.is_empty() && list.iter().all(is_schema)),
        Some(Holds::Schema | Holds::SchemaOrList) => is_schema(&value),
        None => return well_formed_assertion(keyword, value),
    };
    is_well_formed.then_some(value)
}

/// The value of a keyword that holds no schemas, or nothing where it is of the wrong type.
fn well_formed_assertion(keyword: &str, value: Value) -> Option<Value> {
    let is_well_formed = match keyword {
        "type" => return well_formed_type(value),
        "dependentRequired" => value.is_object(),
        "required" | "enum" | "examples" => value.is_array(),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
            value.is_number()
        }
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
        | "minContains" | "maxContains" => value.as_f64().is_some_and(|number| number >= 0.0),
        "pattern" | "format" | "$ref" | "title" | "description" => value.is_string(),
        "uniqueItems" => value.is_boolean(),
        _ => true,
    };
    is_well_formed.then_some(value)
}

fn well_formed_type(value: Value) -> Option<Value> {
    let is_type = |value: &Value| value.as_str().is_some_and(|name| TYPES.contains(&name));
    match value {
        Value::Array(list) => {
            let names: Vec<Value> = list.into_iter().filter(is_type).collect();
            (!names.is_empty()).then(|| names.into())
        }
        name => is_type(&name).then_some(name),
    }
}

fn only_schemas(value: Value) -> Option<Value> {
    let Value::Object(map) = value else {
        return None;
    };
    let schemas = map.into_iter().filter(|(_, schema)| is_schema(schema));
    Some(Value::Object(schemas.collect()))
}
