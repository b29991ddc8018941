//! What is wrong in a tools folder, told so that a person finds and mends it.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::manifest::{Fault, Place};

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// No tool runs until it is mended.
    Error,
    /// Everything runs.
    Warning,
}

/// Something wrong with one file or folder.
///
/// As text: `tools.d/search.json:4:3: unknown field "exekute"`; the hint stands apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The file or folder, as it was reached.
    pub file: PathBuf,
    /// The line, from 1; absent where the file as a whole is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The character in the line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
    /// What is wrong; no period.
    pub message: String,
    /// What was probably meant, or what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<Box<str>>,
    /// How bad it is.
    pub severity: Severity,
    /// The tool that is defined a second time, if that is the problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeats: Option<Box<str>>,
}

impl Problem {
    /// An error of a file or folder as a whole.
    pub(crate) fn of_file(file: &Path, message: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line: None,
            column: None,
            message: message.into(),
            hint: None,
            severity: Severity::Error,
            repeats: None,
        }
    }

    /// An error at a place in a file.
    pub(crate) fn at(file: &Path, place: Place, message: impl Into<String>) -> Self {
        Self {
            line: Some(place.line),
            column: Some(place.column),
            ..Self::of_file(file, message)
        }
    }

    /// An error in a manifest whose text is `text`.
    pub(crate) fn of_fault(file: &Path, text: &str, fault: &Fault) -> Self {
        Self {
            hint: fault.hint.as_deref().map(Into::into),
            ..Self::at(file, fault.place(text), fault.full_message())
        }
    }

    /// The same problem, with advice.
    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into().into_boxed_str()),
            ..self
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_reads_like_a_compiler_message() {
        let file = Path::new("tools.d/a.json");
        assert_eq!(
            Problem::of_file(file, "is too large").to_string(),
            "tools.d/a.json: is too large"
        );
        let fault = Fault::new("/a/1", "no");
        assert_eq!(
            Problem::of_fault(file, "{\n \"a\": [1, 2]}", &fault).to_string(),
            "tools.d/a.json:2:11: a.1: no"
        );
    }
}
