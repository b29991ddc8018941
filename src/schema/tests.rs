//! What a schema makes of arguments, case by case.

use serde_json::json;

use super::*;

const EXTENDED: AcceptOptions = AcceptOptions {
    coercion: Coercion::Extended,
    unknown_arguments: UnknownArguments::Schema,
    lossy: Lossy::Allow,
};
const OFF: AcceptOptions = AcceptOptions {
    coercion: Coercion::Off,
    ..EXTENDED
};
const NOTHING_LOST: AcceptOptions = AcceptOptions {
    coercion: Coercion::Standard,
    lossy: Lossy::Deny,
    ..EXTENDED
};

fn compiled(schema: &Value) -> Schema {
    Schema::compile(schema).expect("the schema compiles")
}

/// An object schema with one required property `v`.
fn with_v(schema: &Value) -> Value {
    json!({"type": "object", "properties": {"v": schema}, "required": ["v"]})
}

#[track_caller]
fn accepts_by(options: AcceptOptions, schema: &Value, arguments: &Value, expected: &Value) {
    match compiled(schema).accept(arguments, &options) {
        Ok(accepted) => assert_eq!(accepted.value.as_ref(), expected, "{schema} of {arguments}"),
        Err(rejected) => panic!("{schema} rejects {arguments}: {:?}", rejected.violations),
    }
}

#[track_caller]
fn rejects_by(options: AcceptOptions, schema: &Value, arguments: &Value) {
    if let Ok(accepted) = compiled(schema).accept(arguments, &options) {
        panic!("{schema} accepts {arguments} as {}", accepted.value);
    }
}

#[track_caller]
fn accepts(schema: &Value, arguments: &Value, expected: &Value) {
    accepts_by(AcceptOptions::default(), schema, arguments, expected);
}

#[track_caller]
fn rejects(schema: &Value, arguments: &Value) {
    rejects_by(AcceptOptions::default(), schema, arguments);
}

/// Coerces the property `v`.
#[track_caller]
fn becomes(schema: &Value, value: &Value, expected: &Value) {
    accepts(
        &with_v(schema),
        &json!({"v": value}),
        &json!({"v": expected}),
    );
}

#[track_caller]
fn stays_wrong(schema: &Value, value: &Value) {
    rejects(&with_v(schema), &json!({"v": value}));
}

/// The steps of accepting `v`, as `FROM > TO RULE`, with an exclamation mark where something is lost.
#[track_caller]
fn steps(schema: &Value, value: &Value) -> Vec<String> {
    let arguments = json!({"v": value});
    let accepted = compiled(&with_v(schema))
        .accept(&arguments, &EXTENDED)
        .expect("the arguments are coerced");
    let written = |step: &Step| {
        let to = step.to.as_ref().map_or_else(String::new, Value::to_string);
        format!(
            "{} {} > {to} {}{}",
            step.path,
            step.from,
            step.rule,
            if step.lossy { "!" } else { "" }
        )
    };
    accepted.steps.iter().map(written).collect()
}

mod what_the_data_does_not_pin {
    use super::*;

    #[test]
    fn own_members_are_converted_beside_a_union() {
        let schema = json!({
            "type": "object",
            "properties": {"n": {"type": "integer"}},
            "anyOf": [{"properties": {"x": {"type": "integer"}}, "required": ["x"]}, {"required": ["y"]}],
        });
        accepts(
            &schema,
            &json!({"n": "5", "x": "1"}),
            &json!({"n": 5, "x": 1}),
        );
    }

    #[test]
    fn any_of_decides_before_one_of() {
        stays_wrong(
            &json!({"anyOf": [{}], "oneOf": [{"type": "array"}]}),
            &json!({}),
        );
    }

    #[test]
    fn a_branch_must_make_the_whole_acceptable() {
        let schema = json!({"anyOf": [{"type": ["boolean"]}, {"enum": [false], "type": "number"}]});
        stays_wrong(&schema, &json!("False"));
        becomes(
            &json!({"anyOf": [{"const": "5"}, {"type": ["string"]}]}),
            &json!(0),
            &json!("0"),
        );
    }

    #[test]
    fn every_matching_pattern_converts() {
        let schema =
            json!({"type": "object", "patternProperties": {"^a": {}, "^ab": {"type": "number"}}});
        accepts(&schema, &json!({"ab": "0x10"}), &json!({"ab": 16}));
    }

