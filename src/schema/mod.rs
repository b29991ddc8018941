//! A compiled JSON Schema: it coerces arguments, judges them and says what is wrong with them.
//!
//! A [`Schema`] reads any JSON Schema that tool authors write into an arena of nodes and lets the `jsonschema` crate
//! judge validity. Coercion and the words of a violation are the reference's (`@earendil-works/pi-schema` 1.6.0).
//! Nothing here ever fetches anything.

pub(crate) mod applicator;
mod assertion;
mod coerce;
mod convert;
mod endless;
mod evaluated;
mod explain;
mod extended;
mod findings;
mod flatten;
mod formats;
mod idn;
mod judge;
mod memo;
mod node;
mod number;
mod own;
mod pattern;
mod plain;
mod reference;
mod regex;
mod stack;
mod step;
mod strip;
mod union;
mod uri;
mod walk;
mod written;

use std::{borrow::Cow, fmt, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::{coerce::Coercer, judge::Judge, node::Arena, step::Place};
use crate::json::{MAX_DEPTH, compact, pointer::unescaped, pretty};

pub use self::findings::{Finding, Rule};
pub use self::step::Step;
pub use self::written::WrittenSchema;

/// A compiled JSON Schema.
///
/// Compiling reads the schema; what judges is built when it is first needed and kept.
///
/// ```
/// use pitool::schema::{AcceptOptions, Schema};
/// use serde_json::json;
///
/// let schema = Schema::compile(&json!({
///     "type": "object",
///     "properties": {"limit": {"type": "integer", "maximum": 9}},
///     "required": ["limit"],
/// }))?;
///
/// // Models send text for numbers: coerced, and the step tells of it.
/// let sent = json!({"limit": "5"});
/// let accepted = schema.accept(&sent, &AcceptOptions::default()).unwrap();
/// assert_eq!(*accepted.value, json!({"limit": 5}));
/// assert_eq!(accepted.steps[0].path, "/limit");
///
/// // What cannot be repaired is said in the words that a model is told.
/// let sent = json!({"limit": 10});
/// let rejected = schema.accept(&sent, &AcceptOptions::default()).unwrap_err();
/// assert_eq!(rejected.violations[0].path, "/limit");
/// assert_eq!(rejected.violations[0].message, "expected <= 9");
/// # Ok::<(), pitool::schema::CompileError>(())
/// ```
#[derive(Debug)]
pub struct Schema {
    arena: Arc<Arena>,
    judge: Judge,
}

/// What happens to arguments before they are judged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AcceptOptions {
    /// How arguments that are not valid as they are may be converted.
    pub coercion: Coercion,
    /// What becomes of arguments that the schema does not declare.
    pub unknown_arguments: UnknownArguments,
    /// Whether a conversion may lose something.
    pub lossy: Lossy,
}

/// How arguments that are not valid as they are may be converted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Coercion {
    /// The reference's three passes.
    #[default]
    Standard,
    /// Not at all.
    Off,
    /// Before the three passes, JSON text becomes what it says where no string is taken, and optional nulls are
    /// dropped behind a `$ref` too.
    Extended,
}

/// What becomes of arguments that the schema does not declare.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UnknownArguments {
    /// The schema decides.
    #[default]
    Schema,
    /// They are dropped before anything else.
    Strip,
}

/// Whether a conversion may lose something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Lossy {
    /// It may; the step says so.
    #[default]
    Allow,
    /// Each one that does is a violation.
    Deny,
}

/// Arguments that are valid, and what was done to make them so.
#[derive(Debug, Clone, PartialEq)]
pub struct Accepted<'v> {
    /// The arguments for the tool: those given where they were valid as they are.
    pub value: Cow<'v, Value>,
    /// What coercion did, in order.
    pub steps: Vec<Step>,
}

/// Arguments that are not valid.
#[derive(Debug, Clone, PartialEq)]
pub struct Rejected {
    /// What is wrong with them; never empty.
    pub violations: Vec<Violation>,
    /// What coercion did before they were judged.
    pub steps: Vec<Step>,
}

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

impl Schema {
    /// Compiles a schema: an object or a boolean, and so everything in it where a schema stands.
    pub fn compile(schema: &Value) -> Result<Self, CompileError> {
        let arena = Arc::new(Arena::read(schema)?);
        let judge = Judge::new(Arc::clone(&arena));
        Ok(Self { arena, judge })
    }

