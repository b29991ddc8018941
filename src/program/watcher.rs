//! The watcher: a small process of its own that kills the groups of tools when pitool dies without a chance to.
//!
//! A SIGKILL of pitool leaves nobody to end its tools, and a signal on a parent's death reaches only direct children. So
//! before the first tool one more process starts, pitool again, which reads the names of live groups from a pipe; the end of
//! the pipe is the end of pitool. Each start is announced before it happens, so that a tool whose group was never named
//! is found as well. A library that is not [`enable`]d starts no watcher.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{PipeWriter, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::private_folder;

#[cfg(target_os = "linux")]
use super::environment::{CALL_ID, TOOL_NAME};

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
    let mut known = Known::default();
    let mut record = [0; RECORD];
    while stdin.read_exact(&mut record).is_ok() {
        known.follow(Record::read(record));
    }
    if known.live.is_empty() && known.announced.is_empty() {
        return;
    }
    for group in known.live {
        kill(group);
    }
    #[cfg(target_os = "linux")]
    kill_announced(known.announced);
    // What tools had open for writing went with them, but for the folders and files that pitool made for them.
    let mut left = std::env::args_os()
        .skip_while(|argument| argument != LEFT)
        .skip(1);
    if let (Some(mark), Some(temporary)) = (left.next(), left.next()) {
        private_folder::remove_left(&mark.to_string_lossy(), temporary.as_ref());
    }
}

/// Stands before what the watcher has to know of the temporary files of pitool: their mark, and their folder.
const LEFT: &str = "--left";

