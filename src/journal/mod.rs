//! What calls were started and what they came to, durably, so that an interrupted run can be resumed.
//!
//! A journal is a file of JSON lines: a header, then for each batch its calls, *intents* (before `execute`) and
//! *outcomes* (after `afterToolCall`). [`Journal::batch`] says what an earlier run already knows of a batch;
//! [`BatchJournal::intent`] and [`BatchJournal::outcome`] return when their line is on disk.
//! [`Recording`] answers calls from a journal without running anything.
//!
//! What follows from a recorded line (answer again, run again, refuse) is the business of [`crate::past`].

mod file;
mod record;
mod recording;
mod writer;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::message::{ToolCall, unix_millis};
use crate::tool::Replay;

pub use record::RecordedOutcome;
pub use recording::Recording;

use file::{Contents, KnownBatch};
use record::{BatchCall, Record};
use writer::{Preamble, Writer};

/// Why a file cannot serve as journal.
#[derive(Debug)]
pub enum JournalError {
    /// Another run writes it.
    InUse(PathBuf),
    /// It holds something else; it is left as it is.
    Foreign(PathBuf),
    /// A newer pitool wrote it.
    Newer(PathBuf),
    /// A line in the middle cannot be read: something other than an interruption happened to the file.
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// It cannot be opened, read or written.
    Io(PathBuf, io::Error),
}

impl fmt::Display for JournalError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse(path) => write!(
                formatter,
                "journal {}: in use by another run",
                path.display()
            ),
            Self::Foreign(path) => write!(
                formatter,
                "journal {}: the file is no journal of pitool",
                path.display()
            ),
            Self::Newer(path) => write!(
                formatter,
                "journal {}: written by a newer pitool",
                path.display()
            ),
            Self::Damaged { path, line } => write!(
                formatter,
                "journal {}: line {line} is damaged",
                path.display()
            ),
            Self::Io(path, error) => write!(formatter, "journal {}: {error}", path.display()),
        }
    }
}

impl std::error::Error for JournalError {}

/// A call of a known batch has other arguments than the journal says: this is not the input of the earlier run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedArguments {
    /// The id of the first such call.
    pub tool_call_id: String,
    /// The tool that it names.
    pub tool_name: String,
}

impl fmt::Display for ChangedArguments {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "the journal knows call {:?} of tool {:?} with other arguments",
            self.tool_call_id, self.tool_name
        )
    }
}

impl std::error::Error for ChangedArguments {}

/// Why a batch cannot be looked up.
#[derive(Debug)]
pub enum BatchError {
    /// The batch is known with other arguments.
    Changed(ChangedArguments),
    /// The journal cannot be read.
    Journal(JournalError),
}

impl fmt::Display for BatchError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed(changed) => changed.fmt(formatter),
            Self::Journal(error) => error.fmt(formatter),
        }
    }
}

impl std::error::Error for BatchError {}

/// Whether a call's id came with the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdOrigin {
    /// It stood in the message.
    Given,
    /// It was made up here, so it says nothing about the call.
    MadeUp,
}

/// A call that was started by an earlier run and never answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenIntent {
    /// Its id.
    pub tool_call_id: String,
    /// The tool it names.
    pub tool_name: String,
}

/// What earlier runs left about one call.
#[derive(Debug, Clone, PartialEq)]
pub enum Recorded {
    /// Nothing: it never started.
    Nothing,
    /// It was answered.
    Outcome(Box<RecordedOutcome>),
    /// It was started and its outcome is unknown.
    OpenIntent {
        /// Whether it had called a tool that must not run twice.
        called_never: bool,
    },
}

/// An open journal, locked for this process.
#[derive(Debug)]
pub struct Journal {
    shared: Arc<Shared>,
    /// How often each batch came in this input so far.
    seen: Mutex<HashMap<String, u64>>,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    contents: Contents,
    writer: Writer,
    next_batch: AtomicU64,
    has_failed: AtomicBool,
}

