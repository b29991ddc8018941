//! The three passes of coercion over a value that the schema does not accept as it is.
//!
//! Each pass copies only what it changes and returns `None` where that is nothing. What was changed is recorded as
//! steps; those of an alternative that is not taken are forgotten again. The rules are the reference's, see
//! `Schema::accept` for what pitool does besides.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{
    convert::{Converted, convert, is_lossy, is_same, settle},
    judge::Judge,
    memo::{Identity, Memo},
    node::{Arena, Items, Keywords, NodeId, Type},
    step::{Place, Step},
};
use crate::json::{MAX_DEPTH, depth};

/// How many levels wraps may add to a value: more than any list of lists has, few enough for the stack.
const MOST_ADDED_LEVELS: usize = 32;

/// How many values may be wrapped while another wrap is going on, in one coercion.
const MOST_NESTED_WRAPS: usize = 10_000;

/// Coerces one value.
pub(super) struct Coercer<'a> {
    pub(super) arena: &'a Arena,
    pub(super) judge: &'a Judge,
    /// Whether optional nulls are dropped behind a `$ref` too.
    follows_references: bool,
    pub(super) steps: Vec<Step>,
    pub(super) memo: Memo,
    wraps: Wraps,
}

/// Array schemas that are wrapping values.
#[derive(Default)]
struct Wraps {
    in_progress: HashSet<(NodeId, Identity)>,
    /// How many there were inside another.
    nested: usize,
    /// The depth at which nothing is wrapped any more.
    deepest: usize,
}

impl<'a> Coercer<'a> {
    pub(super) fn new(arena: &'a Arena, judge: &'a Judge) -> Self {
        Self {
            arena,
            judge,
            follows_references: false,
            steps: Vec::new(),
            memo: Memo::default(),
            wraps: Wraps::default(),
        }
    }

    /// Coerces a value by the three passes; `None` if nothing changes.
    pub(super) fn coerce(&mut self, id: NodeId, value: &Value, at: &Place<'_>) -> Option<Value> {
        self.wraps.deepest = (at.depth() + depth(value) + MOST_ADDED_LEVELS).min(MAX_DEPTH);
        let dropped = self.drop_nulls(id, value, at);
        let current = dropped.as_ref().unwrap_or(value);
        let converted = self.alone(|coercer| coercer.convert(id, current, at));
        let current = converted.as_ref().unwrap_or(current);
        let settled = self.settle(id, current, at);
        settled.or(converted).or(dropped)
    }

    /// Coerces a value with what `extended` does besides; `None` if nothing changes.
    pub(super) fn coerce_extended(
        &mut self,
        id: NodeId,
        value: &Value,
        at: &Place<'_>,
    ) -> Option<Value> {
        self.follows_references = true;
        let read = self.alone(|coercer| coercer.read_texts(id, value, at));
        self.then(read, value, |coercer, value| coercer.coerce(id, value, at))
    }

    /// What was done so far, in order.
    pub(super) fn into_steps(self) -> Vec<Step> {
        self.steps
    }

    pub(super) fn accepts(&self, id: NodeId, value: &Value) -> bool {
        self.judge.accepts(id, value)
    }

    pub(super) fn record(&mut self, at: &Place<'_>, from: &Value, converted: Converted) -> Value {
        let Converted { value, rule, lossy } = converted;
        self.steps.push(Step {
            path: at.to_string(),
            from: from.clone(),
            to: Some(value.clone()),
            rule,
            lossy,
        });
        value
    }
}

