//! The small language of expectations: JSON that is compared as it stands, with patterns in it.

use regex::Regex;
use serde_json::{Map, Value, json};

use crate::json::{self, pointer::escaped};
use crate::manifest::{Fault, nearest};
use crate::schema::Schema;

/// The names of the patterns.
const NAMES: [&str; 4] = ["$includes", "$matches", "$valid", "$is"];

/// A value that something is expected to be.
///
/// An object whose only key begins with `$` is a pattern:
///
/// | pattern | holds for |
/// |---|---|
/// | `{"$includes": {…}}` | an object with at least these members, on every level below too |
/// | `{"$includes": […]}` | an array with an element for each of these |
/// | `{"$includes": "text"}` | a text with this in it |
/// | `{"$matches": "regex"}` | a text in which the expression is found |
/// | `{"$valid": SCHEMA}` | what a JSON Schema accepts; `true` for anything |
/// | `{"$is": VALUE}` | exactly this, also where it looks like a pattern |
///
/// Everything else is compared as it stands; the order of keys does not matter.
#[derive(Debug, Clone, Copy)]
pub struct Expectation<'e>(pub &'e Value);

/// What an object with one key asks for.
enum Pattern<'e> {
    Includes(&'e Value),
    Matches(&'e Value),
    Valid(&'e Value),
    Is(&'e Value),
    Unknown(&'e str),
}

/// How objects are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Members {
    All,
    AtLeast,
}

impl Expectation<'_> {
    /// Whether it holds for a value.
    pub fn holds(self, actual: &Value) -> bool {
        self.updated(actual) == *self.0
    }

    /// The expectation that holds for `actual` and differs from this one as little as possible: whatever of it holds
    /// stays as it is written.
    pub fn updated(self, actual: &Value) -> Value {
        updated(self.0, actual, Members::All)
    }

    /// What is wrong with its patterns; `pointer` is where it stands.
    pub(super) fn faults(self, pointer: &str) -> Vec<Fault> {
        let mut faults = Vec::new();
        collect_faults(self.0, pointer, &mut faults);
        faults
    }
}

/// The pattern that a value is, if it is one.
fn pattern(value: &Value) -> Option<Pattern<'_>> {
    let members = value.as_object().filter(|members| members.len() == 1)?;
    let (name, operand) = members.iter().next()?;
    Some(match name.as_str() {
        "$includes" => Pattern::Includes(operand),
        "$matches" => Pattern::Matches(operand),
        "$valid" => Pattern::Valid(operand),
        "$is" => Pattern::Is(operand),
        name if name.starts_with('$') => Pattern::Unknown(name),
        _ => return None,
    })
}

/// Whether differences are told for a value as a whole only.
pub(super) fn is_pattern(value: &Value) -> bool {
    pattern(value).is_some()
}

fn updated(expected: &Value, actual: &Value, members: Members) -> Value {
    if let Some(pattern) = pattern(expected) {
        return updated_pattern(&pattern, actual).unwrap_or_else(|| expected.clone());
    }
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => {
            updated_object(expected, actual, members).into()
        }
        (Value::Array(expected), Value::Array(actual)) => actual
            .iter()
            .enumerate()
            .map(|(index, actual)| match expected.get(index) {
                Some(expected) => updated(expected, actual, members),
                None => literal(actual),
            })
            .collect(),
        _ if is_same(expected, actual) => expected.clone(),
        _ => literal(actual),
    }
}

fn updated_object(
    expected: &Map<String, Value>,
    actual: &Map<String, Value>,
    members: Members,
) -> Map<String, Value> {
    let kept = expected.iter().filter_map(|(name, expected)| {
        let actual = actual.get(name)?;
        Some((name.clone(), updated(expected, actual, members)))
    });
    let added = actual
        .iter()
        .filter(|(name, _)| members == Members::All && !expected.contains_key(*name))
        .map(|(name, actual)| (name.clone(), literal(actual)));
    kept.chain(added).collect()
}

