//! The process of a server: started once, in a group of its own, and brought to its end in three steps.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;

use crate::event::Notice;
use crate::program::group::Group;
use crate::program::watcher;
use crate::program::{Throw, signal_name};

use super::manifest::ProcessConfig;
use super::notices::Notices;

/// How long a server has to end once its stdin is closed, before SIGTERM.
const STDIN_GRACE: Duration = Duration::from_secs(1);
/// How long it has between SIGTERM and SIGKILL.
const TERM_GRACE: Duration = Duration::from_secs(2);
/// How long an exit that is coming is waited for, to be told.
const EXIT_WAIT: Duration = Duration::from_millis(500);
/// How long what a server left behind has after SIGTERM.
const LEFTOVER_GRACE: Duration = Duration::from_millis(500);
const POLL: Duration = Duration::from_millis(10);

/// How many lines of stderr an error text quotes.
const TAIL_LINES: usize = 10;
/// How much of a line of stderr is kept.
const LINE_BYTES: u64 = 4096;

/// A server that runs. Dropped before [`ServerProcess::end`], its whole group is killed.
#[derive(Debug)]
pub(crate) struct ServerProcess {
    /// Taken by the one who ends it.
    group: Mutex<Option<Group>>,
    status: watch::Receiver<Option<ExitStatus>>,
    tail: Tail,
}

/// The last lines of a server's stderr.
type Tail = Arc<Mutex<VecDeque<String>>>;

/// The pipes of a server.
pub(crate) struct Pipes {
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
}

impl ServerProcess {
    /// Starts the process of the server `name`; inside a runtime.
    pub(crate) fn start(
        name: &str,
        config: &ProcessConfig,
        notices: &Notices,
    ) -> Result<(Self, Pipes), String> {
        let mut command = command(config).map_err(|Throw(message)| message)?;
        let program = command.as_std().get_program().to_owned();
        watcher::stand_by();
        let spawned = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn();
        let mut child = spawned.map_err(|error| {
            let why = match error.kind() {
                std::io::ErrorKind::NotFound => "it was not found".to_owned(),
                _ => error.to_string(),
            };
            format!("Cannot start \"{}\": {why}", program.display())
        })?;
        let leader = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let group = Group::of(leader.expect("a process that was not waited for has an id"));
        let pipes = Pipes {
            stdin: child.stdin.take().expect("stdin is piped"),
            stdout: child.stdout.take().expect("stdout is piped"),
        };
        let tail = Tail::default();
        let stderr = child.stderr.take().expect("stderr is piped");
        // Both tasks end with the process: one reaps it, the other reads its stderr to the end.
        tokio::spawn(read_stderr(
            name.to_owned(),
            stderr,
            Arc::clone(&tail),
            notices.clone(),
        ));
        let group = Mutex::new(Some(group));
        let process = Self {
            group,
            status: reaped(child),
            tail,
        };
        Ok((process, pipes))
    }

    /// How the process ended, if it has or is about to: `exited with code 1`.
    pub(crate) async fn exit(&self) -> Option<String> {
        let mut status = self.status.clone();
        let ended = tokio::time::timeout(EXIT_WAIT, status.wait_for(Option::is_some)).await;
        let status = (*ended.ok()?.ok()?)?;
        Some(match status.code() {
            Some(code) => format!("exited with code {code}"),
            None => format!(
                "was killed by {}",
                signal_name(status.signal().unwrap_or_default())
            ),
        })
    }

    /// A message, and behind it the last of what the process printed on stderr.
    pub(crate) fn with_stderr(&self, message: String) -> String {
        let tail = lock(&self.tail);
        if tail.is_empty() {
            return message;
        }
        let lines: Vec<&str> = tail.iter().map(String::as_str).collect();
        format!(
            "{message}\n\nLast lines of its stderr:\n{}",
            lines.join("\n")
        )
    }

    /// Brings the process to its end; its stdin is closed already. Takes about four seconds at most.
    pub(crate) async fn end(&self) {
        let Some(group) = lock(&self.group).take() else {
            return;
        };
        if !self.ends_within(STDIN_GRACE).await {
            group.signal(Signal::TERM);
            self.ends_within(TERM_GRACE).await;
        }
        // What a wrapper such as npx started may outlive it.
        if group.is_alive() {
            group.signal(Signal::TERM);
            if !group_ends(&group).await {
                group.signal(Signal::KILL);
                group_ends(&group).await;
            }
        }
        group.end();
    }

    async fn ends_within(&self, time: Duration) -> bool {
        let mut status = self.status.clone();
        tokio::time::timeout(time, status.wait_for(Option::is_some))
            .await
            .is_ok()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether what is left of a group ends in the time that it has.
async fn group_ends(group: &Group) -> bool {
    let ended = async {
        while group.is_alive() {
            tokio::time::sleep(POLL).await;
        }
    };
    tokio::time::timeout(LEFTOVER_GRACE, ended).await.is_ok()
}

fn command(config: &ProcessConfig) -> Result<Command, Throw> {
    let name = config.command.value("the server's command")?;
    // As with programs: a path is relative to the file, a name is looked for on the PATH.
    let program = if name.as_encoded_bytes().contains(&b'/') {
        config.home.join(&name).into_os_string()
    } else {
        name
    };
    let args: Vec<OsString> = config
        .args
        .iter()
        .map(|arg| arg.value("an argument of the server"))
        .collect::<Result<_, _>>()?;
    let mut command = Command::new(program);
    command
        .args(args)
        .env_clear()
        .envs(config.env.variables([])?);
    if let Some(cwd) = &config.cwd {
        let cwd = PathBuf::from(cwd.value("the server's cwd")?);
        if !cwd.is_dir() {
            return Err(Throw(format!(
                "Its working directory {} does not exist",
                cwd.display()
            )));
        }
        command.current_dir(cwd);
    }
    Ok(command)
}

/// Waits for the process, so that it is reaped whoever asks for it.
fn reaped(mut child: Child) -> watch::Receiver<Option<ExitStatus>> {
    let (sender, status) = watch::channel(None);
    tokio::spawn(async move {
        // An error means that somebody else reaped it; then nobody knows how it ended.
        sender.send_replace(child.wait().await.ok());
    });
    status
}

async fn read_stderr(server: String, stderr: ChildStderr, tail: Tail, notices: Notices) {
    let mut stderr = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut stderr)
            .take(LINE_BYTES)
            .read_until(b'\n', &mut line)
            .await
        {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        if text.is_empty() {
            continue;
        }
        let mut tail = lock(&tail);
        if tail.len() == TAIL_LINES {
            tail.pop_front();
        }
        tail.push_back(text.clone());
        drop(tail);
        notices.send(Notice::ServerLine {
            server: server.clone(),
            line: text,
        });
    }
}
