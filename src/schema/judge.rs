//! The judge of validity: the `jsonschema` crate, asked about any node of an arena.
//!
//! A node's validator is built when the node is first asked about. The documents are resources of a registry, which
//! the crate takes as they are; what it checks against a meta-schema is only the reference to the node. That
//! reference is written in draft 4, whose meta-schema is built three times as fast as that of 2020-12.

use std::sync::{Arc, OnceLock};

use jsonschema::{Draft, Keyword, Registry, ValidationError, Validator};
use serde_json::{Value, json};

use super::{
    flatten::{Documents, OWN_KEYWORD, reference_to},
    formats,
    node::{Arena, Keywords, Node, NodeId},
    number::is_multiple,
};

/// Says of any node whether it accepts a value.
#[derive(Debug)]
pub(super) struct Judge {
    arena: Arc<Arena>,
    registry: Registry<'static>,
    has_dynamic_scope: bool,
    validators: Vec<OnceLock<Validator>>,
}

impl Judge {
    /// Makes the judge of an arena; no validator is built yet.
    pub(super) fn new(arena: Arc<Arena>) -> Self {
        let documents = Documents::of(&arena);
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
        let validators = arena.ids().map(|_| OnceLock::new()).collect();
        Self {
            arena,
            registry,
            has_dynamic_scope,
            validators,
        }
    }

    /// Whether a node accepts a value.
    pub(super) fn accepts(&self, id: NodeId, value: &Value) -> bool {
        match self.arena.node(id) {
            Node::Boolean(accepts) => *accepts,
            Node::Keywords(_) => self.validators[id.index()]
                .get_or_init(|| self.validator(id))
                .is_valid(value),
        }
    }

    fn validator(&self, id: NodeId) -> Validator {
        let arena = Arc::clone(&self.arena);
        jsonschema::options()
            .with_draft(Draft::Draft4)
            .with_registry(&self.registry)
            .should_validate_formats(true)
            .with_keyword(OWN_KEYWORD, move |_, index, _| {
                let index = index.as_u64().and_then(|index| usize::try_from(index).ok());
                let id = index
                    .and_then(|index| arena.id_at(index))
                    .expect("the keyword holds a node's index");
                let format = arena
                    .keywords(id)
                    .and_then(|keywords| formats::check(keywords.format.as_deref()?));
                Ok(Box::new(OwnAssertions {
                    arena: Arc::clone(&arena),
                    id,
                    format,
                }))
            })
            .build(&json!({"$ref": reference_to(&self.arena, id, self.has_dynamic_scope)}))
            .expect("the documents hold only what the crate takes")
    }
}

/// The assertions of a node that the crate would judge otherwise than the reference.
struct OwnAssertions {
    arena: Arc<Arena>,
    id: NodeId,
    format: Option<fn(&str) -> bool>,
}

impl OwnAssertions {
    fn keywords(&self) -> &Keywords {
        self.arena
            .keywords(self.id)
            .expect("a boolean asserts nothing else")
    }
}

impl<'i> Keyword<'i> for OwnAssertions {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        if self.is_valid(instance) {
            Ok(())
        } else {
            Err(ValidationError::custom("rejected"))
        }
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        match instance {
            Value::String(text) => {
                self.format.is_none_or(|is_format| is_format(text))
                    && self
                        .keywords()
                        .pattern
                        .as_ref()
                        .is_none_or(|pattern| pattern.matches(text))
            }
            Value::Number(number) => self
                .keywords()
                .multiple_of
                .as_ref()
                .is_none_or(|step| is_multiple(number, step)),
            _ => true,
        }
    }
}