    #[test]
    fn an_items_array_goes_before_prefix_items() {
        let schema = json!({"type": "array", "items": [{"type": "string"}], "prefixItems": [{"type": "integer"}]});
        becomes(&schema, &json!([true]), &json!(["true"]));
        let item =
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["k"]});
        let prefix = json!({"type": "object", "properties": {"b": {"type": "string"}}});
        let schema = json!({"type": "array", "items": [item], "prefixItems": [prefix]});
        becomes(
            &schema,
            &json!([{"a": null, "b": null, "k": 1}]),
            &json!([{"b": null, "k": 1}]),
        );
    }

    #[test]
    fn a_big_integer_is_written_canonically() {
        for text in [" 12n", "+12n", "012n", "\u{85}5"] {
            stays_wrong(&json!({"type": "integer"}), &json!(text));
        }
        becomes(&json!({"type": "integer"}), &json!("12n"), &json!(12));
    }
}

mod reported_by_the_public {
    use super::*;

    #[test]
    fn numeric_strings_reach_the_tool_as_numbers() {
        let schema = json!({
            "type": "object",
            "properties": {"path": {"type": "string"}, "offset": {"type": "number"}, "limit": {"type": "integer"}},
            "required": ["path"],
        });
        let sent = json!({"path": "a", "offset": "500", "limit": "100"});
        accepts(
            &schema,
            &sent,
            &json!({"path": "a", "offset": 500, "limit": 100}),
        );
        let table =
            json!({"type": "array", "items": {"type": "array", "items": {"type": "number"}}});
        becomes(&table, &json!([["1", 2], "3"]), &json!([[1, 2], [3]]));
    }

    #[test]
    fn an_object_as_json_text_is_read_where_no_string_is_taken() {
        let object = |kind: &str, extra: &str, schema: &Value| {
            json!({
                "type": "object",
                "properties": {"kind": {"const": kind}, extra: schema},
                "required": ["kind", extra],
            })
        };
        let agent = object("agent", "name", &json!({"type": "string"}));
        let user = object("user", "uid", &json!({"type": "integer"}));
        let schema = with_v(&json!({"oneOf": [agent.clone(), user.clone()]}));
        let sent = json!({"v": "{\"kind\":\"agent\",\"name\":\"r\"}"});
        accepts_by(
            EXTENDED,
            &schema,
            &sent,
            &json!({"v": {"kind": "agent", "name": "r"}}),
        );
        rejects(&schema, &sent);
        let also_text = with_v(&json!({"oneOf": [agent, user, {"type": "string"}]}));
        accepts_by(EXTENDED, &also_text, &sent, &sent);
    }

    #[test]
    fn only_what_is_clearly_a_boolean_becomes_one() {
        for value in [json!("false"), json!("False"), json!("0"), json!(0)] {
            becomes(&json!({"type": "boolean"}), &value, &json!(false));
        }
        for value in [json!("no"), json!(""), json!(2)] {
            stays_wrong(&json!({"type": "boolean"}), &value);
        }
    }

    #[test]
    fn a_string_stays_where_one_is_taken() {
        becomes(
            &json!({"type": ["integer", "string"]}),
            &json!("007"),
            &json!("007"),
        );
        becomes(
            &json!({"anyOf": [{"type": "integer"}, {"type": "string"}]}),
            &json!("007"),
            &json!("007"),
        );
        becomes(&json!({"type": "string"}), &json!("020"), &json!("020"));
    }

    #[test]
    fn integers_are_read_from_text() {
        for (sent, expected) in [
            ("007", 7),
            ("0x10", 16),
            ("1e3", 1000),
            (" 12 ", 12),
            ("", 0),
            ("3.7", 3),
        ] {
            becomes(&json!({"type": "integer"}), &json!(sent), &json!(expected));
        }
        becomes(&json!({"type": "integer"}), &json!(3.7), &json!(3));
    }

    #[test]
    fn an_enum_without_type_decides_by_its_members() {
        becomes(&json!({"enum": [1, 2, 3]}), &json!("2"), &json!(2));
        becomes(&json!({"enum": [1, 2, 3]}), &json!("02"), &json!(2));
        becomes(&json!({"enum": ["1", "2"]}), &json!(1), &json!("1"));
        becomes(&json!({"const": true}), &json!("true"), &json!(true));
        stays_wrong(
            &json!({"type": "string", "enum": ["low", "high"]}),
            &json!("LOW"),
        );
    }

