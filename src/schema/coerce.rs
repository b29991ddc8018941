//! The three passes of coercion over a value that the schema does not accept as it is.
//!
//! Each pass copies only what it changes and returns `None` where that is nothing. What was changed is recorded as
//! steps; those of an alternative that is not taken are forgotten again. The rules are the reference's, see
//! `Schema::accept` for what pitool does besides.

use std::{
    collections::{HashMap, HashSet},
    hash::{DefaultHasher, Hash, Hasher},
};

use serde_json::{Map, Value};

use super::{
    convert::{Converted, convert, is_lossy, is_same, settle},
    judge::Judge,
    node::{Arena, Items, Keywords, NodeId, Type},
    step::{Place, Step},
};
use crate::json::{MAX_DEPTH, number_text};

/// How many values may be wrapped while another wrap is going on, in one coercion.
const MOST_NESTED_WRAPS: usize = 10_000;

/// Coerces one value.
pub(super) struct Coercer<'a> {
    arena: &'a Arena,
    judge: &'a Judge,
    steps: Vec<Step>,
    memo: Memo,
    wraps: Wraps,
}

/// A value as a key: arrays and objects are themselves, primitives what they are.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Identity {
    Address(usize),
    Primitive(u64),
}

/// What `$ref`s made of values, within one pass.
#[derive(Default)]
struct Memo {
    /// `None` where nothing changed.
    results: HashMap<(NodeId, Identity), Option<Remembered>>,
    /// The order of `results`, so that what concerns a value that is about to go can be forgotten.
    order: Vec<(NodeId, Identity)>,
    in_progress: HashSet<(NodeId, Identity)>,
}

/// A conversion's result and its steps, their paths relative to the value.
#[derive(Clone)]
struct Remembered {
    value: Value,
    steps: Vec<Step>,
}

/// Array schemas that are wrapping values.
#[derive(Default)]
struct Wraps {
    in_progress: HashSet<(NodeId, Identity)>,
    nested: usize,
}

impl<'a> Coercer<'a> {
    pub(super) fn new(arena: &'a Arena, judge: &'a Judge) -> Self {
        Self {
            arena,
            judge,
            steps: Vec::new(),
            memo: Memo::default(),
            wraps: Wraps::default(),
        }
    }

    /// Coerces a value by the three passes; `None` if nothing changes.
    pub(super) fn coerce(&mut self, id: NodeId, value: &Value, at: &Place<'_>) -> Option<Value> {
        let dropped = self.drop_nulls(id, value, at);
        let current = dropped.as_ref().unwrap_or(value);
        let converted = self.convert_alone(id, current, at);
        let current = converted.as_ref().unwrap_or(current);
        let settled = self.settle(id, current, at);
        settled.or(converted).or(dropped)
    }

    /// What was done so far, in order.
    pub(super) fn into_steps(self) -> Vec<Step> {
        self.steps
    }

    fn accepts(&self, id: NodeId, value: &Value) -> bool {
        self.judge.accepts(id, value)
    }

    fn record(&mut self, at: &Place<'_>, from: &Value, converted: Converted) -> Value {
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
        match value {
            Value::Object(members) => self.drop_members(keywords, members, at),
            Value::Array(items) => self.each_item(keywords, items, at, Self::drop_nulls),
            _ => None,
        }
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
            !is_reference && !keywords.requires(key) && !self.accepts(id, value)
        })
    }
}

