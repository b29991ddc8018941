//! Runs one process to its end: feeds it, reads it, and ends it when its time is over.
//!
//! The only runner there is: tools, hooks and `prepareArguments` all come here. It knows nothing of what the output
//! means; that is the business of the [`Sink`].

use std::io;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::time::{Instant, sleep_until};

use super::group::Group;
use super::watcher::Announced;
use crate::stop::Stop;

/// How long a process has between SIGTERM and SIGKILL.
pub(crate) const GRACE: Duration = Duration::from_secs(2);

/// How long the rest of a group may go on when the process has ended; what it prints in that time still counts.
const DRAIN: Duration = Duration::from_millis(500);

/// How long what was left behind has after SIGTERM, and after SIGKILL.
const LEFTOVER_GRACE: Duration = Duration::from_millis(500);

/// How often a group that must end is asked whether it has.
const POLL: Duration = Duration::from_millis(10);

/// How much is read at once: little at first, as most tools print little, and as much as a pipe holds when one prints more.
const FIRST_BUFFER: usize = 4 * 1024;
const FULL_BUFFER: usize = 64 * 1024;

/// As much as every pipe takes without waiting.
const FITS_PIPE: usize = 4096;

/// Who takes what the process prints.
pub(crate) trait Sink: Send {
    /// Takes a piece of stdout.
    fn stdout(&mut self, bytes: &[u8]) -> Flow;
    /// Takes a piece of stderr.
    fn stderr(&mut self, bytes: &[u8]);
    /// When [`Sink::tick`] wants to be called.
    fn next_tick(&self) -> Option<Instant>;
    /// The time has come.
    fn tick(&mut self);
}

/// Whether a process may go on printing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    GoOn,
    /// What it printed can never be used: end it.
    End,
}

/// Why a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// By itself.
    Itself,
    /// Its time was over.
    Timeout,
    /// Somebody asked to stop.
    Stop,
    /// Its output was of no use.
    Output,
}

/// How a process ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) cause: Cause,
    /// Processes of its group still ran and were stopped.
    pub(crate) left_running: bool,
    /// A process outside the group still held the output when reading stopped.
    pub(crate) output_held: bool,
    /// How long it went on after it was told to end.
    pub(crate) stopped_after: Option<Duration>,
    /// How many bytes were to be read and how many were, if that was watched.
    pub(crate) input: Option<(usize, usize)>,
}

/// A process that was started and is to be brought to its end.
pub(crate) struct Running {
    child: Child,
    group: Group,
    feed: Option<Feed>,
    unread: Option<Unread>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
}

/// What a process reads.
#[derive(Debug)]
pub(crate) enum Input {
    /// Nothing: the end comes at once.
    Nothing,
    /// These bytes.
    Bytes(Vec<u8>),
    /// These bytes, and it is watched how many of them.
    Watched(Vec<u8>),
}

/// The process's end of its stdin, held to see what it left there.
struct Unread {
    pipe: io::PipeReader,
    length: usize,
}

impl Unread {
    /// How many bytes there were and how many the process read; `unwritten` of them never came into the pipe.
    fn read(&self, unwritten: usize) -> (usize, usize) {
        let left = rustix::io::ioctl_fionread(&self.pipe).unwrap_or_default();
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        let unread = left.saturating_add(unwritten);
        (self.length, self.length.saturating_sub(unread))
    }
}

/// What of the input did not fit into the pipe at once.
struct Feed {
    pipe: pipe::Sender,
    bytes: Vec<u8>,
    written: usize,
}

impl Running {
    /// Starts a process in a group of its own.
    pub(crate) fn start(
        mut command: std::process::Command,
        input: Input,
        announced: Announced,
    ) -> io::Result<Self> {
        let Fed {
            stdin,
            feed,
            unread,
        } = match input {
            Input::Nothing => Fed::nothing(),
            Input::Bytes(bytes) => Fed::new(bytes)?,
            Input::Watched(bytes) => Fed::watched(bytes)?,
        };
        command
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut command = Command::from(command);
        let mut child = command.process_group(0).spawn()?;
        let leader = child
            .id()
            .and_then(|id| Pid::from_raw(id.cast_signed()))
            .expect("a process that was not waited for has an id");
        Ok(Self {
            group: Group::announced(leader, announced),
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            child,
            feed,
            unread,
        })
    }

