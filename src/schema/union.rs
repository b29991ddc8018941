//! Which branch of an `anyOf` or `oneOf` a value was meant for.

use std::collections::HashSet;

use serde_json::Value;

use super::convert::is_same;
use super::node::{Arena, Members, NodeId};

/// A property that tells the branches of a union apart: in each a constant of its own.
pub(super) struct Tag<'a> {
    /// Its name.
    pub(super) name: &'a str,
    /// The constant of each branch, and the branch.
    pub(super) branches: Vec<(&'a Value, NodeId)>,
}

impl<'a> Tag<'a> {
    /// The tag of a union, if it has one.
    pub(super) fn of(arena: &'a Arena, branches: &[NodeId]) -> Option<Self> {
        let first = properties(arena, *branches.first()?)?;
        first.iter().find_map(|(name, _)| {
            let constants = branches
                .iter()
                .map(|id| Some((constant(arena, *id, name)?, *id)));
            let branches: Vec<(&Value, NodeId)> = constants.collect::<Option<_>>()?;
            let is_different = |index: usize| {
                let (constant, _) = branches[index];
                !branches[..index]
                    .iter()
                    .any(|(other, _)| is_same(constant, other))
            };
            (0..branches.len())
                .all(is_different)
                .then_some(Self { name, branches })
        })
    }
}

/// The primitive value that a branch prescribes for a property.
fn constant<'a>(arena: &'a Arena, branch: NodeId, name: &str) -> Option<&'a Value> {
    let property = properties(arena, branch)?.get(name)?;
    let constant = arena.keywords(property)?.constant.as_ref()?;
    (!constant.is_object() && !constant.is_array()).then_some(constant)
}

/// How many keys of an object a branch declares.
pub(super) fn declared_keys(arena: &Arena, branch: NodeId, value: &Value) -> usize {
    let (Some(members), Some(properties)) = (value.as_object(), properties(arena, branch)) else {
        return 0;
    };
    members
        .keys()
        .filter(|key| properties.get(key).is_some())
        .count()
}

/// The `properties` of a branch, or of what it refers to.
fn properties(arena: &Arena, branch: NodeId) -> Option<&Members> {
    let mut seen = HashSet::new();
    let mut id = branch;
    while let Some(target) = arena
        .keywords(id)?
        .reference
        .as_ref()
        .and_then(|reference| reference.target)
    {
        if !seen.insert(id) {
            return None;
        }
        id = target;
    }
    arena.keywords(id)?.properties.as_ref()
}
