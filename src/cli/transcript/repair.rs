//! `pitool transcript repair`: the transcript as every provider accepts it.

use std::io::Write as _;

use pitool::format::{Format, repair};
use pitool::message::unix_millis;

use super::Source;
use crate::cli::{Exit, print};
use crate::report::sanitize;

/// Print it so that every provider accepts it
///
/// Missing results become errors that say so, results without a call go, results come directly behind their calls, ids
/// become unique.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    source: Source,

    /// Format of the transcript [default: recognised]
    #[arg(long, value_name = "FORMAT")]
    from: Option<Format>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let repaired = repair(args.source.read(args.from)?, unix_millis());
    let mut stderr = std::io::stderr().lock();
    for change in &repaired.changes {
        // Nobody is left to tell when stderr is gone.
        let _ = writeln!(stderr, "pitool: {}", sanitize::one_line(change));
    }
    print::lines(&repaired.values, Exit::Ok)
}
