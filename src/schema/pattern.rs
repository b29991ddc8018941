//! `pattern` and `patternProperties`: regular expressions of JSON Schema, which are JavaScript's.

use std::sync::OnceLock;

use fancy_regex::Regex;

/// A regular expression, compiled when first asked.
#[derive(Debug)]
pub(crate) struct Pattern {
    source: String,
    compiled: OnceLock<Option<Compiled>>,
}

#[derive(Debug)]
struct Compiled {
    translated: String,
    regex: Regex,
}

impl Pattern {
    /// Keeps the text of a pattern, which may be invalid.
    pub(crate) fn new(source: String) -> Self {
        Self {
            source,
            compiled: OnceLock::new(),
        }
    }

    /// The pattern as written.
    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    /// Whether the pattern is a regular expression at all; one that is not matches nothing.
    pub(crate) fn is_valid(&self) -> bool {
        self.compiled().is_some()
    }

    /// Whether the pattern matches somewhere in `text`.
    pub(crate) fn matches(&self, text: &str) -> bool {
        self.compiled().is_some_and(|compiled| compiled.regex.is_match(text).unwrap_or(false))
    }

    /// The pattern in Rust's words; `None` if it is invalid.
    pub(crate) fn translated(&self) -> Option<&str> {
        self.compiled().map(|compiled| compiled.translated.as_str())
    }

    fn compiled(&self) -> Option<&Compiled> {
        let compile = || {
            let translated = jsonschema_regex::to_rust_regex(&self.source).ok()?.into_owned();
            let regex = Regex::new(&translated).ok()?;
            Some(Compiled { translated, regex })
        };
        self.compiled.get_or_init(compile).as_ref()
    }
}
