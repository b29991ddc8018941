//! Validation: the coerced value, or every violation in order and the text that the model reads.

use pitool::schema::{AcceptOptions, Schema, error_text};
use serde_json::{Value, json};

use crate::{
    cases::{Case, committed, read_outside},
    exceptions::{self, Right},
};

#[test]
fn rules_agree() {
    replay(&committed("rules.jsonl"), 4_705);
}

#[test]
fn odd_json_agrees() {
    replay(&committed("rules-odd-json.jsonl"), 34);
}

#[test]
fn the_official_suite_agrees() {
    replay(&committed("suite.jsonl"), 3_643);
}

#[test]
fn real_tools_agree() {
    let cases = read_outside("real-tools.jsonl");
    replay(&cases, cases.len());
}

#[test]
fn random_schemas_agree() {
    let cases = read_outside("fuzz.jsonl");
    replay(&cases, cases.len());
}

/// Replays cases and lists all that differ.
#[track_caller]
fn replay(cases: &[Case], count: usize) {
    assert_eq!(
        cases.len(),
        count,
        "a case file has another number of cases"
    );
    let differences: Vec<String> = cases
        .iter()
        .filter_map(|case| Some(format!("{}: {}", case.id, difference(case)?)))
        .collect();
    let shown = differences
        .iter()
        .take(40)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join("\n");
    assert!(
        differences.is_empty(),
        "{} of {} cases differ:\n{shown}",
        differences.len(),
        cases.len()
    );
}

/// What differs from what is right, if anything does.
fn difference(case: &Case) -> Option<String> {
    if case.is_arguments_error {
        return None;
    }
    let answer = answer(case);
    match exceptions::right(case) {
        Right::Reference => differs(&case.expect, &answer),
        Right::Otherwise(expect) => differs(&expect, &answer),
        Right::Leniently(compare) => compare(&case.expect, &answer),
        Right::Excluded => None,
    }
    .or_else(|| differs_unchecked(case))
}

/// pitool's answer in the shape of `expect`.
fn answer(case: &Case) -> Value {
    let schema = match Schema::compile(&case.schema) {
        Ok(schema) => schema,
        Err(error) => return json!({"compileError": error.to_string()}),
    };
    match schema.accept(&case.arguments, &AcceptOptions::default()) {
        Ok(accepted) => json!({"ok": true, "value": accepted.value}),
        Err(rejected) => json!({
            "ok": false,
            "errors": rejected.violations,
            "text": error_text("t", &rejected.violations, &case.arguments),
        }),
    }
}

/// Whether the verdict on the arguments as they are differs, where the case knows it.
fn differs_unchecked(case: &Case) -> Option<String> {
    let expected = case
        .check
        .filter(|_| !matches!(exceptions::right(case), Right::Excluded))?;
    let verdict = Schema::compile(&case.schema).ok()?.check(&case.arguments);
    (verdict != expected).then(|| format!("valid as it is: {verdict}"))
}

/// Compares every field that is expected.
pub(crate) fn differs(expect: &Value, answer: &Value) -> Option<String> {
    let fields = expect.as_object().expect("what is expected is an object");
    let differing = fields
        .iter()
        .find(|(field, expected)| !same(expected, &answer[field.as_str()]))?;
    Some(format!(
        "expected {} {}, got {answer}",
        differing.0, differing.1
    ))
}

/// Whether two values are equal: numbers as doubles, members in any order.
pub(crate) fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(key, left)| right.get(key).is_some_and(|right| same(left, right)))
        }
        _ => left == right,
    }
}
