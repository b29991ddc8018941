//! Violations as the reference words and orders them.

use serde_json::{Map, json};

use super::*;
use crate::schema::Schema;

/// Compares all violations, each as `POINTER KEYWORD MESSAGE`.
#[track_caller]
fn case(schema: &Value, value: &Value, expected: &[&str]) {
    let schema = Schema::compile(schema).expect("the schema compiles");
    let lines: Vec<String> = schema
        .violations(value)
        .iter()
        .map(
            |Violation {
                 path,
                 keyword,
                 message,
             }| format!("{path} {keyword} {message}"),
        )
        .collect();
    assert_eq!(lines, expected, "{value}");
}

#[test]
fn a_wrong_type_is_all_that_a_node_reports() {
    case(
        &json!({"type": ["integer", "null"], "minimum": 3}),
        &json!("x"),
        &[" type expected integer or null, got string"],
    );
    case(
        &json!({"type": "integer", "minimum": 3}),
        &json!(1.5),
        &[" type expected integer, got number"],
    );
    case(
        &json!({"type": "any"}),
        &json!(2.0),
        &[" type expected any, got integer"],
    );
    case(
        &json!(false),
        &json!({}),
        &[" false no value is allowed here"],
    );
}

#[test]
fn choices_are_listed_up_to_twenty() {
    case(
        &json!({"enum": ["a", 1.0, {"b": []}]}),
        &json!(null),
        &[r#" enum expected one of ["a",1,{"b":[]}]"#],
    );
    let many: Vec<usize> = (1..=22).collect();
    let expected = " enum expected one of [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20, ... and 2 more]";
    case(&json!({"enum": many}), &json!(0), &[expected]);
    case(
        &json!({"const": {"a": 1}}),
        &json!({"a": 2}),
        &[r#" const expected {"a":1}"#],
    );
}

#[test]
fn strings_are_measured_in_characters() {
    case(
        &json!({"minLength": 3, "pattern": "^x", "format": "email"}),
        &json!("\u{1F600}\u{1F600}"),
        &[
            " minLength expected at least 3 characters",
            " pattern expected to match ^x",
            " format expected format email",
        ],
    );
    case(
        &json!({"maxLength": 1}),
        &json!("ab"),
        &[" maxLength expected at most 1 characters"],
    );
    case(
        &json!({"format": "url"}),
        &json!("x"),
        &[" format expected format url"],
    );
    case(
        &json!({"pattern": "("}),
        &json!("x"),
        &[" pattern expected to match ("],
    );
}

#[test]
fn numbers_are_compared_digit_by_digit() {
    case(
        &json!({"minimum": 9_007_199_254_740_993_u64, "exclusiveMinimum": 1e21, "multipleOf": 5}),
        &json!(9_007_199_254_740_992_u64),
        &[
            " minimum expected >= 9007199254740993",
            " exclusiveMinimum expected > 1e+21",
            " multipleOf expected a multiple of 5",
        ],
    );
    case(
        &json!({"maximum": 0.5, "exclusiveMaximum": -1.5}),
        &json!(1),
        &[
            " maximum expected <= 0.5",
            " exclusiveMaximum expected < -1.5",
        ],
    );
    case(
        &json!({"exclusiveMaximum": -5.0}),
        &json!(-5),
        &[" exclusiveMaximum expected < -5"],
    );
}

#[test]
fn objects_report_in_the_order_of_the_rules() {
    let schema = json!({
        "required": ["z", "a/b"],
        "properties": {"p": {"type": "string"}, "q": {"type": "string"}},
        "patternProperties": {"^n": {"type": "null"}, "1$": false},
        "additionalProperties": false,
        "propertyNames": {"maxLength": 2},
        "minProperties": 9,
        "dependentRequired": {"p": ["r"]},
        "dependencies": {"q": {"required": ["s"]}, "n1": ["t"]},
        "dependentSchemas": {"p": {"maxProperties": 1}},
    });
    case(
        &schema,
        &json!({"long": 1, "q": 1, "n1": 1, "p": 1}),
        &[
            "/z required missing",
            "/a~1b required missing",
            "/p type expected string, got integer",
            "/q type expected string, got integer",
            "/long additionalProperties unknown field",
            "/long propertyNames invalid property name",
            "/n1 type expected null, got integer",
            "/n1 false no value is allowed here",
            " minProperties expected at least 9 properties",
            "/r dependentRequired required when p is present",
            "/t dependentRequired required when n1 is present",
            "/s required missing",
            " maxProperties expected at most 1 properties",
        ],
    );
    case(
        &json!({"patternProperties": {"[": true}}),
        &json!({"a": 1}),
        &[" patternProperties invalid pattern ["],
    );
}

#[test]
fn what_the_older_dependencies_miss_comes_first_but_nothing_goes_unsaid() {
    let schema = json!({"dependentRequired": {"a": ["b"]}, "dependencies": {"a": ["c"]}});
    case(
        &schema,
        &json!({"a": 1}),
        &["/c dependentRequired required when a is present"],
    );
    case(
        &schema,
        &json!({"a": 1, "c": 1}),
        &["/b dependentRequired required when a is present"],
    );
}

#[test]
fn arrays_report_items_then_counts() {
    let schema = json!({
        "prefixItems": [true], "items": {"type": "string"}, "minItems": 9, "maxItems": 1, "uniqueItems": true,
        "contains": {"type": "null"},
    });
    case(
        &schema,
        &json!([1, 1.0]),
        &[
            "/1 type expected string, got integer",
            " minItems expected at least 9 items",
            " maxItems expected at most 1 items",
            " uniqueItems expected unique items",
            " contains expected at least 1 matching item",
        ],
    );
    let contains = |least: Value, most: Value| json!({"contains": {}, "minContains": least, "maxContains": most});
    case(
        &json!({"contains": {}, "minContains": 3}),
        &json!([1]),
        &[" contains expected at least 3 matching items"],
    );
    case(
        &contains(json!(0), json!(1)),
        &json!([1, 2]),
        &[" contains expected at most 1 matching item"],
    );
    case(
        &contains(json!(1), json!(1)),
        &json!([1, 2]),
        &[" contains expected between 1 and 1 matching items"],
    );
}

#[test]
fn schemas_in_place_report_after_the_value_itself() {
    case(
        &json!({"maximum": 1, "allOf": [{"maximum": 2}], "not": {"type": "number"}, "if": true, "then": false, "$ref": "#/x"}),
        &json!(5),
        &[
            " maximum expected <= 1",
            " maximum expected <= 2",
            " not must not match the schema in not",
            " false no value is allowed here",
            " $ref unresolved reference #/x",
        ],
    );
    case(
        &json!({"if": {"type": "string"}, "then": true, "else": {"const": 1}}),
        &json!(5),
        &[" const expected 1"],
    );
}

#[test]
fn what_is_not_evaluated_is_told_only_if_nothing_else_is() {
    let schema = json!({
        "properties": {"a": {"type": "string"}},
        "anyOf": [{"properties": {"b": true}, "required": ["b"]}, true],
        "unevaluatedProperties": false,
    });
    case(
        &schema,
        &json!({"b": 1, "c": 1}),
        &["/c unevaluatedProperties unknown field"],
    );
    case(
        &schema,
        &json!({"a": 1, "c": 1}),
        &["/a type expected string, got integer"],
    );
    case(
        &json!({"prefixItems": [true], "contains": {"const": 3}, "unevaluatedItems": {"type": "null"}}),
        &json!([1, 2, 3]),
        &["/1 type expected null, got integer"],
    );
    case(
        &json!({"items": [true], "unevaluatedItems": false}),
        &json!([1, 2]),
        &["/1 unevaluatedItems unexpected item"],
    );
}

#[test]
fn tagged_unions_are_judged_by_their_tag() {
    let branch = |tag: &str| json!({"properties": {"kind": {"const": tag}, "n": {"type": "integer"}}, "required": ["kind"]});
    let schema =
        json!({"oneOf": [{"$ref": "#/$defs/a"}, branch("b")], "$defs": {"a": branch("a")}});
    case(
        &schema,
        &json!({"kind": "b", "n": "x"}),
        &["/n type expected integer, got string"],
    );
    case(
        &schema,
        &json!({"kind": "c", "n": "x"}),
        &[r#"/kind oneOf expected one of ["a","b"]"#],
    );
    case(
        &schema,
        &json!({}),
        &[r#"/kind oneOf expected one of ["a","b"]"#],
    );
}

#[test]
fn other_unions_blame_the_branch_that_was_most_likely_meant() {
    let schema = json!({"anyOf": [
        {"type": "string"},
        {"type": "object", "properties": {"a": {"type": "null"}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}},
    ]});
    case(
        &schema,
        &json!({"a": "x", "b": 1}),
        &["/b type expected string, got integer"],
    );
    case(
        &schema,
        &json!({"a": 1}),
        &["/a type expected null, got integer"],
    );
    case(&schema, &json!(5), &[" type expected string, got integer"]);
    case(
        &json!({"anyOf": []}),
        &json!(5),
        &[" anyOf matches no alternative"],
    );
    case(
        &json!({"oneOf": [true, {}]}),
        &json!(5),
        &[" oneOf matches more than one alternative"],
    );
}

#[test]
fn cycles_without_progress_are_named_at_their_place() {
    let named = |definitions: Value| json!({"properties": {"p": {"$ref": "#/$defs/a"}}, "$defs": definitions});
    let circular = ["/p $ref circular reference #/$defs/a"];
    case(
        &named(json!({"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}})),
        &json!({"p": 1}),
        &circular,
    );
    case(
        &named(json!({"a": {"allOf": [{"$ref": "#/$defs/a"}]}})),
        &json!({"p": 1}),
        &circular,
    );
    case(
        &json!({"$ref": "#"}),
        &json!({}),
        &[" $ref circular reference #"],
    );
    let with_way_out = json!({"a": {"anyOf": [{"$ref": "#/$defs/b"}, {"type": "integer"}]}, "b": {"$ref": "#/$defs/a"}});
    case(
        &named(with_way_out),
        &json!({"p": "x"}),
        &["/p type expected integer, got string"],
    );
}

#[test]
fn recursive_unions_are_not_walked_again_and_again() {
    let branch = |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}, "next": {"$ref": "#"}}});
    let schema = json!({"anyOf": [branch("a"), branch("b"), branch("c"), {"type": "null"}]});
    let depth = 60;
    let value = (0..depth).fold(json!(7), |next, _| json!({"next": next}));
    let path = "/next".repeat(depth);
    case(
        &schema,
        &value,
        &[&format!("{path} type expected object, got integer")],
    );
}

#[test]
fn a_value_of_the_greatest_depth_is_explained() {
    let schema =
        json!({"type": ["array", "string"], "items": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}});
    let value = (0..json::MAX_DEPTH).fold(json!(7), |item, _| json!([item]));
    let path = "/0".repeat(json::MAX_DEPTH);
    case(
        &schema,
        &value,
        &[&format!(
            "{path} type expected array or string, got integer"
        )],
    );
}

#[test]
fn a_schema_that_leads_from_node_to_node_is_followed_only_so_far() {
    let chain: Map<String, Value> = (0..120)
        .map(|index| {
            (
                index.to_string(),
                json!({"allOf": [{"$ref": format!("#/$defs/{}", index + 1)}]}),
            )
        })
        .chain([("120".to_owned(), json!(false))])
        .collect();
    let schema = json!({"properties": {"p": {"$ref": "#/$defs/0"}}, "$defs": chain});
    case(&schema, &json!({"p": 1}), &["/p schema invalid"]);
}

#[test]
fn repetition_at_every_level_has_a_limit() {
    let level = json!({"properties": {"n": {"$ref": "#/$defs/n"}}});
    let schema =
        json!({"$ref": "#/$defs/n", "$defs": {"n": {"type": "object", "allOf": [level, level]}}});
    let value = (0..17).fold(json!(7), |next, _| json!({"n": next}));
    assert_eq!(
        Schema::compile(&schema)
            .expect("the schema compiles")
            .violations(&value)
            .len(),
        MOST
    );
}
