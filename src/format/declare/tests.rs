use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::message::ToolResult;
use crate::schema::{AcceptOptions, Coercion, Schema};
use crate::tool::Declaration;

use super::*;

fn tool(name: &str, parameters: Value) -> Arc<Tool> {
    let declaration = Declaration::new(name, "Does it", parameters);
    Arc::new(Tool::native(declaration, |_| async {
        Ok(ToolResult::default())
    }))
}

/// `path rule` of each finding.
fn found(declared: &Declared) -> Vec<String> {
    declared
        .findings
        .iter()
        .map(|finding| {
            format!("{} {}", finding.path, finding.rule)
                .trim()
                .to_owned()
        })
        .collect()
}

#[track_caller]
fn case(format: Format, parameters: Value, schema: &Value, findings: &[&str]) {
    let declared = declare(&[tool("echo", parameters)], format, Strictness::AsDeclared);
    let actual = match format {
        Format::Pi | Format::OpenaiResponses => &declared.tools[0]["parameters"],
        Format::Anthropic => &declared.tools[0]["input_schema"],
        Format::Openai => &declared.tools[0]["function"]["parameters"],
        Format::Gemini => &declared.tools[0]["functionDeclarations"][0]["parametersJsonSchema"],
        Format::Mcp => &declared.tools[0]["inputSchema"],
    };
    assert_eq!(actual.to_string(), schema.to_string());
    assert_eq!(found(&declared), findings);
}

#[track_caller]
fn strict_case(parameters: Value, schema: &Value, findings: &[&str]) {
    let tools = [tool("echo", parameters)];
    let declared = declare(&tools, Format::Openai, Strictness::WherePossible);
    let function = &declared.tools[0]["function"];
    assert_eq!(function["parameters"].to_string(), schema.to_string());
    assert_eq!(function["strict"], true, "{:?}", declared.findings);
    assert_eq!(found(&declared), findings);
}

#[track_caller]
fn not_strict_case(parameters: Value, findings: &[&str]) {
    let tools = [tool("echo", parameters)];
    let declared = declare(&tools, Format::Openai, Strictness::WherePossible);
    assert_eq!(declared.tools[0]["function"].get("strict"), None);
    assert_eq!(found(&declared), findings);
}

/// The schema of a strict tool for Anthropic, or none if it is not strict, and the findings.
#[track_caller]
fn anthropic_case(parameters: Value, schema: Option<&Value>, findings: &[&str]) {
    let tools = [tool("echo", parameters)];
    let declared = declare(&tools, Format::Anthropic, Strictness::WherePossible);
    let strict = declared.tools[0].get("strict");
    assert_eq!(
        strict,
        schema.map(|_| &json!(true)),
        "{:?}",
        declared.findings
    );
    if let Some(schema) = schema {
        assert_eq!(
            declared.tools[0]["input_schema"].to_string(),
            schema.to_string()
        );
    }
    assert_eq!(found(&declared), findings);
}

#[test]
fn anthropic_closes_objects_and_keeps_what_is_optional() {
    anthropic_case(
        json!({"type": "object", "title": "T", "properties": {
            "a": {"type": "string", "format": "email", "pattern": "^a+$"},
            "b": {"enum": ["x", 1]},
            "c": {"oneOf": [{"type": "object", "properties": {"d": {"type": "null"}}}, {"$ref": "#/$defs/e"}]},
        }, "required": ["a"], "$defs": {"e": {"type": "array", "items": {"type": "integer"}, "minItems": 1}}}),
        Some(&json!({"type": "object", "title": "T", "properties": {
            "a": {"type": "string", "format": "email", "pattern": "^a+$"},
            "b": {"enum": ["x", 1], "type": ["string", "integer"]},
            "c": {"anyOf": [{"type": "object", "properties": {"d": {"type": "null"}}, "additionalProperties": false},
                {"$ref": "#/$defs/e"}]},
        }, "required": ["a"], "$defs": {"e": {"type": "array", "items": {"type": "integer"}, "minItems": 1}},
            "additionalProperties": false})),
        &[],
    );
}

