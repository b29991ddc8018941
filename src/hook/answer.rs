//! What hooks answer, and what that does to a call.

use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::manifest::{Fault, diagnose};
use crate::message::{Content, ToolResult};
use crate::program::Throw;

use super::Hook;

/// What a `beforeToolCall` hook says. No answer at all is the default one: nothing is blocked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BeforeAnswer {
    /// Whether the call must not run.
    #[serde(default, deserialize_with = "null_is_default")]
    pub block: bool,
    /// Why, for the model.
    pub reason: Option<String>,
    /// With `block`: the wish to end the agent's run after this batch.
    #[serde(default, deserialize_with = "null_is_default")]
    pub terminate: bool,
}

fn null_is_default<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Default + Deserialize<'de>,
    D: Deserializer<'de>,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

impl BeforeAnswer {
    /// Reads what `hook` answered. What is no answer is a throw that says why, never "not blocked": a guard that is
    /// misunderstood must not open the gate.
    pub fn read(answer: Option<Value>, hook: &Hook) -> Result<Self, Throw> {
        read(answer, hook)
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
    /// Reads what `hook` answered; what is no answer is a throw that says why.
    pub fn read(answer: Option<Value>, hook: &Hook) -> Result<Self, Throw> {
        read(answer, hook)
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

/// `null` is no answer, as nothing is.
fn read<T: Default + DeserializeOwned>(answer: Option<Value>, hook: &Hook) -> Result<T, Throw> {
    let Some(answer) = answer.filter(|answer| !answer.is_null()) else {
        return Ok(T::default());
    };
    let (read, faults) = diagnose(&answer);
    match (read, faults.first()) {
        (Some(read), None) => Ok(read),
        (_, fault) => {
            let why = fault.map_or_else(String::new, Fault::full_message);
            Err(Throw(format!(
                "The answer of {} is wrong: {why}",
                name(hook)
            )))
        }
    }
}

/// How the model hears of a hook: by its moment and the name of its file.
fn name(hook: &Hook) -> String {
    let file = hook.source.as_deref().and_then(Path::file_name);
    let file = file.map_or_else(String::new, |file| format!(" {}", file.display()));
    format!("the {} hook{file}", hook.moment.as_str())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use serde_json::json;

    use crate::hook::{HookRun, Moment};

    use super::*;

    fn hook(moment: Moment, source: Option<&str>) -> Hook {
        Hook {
            moment,
            tools: None,
            run: HookRun::Native(Arc::new(|_| Box::pin(async { Ok(None) }))),
            source: source.map(PathBuf::from),
        }
    }

    fn before(answer: Value) -> Result<BeforeAnswer, Throw> {
        BeforeAnswer::read(
            Some(answer),
            &hook(Moment::Before, Some("tools.d/10-guard.json")),
        )
    }

    #[track_caller]
    fn before_error(answer: Value, why: &str) {
        let message =
            format!("The answer of the beforeToolCall hook 10-guard.json is wrong: {why}");
        assert_eq!(before(answer), Err(Throw(message)));
    }

    #[test]
    fn a_before_answer_blocks_only_when_it_says_so() {
        let nothing = Ok(BeforeAnswer::default());
        assert_eq!(
            BeforeAnswer::read(None, &hook(Moment::Before, None)),
            nothing
        );
        assert_eq!(before(Value::Null), nothing);
        assert_eq!(before(json!({})), nothing);
        assert_eq!(before(json!({"block": null, "reason": null})), nothing);
        assert_eq!(
            before(json!({"block": true, "reason": "no", "terminate": true})),
            Ok(BeforeAnswer {
                block: true,
                reason: Some("no".into()),
                terminate: true
            })
        );
    }

    #[test]
    fn a_guard_that_is_misunderstood_fails() {
        before_error(json!({"blocked": true}), "unknown field \"blocked\"");
        before_error(
            json!({"block": "yes"}),
            "block: expected true or false, got string",
        );
        before_error(json!("no"), "expected an object, got string");
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
        AfterAnswer::read(Some(answer.clone()), &hook(Moment::After, None))
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
        let answer = json!({"content": "text"});
        assert_eq!(
            AfterAnswer::read(Some(answer), &hook(Moment::After, None)),
            Err(Throw(
                "The answer of the afterToolCall hook is wrong: content: expected an array, got string".into()
            ))
        );
    }
}
