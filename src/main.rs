//! The `pitool` command: hands the arguments to the command line and returns its exit code.

#[expect(dead_code, reason = "the first command lands next and uses all of it")]
mod cli;
mod report;

fn main() -> std::process::ExitCode {
    cli::main(std::env::args_os()).into()
}
