//! `pitool transcript tools`: the tools that are declared at the end.

use pitool::transcript::current_tools;

use super::Source;
use crate::cli::{Exit, Global, print};

/// Print the tools that the transcript declares now
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    source: Source,
}

pub(super) fn run(args: &Args, global: &Global) -> anyhow::Result<Exit> {
    let tools = current_tools(&args.source.messages()?);
    print::document(&tools, global, Exit::Ok)
}
