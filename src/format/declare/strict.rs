//! OpenAI's strict schemas: the model is held to them token by token, and they are a small part of JSON Schema.
//!
//! Every property is required and every object closed. A property that the schema leaves optional becomes one that may
//! be `null`; coercion drops such nulls again, so the tool sees what it would have seen. Source: the guide on structured
//! outputs, "Supported schemas".

use serde_json::{Map, Value, json};

use crate::schema::Coercion;

use super::walk::{map_subschemas, step, target, texts};

/// Why a schema is not strict, or what had to be left out to make it so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reason {
    /// JSON Pointer into the schema.
    pub(super) path: String,
    pub(super) message: String,
}

/// How a place of the schema is reached from its root, which decides whether coercion drops optional nulls there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// By properties and items alone.
    Direct,
    /// Through a `$ref`, which only `extended` coercion follows.
    Reference,
    /// Through `anyOf` or its like, where no coercion drops nulls.
    Union,
}

/// The strict form of a schema and what it leaves out, or why there is none. `coercion` is what calls of the tool go
/// through, and `reach` is how the root of the schema stood to the one that was written.
pub(super) fn strict(
    schema: &Value,
    coercion: Coercion,
    reach: Reach,
) -> Result<(Value, Vec<Reason>), Vec<Reason>> {
    let mut conversion = Conversion {
        root: schema,
        coercion,
        refused: Vec::new(),
        left_out: Vec::new(),
        properties: 0,
    };
    let strict = conversion.node("", schema.clone(), reach);
    conversion.check_limits(&strict);
    if conversion.refused.is_empty() {
        Ok((strict, conversion.left_out))
    } else {
        Err(conversion.refused)
    }
}

struct Conversion<'s> {
    root: &'s Value,
    coercion: Coercion,
    refused: Vec<Reason>,
    left_out: Vec<Reason>,
    properties: usize,
}

/// Keywords that strict schemas have.
const KEPT: [&str; 20] = [
    "$defs",
    "$ref",
    "additionalProperties",
    "anyOf",
    "const",
    "definitions",
    "description",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "items",
    "maxItems",
    "maximum",
    "minItems",
    "minimum",
    "multipleOf",
    "pattern",
    "properties",
    "required",
    "type",
];
/// Keywords that only narrow what is valid: without them the model may send what validation then refuses.
const NARROWING: [&str; 10] = [
    "contains",
    "format",
    "maxContains",
    "maxLength",
    "maxProperties",
    "minContains",
    "minLength",
    "minProperties",
    "propertyNames",
    "uniqueItems",
];
/// Keywords without which the schema would say something else.
const ESSENTIAL: [&str; 11] = [
    "$dynamicRef",
    "allOf",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "if",
    "not",
    "patternProperties",
    "prefixItems",
    "then",
    "unevaluatedProperties",
];
const FORMATS: [&str; 9] = [
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "time",
    "uuid",
];
const NULL_STAYS: &str = "strict schemas have no optional properties, and a null in its place would not be dropped \
    again here; require it, or let it be null";
const MAX_LEVELS: usize = 10;
const MAX_PROPERTIES: usize = 5_000;