    /// Brings the process to its end. Dropped before that, the whole group is killed.
    pub(crate) async fn finish(
        self,
        timeout: Option<Duration>,
        stop: &Stop,
        sink: &mut dyn Sink,
    ) -> io::Result<Ended> {
        let mut course = Course::new(timeout);
        let Self {
            mut child,
            group,
            mut feed,
            unread,
            mut stdout,
            mut stderr,
        } = self;
        let mut stopped = pin!(stop.stopped());
        let mut stopped_now = pin!(stop.stopped_now());
        let mut out = Vec::with_capacity(FIRST_BUFFER);
        let mut err = Vec::with_capacity(FIRST_BUFFER);
        let mut unwritten = 0;
        loop {
            let pipes_open = stdout.is_some() || stderr.is_some();
            if let Some(ended) = course.ended(pipes_open, &group) {
                group.end();
                let input = unread.map(|unread| unread.read(unwritten));
                return Ok(Ended { input, ..ended });
            }
            let wake = course.next_wake(sink.next_tick());
            tokio::select! {
                status = child.wait(), if course.status.is_none() => {
                    unwritten = feed.take().map_or(0, |feed| feed.unwritten());
                    course.process_ended(status?);
                }
                read = read(stdout.as_mut(), &mut out), if stdout.is_some() => {
                    if read? == 0 {
                        stdout = None;
                    } else if course.reads() && sink.stdout(&out) == Flow::End {
                        course.terminate(Cause::Output, &group);
                    }
                    reuse(&mut out);
                }
                read = read(stderr.as_mut(), &mut err), if stderr.is_some() => {
                    if read? == 0 {
                        stderr = None;
                    } else {
                        sink.stderr(&err);
                    }
                    reuse(&mut err);
                }
                is_done = write(feed.as_mut()), if feed.is_some() => {
                    if is_done {
                        feed = None;
                    }
                }
                () = &mut stopped, if course.can_stop() => course.terminate(Cause::Stop, &group),
                () = &mut stopped_now, if course.can_stop_now() => course.kill(&group),
                () = sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => {
                    let now = Instant::now();
                    if sink.next_tick().is_some_and(|tick| tick <= now) {
                        sink.tick();
                    }
                    if course.time_passed(now, &group) == Pipes::GiveUp {
                        course.output_held = stdout.is_some() || stderr.is_some();
                        (stdout, stderr) = (None, None);
                    }
                }
            }
        }
    }
}

/// Reads what is there; 0 at the end.
async fn read(
    pipe: Option<&mut (impl AsyncRead + Unpin)>,
    buffer: &mut Vec<u8>,
) -> io::Result<usize> {
    match pipe {
        Some(pipe) => pipe.read_buf(buffer).await,
        None => std::future::pending().await,
    }
}

/// Makes room for the next read, more of it if this one took all there was.
fn reuse(buffer: &mut Vec<u8>) {
    let was_full = buffer.len() == buffer.capacity();
    buffer.clear();
    if was_full {
        buffer.reserve(FULL_BUFFER);
    }
}

/// Writes some more; true when there is nothing more to write, or nobody who reads it.
async fn write(feed: Option<&mut Feed>) -> bool {
    let Some(feed) = feed else {
        return std::future::pending().await;
    };
    match feed.pipe.write(&feed.bytes[feed.written..]).await {
        Ok(written) => {
            feed.written += written;
            feed.written == feed.bytes.len()
        }
        // The process closed its stdin: it does not have to read.
        Err(_) => true,
    }
}

impl Feed {
    fn unwritten(&self) -> usize {
        self.bytes.len() - self.written
    }
}

/// A stdin that holds the bytes, and what did not fit into it. Small inputs are all there before the process starts.
struct Fed {
    stdin: Stdio,
    feed: Option<Feed>,
    unread: Option<Unread>,
}

impl Fed {
    fn nothing() -> Self {
        Self {
            stdin: Stdio::null(),
            feed: None,
            unread: None,
        }
    }

    fn new(bytes: Vec<u8>) -> io::Result<Self> {
        let (reader, feed) = into_pipe(bytes)?;
        Ok(Self {
            stdin: reader.into(),
            feed,
            unread: None,
        })
    }

    fn watched(bytes: Vec<u8>) -> io::Result<Self> {
        let length = bytes.len();
        let (reader, feed) = into_pipe(bytes)?;
        let unread = Unread {
            pipe: reader.try_clone()?,
            length,
        };
        Ok(Self {
            stdin: reader.into(),
            feed,
            unread: Some(unread),
        })
    }
}

fn into_pipe(mut bytes: Vec<u8>) -> io::Result<(io::PipeReader, Option<Feed>)> {
    use std::io::Write;

    let (reader, mut writer) = io::pipe()?;
    let now = bytes.len().min(FITS_PIPE);
    writer.write_all(&bytes[..now])?;
    let feed = if now == bytes.len() {
        None
    } else {
        bytes.drain(..now);
        Some(Feed {
            pipe: pipe::Sender::from_owned_fd(writer.into())?,
            bytes,
            written: 0,
        })
    };
    Ok((reader, feed))
}

