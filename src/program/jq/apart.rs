//! Filters that might take memory or stack without bound run apart: in a process of their own, pitool again, with limits
//! that end it instead of everything.
//!
//! One JSON line goes to its stdin (the filter, its input, what is wanted), JSON lines come back: updates, then the end. A
//! program that does not [`enable`] this runs all filters in the process itself.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json as value};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{BROKE_DOWN, Code, End, Message, Wanted, aborted, late};
use crate::json;
use crate::program::environment::{CALL_ID, TOOL_NAME};
use crate::program::item::{Item, Items};
use crate::program::process::{Cause, Ended, Flow, Input, Running, Sink};
use crate::program::watcher::Announced;
use crate::program::{Invocation, Throw};

/// How the process is started.
#[derive(Debug)]
struct Start {
    program: PathBuf,
    arguments: Vec<OsString>,
}

static START: OnceLock<Start> = OnceLock::new();

/// Has filters that might grow without bound run in processes of their own: `program` with `arguments`, which must come to
/// [`serve`].
pub fn enable(program: PathBuf, arguments: Vec<OsString>) {
    let _ = START.set(Start { program, arguments });
}

/// The argument with which the command runs one filter.
pub const ARGUMENT: &str = "--run-filter";

/// The memory that a filter may take.
const MEMORY: u64 = 1 << 30;

/// The stack that a filter may take, and so whoever reads its text.
const STACK: usize = 256 << 20;

/// How much of its stderr is looked at for the reason of its end.
const REASON_BYTES: usize = 4096;

/// What is asked of the process.
pub(super) struct Job<'a> {
    pub(super) text: &'a str,
    pub(super) input: &'a Value,
    pub(super) wanted: Wanted,
    pub(super) timeout: Duration,
}

/// Runs a filter apart; `None` where there is no such process to be had.
pub(super) async fn run(
    job: Job<'_>,
    invocation: &Invocation<'_>,
    items: &mut Items<'_>,
) -> Option<Result<End, Throw>> {
    let running = start(&job, invocation)?;
    let mut answers = Answers {
        items,
        line: Vec::new(),
        end: None,
        stderr: Vec::new(),
    };
    let ended = running.finish(Some(job.timeout), invocation.stop, &mut answers);
    let ended = ended.await;
    let (end, stderr) = (answers.end, answers.stderr);
    Some(match ended {
        Ok(ended) => end_of(&ended, end, &stderr, &job, items),
        Err(_) => Err(Throw(BROKE_DOWN.to_owned())),
    })
}

fn start(job: &Job<'_>, invocation: &Invocation<'_>) -> Option<Running> {
    let start = START.get()?;
    // An environment has no NUL; this one is only for the watcher to know the process by.
    let variable = |text: &str| OsString::from(text.replace('\0', "\u{fffd}"));
    let (id, name) = (
        variable(invocation.tool_call_id),
        variable(invocation.tool_name),
    );
    let mut command = Command::new(&start.program);
    command
        .args(&start.arguments)
        .env_clear()
        .env(CALL_ID, &id)
        .env(TOOL_NAME, &name)
        .current_dir("/");
    let line = value!({
        "filter": job.text,
        "input": job.input,
        "call": {"toolCallId": invocation.tool_call_id, "toolName": invocation.tool_name},
        "items": job.wanted == Wanted::Items,
    });
    let input = Input::Bytes(line.to_string().into_bytes());
    Running::start(command, input, Announced::new(&id, &name)).ok()
}

fn end_of(
    ended: &Ended,
    end: Option<Result<End, Throw>>,
    stderr: &[u8],
    job: &Job<'_>,
    items: &Items<'_>,
) -> Result<End, Throw> {
    match (end, ended.cause) {
        (Some(end), _) => end,
        (None, Cause::Timeout) => Err(late(items, job.timeout)),
        (None, Cause::Stop) => Err(aborted(items)),
        (None, Cause::Itself | Cause::Output) => Err(Throw(reason(ended.status, stderr))),
    }
}

/// Why the process ended without an answer: what Rust's runtime says when it gives up.
fn reason(status: ExitStatus, stderr: &[u8]) -> String {
    let stderr = String::from_utf8_lossy(stderr);
    if stderr.contains("overflowed its stack") {
        return "The filter recursed too deeply".to_owned();
    }
    if stderr.contains("memory allocation of") || status.code().is_none() {
        return format!("The filter needs more than {} MiB of memory", MEMORY >> 20);
    }
    BROKE_DOWN.to_owned()
}

