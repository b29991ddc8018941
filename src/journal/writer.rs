//! Group commit: one thread writes what is queued and syncs once for all of it.
//!
//! A sync takes a few hundred microseconds whatever it covers, so lines that come in meanwhile wait and share the next
//! one. The thread blocks in the system; nobody else does. It ends, and is joined, when the writer is dropped.

use std::fs::File;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use tokio::sync::oneshot;

/// How much one sync covers at most; a bound on memory, far above what is usually queued.
const GROUP_BYTES: usize = 16 << 20;

/// The line that must stand in the file before others of its batch.
#[derive(Debug, Clone)]
pub(super) struct Preamble {
    pub(super) line: Arc<[u8]>,
    /// Set by the writer once it is on disk.
    pub(super) is_written: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Entry {
    preamble: Preamble,
    line: Vec<u8>,
    done: oneshot::Sender<io::Result<()>>,
}

/// Appends lines durably.
#[derive(Debug)]
pub(super) struct Writer {
    /// `None` only while it is dropped.
    queue: Option<mpsc::Sender<Entry>>,
    thread: Option<JoinHandle<()>>,
    syncs: Arc<AtomicU64>,
}

impl Writer {
    /// `file` is open for appending and ends at `end`.
    pub(super) fn start(file: File, end: u64) -> io::Result<Self> {
        let (queue, entries) = mpsc::channel();
        let syncs = Arc::new(AtomicU64::new(0));
        let mut appender = Appender {
            file,
            end,
            syncs: Arc::clone(&syncs),
            broken: None,
        };
        let thread = thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || appender.serve(&entries))?;
        Ok(Self {
            queue: Some(queue),
            thread: Some(thread),
            syncs,
        })
    }

    pub(super) fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }

    /// Returns when the line is on disk, with its preamble somewhere before it.
    pub(super) async fn append(&self, preamble: Preamble, line: Vec<u8>) -> io::Result<()> {
        let (done, written) = oneshot::channel();
        let entry = Entry {
            preamble,
            line,
            done,
        };
        let ended = || io::Error::other("the thread that writes it has ended");
        self.queue
            .as_ref()
            .and_then(|queue| queue.send(entry).ok())
            .ok_or_else(ended)?;
        written.await.map_err(|_| ended())?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The side of the thread.
struct Appender {
    file: File,
    /// Where the last line that is on disk ends.
    end: u64,
    syncs: Arc<AtomicU64>,
    /// Why nothing can be written any more.
    broken: Option<String>,
}

impl Appender {
    fn serve(&mut self, entries: &mpsc::Receiver<Entry>) {
        while let Ok(first) = entries.recv() {
            let group = gather(first, entries);
            let written = self.commit(&group);
            for entry in group {
                let answer = match &written {
                    Ok(()) => Ok(()),
                    Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
                };
                // Nobody waits any more if the call was dropped; its line is there all the same.
                let _ = entry.done.send(answer);
            }
        }
    }

    fn commit(&mut self, group: &[Entry]) -> io::Result<()> {
        if let Some(reason) = &self.broken {
            return Err(io::Error::other(reason.clone()));
        }
        let (text, preambles) = join(group);
        if let Err(error) = self.file.write_all(&text) {
            self.cut();
            return Err(error);
        }
        if let Err(error) = self.file.sync_data() {
            // What a failed sync left on disk is unknown, and a second one may claim success: pages are marked clean.
            self.broken = Some(format!("an earlier sync failed: {error}"));
            return Err(error);
        }
        self.syncs.fetch_add(1, Ordering::Relaxed);
        self.end += text.len() as u64;
        for preamble in preambles {
            preamble.is_written.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Takes back a line that was written in part, so that the next one does not continue it.
    fn cut(&mut self) {
        if let Err(error) = self.file.set_len(self.end) {
            self.broken = Some(format!("half a line cannot be removed: {error}"));
        }
    }
}

/// All that is queued by now.
fn gather(first: Entry, entries: &mpsc::Receiver<Entry>) -> Vec<Entry> {
    let mut bytes = first.line.len();
    let mut group = vec![first];
    while bytes < GROUP_BYTES
        && let Ok(entry) = entries.try_recv()
    {
        bytes += entry.line.len();
        group.push(entry);
    }
    group
}

/// The text of a group, each preamble that is not on disk yet once and first, and those preambles.
fn join(group: &[Entry]) -> (Vec<u8>, Vec<&Preamble>) {
    let mut text = Vec::new();
    let mut preambles: Vec<&Preamble> = Vec::new();
    for entry in group {
        let preamble = &entry.preamble;
        let is_there = preamble.is_written.load(Ordering::Relaxed)
            || preambles
                .iter()
                .any(|other| Arc::ptr_eq(&other.is_written, &preamble.is_written));
        if !is_there {
            text.extend_from_slice(&preamble.line);
            preambles.push(preamble);
        }
        text.extend_from_slice(&entry.line);
    }
    (text, preambles)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn preamble() -> Preamble {
        Preamble {
            line: (*b"first\n").into(),
            is_written: Arc::default(),
        }
    }

    #[tokio::test]
    async fn preamble_is_written_once() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let writer = Writer::start(file.reopen().unwrap(), 0).unwrap();
        let preamble = preamble();
        let lines: [&[u8]; 3] = [b"a\n", b"b\n", b"c\n"];
        for line in lines {
            writer
                .append(preamble.clone(), line.to_vec())
                .await
                .unwrap();
        }
        assert_eq!(fs::read(file.path()).unwrap(), b"first\na\nb\nc\n");
    }

    #[tokio::test]
    async fn line_that_does_not_fit_fails_and_leaves_nothing() {
        let full = OpenFull::new();
        let writer = Writer::start(full.file, 0).unwrap();
        let error = writer
            .append(preamble(), b"a\n".to_vec())
            .await
            .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }

    /// A device on which every write fails as on a full disk.
    struct OpenFull {
        file: File,
    }

    impl OpenFull {
        fn new() -> Self {
            let file = fs::OpenOptions::new().append(true).open("/dev/full");
            Self {
                file: file.unwrap(),
            }
        }
    }
}
