//! What is wrong with a value that a schema rejects: the reference's words, in its order.
//!
//! The walk asks the validator whether a node accepts a value and never decides that itself; it only finds out which
//! keyword to blame. `jsonschema`'s own errors are not looked at: they stand in another order, at other places.

mod assertions;
mod in_place;
mod parts;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use serde_json::Value;

use super::Violation;
use super::evaluated;
use super::node::{Arena, Keywords, Node, NodeId};
use super::stack;
use crate::json;

/// How many violations are told at most; only schemas that repeat themselves at every level have more.
const MOST: usize = 100_000;

/// How many nodes the walk may stand in at a time for each level of the value; a guard for the stack.
const NODES_PER_LEVEL: usize = 16;

/// How many nodes may judge one value one below the other; a guard for the time, as each has a validator of its own.
const MOST_IN_PLACE: usize = 64;

/// Whether a node accepts a value.
pub(super) type Accepts<'a> = &'a dyn Fn(NodeId, &Value) -> bool;

/// Tells what the root of an arena has against a value; never empty.
pub(super) fn explain(arena: &Arena, value: &Value, accepts: Accepts<'_>) -> Vec<Violation> {
    let mut walk = Walk {
        arena,
        accepts,
        path: String::new(),
        found: Vec::new(),
        known: HashMap::new(),
        circular: HashSet::new(),
        room: json::depth(value).max(stack::SHALLOW) * NODES_PER_LEVEL,
        in_place: 0,
    };
    walk.node(arena.root(), value);
    if walk.found.is_empty() && walk.rejects_endlessly(arena.root(), value) {
        walk.report("$ref", "circular reference #");
    }
    if walk.found.is_empty() {
        walk.report("schema", "invalid");
    }
    walk.found
}

/// A node that judges the value at an address, at a path.
type Visit = (NodeId, *const Value, String);

struct Walk<'a> {
    arena: &'a Arena,
    accepts: Accepts<'a>,
    /// Where the walk is, as a JSON Pointer.
    path: String,
    found: Vec<Violation>,
    /// What targets of references were found to report, so that recursive unions are not walked again and again;
    /// nothing yet for one that is being walked.
    known: HashMap<Visit, Option<Rc<[Violation]>>>,
    /// The visits that came back to themselves without an end.
    circular: HashSet<Visit>,
    /// How many more nodes there is room for on the stack.
    room: usize,
    /// How many nodes judge the value where the walk is, one below the other.
    in_place: usize,
}

impl<'a> Walk<'a> {
    fn report(&mut self, keyword: &str, message: impl Into<String>) {
        self.tell(&[Violation {
            path: self.path.clone(),
            keyword: keyword.to_owned(),
            message: message.into(),
        }]);
    }

    fn tell(&mut self, violations: &[Violation]) {
        let room = MOST - self.found.len();
        self.found.extend(violations.iter().take(room).cloned());
    }

    /// Does something one level deeper in the value.
    fn at(&mut self, token: &str, then: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        let in_place = std::mem::take(&mut self.in_place);
        self.path.push('/');
        for character in token.chars() {
            match character {
                '~' => self.path.push_str("~0"),
                '/' => self.path.push_str("~1"),
                other => self.path.push(other),
            }
        }
        then(self);
        self.in_place = in_place;
        self.path.truncate(length);
    }

    fn report_at(&mut self, token: &str, keyword: &str, message: impl Into<String>) {
        self.at(token, |walk| walk.report(keyword, message));
    }

    fn node_at(&mut self, token: &str, id: NodeId, value: &'a Value) {
        self.at(token, |walk| walk.node(id, value));
    }

    /// What something reports, taken out of what is reported.
    fn apart(&mut self, walk: impl FnOnce(&mut Self)) -> Vec<Violation> {
        let before = std::mem::take(&mut self.found);
        walk(self);
        std::mem::replace(&mut self.found, before)
    }

    fn node(&mut self, id: NodeId, value: &'a Value) {
        if self.found.len() == MOST || (self.accepts)(id, value) {
            return;
        }
        if self.room == 0 || self.in_place == MOST_IN_PLACE {
            return self.report("schema", "invalid");
        }
        self.room -= 1;
        self.in_place += 1;
        match self.arena.node(id) {
            Node::Boolean(_) => self.report("false", "no value is allowed here"),
            Node::Keywords(keywords) => self.keywords(keywords, value),
        }
        self.in_place -= 1;
        self.room += 1;
    }

    fn keywords(&mut self, keywords: &'a Keywords, value: &'a Value) {
        let before = self.found.len();
        if self.wrong_type(keywords, value) {
            return;
        }
        self.values(keywords, value);
        match value {
            Value::String(text) => self.string(keywords, text, value),
            Value::Number(number) => self.number(keywords, number),
            Value::Object(members) => self.object(keywords, members, value),
            Value::Array(items) => self.array(keywords, items, value),
            Value::Null | Value::Bool(_) => {}
        }
        self.in_place(keywords, value);
        if self.found.len() == before {
            self.unevaluated(keywords, value);
        }
        if self.found.len() == before && keywords.dynamic_reference.is_some() {
            self.report(
                "$dynamicRef",
                "does not match the dynamically referenced schema",
            );
        }
    }

    /// The keywords that judge the same value again.
    fn in_place(&mut self, keywords: &'a Keywords, value: &'a Value) {
        for id in keywords.all_of.iter().flatten() {
            self.node(*id, value);
        }
        for (keyword, branches) in [("anyOf", &keywords.any_of), ("oneOf", &keywords.one_of)] {
            if let Some(branches) = branches {
                self.union(keyword, branches, value);
            }
        }
        if keywords.not.is_some_and(|id| (self.accepts)(id, value)) {
            self.report("not", "must not match the schema in not");
        }
        if let Some(condition) = &keywords.condition {
            self.condition(condition, value);
        }
        if let Some(reference) = &keywords.reference {
            self.reference(reference, value);
        }
    }

    /// `unevaluatedProperties` and `unevaluatedItems`.
    fn unevaluated(&mut self, keywords: &'a Keywords, value: &'a Value) {
        if let (Value::Object(members), Some(rest)) = (value, keywords.unevaluated_properties) {
            let evaluated = evaluated::keys(self.arena, self.accepts, keywords, value);
            let rule = ("unevaluatedProperties", "unknown field");
            for (key, member) in members
                .iter()
                .filter(|(key, _)| !evaluated.contains(key.as_str()))
            {
                self.unknown(rest, rule, key, member);
            }
        }
        if let (Value::Array(items), Some(rest)) = (value, keywords.unevaluated_items) {
            let evaluated = evaluated::indices(self.arena, self.accepts, keywords, value);
            let rule = ("unevaluatedItems", "unexpected item");
            for (index, item) in items
                .iter()
                .enumerate()
                .filter(|(index, _)| !evaluated.contains(index))
            {
                self.unknown(rest, rule, &index.to_string(), item);
            }
        }
    }
}

#[cfg(test)]
mod tests;
