//! Anthropic's strict tools: the model is held to `input_schema` token by token.
//!
//! Optional properties stay optional here, but objects are closed, nothing may recur, and one request takes only so
//! many strict tools, optional properties and unions. Source: "Strict tool use" and "Structured outputs", section "JSON
//! Schema limitations", of the Claude API docs (platform.claude.com), read in December 2026.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::strict::{Reason, choice_types};
use super::walk::{map_subschemas, step, target};

/// Keywords that strict schemas have.
const KEPT: [&str; 13] = [
    "$defs",
    "$ref",
    "additionalProperties",
    "anyOf",
    "const",
    "default",
    "definitions",
    "description",
    "items",
    "properties",
    "required",
    "title",
    "type",
];
/// Keywords that only narrow what is valid: without them the model may send what validation then refuses.
const NARROWING: [&str; 17] = [
    "contains",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "pattern",
    "uniqueItems",
];
/// Keywords without which the schema would say something else.
const ESSENTIAL: [&str; 13] = [
    "$dynamicRef",
    "allOf",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "if",
    "not",
    "patternProperties",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
const FORMATS: [&str; 10] = [
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "time",
    "uri",
    "uuid",
];
/// What patterns may not have: looking around, word boundaries, references back.
const NO_PATTERN: [&str; 6] = ["(?=", "(?!", "(?<", "\\b", "\\B", "\\k"];

/// What one request still takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Budget {
    tools: usize,
    optional: usize,
    unions: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            tools: 20,
            optional: 24,
            unions: 16,
        }
    }
}

impl Budget {
    /// What is left after a tool that takes so much, or what there is too little of.
    fn less(self, optional: usize, unions: usize) -> Result<Self, String> {
        let limits = Self::default();
        let left = |has: usize, takes: usize, most: usize, what: &str| {
            has.checked_sub(takes)
                .ok_or_else(|| format!("a request takes at most {most} {what} in its strict tools"))
        };
        if self.tools == 0 {
            return Err(format!(
                "a request takes at most {} strict tools",
                limits.tools
            ));
        }
        Ok(Self {
            tools: self.tools - 1,
            optional: left(
                self.optional,
                optional,
                limits.optional,
                "optional properties",
            )?,
            unions: left(
                self.unions,
                unions,
                limits.unions,
                "properties of more than one type",
            )?,
        })
    }
}

/// The strict form of a schema and what it leaves out, or why there is none. `budget` is what the tools before it left.
pub(super) fn strict(
    schema: &Value,
    budget: &mut Budget,
) -> Result<(Value, Vec<Reason>), Vec<Reason>> {
    let mut conversion = Conversion::default();
    conversion.refuse_recursion(schema);
    let strict = conversion.node("", schema.clone());
    if conversion.refused.is_empty() {
        match budget.less(conversion.optional, conversion.unions) {
            Ok(left) => *budget = left,
            Err(message) => conversion.refuse("", message),
        }
    }
    if conversion.refused.is_empty() {
        Ok((strict, conversion.left_out))
    } else {
        Err(conversion.refused)
    }
}

#[derive(Default)]
struct Conversion {
    refused: Vec<Reason>,
    left_out: Vec<Reason>,
    optional: usize,
    unions: usize,
}

impl Conversion {
    fn refuse(&mut self, path: &str, message: impl Into<String>) {
        self.refused.push(Reason {
            path: path.to_owned(),
            message: message.into(),
        });
    }

    fn node(&mut self, path: &str, schema: Value) -> Value {
        let Value::Object(mut keywords) = schema else {
            self.refuse(
                path,
                "strict schemas have to say a type; this takes anything or nothing",
            );
            return schema;
        };
        if let Some(branches) = keywords.shift_remove("oneOf") {
            if keywords.contains_key("anyOf") {
                self.refuse(
                    path,
                    "strict schemas cannot have anyOf and oneOf at one place",
                );
            }
            keywords.insert("anyOf".to_owned(), branches);
        }
        self.sort_keywords(path, &mut keywords);
        if keywords.contains_key("$ref") {
            return Value::Object(keywords);
        }
        self.give_type(path, &mut keywords);
        if keywords.contains_key("anyOf") || keywords.get("type").is_some_and(Value::is_array) {
            self.unions += 1;
        }
        let is_object = match keywords.get("type") {
            Some(Value::Array(names)) => names.iter().any(|name| name == "object"),
            Some(name) => name == "object",
            None => false,
        };
        if is_object {
            self.object(path, &mut keywords);
        }
        let keywords = map_subschemas(keywords, path, &mut |at, schema| {
            if at[path.len()..] == *"/additionalProperties" {
                return schema;
            }
            self.node(at, schema)
        });
        Value::Object(keywords)
    }

