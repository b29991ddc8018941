//! A hook: what runs before or after the calls of certain tools, and what its answer says.

mod answer;
mod manifest;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::pattern::Pattern;
use crate::program::{Invocation, Program, Throw};

pub use answer::{AfterAnswer, BeforeAnswer};
pub(crate) use manifest::HookManifest;

/// When a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Moment {
    /// After validation, before `execute`; it may block the call.
    #[serde(rename = "beforeToolCall")]
    Before,
    /// After `execute`, however that ended; it may rewrite the result.
    #[serde(rename = "afterToolCall")]
    After,
}

impl Moment {
    /// The word of manifests and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Before => "beforeToolCall",
            Self::After => "afterToolCall",
        }
    }
}

/// A hook as a function of a Rust program: the hook's input in, its answer out. Its error is a failing hook.
pub type NativeHook =
    Arc<dyn Fn(Value) -> BoxFuture<'static, Result<Option<Value>, String>> + Send + Sync>;

/// What a hook runs.
#[derive(Clone)]
pub enum HookRun {
    /// A program of a manifest.
    Program(Arc<Program>),
    /// A function of the Rust program that uses this library.
    Native(NativeHook),
}

impl fmt::Debug for HookRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program(program) => program.fmt(f),
            Self::Native(_) => f.write_str("Native"),
        }
    }
}

/// Runs before or after the calls of certain tools.
#[derive(Debug, Clone)]
pub struct Hook {
    /// When it runs.
    pub moment: Moment,
    /// For which tools; absent means all.
    pub tools: Option<Vec<Pattern>>,
    /// What runs.
    pub run: HookRun,
    /// The manifest it comes from.
    pub source: Option<PathBuf>,
}

impl Hook {
    /// Whether it runs for calls of the tool `name`.
    pub fn applies_to(&self, name: &str) -> bool {
        self.tools
            .as_ref()
            .is_none_or(|patterns| patterns.iter().any(|pattern| pattern.matches(name)))
    }

    /// Asks the hook; `input` is `{assistantMessage, toolCall, args}`, after a call with `{result, isError}`.
    /// `None` and `null` are no answer.
    pub async fn answer(
        &self,
        input: &Value,
        invocation: &Invocation<'_>,
    ) -> Result<Option<Value>, Throw> {
        match &self.run {
            HookRun::Program(program) => program.answer(input, invocation).await,
            HookRun::Native(answer) => answer(input.clone()).await.map_err(Throw),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_without_tools_applies_to_all() {
        let mut hook = Hook {
            moment: Moment::Before,
            tools: None,
            run: HookRun::Native(Arc::new(|_| Box::pin(async { Ok(None) }))),
            source: None,
        };
        assert!(hook.applies_to("anything"));
        hook.tools = Some(vec![Pattern::new("write"), Pattern::new("edit_*")]);
        assert!(hook.applies_to("edit_file") && hook.applies_to("write"));
        assert!(!hook.applies_to("read"));
    }
}
