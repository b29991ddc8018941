//! A program as a manifest writes it; [`super::Program`] is what can run.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The one way to say "run this": `{"command": ["prog", "arg"]}` or `{"jq": ".filter"}`.
///
/// Only the shape is checked here; what belongs together is the business of [`super::Program::new`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProgramManifest {
    /// Argument vector of a process; its elements may hold `{placeholders}`.
    pub command: Option<Vec<String>>,
    /// A jq filter that runs in this process.
    pub jq: Option<String>,
    /// What a process reads.
    pub stdin: Option<StdinManifest>,
    /// `text`, `items`, `json`, or the media type of an image.
    pub output: Option<String>,
    /// Exit codes that are no failure.
    pub ok_exit_codes: Option<Vec<i64>>,
    /// Working directory, relative to that of pitool.
    pub cwd: Option<String>,
    /// Variables to add; values may use `${NAME}` and `${NAME:-default}`.
    pub env: Option<BTreeMap<String, String>>,
    /// Whether the process gets all of pitool's environment.
    pub inherit_env: Option<bool>,
    /// How many bytes of text the model gets at most.
    pub max_output_bytes: Option<u64>,
    /// Milliseconds after which the program is ended.
    pub timeout_ms: Option<u64>,
}

/// What a process reads: `"arguments"`, `"call"`, `"none"` or `{"text": "{body}"}`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
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
