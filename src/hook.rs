//! A hook: what runs before or after the calls of certain tools, and what its answer says.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::manifest;
use crate::message::{Content, ToolResult};
use crate::pattern::Pattern;

/// When a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
    /// A function of the Rust program that uses this library.
    Native(NativeHook),
}

impl fmt::Debug for HookRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
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
}

/// What a `beforeToolCall` hook says. No answer at all is the default one: nothing is blocked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BeforeAnswer {
    /// Whether the call must not run.
    pub block: Option<bool>,
    /// Why, for the model.
    pub reason: Option<String>,
    /// With `block`: the wish to end the agent's run after this batch.
    pub terminate: Option<bool>,
}

impl BeforeAnswer {
    /// Reads an answer. What is no answer is an error that says why, never "not blocked": a guard that is
    /// misunderstood must not open the gate.
    pub fn read(answer: &Value) -> Result<Self, String> {
        read(Moment::Before, answer)
    }
}

/// What an `afterToolCall` hook says. Each field that is given replaces the whole field of the result; `null` is not
/// given.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AfterAnswer {
    /// Replaces `content`; without `structured_content` it drops that.
    pub content: Option<Vec<Content>>,
    /// Replaces `details`.
    pub details: Option<Value>,
    /// Replaces `structuredContent`.
    pub structured_content: Option<Value>,
    /// Whether the call counts as failed.
    pub is_error: Option<bool>,
    /// Replaces `usage`.
    pub usage: Option<Value>,
    /// The wish to end the agent's run after this batch.
    pub terminate: Option<bool>,
}

impl AfterAnswer {
    /// Reads an answer; what is none is an error that says why.
    pub fn read(answer: &Value) -> Result<Self, String> {
        read(Moment::After, answer)
    }

    /// Rewrites a result, as pi's `agent-loop.ts` does. The result's own `isError` stays what the tool said;
    /// whether the call failed is `is_error`.
    pub fn apply(self, result: &mut ToolResult, is_error: &mut bool) {
        if let Some(content) = self.content {
            result.content = content;
            result.structured_content = None;
        }
        replace(&mut result.structured_content, self.structured_content);
        replace(&mut result.details, self.details);
        replace(&mut result.usage, self.usage);
        replace(&mut result.terminate, self.terminate);
        if let Some(says) = self.is_error {
            *is_error = says;
        }
    }
}

fn replace<T>(field: &mut Option<T>, given: Option<T>) {
    if given.is_some() {
        *field = given;
    }
}

/// `null` is no answer, as is nothing at all.
fn read<T: Default + DeserializeOwned>(moment: Moment, answer: &Value) -> Result<T, String> {
    if answer.is_null() {
        return Ok(T::default());
    }
    let (read, faults) = manifest::diagnose(answer);
    match (read, faults.first()) {
        (Some(read), None) => Ok(read),
        (_, fault) => {
            let why = fault.map_or_else(String::new, manifest::Fault::full_message);
            Err(format!(
                "the answer of the {} hook is wrong: {why}",
                moment.as_str()
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn before_error(answer: &Value, message: &str) {
        assert_eq!(BeforeAnswer::read(answer), Err(message.to_owned()));
    }

    #[test]
    fn a_before_answer_blocks_only_when_it_says_so() {
        assert_eq!(
            BeforeAnswer::read(&Value::Null),
            Ok(BeforeAnswer::default())
        );
        assert_eq!(BeforeAnswer::read(&json!({})), Ok(BeforeAnswer::default()));
        assert_eq!(
            BeforeAnswer::read(&json!({"block": true, "reason": "no", "terminate": null})),
            Ok(BeforeAnswer {
                block: Some(true),
                reason: Some("no".into()),
                terminate: None
            })
        );
    }

    #[test]
    fn a_guard_that_is_misunderstood_fails() {
        before_error(
            &json!({"blocked": true}),
            "the answer of the beforeToolCall hook is wrong: unknown field \"blocked\"",
        );
        before_error(
            &json!({"block": "yes"}),
            "the answer of the beforeToolCall hook is wrong: block: expected true or false, got string",
        );
        before_error(
            &json!("no"),
            "the answer of the beforeToolCall hook is wrong: expected an object, got string",
        );
    }

    fn original() -> ToolResult {
        serde_json::from_value(json!({
            "content": [{"type": "text", "text": "original"}], "details": {"k": 1, "nested": {"x": [1]}},
            "structuredContent": {"rows": [1]}, "usage": {"input": 3}, "isError": true
        }))
        .unwrap()
    }

    #[track_caller]
    fn after(answer: &Value, changed: &Value, failed: bool) {
        let mut result = original();
        let mut is_error = true;
        AfterAnswer::read(answer)
            .unwrap()
            .apply(&mut result, &mut is_error);
        let mut expected = serde_json::to_value(original()).unwrap();
        for (name, value) in changed.as_object().unwrap() {
            expected[name] = value.clone();
        }
        expected
            .as_object_mut()
            .unwrap()
            .retain(|_, value| !value.is_null());
        assert_eq!(serde_json::to_value(result).unwrap(), expected);
        assert_eq!(is_error, failed);
    }

    #[test]
    fn given_fields_replace_whole_fields() {
        after(
            &json!({"details": {"new": 1}}),
            &json!({"details": {"new": 1}}),
            true,
        );
        after(
            &json!({"usage": 1, "terminate": true}),
            &json!({"usage": 1, "terminate": true}),
            true,
        );
        after(&json!({"isError": false}), &json!({}), false);
    }

    #[test]
    fn null_is_not_given() {
        after(&Value::Null, &json!({}), true);
        after(
            &json!({"content": null, "details": null, "structuredContent": null, "isError": null, "usage": null,
                "terminate": null}),
            &json!({}),
            true,
        );
    }

    #[test]
    fn content_alone_drops_structured_content() {
        let content = json!([{"type": "text", "text": "new"}]);
        after(
            &json!({"content": content}),
            &json!({"content": content, "structuredContent": null}),
            true,
        );
        after(
            &json!({"content": content, "structuredContent": null}),
            &json!({"content": content, "structuredContent": null}),
            true,
        );
        after(
            &json!({"content": content, "structuredContent": [2]}),
            &json!({"content": content, "structuredContent": [2]}),
            true,
        );
    }

    #[test]
    fn a_wrong_after_answer_says_where_it_is_wrong() {
        assert_eq!(
            AfterAnswer::read(&json!({"content": "text"})),
            Err(
                "the answer of the afterToolCall hook is wrong: content: expected an array, got string"
                    .into()
            )
        );
    }

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
