//! `unknownArguments: strip`: keys that a schema does not declare are dropped, at every object level.
//!
//! This happens before coercion and validation. A value whose schemas say nothing of objects is left as it is.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::node::{Arena, Keywords, Node, NodeId, Type};
use super::step::{Place, Step};

/// Drops the keys of a value that the root of an arena does not declare; `None` if it declares all.
///
/// A key is declared if `properties`, a matching `patternProperties` or an `additionalProperties` that is a schema
/// object covers it: of the node itself or of any `$ref`, `allOf`, `anyOf`, `oneOf`, `then` or `else` below it.
/// Each key that goes is a step; nothing that the tool knows of is lost with it.
pub(super) fn strip(arena: &Arena, value: &Value, steps: &mut Vec<Step>) -> Option<Value> {
    Strip { arena, steps }.value(&[arena.root()], value, &Place::ROOT)
}

struct Strip<'a> {
    arena: &'a Arena,
    steps: &'a mut Vec<Step>,
}

impl Strip<'_> {
    /// What is left of a value that all these nodes may judge, if something goes.
    fn value(&mut self, ids: &[NodeId], value: &Value, at: &Place<'_>) -> Option<Value> {
        match value {
            Value::Object(members) => self.object(&in_place(self.arena, ids), members, at),
            Value::Array(items) => self.array(&in_place(self.arena, ids), items, at),
            _ => None,
        }
    }

    fn object(
        &mut self,
        schemas: &[&Keywords],
        members: &Map<String, Value>,
        at: &Place<'_>,
    ) -> Option<Value> {
        if !schemas
            .iter()
            .any(|keywords| says_something_of_objects(keywords))
        {
            return None;
        }
        let changes: Vec<Change> = members
            .iter()
            .map(|(key, member)| self.member(schemas, key, member, at))
            .collect();
        if changes
            .iter()
            .all(|change| matches!(change, Change::Nothing))
        {
            return None;
        }
        let left = members
            .iter()
            .zip(changes)
            .filter_map(|((key, member), change)| match change {
                Change::Nothing => Some((key.clone(), member.clone())),
                Change::Inside(member) => Some((key.clone(), member)),
                Change::Dropped => None,
            });
        Some(Value::Object(left.collect()))
    }

    fn member(
        &mut self,
        schemas: &[&Keywords],
        key: &str,
        member: &Value,
        at: &Place<'_>,
    ) -> Change {
        let at = at.key(key);
        let declaring: Vec<NodeId> = schemas
            .iter()
            .flat_map(|keywords| declaring(self.arena, keywords, key))
            .collect();
        if declaring.is_empty() {
            self.steps.push(Step {
                path: at.to_string(),
                from: member.clone(),
                to: None,
                rule: "strip-unknown",
                lossy: false,
            });
            return Change::Dropped;
        }
        self.value(&declaring, member, &at)
            .map_or(Change::Nothing, Change::Inside)
    }

    fn array(&mut self, schemas: &[&Keywords], items: &[Value], at: &Place<'_>) -> Option<Value> {
        let mut is_changed = false;
        let mut changes = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let judging: Vec<NodeId> = schemas
                .iter()
                .filter_map(|keywords| keywords.item(index))
                .collect();
            let change = self.value(&judging, item, &at.index(index));
            is_changed |= change.is_some();
            changes.push(change);
        }
        let left = items
            .iter()
            .zip(changes)
            .map(|(item, change)| change.unwrap_or_else(|| item.clone()));
        is_changed.then(|| Value::Array(left.collect()))
    }
}

/// What becomes of a member.
enum Change {
    Nothing,
    Inside(Value),
    Dropped,
}

/// The schema objects that declare members of a value which these nodes judge.
fn in_place<'a>(arena: &'a Arena, ids: &[NodeId]) -> Vec<&'a Keywords> {
    let mut seen: HashSet<NodeId> = HashSet::new();
    let mut pending: Vec<NodeId> = ids.to_vec();
    let mut found = Vec::new();
    while let Some(id) = pending.pop() {
        let Some(keywords) = arena.keywords(id).filter(|_| seen.insert(id)) else {
            continue;
        };
        found.push(keywords);
        let lists = [&keywords.all_of, &keywords.any_of, &keywords.one_of];
        pending.extend(lists.into_iter().flatten().flatten());
        pending.extend(
            keywords
                .reference
                .as_ref()
                .and_then(|reference| reference.target),
        );
        if let Some(condition) = &keywords.condition {
            pending.extend(condition.consequence);
            pending.extend(condition.alternative);
        }
    }
    found
}

fn says_something_of_objects(keywords: &Keywords) -> bool {
    let takes_objects = keywords
        .types
        .as_ref()
        .is_some_and(|types| types.known.contains(&Type::Object));
    takes_objects
        || keywords.properties.is_some()
        || keywords.pattern_properties.is_some()
        || keywords.additional_properties.is_some()
}

