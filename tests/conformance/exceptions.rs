//! Cases whose answer depends on JavaScript, and what is right in its place.
//!
//! Most of them agree all the same; what is not named here is compared in full.

use serde_json::{Value, json};

use crate::{
    cases::Case,
    validation::{differs, same},
};

/// What a case is compared with.
pub(crate) enum Right {
    /// The reference's answer.
    Reference,
    /// Another answer.
    Otherwise(Value),
    /// The reference's answer, but not all of it.
    Leniently(fn(&Value, &Value) -> Option<String>),
    /// Nothing.
    Excluded,
}

/// Draft 7 ignores what stands beside a `$ref`; pitool has no draft option.
const NEED_DRAFT_7: [&str; 3] = ["suite/7/ref/0018", "suite/7/ref/0020", "suite/7/ref/0021"];

/// A `$dynamicRef` is judged in its dynamic scope, but explained without.
const NO_REASON: &str = "no reason given";

/// What is right for a case.
pub(crate) fn right(case: &Case) -> Right {
    if NEED_DRAFT_7.contains(&case.id.as_str()) {
        return Right::Excluded;
    }
    let depends_on = |why: &str| case.why.iter().any(|reason| reason == why);
    if depends_on("valid arguments changed") || depends_on("valid arguments rejected") {
        return Right::Otherwise(json!({"ok": true, "value": case.arguments}));
    }
    if depends_on("engine error") {
        return instead_of_breaking_down(case);
    }
    if depends_on("regex error text") {
        // An invalid pattern rejects only values at its place.
        return Right::Otherwise(json!({"ok": false}));
    }
    if depends_on("number precision") || depends_on("number overflow") {
        return with_every_digit(case);
    }
    if depends_on("non-JSON type") && case.expect["ok"] == true && mentions_undefined(case) {
        return Right::Otherwise(json!({"ok": false}));
    }
    if depends_on("lone surrogate") || depends_on("integer-like key order") {
        return Right::Leniently(differs_beyond_order);
    }
    if depends_on(NO_REASON) {
        return match case.id.as_str() {
            "object/dependent-and-dependencies/0003" => {
                Right::Otherwise(json!({"ok": false, "errors": [
                    {"path": "/b", "keyword": "dependentRequired", "message": "required when a is present"},
                ]}))
            }
            _ => Right::Otherwise(json!({"ok": false})),
        };
    }
    Right::Reference
}

/// A boolean is a schema, and references without an end reject.
fn instead_of_breaking_down(case: &Case) -> Right {
    if case.expect["throws"].is_null() {
        return Right::Reference;
    }
    Right::Otherwise(match case.schema {
        Value::Bool(true) => json!({"ok": true, "value": case.arguments}),
        Value::Bool(false) => {
            let violation =
                json!({"path": "", "keyword": "false", "message": "no value is allowed here"});
            json!({"ok": false, "errors": [violation]})
        }
        _ => json!({"ok": false}),
    })
}

/// Integers of up to 64 bits keep every digit; a number beyond all doubles is the largest of them.
fn with_every_digit(case: &Case) -> Right {
    let sent = &case.arguments["v"];
    let kind = &case.schema["properties"]["v"]["type"];
    match case.id.rsplit_once('/').map_or("", |(group, _)| group) {
        "bigint-range/string" => {
            Right::Otherwise(json!({"ok": true, "value": {"v": pitool::json::compact(sent)}}))
        }
        "bigint-range/const" | "bigint-range/maximum" => Right::Otherwise(json!({"ok": false})),
        "number-overflow/value" if kind == "string" => {
            Right::Otherwise(json!({"ok": true, "value": {"v": pitool::json::compact(sent)}}))
        }
        "number-overflow/value" => Right::Otherwise(json!({"ok": true, "value": case.arguments})),
        _ => Right::Reference,
    }
}

fn mentions_undefined(case: &Case) -> bool {
    case.id.contains("undefined") && !case.arguments["v"].is_null() && case.arguments["v"] != "5"
}

/// Compares verdict and value, and of the errors where they are and of which keyword, in any order.
fn differs_beyond_order(expect: &Value, answer: &Value) -> Option<String> {
    let places = |errors: &Value| {
        let mut places: Vec<String> = errors
            .as_array()
            .into_iter()
            .flatten()
            .map(|error| format!("{} {}", error["path"], error["keyword"]))
            .collect();
        places.sort_unstable();
        places
    };
    if places(&expect["errors"]) != places(&answer["errors"]) {
        return Some(format!("expected {expect}, got {answer}"));
    }
    let rest: Value = ["ok", "value"]
        .into_iter()
        .filter(|field| !expect[field].is_null())
        .map(|field| (field.to_owned(), expect[field].clone()))
        .collect();
    differs(&rest, answer)
}

#[test]
fn numbers_compare_by_value() {
    assert!(same(&json!({"a": [1, 2.0]}), &json!({"a": [1.0, 2]})));
    assert!(!same(&json!({"a": 1}), &json!({"a": 1, "b": 1})));
}
