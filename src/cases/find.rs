//! The case files of a folder, and the cases in a file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::case::{Case, Source};
use crate::json::{self, JsonError};
use crate::manifest::Place;
use crate::registry::{Problem, folder};

/// The file in a folder of cases that holds what `pitool declare` prints; it is no case.
pub const SURFACE: &str = "declare.json";

/// The cases of a file, and all that is wrong with it.
#[derive(Debug, Default)]
pub struct Found {
    /// In the order of the file.
    pub cases: Vec<Case>,
    /// From top to bottom.
    pub problems: Vec<Problem>,
}

/// The case files of a folder by name: those that end in `.json` or `.jsonl` and are not hidden. Folders in it are for
/// what cases copy. A folder that is not there has none.
pub fn case_files(folder: &Path) -> Result<Vec<PathBuf>, Problem> {
    let unreadable =
        |error: io::Error| Problem::of_file(folder, format!("cannot be read: {error}"));
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(unreadable)?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_case = name.ends_with(".json") || name.ends_with(".jsonl");
        if is_case && !name.starts_with('.') && name != SURFACE && !entry.path().is_dir() {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

/// Reads the cases of a file: one, or one a line if its name ends in `.jsonl`.
pub fn read_cases(file: &Path) -> Found {
    let text = match folder::read(file) {
        Ok(text) => text,
        Err(problem) => {
            return Found {
                problems: vec![problem],
                ..Found::default()
            };
        }
    };
    let mut found = Found::default();
    if file.extension().is_some_and(|ending| ending == "jsonl") {
        for (index, line) in text.lines().enumerate() {
            if !line.trim().is_empty() {
                found.take(file, line, Some(index + 1));
            }
        }
    } else {
        found.take(file, &text, None);
    }
    found
}

impl Found {
    fn take(&mut self, file: &Path, text: &str, line: Option<usize>) {
        match read(file, text, line) {
            Ok(case) => self.cases.push(case),
            Err(problems) => {
                let above = line.unwrap_or(1) - 1;
                self.problems
                    .extend(problems.into_iter().map(|problem| Problem {
                        line: problem.line.map(|line| line + above).or(line),
                        ..problem
                    }));
            }
        }
    }
}

fn read(file: &Path, text: &str, line: Option<usize>) -> Result<Case, Vec<Problem>> {
    let value = json::parse(text.as_bytes()).map_err(|error| vec![not_json(file, &error)])?;
    if json::depth(&value) > json::MAX_DEPTH {
        let message = format!("is nested more than {} levels deep", json::MAX_DEPTH);
        return Err(vec![Problem::of_file(file, message)]);
    }
    if !value.is_object() {
        let message = format!("a case is an object, not {}", article(&value));
        return Err(vec![Problem::of_file(file, message)]);
    }
    let source = Source {
        file: file.to_owned(),
        line,
    };
    Case::read(text, &value, source).map_err(|faults| {
        let problems = faults
            .iter()
            .map(|fault| Problem::of_fault(file, text, fault));
        let mut problems: Vec<Problem> = problems.collect();
        problems.sort_by_key(|problem| (problem.line, problem.column));
        problems
    })
}

fn article(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Array(_) => "an array; many cases stand in a .jsonl file, one a line".to_owned(),
        other => format!("a {}", json::kind(other)),
    }
}

fn not_json(file: &Path, error: &JsonError) -> Problem {
    let place = Place {
        line: error.line,
        column: error.column,
    };
    Problem::at(file, place, format!("not valid JSON: {}", error.message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, text: &str) -> (Vec<String>, Vec<String>) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(name);
        fs::write(&file, text).unwrap();
        let found = read_cases(&file);
        let folder = format!("{}/", dir.path().display());
        let problems = found
            .problems
            .iter()
            .map(|it| it.to_string().replace(&folder, ""));
        (
            found.cases.into_iter().map(|case| case.name).collect(),
            problems.collect(),
        )
    }

    #[test]
    fn a_case_is_named_after_its_file_its_line_and_its_title() {
        assert_eq!(found("a.json", "{\"name\": \"t\"}").0, ["a"]);
        assert_eq!(
            found(
                "a.jsonl",
                "{\"name\": \"t\"}\n\n{\"name\": \"t\", \"title\": \"so\"}\n"
            ),
            (vec!["a:1".to_owned(), "a:3: so".to_owned()], Vec::new())
        );
    }

    #[test]
    fn problems_name_their_place_and_the_other_lines_are_read() {
        let (cases, problems) = found(
            "a.jsonl",
            "{\"name\": \"t\"}\n{\"nmae\": \"t\"}\n[]\n{\n{\"name\": \"t\"}\n",
        );
        assert_eq!(cases, ["a:1", "a:5"]);
        assert_eq!(
            problems,
            [
                "a.jsonl:2:1: a case needs a \"message\" or a \"call\"",
                "a.jsonl:2:2: unknown field \"nmae\"",
                "a.jsonl: a case is an object, not an array; many cases stand in a .jsonl file, one a line",
                "a.jsonl:4:2: not valid JSON: unexpected end of the text"
            ]
        );
    }

    #[test]
    fn case_files_are_those_of_the_folder_itself() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["b.json", "a.jsonl", ".c.json", "declare.json", "x.txt"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        fs::create_dir(dir.path().join("data.json")).unwrap();
        let files = case_files(dir.path()).unwrap();
        let names: Vec<_> = files.iter().map(|file| file.file_name().unwrap()).collect();
        assert_eq!(names, ["a.jsonl", "b.json"]);
        assert_eq!(
            case_files(&dir.path().join("none")).unwrap(),
            [] as [PathBuf; 0]
        );
    }
}
