//! `pitool transcript`: what a list of messages declares, and whether its calls and results fit.

mod changes;
mod declare;
mod lint;
mod repair;
mod resolve;
mod system;
mod tools;

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;

use anyhow::Context as _;
use pitool::format::{Conversation, Format};
use serde_json::Value;

use super::{Exit, Global};

/// Look at a transcript: an array, JSON lines or a session file
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Tools(tools::Args),
    Resolve(resolve::Args),
    Changes(changes::Args),
    Declare(declare::Args),
    System(system::Args),
    Lint(lint::Args),
    Repair(repair::Args),
}

/// Runs the command.
pub(crate) fn run(args: &Args, global: &Global) -> anyhow::Result<Exit> {
    match &args.command {
        Command::Tools(args) => tools::run(args, global),
        Command::Resolve(args) => resolve::run(args, global),
        Command::Changes(args) => changes::run(args, global),
        Command::Declare(args) => declare::run(args, global),
        Command::System(args) => system::run(args, global),
        Command::Lint(args) => lint::run(args),
        Command::Repair(args) => repair::run(args),
    }
}

/// Where a transcript is read from.
#[derive(Debug, clap::Args)]
struct Source {
    /// The transcript [default: stdin]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

impl Source {
    /// Reads the transcript to its end.
    fn read(&self, from: Option<Format>) -> anyhow::Result<Conversation> {
        Ok(match &self.file {
            None => {
                super::await_typed();
                Conversation::read(io::stdin().lock(), from).context("stdin")?
            }
            Some(file) => {
                let name = || file.display().to_string();
                let reader = BufReader::new(File::open(file).with_context(name)?);
                Conversation::read(reader, from).with_context(name)?
            }
        })
    }

    /// The messages of a transcript in pi form.
    fn messages(&self) -> anyhow::Result<Vec<Value>> {
        let conversation = self.read(Some(Format::Pi))?;
        Ok(conversation.messages().cloned().collect())
    }
}

/// Reads messages that are no transcript yet.
fn read_messages(reader: impl BufRead) -> anyhow::Result<Vec<Value>> {
    let conversation = Conversation::read(reader, Some(Format::Pi))?;
    Ok(conversation.messages().cloned().collect())
}
