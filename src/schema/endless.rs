//! References that come back to the same schema without going into the value: checks that would never end.

use std::collections::HashSet;

use super::node::{Arena, Keywords, NodeId};

/// The nodes of an arena that stand on endless cycles, or between two of them.
///
/// What is left when the nodes that lead to no such cycle are taken away, and then those that none leads to.
pub(super) fn endless(arena: &Arena) -> HashSet<NodeId> {
    let has_references = |id| {
        let keywords: Option<&Keywords> = arena.keywords(id);
        keywords.is_some_and(|keywords| {
            keywords.reference.is_some() || keywords.dynamic_reference.is_some()
        })
    };
    if !arena.ids().any(has_references) {
        return HashSet::new();
    }
    let targets: Vec<Vec<NodeId>> = arena
        .ids()
        .map(|id| {
            arena
                .keywords(id)
                .map(|keywords| keywords.in_place().collect())
                .unwrap_or_default()
        })
        .collect();
    let mut sources: Vec<Vec<NodeId>> = vec![Vec::new(); targets.len()];
    for id in arena.ids() {
        for target in &targets[id.index()] {
            sources[target.index()].push(id);
        }
    }
    let mut left: HashSet<NodeId> = arena.ids().collect();
    take_ends(&mut left, &targets, &sources);
    take_ends(&mut left, &sources, &targets);
    left
}

/// Takes away, again and again, every node without a way on.
fn take_ends(left: &mut HashSet<NodeId>, onward: &[Vec<NodeId>], back: &[Vec<NodeId>]) {
    let mut ways: Vec<usize> = onward
        .iter()
        .map(|targets| targets.iter().filter(|id| left.contains(id)).count())
        .collect();
    let mut ends: Vec<NodeId> = left
        .iter()
        .copied()
        .filter(|id| ways[id.index()] == 0)
        .collect();
    while let Some(end) = ends.pop() {
        left.remove(&end);
        for source in back[end.index()].iter().filter(|id| left.contains(id)) {
            ways[source.index()] -= 1;
            if ways[source.index()] == 0 {
                ends.push(*source);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn case(schema: &Value, count: usize) {
        let arena = Arena::read(schema).expect("the schema is readable");
        assert_eq!(endless(&arena).len(), count, "{schema}");
    }

    #[test]
    fn cycles_that_go_into_the_value_end() {
        case(&json!({"properties": {"child": {"$ref": "#"}}}), 0);
        case(
            &json!({"anyOf": [{"items": {"$ref": "#"}}, {"type": "string"}]}),
            0,
        );
        case(&json!({"type": "string"}), 0);
    }

    #[test]
    fn cycles_in_place_do_not() {
        case(&json!({"$ref": "#"}), 1);
        case(&json!({"anyOf": [{"$ref": "#"}, {"type": "integer"}]}), 2);
        case(
            &json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"not": {"$ref": "#/$defs/a"}}}}),
            3,
        );
    }
}