#[test]
fn anthropic_leaves_out_what_only_narrows() {
    let property = |schema: Value| json!({"type": "object", "properties": {"a": schema}, "additionalProperties": false});
    anthropic_case(
        property(
            json!({"type": "string", "minLength": 1, "pattern": "\\bword", "format": "color"}),
        ),
        Some(&property(json!({"type": "string"}))),
        &[
            "/properties/a/minLength strict-keyword",
            "/properties/a/pattern strict-keyword",
            "/properties/a/format strict-keyword",
        ],
    );
    anthropic_case(
        property(
            json!({"type": "array", "items": {"type": "number", "minimum": 1}, "minItems": 2}),
        ),
        Some(&property(
            json!({"type": "array", "items": {"type": "number"}}),
        )),
        &[
            "/properties/a/minItems strict-keyword",
            "/properties/a/items/minimum strict-keyword",
        ],
    );
}

#[test]
fn anthropic_is_not_strict_where_the_schema_would_say_something_else() {
    let property = |schema: Value| json!({"type": "object", "properties": {"a": schema}});
    for (schema, place) in [
        (json!({}), "/properties/a not-strict"),
        (json!(true), "/properties/a not-strict"),
        (
            json!({"type": "array", "enum": [[1]]}),
            "/properties/a/enum not-strict",
        ),
        (
            json!({"type": "string", "not": {"const": "x"}}),
            "/properties/a/not not-strict",
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            "/properties/a/additionalProperties not-strict",
        ),
        (
            json!({"allOf": [{"type": "string"}, {"type": "string"}], "type": "string"}),
            "/properties/a/allOf not-strict",
        ),
        (json!({"$ref": "other.json"}), "not-strict"),
        (json!({"$ref": "#"}), "not-strict"),
    ] {
        anthropic_case(property(schema), None, &[place]);
    }
    let mut tree = property(json!({"$ref": "#/$defs/t"}));
    tree["$defs"] = json!({"t": {"type": "object", "properties": {"next": {"$ref": "#/$defs/t"}}}});
    anthropic_case(tree, None, &["not-strict"]);
}

#[test]
fn an_anthropic_request_takes_only_so_many_strict_tools() {
    let strict = |tools: &[Arc<Tool>]| {
        let declared = declare(tools, Format::Anthropic, Strictness::WherePossible);
        let tools = declared.tools.as_array().unwrap().clone();
        (
            tools.iter().filter(|tool| tool["strict"] == true).count(),
            declared.findings.len(),
        )
    };
    let plain: Vec<_> = (0..22)
        .map(|n| tool(&format!("t{n}"), text_property()))
        .collect();
    assert_eq!(strict(&plain), (20, 2));
    let optional = json!({"type": "object", "properties": (0..10).map(|n| (n.to_string(), json!({"type": "string"})))
        .collect::<Map<_, _>>()});
    let many: Vec<_> = (0..3)
        .map(|n| tool(&format!("t{n}"), optional.clone()))
        .collect();
    assert_eq!(strict(&many), (2, 1));
}

fn text_property() -> Value {
    json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]})
}

#[test]
fn every_api_has_its_own_frame() {
    let tools = [tool("echo", text_property())];
    let frame = |format| declare(&tools, format, Strictness::AsDeclared).tools;
    let schema = text_property();
    assert_eq!(
        frame(Format::Pi),
        json!([{"name": "echo", "description": "Does it", "parameters": schema}])
    );
    assert_eq!(
        frame(Format::Anthropic),
        json!([{"name": "echo", "description": "Does it", "input_schema": schema}])
    );
    assert_eq!(
        frame(Format::Openai),
        json!([{"type": "function", "function": {"name": "echo", "description": "Does it", "parameters": schema}}])
    );
    assert_eq!(
        frame(Format::OpenaiResponses),
        json!([{"type": "function", "name": "echo", "description": "Does it", "parameters": schema,
            "strict": false}])
    );
    assert_eq!(
        frame(Format::Gemini),
        json!([{"functionDeclarations": [
            {"name": "echo", "description": "Does it", "parametersJsonSchema": schema},
        ]}])
    );
    assert_eq!(
        frame(Format::Mcp),
        json!([{"name": "echo", "description": "Does it", "inputSchema": schema}])
    );
}