    #[test]
    fn arguments_behind_a_reference_are_converted() {
        let query = json!({
            "type": "object",
            "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
            "required": ["query"],
        });
        let schema = json!({"type": "object", "$defs": {"Q": query}, "properties": {"q": {"$ref": "#/$defs/Q"}}, "required": ["q"]});
        let sent = json!({"q": {"query": "on call", "limit": "5"}});
        accepts(
            &schema,
            &sent,
            &json!({"q": {"query": "on call", "limit": 5}}),
        );
        let with_null = json!({"q": {"query": "x", "limit": null}});
        accepts(
            &schema,
            &with_null,
            &json!({"q": {"query": "x", "limit": 0}}),
        );
        accepts_by(EXTENDED, &schema, &with_null, &json!({"q": {"query": "x"}}));
    }

    #[test]
    fn a_tuple_needs_no_marker_and_minds_none() {
        let tuple = json!({"type": "array", "items": [{"type": "string"}, {"type": "integer"}], "additionalItems": false});
        for marker in [
            None,
            Some("http://json-schema.org/draft-07/schema#"),
            Some("https://example.com/unknown"),
        ] {
            let mut schema = with_v(&tuple);
            if let Some(marker) = marker {
                schema["$schema"] = json!(marker);
            }
            accepts(&schema, &json!({"v": ["a", "1"]}), &json!({"v": ["a", 1]}));
            rejects(&schema, &json!({"v": ["a", 1, 2]}));
        }
        let siblings = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "definitions": {"S": {"type": "string"}},
            "properties": {"s": {"$ref": "#/definitions/S", "maxLength": 2}},
        });
        rejects(&siblings, &json!({"s": "abcdef"}));
    }

    #[test]
    fn unknown_formats_say_nothing_and_known_ones_count() {
        becomes(
            &json!({"type": "integer", "format": "uint32"}),
            &json!(5),
            &json!(5),
        );
        becomes(
            &json!({"type": "string", "format": "made-up"}),
            &json!("x"),
            &json!("x"),
        );
        stays_wrong(
            &json!({"type": "string", "format": "email"}),
            &json!("nope"),
        );
        stays_wrong(
            &json!({"type": "string", "format": "date-time"}),
            &json!("2026-02-30T00:00:00Z"),
        );
        stays_wrong(
            &json!({"type": "string", "format": "date-time"}),
            &json!("2026-02-20T00:00:00"),
        );
    }

    #[test]
    fn a_tree_is_converted_at_every_level() {
        let node = json!({
            "type": "object",
            "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/N"}}},
            "required": ["name"],
        });
        let schema = json!({"type": "object", "$defs": {"N": node}, "properties": {"root": {"$ref": "#/$defs/N"}}});
        let sent = json!({"root": {"name": 1, "children": [{"name": "b"}]}});
        accepts(
            &schema,
            &sent,
            &json!({"root": {"name": "1", "children": [{"name": "b"}]}}),
        );
        rejects(&schema, &json!({"root": "x"}));
        rejects(&schema, &json!({"root": {"name": "a", "children": "x"}}));
    }

    #[test]
    fn a_cycle_that_goes_nowhere_rejects_at_its_place() {
        let schema = json!({
            "type": "object",
            "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}},
            "properties": {"p": {"$ref": "#/$defs/A"}, "q": {"type": "integer"}},
        });
        rejects(&schema, &json!({"p": 1}));
        accepts(&schema, &json!({"q": "1"}), &json!({"q": 1}));
        assert_eq!(compiled(&schema).findings().len(), 2);
    }
}

mod depth {
    use super::*;

    /// Wraps a value in lists; moved, not copied, however deep it is.
    fn nested(levels: usize, innermost: Value) -> Value {
        (0..levels).fold(innermost, |value, _| Value::Array(vec![value]))
    }

    fn with_member(value: Value) -> Value {
        Value::Object([("v".to_owned(), value)].into_iter().collect())
    }

    fn tree(levels: usize, innermost: &Value) -> Value {
        (0..levels).fold(json!({"n": innermost}), |child, _| {
            let mut node = json!({"n": 1});
            node["c"] = child;
            node
        })
    }

