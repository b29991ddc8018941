//! A deserializer over a JSON value that remembers where it is and does not stop at the first fault.

mod reader;

use std::cell::RefCell;
use std::fmt::{self, Display};

use serde::de::{self, DeserializeOwned, Expected, Unexpected};
use serde_json::Value;

use self::reader::Reader;
use super::{Fault, nearest};
use crate::json::kind;
use crate::json::pointer::unescaped;

/// Reads `value` as a `T` and collects all faults.
///
/// A field with a wrong value is taken out and the rest is read again, so that the next fault shows too.
pub(crate) fn diagnose<T: DeserializeOwned>(value: &Value) -> (Option<T>, Vec<Fault>) {
    let mut value = value.clone();
    let mut removed: Vec<String> = Vec::new();
    let faults = RefCell::new(Vec::new());
    loop {
        let error = match T::deserialize(Reader::root(&value, &faults)) {
            Ok(read) => {
                let read = removed.is_empty().then_some(read);
                return (read, faults.into_inner());
            }
            Err(error) => error,
        };
        let pointer = error.pointer.clone().unwrap_or_default();
        if !error.follows_from(&removed) {
            add(&faults, error.fault());
        }
        if !remove(&mut value, &pointer) {
            return (None, faults.into_inner());
        }
        removed.push(pointer);
    }
}

/// Every reading meets the faults of the reading before it again.
fn add(faults: &RefCell<Vec<Fault>>, fault: Fault) {
    let mut faults = faults.borrow_mut();
    if !faults.contains(&fault) {
        faults.push(fault);
    }
}

/// Takes the member that `pointer` names out of its object; false if it is in none.
fn remove(value: &mut Value, pointer: &str) -> bool {
    let Some((parent, name)) = pointer.rsplit_once('/') else {
        return false;
    };
    match value.pointer_mut(parent) {
        Some(Value::Object(members)) => members.shift_remove(&unescaped(name)).is_some(),
        // An element of a list: the list as a whole is what is wrong.
        Some(_) => remove(value, parent),
        None => false,
    }
}

/// The first fault on the way through a value.
#[derive(Debug)]
struct Error {
    /// Set by the innermost reader that the error passes.
    pointer: Option<String>,
    message: String,
    hint: Option<String>,
    /// The field that is missing, if that is the fault.
    missing: Option<&'static str>,
}

impl Error {
    fn new(message: String) -> Self {
        Self {
            pointer: None,
            message,
            hint: None,
            missing: None,
        }
    }

    fn expected(expected: &str, value: &Value) -> Self {
        Self::new(format!("expected {expected}, got {}", kind(value)))
    }

    fn at(mut self, pointer: &str) -> Self {
        self.pointer.get_or_insert_with(|| pointer.to_owned());
        self
    }

    /// Whether only the taking out of faulty values made this error.
    fn follows_from(&self, removed: &[String]) -> bool {
        let pointer = self.pointer.as_deref().unwrap_or_default();
        match self.missing {
            Some(name) => removed.contains(&format!("{pointer}/{name}")),
            None => removed
                .iter()
                .any(|removed| removed.starts_with(&format!("{pointer}/"))),
        }
    }