/// Pass 1: optional nulls.
impl Coercer<'_> {
    fn drop_nulls(&mut self, id: NodeId, value: &Value, at: &Place<'_>) -> Option<Value> {
        let keywords = self.arena.keywords(id)?;
        let referred = keywords
            .reference
            .as_ref()
            .and_then(|reference| reference.target);
        let followed =
            referred.filter(|_| self.follows_references && (value.is_array() || value.is_object()));
        let walked = followed.and_then(|target| {
            self.once(target, value, |coercer| {
                coercer.drop_nulls(target, value, at)
            })
        });
        self.then(walked, value, |coercer, value| match value {
            Value::Object(members) => coercer.drop_members(keywords, members, at),
            Value::Array(items) => coercer.each_item(keywords, items, at, Self::drop_nulls),
            _ => None,
        })
    }

    fn drop_members(
        &mut self,
        keywords: &Keywords,
        members: &Map<String, Value>,
        at: &Place<'_>,
    ) -> Option<Value> {
        let is_dropped = |coercer: &Self, key: &str, value: &Value| {
            coercer.is_optional_null(keywords, key, value)
        };
        let dropped: HashSet<&String> = members
            .iter()
            .filter(|(key, value)| value.is_null() && is_dropped(self, key, value))
            .map(|(key, _)| key)
            .collect();
        for key in members.keys().filter(|key| dropped.contains(key)) {
            let path = at.key(key).to_string();
            self.steps.push(Step {
                path,
                from: Value::Null,
                to: None,
                rule: "drop-null",
                lossy: false,
            });
        }
        let walked = self.each_member(keywords, members, at, Self::drop_nulls);
        if dropped.is_empty() {
            return walked;
        }
        let mut kept = match walked {
            Some(Value::Object(walked)) => walked,
            _ => members.clone(),
        };
        kept.retain(|key, _| !dropped.contains(key));
        Some(Value::Object(kept))
    }

    fn is_optional_null(&self, keywords: &Keywords, key: &str, value: &Value) -> bool {
        let declared = keywords
            .properties
            .as_ref()
            .and_then(|members| members.get(key));
        declared.is_some_and(|id| {
            let is_reference = self
                .arena
                .keywords(id)
                .is_some_and(|keywords| keywords.reference.is_some());
            (!is_reference || self.follows_references)
                && !keywords.requires(key)
                && !self.accepts(id, value)
        })
    }
}

/// Pass 2: conversion by keyword.
impl Coercer<'_> {
    fn convert(&mut self, id: NodeId, value: &Value, at: &Place<'_>) -> Option<Value> {
        let keywords = self.arena.keywords(id)?;
        if let Some(reference) = &keywords.reference {
            return self.by_reference(reference.target?, value, at, Self::convert);
        }
        if let Some(constant) = &keywords.constant {
            return self.convert_to_member(constant, value, at, "const");
        }
        if let Some(members) = &keywords.enumeration {
            return self.convert_to_one_of(id, members, value, at);
        }
        if let Some(branches) = keywords.any_of.as_ref().or(keywords.one_of.as_ref()) {
            let chosen = self.convert_by_branch(id, branches, keywords, value, at);
            return self.then(chosen, value, |coercer, value| {
                coercer.convert_members(keywords, value, at)
            });
        }
        if let Some(members) = &keywords.all_of {
            let all = members.iter().fold(None, |converted, member| {
                self.then(converted, value, |coercer, value| {
                    coercer.convert(*member, value, at)
                })
            });
            return self.then(all, value, |coercer, value| {
                coercer.convert_members(keywords, value, at)
            });
        }
        self.convert_by_type(id, keywords, value, at)
    }

    /// Converts a value to a constant, if it becomes equal to it as a value of its type.
    fn convert_to_member(
        &mut self,
        member: &Value,
        value: &Value,
        at: &Place<'_>,
        rule: &'static str,
    ) -> Option<Value> {
        if is_same(member, value) || !becomes(value, member) {
            return None;
        }
        let lossy = is_lossy(value, member);
        Some(self.record(
            at,
            value,
            Converted {
                value: member.clone(),
                rule,
                lossy,
            },
        ))
    }

    fn convert_to_one_of(
        &mut self,
        id: NodeId,
        members: &[Value],
        value: &Value,
        at: &Place<'_>,
    ) -> Option<Value> {
        if members.iter().any(|member| is_same(member, value)) {
            return None;
        }
        let member = members
            .iter()
            .find(|member| becomes(value, member) && self.accepts(id, member))?;
        self.convert_to_member(member, value, at, "enum")
    }

    fn convert_by_branch(
        &mut self,
        id: NodeId,
        branches: &[NodeId],
        keywords: &Keywords,
        value: &Value,
        at: &Place<'_>,
    ) -> Option<Value> {
        self.by_branch(branches, value, |coercer, branch| {
            let converted = coercer.convert(branch, value, at);
            let candidate = coercer.then(converted, value, |coercer, value| {
                coercer.convert_members(keywords, value, at)
            });
            candidate.filter(|candidate| coercer.accepts(id, candidate))
        })
    }

    fn convert_by_type(
        &mut self,
        id: NodeId,
        keywords: &Keywords,
        value: &Value,
        at: &Place<'_>,
    ) -> Option<Value> {
        let to = match &keywords.types {
            Some(types) => types.single()?,
            None if keywords.properties.is_some() || keywords.pattern_properties.is_some() => {
                Type::Object
            }
            None if keywords.items.is_some() || keywords.prefix_items.is_some() => Type::Array,
            None => return None,
        };
        match to {
            Type::Object => self.convert_members(keywords, value, at),
            Type::Array => self.convert_array(id, keywords, value, at),
            primitive => {
                convert(value, primitive).map(|converted| self.record(at, value, converted))
            }
        }
    }

    /// Converts the members of an object by the node's own keywords.
    fn convert_members(
        &mut self,
        keywords: &Keywords,
        value: &Value,
        at: &Place<'_>,
    ) -> Option<Value> {
        self.each_member(keywords, value.as_object()?, at, Self::convert)
    }

    fn convert_array(
        &mut self,
        id: NodeId,
        keywords: &Keywords,
        value: &Value,
        at: &Place<'_>,
    ) -> Option<Value> {
        if let Value::Array(items) = value {
            return self.each_item(keywords, items, at, Self::convert);
        }
        if keywords.prefix_items.is_some() || matches!(keywords.items, Some(Items::Each(_))) {
            return None;
        }
        self.wrap(id, keywords, value, at)
    }

    fn wrap(
        &mut self,
        id: NodeId,
        keywords: &Keywords,
        value: &Value,
        at: &Place<'_>,
    ) -> Option<Value> {
        if at.depth() >= self.wraps.deepest || self.wraps.nested == MOST_NESTED_WRAPS {
            return None;
        }
        self.wraps.nested += usize::from(!self.wraps.in_progress.is_empty());
        let is_list_text = value.as_str().is_some_and(is_text_of_list);
        let wrapped = Value::Array(vec![value.clone()]);
        self.record(
            at,
            value,
            Converted {
                value: wrapped,
                rule: "wrap",
                lossy: is_list_text,
            },
        );
        let key = (id, Identity::of(value));
        let item = match keywords.items {
            Some(Items::All(items)) if self.wraps.in_progress.insert(key) => {
                let item = self.convert(items, value, &at.index(0));
                self.wraps.in_progress.remove(&key);
                item
            }
            _ => None,
        };
        Some(Value::Array(vec![item.unwrap_or_else(|| value.clone())]))
    }
}

