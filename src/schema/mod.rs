//! A compiled JSON Schema: it coerces arguments, judges them and says what is wrong with them.
//!
//! The [`Schema`] reads any JSON Schema that tool authors write into an arena of nodes, and lets the `jsonschema`
//! crate judge validity. Coercion and the words of a violation are the reference's.

mod endless;
mod flatten;
mod judge;
#[allow(dead_code, reason = "read by coercion and explanation")]
mod node;
mod number;
#[allow(dead_code, reason = "read by coercion and explanation")]
mod pattern;
mod reference;
mod uri;

use std::fmt;

use serde::Serialize;
use serde_json::Value;

/// One thing that is wrong with a value, in the reference's words.
///
/// Wire shape: `{"path":"/edits/0/oldText","keyword":"required","message":"missing"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Where, as a JSON Pointer; empty for the whole value.
    pub path: String,
    /// The keyword of the schema that rejects it.
    pub keyword: String,
    /// What is wrong there.
    pub message: String,
}

/// Why a schema cannot be compiled; its text is what a call to the tool fails with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompileError(String);

impl CompileError {
    fn not_a_schema(value: &Value) -> Self {
        Self(format!(
            "A schema must be an object or a boolean, got {value}"
        ))
    }
}

impl fmt::Display for CompileError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for CompileError {}

/// A compiled JSON Schema.
#[derive(Debug)]
pub struct Schema {
    arena: std::sync::Arc<node::Arena>,
    judge: judge::Judge,
}

impl Schema {
    /// Compiles a schema.
    pub fn compile(schema: &Value) -> Result<Self, CompileError> {
        let arena = std::sync::Arc::new(node::Arena::read(schema)?);
        let judge = judge::Judge::new(std::sync::Arc::clone(&arena));
        Ok(Self { arena, judge })
    }

    /// Whether the schema accepts a value as it is.
    pub fn check(&self, value: &Value) -> bool {
        self.judge.accepts(self.arena.root(), value)
    }
}