    fn tree_schema() -> Value {
        json!({"type": "object", "properties": {"n": {"type": "integer"}, "c": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}})
    }

    #[test]
    fn values_of_512_levels_work() {
        let free = json!({"type": "object"});
        let deep = with_member(nested(511, json!(1)));
        accepts(&free, &deep, &deep);
        let schema = compiled(&tree_schema());
        let sent = tree(511, &json!("5"));
        let accepted = schema
            .accept(&sent, &AcceptOptions::default())
            .expect("coerced");
        assert_eq!(accepted.value.as_ref(), &tree(511, &json!(5)));
        assert!(schema.accept(&tree(511, &json!("x")), &EXTENDED).is_err());
        assert!(!schema.violations(&tree(511, &json!("x"))).is_empty());
    }

    #[test]
    fn deeper_ones_are_an_error() {
        let deep = with_member(nested(512, json!(1)));
        let rejected = compiled(&json!({"type": "object"}))
            .accept(&deep, &OFF)
            .expect_err("too deep");
        assert_eq!(
            rejected.violations[0].message,
            "nested deeper than 512 levels"
        );
        let deeper = nested(5000, json!(1));
        assert!(!compiled(&tree_schema()).check(&deeper));
        assert_eq!(compiled(&tree_schema()).violations(&deeper).len(), 1);
        forget(deeper);
    }

    /// Takes a value apart level by level: dropping it as it is would recurse.
    fn forget(value: Value) {
        let mut pending = vec![value];
        while let Some(value) = pending.pop() {
            match value {
                Value::Array(items) => pending.extend(items),
                Value::Object(members) => {
                    pending.extend(members.into_iter().map(|(_, member)| member));
                }
                _ => {}
            }
        }
    }

    #[test]
    fn a_deep_schema_has_room_for_shallow_values() {
        let deep = (0..500).fold(
            json!({"type": "integer"}),
            |schema, _| json!({"allOf": [schema]}),
        );
        let schema = compiled(&with_v(&deep));
        assert!(schema.check(&json!({"v": 1})));
        assert!(schema.accept(&json!({"v": "x"}), &EXTENDED).is_err());
    }

    #[test]
    fn a_hostile_union_ends() {
        let branch = json!({"type": "object", "properties": {"l": {"$ref": "#/$defs/t"}, "r": {"$ref": "#/$defs/t"}}, "required": ["l"]});
        let schema = json!({"$ref": "#/$defs/t", "$defs": {"t": {"anyOf": [branch.clone(), branch, {"type": "integer"}]}}});
        let sent = (0..24).fold(json!("x"), |child, _| json!({"l": child}));
        rejects(&schema, &sent);
        rejects_by(EXTENDED, &schema, &sent);
    }

    #[test]
    fn wraps_that_feed_each_other_end() {
        let wrap = json!({"type": "array"});
        let schema = json!({"type": "array", "items": {"allOf": [wrap, {"$ref": "#"}]}});
        rejects(&schema, &json!("x"));
        let twice = json!({"type": "array", "items": {"anyOf": [
            {"allOf": [{"type": "array"}, {"$ref": "#"}]}, {"allOf": [{"type": "array"}, {"$ref": "#"}]},
        ]}});
        rejects(&twice, &json!("x"));
    }
}

#[test]
fn valid_arguments_pass_unchanged() {
    let schema = compiled(
        &json!({"type": "object", "properties": {"n": {"type": "integer"}, "l": {"items": {"type": "integer"}}}}),
    );
    for arguments in [
        json!({"n": 3.0}),
        json!({"l": "x"}),
        json!({"n": 1, "extra": null}),
    ] {
        let accepted = schema
            .accept(&arguments, &AcceptOptions::default())
            .expect("valid");
        assert!(
            matches!(accepted.value, Cow::Borrowed(value) if std::ptr::eq(value, &raw const arguments))
        );
        assert!(accepted.steps.is_empty());
    }
}