#[test]
fn no_tools_are_an_empty_list_everywhere() {
    for format in Format::ALL {
        assert_eq!(
            declare(&[], format, Strictness::AsDeclared).tools,
            json!([])
        );
    }
}

#[test]
fn pi_takes_everything_as_it_is() {
    for schema in [
        json!(true),
        json!({"anyOf": []}),
        json!({"$schema": "x", "type": "any"}),
    ] {
        case(Format::Pi, schema.clone(), &schema, &[]);
    }
}

#[test]
fn names_that_an_api_refuses_are_errors() {
    let refused = |name: &str, format| {
        let declared = declare(
            &[tool(name, text_property())],
            format,
            Strictness::AsDeclared,
        );
        let errors = declared
            .findings
            .iter()
            .filter(|finding| finding.severity == Severity::Error)
            .count();
        assert_eq!(declared.findings.len(), errors);
        errors > 0
    };
    let long = "x".repeat(65);
    for (name, formats) in [
        ("echo", &[][..]),
        (
            "a.b",
            &[Format::Anthropic, Format::Openai, Format::OpenaiResponses],
        ),
        ("1a", &[Format::Gemini]),
        (&long, &[Format::Openai, Format::OpenaiResponses]),
        (
            "天気",
            &[
                Format::Anthropic,
                Format::Openai,
                Format::OpenaiResponses,
                Format::Gemini,
                Format::Mcp,
            ],
        ),
    ] {
        for format in Format::ALL {
            assert_eq!(
                refused(name, format),
                formats.contains(&format),
                "{name} for {format}"
            );
        }
    }
}

#[test]
fn the_root_is_an_object() {
    let object = json!({"type": "object"});
    for schema in [json!(true), json!({}), json!({"type": ["object", "null"]})] {
        case(Format::Anthropic, schema.clone(), &object, &[]);
        case(Format::Mcp, schema, &object, &[]);
    }
    case(Format::Anthropic, json!(false), &object, &["root-type"]);
    case(
        Format::Anthropic,
        json!({"type": "string"}),
        &object,
        &["root-type"],
    );
    let with_properties = json!({"type": "object", "properties": {}});
    case(Format::Openai, json!({}), &with_properties, &[]);
    let referring = json!({"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"x": {}}}}});
    let followed = json!({"type": "object", "$defs": {"a": {"properties": {"x": {}}}},
        "properties": {"x": {}}});
    case(Format::Anthropic, referring, &followed, &[]);
}

#[test]
fn older_drafts_are_rewritten() {
    let old = json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
        "properties": {"t": {"type": "array", "items": [{"type": "string"}], "additionalItems": false}},
        "dependencies": {"a": ["b"], "c": {"required": ["d"]}}});
    let new = json!({"type": "object",
        "properties": {"t": {"type": "array", "prefixItems": [{"type": "string"}], "items": false}},
        "dependentRequired": {"a": ["b"]}, "dependentSchemas": {"c": {"required": ["d"]}}});
    case(Format::Anthropic, old, &new, &[]);
}

#[test]
fn malformed_keywords_are_left_out() {
    let odd = json!({"type": "object", "required": true, "properties": {
        "a": {"type": "any", "minimum": "5", "anyOf": [], "items": 3}, "b": 5}});
    let even = json!({"type": "object", "properties": {"a": {}}});
    case(Format::Anthropic, odd, &even, &[]);
}

