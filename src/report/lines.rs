//! Events as JSON lines, in a file or on stdout.
//!
//! One thread writes everything that has gathered since its last write in one piece: a burst of events costs one write,
//! a single event is out at once. The thread ends, joined, in [`EventLines::finish`].

use std::io::{self, Write};
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use pitool::event::{Event, Listener};

use super::{lock, sanitize};

/// How many bytes may wait for a slow reader before the batch has to wait for it too.
const MAX_PENDING: usize = 8 << 20;

/// A listener that writes each event as one line.
pub(crate) struct EventLines {
    lines: LineWriter,
    start: Instant,
    audience: Audience,
}

/// Who reads the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    /// A file or a pipe.
    Program,
    /// A terminal: characters that it would obey are written as JSON escapes.
    Terminal,
}

impl EventLines {
    /// Writes to `writer`; `start` is the zero of `atMs`. `on_failure` is called once, on the writing thread, when
    /// nothing more can be written (the reader is gone, the disk is full); later events are dropped.
    pub(crate) fn new(
        writer: impl Write + Send + 'static,
        audience: Audience,
        start: Instant,
        on_failure: impl FnOnce(&io::Error) + Send + 'static,
    ) -> Self {
        Self {
            lines: LineWriter::new(writer, on_failure),
            start,
            audience,
        }
    }

    /// Waits until every event is written. The first failure of a write, if there was one.
    pub(crate) fn finish(&self) -> io::Result<()> {
        self.lines.finish()
    }
}

impl Listener for EventLines {
    fn event(&self, event: Event<'_>) {
        let line = event.to_json(self.start);
        match self.audience {
            Audience::Program => self.lines.push(&line),
            Audience::Terminal => self.lines.push(&sanitize::json(&line)),
        }
    }
}

/// Lines on their way to a writer of their own thread.
struct LineWriter {
    queue: Arc<Queue>,
    thread: Mutex<Option<JoinHandle<io::Result<()>>>>,
}

#[derive(Default)]
struct Queue {
    pending: Mutex<Pending>,
    changed: Condvar,
}

#[derive(Default)]
struct Pending {
    text: Vec<u8>,
    /// Nothing more will be pushed.
    is_complete: bool,
    /// Nothing more can be written.
    has_failed: bool,
}

impl LineWriter {
    fn new(
        writer: impl Write + Send + 'static,
        on_failure: impl FnOnce(&io::Error) + Send + 'static,
    ) -> Self {
        let queue = Arc::<Queue>::default();
        let other = Arc::clone(&queue);
        let thread = thread::spawn(move || other.drain(writer, on_failure));
        Self {
            queue,
            thread: Mutex::new(Some(thread)),
        }
    }

    fn push(&self, line: &str) {
        let mut pending = self.queue.lock();
        while pending.text.len() > MAX_PENDING && !pending.has_failed {
            pending = self.queue.wait(pending);
        }
        if pending.has_failed {
            return;
        }
        pending.text.extend_from_slice(line.as_bytes());
        pending.text.push(b'\n');
        self.queue.changed.notify_all();
    }

    fn finish(&self) -> io::Result<()> {
        let thread = self.complete().expect("lines are finished once");
        thread
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the writer of events failed")))
    }

    fn complete(&self) -> Option<JoinHandle<io::Result<()>>> {
        self.queue.lock().is_complete = true;
        self.queue.changed.notify_all();
        lock(&self.thread).take()
    }
}

impl Drop for LineWriter {
    fn drop(&mut self) {
        if let Some(thread) = self.complete() {
            // Only when an error keeps `finish` from being called: that error is the one to report.
            let _ = thread.join();
        }
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().expect("no holder of the lock panics")
    }

