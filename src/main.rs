//! The `pitool` command: hands the arguments to the command line and returns its exit code.

mod cli;
mod report;

use std::process::ExitCode;

use pitool::program::{apart, watcher};

fn main() -> ExitCode {
    let first = std::env::args_os().nth(1).unwrap_or_default();
    if first == watcher::ARGUMENT {
        watcher::watch();
        return ExitCode::SUCCESS;
    }
    if first == apart::ARGUMENT {
        apart::serve();
        return ExitCode::SUCCESS;
    }
    if let Ok(program) = std::env::current_exe() {
        watcher::enable(program.clone(), vec![watcher::ARGUMENT.into()]);
        apart::enable(program, vec![apart::ARGUMENT.into()]);
    }
    cli::main(std::env::args_os()).into()
}
