//! `pitool transcript system`: the prompt as it is now.

use pitool::transcript::{current_system_message, current_system_prompt};

use super::Source;
use crate::cli::{Exit, Global, print};
use crate::report::sanitize;

/// Print the current system message; nothing when the transcript has none
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    source: Source,

    /// Print the prompt as text: content and sections
    #[arg(long)]
    text: bool,
}

pub(super) fn run(args: &Args, global: &Global) -> anyhow::Result<Exit> {
    let messages = args.source.messages()?;
    if args.text {
        return print_text(&current_system_prompt(&messages));
    }
    match current_system_message(&messages) {
        Some(message) => print::document(&message, global, Exit::Ok),
        None => Ok(Exit::Ok),
    }
}

fn print_text(prompt: &str) -> anyhow::Result<Exit> {
    use std::io::IsTerminal as _;
    if prompt.is_empty() {
        return Ok(Exit::Ok);
    }
    let line = if std::io::stdout().is_terminal() {
        format!("{}\n", sanitize::lines(prompt))
    } else {
        format!("{prompt}\n")
    };
    print::text_of(&line, Exit::Ok)
}
