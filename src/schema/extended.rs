//! What coercion `extended` does before the three passes: JSON text becomes what it says where no string is taken.
//!
//! Models send `"[\"a\",\"b\"]"` for a list; the reference makes that a list of one string without a word.

use std::collections::HashSet;

use serde_json::Value;

use super::{
    coerce::Coercer,
    convert::Converted,
    node::{Arena, Keywords, Node, NodeId, Type},
    step::Place,
};

impl Coercer<'_> {
    /// Replaces JSON text by what it says, wherever a place takes that and no string.
    pub(super) fn read_texts(
        &mut self,
        id: NodeId,
        value: &Value,
        at: &Place<'_>,
    ) -> Option<Value> {
        let keywords = self.arena.keywords(id)?;
        match value {
            Value::String(text) => self.read_text(id, text, value, at),
            Value::Array(_) | Value::Object(_) => self.read_parts(id, keywords, value, at),
            _ => None,
        }
    }

    fn read_text(
        &mut self,
        id: NodeId,
        text: &str,
        value: &Value,
        at: &Place<'_>,
    ) -> Option<Value> {
        let said =
            container_in(text).filter(|_| !takes_string(self.arena, id, &mut HashSet::new()))?;
        let is_taken = self.is_acceptable(id, &said);
        is_taken.then(|| {
            self.record(
                at,
                value,
                Converted {
                    value: said,
                    rule: "read-text",
                    lossy: false,
                },
            )
        })
    }

    /// Goes into the parts of a value, by every schema that covers them.
    fn read_parts(
        &mut self,
        id: NodeId,
        keywords: &Keywords,
        value: &Value,
        at: &Place<'_>,
    ) -> Option<Value> {
        let referred = keywords
            .reference
            .as_ref()
            .and_then(|reference| reference.target);
        let mut read =
            referred.and_then(|target| self.by_reference(target, value, at, Self::read_texts));
        for member in keywords.all_of.iter().flatten() {
            read = self.then(read, value, |coercer, value| {
                coercer.read_texts(*member, value, at)
            });
        }
        for branches in [&keywords.any_of, &keywords.one_of].into_iter().flatten() {
            read = self.then(read, value, |coercer, value| {
                coercer.read_by_branch(id, branches, value, at)
            });
        }
        self.then(read, value, |coercer, value| match value {
            Value::Object(members) => coercer.each_member(keywords, members, at, Self::read_texts),
            Value::Array(items) => coercer.each_item(keywords, items, at, Self::read_texts),
            _ => None,
        })
    }

    /// Takes the first alternative that reads something and makes the whole acceptable.
    fn read_by_branch(
        &mut self,
        id: NodeId,
        branches: &[NodeId],
        value: &Value,
        at: &Place<'_>,
    ) -> Option<Value> {
        self.by_branch(branches, value, |coercer, branch| {
            let read = coercer.read_texts(branch, value, at)?;
            coercer.is_acceptable(id, &read).then_some(read)
        })
    }

    /// Whether a node accepts a value, as it is or coerced.
    fn is_acceptable(&self, id: NodeId, value: &Value) -> bool {
        let coerced = || Coercer::new(self.arena, self.judge).coerce(id, value, &Place::ROOT);
        self.accepts(id, value) || coerced().is_some_and(|coerced| self.accepts(id, &coerced))
    }
}

/// The object or array that a text says, if it says one.
fn container_in(text: &str) -> Option<Value> {
    if !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    serde_json::from_str(text).ok()
}

/// Whether a schema could take any string at all, as far as can be told without a value.
fn takes_string(arena: &Arena, id: NodeId, asked: &mut HashSet<NodeId>) -> bool {
    let keywords = match arena.node(id) {
        Node::Boolean(accepts) => return *accepts,
        Node::Keywords(keywords) => keywords,
    };
    if !asked.insert(id) {
        return false;
    }
    let mut takes = |id: &NodeId| takes_string(arena, *id, asked);
    let by_branch = [&keywords.any_of, &keywords.one_of]
        .into_iter()
        .flatten()
        .all(|branches| branches.iter().any(&mut takes));
    let by_member = keywords.all_of.iter().flatten().all(&mut takes);
    let by_reference = keywords
        .reference
        .as_ref()
        .is_none_or(|reference| reference.target.as_ref().is_some_and(&mut takes));
    asked.remove(&id);
    by_branch
        && by_member
        && by_reference
        && keywords
            .types
            .as_ref()
            .is_none_or(|types| types.known.contains(&Type::String))
        && keywords
            .enumeration
            .as_ref()
            .is_none_or(|members| members.iter().any(Value::is_string))
        && keywords.constant.as_ref().is_none_or(Value::is_string)
}
