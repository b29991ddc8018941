//! Where two values differ, place by place.

use serde::Serialize;
use serde_json::Value;

use super::expectation::is_pattern;
use crate::json::pointer::escaped;

/// One place at which something else was expected.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// JSON Pointer; empty for the whole.
    pub path: String,
    /// What was expected; absent if nothing was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<Value>,
    /// What is there; absent if nothing is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actual: Option<Value>,
}

/// The innermost places at which an expectation and what it had to be differ, in the order of the expectation.
/// Lists of different lengths differ as a whole.
pub fn differences(expected: &Value, actual: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    collect("", Some(expected), Some(actual), &mut found);
    found
}

fn collect(
    path: &str,
    expected: Option<&Value>,
    actual: Option<&Value>,
    found: &mut Vec<Difference>,
) {
    match (expected, actual) {
        (Some(expected), Some(actual)) if expected == actual => {}
        (Some(Value::Object(a)), Some(Value::Object(b)))
            if !expected.is_some_and(is_pattern) || same_pattern(expected, actual) =>
        {
            let added = b.keys().filter(|name| !a.contains_key(*name));
            for name in a.keys().chain(added) {
                let step = escaped(name);
                collect(&format!("{path}/{step}"), a.get(name), b.get(name), found);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                collect(&format!("{path}/{index}"), Some(a), Some(b), found);
            }
        }
        _ => found.push(Difference {
            path: path.to_owned(),
            expected: expected.cloned(),
            actual: actual.cloned(),
        }),
    }
}

/// Whether one pattern stands on both sides, so that only what is in it differs.
fn same_pattern(expected: Option<&Value>, actual: Option<&Value>) -> bool {
    let name = |value: Option<&Value>| value?.as_object()?.keys().next().cloned();
    actual.is_some_and(is_pattern) && name(expected) == name(actual)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn case(expected: &Value, actual: &Value, found: &[(&str, Value, Value)]) {
        let differences: Vec<_> = differences(expected, actual)
            .into_iter()
            .map(|it| {
                (
                    it.path,
                    it.expected.unwrap_or_default(),
                    it.actual.unwrap_or_default(),
                )
            })
            .collect();
        let found: Vec<_> = found
            .iter()
            .map(|(path, a, b)| ((*path).to_owned(), a.clone(), b.clone()))
            .collect();
        assert_eq!(differences, found);
    }

    #[test]
    fn the_innermost_places_are_told() {
        case(&json!({"a": 1}), &json!({"a": 1}), &[]);
        case(
            &json!({"a": [{"b": 1}, 2], "c/d": 3}),
            &json!({"a": [{"b": 5}, 2], "e": 4}),
            &[
                ("/a/0/b", json!(1), json!(5)),
                ("/c~1d", json!(3), json!(null)),
                ("/e", json!(null), json!(4)),
            ],
        );
        case(
            &json!([1]),
            &json!([1, 2]),
            &[("", json!([1]), json!([1, 2]))],
        );
    }

    #[test]
    fn a_pattern_is_told_whole_unless_it_stands_on_both_sides() {
        let pattern = json!({"$matches": "x"});
        case(
            &json!([pattern]),
            &json!([{"a": 1}]),
            &[("/0", pattern.clone(), json!({"a": 1}))],
        );
        case(
            &json!({"$includes": {"a": 1, "b": 2}}),
            &json!({"$includes": {"a": 1, "b": 3}}),
            &[("/$includes/b", json!(2), json!(3))],
        );
    }
}
