//! The judge of validity, asked about any node of an arena: the `jsonschema` crate where more than a look is needed.
//!
//! What judges a node is built when the node is first asked about: nearly always a [`Plain`] reading of it, else a
//! validator of the crate. The documents are resources of a registry, which
//! the crate takes as they are; what it checks against a meta-schema is only the reference to the node. That
//! reference is written in draft 4, whose meta-schema is built three times as fast as that of 2020-12.

use std::sync::{Arc, OnceLock};

use jsonschema::{Draft, Keyword, Registry, ValidationError, Validator};
use serde_json::{Value, json};

use super::{
    flatten::{Documents, Layout, OWN_KEYWORD, reference_to},
    node::{Arena, Node, NodeId},
    own::OwnAssertions,
    plain::Plain,
};

/// Says of any node whether it accepts a value.
#[derive(Debug)]
pub(super) struct Judge {
    arena: Arc<Arena>,
    /// The documents in which every node is found; only values that the root rejects need them.
    documents: OnceLock<Resources>,
    nodes: Vec<OnceLock<NodeJudge>>,
}

/// The judge of one node.
#[derive(Debug)]
enum NodeJudge {
    Plain(Plain),
    Crate(Box<Validator>),
}

/// Documents, ready to be referred to.
#[derive(Debug)]
struct Resources {
    registry: Registry<'static>,
    has_dynamic_scope: bool,
}

impl NodeJudge {
    fn accepts(&self, value: &Value) -> bool {
        match self {
            Self::Plain(plain) => plain.accepts(value),
            Self::Crate(validator) => validator.is_valid(value),
        }
    }
}

impl Judge {
    /// Makes the judge of an arena; no node's judge is built yet.
    pub(super) fn new(arena: Arc<Arena>) -> Self {
        let nodes = arena.ids().map(|_| OnceLock::new()).collect();
        Self {
            arena,
            documents: OnceLock::new(),
            nodes,
        }
    }

    /// Whether a node accepts a value.
    pub(super) fn accepts(&self, id: NodeId, value: &Value) -> bool {
        if id != self.arena.root()
            && let Some(verdict) = at_a_glance(self.arena.node(id), value)
        {
            return verdict;
        }
        self.nodes[id.index()]
            .get_or_init(|| self.node(id))
            .accepts(value)
    }

    fn node(&self, id: NodeId) -> NodeJudge {
        match Plain::read(&self.arena, id) {
            Some(plain) => NodeJudge::Plain(plain),
            None => NodeJudge::Crate(Box::new(self.validator_of(id))),
        }
    }

    /// The crate's validator of a node.
    fn validator_of(&self, id: NodeId) -> Validator {
        if id == self.arena.root() {
            return self.validator(id, &self.resources(Layout::Root));
        }
        let all = || self.resources(Layout::Nodes);
        self.validator(id, self.documents.get_or_init(all))
    }

    fn resources(&self, layout: Layout) -> Resources {
        let documents = Documents::of(&self.arena, layout);
        let has_dynamic_scope = documents.has_dynamic_scope();
        let mut registry = Registry::new()
            .draft(Draft::Draft202012)
            .retrieve_known_draft_meta_schemas(false);
        for (uri, document) in documents.into_iter() {
            let resource = Draft::Draft202012.create_resource(document);
            registry = registry
                .add(uri, resource)
                .expect("the URIs of the documents are URIs");
        }
        let registry = registry
            .prepare()
            .expect("the documents refer to nothing outside themselves");
        Resources {
            registry,
            has_dynamic_scope,
        }
    }

    fn validator(&self, id: NodeId, resources: &Resources) -> Validator {
        let arena = Arc::clone(&self.arena);
        jsonschema::options()
            .with_draft(Draft::Draft4)
            .with_registry(&resources.registry)
            .should_validate_formats(true)
            .with_keyword(OWN_KEYWORD, move |_, index, _| {
                let index = index.as_u64().and_then(|index| usize::try_from(index).ok());
                let id = index
                    .and_then(|index| arena.id_at(index))
                    .expect("the keyword holds a node's index");
                Ok(Box::new(OwnAssertions::of(&arena, id)))
            })
            .build(&json!({"$ref": reference_to(&self.arena, id, resources.has_dynamic_scope)}))
            .unwrap_or_else(|_| nothing())
    }
}

/// Accepts nothing: what the crate would refuse after all rejects its values, and never stops pitool.
fn nothing() -> Validator {
    jsonschema::options()
        .with_draft(Draft::Draft4)
        .build(&json!(false))
        .expect("false is a schema")
}

/// The verdict where `type` alone gives it, which saves most nodes their validator.
fn at_a_glance(node: &Node, value: &Value) -> Option<bool> {
    let keywords = match node {
        Node::Boolean(accepts) => return Some(*accepts),
        Node::Keywords(keywords) => keywords,
    };
    let types = keywords.types.as_ref()?;
    let is_admitted = types.known.iter().any(|known| known.admits(value));
    (!is_admitted || keywords.is_only_type).then_some(is_admitted)
}