#[test]
fn alternatives_at_the_root_are_merged() {
    let branch = |name: &str| {
        json!({"properties": {"kind": {"const": name}, name: {"type": "string"}},
        "required": ["kind", name], "additionalProperties": false})
    };
    let union = json!({"oneOf": [branch("a"), branch("b")]});
    let merged = json!({"type": "object", "properties": {
        "kind": {"anyOf": [{"const": "a"}, {"const": "b"}]}, "a": {"type": "string"}, "b": {"type": "string"}},
        "required": ["kind"], "additionalProperties": false});
    for format in [Format::Anthropic, Format::Openai, Format::OpenaiResponses] {
        case(format, union.clone(), &merged, &["/oneOf root-union"]);
    }
    let as_it_is = json!({"type": "object", "oneOf": [branch("a"), branch("b")]});
    case(Format::Mcp, union, &as_it_is, &[]);
}

#[test]
fn all_of_at_the_root_is_merged_without_a_word_where_it_says_no_more() {
    let simple = json!({"allOf": [text_property(), {"properties": {"b": {"type": "integer"}}}]});
    let merged = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
        "required": ["a"]});
    case(Format::Anthropic, simple, &merged, &[]);
    let more = json!({"allOf": [text_property(), {"not": {"required": ["b"]}}]});
    case(
        Format::Anthropic,
        more,
        &text_property(),
        &["/allOf root-union"],
    );
}

#[test]
fn anthropic_is_particular_about_property_names() {
    let schema =
        json!({"type": "object", "properties": {"a": {"properties": {"b c": {}}}, "d/e": {}}});
    let findings = [
        "/properties/d~1e property-name",
        "/properties/a/properties/b c property-name",
    ];
    case(Format::Anthropic, schema.clone(), &schema, &findings);
    case(Format::Openai, schema.clone(), &schema, &[]);
}

#[test]
fn gemini_reads_a_part_of_json_schema() {
    let rich = json!({"type": "object", "title": "T", "default": {}, "properties": {
        "c": {"const": "x"},
        "n": {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 10},
        "s": {"type": "string", "pattern": "^a", "minLength": 2},
        "e": {"enum": ["a", null]},
        "b": {"enum": [true]},
        "m": {"allOf": [{"type": "string"}], "description": "d"},
    }});
    let plain = json!({"type": "object", "title": "T", "properties": {
        "c": {"enum": ["x"]},
        "n": {"type": "integer", "minimum": 1, "maximum": 9},
        "s": {"type": "string"},
        "e": {"anyOf": [{"enum": ["a"]}, {"type": "null"}]},
        "b": {},
        "m": {"description": "d", "type": "string"},
    }});
    let findings = [
        "/properties/s/pattern keyword",
        "/properties/s/minLength keyword",
        "/properties/b/enum keyword",
    ];
    case(Format::Gemini, rich, &plain, &findings);
}

#[test]
fn gemini_wants_references_alone_and_in_defs() {
    let referring = json!({"type": "object", "definitions": {"x": {"type": "string"}},
        "properties": {"a": {"$ref": "#/definitions/x", "description": "d"}, "b": {"$ref": "#/definitions/x"}}});
    let moved = json!({"type": "object",
        "properties": {"a": {"description": "d", "anyOf": [{"$ref": "#/$defs/x"}]}, "b": {"$ref": "#/$defs/x"}},
        "$defs": {"x": {"type": "string"}}});
    case(Format::Gemini, referring, &moved, &[]);
}