impl Conversion<'_> {
    fn refuse(&mut self, path: &str, message: impl Into<String>) {
        self.refused.push(Reason {
            path: path.to_owned(),
            message: message.into(),
        });
    }

    fn leave_out(&mut self, path: &str, keyword: &str) {
        self.left_out.push(Reason {
            path: step(path, keyword),
            message: format!("strict schemas do not have {keyword}; it was left out"),
        });
    }

    fn node(&mut self, path: &str, schema: Value, reach: Reach) -> Value {
        let Value::Object(mut keywords) = schema else {
            self.refuse(
                path,
                "strict schemas have to say a type; this takes anything or nothing",
            );
            return schema;
        };
        let reach = if self.unite(path, &mut keywords) {
            Reach::Union
        } else {
            reach
        };
        self.sort_keywords(path, &mut keywords);
        if keywords.contains_key("$ref") {
            return self.reference(path, keywords);
        }
        self.give_type(path, &mut keywords);
        if allows(&keywords, "object") {
            self.object(path, &mut keywords, reach);
        }
        if allows(&keywords, "array") && !keywords.contains_key("items") {
            self.refuse(path, "strict schemas have to say the items of an array");
        }
        let keywords = map_subschemas(keywords, path, &mut |at, schema| match at[path.len() + 1..]
            .split('/')
            .next()
        {
            Some("additionalProperties") => schema,
            Some("properties" | "items") => self.node(at, schema, reach),
            Some("$defs" | "definitions") => self.node(at, schema, Reach::Reference),
            _ => self.node(at, schema, Reach::Union),
        });
        Value::Object(keywords)
    }

    /// `oneOf` is `anyOf` for a model, and `allOf` of one is that one; whether it was.
    fn unite(&mut self, path: &str, keywords: &mut Map<String, Value>) -> bool {
        if let Some(branches) = keywords.shift_remove("oneOf") {
            if keywords.contains_key("anyOf") {
                self.refuse(
                    path,
                    "strict schemas cannot have anyOf and oneOf at one place",
                );
            }
            keywords.insert("anyOf".to_owned(), branches);
        }
        let only = match keywords.get("allOf") {
            Some(Value::Array(members)) if members.len() == 1 => members[0].as_object().cloned(),
            _ => None,
        };
        let is_disjoint =
            |only: &Map<String, Value>| only.keys().all(|keyword| !keywords.contains_key(keyword));
        let only = only.filter(is_disjoint);
        let is_merged = only.is_some();
        if let Some(only) = only {
            keywords.shift_remove("allOf");
            keywords.extend(only);
        }
        is_merged
    }

    fn sort_keywords(&mut self, path: &str, keywords: &mut Map<String, Value>) {
        let known_format = keywords
            .get("format")
            .and_then(Value::as_str)
            .is_some_and(|format| FORMATS.contains(&format));
        keywords.retain(|keyword, _| {
            let keyword = keyword.as_str();
            if KEPT.contains(&keyword) || (keyword == "format" && known_format) {
                return true;
            }
            if ESSENTIAL.contains(&keyword) {
                self.refuse(
                    &step(path, keyword),
                    format!("strict schemas do not have {keyword}"),
                );
            } else if NARROWING.contains(&keyword) {
                self.leave_out(path, keyword);
            }
            false
        });
    }

    /// Beside a `$ref` nothing else may stand; a description goes around it.
    fn reference(&mut self, path: &str, mut keywords: Map<String, Value>) -> Value {
        let reference = keywords.shift_remove("$ref").unwrap_or_default();
        let named = reference.as_str().and_then(|text| target(self.root, text));
        if named.is_none() {
            self.refuse(
                path,
                format!("strict schemas need a $ref into the schema, not {reference}"),
            );
        }
        let alone = json!({"$ref": reference});
        let description = keywords.shift_remove("description");
        if keywords
            .keys()
            .any(|keyword| keyword != "$defs" && keyword != "definitions")
        {
            self.refuse(path, "strict schemas take nothing beside a $ref");
        }
        match description {
            Some(description) => json!({"description": description, "anyOf": [alone]}),
            None => alone,
        }
    }

    /// A type where only choices say it.
    fn give_type(&mut self, path: &str, keywords: &mut Map<String, Value>) {
        if keywords.contains_key("type") || keywords.contains_key("anyOf") {
            return;
        }
        match choice_types(keywords) {
            Value::Null => self.refuse(
                path,
                "strict schemas have to say a type; this takes anything",
            ),
            types => {
                keywords.insert("type".to_owned(), types);
            }
        }
    }

    /// Closes an object and requires all its properties.
    fn object(&mut self, path: &str, keywords: &mut Map<String, Value>, reach: Reach) {
        match keywords.get("additionalProperties") {
            None | Some(Value::Bool(false)) => {}
            Some(_) => self.refuse(
                &step(path, "additionalProperties"),
                "strict schemas have no objects with further properties",
            ),
        }
        let required: Vec<String> = texts(keywords, "required")
            .into_iter()
            .map(str::to_owned)
            .collect();
        let is_root = path.is_empty();
        let properties = keywords
            .entry("properties")
            .or_insert_with(|| Map::new().into());
        let Value::Object(properties) = properties else {
            return;
        };
        if properties.is_empty() && !is_root {
            self.refuse(
                path,
                "strict schemas have to say the properties of an object",
            );
        }
        self.properties += properties.len();
        let unknown: Vec<&String> = required
            .iter()
            .filter(|name| !properties.contains_key(*name))
            .collect();
        for name in unknown {
            self.refuse(path, format!("{name:?} is required, but no property"));
        }
        for (name, schema) in properties.iter_mut() {
            if !required.contains(name) {
                if !self.null_is_harmless(schema, reach) {
                    let path = step(&step(path, "properties"), name);
                    self.refuse(&path, NULL_STAYS);
                }
                *schema = nullable(schema.take());
            }
        }
        let names: Vec<Value> = properties.keys().map(|name| name.as_str().into()).collect();
        keywords.insert("required".to_owned(), names.into());
        keywords.insert("additionalProperties".to_owned(), false.into());
    }

    /// Whether the tool sees the same if an optional property of this schema is sent as null instead of not at all.
    fn null_is_harmless(&self, schema: &Value, reach: Reach) -> bool {
        let Value::Object(keywords) = schema else {
            return true;
        };
        let is_dropped = match self.coercion {
            Coercion::Off => false,
            Coercion::Standard => reach == Reach::Direct && !keywords.contains_key("$ref"),
            Coercion::Extended => reach != Reach::Union,
        };
        is_dropped || allows(keywords, "null") || accepts_null(keywords)
    }

    fn check_limits(&mut self, schema: &Value) {
        let levels = object_levels(schema);
        if levels > MAX_LEVELS {
            let message = format!("strict schemas nest at most {MAX_LEVELS} levels, this {levels}");
            self.refuse("", message);
        }
        if self.properties > MAX_PROPERTIES {
            let message = format!(
                "strict schemas have at most {MAX_PROPERTIES} properties, this {}",
                self.properties
            );
            self.refuse("", message);
        }
    }
}

