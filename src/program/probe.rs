//! What is seen of a process beside its result, for those who judge how a tool behaves.
//!
//! A probe changes nothing but the stdin, if it is asked to: the process runs through the same hands as every other.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::exit::signal_name;
use super::process::{Cause, Ended, Flow, Sink};

/// Watches the process of one call.
#[derive(Debug)]
pub struct Probe {
    tool_call_id: String,
    stdin: ProbedStdin,
    sighting: Mutex<Option<Sighting>>,
}

/// What the process of a probe finds on its stdin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbedStdin {
    /// What its manifest says.
    AsUsual,
    /// Its end, at once.
    Empty,
}

/// What was seen of one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sighting {
    /// How it exited: the code, or the name of the signal that killed it.
    pub exit: Result<i32, String>,
    /// Whether its exit is none that the manifest takes for a failure.
    pub exit_is_ok: bool,
    /// Why it ended.
    pub ending: Ending,
    /// How long it went on after it was told to end.
    pub stopped_after: Option<Duration>,
    /// Processes of its group still ran when it had exited.
    pub left_running: bool,
    /// The names of those that had left its group and still ran.
    pub left_group: Vec<String>,
    /// A process outside its group held its output.
    pub output_held: bool,
    /// How many bytes stood on its stdin and how many of them it read; nothing if it was given none.
    pub input: Option<(usize, usize)>,
    /// What came on stdout.
    pub stdout: Printed,
    /// What came on stderr.
    pub stderr: Printed,
    /// What its stdout means.
    pub output: OutputKind,
    /// Whether it printed something that can be a result.
    pub has_result: bool,
    /// How many bytes of other than white space came after its result.
    pub after_result: u64,
    /// Whether the model got less than all of its text.
    pub is_cut: bool,
}

/// Why a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// By itself.
    Itself,
    /// Its time was over.
    Timeout,
    /// Somebody asked to stop.
    Stop,
    /// It printed more than is ever taken.
    Output,
}

/// What stdout means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputKind {
    /// Text for the model.
    Text,
    /// A JSON object per line.
    Items,
    /// One JSON value.
    Json,
    /// The bytes of an image.
    Image,
}

/// What came on a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Printed {
    /// How many bytes.
    pub bytes: u64,
    /// How many of them ended a line.
    pub lines: u64,
    /// Whether there were bytes that are no UTF-8.
    pub is_invalid: bool,
    /// The beginning of a character whose rest may come.
    pending: Vec<u8>,
}

impl Probe {
    /// Watches the process of the call with this id.
    pub fn new(tool_call_id: impl Into<String>, stdin: ProbedStdin) -> Self {
        Self {
            tool_call_id: tool_call_id.into(),
            stdin,
            sighting: Mutex::new(None),
        }
    }

    /// What was seen; nothing if no process of the call has ended.
    pub fn sighting(&self) -> Option<Sighting> {
        let sighting = self.sighting.lock();
        sighting.unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn is_of(&self, tool_call_id: &str) -> bool {
        self.tool_call_id == tool_call_id
    }

    /// What the process reads instead of what its manifest says.
    pub(crate) fn stdin(&self, usual: Option<Vec<u8>>) -> Option<Vec<u8>> {
        match self.stdin {
            ProbedStdin::AsUsual => usual,
            ProbedStdin::Empty => None,
        }
    }

    pub(crate) fn saw(&self, sighting: Sighting) {
        let mut last = self.sighting.lock().unwrap_or_else(PoisonError::into_inner);
        *last = Some(sighting);
    }
}

/// The exit as it is told.
pub(crate) fn exit(status: ExitStatus) -> Result<i32, String> {
    let signal = || signal_name(status.signal().unwrap_or_default());
    status.code().ok_or_else(signal)
}

impl From<Cause> for Ending {
    fn from(cause: Cause) -> Self {
        match cause {
            Cause::Itself => Self::Itself,
            Cause::Timeout => Self::Timeout,
            Cause::Stop => Self::Stop,
            Cause::Output => Self::Output,
        }
    }
}

impl Printed {
    fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.lines += memchr::memchr_iter(b'\n', bytes).count() as u64;
        if self.is_invalid {
            return;
        }
        self.pending.extend_from_slice(bytes);
        match std::str::from_utf8(&self.pending) {
            Ok(_) => self.pending.clear(),
            Err(error) if error.error_len().is_none() => {
                self.pending.drain(..error.valid_up_to());
            }
            Err(_) => self.is_invalid = true,
        }
    }

    fn end(mut self) -> Self {
        self.is_invalid |= !self.pending.is_empty();
        self.pending.clear();
        self
    }
}

/// Counts what passes on its way to the one who takes it.
pub(crate) struct Watched<'a> {
    sink: &'a mut dyn Sink,
    stdout: Printed,
    stderr: Printed,
}

impl<'a> Watched<'a> {
    pub(crate) fn new(sink: &'a mut dyn Sink) -> Self {
        Self {
            sink,
            stdout: Printed::default(),
            stderr: Printed::default(),
        }
    }

    /// What came on stdout and stderr.
    pub(crate) fn printed(self) -> (Printed, Printed) {
        (self.stdout.end(), self.stderr.end())
    }
}

impl Sink for Watched<'_> {
    fn stdout(&mut self, bytes: &[u8]) -> Flow {
        self.stdout.add(bytes);
        self.sink.stdout(bytes)
    }

    fn stderr(&mut self, bytes: &[u8]) {
        self.stderr.add(bytes);
        self.sink.stderr(bytes);
    }

    fn next_tick(&self) -> Option<Instant> {
        self.sink.next_tick()
    }

    fn tick(&mut self) {
        self.sink.tick();
    }
}

/// What the one who read the output knows of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Heard {
    pub(crate) output: OutputKind,
    pub(crate) has_result: bool,
    pub(crate) after_result: u64,
    pub(crate) is_cut: bool,
    pub(crate) exit_is_ok: bool,
}

impl Sighting {
    pub(crate) fn new(
        ended: &Ended,
        left_group: Vec<String>,
        (stdout, stderr): (Printed, Printed),
        heard: Heard,
    ) -> Self {
        Self {
            exit: exit(ended.status),
            exit_is_ok: heard.exit_is_ok,
            ending: ended.cause.into(),
            stopped_after: ended.stopped_after,
            left_running: ended.left_running,
            left_group,
            output_held: ended.output_held,
            input: ended.input,
            stdout,
            stderr,
            output: heard.output,
            has_result: heard.has_result,
            after_result: heard.after_result,
            is_cut: heard.is_cut,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn printed(pieces: &[&[u8]], lines: u64, is_invalid: bool) {
        let mut printed = Printed::default();
        for piece in pieces {
            printed.add(piece);
        }
        let printed = printed.end();
        assert_eq!((printed.lines, printed.is_invalid), (lines, is_invalid));
        assert_eq!(printed.bytes, pieces.concat().len() as u64);
    }

    #[test]
    fn characters_may_come_in_pieces() {
        printed(&[], 0, false);
        printed(&[b"a\nb\n", "é".as_bytes()], 2, false);
        printed(&[b"\xe2", b"\x82", b"\xac\n"], 1, false);
        printed(&[b"\xe2", b"\x82"], 0, true);
        printed(&[b"\xe2", b"x"], 0, true);
        printed(&[b"\xff"], 0, true);
    }
}
