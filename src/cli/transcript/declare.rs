//! `pitool transcript declare`: what to append so that the transcript declares exactly the tools folder.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use anyhow::Context as _;
use pitool::message::unix_millis;
use pitool::transcript::declare_tools;

use super::changes::declarations;
use super::{Source, read_messages};
use crate::cli::{Exit, Global, print};

/// Print what to append so that it declares the tools folder
///
/// Messages, one a line. Nothing is printed when nothing changed and nothing is pending.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    source: Source,

    /// Messages that are about to be sent; the last system message among them takes the changes
    #[arg(long, value_name = "FILE")]
    pending: Option<PathBuf>,
}

pub(super) fn run(args: &Args, global: &Global) -> anyhow::Result<Exit> {
    let messages = args.source.messages()?;
    let pending = match &args.pending {
        None => Vec::new(),
        Some(file) => {
            let name = || file.display().to_string();
            let reader = BufReader::new(File::open(file).with_context(name)?);
            read_messages(reader).with_context(name)?
        }
    };
    let Some(tools) = declarations(global)? else {
        return Ok(Exit::NotUnderstood);
    };
    let added = declare_tools(&messages, &tools, pending, unix_millis());
    print::lines(&added, Exit::Ok)
}