/// Whether it is still worth waiting for the pipes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pipes {
    Wait,
    GiveUp,
}

/// Where a process is on its way to the end, and what happens next by the clock.
struct Course {
    cause: Cause,
    status: Option<ExitStatus>,
    /// When the process is told to end.
    deadline: Option<Instant>,
    /// When it was told.
    told_at: Option<Instant>,
    stopped_after: Option<Duration>,
    /// When the group is killed.
    kill_at: Option<Instant>,
    /// When reading stops, whoever holds the pipe.
    give_up_at: Option<Instant>,
    /// When what was left behind is told to end.
    leave_at: Option<Instant>,
    /// When the group is looked at again.
    look_at: Option<Instant>,
    was_killed: bool,
    gave_up: bool,
    left_running: bool,
    output_held: bool,
}

impl Course {
    fn new(timeout: Option<Duration>) -> Self {
        Self {
            cause: Cause::Itself,
            status: None,
            deadline: timeout.and_then(|timeout| Instant::now().checked_add(timeout)),
            told_at: None,
            stopped_after: None,
            kill_at: None,
            give_up_at: None,
            leave_at: None,
            look_at: None,
            was_killed: false,
            gave_up: false,
            left_running: false,
            output_held: false,
        }
    }

    fn next_wake(&self, tick: Option<Instant>) -> Option<Instant> {
        let times = [
            tick,
            self.deadline,
            self.kill_at,
            self.give_up_at,
            self.leave_at,
            self.look_at,
        ];
        times.into_iter().flatten().min()
    }

    fn can_stop(&self) -> bool {
        self.cause == Cause::Itself && self.status.is_none()
    }

    /// A second stop signal cuts every grace short.
    fn can_stop_now(&self) -> bool {
        !self.was_killed
    }

    /// Output that was judged useless is read on, so that the process can end, but not looked at.
    fn reads(&self) -> bool {
        self.cause != Cause::Output
    }

    fn terminate(&mut self, cause: Cause, group: &Group) {
        if self.cause != Cause::Itself || self.status.is_some() {
            return;
        }
        self.cause = cause;
        self.deadline = None;
        let now = Instant::now();
        self.told_at = Some(now);
        self.kill_at = Some(now + GRACE);
        group.signal(Signal::TERM);
    }

    fn kill(&mut self, group: &Group) {
        if self.cause == Cause::Itself && self.status.is_none() {
            self.cause = Cause::Stop;
        }
        group.signal(Signal::KILL);
        self.was_killed = true;
        self.deadline = None;
        self.kill_at = None;
        self.leave_at = None;
        // The pipes close with the last process of the group; whoever holds them longer is not of the group.
        self.give_up_at = Some(Instant::now() + LEFTOVER_GRACE);
    }

    fn process_ended(&mut self, status: ExitStatus) {
        self.status = Some(status);
        self.stopped_after = self.told_at.map(|told| told.elapsed());
        self.deadline = None;
        if self.kill_at.is_none() && self.give_up_at.is_none() {
            self.leave_at = Some(Instant::now() + DRAIN);
        }
    }

    /// The end, if nothing is left to wait for.
    fn ended(&mut self, pipes_open: bool, group: &Group) -> Option<Ended> {
        let status = self.status?;
        if pipes_open {
            return None;
        }
        if !self.gave_up && group.is_alive() {
            // Nobody holds a pipe, but somebody of the group still runs: he has as long as one who holds it.
            self.look_at = Some(Instant::now() + POLL);
            return None;
        }
        Some(Ended {
            status,
            cause: self.cause,
            left_running: self.left_running,
            output_held: self.output_held,
            stopped_after: self.stopped_after,
            input: None,
        })
    }

    fn stop_leftover(&mut self, group: &Group) {
        self.left_running = true;
        self.kill_at = Some(Instant::now() + LEFTOVER_GRACE);
        group.signal(Signal::TERM);
    }

    fn time_passed(&mut self, now: Instant, group: &Group) -> Pipes {
        let is_over = |time: Option<Instant>| time.is_some_and(|time| time <= now);
        if is_over(self.look_at) {
            self.look_at = None;
        }
        if is_over(self.deadline) {
            self.terminate(Cause::Timeout, group);
        }
        if is_over(self.leave_at) {
            self.leave_at = None;
            if group.is_alive() {
                self.stop_leftover(group);
            } else {
                // Only a process outside the group can hold the pipe.
                self.give_up_at = Some(now);
            }
        }
        if is_over(self.kill_at) {
            self.kill(group);
        }
        if is_over(self.give_up_at) {
            self.give_up_at = None;
            self.gave_up = self.status.is_some();
        }
        if self.gave_up {
            return Pipes::GiveUp;
        }
        Pipes::Wait
    }
}
