//! The `pitool` command: hands the arguments to the command line and returns its exit code.

mod cli;
mod report;

use std::process::ExitCode;

use pitool::program::watcher;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    if arguments
        .nth(1)
        .is_some_and(|first| first == watcher::ARGUMENT)
    {
        watcher::watch();
        return ExitCode::SUCCESS;
    }
    if let Ok(program) = std::env::current_exe() {
        watcher::enable(program, vec![watcher::ARGUMENT.into()]);
    }
    cli::main(std::env::args_os()).into()
}
