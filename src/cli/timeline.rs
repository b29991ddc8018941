//! `pitool timeline`: recorded events as a picture.

use std::io::{self, BufReader};

use pitool::json::Values;

use super::{Exit, print};
use crate::report::spans::Recording;
use crate::report::{sanitize, timeline};

/// Draw recorded events (run --events FILE) as an SVG picture
///
/// Reads event lines from stdin and prints the picture: a row per call with its preparation, waits, run and updates,
/// errors red, in light or dark as the reader has it.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: pitool run --events events.jsonl < message.json; pitool timeline < events.jsonl > timeline.svg"
)]
pub(crate) struct Args {}

/// Runs the command.
pub(crate) fn run() -> anyhow::Result<Exit> {
    let mut recording = Recording::default();
    let mut exit = Exit::Ok;
    super::await_typed();
    for item in Values::new(BufReader::new(io::stdin().lock())) {
        let refusal = match &item {
            Ok(located) if recording.event(&located.value) => continue,
            Ok(located) => format!("line {}: no event", located.line),
            Err(error) => error.to_string(),
        };
        super::complain(&format!("stdin: {}", sanitize::lines(&refusal)));
        exit = Exit::NotUnderstood;
    }
    let (spans, until) = recording.finish();
    print::text_of(&timeline::svg(&spans, until), exit)
}