    fn sort_keywords(&mut self, path: &str, keywords: &mut Map<String, Value>) {
        keywords.retain(|keyword, value| {
            let keyword = keyword.as_str();
            if KEPT.contains(&keyword) || is_kept(keyword, value) {
                return true;
            }
            if keyword == "enum" {
                let message = "the choices of strict schemas are no arrays and no objects";
                self.refuse(&step(path, keyword), message);
            } else if ESSENTIAL.contains(&keyword) {
                self.refuse(
                    &step(path, keyword),
                    format!("strict schemas do not have {keyword}"),
                );
            } else if NARROWING.contains(&keyword) {
                self.left_out.push(Reason {
                    path: step(path, keyword),
                    message: format!("strict schemas do not have this {keyword}; it was left out"),
                });
            }
            false
        });
    }

    fn give_type(&mut self, path: &str, keywords: &mut Map<String, Value>) {
        if keywords.contains_key("type") || keywords.contains_key("anyOf") {
            return;
        }
        let types = match choice_types(keywords) {
            Value::Null => {
                self.refuse(
                    path,
                    "strict schemas have to say a type; this takes anything",
                );
                return;
            }
            types => types,
        };
        keywords.insert("type".to_owned(), types);
    }

    /// Closes an object.
    fn object(&mut self, path: &str, keywords: &mut Map<String, Value>) {
        match keywords.get("additionalProperties") {
            None | Some(Value::Bool(false)) => {}
            Some(_) => self.refuse(
                &step(path, "additionalProperties"),
                "strict schemas have no objects with further properties",
            ),
        }
        let properties = keywords.get("properties").and_then(Value::as_object);
        let required = keywords.get("required").and_then(Value::as_array);
        let is_required =
            |name: &str| required.is_some_and(|all| all.iter().any(|one| one == name));
        let names = properties.into_iter().flat_map(Map::keys);
        self.optional += names.filter(|name| !is_required(name)).count();
        keywords.insert("additionalProperties".to_owned(), false.into());
    }

    /// References that lead out of the schema, or back to where they stand.
    fn refuse_recursion(&mut self, root: &Value) {
        let mut state = HashMap::new();
        for reference in references(root) {
            match leads_back(root, reference, &mut state) {
                Some(true) => {
                    self.refuse(
                        "",
                        format!("strict schemas are not recursive, this is by {reference}"),
                    );
                    return;
                }
                Some(false) => {}
                None => {
                    let message =
                        format!("strict schemas need a $ref into the schema, not {reference:?}");
                    self.refuse("", message);
                    return;
                }
            }
        }
    }
}

/// Whether a reference leads to itself; `None` if it leads nowhere. `state` says of the references that were seen
/// whether they are still being followed. Schemas nest only so deep, and each reference is followed once.
fn leads_back<'v>(
    root: &'v Value,
    reference: &'v str,
    state: &mut HashMap<&'v str, bool>,
) -> Option<bool> {
    match state.get(reference) {
        Some(is_open) => return Some(*is_open),
        None if state.len() > MAX_REFERENCES => return Some(true),
        None => {}
    }
    state.insert(reference, true);
    for further in references(target(root, reference)?) {
        if leads_back(root, further, state)? {
            return Some(true);
        }
    }
    state.insert(reference, false);
    Some(false)
}

/// A schema with more references than this is taken for a recursive one: no API takes it.
const MAX_REFERENCES: usize = 200;

/// All `$ref`s in a schema. A property may have that name as well, but then its value is no text.
fn references(schema: &Value) -> Vec<&str> {
    let mut found = Vec::new();
    let mut pending = vec![schema];
    while let Some(value) = pending.pop() {
        match value {
            Value::Object(members) => {
                found.extend(members.get("$ref").and_then(Value::as_str));
                pending.extend(members.values());
            }
            Value::Array(elements) => pending.extend(elements),
            _ => {}
        }
    }
    found
}

/// Keywords that strict schemas have with some values only.
fn is_kept(keyword: &str, value: &Value) -> bool {
    match keyword {
        "enum" => value.as_array().is_some_and(|choices| {
            !choices
                .iter()
                .any(|choice| choice.is_array() || choice.is_object())
        }),
        "format" => value
            .as_str()
            .is_some_and(|format| FORMATS.contains(&format)),
        "minItems" => value.as_u64().is_some_and(|least| least < 2),
        "pattern" => value.as_str().is_some_and(is_plain_pattern),
        _ => false,
    }
}

fn is_plain_pattern(pattern: &str) -> bool {
    let refers_back = pattern
        .as_bytes()
        .windows(2)
        .any(|pair| pair[0] == b'\\' && (b'1'..=b'9').contains(&pair[1]));
    !refers_back && !NO_PATTERN.iter().any(|part| pattern.contains(part))
}
