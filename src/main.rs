//! The `pitool` command: hands the arguments to the command line and returns its exit code.

mod report;

fn main() {}