/// The answers of the process as they come.
struct Answers<'a, 'i> {
    items: &'a mut Items<'i>,
    line: Vec<u8>,
    end: Option<Result<End, Throw>>,
    stderr: Vec<u8>,
}

impl Sink for Answers<'_, '_> {
    fn stdout(&mut self, bytes: &[u8]) -> Flow {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if self.line.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                self.take(&line);
            }
        }
        Flow::GoOn
    }

    fn stderr(&mut self, bytes: &[u8]) {
        let room = REASON_BYTES - self.stderr.len();
        self.stderr
            .extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn next_tick(&self) -> Option<Instant> {
        None
    }

    fn tick(&mut self) {}
}

impl Answers<'_, '_> {
    /// One line: an object with one member, whose key says what it is.
    fn take(&mut self, line: &[u8]) {
        let Ok(Value::Object(answer)) = json::parse(line) else {
            return;
        };
        let Some((key, value)) = answer.into_iter().next() else {
            return;
        };
        match key.as_str() {
            "update" => self.items.take(Ok(Item::Update(value))),
            "result" => self.end = Some(Item::read(value).map(End::Result).map_err(Throw)),
            "value" => self.end = Some(Ok(End::Value(value))),
            "nothing" => self.end = Some(Ok(End::Nothing)),
            _ => {
                let message = value.as_str().unwrap_or(BROKE_DOWN);
                self.end = Some(Err(Throw(message.to_owned())));
            }
        }
    }
}

/// The life of the process: runs the filter on stdin, within its limits.
pub fn serve() {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::set_name(c"pitool-filter");
    limit(Resource::As, MEMORY + STACK as u64);
    limit(Resource::Core, 0);
    let mut line = Vec::new();
    if io::stdin().read_to_end(&mut line).is_err() {
        return;
    }
    let (mut sender, mut messages) = mpsc::channel(16);
    let started = thread::Builder::new()
        .stack_size(STACK)
        .spawn(move || execute(&line, &mut sender));
    if started.is_err() {
        return;
    }
    let mut stdout = io::stdout().lock();
    while let Some(message) = messages.blocking_recv() {
        // Nobody is left to hear it when pitool is gone.
        let written = writeln!(stdout, "{}", answer(message)).and_then(|()| stdout.flush());
        if written.is_err() {
            return;
        }
    }
}

/// Lowers a limit; one that is lower already stays.
fn limit(resource: Resource, most: u64) {
    let current = getrlimit(resource);
    let lower = |limit: Option<u64>| Some(limit.map_or(most, |limit| limit.min(most)));
    let lowered = Rlimit {
        current: lower(current.current),
        maximum: lower(current.maximum),
    };
    let _ = setrlimit(resource, lowered);
}

fn execute(line: &[u8], messages: &mut mpsc::Sender<Message>) {
    let Ok(mut job) = json::parse(line) else {
        return;
    };
    let code = Code::new(job["filter"].as_str().unwrap_or_default().to_owned());
    let wanted = if job["items"] == true {
        Wanted::Items
    } else {
        Wanted::Value
    };
    let (input, call) = (job["input"].take(), job["call"].take());
    let end = catch_unwind(AssertUnwindSafe(|| code.run(input, call, wanted, messages)));
    let end = end.unwrap_or_else(|_| Err(Throw(BROKE_DOWN.to_owned())));
    let _ = messages.blocking_send(Message::End(end));
    // What it holds may be nested too deeply to be dropped.
    std::mem::forget(code);
}

fn answer(message: Message) -> Value {
    match message {
        Message::Update(Item::Update(update)) => value!({"update": update}),
        Message::Update(Item::Result(result))
        | Message::End(Ok(End::Result(Item::Result(result)))) => {
            value!({"result": result})
        }
        Message::End(Ok(End::Value(given))) => value!({"value": given}),
        Message::End(Ok(End::Nothing | End::Result(Item::Update(_)))) => value!({"nothing": true}),
        Message::End(Err(Throw(message))) => value!({"throw": message}),
    }
}