fn kill(group: i32) {
    if let Some(group) = Pid::from_raw(group) {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// How often and how long apart it is looked for a process that pitool may have started just before it died: until it has
/// become the tool's program, it does not have the environment that it is known by.
#[cfg(target_os = "linux")]
const LOOKS: u32 = 50;
#[cfg(target_os = "linux")]
const BETWEEN_LOOKS: std::time::Duration = std::time::Duration::from_millis(10);

/// Pitool died while it started these calls, and could not say their groups any more: they are known by their call. Like
/// this process they have a new parent now, the same one.
#[cfg(target_os = "linux")]
fn kill_announced(mut announced: Vec<u64>) {
    for _ in 0..LOOKS {
        if announced.is_empty() {
            return;
        }
        let parent = rustix::process::getppid().map_or(0, Pid::as_raw_pid);
        for process in super::procfs::processes() {
            if process.id != process.group || process.parent != parent {
                continue;
            }
            if let Some(call) = call_of(&process)
                && let Some(at) = announced.iter().position(|one| *one == call)
            {
                kill(process.group);
                announced.swap_remove(at);
            }
        }
        std::thread::sleep(BETWEEN_LOOKS);
    }
}

#[cfg(target_os = "linux")]
fn call_of(process: &super::procfs::Process) -> Option<u64> {
    let (id, name) = (process.variable(CALL_ID)?, process.variable(TOOL_NAME)?);
    Some(fingerprint(&id, &name))
}

/// What the watcher knows.
#[derive(Debug, Default)]
struct Known {
    live: BTreeSet<i32>,
    /// Calls whose process is about to start.
    announced: Vec<u64>,
}

/// One record on the pipe; so small that the pipe never splits one.
#[derive(Debug, Clone, Copy)]
struct Record {
    /// 0 for a start to come, -1 for one that failed, else the group, negative when it has ended.
    group: i32,
    call: u64,
}

const RECORD: usize = size_of::<i32>() + size_of::<u64>();
const TO_COME: i32 = 0;
const FAILED: i32 = -1;

impl Record {
    fn bytes(self) -> [u8; RECORD] {
        let mut bytes = [0; RECORD];
        let (group, call) = bytes.split_at_mut(size_of::<i32>());
        group.copy_from_slice(&self.group.to_ne_bytes());
        call.copy_from_slice(&self.call.to_ne_bytes());
        bytes
    }

    fn read(bytes: [u8; RECORD]) -> Self {
        let (group, call) = bytes.split_at(size_of::<i32>());
        Self {
            group: i32::from_ne_bytes(group.try_into().expect("the first four bytes")),
            call: u64::from_ne_bytes(call.try_into().expect("the other eight bytes")),
        }
    }
}

impl Known {
    fn follow(&mut self, record: Record) {
        match record.group {
            TO_COME => self.announced.push(record.call),
            FAILED => self.settle(record.call),
            group if group > 0 => {
                self.settle(record.call);
                self.live.insert(group);
            }
            group => {
                self.live.remove(&-group);
            }
        }
    }

    /// One start of the call is over; another one of the same call may still be to come.
    fn settle(&mut self, call: u64) {
        if let Some(at) = self.announced.iter().position(|one| *one == call) {
            self.announced.swap_remove(at);
        }
    }
}

/// A call by what its process has in its environment; the watcher is of the same build, so its hashes are the same.
fn fingerprint(tool_call_id: &[u8], tool_name: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (tool_call_id, tool_name).hash(&mut hasher);
    hasher.finish()
}

/// The start of a process that the watcher has heard of. Dropped, it has failed.
#[derive(Debug)]
pub(crate) struct Announced {
    call: u64,
    has_group: bool,
}

impl Announced {
    /// Says that a process of this call is about to start: from now on it does not outlive pitool. Starts the watcher if it
    /// does not run yet.
    pub(crate) fn new(tool_call_id: &OsStr, tool_name: &OsStr) -> Self {
        let call = fingerprint(tool_call_id.as_bytes(), tool_name.as_bytes());
        tell(Record {
            group: TO_COME,
            call,
        });
        Self {
            call,
            has_group: false,
        }
    }

    /// Names its group.
    pub(crate) fn started(mut self, leader: Pid) {
        self.has_group = true;
        tell(Record {
            group: leader.as_raw_pid(),
            call: self.call,
        });
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        if !self.has_group {
            tell(Record {
                group: FAILED,
                call: self.call,
            });
        }
    }
}

/// Starts the watcher if it does not run yet. Called before a tool starts, so that its group can be named at once.
pub(crate) fn stand_by() {
    let _ = pipe();
}

/// A group that is of no call: that of a server.
pub(crate) fn group_started(leader: Pid) {
    tell(Record {
        group: leader.as_raw_pid(),
        call: 0,
    });
}

pub(crate) fn group_ended(leader: Pid) {
    tell(Record {
        group: -leader.as_raw_pid(),
        call: 0,
    });
}

fn tell(record: Record) {
    let Some(pipe) = pipe() else {
        return;
    };
    // A watcher that is gone cannot be helped: its work was a safety net.
    if let Ok(mut pipe) = pipe.lock() {
        let _ = pipe.write_all(&record.bytes());
    }
}

fn pipe() -> Option<&'static Mutex<PipeWriter>> {
    PIPE.get_or_init(|| START.get().and_then(start)).as_ref()
}

fn start(start: &Start) -> Option<Mutex<PipeWriter>> {
    let (reader, writer) = std::io::pipe().ok()?;
    Command::new(&start.program)
        .args(&start.arguments)
        .arg(LEFT)
        .arg(private_folder::mark())
        .arg(std::path::absolute(std::env::temp_dir()).unwrap_or_default())
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

    #[track_caller]
    fn case(records: &[(i32, u64)], live: &[i32], announced: &[u64]) {
        let mut known = Known::default();
        for &(group, call) in records {
            known.follow(Record::read(Record { group, call }.bytes()));
        }
        assert_eq!(known.live.into_iter().collect::<Vec<_>>(), live);
        assert_eq!(known.announced, announced);
    }

    #[test]
    fn ended_groups_are_not_live() {
        case(&[(5, 0), (7, 0), (-5, 0), (9, 0), (-7, 0)], &[9], &[]);
    }

    #[test]
    fn starts_are_settled_one_by_one() {
        case(&[(TO_COME, 1), (TO_COME, 1), (5, 1)], &[5], &[1]);
        case(&[(TO_COME, 1), (TO_COME, 2), (FAILED, 1)], &[], &[2]);
        case(&[(TO_COME, 1), (5, 1), (-5, 0)], &[], &[]);
    }
}
