//! Arguments of a tool, as a person types them.

use std::io::{self, Read as _};

use anyhow::{Context as _, bail};
use pitool::json;
use serde_json::{Map, Value};

/// The arguments of one call.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Arguments: `key=text`, `key:=JSON`; or `-` for one JSON object on stdin
    #[arg(value_name = "ARGUMENT")]
    arguments: Vec<String>,

    /// The arguments as one JSON object
    #[arg(long = "args", value_name = "JSON", conflicts_with = "arguments")]
    json: Option<String>,
}

impl Arguments {
    /// Reads them; stdin only if they ask for it.
    pub(crate) fn read(&self) -> anyhow::Result<Value> {
        if let Some(text) = &self.json {
            return json::parse(text.as_bytes()).context("--args");
        }
        if self.arguments == ["-"] {
            super::await_typed();
            let mut text = Vec::new();
            io::stdin()
                .read_to_end(&mut text)
                .context("cannot read stdin")?;
            return json::parse(&text).context("stdin");
        }
        let pairs: Result<Map<String, Value>, _> = self
            .arguments
            .iter()
            .map(|argument| pair(argument))
            .collect();
        Ok(Value::Object(pairs?))
    }
}

/// `key=text` or `key:=JSON`.
fn pair(argument: &str) -> anyhow::Result<(String, Value)> {
    let Some((key, text)) = argument.split_once('=') else {
        bail!("{argument:?} is no argument of a tool: write key=text, key:=JSON, or - alone");
    };
    match key.strip_suffix(':') {
        None => Ok((key.to_owned(), text.into())),
        Some(key) => {
            let value = json::parse(text.as_bytes()).with_context(|| format!("{key}:="))?;
            Ok((key.to_owned(), value))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn case(arguments: &[&str], expected: &Value) {
        let pairs: anyhow::Result<Map<String, Value>> =
            arguments.iter().map(|argument| pair(argument)).collect();
        assert_eq!(&Value::Object(pairs.unwrap()), expected);
    }

    #[test]
    fn pairs_are_text_or_json() {
        case(&[], &json!({}));
        case(&["a=1", "b:=1", "c="], &json!({"a": "1", "b": 1, "c": ""}));
        case(&["a=x=y", "b:c=d"], &json!({"a": "x=y", "b:c": "d"}));
        case(&["a:={\"b\":[null]}"], &json!({"a": {"b": [null]}}));
        case(&["a=1", "a=2"], &json!({"a": "2"}));
    }

    #[test]
    fn what_is_no_pair_is_refused() {
        let error = pair("word").unwrap_err();
        assert!(error.to_string().starts_with("\"word\" is no argument"));
        let error = pair("a:=word").unwrap_err();
        assert_eq!(error.to_string(), "a:=");
    }
}
