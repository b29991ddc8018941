//! A schema as its author wrote it.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{CompileError, Schema};
use crate::json;

/// A JSON Schema as it was written. One that comes from a file is kept as its text and read whenever somebody asks,
/// since most tools of a folder are never called; the text takes a tenth of the memory too.
#[derive(Debug, Clone)]
pub struct WrittenSchema(Written);

#[derive(Debug, Clone)]
enum Written {
    /// Text that was recognised as JSON.
    Text(Box<str>),
    Value(Value),
}

impl WrittenSchema {
    /// The schema: what [`json::parse`] makes of a text. Keep it while you work with it.
    pub fn read(&self) -> Cow<'_, Value> {
        match &self.0 {
            Written::Text(text) => {
                Cow::Owned(json::parse(text.as_bytes()).expect("it was recognised as JSON"))
            }
            Written::Value(value) => Cow::Borrowed(value),
        }
    }

    /// The schema, compiled.
    pub fn compile(&self) -> Result<Schema, CompileError> {
        Schema::compile(&self.read())
    }
}

impl From<Value> for WrittenSchema {
    fn from(schema: Value) -> Self {
        Self(Written::Value(schema))
    }
}

impl From<Box<RawValue>> for WrittenSchema {
    fn from(schema: Box<RawValue>) -> Self {
        Self(Written::Text(schema.into()))
    }
}

/// Two ways to write one schema are the same schema.
impl PartialEq for WrittenSchema {
    fn eq(&self, other: &Self) -> bool {
        self.read() == other.read()
    }
}

impl Serialize for WrittenSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.read().serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(schema: &str) -> WrittenSchema {
        serde_json::from_str::<Box<RawValue>>(schema)
            .unwrap()
            .into()
    }

    #[test]
    fn text_and_value_are_one_schema() {
        let written = text(" {\"type\" : \"object\"}");
        assert_eq!(written, json!({"type": "object"}).into());
        assert_ne!(written, json!({"type": "array"}).into());
        assert_eq!(
            serde_json::to_string(&written).unwrap(),
            r#"{"type":"object"}"#
        );
        assert!(written.compile().unwrap().check(&json!({})));
    }

    #[test]
    fn whatever_serde_takes_for_json_can_be_read() {
        for odd in [
            r#"{"pattern":"\ud800"}"#,
            r#"{"maximum":1e400}"#,
            r#"{"maximum":123456789012345678901234567890}"#,
            r#"{"const":-0.0E-0}"#,
            r#"{"a":1,"a":2}"#,
            "\"\u{2028}\\u0000\"",
        ] {
            text(odd).read();
        }
        let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
        assert_eq!(json::depth(&text(&deep).read()), 1_024);
    }
}
