//! Schemas that judge the same value again: conditions, references, unions.

use std::rc::Rc;

use serde_json::{Map, Value};

use super::assertions::one_of;
use super::{Visit, Walk};
use crate::schema::Violation;
use crate::schema::convert::is_same;
use crate::schema::endless::endless;
use crate::schema::node::{Condition, NodeId, Reference};
use crate::schema::union::{Tag, declared_keys};

impl<'a> Walk<'a> {
    pub(super) fn condition(&mut self, condition: &Condition, value: &'a Value) {
        let consequence = if (self.accepts)(condition.test, value) {
            condition.consequence
        } else {
            condition.alternative
        };
        if let Some(id) = consequence {
            self.node(id, value);
        }
    }

    pub(super) fn reference(&mut self, reference: &Reference, value: &'a Value) {
        let Some(target) = reference.target else {
            self.report("$ref", format!("unresolved reference {}", reference.text));
            return;
        };
        let visit: Visit = (target, std::ptr::from_ref(value), self.path.clone());
        match self.known.get(&visit) {
            Some(Some(known)) => {
                let known = Rc::clone(known);
                return self.tell(&known);
            }
            Some(None) => {
                self.circular.insert(visit);
                return;
            }
            None => {}
        }
        self.known.insert(visit.clone(), None);
        let circular = self.circular.len();
        let mut found = self.apart(|walk| walk.node(target, value));
        let is_circular = found.is_empty()
            && match self.circular.len() - circular {
                0 => self.rejects_endlessly(target, value),
                _ => self.circular.contains(&visit),
            };
        if is_circular {
            found = self.apart(|walk| {
                walk.report("$ref", format!("circular reference {}", reference.text));
            });
        }
        self.tell(&found);
        self.known.insert(visit, Some(found.into()));
    }

    /// Whether a node rejects a value because its check comes back to itself and would never end.
    pub(super) fn rejects_endlessly(&self, id: NodeId, value: &Value) -> bool {
        !(self.accepts)(id, value) && endless(self.arena).contains(&id)
    }

    pub(super) fn union(&mut self, keyword: &str, branches: &'a [NodeId], value: &'a Value) {
        let accepting = branches
            .iter()
            .filter(|id| (self.accepts)(**id, value))
            .count();
        match (keyword, accepting) {
            (_, 0) => {}
            ("oneOf", 2..) => return self.report(keyword, "matches more than one alternative"),
            _ => return,
        }
        if let (Value::Object(members), Some(tag)) = (value, Tag::of(self.arena, branches)) {
            return self.tagged(keyword, &tag, members, value);
        }
        match self.blamed(branches, value) {
            Some(found) => self.tell(&found),
            None => self.report(keyword, "matches no alternative"),
        }
    }

    fn tagged(
        &mut self,
        keyword: &str,
        tag: &Tag<'_>,
        members: &Map<String, Value>,
        value: &'a Value,
    ) {
        let is_actual = |constant| {
            members
                .get(tag.name)
                .is_some_and(|actual| is_same(actual, constant))
        };
        if let Some((_, id)) = tag
            .branches
            .iter()
            .find(|(constant, _)| is_actual(constant))
        {
            return self.node(*id, value);
        }
        let tags: Vec<Value> = tag
            .branches
            .iter()
            .map(|(constant, _)| (*constant).clone())
            .collect();
        self.report_at(tag.name, keyword, one_of(&tags));
    }

    /// What the branch that was most likely meant reports.
    fn blamed(&mut self, branches: &'a [NodeId], value: &'a Value) -> Option<Vec<Violation>> {
        let mut best: Option<((usize, usize), Vec<Violation>)> = None;
        for id in branches {
            let found = self.apart(|walk| walk.node(*id, value));
            let Some(first) = found.first() else { continue };
            let rank = (
                declared_keys(self.arena, *id, value),
                first.path.encode_utf16().count(),
            );
            if best.as_ref().is_none_or(|(highest, _)| rank > *highest) {
                best = Some((rank, found));
            }
        }
        best.map(|(_, found)| found)
    }
}