    fn fault(self) -> Fault {
        Fault {
            hint: self.hint,
            ..Fault::new(self.pointer.unwrap_or_default(), self.message)
        }
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl de::Error for Error {
    fn custom<T: Display>(message: T) -> Self {
        Self::new(message.to_string())
    }

    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(format!("expected {expected}, got {}", word(unexpected)))
    }

    fn missing_field(field: &'static str) -> Self {
        Self {
            missing: Some(field),
            ..Self::new(format!("missing field \"{field}\""))
        }
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let list: Vec<String> = expected.iter().map(|word| format!("\"{word}\"")).collect();
        Self {
            hint: did_you_mean(variant, expected),
            ..Self::new(format!("\"{variant}\" is not one of {}", list.join(", ")))
        }
    }
}

fn did_you_mean(word: &str, candidates: &[&str]) -> Option<String> {
    nearest(word, candidates.iter().copied())
        .first()
        .map(|candidate| format!("did you mean \"{candidate}\"?"))
}

fn word(unexpected: Unexpected<'_>) -> String {
    match unexpected {
        Unexpected::Unit | Unexpected::Option => "null".into(),
        Unexpected::Bool(_) => "boolean".into(),
        Unexpected::Unsigned(_) | Unexpected::Signed(_) => "integer".into(),
        Unexpected::Float(_) => "number".into(),
        Unexpected::Str(_) | Unexpected::Char(_) => "string".into(),
        Unexpected::Seq => "array".into(),
        Unexpected::Map => "object".into(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    struct Outer {
        name: String,
        #[serde(default)]
        inner: Option<Inner>,
        #[serde(default)]
        words: Vec<String>,
        #[serde(default)]
        source: Source,
        #[serde(default)]
        anything: Value,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    struct Inner {
        timeout_ms: u64,
        #[serde(default)]
        deep: bool,
        #[serde(default)]
        codes: Vec<i32>,
    }

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(rename_all = "camelCase")]
    enum Source {
        #[default]
        Arguments,
        Nothing,
        Text(String),
    }

    #[track_caller]
    fn case(value: &Value, expected: &[(&str, Option<&str>)]) {
        let (read, faults) = diagnose::<Outer>(value);
        let found: Vec<(String, Option<&str>)> = faults
            .iter()
            .map(|fault| (fault.full_message(), fault.hint.as_deref()))
            .collect();
        let found: Vec<(&str, Option<&str>)> = found
            .iter()
            .map(|(message, hint)| (message.as_str(), *hint))
            .collect();
        assert_eq!(found, expected);
        let only_unknown = found.iter().all(|(message, _)| message.contains("unknown"));
        assert_eq!(read.is_some(), only_unknown);
    }

    #[test]
    fn what_is_right_is_read() {
        let value = json!({"name": "a", "inner": {"timeoutMs": 5, "codes": [-1]}, "words": ["w"],
            "source": {"text": "{x}"}, "anything": {"n": [1, -2, 1.5, null, true]}});
        let (read, faults) = diagnose::<Outer>(&value);
        assert_eq!(faults, []);
        assert_eq!(read, serde_json::from_value(value).ok());
    }

    #[test]
    fn unknown_fields_are_found_at_every_level_at_once() {
        case(
            &json!({"nmae": 1, "name": "a", "inner": {"timeoutMs": 1, "timeout": 2}, "x": 1}),
            &[
                ("unknown field \"nmae\"", Some("did you mean \"name\"?")),
                ("unknown field \"x\"", None),
                (
                    "inner: unknown field \"timeout\"",
                    Some("did you mean \"timeoutMs\"?"),
                ),
            ],
        );
    }

    #[test]
    fn all_wrong_values_are_found() {
        case(
            &json!({"name": 5, "inner": {"timeoutMs": "soon", "deep": 1, "codes": ["x"]}, "words": ["a", 1],
                "source": "argument"}),
            &[
                ("name: expected a string, got integer", None),
                (
                    "inner.timeoutMs: expected a whole number of 0 or more, got string",
                    None,
                ),
                ("inner.deep: expected true or false, got integer", None),
                ("inner.codes.0: expected a whole number, got string", None),
                ("words.1: expected a string, got integer", None),
                (
                    "source: \"argument\" is not one of \"arguments\", \"nothing\", \"text\"",
                    Some("did you mean \"arguments\"?"),
                ),
            ],
        );
    }

    #[test]
    fn numbers_that_do_not_fit_are_named() {
        case(
            &json!({"name": "a", "inner": {"timeoutMs": -1}}),
            &[(
                "inner.timeoutMs: expected a whole number of 0 or more, got -1",
                None,
            )],
        );
        case(
            &json!({"name": "a", "inner": {"timeoutMs": 1, "codes": [1.5]}}),
            &[("inner.codes.0: expected a whole number, got 1.5", None)],
        );
    }

    #[test]
    fn missing_fields_are_named() {
        case(&json!({}), &[("missing field \"name\"", None)]);
        case(
            &json!({"name": "a", "inner": {}}),
            &[("inner: missing field \"timeoutMs\"", None)],
        );
    }

    #[test]
    fn other_kinds_of_value_are_told() {
        case(&json!([]), &[("expected an object, got array", None)]);
        case(
            &json!({"name": "a", "inner": "x", "words": {}, "source": 1}),
            &[
                ("inner: expected an object, got string", None),
                ("words: expected an array, got object", None),
                (
                    "source: expected \"arguments\" or \"nothing\" or \"text\", got integer",
                    None,
                ),
            ],
        );
        case(
            &json!({"name": "a", "source": {"nothing": 1}}),
            &[("source: \"nothing\" takes no value", None)],
        );
        case(
            &json!({"name": "a", "source": "text"}),
            &[("source: \"text\" needs a value: {\"text\": …}", None)],
        );
        case(
            &json!({"name": "a", "source": {"text": 1}}),
            &[("source.text: expected a string, got integer", None)],
        );
    }
}