    fn wait<'a>(&self, pending: MutexGuard<'a, Pending>) -> MutexGuard<'a, Pending> {
        self.changed
            .wait(pending)
            .expect("no holder of the lock panics")
    }

    /// Writes what gathers until all is complete or a write fails.
    fn drain(&self, mut writer: impl Write, on_failure: impl FnOnce(&io::Error)) -> io::Result<()> {
        let mut batch = Vec::new();
        while self.take(&mut batch) {
            let written = writer.write_all(&batch).and_then(|()| writer.flush());
            if let Err(error) = written {
                self.lock().has_failed = true;
                self.changed.notify_all();
                on_failure(&error);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Waits for lines and takes them all; false when there are none and none will come.
    fn take(&self, batch: &mut Vec<u8>) -> bool {
        let mut pending = self.lock();
        while pending.text.is_empty() && !pending.is_complete {
            pending = self.wait(pending);
        }
        batch.clear();
        mem::swap(batch, &mut pending.text);
        self.changed.notify_all();
        !batch.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use pitool::message::ToolCall;
    use serde_json::{Value, json};

    use super::*;

    /// Sends each write to the test, and waits for its leave before it returns.
    struct Steps {
        written: mpsc::Sender<String>,
        leave: mpsc::Receiver<io::Result<()>>,
    }

    impl Write for Steps {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let text = String::from_utf8(bytes.to_vec()).unwrap();
            self.written.send(text).unwrap();
            self.leave.recv().unwrap().map(|()| bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn call(name: &str) -> ToolCall {
        ToolCall {
            id: "c".into(),
            name: name.into(),
            arguments: json!({}),
            arguments_error: None,
        }
    }

    fn start(lines: &EventLines, name: &str) {
        lines.event(Event::Start {
            call: &call(name),
            replayed: false,
        });
    }

    fn names(text: &str) -> Vec<String> {
        let name = |line: &str| serde_json::from_str::<Value>(line).unwrap()["toolName"].clone();
        text.lines()
            .map(|line| name(line).as_str().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn what_gathers_during_a_write_is_one_write() {
        let (written, writes) = mpsc::channel();
        let (leave, leaves) = mpsc::channel();
        let steps = Steps {
            written,
            leave: leaves,
        };
        let lines = EventLines::new(steps, Audience::Program, Instant::now(), |_| {});
        start(&lines, "a");
        assert_eq!(names(&writes.recv().unwrap()), ["a"]);
        start(&lines, "b");
        start(&lines, "c");
        leave.send(Ok(())).unwrap();
        assert_eq!(names(&writes.recv().unwrap()), ["b", "c"]);
        leave.send(Ok(())).unwrap();
        lines.finish().unwrap();
    }

    #[test]
    fn a_reader_that_left_is_noticed_once() {
        let (written, writes) = mpsc::channel();
        let (leave, leaves) = mpsc::channel();
        let (failed, failures) = mpsc::channel();
        let steps = Steps {
            written,
            leave: leaves,
        };
        let on_failure = move |error: &io::Error| failed.send(error.kind()).unwrap();
        let lines = EventLines::new(steps, Audience::Program, Instant::now(), on_failure);
        start(&lines, "a");
        writes.recv().unwrap();
        leave
            .send(Err(io::Error::from(io::ErrorKind::BrokenPipe)))
            .unwrap();
        assert_eq!(failures.recv().unwrap(), io::ErrorKind::BrokenPipe);
        start(&lines, "b");
        assert_eq!(
            lines.finish().unwrap_err().kind(),
            io::ErrorKind::BrokenPipe
        );
        assert!(failures.recv().is_err());
    }

    #[test]
    fn a_terminal_gets_no_controls() {
        let (sender, receiver) = mpsc::channel();
        let (leave, leaves) = mpsc::channel();
        leave.send(Ok(())).unwrap();
        let steps = Steps {
            written: sender,
            leave: leaves,
        };
        let lines = EventLines::new(steps, Audience::Terminal, Instant::now(), |_| {});
        start(&lines, "x\u{9b}\u{202e}");
        lines.finish().unwrap();
        let text = receiver.recv().unwrap();
        assert!(text.contains("x\\u009b\\u202e"), "{text}");
        assert_eq!(names(&text), ["x\u{9b}\u{202e}"]);
    }
}
