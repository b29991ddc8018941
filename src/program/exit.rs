//! How a process ended, in the words of the reference.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use rustix::process::Signal;

/// Why an exit is a failure, if it is one.
pub(crate) fn exit_failure(status: ExitStatus, ok_exit_codes: &[i32]) -> Option<String> {
    match status.code() {
        Some(code) if ok_exit_codes.contains(&code) => None,
        Some(code) => Some(format!("Command exited with code {code}")),
        None => Some(format!(
            "Command was killed by {}",
            signal_name(status.signal().unwrap_or_default())
        )),
    }
}

/// The name of a signal, such as `SIGKILL`.
pub(crate) fn signal_name(number: i32) -> String {
    const NAMES: [(Signal, &str); 20] = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::USR1, "SIGUSR1"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::USR2, "SIGUSR2"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"),
        (Signal::XCPU, "SIGXCPU"),
        (Signal::XFSZ, "SIGXFSZ"),
        (Signal::VTALARM, "SIGVTALRM"),
        (Signal::PROF, "SIGPROF"),
        (Signal::SYS, "SIGSYS"),
    ];
    NAMES
        .iter()
        .find(|(signal, _)| signal.as_raw() == number)
        .map_or_else(
            || format!("signal {number}"),
            |(_, name)| (*name).to_owned(),
        )
}