    /// Coerces and judges arguments.
    ///
    /// What is valid as it is passes unchanged, always. Otherwise the reference's three passes convert a copy:
    /// optional nulls are dropped, values are converted as the keywords of the schema say, and primitives by `type`.
    /// Numbers with up to 64 bits keep every digit.
    pub fn accept<'v>(
        &self,
        value: &'v Value,
        options: &AcceptOptions,
    ) -> Result<Accepted<'v>, Rejected> {
        let accept = || match options.unknown_arguments {
            UnknownArguments::Schema => self.accept_here(value, options),
            UnknownArguments::Strip => self.accept_stripped(value, options),
        };
        stack::with_room(value, accept).unwrap_or_else(|| Err(Rejected::too_deep()))
    }

    /// Whether the schema accepts a value as it is; nothing deeper than [`MAX_DEPTH`].
    pub fn check(&self, value: &Value) -> bool {
        stack::with_room(value, || self.judge.accepts(self.arena.root(), value)).unwrap_or(false)
    }

    /// What is wrong with a value as it is; empty if nothing is.
    pub fn violations(&self, value: &Value) -> Vec<Violation> {
        let explained = stack::with_room(value, || {
            if self.judge.accepts(self.arena.root(), value) {
                Vec::new()
            } else {
                self.explain(value)
            }
        });
        explained.unwrap_or_else(|| Rejected::too_deep().violations)
    }

    /// What its author should know about the schema.
    pub fn findings(&self) -> Vec<Finding> {
        findings::findings(&self.arena)
    }

    /// The same for what is left of the arguments without keys that the schema does not declare.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "handed on from accept")]
    fn accept_stripped<'v>(
        &self,
        value: &'v Value,
        options: &AcceptOptions,
    ) -> Result<Accepted<'v>, Rejected> {
        let mut steps = Vec::new();
        let Some(stripped) = strip::strip(&self.arena, value, &mut steps) else {
            return self.accept_here(value, options);
        };
        match self.accept_here(&stripped, options) {
            Ok(accepted) => {
                steps.extend(accepted.steps);
                let value = match accepted.value {
                    Cow::Owned(coerced) => coerced,
                    Cow::Borrowed(_) => stripped,
                };
                let value = Cow::Owned(value);
                Ok(Accepted { value, steps })
            }
            Err(rejected) => {
                steps.extend(rejected.steps);
                let violations = rejected.violations;
                Err(Rejected { violations, steps })
            }
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "handed on from accept")]
    fn accept_here<'v>(
        &self,
        value: &'v Value,
        options: &AcceptOptions,
    ) -> Result<Accepted<'v>, Rejected> {
        if self.judge.accepts(self.arena.root(), value) {
            return Ok(Accepted {
                value: Cow::Borrowed(value),
                steps: Vec::new(),
            });
        }
        let (value, steps) = match options.coercion {
            Coercion::Off => (Cow::Borrowed(value), Vec::new()),
            coercion => {
                let mut coercer = Coercer::new(&self.arena, &self.judge);
                let coerce = if coercion == Coercion::Extended {
                    Coercer::coerce_extended
                } else {
                    Coercer::coerce
                };
                let coerced = coerce(&mut coercer, self.arena.root(), value, &Place::ROOT);
                (
                    coerced.map_or(Cow::Borrowed(value), Cow::Owned),
                    coercer.into_steps(),
                )
            }
        };
        let mut violations = if self.judge.accepts(self.arena.root(), &value) {
            Vec::new()
        } else {
            self.explain(&value)
        };
        if options.lossy == Lossy::Deny {
            violations.extend(
                steps
                    .iter()
                    .filter(|step| step.lossy)
                    .map(Violation::of_lossy),
            );
        }
        if violations.is_empty() {
            Ok(Accepted { value, steps })
        } else {
            Err(Rejected { violations, steps })
        }
    }

    /// What is wrong with a value that the schema rejects; coercion may have made it deeper than it was.
    fn explain(&self, value: &Value) -> Vec<Violation> {
        let accepts = |id, value: &Value| self.judge.accepts(id, value);
        stack::with_room(value, || explain::explain(&self.arena, value, &accepts))
            .unwrap_or_else(|| Rejected::too_deep().violations)
    }
}

/// Writes the error that the model reads: every violation, then the arguments as they were received.
pub fn error_text(tool_name: &str, violations: &[Violation], received: &Value) -> String {
    let mut text = format!("Validation failed for tool \"{tool_name}\":");
    for violation in violations {
        text.push_str("\n  - ");
        text.push_str(&violation.dotted_path());
        text.push_str(": ");
        text.push_str(&violation.message);
    }
    text.push_str("\n\nReceived arguments:\n");
    text.push_str(&pretty(received));
    text
}

impl Rejected {
    fn too_deep() -> Self {
        let message = format!("nested deeper than {MAX_DEPTH} levels");
        let violation = Violation {
            path: String::new(),
            keyword: "depth".into(),
            message,
        };
        Self {
            violations: vec![violation],
            steps: Vec::new(),
        }
    }
}

impl Violation {
    fn of_lossy(step: &Step) -> Self {
        let to = step
            .to
            .as_ref()
            .map_or_else(|| "nothing".to_owned(), compact);
        let message = format!("lossy conversion from {} to {to}", compact(&step.from));
        Self {
            path: step.path.clone(),
            keyword: "lossy".into(),
            message,
        }
    }

    /// The path as people write it: `edits.0.oldText`, `root` for the whole value.
    pub fn dotted_path(&self) -> String {
        let Some(path) = self.path.strip_prefix('/') else {
            return "root".into();
        };
        let tokens = path.split('/').map(unescaped);
        tokens.collect::<Vec<_>>().join(".")
    }
}

impl CompileError {
    fn not_a_schema(value: &Value) -> Self {
        Self(format!(
            "A schema must be an object or a boolean, got {}",
            compact(value)
        ))
    }
}

impl fmt::Display for CompileError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for CompileError {}

#[cfg(test)]
mod tests;
