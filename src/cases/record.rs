//! Case files written anew: only what changed, all else as it stands.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::{Map, Value};

use super::case::Case;
use crate::json;
use crate::manifest::member_span;

/// What a case has to expect from now on.
#[derive(Debug, Clone, Copy)]
pub struct Recording<'r> {
    /// The case as it was read.
    pub case: &'r Case,
    /// An object of `results`, `changes` and `events`, see [`Case::updated`].
    pub updated: &'r Value,
}

/// Writes cases of one file anew.
pub fn write(file: &Path, recordings: &[Recording<'_>]) -> io::Result<()> {
    let text = fs::read_to_string(file)?;
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    let mut whole = None;
    for recording in recordings {
        match recording.case.source.line {
            None => whole = Some(rewritten(&text, recording)),
            Some(number) => {
                if let Some(line) = lines.get_mut(number - 1) {
                    *line = rewritten_line(line, recording);
                }
            }
        }
    }
    replace(file, &whole.unwrap_or_else(|| lines.concat()))
}

/// Replaces a file at once: who reads it sees the old or the new text.
pub(super) fn replace(file: &Path, text: &str) -> io::Result<()> {
    // A link stays one.
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let beside = file.with_file_name(name);
    fs::write(&beside, text)?;
    if let Ok(metadata) = fs::metadata(&file) {
        fs::set_permissions(&beside, metadata.permissions())?;
    }
    fs::rename(&beside, &file)
}

/// The members of the case that are not what they have to be.
fn changed<'r>(recording: &Recording<'r>) -> Vec<(&'r String, &'r Value)> {
    let expected = recording.case.expected();
    let updated = recording.updated.as_object();
    updated
        .into_iter()
        .flatten()
        .filter(|(name, value)| expected.get(name) != Some(value))
        .collect()
}

fn rewritten(text: &str, recording: &Recording<'_>) -> String {
    if !text.trim().contains('\n') {
        let whole = merged(text, recording);
        return json::fitted(&whole, 0, 0) + "\n";
    }
    let mut text = text.to_owned();
    for (name, value) in changed(recording) {
        let value = json::fitted(value, 1, name.len() + 4);
        text = match member_span(&text, name) {
            Some(span) => format!("{}{value}{}", &text[..span.start], &text[span.end..]),
            None => added(&text, name, &value),
        };
    }
    text
}

/// The text with one member more, behind the others.
fn added(text: &str, name: &str, value: &str) -> String {
    let end = text.rfind('}').unwrap_or(text.len());
    let (before, after) = (text[..end].trim_end(), &text[end..]);
    let comma = if before.ends_with('{') { "" } else { "," };
    format!("{before}{comma}\n  \"{name}\": {value}\n{after}")
}

fn rewritten_line(line: &str, recording: &Recording<'_>) -> String {
    let end = if line.ends_with('\n') { "\n" } else { "" };
    json::spaced(&merged(line, recording)) + end
}

/// The case as a value with what changed in it.
fn merged(text: &str, recording: &Recording<'_>) -> Value {
    let mut members = match json::parse(text.as_bytes()) {
        Ok(Value::Object(members)) => members,
        // It was an object when it was read.
        _ => Map::new(),
    };
    for (name, value) in changed(recording) {
        members.insert(name.clone(), value.clone());
    }
    members.into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::read_cases;
    use super::*;

    /// The file after each of its cases got its update.
    #[track_caller]
    fn case(name: &str, text: &str, updates: &[Value], expected: &str) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(name);
        fs::write(&file, text).unwrap();
        let found = read_cases(&file);
        assert_eq!(found.problems, []);
        let recordings: Vec<Recording<'_>> = found
            .cases
            .iter()
            .zip(updates)
            .map(|(case, updated)| Recording { case, updated })
            .collect();
        write(&file, &recordings).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), expected);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_did_not_change_stays_as_it_is_written() {
        case(
            "a.json",
            "{ \"results\" : [ 1 ],\n    \"name\":\"t\" ,\n  \"changes\": {\"a\":   1}}\n",
            &[json!({"results": [2], "changes": {"a": 1}})],
            "{ \"results\" : [2],\n    \"name\":\"t\" ,\n  \"changes\": {\"a\":   1}}\n",
        );
    }

    #[test]
    fn what_was_not_recorded_comes_last() {
        case(
            "a.json",
            "{\n  \"name\": \"t\"\n}\n",
            &[json!({"results": ["}"], "changes": {"a": "x"}})],
            "{\n  \"name\": \"t\",\n  \"results\": [\"}\"],\n  \"changes\": {\"a\": \"x\"}\n}\n",
        );
    }

    #[test]
    fn a_case_on_one_line_gets_lines_where_it_needs_them() {
        let long = "x".repeat(90);
        case(
            "a.json",
            "{\"name\": \"t\"}",
            &[json!({"results": [long, 1]})],
            &format!("{{\n  \"name\": \"t\",\n  \"results\": [\n    \"{long}\",\n    1\n  ]\n}}\n"),
        );
    }

    #[test]
    fn lines_of_many_cases_are_replaced_one_by_one() {
        case(
            "a.jsonl",
            "{\"name\":  \"t\", \"results\": [1]}\n\n{\"name\": \"u\"}",
            &[json!({"results": [1]}), json!({"results": [2]})],
            "{\"name\": \"t\", \"results\": [1]}\n\n{\"name\": \"u\", \"results\": [2]}",
        );
    }
}
