//! A journal as a source of answers: calls are found by name and arguments, and nothing runs.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use super::file::{self, Span};
use super::record::{BatchCall, Header, Record};
use super::{JournalError, RecordedOutcome};

/// The outcomes of a journal, by tool name and arguments.
///
/// A call that was recorded several times gets its outcomes one after the other, then the last one for ever.
/// Keys of objects may come in any order.
#[derive(Debug)]
pub struct Recording {
    path: PathBuf,
    file: File,
    takes: HashMap<(String, String), Takes>,
}

#[derive(Debug, Default)]
struct Takes {
    spans: Vec<Span>,
    next: AtomicUsize,
}

impl Recording {
    /// Reads a journal. It is neither locked nor changed; a torn last line is passed over.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        let file = open(path)?;
        let mut batches: HashMap<u64, Vec<BatchCall>> = HashMap::new();
        let mut outcomes: BTreeMap<(u64, usize), Span> = BTreeMap::new();
        file::scan(&file, path, |line| {
            match line.record {
                Record::Batch { batch, calls, .. } => {
                    batches.insert(batch, calls.into_owned());
                }
                Record::Outcome { batch, call, .. } => {
                    let is_known = batches.get(&batch).is_some_and(|calls| call < calls.len());
                    outcomes.insert((batch, call), line.span);
                    return is_known;
                }
                Record::Intent { .. }
                | Record::NestedIntent { .. }
                | Record::NestedOutcome { .. } => {}
            }
            true
        })?;
        let mut takes: HashMap<(String, String), Takes> = HashMap::new();
        for ((batch, call), span) in outcomes {
            let call = &batches[&batch][call];
            let key = (call.name.clone(), sorted_text(&call.arguments));
            takes.entry(key).or_default().spans.push(span);
        }
        Ok(Self {
            path: path.to_path_buf(),
            file,
            takes,
        })
    }

    /// The next outcome of a call with this name and these arguments.
    pub fn outcome(
        &self,
        name: &str,
        arguments: &Value,
    ) -> Result<Option<RecordedOutcome>, JournalError> {
        let key = (name.to_owned(), sorted_text(arguments));
        let Some(takes) = self.takes.get(&key) else {
            return Ok(None);
        };
        let take = takes.next.fetch_add(1, Ordering::Relaxed);
        let span = takes.spans[take.min(takes.spans.len() - 1)];
        file::outcome_at(&self.file, span)
            .map(Some)
            .map_err(|error| JournalError::Io(self.path.clone(), error))
    }
}

fn open(path: &Path) -> Result<File, JournalError> {
    let failed = |error| JournalError::Io(path.to_path_buf(), error);
    if !std::fs::metadata(path).map_err(failed)?.is_file() {
        return Err(JournalError::Foreign(path.to_path_buf()));
    }
    let file = File::open(path).map_err(failed)?;
    match file::header(&file).map_err(failed)? {
        Header::Readable => Ok(file),
        Header::Newer => Err(JournalError::Newer(path.to_path_buf())),
        Header::Foreign => Err(JournalError::Foreign(path.to_path_buf())),
    }
}

/// Compact JSON with the keys of every object sorted, so that equal values have equal texts.
fn sorted_text(value: &Value) -> String {
    let mut sorted = value.clone();
    sorted.sort_all_objects();
    sorted.to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::message::{ToolCall, ToolResult};

    use super::super::Journal;
    use super::*;

    /// A journal with one outcome for each of `texts`, all of the same call.
    async fn recorded(path: &Path, texts: &[&str]) {
        let call = ToolCall {
            id: "a".into(),
            name: "tool".into(),
            arguments: json!({"x": 1, "y": {"b": 2, "a": 3}}),
            arguments_error: None,
        };
        let journal = Journal::open(path).unwrap();
        for text in texts {
            let batch = journal.batch(std::slice::from_ref(&call), &[]).unwrap();
            batch.intent(0, &call).await.unwrap();
            let outcome = RecordedOutcome {
                result: ToolResult::text(*text),
                is_error: false,
                duration_ms: None,
                nested_calls: None,
                timestamp: 1,
            };
            batch.outcome(0, &call, &outcome).await.unwrap();
        }
    }

    fn text(recording: &Recording, name: &str, arguments: &Value) -> Option<String> {
        let outcome = recording.outcome(name, arguments).unwrap()?;
        Some(outcome.result.joined_text())
    }

    #[tokio::test]
    async fn outcomes_of_one_call_come_in_their_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        recorded(&path, &["one", "two"]).await;
        let recording = Recording::open(&path).unwrap();
        let arguments = json!({"y": {"a": 3, "b": 2}, "x": 1});
        for expected in ["one", "two", "two"] {
            assert_eq!(
                text(&recording, "tool", &arguments).as_deref(),
                Some(expected)
            );
        }
    }

    #[tokio::test]
    async fn other_calls_have_no_outcome() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        recorded(&path, &["one"]).await;
        let recording = Recording::open(&path).unwrap();
        assert_eq!(text(&recording, "tool", &json!({"x": 1})), None);
        let arguments = json!({"x": 1, "y": {"b": 2, "a": 3}});
        assert_eq!(text(&recording, "other", &arguments), None);
    }

    #[tokio::test]
    async fn torn_line_is_passed_over_and_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        recorded(&path, &["one", "two"]).await;
        let mut content = std::fs::read(&path).unwrap();
        content.truncate(content.len() - 5);
        std::fs::write(&path, &content).unwrap();
        let recording = Recording::open(&path).unwrap();
        let arguments = json!({"x": 1, "y": {"b": 2, "a": 3}});
        for _ in 0..2 {
            assert_eq!(text(&recording, "tool", &arguments).as_deref(), Some("one"));
        }
        assert_eq!(std::fs::read(&path).unwrap(), content);
    }

    #[test]
    fn file_that_is_no_journal_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        assert!(matches!(Recording::open(&path), Err(JournalError::Io(..))));
        std::fs::write(&path, "{}\n").unwrap();
        assert!(matches!(
            Recording::open(&path),
            Err(JournalError::Foreign(_))
        ));
    }
}