/// What takes the place of a pattern that does not hold; none if it does.
fn updated_pattern(pattern: &Pattern<'_>, actual: &Value) -> Option<Value> {
    let holds = match (pattern, actual) {
        (Pattern::Includes(Value::Object(_)), Value::Object(_)) => {
            return included_members(pattern, actual);
        }
        (Pattern::Includes(Value::Array(wanted)), Value::Array(actual)) => {
            let is_there = |wanted| {
                actual
                    .iter()
                    .any(|actual| Expectation(wanted).holds(actual))
            };
            wanted.iter().all(is_there)
        }
        (Pattern::Includes(Value::String(part)), Value::String(actual)) => actual.contains(part),
        (Pattern::Matches(Value::String(expression)), Value::String(actual)) => {
            Regex::new(expression).is_ok_and(|expression| expression.is_match(actual))
        }
        (Pattern::Valid(schema), actual) => {
            Schema::compile(schema).is_ok_and(|schema| schema.check(actual))
        }
        (Pattern::Is(value), actual) => is_equal(value, actual),
        _ => false,
    };
    (!holds).then(|| literal(actual))
}

fn included_members(pattern: &Pattern<'_>, actual: &Value) -> Option<Value> {
    let Pattern::Includes(expected) = pattern else {
        return None;
    };
    let now = updated(expected, actual, Members::AtLeast);
    (now != **expected).then(|| json!({"$includes": now}))
}

/// The value as an expectation of exactly it.
fn literal(value: &Value) -> Value {
    if is_pattern(value) {
        return json!({"$is": value});
    }
    match value {
        Value::Array(items) => items.iter().map(literal).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (name.clone(), literal(value)))
            .collect::<Map<_, _>>()
            .into(),
        scalar => scalar.clone(),
    }
}

/// Whether two scalars are the same: numbers by value, however they are written.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            a == b || json::number_text(a) == json::number_text(b)
        }
        _ => a == b,
    }
}

fn is_equal(a: &Value, b: &Value) -> bool {
    json::compact(a) == json::compact(b) || a == b
}

fn collect_faults(value: &Value, pointer: &str, faults: &mut Vec<Fault>) {
    let Some(pattern) = pattern(value) else {
        match value {
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    collect_faults(item, &format!("{pointer}/{index}"), faults);
                }
            }
            Value::Object(members) => {
                for (name, member) in members {
                    let name = escaped(name);
                    collect_faults(member, &format!("{pointer}/{name}"), faults);
                }
            }
            _ => {}
        }
        return;
    };
    let at = |name: &str, message: String| Fault::new(format!("{pointer}/{name}"), message);
    match pattern {
        Pattern::Includes(operand @ (Value::Object(_) | Value::Array(_))) => {
            collect_faults(operand, &format!("{pointer}/$includes"), faults);
        }
        Pattern::Includes(Value::String(_)) | Pattern::Is(_) => {}
        Pattern::Includes(other) => faults.push(at(
            "$includes",
            format!(
                "expected an object, an array or a string, got {}",
                json::kind(other)
            ),
        )),
        Pattern::Matches(Value::String(expression)) => {
            if let Err(error) = Regex::new(expression) {
                faults.push(at("$matches", regex_fault(&error)));
            }
        }
        Pattern::Matches(other) => faults.push(at(
            "$matches",
            format!("expected a regular expression, got {}", json::kind(other)),
        )),
        Pattern::Valid(schema) => {
            if let Err(error) = Schema::compile(schema) {
                faults.push(at("$valid", error.to_string()));
            }
        }
        Pattern::Unknown(name) => faults.push(Fault {
            hint: Some(unknown_hint(name)),
            ..at(name, format!("there is no pattern \"{name}\""))
        }),
    }
}

/// The last line of the message names the fault; those above draw the expression.
fn regex_fault(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    let reason = last.strip_prefix("error: ").unwrap_or(last);
    format!("not a regular expression: {reason}")
}

