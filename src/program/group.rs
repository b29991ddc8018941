//! The process group of one tool: signalled as a whole, and never left behind.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use super::watcher::{self, Announced};

/// The leaders of the live groups.
static LEADERS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

fn leaders() -> MutexGuard<'static, BTreeSet<i32>> {
    LEADERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether somebody waits for this process already.
#[cfg(target_os = "linux")]
pub(crate) fn is_leader(process: i32) -> bool {
    leaders().contains(&process)
}

/// A live process group. Dropped before it has ended, it is killed: that is the safety net of an abandoned call.
#[derive(Debug)]
pub(crate) struct Group {
    leader: Pid,
    has_ended: bool,
}

impl Group {
    /// The group of a process that was started as the leader of its own.
    pub(crate) fn of(leader: Pid) -> Self {
        watcher::group_started(leader);
        Self::known(leader)
    }

    /// The same of a process whose start was announced.
    pub(crate) fn announced(leader: Pid, announced: Announced) -> Self {
        announced.started(leader);
        Self::known(leader)
    }

    fn known(leader: Pid) -> Self {
        leaders().insert(leader.as_raw_pid());
        Self {
            leader,
            has_ended: false,
        }
    }

    /// Sends a signal to all processes of the group. A stopped one is continued, so that it can hear it.
    pub(crate) fn signal(&self, signal: Signal) {
        // An error means that nobody is left to hear it.
        if kill_process_group(self.leader, signal).is_ok() && signal != Signal::KILL {
            let _ = kill_process_group(self.leader, Signal::CONT);
        }
    }

    /// Whether a process of the group still runs; one that has ended and was not reaped does not count.
    pub(crate) fn is_alive(&self) -> bool {
        match test_kill_process_group(self.leader) {
            Err(Errno::SRCH) => false,
            Ok(()) | Err(_) => self.has_running_member(),
        }
    }

    #[cfg(target_os = "linux")]
    fn has_running_member(&self) -> bool {
        super::procfs::processes()
            .any(|process| process.group == self.leader.as_raw_pid() && !process.has_ended)
    }

    #[cfg(not(target_os = "linux"))]
    fn has_running_member(&self) -> bool {
        true
    }

    /// Says that no process of the group is left.
    pub(crate) fn end(mut self) {
        self.has_ended = true;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.has_ended {
            self.signal(Signal::KILL);
        }
        leaders().remove(&self.leader.as_raw_pid());
        watcher::group_ended(self.leader);
    }
}
