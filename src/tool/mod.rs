//! A tool: what the model sees of it, how its calls are treated, and what runs when it is called.

mod manifest;
mod native;
mod remote;

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use futures_util::FutureExt;
use schemars::{JsonSchema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::message::ToolResult;
use crate::pattern::Pattern;
use crate::program::Program;
use crate::program::sandbox::Sandbox;
use crate::schema::{Coercion, CompileError, Schema, UnknownArguments, WrittenSchema};

pub use manifest::is_name;
pub(crate) use manifest::{AsWritten, ToolManifest};
pub use native::{Execution, NativeExecute, NativePrepare, Updates};
pub use remote::RemoteTool;

/// The part of a tool that a model sees.
///
/// Wire shape: `{"name":"echo","description":"Echo one value","parameters":{…},"constrainedSampling":…}`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Declaration {
    /// What calls name.
    pub name: String,
    /// What the tool does, for the model.
    pub description: String,
    /// JSON Schema of the arguments, as it was written.
    pub parameters: WrittenSchema,
    /// Passed on as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constrained_sampling: Option<Value>,
}

impl Declaration {
    /// A declaration; `parameters` is the JSON Schema of the arguments.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        parameters: impl Into<WrittenSchema>,
    ) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            parameters: parameters.into(),
            constrained_sampling: None,
        }
    }
}

/// Whether a tool wants its whole batch to run one call after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ExecutionMode {
    /// One call to this tool makes its batch sequential.
    Sequential,
    /// As the batch is.
    Parallel,
}

/// Whether a call whose outcome is unknown may be run again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Replay {
    /// Its effect must not happen twice.
    #[default]
    Never,
    /// Running it twice is as good as once.
    Safe,
}

/// Which tools a running tool may call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum CallsTools {
    /// None.
    #[default]
    None,
    /// All.
    All,
    /// Those that one of the patterns matches.
    Matching(Vec<Pattern>),
}

impl CallsTools {
    /// Whether the tool `name` may be called.
    pub fn allows(&self, name: &str) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Matching(patterns) => patterns.iter().any(|pattern| pattern.matches(name)),
        }
    }
}

/// `true`, `false` or a list of name patterns.
impl<'de> Deserialize<'de> for CallsTools {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Written;

        impl<'de> Visitor<'de> for Written {
            type Value = CallsTools;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("true, false or a list of name patterns")
            }

            fn visit_bool<E: de::Error>(self, all: bool) -> Result<CallsTools, E> {
                Ok(if all {
                    CallsTools::All
                } else {
                    CallsTools::None
                })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<CallsTools, A::Error> {
                let mut patterns = Vec::new();
                while let Some(pattern) = list.next_element()? {
                    patterns.push(pattern);
                }
                Ok(CallsTools::Matching(patterns))
            }
        }

        deserializer.deserialize_any(Written)
    }
}

/// As [`CallsTools::deserialize`] reads it.
impl JsonSchema for CallsTools {
    fn schema_name() -> Cow<'static, str> {
        "CallsTools".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> schemars::Schema {
        let patterns = generator.subschema_for::<Vec<Pattern>>();
        json_schema!({"anyOf": [{"type": "boolean"}, patterns]})
    }
}

/// What runs when a tool is called.
#[derive(Clone)]
pub enum Executor {
    /// A program of a manifest.
    Program(Arc<Program>),
    /// A function of the Rust program that uses this library.
    Native(NativeExecute),
    /// A tool of an MCP server.
    Mcp(RemoteTool),
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program(program) => program.fmt(f),
            Self::Native(_) => f.write_str("Native"),
            Self::Mcp(remote) => remote.fmt(f),
        }
    }
}

/// What turns older shapes of arguments into today's, before validation.
#[derive(Clone)]
pub enum Prepare {
    /// A program of a manifest.
    Program(Arc<Program>),
    /// A function of the Rust program that uses this library.
    Native(NativePrepare),
}

impl fmt::Debug for Prepare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program(program) => program.fmt(f),
            Self::Native(_) => f.write_str("Native"),
        }
    }
}

