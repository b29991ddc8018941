//! The watcher: a small process of its own that kills the groups of tools when pitool dies without a chance to.
//!
//! A SIGKILL of pitool leaves nobody to end its tools, and a signal on a parent's death reaches only direct children. So
//! with the first tool one more process starts, pitool again, which reads the names of live groups from a pipe; the end of
//! the pipe is the end of pitool. A library that is not [`enable`]d starts no watcher.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{PipeWriter, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock};

use rustix::process::{Pid, Signal, kill_process_group};

/// How the watcher is started.
#[derive(Debug)]
struct Start {
    program: PathBuf,
    arguments: Vec<OsString>,
}

static START: OnceLock<Start> = OnceLock::new();
static PIPE: OnceLock<Option<Mutex<PipeWriter>>> = OnceLock::new();

/// Makes this process answer for all that its tools start.
///
/// The first tool starts `program` with `arguments`, which must come to [`watch`]. On Linux this process adopts what its
/// tools leave behind, and a tool that reads the terminal gets an error instead of being stopped by the system for ever.
/// All this concerns the process as a whole, so it is for a program to call at its start, not for a library.
pub fn enable(program: PathBuf, arguments: Vec<OsString>) {
    let _ = START.set(Start { program, arguments });
    #[cfg(target_os = "linux")]
    {
        super::orphan::adopt();
        refuse_terminal();
    }
}

/// Lets reads of the terminal by background processes fail. Tools are such processes, as each is in a group of its own, and
/// they inherit what is ignored here.
#[cfg(target_os = "linux")]
#[expect(
    unsafe_code,
    reason = "there is no safe way to ignore a signal; the alternative, code between fork and exec of each tool, \
              is slower and no safer"
)]
fn refuse_terminal() {
    for signal in [libc::SIGTTIN, libc::SIGTTOU] {
        // SAFETY: ignoring a signal installs no handler, so no code of ours ever runs for it.
        unsafe {
            libc::signal(signal, libc::SIG_IGN);
        }
    }
}

/// The argument with which the command is its own watcher.
pub const ARGUMENT: &str = "--watch-tools";

/// The life of the watcher: follows the live groups on stdin and kills those that are left at its end.
pub fn watch() {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::set_name(c"pitool-watcher");
    let mut stdin = std::io::stdin().lock();
    let mut live = BTreeSet::new();
    let mut record = [0; RECORD];
    while stdin.read_exact(&mut record).is_ok() {
        follow(&mut live, record);
    }
    for group in live {
        if let Some(group) = Pid::from_raw(group) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// A record: the group, negative when it has ended. So small that the pipe never splits one.
const RECORD: usize = size_of::<i32>();

fn follow(live: &mut BTreeSet<i32>, record: [u8; RECORD]) {
    let group = i32::from_ne_bytes(record);
    if group > 0 {
        live.insert(group);
    } else {
        live.remove(&-group);
    }
}

/// Starts the watcher if it does not run yet. Called before a tool starts, so that its group can be named at once.
pub(crate) fn stand_by() {
    let _ = pipe();
}

pub(crate) fn group_started(leader: Pid) {
    tell(leader.as_raw_pid());
}

pub(crate) fn group_ended(leader: Pid) {
    tell(-leader.as_raw_pid());
}

fn tell(record: i32) {
    let Some(pipe) = pipe() else {
        return;
    };
    // A watcher that is gone cannot be helped: its work was a safety net.
    if let Ok(mut pipe) = pipe.lock() {
        let _ = pipe.write_all(&record.to_ne_bytes());
    }
}

fn pipe() -> Option<&'static Mutex<PipeWriter>> {
    PIPE.get_or_init(|| START.get().and_then(start)).as_ref()
}

fn start(start: &Start) -> Option<Mutex<PipeWriter>> {
    let (reader, writer) = std::io::pipe().ok()?;
    Command::new(&start.program)
        .args(&start.arguments)
        // If pitool runs inside a tool, its environment says of which call; the watcher is of none.
        .env_clear()
        .stdin(reader)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .current_dir("/")
        // Ctrl-C and the death of pitool's group must not reach it.
        .process_group(0)
        .spawn()
        .ok()?;
    Some(Mutex::new(writer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ended_groups_are_not_live() {
        let mut live = BTreeSet::new();
        for record in [5, 7, -5, 9, -7] {
            follow(&mut live, i32::to_ne_bytes(record));
        }
        assert_eq!(live, BTreeSet::from([9]));
    }
}
