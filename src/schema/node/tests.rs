//! Schemas as nodes.

use serde_json::json;

use super::*;

fn read(schema: &Value) -> Arena {
    Arena::read(schema).expect("the schema is readable")
}

fn property(arena: &Arena, at: NodeId, name: &str) -> NodeId {
    let keywords = arena.keywords(at).expect("a schema object");
    keywords
        .properties
        .as_ref()
        .and_then(|members| members.get(name))
        .expect(name)
}

/// The target of the `$ref` of the property `a`.
fn target(schema: &Value) -> Option<NodeId> {
    let arena = read(schema);
    let keywords = arena
        .keywords(property(&arena, arena.root(), "a"))
        .expect("a schema object");
    keywords.reference.as_ref().expect("a reference").target
}

#[track_caller]
fn case(reference: &str, rest: &Value, leads_somewhere: bool) {
    let mut schema = json!({"properties": {"a": {"$ref": reference}}});
    schema
        .as_object_mut()
        .unwrap()
        .extend(rest.as_object().unwrap().clone());
    assert_eq!(target(&schema).is_some(), leads_somewhere, "{schema}");
}

#[test]
fn references_find_pointers_anchors_and_ids() {
    case("#", &json!({}), true);
    case("#/$defs/n", &json!({"$defs": {"n": true}}), true);
    case("#/$defs/x~1y", &json!({"$defs": {"x/y": {}}}), true);
    case("#/$defs/a%20b", &json!({"$defs": {"a b": {}}}), true);
    case("#/anyOf/1", &json!({"anyOf": [{}, {}]}), true);
    case("#/anyOf/01", &json!({"anyOf": [{}, {}]}), false);
    case("#n", &json!({"$defs": {"n": {"$anchor": "n"}}}), true);
    case(
        "#n",
        &json!({"$defs": {"n": {"$dynamicAnchor": "n"}}}),
        true,
    );
    case("#n", &json!({"$defs": {"n": {"$id": "#n"}}}), true);
    case("n.json", &json!({"$defs": {"n": {"$id": "n.json"}}}), true);
    case(
        "n.json",
        &json!({"$id": "https://e.com/t/", "$defs": {"n": {"$id": "n.json"}}}),
        true,
    );
    case(
        "https://e.com/t.json#/$defs/n",
        &json!({"$id": "https://e.com/t.json#", "$defs": {"n": {}}}),
        true,
    );
}

#[test]
fn references_to_nothing_are_left_open() {
    case("#/$defs/n", &json!({}), false);
    case(
        "#n",
        &json!({"$defs": {"n": {"$id": "n.json", "$anchor": "n"}}}),
        false,
    );
    case("n.json", &json!({"const": {"$id": "n.json"}}), false);
    case("n.json", &json!({"x-unknown": {"$id": "n.json"}}), false);
    case(
        "https://json-schema.org/draft/2020-12/schema",
        &json!({}),
        false,
    );
}

#[test]
fn a_pointer_into_another_id_takes_its_base_along() {
    let inner = json!({"$id": "https://e.com/o", "$defs": {"i": {"$ref": "#/$defs/k"}, "k": {"type": "integer"}}});
    let arena =
        read(&json!({"properties": {"a": {"$ref": "#/$defs/o/$defs/i"}}, "$defs": {"o": inner}}));
    let follow = |id| {
        arena
            .keywords(id)
            .unwrap()
            .reference
            .as_ref()
            .unwrap()
            .target
            .unwrap()
    };
    let last = follow(follow(property(&arena, arena.root(), "a")));
    assert_eq!(
        arena.keywords(last).unwrap().types.as_ref().unwrap().names,
        ["integer"]
    );
}

#[test]
fn one_schema_is_one_node() {
    let schema =
        json!({"properties": {"a": {"$ref": "#/properties/b"}, "b": {"items": {"$ref": "#"}}}});
    assert_eq!(read(&schema).len(), 4);
}

#[test]
fn keywords_of_a_wrong_shape_are_absent() {
    let arena = read(&json!({
        "properties": [], "required": "a", "enum": "a", "minLength": "3", "pattern": 5, "anyOf": {},
        "$ref": 5, "exclusiveMinimum": true, "if": 5, "$defs": {"unused": 5},
    }));
    let keywords = arena.keywords(arena.root()).unwrap();
    assert!(
        keywords.properties.is_none()
            && keywords.enumeration.is_none()
            && keywords.pattern.is_none()
    );
    assert!(
        keywords.any_of.is_none() && keywords.reference.is_none() && keywords.condition.is_none()
    );
    assert!(keywords.min_length.is_none() && keywords.exclusive_minimum.is_none());
    assert!(keywords.required.is_empty());
}

#[test]
fn what_is_no_schema_is_named() {
    for (schema, text) in [
        (json!({"properties": {"a": 5}}), "5"),
        (json!({"items": "string"}), "\"string\""),
        (json!({"if": true, "then": null}), "null"),
        (json!({"$ref": "#/$defs/a", "$defs": {"a": []}}), "[]"),
        (json!([]), "[]"),
    ] {
        let error = Arena::read(&schema).expect_err("no schema").to_string();
        assert_eq!(
            error,
            format!("A schema must be an object or a boolean, got {text}")
        );
    }
}

#[test]
fn a_deep_schema_is_read_without_recursion() {
    let mut schema = json!(true);
    for _ in 0..1000 {
        schema = json!({"not": schema});
    }
    assert_eq!(read(&schema).len(), 1001);
}