fn unknown_hint(name: &str) -> String {
    match nearest(name, NAMES.into_iter()).first() {
        Some(meant) => format!("did you mean \"{meant}\"?"),
        None => format!(
            "patterns are {}; a value that only looks like one is {{\"$is\": {{\"{name}\": …}}}}",
            NAMES.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn holds(expected: &Value, actual: &Value) {
        assert_eq!(&Expectation(expected).updated(actual), expected);
    }

    #[track_caller]
    fn becomes(expected: &Value, actual: &Value, updated: &Value) {
        assert_eq!(&Expectation(expected).updated(actual), updated);
        assert!(!Expectation(expected).holds(actual));
    }

    #[test]
    fn values_are_compared_as_they_stand() {
        holds(
            &json!({"a": [1, null], "b": "x"}),
            &json!({"b": "x", "a": [1, null]}),
        );
        holds(&json!(1.0), &json!(1));
        becomes(
            &json!({"a": 1}),
            &json!({"a": 1, "b": 2}),
            &json!({"a": 1, "b": 2}),
        );
        becomes(&json!({"a": 1, "b": 2}), &json!({"a": 1}), &json!({"a": 1}));
        becomes(&json!([1, 2]), &json!([1]), &json!([1]));
        becomes(&json!("1"), &json!(1), &json!(1));
    }

    #[test]
    fn included_members_are_enough_on_every_level() {
        let expected = json!({"$includes": {"a": {"b": 1}, "list": [{"c": 2}]}});
        holds(
            &expected,
            &json!({"a": {"b": 1, "x": 0}, "list": [{"c": 2, "y": 0}], "z": 0}),
        );
        becomes(
            &expected,
            &json!({"a": {"b": 2, "x": 0}, "list": [{"c": 2, "y": 0}], "z": 0}),
            &json!({"$includes": {"a": {"b": 2}, "list": [{"c": 2}]}}),
        );
        becomes(&expected, &json!([]), &json!([]));
    }

    #[test]
    fn included_elements_and_texts_may_stand_anywhere() {
        holds(
            &json!({"$includes": [3, {"$matches": "^b"}]}),
            &json!(["bc", 1, 3]),
        );
        becomes(&json!({"$includes": [4]}), &json!([3]), &json!([3]));
        holds(&json!({"$includes": "b"}), &json!("abc"));
        becomes(&json!({"$includes": "d"}), &json!("abc"), &json!("abc"));
    }

    #[test]
    fn texts_match_and_values_are_valid() {
        holds(&json!({"$matches": "^\\d{4}-"}), &json!("2026-01-01"));
        becomes(&json!({"$matches": "^\\d$"}), &json!(5), &json!(5));
        holds(
            &json!({"$valid": {"type": "integer", "minimum": 1}}),
            &json!(5),
        );
        holds(&json!({"$valid": true}), &json!(null));
        becomes(
            &json!({"$valid": {"type": "integer"}}),
            &json!("5"),
            &json!("5"),
        );
    }

    #[test]
    fn what_looks_like_a_pattern_is_written_so_that_it_is_none() {
        let actual = json!({"a": {"$ref": "#"}});
        becomes(&json!(1), &actual, &json!({"a": {"$is": {"$ref": "#"}}}));
        holds(&json!({"a": {"$is": {"$ref": "#"}}}), &actual);
    }

    #[test]
    fn an_update_keeps_the_patterns_that_hold() {
        becomes(
            &json!([{"id": {"$matches": "^c"}, "text": {"$includes": "old"}}]),
            &json!([{"id": "c1", "text": "new"}]),
            &json!([{"id": {"$matches": "^c"}, "text": "new"}]),
        );
    }

    #[track_caller]
    fn fault(expected: &Value, message: &str, hint: Option<&str>) {
        let faults = Expectation(expected).faults("/results/0");
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert_eq!(faults[0].full_message(), message);
        assert_eq!(faults[0].hint.as_deref(), hint);
    }

    #[test]
    fn faults_of_patterns_are_found_where_they_stand() {
        fault(
            &json!({"a": {"$match": "x"}}),
            "results.0.a.$match: there is no pattern \"$match\"",
            Some("did you mean \"$matches\"?"),
        );
        fault(
            &json!({"$includes": [{"$matches": "("}]}),
            "results.0.$includes.0.$matches: not a regular expression: unclosed group",
            None,
        );
        fault(
            &json!({"$matches": 1}),
            "results.0.$matches: expected a regular expression, got integer",
            None,
        );
        fault(
            &json!({"$includes": null}),
            "results.0.$includes: expected an object, an array or a string, got null",
            None,
        );
        assert_eq!(
            Expectation(&json!({"$ref": "#", "b": 1})).faults("").len(),
            0
        );
        assert_eq!(Expectation(&json!({"$is": {"$x": 1}})).faults("").len(), 0);
        assert_eq!(Expectation(&json!({"$valid": 5})).faults("").len(), 1);
    }
}
