//! The file of a journal: opened, locked, read once, its torn end cut off.
//!
//! Outcomes stay in the file until somebody asks for one; only where they are is kept in memory.

use std::collections::{BTreeMap, HashMap};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::tool::Replay;

use super::record::{self, BatchCall, HEADER, Header, Record, RecordedOutcome};
use super::{JournalError, OpenIntent};

/// Where a line stands in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    offset: u64,
    length: usize,
}

/// One line, and where it stands.
pub(super) struct Line {
    pub(super) record: Record<'static>,
    pub(super) span: Span,
}

/// A batch of an earlier run.
#[derive(Debug)]
pub(super) struct KnownBatch {
    pub(super) number: u64,
    pub(super) calls: Vec<KnownCall>,
    span: Span,
    /// What it is recognised by; `None`: never.
    identity: Option<(String, u64)>,
}

/// What earlier runs wrote about one call.
#[derive(Debug, Default, Clone)]
pub(super) struct KnownCall {
    pub(super) is_started: bool,
    pub(super) called_never: bool,
    pub(super) outcome: Option<Span>,
    tool_call_id: String,
    tool_name: String,
}

/// What was in the file when it was opened.
#[derive(Debug)]
pub(super) struct Contents {
    file: File,
    batches: HashMap<(String, u64), Arc<KnownBatch>>,
    open_intents: Vec<OpenIntent>,
    next_batch: u64,
}

impl Contents {
    /// The contents and where the next line belongs. The file stays locked for as long as it is open.
    pub(super) fn open(path: &Path) -> Result<(Self, u64), JournalError> {
        let failed = |error| JournalError::Io(path.to_path_buf(), error);
        let mut file = open_locked(path)?;
        prepare(&mut file, path)?;
        let mut known = BTreeMap::new();
        let end = scan(&file, path, |line| add(&mut known, line))?;
        if file.metadata().map_err(failed)?.len() != end {
            file.set_len(end)
                .and_then(|()| file.sync_data())
                .map_err(failed)?;
        }
        Ok((Self::new(file, known), end))
    }

    fn new(file: File, known: BTreeMap<u64, KnownBatch>) -> Self {
        let next_batch = known.last_key_value().map_or(0, |(number, _)| number + 1);
        let open_intents = known
            .values()
            .flat_map(|batch| &batch.calls)
            .filter(|call| call.is_started && call.outcome.is_none())
            .map(|call| OpenIntent {
                tool_call_id: call.tool_call_id.clone(),
                tool_name: call.tool_name.clone(),
            })
            .collect();
        let batches = known
            .into_values()
            .filter_map(|batch| Some((batch.identity.clone()?, Arc::new(batch))))
            .collect();
        Self {
            file,
            batches,
            open_intents,
            next_batch,
        }
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    pub(super) fn next_batch(&self) -> u64 {
        self.next_batch
    }

    pub(super) fn open_intents(&self) -> &[OpenIntent] {
        &self.open_intents
    }

    pub(super) fn known(&self, identity: String, occurrence: u64) -> Option<Arc<KnownBatch>> {
        self.batches.get(&(identity, occurrence)).cloned()
    }

    pub(super) fn calls(&self, known: &KnownBatch) -> io::Result<Vec<BatchCall>> {
        match read_at(&self.file, known.span)? {
            Record::Batch { calls, .. } => Ok(calls.into_owned()),
            _ => Err(changed_below_us()),
        }
    }

    pub(super) fn outcome(&self, span: Span) -> io::Result<RecordedOutcome> {
        outcome_at(&self.file, span)
    }
}

/// The outcome that stands at `span`.
pub(super) fn outcome_at(file: &File, span: Span) -> io::Result<RecordedOutcome> {
    match read_at(file, span)? {
        Record::Outcome { outcome, .. } => Ok(outcome.into_owned()),
        _ => Err(changed_below_us()),
    }
}

/// How often and how long apart a lock is tried: a process that a killed run was about to start holds it until it has
/// become a tool's program.
const LOCK_TRIES: u32 = 50;
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

fn try_lock(file: &File) -> Result<(), TryLockError> {
    for _ in 1..LOCK_TRIES {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => thread::sleep(BETWEEN_TRIES),
            answer => return answer,
        }
    }
    file.try_lock()
}

