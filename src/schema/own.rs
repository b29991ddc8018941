//! The assertions of a node that the `jsonschema` crate would judge otherwise than the reference: formats it does not
//! have, patterns and `multipleOf`.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::formats;
use super::node::{Arena, Keywords, NodeId};
use super::number::is_multiple;

/// These assertions of one node.
pub(super) struct OwnAssertions {
    arena: Arc<Arena>,
    id: NodeId,
    format: Option<fn(&str) -> bool>,
}

impl OwnAssertions {
    /// Whether a node has any.
    pub(super) fn has_any(keywords: &Keywords) -> bool {
        keywords.pattern.is_some() || keywords.multiple_of.is_some() || Self::has_format(keywords)
    }

    /// Whether the format of a node, if it has one, is judged here.
    pub(super) fn has_format(keywords: &Keywords) -> bool {
        format_of(keywords).is_some()
    }

    /// The assertions of a node.
    pub(super) fn of(arena: &Arc<Arena>, id: NodeId) -> Self {
        Self {
            arena: Arc::clone(arena),
            id,
            format: arena.keywords(id).and_then(format_of),
        }
    }

    /// Whether a value keeps them.
    pub(super) fn hold(&self, value: &Value) -> bool {
        let Some(keywords) = self.arena.keywords(self.id) else {
            return true;
        };
        match value {
            Value::String(text) => {
                self.format.is_none_or(|is_format| is_format(text))
                    && keywords
                        .pattern
                        .as_ref()
                        .is_none_or(|pattern| pattern.matches(text))
            }
            Value::Number(number) => keywords
                .multiple_of
                .as_ref()
                .is_none_or(|step| is_multiple(number, step)),
            _ => true,
        }
    }
}

fn format_of(keywords: &Keywords) -> Option<fn(&str) -> bool> {
    formats::check(keywords.format.as_deref()?)
}

impl fmt::Debug for OwnAssertions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id.fmt(formatter)
    }
}
