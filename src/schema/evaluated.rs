//! Which members and items of a value some keyword has looked at already, for `unevaluatedProperties` and
//! `unevaluatedItems`: JSON Schema 2020-12, core, sections 10 and 11.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::explain::Accepts;
use super::node::{Arena, Items, Keywords, NodeId};

/// The keys of an object that the node's own keywords, and the schemas that it applies to the same object and that
/// accept it, have looked at.
pub(super) fn keys<'v>(
    arena: &Arena,
    accepts: Accepts<'_>,
    keywords: &Keywords,
    value: &'v Value,
) -> HashSet<&'v str> {
    let mut keys = HashSet::new();
    let Value::Object(members) = value else {
        return keys;
    };
    each_schema(
        arena,
        accepts,
        keywords,
        value,
        &mut |keywords, is_nested| {
            let covers_all = keywords.additional_properties.is_some()
                || (is_nested && keywords.unevaluated_properties.is_some());
            keys.extend(
                members
                    .keys()
                    .map(String::as_str)
                    .filter(|key| covers_all || covers_key(keywords, key)),
            );
        },
    );
    keys
}

fn covers_key(keywords: &Keywords, key: &str) -> bool {
    let is_declared = keywords
        .properties
        .as_ref()
        .is_some_and(|properties| properties.get(key).is_some());
    is_declared
        || keywords
            .pattern_properties
            .iter()
            .flatten()
            .any(|(pattern, _)| pattern.matches(key))
}

/// The same of the items of an array.
pub(super) fn indices(
    arena: &Arena,
    accepts: Accepts<'_>,
    keywords: &Keywords,
    value: &Value,
) -> HashSet<usize> {
    let mut indices = HashSet::new();
    let Value::Array(items) = value else {
        return indices;
    };
    each_schema(
        arena,
        accepts,
        keywords,
        value,
        &mut |keywords, is_nested| {
            let first = match &keywords.items {
                Some(Items::All(_)) => items.len(),
                Some(Items::Each(_)) if keywords.additional_items.is_some() => items.len(),
                Some(Items::Each(each)) => each.len(),
                None => keywords.prefix_items.as_ref().map_or(0, Vec::len),
            };
            let covers_all = is_nested && keywords.unevaluated_items.is_some();
            let contained = |item| keywords.contains.is_some_and(|id| accepts(id, item));
            let covered = items
                .iter()
                .enumerate()
                .filter(|(index, item)| covers_all || *index < first || contained(item));
            indices.extend(covered.map(|(index, _)| index));
        },
    );
    indices
}

/// Visits a node and every schema that it applies to the same value, as deep as they accept it.
fn each_schema(
    arena: &Arena,
    accepts: Accepts<'_>,
    keywords: &Keywords,
    value: &Value,
    visit: &mut dyn FnMut(&Keywords, bool),
) {
    visit(keywords, false);
    let mut seen: HashSet<NodeId> = HashSet::new();
    let mut pending = accepting(accepts, keywords, value);
    while let Some(id) = pending.pop() {
        if let Some(keywords) = arena.keywords(id).filter(|_| seen.insert(id)) {
            visit(keywords, true);
            pending.extend(accepting(accepts, keywords, value));
        }
    }
}

/// The schemas that a node applies to the value it judges, and that accept it.
fn accepting(accepts: Accepts<'_>, keywords: &Keywords, value: &Value) -> Vec<NodeId> {
    let members: Option<&Map<String, Value>> = value.as_object();
    let is_present = |key: &str| members.is_some_and(|members| members.contains_key(key));
    let lists = [&keywords.all_of, &keywords.any_of, &keywords.one_of];
    let condition = keywords
        .condition
        .as_ref()
        .into_iter()
        .flat_map(|condition| {
            let consequence = if accepts(condition.test, value) {
                condition.consequence
            } else {
                condition.alternative
            };
            [Some(condition.test), consequence].into_iter().flatten()
        });
    let dependent = keywords
        .dependent_schemas
        .iter()
        .filter(|(key, _)| is_present(key))
        .map(|(_, id)| *id);
    let reference = keywords
        .reference
        .as_ref()
        .and_then(|reference| reference.target);
    let dynamic = keywords
        .dynamic_reference
        .as_ref()
        .and_then(|reference| reference.target);
    let all = lists.into_iter().flatten().flatten().copied();
    let all = all
        .chain(condition)
        .chain(dependent)
        .chain(reference)
        .chain(dynamic);
    all.filter(|id| accepts(*id, value)).collect()
}