#[test]
fn gemini_takes_recursion_only_where_it_may_end() {
    let tree = |required: Value| {
        json!({"type": "object", "properties": {"root": {"$ref": "#/$defs/n"}},
        "required": ["root"],
        "$defs": {"n": {"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}}, "required": required}}})
    };
    case(Format::Gemini, tree(json!([])), &tree(json!([])), &[]);
    let endless = tree(json!(["next"]));
    case(
        Format::Gemini,
        endless.clone(),
        &endless,
        &["/$defs/n/properties/next recursive-ref"],
    );
}

#[test]
fn strict_schemas_require_everything_and_close_objects() {
    strict_case(
        json!({"type": "object", "properties": {
            "a": {"type": "string"},
            "b": {"type": "integer", "minimum": 1, "default": 3},
            "c": {"enum": ["x", "y"]},
            "d": {"type": ["string", "null"]},
            "e": {"type": "object", "properties": {"f": {"type": "boolean"}}, "required": ["f"]},
        }, "required": ["a"]}),
        &json!({"type": "object", "properties": {
            "a": {"type": "string"},
            "b": {"type": ["integer", "null"], "minimum": 1},
            "c": {"anyOf": [{"enum": ["x", "y"], "type": "string"}, {"type": "null"}]},
            "d": {"type": ["string", "null"]},
            "e": {"type": ["object", "null"], "properties": {"f": {"type": "boolean"}}, "required": ["f"],
                "additionalProperties": false},
        }, "required": ["a", "b", "c", "d", "e"], "additionalProperties": false}),
        &[],
    );
}

#[test]
fn strict_schemas_leave_out_what_only_narrows() {
    strict_case(
        json!({"type": "object", "properties": {
            "a": {"type": "string", "minLength": 1, "format": "uri"},
            "b": {"type": "array", "items": {"type": "string", "format": "uuid"}, "uniqueItems": true},
        }, "required": ["a", "b"]}),
        &json!({"type": "object", "properties": {
            "a": {"type": "string"},
            "b": {"type": "array", "items": {"type": "string", "format": "uuid"}},
        }, "required": ["a", "b"], "additionalProperties": false}),
        &[
            "/properties/a/minLength strict-keyword",
            "/properties/a/format strict-keyword",
            "/properties/b/uniqueItems strict-keyword",
        ],
    );
}

/// A tree, and a union that requires all of its properties.
fn tree_and_union() -> Value {
    json!({"type": "object", "properties": {
        "t": {"$ref": "#/$defs/t", "description": "a tree"},
        "u": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
    }, "required": ["t", "u"], "$defs": {"t": {"type": "object", "properties": {
        "next": {"$ref": "#/$defs/t"}}}}})
}

#[test]
fn strict_schemas_take_recursion_and_unions() {
    let mut tool = Tool::native(
        tool("echo", tree_and_union()).declaration.clone(),
        |_| async { Ok(ToolResult::default()) },
    );
    tool.coerce = Coercion::Extended;
    let declared = declare(&[Arc::new(tool)], Format::Openai, Strictness::WherePossible);
    let function = &declared.tools[0]["function"];
    assert_eq!(function["strict"], true, "{:?}", declared.findings);
    assert_eq!(
        function["parameters"].to_string(),
        json!({"type": "object", "properties": {
            "t": {"description": "a tree", "anyOf": [{"$ref": "#/$defs/t"}]},
            "u": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        }, "required": ["t", "u"], "$defs": {"t": {"type": "object", "properties": {
            "next": {"anyOf": [{"$ref": "#/$defs/t"}, {"type": "null"}]}}, "required": ["next"],
            "additionalProperties": false}}, "additionalProperties": false})
        .to_string()
    );
}

#[test]
fn a_null_that_coercion_would_not_drop_is_never_asked_for() {
    not_strict_case(tree_and_union(), &["/$defs/t/properties/next not-strict"]);
    let referring = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}},
        "$defs": {"a": {"type": "string"}}});
    not_strict_case(referring, &["/properties/a not-strict"]);
    let branch = json!({"type": "object", "properties": {"b": {"type": "string"}}});
    let in_union = json!({"type": "object", "properties": {"a": {"anyOf": [branch, {"type": "string"}]}},
        "required": ["a"]});
    not_strict_case(in_union, &["/properties/a/anyOf/0/properties/b not-strict"]);
    let at_root = json!({"$ref": "#/$defs/r", "$defs": {"r": branch}});
    let tools = [tool("echo", at_root)];
    let declared = declare(&tools, Format::Openai, Strictness::WherePossible);
    assert_eq!(declared.tools[0]["function"].get("strict"), None);
    let mut unrepaired = Tool::native(tool("echo", branch).declaration.clone(), |_| async {
        Ok(ToolResult::default())
    });
    unrepaired.coerce = Coercion::Off;
    let declared = declare(
        &[Arc::new(unrepaired)],
        Format::Openai,
        Strictness::WherePossible,
    );
    assert_eq!(found(&declared), ["/properties/b not-strict"]);
    strict_case(
        json!({"type": "object", "properties": {"a": {"anyOf": [
            {"type": "object", "properties": {"b": {"type": ["string", "null"]}}}, {"type": "null"}]}}}),
        &json!({"type": "object", "properties": {"a": {"anyOf": [
            {"type": "object", "properties": {"b": {"type": ["string", "null"]}}, "required": ["b"],
                "additionalProperties": false}, {"type": "null"}]}},
            "required": ["a"], "additionalProperties": false}),
        &[],
    );
}