/// The type that choices or properties say where `type` does not; null if nothing says it.
pub(super) fn choice_types(keywords: &Map<String, Value>) -> Value {
    let mut types: Vec<&str> = Vec::new();
    let choices = keywords.get("enum").and_then(Value::as_array);
    for choice in choices.into_iter().flatten().chain(keywords.get("const")) {
        let name = type_of(choice);
        if !types.contains(&name) {
            types.push(name);
        }
    }
    if types.is_empty() && keywords.contains_key("properties") {
        types.push("object");
    }
    match types.as_slice() {
        [] => Value::Null,
        [one] => (*one).into(),
        several => several.to_vec().into(),
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn allows(keywords: &Map<String, Value>, wanted: &str) -> bool {
    match keywords.get("type") {
        Some(Value::Array(names)) => names.iter().any(|name| name == wanted),
        Some(name) => name == wanted,
        None => false,
    }
}

/// The schema, or null.
fn nullable(schema: Value) -> Value {
    let Value::Object(mut keywords) = schema else {
        return schema;
    };
    let is_plain = !["$ref", "anyOf", "oneOf", "allOf", "const", "enum"]
        .iter()
        .any(|keyword| keywords.contains_key(*keyword));
    if is_plain && let Some(name) = keywords.get_mut("type") {
        add_null(name);
        return Value::Object(keywords);
    }
    if accepts_null(&keywords) {
        return Value::Object(keywords);
    }
    let description = keywords.shift_remove("description");
    let mut union = Map::new();
    union.extend(description.map(|text| ("description".to_owned(), text)));
    union.insert("anyOf".to_owned(), json!([keywords, {"type": "null"}]));
    Value::Object(union)
}

fn add_null(name: &mut Value) {
    match name {
        Value::Array(names) if names.iter().any(|name| name == "null") => {}
        Value::Array(names) => names.push("null".into()),
        name if name == "null" => {}
        name => *name = json!([name.take(), "null"]),
    }
}

/// Whether a union has a branch for null already.
fn accepts_null(keywords: &Map<String, Value>) -> bool {
    let branches = ["anyOf", "oneOf"]
        .iter()
        .filter_map(|keyword| keywords.get(*keyword)?.as_array())
        .flatten();
    let is_null = |branch: &Value| branch.get("type").is_some_and(|name| name == "null");
    let in_enum = keywords
        .get("enum")
        .and_then(Value::as_array)
        .is_some_and(|choices| choices.iter().any(Value::is_null));
    in_enum || branches.into_iter().any(is_null)
}

/// How deep objects and arrays nest; definitions count from where they stand.
fn object_levels(schema: &Value) -> usize {
    let Value::Object(keywords) = schema else {
        return 0;
    };
    let mut deepest = 0;
    map_subschemas(keywords.clone(), "", &mut |_, schema| {
        deepest = deepest.max(object_levels(&schema));
        schema
    });
    let is_level = allows(keywords, "object") || allows(keywords, "array");
    deepest + usize::from(is_level)
}