/// The schemas of a member, if the node declares it.
fn declaring(arena: &Arena, keywords: &Keywords, key: &str) -> Vec<NodeId> {
    let named = keywords
        .properties
        .as_ref()
        .and_then(|properties| properties.get(key));
    let patterns = keywords.pattern_properties.iter().flatten();
    let matching = patterns
        .filter(|(pattern, _)| pattern.matches(key))
        .map(|(_, id)| *id);
    let declaring: Vec<NodeId> = named.into_iter().chain(matching).collect();
    if !declaring.is_empty() {
        return declaring;
    }
    let is_schema_object = |id: &NodeId| matches!(arena.node(*id), Node::Keywords(_));
    keywords
        .additional_properties
        .filter(is_schema_object)
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::{AcceptOptions, Schema, UnknownArguments};

    fn stripped(schema: &Value, value: &Value) -> (Option<Value>, Vec<Step>) {
        let arena = Arena::read(schema).expect("the schema is readable");
        let mut steps = Vec::new();
        let left = strip(&arena, value, &mut steps);
        (left, steps)
    }

    #[track_caller]
    fn case(schema: &Value, value: &Value, expected: &Value) {
        let left = stripped(schema, value).0.unwrap_or_else(|| value.clone());
        assert_eq!(&left, expected, "{schema}");
    }

    #[test]
    fn keys_that_nothing_declares_go_at_every_level() {
        let inner = json!({"type": "object", "properties": {"k": {}}});
        let schema = json!({
            "type": "object",
            "properties": {"a": {"type": "integer"}, "o": inner, "l": {"items": inner}, "t": {"prefixItems": [inner]}},
        });
        case(
            &schema,
            &json!({"x": 1, "a": 1, "o": {"k": 1, "y": 2}, "l": [{"z": 1, "k": 2}, 7], "t": [{"y": 1}, {"y": 1}]}),
            &json!({"a": 1, "o": {"k": 1}, "l": [{"k": 2}, 7], "t": [{}, {"y": 1}]}),
        );
        case(&json!({"type": "object"}), &json!({"x": 1}), &json!({}));
    }

    #[test]
    fn patterns_and_schemas_for_the_rest_declare_too() {
        case(
            &json!({"patternProperties": {"^n": true}}),
            &json!({"n1": {"x": 1}, "m": 1}),
            &json!({"n1": {"x": 1}}),
        );
        let rest = json!({"additionalProperties": {"type": "object", "properties": {"k": true}}});
        case(
            &rest,
            &json!({"m": {"k": 1, "x": 2}}),
            &json!({"m": {"k": 1}}),
        );
        for boolean in [true, false] {
            let schema = json!({"properties": {"a": true}, "additionalProperties": boolean});
            case(&schema, &json!({"a": 1, "m": 1}), &json!({"a": 1}));
        }
    }

    #[test]
    fn what_judges_the_same_object_declares_together() {
        let of =
            |key: &str| json!({"properties": {key: {"type": "object", "properties": {key: true}}}});
        let schema = json!({
            "$ref": "#/$defs/r", "allOf": [of("a")], "anyOf": [of("b"), {"oneOf": [of("c")]}],
            "if": of("i"), "then": of("d"), "else": of("e"), "not": of("n"), "$defs": {"r": of("r")},
        });
        let members = |keys: &str| -> Value {
            keys.chars()
                .map(|key| (key.to_string(), json!({key.to_string(): 1})))
                .collect()
        };
        case(&schema, &members("rabcdein"), &members("rabcde"));
    }

    #[test]
    fn branches_add_up_below_a_member_as_well() {
        let branch =
            |key: &str| json!({"properties": {"o": {"type": "object", "properties": {key: true}}}});
        let schema = json!({"anyOf": [branch("a"), branch("b")]});
        case(
            &schema,
            &json!({"o": {"a": 1, "b": 2, "c": 3}}),
            &json!({"o": {"a": 1, "b": 2}}),
        );
    }

    #[test]
    fn recursive_schemas_reach_as_far_as_the_value() {
        let schema = json!({"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}});
        case(
            &schema,
            &json!({"x": 1, "next": {"x": 1, "next": null}}),
            &json!({"next": {"next": null}}),
        );
        case(
            &json!({"$ref": "#", "properties": {"a": true}}),
            &json!({"a": 1, "b": 1}),
            &json!({"a": 1}),
        );
    }

    #[test]
    fn a_schema_that_says_nothing_of_objects_drops_nothing() {
        for schema in [
            json!(true),
            json!({}),
            json!({"properties": {"a": {"description": "anything"}}}),
        ] {
            assert_eq!(stripped(&schema, &json!({"a": {"x": 1}})), (None, vec![]));
        }
    }

    #[test]
    fn every_dropped_key_is_a_step_that_loses_nothing() {
        let schema = json!({"properties": {"l": {"items": {"type": "object"}}}});
        let (left, steps) = stripped(&schema, &json!({"l": [{"a/b": {"c": 1}}]}));
        assert_eq!(left, Some(json!({"l": [{}]})));
        let dropped = Step {
            path: "/l/0/a~1b".into(),
            from: json!({"c": 1}),
            to: None,
            rule: "strip-unknown",
            lossy: false,
        };
        assert_eq!(steps, [dropped]);
    }

    #[test]
    fn what_is_left_is_coerced_and_judged() {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": false});
        let schema = Schema::compile(&schema).expect("the schema compiles");
        let options = AcceptOptions {
            unknown_arguments: UnknownArguments::Strip,
            ..AcceptOptions::default()
        };
        let accepted = |value: &Value| {
            let accepted = schema
                .accept(value, &options)
                .expect("the arguments are accepted");
            let rules: Vec<&str> = accepted.steps.iter().map(|step| step.rule).collect();
            (accepted.value.into_owned(), rules.join(" "))
        };
        assert_eq!(accepted(&json!({"n": 5})), (json!({"n": 5}), String::new()));
        assert_eq!(
            accepted(&json!({"n": 5, "x": 1})),
            (json!({"n": 5}), "strip-unknown".into())
        );
        assert_eq!(
            accepted(&json!({"x": 1, "n": "5"})),
            (json!({"n": 5}), "strip-unknown to-integer".into())
        );
        let rejected = schema
            .accept(&json!({"n": "x", "y": 1}), &options)
            .expect_err("n is no integer");
        assert_eq!((rejected.violations.len(), rejected.steps.len()), (1, 1));
    }
}