#[test]
fn where_a_schema_cannot_be_strict_the_reasons_are_given() {
    let object = |property: Value| json!({"type": "object", "properties": {"a": property}, "required": ["a"]});
    not_strict_case(object(json!({})), &["/properties/a not-strict"]);
    not_strict_case(object(json!(true)), &["/properties/a not-strict"]);
    not_strict_case(
        object(json!({"type": "array"})),
        &["/properties/a not-strict"],
    );
    not_strict_case(
        object(json!({"type": "object"})),
        &["/properties/a not-strict"],
    );
    not_strict_case(
        object(
            json!({"type": "object", "properties": {"b": {"type": "null"}}, "additionalProperties": true}),
        ),
        &["/properties/a/additionalProperties not-strict"],
    );
    not_strict_case(
        object(json!({"type": "string", "not": {"const": "x"}})),
        &["/properties/a/not not-strict"],
    );
    not_strict_case(
        object(json!({"$ref": "https://example.com/x.json"})),
        &["/properties/a not-strict"],
    );
    not_strict_case(
        json!({"type": "object", "properties": {}, "required": ["gone"]}),
        &["not-strict"],
    );
    let mut deep = json!({"type": "string"});
    for _ in 0..10 {
        deep = json!({"type": "array", "items": deep});
    }
    not_strict_case(object(deep), &["not-strict"]);
}

#[test]
fn constrained_sampling_decides_for_its_tool() {
    let with = |sampling: Value, parameters: Value| {
        let declaration = Declaration {
            constrained_sampling: Some(sampling),
            ..tool("echo", parameters).declaration.clone()
        };
        let tool = Tool::native(declaration, |_| async { Ok(ToolResult::default()) });
        let declared = declare(
            &[Arc::new(tool)],
            Format::OpenaiResponses,
            Strictness::WherePossible,
        );
        let severities: Vec<Severity> = declared
            .findings
            .iter()
            .map(|finding| finding.severity)
            .collect();
        (declared.tools[0]["strict"].clone(), severities)
    };
    let anything = json!({"type": "object", "properties": {"a": {}}});
    assert_eq!(with(json!(false), text_property()), (json!(false), vec![]));
    let require = json!({"type": "json_schema", "strict": "require"});
    assert_eq!(
        with(require.clone(), text_property()),
        (json!(true), vec![])
    );
    assert_eq!(
        with(require, anything.clone()),
        (json!(false), vec![Severity::Error])
    );
    let prefer = json!({"type": "json_schema", "strict": "prefer"});
    assert_eq!(with(prefer, anything), (json!(false), vec![Severity::Note]));
    let grammar = json!({"type": "grammar", "variants": {"openai_lark": "start: \"x\""}});
    assert_eq!(
        with(grammar, text_property()),
        (json!(true), vec![Severity::Note])
    );
}

#[test]
fn a_schema_that_nests_too_deep_is_an_error() {
    let mut deep = json!({});
    for _ in 0..300 {
        deep = json!({"items": deep});
    }
    case(
        Format::Gemini,
        deep,
        &json!({"type": "object"}),
        &["too-deep"],
    );
}