#[test]
fn integers_of_64_bits_keep_every_digit() {
    for number in [
        json!(i64::MIN),
        json!(u64::MAX),
        json!(9_007_199_254_740_993_i64),
    ] {
        becomes(
            &json!({"type": "string"}),
            &number,
            &json!(number.to_string()),
        );
        becomes(
            &json!({"type": "integer"}),
            &json!(number.to_string()),
            &number,
        );
        becomes(
            &json!({"enum": [number]}),
            &json!(number.to_string()),
            &number,
        );
    }
    stays_wrong(
        &json!({"minimum": 9_007_199_254_740_993_i64}),
        &json!(9_007_199_254_740_992_i64),
    );
    stays_wrong(&json!({"const": u64::MAX}), &json!(u64::MAX - 1));
}

#[test]
fn coercion_can_be_off() {
    rejects_by(
        OFF,
        &with_v(&json!({"type": "integer"})),
        &json!({"v": "5"}),
    );
    accepts_by(
        OFF,
        &with_v(&json!({"type": "integer"})),
        &json!({"v": 5}),
        &json!({"v": 5}),
    );
}

#[test]
fn an_invalid_pattern_rejects_only_at_its_place() {
    let schema = json!({"properties": {"p": {"pattern": "("}, "q": {"type": "integer"}}});
    rejects(&schema, &json!({"p": "x"}));
    accepts(
        &schema,
        &json!({"p": 1, "q": "5"}),
        &json!({"p": 1, "q": 5}),
    );
    let by_key = json!({"properties": {"o": {"patternProperties": {"[": {}}}}});
    rejects(&by_key, &json!({"o": {"a": 1}}));
    accepts(&by_key, &json!({"o": {}}), &json!({"o": {}}));
}

#[test]
fn patterns_that_read_the_same_both_hold() {
    let schema = json!({"patternProperties": {r"\d": {"minimum": 3}, "[0-9]": {"maximum": 5}}});
    accepts(&schema, &json!({"1": 4}), &json!({"1": 4}));
    rejects(&schema, &json!({"1": 2}));
    rejects(&schema, &json!({"1": 6}));
}

#[test]
fn counts_may_be_any_number() {
    stays_wrong(&json!({"minLength": 1.5}), &json!("a"));
    becomes(
        &json!({"minLength": -1, "maxLength": 1.9}),
        &json!("a"),
        &json!("a"),
    );
    stays_wrong(&json!({"maxLength": -1}), &json!(""));
    becomes(
        &json!({"maxLength": -1, "maxItems": -0.5}),
        &json!(1),
        &json!(1),
    );
    stays_wrong(&json!({"maxItems": -0.5}), &json!([]));
    becomes(
        &json!({"contains": false, "minContains": -1}),
        &json!([1]),
        &json!([1]),
    );
}

#[test]
fn text_that_no_string_place_takes_is_read_only_when_asked() {
    let list = json!({"type": "array", "items": {"type": "string"}});
    becomes(&list, &json!("[\"a\",\"b\"]"), &json!(["[\"a\",\"b\"]"]));
    accepts_by(
        EXTENDED,
        &with_v(&list),
        &json!({"v": "[\"a\",\"b\"]"}),
        &json!({"v": ["a", "b"]}),
    );
    let numbers = json!({"type": "array", "items": {"type": "integer"}});
    accepts_by(
        EXTENDED,
        &with_v(&numbers),
        &json!({"v": "[\"1\",2]"}),
        &json!({"v": [1, 2]}),
    );
    accepts_by(
        EXTENDED,
        &with_v(&list),
        &json!({"v": "[1"}),
        &json!({"v": ["[1"]}),
    );
    let reference = json!({"$defs": {"l": list}, "properties": {"v": {"$ref": "#/$defs/l"}}});
    accepts_by(
        EXTENDED,
        &reference,
        &json!({"v": "[\"a\"]"}),
        &json!({"v": ["a"]}),
    );
}

