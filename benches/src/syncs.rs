//! How often a process asks the disk to keep what was written: its calls of `fdatasync` and `fsync` are counted.
//!
//! The process is traced, and a filter stops it at these calls alone, so that counting hardly changes its pace.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::ptr::null_mut;

use anyhow::Context as _;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

/// Runs pitool with this input to its end and counts the syncs of all its threads.
pub(crate) fn count(pitool: &Path, arguments: &[&str], stdin: &Path) -> anyhow::Result<usize> {
    let filter = filter()?;
    let mut command = Command::new(pitool);
    command
        .args(arguments)
        .stdin(File::open(stdin)?)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    #[expect(
        unsafe_code,
        reason = "a process can only be traced from its own first steps on"
    )]
    // SAFETY: between fork and exec only system calls are made; the filter was built before.
    unsafe {
        command.pre_exec(move || {
            if libc::ptrace(libc::PTRACE_TRACEME, 0, null_mut::<u8>(), null_mut::<u8>()) == -1 {
                return Err(io::Error::last_os_error());
            }
            seccompiler::apply_filter(&filter).map_err(|_| io::ErrorKind::Unsupported.into())
        });
    }
    let child = command.spawn().context("cannot trace pitool")?;
    follow(child.id().cast_signed())
}

fn filter() -> anyhow::Result<BpfProgram> {
    let counted = [libc::SYS_fdatasync, libc::SYS_fsync];
    let rules: BTreeMap<_, _> = counted.map(|call| (call, Vec::new())).into();
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Trace(0),
        std::env::consts::ARCH.try_into()?,
    )?;
    Ok(filter.try_into()?)
}

#[expect(unsafe_code, reason = "ptrace has no safe form")]
fn follow(leader: libc::pid_t) -> anyhow::Result<usize> {
    let options = libc::PTRACE_O_TRACESECCOMP
        | libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_EXITKILL;
    let mut syncs = 0;
    let mut is_set_up = false;
    loop {
        let mut status = 0;
        // SAFETY: the status lives through the call; every stop of a traced thread is answered by one continuation.
        let stopped = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL) };
        if stopped == -1 {
            return Ok(syncs);
        }
        if !libc::WIFSTOPPED(status) {
            let is_over = stopped == leader;
            if is_over {
                let code = libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
                anyhow::ensure!(code == Some(0), "pitool ended with status {status}");
            }
            continue;
        }
        if stopped == leader && !is_set_up {
            is_set_up = true;
            // SAFETY: as above.
            unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, leader, null_mut::<u8>(), options) };
        }
        let is_counted = status >> 8 == libc::SIGTRAP | (libc::PTRACE_EVENT_SECCOMP << 8);
        syncs += usize::from(is_counted);
        let signal = match libc::WSTOPSIG(status) {
            libc::SIGTRAP | libc::SIGSTOP => 0,
            signal => signal,
        };
        // SAFETY: as above.
        unsafe { libc::ptrace(libc::PTRACE_CONT, stopped, null_mut::<u8>(), signal) };
    }
}
