//! A program as a manifest writes it; [`super::Program`] is what can run.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema};
use serde::Deserialize;
use serde_json::json;

/// The one way to say "run this": `{"command": ["prog", "arg"]}` or `{"jq": ".filter"}`.
///
/// Only the shape is checked here; what belongs together is the business of [`super::Program::new`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "Program", transform = command_or_jq)]
pub struct ProgramManifest {
    /// Argument vector of a process, which no shell reads; its elements but the first may hold `{placeholders}`. A
    /// program with a `/` is relative to the manifest's folder.
    #[schemars(length(min = 1))]
    pub command: Option<Vec<String>>,
    /// A jq filter that runs in pitool itself.
    pub jq: Option<String>,
    /// What a process reads; default `arguments`.
    pub stdin: Option<StdinManifest>,
    /// What stdout is: `text` (default), `items` (JSON lines of updates and a result), `json`, or the media type of an
    /// image.
    #[schemars(transform = words_of_output)]
    pub output: Option<String>,
    /// Exit codes that are no failure; default `[0]`.
    pub ok_exit_codes: Option<Vec<i64>>,
    /// Working directory, relative to that of pitool.
    pub cwd: Option<String>,
    /// Variables to add; values may use `${NAME}` and `${NAME:-default}` of pitool's own environment.
    pub env: Option<BTreeMap<String, String>>,
    /// Whether the process gets all of pitool's environment.
    pub inherit_env: Option<bool>,
    /// How many bytes of text the model gets at most; default 51200.
    pub max_output_bytes: Option<u64>,
    /// Milliseconds after which the program is ended; default none for a command that executes a tool, 10000 for jq,
    /// 30000 for hooks and `prepareArguments`.
    #[schemars(range(min = 1))]
    pub timeout_ms: Option<u64>,
}

/// What [`super::Program::new`] asks for: exactly one of both.
fn command_or_jq(schema: &mut Schema) {
    let exactly_one = json!([
        {"required": ["command"], "properties": {"command": {"type": "array"}, "jq": {"type": "null"}}},
        {"required": ["jq"], "properties": {"jq": {"type": "string"}, "command": {"type": "null"}}},
    ]);
    schema.insert("anyOf".to_owned(), exactly_one);
}

/// The words first, so that an editor offers them.
fn words_of_output(schema: &mut Schema) {
    schema.remove("type");
    let words = json!([
        {"enum": ["text", "items", "json", "image/png", "image/jpeg", "image/webp", "image/gif"]},
        {"type": "string", "pattern": "^image/."},
        {"type": "null"},
    ]);
    schema.insert("anyOf".to_owned(), words);
}

/// What a process reads: `"arguments"`, `"call"`, `"none"` or `{"text": "{body}"}`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Stdin")]
pub enum StdinManifest {
    /// The arguments as one JSON line.
    Arguments,
    /// `{toolCallId, toolName, arguments}` as one JSON line.
    Call,
    /// Nothing.
    None,
    /// A text with placeholders.
    Text(String),
}

impl ProgramManifest {
    /// The first field that only a command can have, in the order of the documentation.
    pub(crate) fn first_command_field(&self) -> Option<&'static str> {
        let fields = [
            ("stdin", self.stdin.is_some()),
            ("okExitCodes", self.ok_exit_codes.is_some()),
            ("cwd", self.cwd.is_some()),
            ("env", self.env.is_some()),
            ("inheritEnv", self.inherit_env.is_some()),
            ("maxOutputBytes", self.max_output_bytes.is_some()),
        ];
        fields
            .into_iter()
            .find_map(|(name, is_given)| is_given.then_some(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn stdin_of(text: &str) -> Option<StdinManifest> {
        serde_json::from_str::<ProgramManifest>(text).unwrap().stdin
    }

    #[test]
    fn stdin_is_a_word_or_a_text() {
        assert_eq!(stdin_of(r#"{"stdin":"call"}"#), Some(StdinManifest::Call));
        assert_eq!(
            stdin_of(r#"{"stdin":{"text":"{body}"}}"#),
            Some(StdinManifest::Text("{body}".into()))
        );
        assert_eq!(stdin_of("{}"), None);
    }

    #[test]
    fn unknown_field_is_refused() {
        let error = serde_json::from_str::<ProgramManifest>(r#"{"comand":["true"]}"#).unwrap_err();
        assert!(error.to_string().contains("unknown field `comand`"));
    }
}