#[test]
fn mcp_shows_labels_and_output_schemas_of_objects() {
    let mut tool = Tool::native(
        tool("echo", text_property()).declaration.clone(),
        |_| async { Ok(ToolResult::default()) },
    );
    tool.label = Some("Echo".to_owned());
    tool.output_schema = Some(json!({"type": "object"}).into());
    let declared = declare(&[Arc::new(tool)], Format::Mcp, Strictness::AsDeclared);
    assert_eq!(declared.tools[0]["title"], "Echo");
    assert_eq!(declared.tools[0]["outputSchema"], json!({"type": "object"}));
    assert_eq!(declared.findings, []);
}

/// A schema of the kinds that strict schemas have.
fn any_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string"})),
        Just(json!({"type": "integer"})),
        Just(json!({"type": ["boolean", "null"]})),
        Just(json!({"enum": ["x", "y"]})),
        Just(json!({"$ref": "#/$defs/d"})),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            inner
                .clone()
                .prop_map(|items| json!({"type": "array", "items": items})),
            prop::collection::vec(inner.clone(), 1..3)
                .prop_map(|branches| json!({"anyOf": branches})),
            any_object(inner),
        ]
    })
}

/// An object with some of its properties required.
fn any_object(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    prop::collection::vec((inner, any::<bool>()), 1..3).prop_map(|members| {
        let names = ["a", "b", "c"];
        let required: Vec<&str> = names
            .iter()
            .zip(&members)
            .filter(|(_, (_, is_required))| *is_required)
            .map(|(name, _)| *name)
            .collect();
        let properties: Map<String, Value> = names
            .iter()
            .zip(&members)
            .map(|(name, (schema, _))| ((*name).to_owned(), schema.clone()))
            .collect();
        json!({"type": "object", "properties": properties, "required": required})
    })
}

/// What a model that is held to a strict schema may send; `choices` decides among the possible.
fn sample(root: &Value, schema: &Value, choices: &mut impl FnMut(usize) -> usize) -> Value {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        return sample(root, walk::target(root, reference).unwrap(), choices);
    }
    for key in ["anyOf", "enum"] {
        if let Some(Value::Array(list)) = schema.get(key) {
            let chosen = &list[choices(list.len())];
            return if key == "enum" {
                chosen.clone()
            } else {
                sample(root, chosen, choices)
            };
        }
    }
    let kinds = match &schema["type"] {
        Value::Array(kinds) => kinds.clone(),
        kind => vec![kind.clone()],
    };
    match kinds[choices(kinds.len())].as_str().unwrap() {
        "object" => {
            let properties = schema["properties"].as_object().unwrap();
            let members = properties
                .iter()
                .map(|(name, schema)| (name.clone(), sample(root, schema, choices)));
            Value::Object(members.collect())
        }
        "array" => json!([sample(root, &schema["items"], choices)]),
        "string" => json!("text"),
        "integer" => json!(7),
        "boolean" => json!(true),
        _ => Value::Null,
    }
}

proptest! {
    /// Whatever a model may send under a strict schema, the tool accepts it, and coercion loses nothing of it.
    #[test]
    fn strict_answers_mean_what_the_schema_says(
        object in any_object(any_schema()),
        definition in any_object(Just(json!({"type": "integer"}))),
        seed in any::<u64>(),
    ) {
        let mut parameters = object;
        parameters["$defs"] = json!({"d": definition});
        let tools = [tool("echo", parameters.clone())];
        let declared = declare(&tools, Format::Openai, Strictness::WherePossible);
        let function = &declared.tools[0]["function"];
        prop_assume!(function["strict"] == true);
        let strict = &function["parameters"];
        let mut state = seed;
        let mut choices = |count: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            usize::try_from(state >> 33).unwrap() % count
        };
        let sent = sample(strict, strict, &mut choices);
        let schema = Schema::compile(&parameters).unwrap();
        let accepted = schema.accept(&sent, &AcceptOptions::default());
        let accepted = accepted.map_err(|rejected| TestCaseError::fail(format!(
            "{sent} under {parameters}: {:?}", rejected.violations
        )))?;
        let is_lossy = accepted.steps.iter().any(|step| step.lossy);
        prop_assert!(!is_lossy, "{} under {} became {}", sent, parameters, accepted.value);
    }
}