impl<'i> Keyword<'i> for OwnAssertions {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        if self.hold(instance) {
            Ok(())
        } else {
            Err(ValidationError::custom("rejected"))
        }
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        self.hold(instance)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Both judges of every plain node say the same of every value.
    #[track_caller]
    fn hold_against_the_crate(schema: &Value, values: &[Value]) -> usize {
        let Ok(arena) = Arena::read(schema) else {
            return 0;
        };
        let judge = Judge::new(Arc::new(arena));
        let mut held = 0;
        for id in judge.arena.ids() {
            let Some(plain) = Plain::read(&judge.arena, id) else {
                continue;
            };
            let validator = judge.validator_of(id);
            for value in values {
                assert_eq!(
                    plain.accepts(value),
                    validator.is_valid(value),
                    "{value} by node {id:?} of {schema}"
                );
                held += 1;
            }
        }
        held
    }

    /// Values in which every part of every value stands alone as well.
    fn with_parts(values: Vec<Value>) -> Vec<Value> {
        let mut all = values;
        let mut next = 0;
        while let Some(value) = all.get(next) {
            let parts: Vec<Value> = match value {
                Value::Array(items) => items.clone(),
                Value::Object(members) => members.values().cloned().collect(),
                _ => Vec::new(),
            };
            all.extend(parts);
            next += 1;
        }
        all
    }

    #[test]
    fn plain_schemas_are_judged_as_the_crate_judges_them() {
        let mut held = 0;
        for name in ["rules", "suite"] {
            let path = format!(
                "{}/tests/conformance/{name}.jsonl",
                env!("CARGO_MANIFEST_DIR")
            );
            for line in std::fs::read_to_string(path).unwrap().lines() {
                let case = crate::json::parse(line.as_bytes()).unwrap();
                let arguments = &case["arguments"];
                let coerced = &case["expect"]["value"];
                let values = with_parts(vec![arguments.clone(), coerced.clone()]);
                held += hold_against_the_crate(&case["schema"], &values);
            }
        }
        assert!(held > 20_000, "{held} comparisons");
    }

    #[test]
    fn every_keyword_of_plain_schemas_is_held_against_the_crate() {
        let values = [
            json!(null),
            json!(true),
            json!(0),
            json!(1),
            json!(1.0),
            json!(-1),
            json!(1.5),
            json!(3),
            json!(1e300),
            json!(i64::MIN),
            json!(u64::MAX),
            json!(9_007_199_254_740_993_u64),
            json!(""),
            json!("1"),
            json!("ab"),
            json!("\u{1f600}\u{1f600}\u{1f600}"),
            json!([]),
            json!([1]),
            json!([1, "ab", null]),
            json!({}),
            json!({"a": 1}),
            json!({"b": "x", "a": "1"}),
            json!({"a": 1, "b": 2, "c": 3, "d": {}}),
        ];
        let schemas = [
            json!({"type": []}),
            json!({"type": ["integer", "null"], "title": "T"}),
            json!({"type": "integer", "maximum": 3}),
            json!({"type": ["number", "string"], "minLength": 1}),
            json!({"type": "any", "minimum": 1}),
            json!({"minimum": 1, "maximum": 3}),
            json!({"exclusiveMinimum": 1, "exclusiveMaximum": 3.0}),
            json!({"minimum": 9_007_199_254_740_993_u64}),
            json!({"maximum": 9_007_199_254_740_992.0}),
            json!({"minLength": 2, "maxLength": 3}),
            json!({"minLength": 2.0}),
            json!({"minLength": 1.5, "maxLength": -1}),
            json!({"enum": [1, "ab", null, true]}),
            json!({"enum": []}),
            json!({"const": 1}),
            json!({"const": "1"}),
            json!({"properties": {"a": {"type": "integer"}}, "required": ["a", "a", "b"]}),
            json!({"properties": {"a": true, "b": false}, "additionalProperties": false}),
            json!({"properties": {"a": {}}, "additionalProperties": {"type": "integer"}}),
            json!({"additionalProperties": {"maximum": 1}, "required": ["a"]}),
            json!({"minProperties": 1, "maxProperties": 2}),
            json!({"properties": {"h": {}, "g": {}, "f": {}, "e": {}, "d": {}, "c": {"minimum": 4}, "b": {}, "a": {}, "i": {}},
                   "required": ["a"]}),
            json!({"items": {"type": ["integer", "string"]}, "minItems": 1, "maxItems": 2}),
            json!({"items": false}),
            json!({"pattern": "^a", "multipleOf": 1.5}),
            json!({"format": "idn-email"}),
            json!({"allOf": [{"minimum": 1}, {"type": "integer"}]}),
            json!({"allOf": [], "anyOf": [{"type": "string"}, {"minimum": 3}]}),
            json!({"anyOf": []}),
            json!({"oneOf": [{"type": "integer"}, {"minimum": 1}, {"type": "null"}]}),
            json!({"oneOf": []}),
            json!({"not": {"type": ["object", "null"], "maxProperties": 1}}),
            json!({"not": {"not": {"const": null}}}),
        ];
        for schema in &schemas {
            let held = hold_against_the_crate(schema, &values);
            let is_plain = held > 0;
            let has_odd_bound = schema["minLength"].is_f64();
            assert_eq!(is_plain, !has_odd_bound, "{schema}");
        }
    }
}