fn open_locked(path: &Path) -> Result<File, JournalError> {
    let failed = |error| JournalError::Io(path.to_path_buf(), error);
    // Asked before opening: opening a FIFO would wait for ever.
    if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(JournalError::Foreign(path.to_path_buf()));
    }
    let file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
        .map_err(failed)?;
    match try_lock(&file) {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(JournalError::InUse(path.to_path_buf())),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

/// Writes the header of a new journal, durably with the file's name; judges that of another file.
fn prepare(file: &mut File, path: &Path) -> Result<(), JournalError> {
    let failed = |error| JournalError::Io(path.to_path_buf(), error);
    if !is_new(file).map_err(failed)? {
        return match header(file).map_err(failed)? {
            Header::Readable => Ok(()),
            Header::Newer => Err(JournalError::Newer(path.to_path_buf())),
            Header::Foreign => Err(JournalError::Foreign(path.to_path_buf())),
        };
    }
    file.set_len(0)
        .and_then(|()| file.write_all(HEADER.as_bytes()))
        .and_then(|()| file.sync_all())
        .and_then(|()| sync_folder(path))
        .map_err(failed)
}

/// Whether the file holds no more than the beginning of a header, or the zeros that a crash left of one.
fn is_new(file: &mut File) -> io::Result<bool> {
    let mut start = Vec::new();
    file.rewind()?;
    file.take(HEADER.len() as u64).read_to_end(&mut start)?;
    let is_short = start.len() < HEADER.len() || file.metadata()?.len() == HEADER.len() as u64;
    let is_blank = start.iter().all(|byte| *byte == 0);
    Ok(is_short
        && (is_blank || (HEADER.as_bytes().starts_with(&start) && start != HEADER.as_bytes())))
}

/// What the first line says. A foreign file may be one endless line, so only so much of it is read.
pub(super) fn header(mut file: &File) -> io::Result<Header> {
    let mut first = Vec::new();
    file.rewind()?;
    BufReader::new(file)
        .take(4096)
        .read_until(b'\n', &mut first)?;
    Ok(Header::read(&first))
}

fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    File::open(folder)?.sync_all()
}

/// Reads every line after the header; the answer is where the last whole one ends.
///
/// `take` says whether a record makes sense. A bad line is the torn end if nothing follows, else damage.
pub(super) fn scan(
    mut file: &File,
    path: &Path,
    mut take: impl FnMut(Line) -> bool,
) -> Result<u64, JournalError> {
    let failed = |error| JournalError::Io(path.to_path_buf(), error);
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    let mut reader = BufReader::new(file);
    let mut text = Vec::new();
    let mut end = reader.read_until(b'\n', &mut text).map_err(failed)? as u64;
    for number in 2.. {
        text.clear();
        let length = reader.read_until(b'\n', &mut text).map_err(failed)?;
        if length == 0 {
            break;
        }
        let span = Span {
            offset: end,
            length,
        };
        let is_whole = text.ends_with(b"\n");
        let is_known = match is_whole.then(|| Record::read(&text)).flatten() {
            Some(record) => take(Line { record, span }),
            None if reader.fill_buf().map_err(failed)?.is_empty() => break,
            None => false,
        };
        if !is_known {
            return Err(JournalError::Damaged {
                path: path.to_path_buf(),
                line: number,
            });
        }
        end += length as u64;
    }
    Ok(end)
}

/// Adds one line to what is known; false if it speaks of a batch or call that no line before it named.
fn add(known: &mut BTreeMap<u64, KnownBatch>, line: Line) -> bool {
    match line.record {
        Record::Batch {
            batch,
            occurrence,
            calls,
        } => {
            let identity = occurrence.map(|occurrence| (record::identity(&calls), occurrence));
            let added = KnownBatch {
                number: batch,
                calls: vec![KnownCall::default(); calls.len()],
                span: line.span,
                identity,
            };
            known.insert(batch, added).is_none()
        }
        Record::Intent {
            batch,
            call,
            tool_call_id,
            tool_name,
            ..
        } => change(known, batch, call, |call| {
            call.is_started = true;
            call.tool_call_id = tool_call_id.into_owned();
            call.tool_name = tool_name.into_owned();
        }),
        Record::Outcome { batch, call, .. } => change(known, batch, call, |call| {
            call.outcome = Some(line.span);
        }),
        Record::NestedIntent {
            batch,
            call,
            replay,
            ..
        } => change(known, batch, call, |call| {
            call.called_never |= replay == Replay::Never;
        }),
        Record::NestedOutcome { batch, call, .. } => change(known, batch, call, |_| ()),
    }
}

fn change(
    known: &mut BTreeMap<u64, KnownBatch>,
    batch: u64,
    call: usize,
    change: impl FnOnce(&mut KnownCall),
) -> bool {
    let call = known
        .get_mut(&batch)
        .and_then(|batch| batch.calls.get_mut(call));
    call.map(change).is_some()
}

fn read_at(file: &File, span: Span) -> io::Result<Record<'static>> {
    let mut line = vec![0; span.length];
    file.read_exact_at(&mut line, span.offset)?;
    Record::read(&line).ok_or_else(changed_below_us)
}

fn changed_below_us() -> io::Error {
    io::Error::other("the file was changed by somebody else")
}
