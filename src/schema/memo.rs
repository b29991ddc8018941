//! What references made of values, within one pass.

use std::{
    collections::{HashMap, HashSet},
    hash::{DefaultHasher, Hash, Hasher},
};

use serde_json::Value;

use super::{node::NodeId, step::Step};
use crate::json::number_text;

/// A value as a key: arrays and objects are themselves, primitives what they are.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Identity {
    Address(usize),
    Primitive(u64),
}

/// What `$ref`s made of values, within one pass.
#[derive(Default)]
pub(super) struct Memo {
    /// `None` where nothing changed.
    pub(super) results: HashMap<(NodeId, Identity), Option<Remembered>>,
    /// The order of `results`, so that what concerns a value that is about to go can be forgotten.
    order: Vec<(NodeId, Identity)>,
    pub(super) in_progress: HashSet<(NodeId, Identity)>,
}

/// A conversion's result and its steps, their paths relative to the value.
#[derive(Clone)]
pub(super) struct Remembered {
    pub(super) value: Value,
    pub(super) steps: Vec<Step>,
}

impl Identity {
    /// The identity of a value for as long as it stays where it is.
    pub(super) fn of(value: &Value) -> Self {
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
    pub(super) fn remember(&mut self, key: (NodeId, Identity), result: Option<Remembered>) {
        self.results.insert(key, result);
        self.order.push(key);
    }

    /// How much is remembered; what comes after it can be forgotten.
    pub(super) fn mark(&self) -> usize {
        self.order.len()
    }

    pub(super) fn forget_since(&mut self, mark: usize) {
        for key in self.order.drain(mark..) {
            self.results.remove(&key);
        }
    }
}