/// Pass 2: conversion by keyword.
impl Coercer<'_> {
    /// Converts a value that nobody else holds on to.
    fn convert_alone(&mut self, id: NodeId, value: &Value, at: &Place<'_>) -> Option<Value> {
        let mark = self.memo.order.len();
        let converted = self.convert(id, value, at);
        self.memo.forget_since(mark);
        converted
    }

    fn convert(&mut self, id: NodeId, value: &Value, at: &Place<'_>) -> Option<Value> {
        let keywords = self.arena.keywords(id)?;
        if let Some(reference) = &keywords.reference {
            return self.convert_by_reference(reference.target?, value, at);
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

    /// Goes on with what there is so far, which may be nothing.
    ///
    /// A value made on the way goes once it is converted further; what is remembered of its parts must go too, or
    /// another value could take their addresses.
    fn then(
        &mut self,
        converted: Option<Value>,
        value: &Value,
        next: impl FnOnce(&mut Self, &Value) -> Option<Value>,
    ) -> Option<Value> {
        let Some(made) = converted else {
            return next(self, value);
        };
        let mark = self.memo.order.len();
        let further = next(self, &made);
        self.memo.forget_since(mark);
        Some(further.unwrap_or(made))
    }

    fn convert_by_reference(
        &mut self,
        target: NodeId,
        value: &Value,
        at: &Place<'_>,
    ) -> Option<Value> {
        let key = (target, Identity::of(value));
        if self.memo.in_progress.contains(&key) {
            return None;
        }
        if let Some(remembered) = self.memo.results.get(&key) {
            let Remembered { value, steps } = remembered.as_ref()?.clone();
            let path = at.to_string();
            self.steps.extend(steps.into_iter().map(|step| Step {
                path: format!("{path}{}", step.path),
                ..step
            }));
            return Some(value);
        }
        let mark = self.steps.len();
        self.memo.in_progress.insert(key);
        let converted = self.convert(target, value, at);
        self.memo.in_progress.remove(&key);
        let remembered = converted.clone().map(|value| {
            let above = at.to_string().len();
            let relative = |step: &Step| Step {
                path: step.path[above..].to_owned(),
                ..step.clone()
            };
            Remembered {
                value,
                steps: self.steps[mark..].iter().map(relative).collect(),
            }
        });
        self.memo.remember(key, remembered);
        converted
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
        if branches.iter().any(|branch| self.accepts(*branch, value)) {
            return None;
        }
        branches.iter().find_map(|branch| {
            let mark = self.steps.len();
            let converted = self.convert(*branch, value, at);
            let candidate = self.then(converted, value, |coercer, value| {
                coercer.convert_members(keywords, value, at)
            });
            let taken = candidate.filter(|candidate| self.accepts(id, candidate));
            if taken.is_none() {
                self.steps.truncate(mark);
            }
            taken
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
        if at.depth() >= MAX_DEPTH || self.wraps.nested >= MOST_NESTED_WRAPS {
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
        if branches.iter().any(|branch| self.accepts(*branch, value)) {
            return None;
        }
        branches.iter().find_map(|branch| {
            let mark = self.steps.len();
            let settled = self
                .settle(*branch, value, at)
                .filter(|settled| self.accepts(*branch, settled));
            if settled.is_none() {
                self.steps.truncate(mark);
            }
            settled
        })
    }
}

/// The parts of a value and the schemas that cover them.
impl Coercer<'_> {
    /// Changes the members of an object by each schema that covers them.
    fn each_member(
        &mut self,
        keywords: &Keywords,
        members: &Map<String, Value>,
        at: &Place<'_>,
        mut change: impl FnMut(&mut Self, NodeId, &Value, &Place<'_>) -> Option<Value>,
    ) -> Option<Value> {
        if keywords.properties.is_none()
            && keywords.pattern_properties.is_none()
            && keywords.additional_properties.is_none()
        {
            return None;
        }
        let mut changed: HashMap<usize, Value> = HashMap::new();
        for (index, (key, value)) in members.iter().enumerate() {
            if let Some(value) = self.by_each(keywords, key, value, &at.key(key), &mut change) {
                changed.insert(index, value);
            }
        }
        if changed.is_empty() {
            return None;
        }
        let current = |(index, (key, value)): (usize, (&String, &Value))| {
            (
                key.clone(),
                changed.remove(&index).unwrap_or_else(|| value.clone()),
            )
        };
        Some(Value::Object(
            members.iter().enumerate().map(current).collect(),
        ))
    }

    /// Changes one member by each schema that covers it, in turn.
    fn by_each(
        &mut self,
        keywords: &Keywords,
        key: &str,
        value: &Value,
        at: &Place<'_>,
        mut change: impl FnMut(&mut Self, NodeId, &Value, &Place<'_>) -> Option<Value>,
    ) -> Option<Value> {
        keywords.covering(key).fold(None, |changed, id| {
            self.then(changed, value, |coercer, value| {
                change(coercer, id, value, at)
            })
        })
    }

    /// Changes the items of an array by the schemas that cover them.
    fn each_item(
        &mut self,
        keywords: &Keywords,
        items: &[Value],
        at: &Place<'_>,
        mut change: impl FnMut(&mut Self, NodeId, &Value, &Place<'_>) -> Option<Value>,
    ) -> Option<Value> {
        let mut changed: Option<Vec<Value>> = None;
        for (index, item) in items.iter().enumerate() {
            let Some(id) = keywords.covering_item(index) else {
                continue;
            };
            if let Some(item) = change(self, id, item, &at.index(index)) {
                changed.get_or_insert_with(|| items.to_vec())[index] = item;
            }
        }
        changed.map(Value::Array)
    }
}

impl Identity {
    fn of(value: &Value) -> Self {
        let mut hasher = DefaultHasher::new();
        match value {
            Value::Array(_) | Value::Object(_) => {
                return Self::Address(std::ptr::from_ref(value).addr());
            }
            Value::Null => 0.hash(&mut hasher),
            Value::Bool(value) => (1, value).hash(&mut hasher),
            Value::Number(number) => (2, number_text(number)).hash(&mut hasher),
            Value::String(text) => (3, text).hash(&mut hasher),
        }
        Self::Primitive(hasher.finish())
    }
}

impl Memo {
    fn remember(&mut self, key: (NodeId, Identity), result: Option<Remembered>) {
        self.results.insert(key, result);
        self.order.push(key);
    }

    fn forget_since(&mut self, mark: usize) {
        for key in self.order.drain(mark..) {
            self.results.remove(&key);
        }
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