/// Pass 3: primitives by `type`.
impl Coercer<'_> {
    fn settle(&mut self, id: NodeId, value: &Value, at: &Place<'_>) -> Option<Value> {
        let keywords = self.arena.keywords(id)?;
        let mut settled: Option<Value> = None;
        for member in keywords.all_of.iter().flatten() {
            let current = settled.as_ref().unwrap_or(value);
            settled = self.settle(*member, current, at).or(settled);
        }
        for branches in [&keywords.any_of, &keywords.one_of].into_iter().flatten() {
            let current = settled.as_ref().unwrap_or(value);
            settled = self.settle_by_branch(branches, current, at).or(settled);
        }
        let Some(types) = &keywords.types else {
            return settled;
        };
        let current = settled.as_ref().unwrap_or(value);
        let has_one =
            types.names.len() > 1 && types.known.iter().any(|known| known.admits(current));
        if !has_one
            && let Some(converted) = types.known.iter().find_map(|known| settle(current, *known))
        {
            let made = self.record(at, current, converted);
            settled = Some(made);
        }
        let current = settled.as_ref().unwrap_or(value);
        let parts = match current {
            Value::Object(members) if types.known.contains(&Type::Object) => {
                self.each_member(keywords, members, at, Self::settle)
            }
            Value::Array(items) if types.known.contains(&Type::Array) => {
                self.each_item(keywords, items, at, Self::settle)
            }
            _ => None,
        };
        parts.or(settled)
    }

    fn settle_by_branch(
        &mut self,
        branches: &[NodeId],
        value: &Value,
        at: &Place<'_>,
    ) -> Option<Value> {
        self.by_branch(branches, value, |coercer, branch| {
            let settled = coercer.settle(branch, value, at);
            settled.filter(|settled| coercer.accepts(branch, settled))
        })
    }
}

/// Whether a value, converted to the type of a string, number or boolean, equals it.
fn becomes(value: &Value, member: &Value) -> bool {
    let to = match member {
        Value::String(_) => Type::String,
        Value::Number(_) => Type::Number,
        Value::Bool(_) => Type::Boolean,
        Value::Null | Value::Array(_) | Value::Object(_) => return false,
    };
    convert(value, to).is_some_and(|converted| is_same(&converted.value, member))
}

fn is_text_of_list(text: &str) -> bool {
    text.trim_start().starts_with('[')
        && serde_json::from_str::<Vec<serde::de::IgnoredAny>>(text).is_ok()
}
