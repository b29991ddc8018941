//! The judge of validity: the `jsonschema` crate, asked about any node of an arena.
//!
//! A node's validator is built when the node is first asked about. The documents are resources of a registry, which
//! the crate takes as they are; what it checks against a meta-schema is only the reference to the node. That
//! reference is written in draft 4, whose meta-schema is built three times as fast as that of 2020-12.

use std::sync::{Arc, OnceLock};

use jsonschema::{Draft, Keyword, Registry, ValidationError, Validator};
use serde_json::{Value, json};

use super::{
    flatten::{Documents, Layout, OWN_KEYWORD, reference_to},
    formats,
    node::{Arena, Keywords, Node, NodeId},
    number::is_multiple,
};

/// Says of any node whether it accepts a value.
#[derive(Debug)]
pub(super) struct Judge {
    arena: Arc<Arena>,
    root: OnceLock<Validator>,
    /// The documents in which every node is found; only values that the root rejects need them.
    nodes: OnceLock<Resources>,
    validators: Vec<OnceLock<Validator>>,
}

/// Documents, ready to be referred to.
#[derive(Debug)]
struct Resources {
    registry: Registry<'static>,
    has_dynamic_scope: bool,
}

impl Judge {
    /// Makes the judge of an arena; no validator is built yet.
    pub(super) fn new(arena: Arc<Arena>) -> Self {
        let validators = arena.ids().map(|_| OnceLock::new()).collect();
        Self {
            arena,
            root: OnceLock::new(),
            nodes: OnceLock::new(),
            validators,
        }
    }

    /// Whether a node accepts a value.
    pub(super) fn accepts(&self, id: NodeId, value: &Value) -> bool {
        if id == self.arena.root() {
            let build = || self.validator(id, &self.resources(Layout::Root));
            return self.root.get_or_init(build).is_valid(value);
        }
        if let Some(verdict) = at_a_glance(self.arena.node(id), value) {
            return verdict;
        }
        let build = || self.validator(id, self.nodes.get_or_init(|| self.resources(Layout::Nodes)));
        self.validators[id.index()]
            .get_or_init(build)
            .is_valid(value)
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
                let format = arena
                    .keywords(id)
                    .and_then(|keywords| formats::check(keywords.format.as_deref()?));
                Ok(Box::new(OwnAssertions {
                    arena: Arc::clone(&arena),
                    id,
                    format,
                }))
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