impl Journal {
    /// Opens or creates the journal (mode 0600) and locks it until it is dropped.
    ///
    /// A last line that an interruption tore is cut off. Fails if another run holds it, and if the file is anything
    /// else than a journal.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        let (contents, end) = Contents::open(path)?;
        let writer = contents
            .file()
            .try_clone()
            .and_then(|file| Writer::start(file, end))
            .map_err(|error| JournalError::Io(path.to_path_buf(), error))?;
        Ok(Self {
            shared: Arc::new(Shared {
                path: path.to_path_buf(),
                next_batch: AtomicU64::new(contents.next_batch()),
                contents,
                writer,
                has_failed: AtomicBool::new(false),
            }),
            seen: Mutex::default(),
        })
    }

    /// Finds the batch among those of earlier runs: by the ids and names of its calls in order (by their arguments
    /// too where the id was made up) and by how often that batch came before in this input.
    ///
    /// `origins` stand beside the calls; a missing one counts as given.
    pub fn batch(
        &self,
        calls: &[ToolCall],
        origins: &[IdOrigin],
    ) -> Result<BatchJournal, BatchError> {
        let calls = BatchCall::all(calls, origins);
        let identity = record::identity(&calls);
        let occurrence = self.count(&identity);
        let known = self.shared.contents.known(identity, occurrence);
        if let Some(known) = &known {
            self.refuse_changes(known, &calls)?;
        }
        Ok(self.start_batch(known, Some(occurrence), &calls))
    }

    /// A batch that is only written, never recognised: each request to a server is a new one.
    pub fn new_batch(&self, calls: &[ToolCall]) -> BatchJournal {
        self.start_batch(None, None, &BatchCall::all(calls, &[]))
    }

    /// Calls of earlier runs that were started and never answered.
    pub fn open_intents(&self) -> &[OpenIntent] {
        self.shared.contents.open_intents()
    }

    /// Whether something could not be written: what the journal says is then not all that happened.
    pub fn has_failed(&self) -> bool {
        self.shared.has_failed.load(Ordering::Relaxed)
    }

    /// How often the file was synced so far. Many records share one sync.
    pub fn syncs(&self) -> u64 {
        self.shared.writer.syncs()
    }

    fn count(&self, identity: &str) -> u64 {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let count = seen.entry(identity.to_owned()).or_default();
        *count += 1;
        *count - 1
    }

    fn refuse_changes(&self, known: &KnownBatch, calls: &[BatchCall]) -> Result<(), BatchError> {
        let recorded = self
            .shared
            .contents
            .calls(known)
            .map_err(|error| BatchError::Journal(self.shared.failed(error)))?;
        let changed = calls
            .iter()
            .zip(&recorded)
            .find(|(call, recorded)| !call.has_arguments_of(recorded));
        match changed {
            None => Ok(()),
            Some((call, _)) => Err(BatchError::Changed(ChangedArguments {
                tool_call_id: call.id.clone(),
                tool_name: call.name.clone(),
            })),
        }
    }

    fn start_batch(
        &self,
        known: Option<Arc<KnownBatch>>,
        occurrence: Option<u64>,
        calls: &[BatchCall],
    ) -> BatchJournal {
        let number = known.as_ref().map_or_else(
            || self.shared.next_batch.fetch_add(1, Ordering::Relaxed),
            |known| known.number,
        );
        let line = Record::Batch {
            batch: number,
            occurrence,
            calls: calls.into(),
        }
        .to_line();
        let preamble = Preamble {
            line: line.into(),
            is_written: Arc::new(AtomicBool::new(known.is_some())),
        };
        BatchJournal {
            shared: Arc::clone(&self.shared),
            known,
            number,
            preamble,
        }
    }
}

impl Shared {
    fn failed(&self, error: io::Error) -> JournalError {
        JournalError::Io(self.path.clone(), error)
    }
}

/// The part of a journal that is about one batch. A call is its position in it.
#[derive(Debug, Clone)]
pub struct BatchJournal {
    shared: Arc<Shared>,
    known: Option<Arc<KnownBatch>>,
    number: u64,
    preamble: Preamble,
}

impl BatchJournal {
    /// What earlier runs left about the call at `position`.
    pub fn recorded(&self, position: usize) -> Result<Recorded, JournalError> {
        let Some(call) = self
            .known
            .as_ref()
            .and_then(|known| known.calls.get(position))
        else {
            return Ok(Recorded::Nothing);
        };
        if let Some(span) = call.outcome {
            let outcome = self
                .shared
                .contents
                .outcome(span)
                .map_err(|error| self.shared.failed(error))?;
            return Ok(Recorded::Outcome(Box::new(outcome)));
        }
        Ok(if call.is_started {
            Recorded::OpenIntent {
                called_never: call.called_never,
            }
        } else {
            Recorded::Nothing
        })
    }

    /// Writes that the call is about to execute; returns when that is on disk. On `Err` it must not execute.
    pub async fn intent(&self, position: usize, call: &ToolCall) -> Result<(), JournalError> {
        self.write(&Record::Intent {
            batch: self.number,
            call: position,
            tool_call_id: (&call.id).into(),
            tool_name: (&call.name).into(),
            timestamp: unix_millis(),
        })
        .await
    }

    /// Writes what the call came to; returns when that is on disk.
    pub async fn outcome(
        &self,
        position: usize,
        call: &ToolCall,
        outcome: &RecordedOutcome,
    ) -> Result<(), JournalError> {
        self.write(&Record::Outcome {
            batch: self.number,
            call: position,
            tool_call_id: (&call.id).into(),
            tool_name: (&call.name).into(),
            outcome: Cow::Borrowed(outcome),
        })
        .await
    }

    /// As [`BatchJournal::intent`], for a call that the running call at `position` makes.
    pub async fn nested_intent(
        &self,
        position: usize,
        call: &ToolCall,
        replay: Replay,
    ) -> Result<(), JournalError> {
        self.write(&Record::NestedIntent {
            batch: self.number,
            call: position,
            tool_call_id: (&call.id).into(),
            tool_name: (&call.name).into(),
            arguments: Cow::Borrowed(&call.arguments),
            replay,
            timestamp: unix_millis(),
        })
        .await
    }

    /// As [`BatchJournal::outcome`], for a call that the running call at `position` made.
    pub async fn nested_outcome(
        &self,
        position: usize,
        call: &ToolCall,
        outcome: &RecordedOutcome,
    ) -> Result<(), JournalError> {
        self.write(&Record::NestedOutcome {
            batch: self.number,
            call: position,
            tool_call_id: (&call.id).into(),
            tool_name: (&call.name).into(),
            outcome: Cow::Borrowed(outcome),
        })
        .await
    }

    async fn write(&self, record: &Record<'_>) -> Result<(), JournalError> {
        self.shared
            .writer
            .append(self.preamble.clone(), record.to_line())
            .await
            .map_err(|error| {
                self.shared.has_failed.store(true, Ordering::Relaxed);
                self.shared.failed(error)
            })
    }
}

#[cfg(test)]
mod tests;