#[test]
fn steps_say_what_was_done() {
    assert_eq!(
        steps(&json!({"type": "integer"}), &json!("007")),
        ["/v \"007\" > 7 to-integer"]
    );
    assert_eq!(
        steps(&json!({"type": "integer"}), &json!(3.7)),
        ["/v 3.7 > 3 to-integer!"]
    );
    assert_eq!(
        steps(&json!({"type": "integer"}), &json!("3.7")),
        ["/v \"3.7\" > 3 to-integer!"]
    );
    assert_eq!(
        steps(&json!({"type": "integer"}), &json!("")),
        ["/v \"\" > 0 to-integer!"]
    );
    assert_eq!(
        steps(&json!({"type": "integer"}), &json!("true")),
        ["/v \"true\" > 1 to-integer"]
    );
    assert_eq!(
        steps(&json!({"type": "string"}), &json!(null)),
        ["/v null > \"null\" to-string!"]
    );
    assert_eq!(
        steps(&json!({"type": "boolean"}), &json!(null)),
        ["/v null > false to-boolean!"]
    );
    assert_eq!(
        steps(&json!({"enum": ["1", "2"]}), &json!(1)),
        ["/v 1 > \"1\" enum"]
    );
    assert_eq!(
        steps(&json!({"const": true}), &json!("true")),
        ["/v \"true\" > true const"]
    );
    assert_eq!(
        steps(
            &json!({"type": "array", "items": {"type": "integer"}}),
            &json!("5")
        ),
        ["/v \"5\" > [\"5\"] wrap", "/v/0 \"5\" > 5 to-integer"]
    );
    assert_eq!(
        steps(
            &json!({"type": "array", "items": {"type": "string"}}),
            &json!(null)
        ),
        ["/v null > [null] wrap", "/v/0 null > \"null\" to-string!"]
    );
    assert_eq!(
        steps(
            &json!({"type": "object", "properties": {"a": {"type": "string"}}}),
            &json!({"a": null})
        ),
        ["/v/a null >  drop-null"]
    );
    assert_eq!(
        steps(
            &json!({"type": "array", "items": {"type": "integer"}}),
            &json!("[1]")
        ),
        ["/v \"[1]\" > [1] read-text"]
    );
}

#[test]
fn steps_of_alternatives_not_taken_are_forgotten() {
    let union = json!({"anyOf": [{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["b"]}, {
        "type": "object", "properties": {"a": {"type": "number"}, "c": {"type": "string"}}, "required": ["c"],
    }]});
    assert_eq!(
        steps(&union, &json!({"a": "1.5", "c": 1})),
        ["/v/a \"1.5\" > 1.5 to-number", "/v/c 1 > \"1\" to-string"]
    );
}

#[test]
fn remembered_conversions_bring_their_steps_along() {
    let schema = json!({
        "$defs": {"n": {"type": "integer"}},
        "properties": {"a": {"$ref": "#/$defs/n"}, "b": {"$ref": "#/$defs/n"}},
    });
    let arguments = json!({"a": "5", "b": "5"});
    let accepted = compiled(&schema)
        .accept(&arguments, &AcceptOptions::default())
        .expect("coerced");
    let paths: Vec<&str> = accepted
        .steps
        .iter()
        .map(|step| step.path.as_str())
        .collect();
    assert_eq!(paths, ["/a", "/b"]);
}

#[test]
fn a_lossy_conversion_can_be_denied() {
    let schema = compiled(&with_v(&json!({"type": "integer"})));
    let rejected = schema
        .accept(&json!({"v": "3.7"}), &NOTHING_LOST)
        .expect_err("something is lost");
    let violation = &rejected.violations[0];
    assert_eq!(
        (violation.path.as_str(), violation.message.as_str()),
        ("/v", "lossy conversion from \"3.7\" to 3")
    );
    assert_eq!(rejected.violations.len(), 1);
    assert!(schema.accept(&json!({"v": "7"}), &NOTHING_LOST).is_ok());
    let list = compiled(&with_v(
        &json!({"type": "array", "items": {"type": "string"}}),
    ));
    assert!(
        list.accept(&json!({"v": "[\"a\"]"}), &NOTHING_LOST)
            .is_err()
    );
    assert!(list.accept(&json!({"v": "a"}), &NOTHING_LOST).is_ok());
}

#[test]
fn the_error_text_lists_every_violation_and_what_was_received() {
    let violation = |path: &str, message: &str| Violation {
        path: path.into(),
        keyword: "k".into(),
        message: message.into(),
    };
    let violations = [
        violation("/edits/0/old~1Text", "missing"),
        violation("", "invalid"),
    ];
    assert_eq!(
        error_text("echo", &violations, &json!({"value": "many"})),
        "Validation failed for tool \"echo\":\n  - edits.0.old/Text: missing\n  - root: invalid\n\n\
         Received arguments:\n{\n  \"value\": \"many\"\n}"
    );
}

#[test]
fn a_schema_is_shared_between_threads() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Schema>();
}
