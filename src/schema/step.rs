//! What coercion did, step by step.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use crate::json::pointer::escaped;

/// One change that coercion made on the way from the arguments sent to those the tool gets.
///
/// Wire shape: `{"path":"/limit","from":"5","to":5,"rule":"to-integer","lossy":false}`; a dropped key has no `to`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// Where, as a JSON Pointer.
    pub path: String,
    /// What stood there before the step.
    pub from: Value,
    /// What stands there afterwards; absent for a dropped key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Value>,
    /// The rule that did it, such as `to-integer` or `drop-null`.
    pub rule: &'static str,
    /// Whether the tool gets less than was sent.
    pub lossy: bool,
}

/// A place in a value on the way down; it becomes text only when there is something to say.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    above: Option<&'a Place<'a>>,
    token: Token<'a>,
    depth: usize,
}

#[derive(Clone, Copy)]
enum Token<'a> {
    Root,
    Key(&'a str),
    Index(usize),
}

impl<'a> Place<'a> {
    /// The whole value.
    pub(super) const ROOT: Self = Self {
        above: None,
        token: Token::Root,
        depth: 0,
    };

    /// The member with that key.
    pub(super) fn key(&'a self, key: &'a str) -> Self {
        Self {
            above: Some(self),
            token: Token::Key(key),
            depth: self.depth + 1,
        }
    }

    /// The item at that index.
    pub(super) fn index(&'a self, index: usize) -> Self {
        Self {
            above: Some(self),
            token: Token::Index(index),
            depth: self.depth + 1,
        }
    }

    /// How many levels below the whole value.
    pub(super) fn depth(&self) -> usize {
        self.depth
    }
}

impl fmt::Display for Place<'_> {
    /// Writes the place as a JSON Pointer.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut tokens = Vec::with_capacity(self.depth);
        let mut place = Some(self);
        while let Some(Place { above, token, .. }) = place {
            tokens.push(token);
            place = *above;
        }
        tokens.iter().rev().try_for_each(|token| match token {
            Token::Root => Ok(()),
            Token::Key(key) => write!(formatter, "/{}", escaped(key)),
            Token::Index(index) => write!(formatter, "/{index}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Place;

    #[test]
    fn a_place_reads_as_a_json_pointer() {
        let list = Place::ROOT.key("a/b~c");
        assert_eq!(list.index(7).to_string(), "/a~1b~0c/7");
        assert_eq!(Place::ROOT.to_string(), "");
    }
}
