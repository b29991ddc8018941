//! The watcher: a small process of its own that kills the groups of tools when pitool dies without a chance to.
//!
//! A SIGKILL of pitool leaves nobody to end its tools, and a signal on a parent's death reaches only direct children. So
//! before the first tool one more process starts, pitool again, which waits for the end of a pipe: that is the end of
//! pitool. What lives then stands in a file without a name that both have open (`register`), so that
//! nobody is woken while all is well. Each start is announced before it happens, so that a tool whose group was never
//! named is found as well. A library that is not [`enable`]d starts no watcher.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, PipeWriter};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::private_folder;

#[cfg(target_os = "linux")]
use super::environment::{CALL_ID, TOOL_NAME};
use super::register::{self, Entry, Register, Slot};

/// How the watcher is started.
#[derive(Debug)]
struct Start {
    program: PathBuf,
    arguments: Vec<OsString>,
}

static START: OnceLock<Start> = OnceLock::new();
static WATCHED: OnceLock<Option<Watched>> = OnceLock::new();

/// What the watcher watches.
#[derive(Debug)]
struct Watched {
    /// Its end is what the watcher waits for.
    _life: PipeWriter,
    watcher: i32,
    register: Mutex<Registered>,
}

#[derive(Debug)]
struct Registered {
    register: Register,
    /// Where the groups that live stand, by their leaders.
    groups: HashMap<i32, Slot>,
}

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

/// The life of the watcher: waits for the end of stdin and kills what then stands in the register, its stdout.
pub fn watch() {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::set_name(c"pitool-watcher");
    let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
    let register = io::stdout().as_fd().try_clone_to_owned().map(File::from);
    let left = register.and_then(|file| register::read(&file));
    let left = left.unwrap_or_default();
    if left.is_empty() {
        return;
    }
    let mut announced = Vec::new();
    for entry in left {
        match entry {
            Entry::Live { group } => kill(group),
            Entry::Announced { call } => announced.push(call),
        }
    }
    #[cfg(target_os = "linux")]
    kill_announced(announced);
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

/// A call by what its process has in its environment; the watcher is of the same build, so its hashes are the same.
fn fingerprint(tool_call_id: &[u8], tool_name: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (tool_call_id, tool_name).hash(&mut hasher);
    hasher.finish()
}

/// The start of a process that stands in the register. Dropped, it has failed.
#[derive(Debug)]
pub(crate) struct Announced(Option<Slot>);

impl Announced {
    /// Says that a process of this call is about to start: from now on it does not outlive pitool. Starts the watcher if it
    /// does not run yet.
    pub(crate) fn new(tool_call_id: &OsStr, tool_name: &OsStr) -> Self {
        let call = fingerprint(tool_call_id.as_bytes(), tool_name.as_bytes());
        Self(tell(|registered| {
            registered.register.enter(Entry::Announced { call })
        }))
    }

    /// Names its group.
    pub(crate) fn started(mut self, leader: Pid) {
        if let Some(slot) = self.0.take() {
            tell(|registered| registered.live(slot, leader));
        }
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        if let Some(slot) = self.0.take() {
            tell(|registered| registered.register.leave(slot));
        }
    }
}

impl Registered {
    fn live(&mut self, slot: Slot, leader: Pid) {
        let group = leader.as_raw_pid();
        self.register.change(slot, Entry::Live { group });
        self.groups.insert(group, slot);
    }
}

/// Starts the watcher if it does not run yet. Called before a tool starts, so that its group can be named at once.
pub(crate) fn stand_by() {
    let _ = watched();
}

/// A group that is of no call: that of a server.
pub(crate) fn group_started(leader: Pid) {
    tell(|registered| {
        let group = leader.as_raw_pid();
        let slot = registered.register.enter(Entry::Live { group });
        registered.groups.insert(group, slot);
    });
}

pub(crate) fn group_ended(leader: Pid) {
    tell(|registered| {
        if let Some(slot) = registered.groups.remove(&leader.as_raw_pid()) {
            registered.register.leave(slot);
        }
    });
}

/// Whether a process is the watcher.
#[cfg(target_os = "linux")]
pub(super) fn is_watcher(process: i32) -> bool {
    let watched = WATCHED.get().and_then(Option::as_ref);
    watched.is_some_and(|watched| watched.watcher == process)
}

fn tell<T>(what: impl FnOnce(&mut Registered) -> T) -> Option<T> {
    let mut registered = watched()?.register.lock().ok()?;
    Some(what(&mut registered))
}

fn watched() -> Option<&'static Watched> {
    WATCHED
        .get_or_init(|| START.get().and_then(|start| self::start(start).ok()))
        .as_ref()
}

fn start(start: &Start) -> io::Result<Watched> {
    let (reader, life) = io::pipe()?;
    let register = Register::new()?;
    let watcher = Command::new(&start.program)
        .args(&start.arguments)
        .arg(LEFT)
        .arg(private_folder::mark())
        .arg(std::path::absolute(std::env::temp_dir()).unwrap_or_default())
        // If pitool runs inside a tool, its environment says of which call; the watcher is of none.
        .env_clear()
        .stdin(reader)
        .stdout(register.file()?)
        .stderr(Stdio::null())
        .current_dir("/")
        // Ctrl-C and the death of pitool's group must not reach it.
        .process_group(0)
        .spawn()?;
    Ok(Watched {
        _life: life,
        watcher: watcher.id().cast_signed(),
        register: Mutex::new(Registered {
            register,
            groups: HashMap::new(),
        }),
    })
}
