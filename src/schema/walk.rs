//! How the passes of coercion go through a value: on from what there is, by references, into the parts.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{
    coerce::Coercer,
    memo::{Identity, Remembered},
    node::{Keywords, NodeId},
    step::{Place, Step},
};

/// How the passes go about it.
impl Coercer<'_> {
    /// Goes on with what there is so far, which may be nothing.
    ///
    /// A value made on the way goes once it is converted further; what is remembered of its parts must go too, or
    /// another value could take their addresses.
    pub(super) fn then(
        &mut self,
        converted: Option<Value>,
        value: &Value,
        next: impl FnOnce(&mut Self, &Value) -> Option<Value>,
    ) -> Option<Value> {
        let Some(made) = converted else {
            return next(self, value);
        };
        let mark = self.memo.mark();
        let further = next(self, &made);
        self.memo.forget_since(mark);
        Some(further.unwrap_or(made))
    }

    /// Tries an alternative; the steps of one that comes to nothing are forgotten.
    pub(super) fn or_forget(
        &mut self,
        attempt: impl FnOnce(&mut Self) -> Option<Value>,
    ) -> Option<Value> {
        let mark = self.steps.len();
        let taken = attempt(self);
        if taken.is_none() {
            self.steps.truncate(mark);
        }
        taken
    }

    /// Takes the first branch of a union that an attempt makes something of; a value that one accepts stays as it is.
    pub(super) fn by_branch(
        &mut self,
        branches: &[NodeId],
        value: &Value,
        mut attempt: impl FnMut(&mut Self, NodeId) -> Option<Value>,
    ) -> Option<Value> {
        if branches.iter().any(|branch| self.accepts(*branch, value)) {
            return None;
        }
        let mut branches = branches.iter();
        branches.find_map(|branch| self.or_forget(|coercer| attempt(coercer, *branch)))
    }

    /// Follows a reference, unless it came back to the same schema with the same value.
    pub(super) fn once(
        &mut self,
        target: NodeId,
        value: &Value,
        follow: impl FnOnce(&mut Self) -> Option<Value>,
    ) -> Option<Value> {
        let key = (target, Identity::of(value));
        if !self.memo.in_progress.insert(key) {
            return None;
        }
        let followed = follow(self);
        self.memo.in_progress.remove(&key);
        followed
    }

    /// Changes a value by what a `$ref` leads to; what that came to is remembered within the pass.
    ///
    /// Without that, recursive unions take exponential time, and some wraps never end.
    pub(super) fn by_reference(
        &mut self,
        target: NodeId,
        value: &Value,
        at: &Place<'_>,
        change: fn(&mut Self, NodeId, &Value, &Place<'_>) -> Option<Value>,
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
        let changed = self.once(target, value, |coercer| change(coercer, target, value, at));
        let remembered = changed.clone().map(|value| {
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
        changed
    }

    /// Makes a pass over a value that nobody else has remembered anything of.
    pub(super) fn alone(&mut self, pass: impl FnOnce(&mut Self) -> Option<Value>) -> Option<Value> {
        let mark = self.memo.mark();
        let changed = pass(self);
        self.memo.forget_since(mark);
        changed
    }
}

/// The parts of a value and the schemas that cover them.
impl Coercer<'_> {
    /// Changes the members of an object by each schema that covers them.
    pub(super) fn each_member(
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
    pub(super) fn each_item(
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