/// A tool that can be called.
#[derive(Debug)]
pub struct Tool {
    /// What the model sees.
    pub declaration: Declaration,
    /// A name for people.
    pub label: Option<String>,
    /// JSON Schema of `structuredContent` in successful results, as it was written.
    pub output_schema: Option<WrittenSchema>,
    /// What the tool wants of its batch.
    pub execution_mode: Option<ExecutionMode>,
    /// Whether a call with unknown outcome may be run again.
    pub replay: Replay,
    /// How its arguments are converted before validation.
    pub coerce: Coercion,
    /// What becomes of arguments that its schema does not declare.
    pub unknown_arguments: UnknownArguments,
    /// Names of arguments that are paths of files the tool changes.
    pub mutates: Vec<String>,
    /// Which tools it may call while it runs.
    pub calls_tools: CallsTools,
    /// What its process may touch; absent means no confinement.
    pub sandbox: Option<Sandbox>,
    /// What runs.
    pub executor: Executor,
    /// What runs before validation.
    pub prepare_arguments: Option<Prepare>,
    /// What an MCP server says of its tool (`readOnlyHint` and the like): shown, never trusted.
    pub annotations: Option<Value>,
    /// The manifest it comes from.
    pub source: Option<PathBuf>,
    cwd: PathBuf,
    compiled_parameters: OnceLock<Result<Schema, CompileError>>,
    compiled_output: OnceLock<Result<Schema, CompileError>>,
}

impl Tool {
    /// A tool with this declaration; everything else is as in a manifest that does not say it.
    pub fn new(declaration: Declaration, executor: Executor) -> Self {
        Self {
            declaration,
            label: None,
            output_schema: None,
            execution_mode: None,
            replay: Replay::default(),
            coerce: Coercion::Standard,
            unknown_arguments: UnknownArguments::Schema,
            mutates: Vec::new(),
            calls_tools: CallsTools::default(),
            sandbox: None,
            executor,
            prepare_arguments: None,
            annotations: None,
            source: None,
            cwd: PathBuf::new(),
            compiled_parameters: OnceLock::new(),
            compiled_output: OnceLock::new(),
        }
    }

    /// A tool that is an async function of the Rust program.
    pub fn native<F, R>(declaration: Declaration, execute: F) -> Self
    where
        F: Fn(Execution) -> R + Send + Sync + 'static,
        R: Future<Output = Result<ToolResult, String>> + Send + 'static,
    {
        let execute: NativeExecute = Arc::new(move |execution| execute(execution).boxed());
        Self::new(declaration, Executor::Native(execute))
    }

    /// The name that calls use.
    pub fn name(&self) -> &str {
        &self.declaration.name
    }

    /// The folder that paths in its arguments are relative to; empty for that of pitool.
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// The schema of the arguments, compiled when it is first asked for.
    pub fn schema(&self) -> Result<&Schema, &CompileError> {
        self.compiled_parameters
            .get_or_init(|| self.declaration.parameters.compile())
            .as_ref()
    }

    /// The schema of `structuredContent`, if the tool has one, compiled when it is first asked for.
    pub fn compiled_output_schema(&self) -> Option<Result<&Schema, &CompileError>> {
        let written = self.output_schema.as_ref()?;
        let compiled = self
            .compiled_output
            .get_or_init(|| written.compile())
            .as_ref();
        Some(compiled)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn calls(value: Value, expected: &CallsTools) {
        assert_eq!(
            &serde_json::from_value::<CallsTools>(value).unwrap(),
            expected
        );
    }

    #[test]
    fn calls_tools_is_a_flag_or_a_list() {
        calls(json!(true), &CallsTools::All);
        calls(json!(false), &CallsTools::None);
        let list = CallsTools::Matching(vec![Pattern::new("read_*"), Pattern::new("now")]);
        calls(json!(["read_*", "now"]), &list);
        assert!(list.allows("read_file") && list.allows("now"));
        assert!(!list.allows("write_file"));
    }

    #[test]
    fn an_absent_field_of_a_declaration_is_absent() {
        let mut declaration = Declaration::new("a", "", json!(true));
        assert_eq!(
            serde_json::to_string(&declaration).unwrap(),
            r#"{"name":"a","description":"","parameters":true}"#
        );
        declaration.constrained_sampling = Some(Value::Null);
        assert_eq!(
            serde_json::to_string(&declaration).unwrap(),
            r#"{"name":"a","description":"","parameters":true,"constrainedSampling":null}"#
        );
    }
}
