//! Processes that left their tool's group: named, and stopped.
//!
//! They are found because pitool adopts what its tools leave behind ([`super::watcher::enable`]), and recognised by the
//! environment that they were started with. One that cleared it is not recognised; nothing is done about a process that
//! might be somebody else's.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::{
    Pid, Signal, WaitOptions, getpid, kill_process, kill_process_group, set_child_subreaper,
    waitpid,
};

use super::Invocation;
use super::environment::{CALL_ID, TOOL_NAME};
use super::group;
use super::procfs::Process;
use super::watcher;

/// Whether orphans come to this process.
static ADOPTS: AtomicBool = AtomicBool::new(false);

/// How long an orphan has between SIGTERM and SIGKILL, and how often it is looked at in that time.
const GRACE_POLLS: u32 = 20;
const POLL: Duration = Duration::from_millis(10);

/// How often what a stopped orphan leaves behind is looked for in turn.
const GENERATIONS: usize = 8;

/// Makes this process the parent of what its tools leave behind.
pub(crate) fn adopt() {
    if set_child_subreaper(Some(getpid())).is_ok() {
        ADOPTS.store(true, Ordering::Relaxed);
    }
}

/// Stops what a call left behind outside its group: the names of these processes.
pub(crate) async fn stop(invocation: &Invocation<'_>) -> Vec<String> {
    let mut names = Vec::new();
    if !ADOPTS.load(Ordering::Relaxed) {
        return names;
    }
    for _ in 0..GENERATIONS {
        let orphans = of_call(invocation);
        if orphans.is_empty() {
            return names;
        }
        names.extend(orphans.iter().map(|orphan| orphan.name.clone()));
        for orphan in &orphans {
            invocation.warn(&format!(
                "a process that left its group was stopped: {} ({})",
                orphan.name, orphan.id
            ));
            signal(orphan, Signal::TERM);
        }
        for _ in 0..GRACE_POLLS {
            if !orphans.iter().any(still_runs) {
                break;
            }
            tokio::time::sleep(POLL).await;
        }
        for orphan in orphans.iter().filter(|orphan| still_runs(orphan)) {
            signal(orphan, Signal::KILL);
        }
    }
    names
}

/// The orphans of one call. Reaps on the way those of any call that have ended.
fn of_call(invocation: &Invocation<'_>) -> Vec<Process> {
    let strangers =
        children().filter(|&child| !group::is_leader(child) && !watcher::is_watcher(child));
    let mut orphans = Vec::new();
    for process in strangers.filter_map(Process::find) {
        if process.has_ended {
            reap(&process);
        } else if is_of(&process, invocation) {
            orphans.push(process);
        }
    }
    orphans
}

/// The children of the thread that starts processes and adopts orphans.
fn children() -> impl Iterator<Item = i32> {
    let id = getpid().as_raw_pid();
    let children = std::fs::read_to_string(format!("/proc/self/task/{id}/children"));
    let children: Vec<i32> = children
        .unwrap_or_default()
        .split_ascii_whitespace()
        .filter_map(|child| child.parse().ok())
        .collect();
    children.into_iter()
}

fn is_of(process: &Process, invocation: &Invocation<'_>) -> bool {
    let is = |name, value: &str| {
        process
            .variable(name)
            .is_some_and(|set| set == value.as_bytes())
    };
    is(CALL_ID, invocation.tool_call_id) && is(TOOL_NAME, invocation.tool_name)
}

fn still_runs(orphan: &Process) -> bool {
    Process::find(orphan.id).is_some_and(|process| !process.has_ended)
}

fn signal(orphan: &Process, signal: Signal) {
    let Some(id) = Pid::from_raw(orphan.id) else {
        return;
    };
    // An error means that it has ended meanwhile.
    let _ = if orphan.group == orphan.id {
        kill_process_group(id, signal)
    } else {
        kill_process(id, signal)
    };
}

/// Children that others in this process started are in our session, and in our group or the first of their own;
/// they are left to those who wait for them.
fn reap(process: &Process) {
    // Asked of `/proc` as well: in a namespace of its own the system calls answer 0 for a session begun outside.
    let Some(own) = Process::find(getpid().as_raw_pid()) else {
        return;
    };
    let is_adopted = process.session != own.session
        || (process.group != process.id && process.group != own.group);
    if is_adopted {
        let _ = waitpid(Pid::from_raw(process.id), WaitOptions::NOHANG);
    }
}
