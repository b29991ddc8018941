//! `pitool transcript lint`: whether calls and results fit.

use clap::ValueEnum;
use pitool::format::{Fault, Format, lint};
use serde_json::Value;

use super::Source;
use crate::cli::{Exit, print};
use crate::report::sanitize;

/// Find what a provider refuses, such as calls without a result
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 nothing found; 1 something found; 2 the transcript could not be read."
)]
pub(super) struct Args {
    #[command(flatten)]
    source: Source,

    /// Format of the transcript [default: recognised]
    #[arg(long, value_name = "FORMAT")]
    from: Option<Format>,

    /// How to report
    #[arg(long, value_name = "HOW", value_enum, default_value_t)]
    report: Report,
}

/// How faults are reported.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum Report {
    /// A line per fault, for people
    #[default]
    Text,
    /// A JSON object per fault
    Jsonl,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let faults = lint(&args.source.read(args.from)?);
    let exit = if faults.is_empty() {
        Exit::Ok
    } else {
        Exit::Errors
    };
    match args.report {
        Report::Text => {
            let text: Vec<String> = faults.iter().map(line).collect();
            print::text_of(&text.concat(), exit)
        }
        Report::Jsonl => {
            let values: Result<Vec<Value>, _> = faults.iter().map(serde_json::to_value).collect();
            print::lines(&values?, exit)
        }
    }
}

/// `line 7: call "x" of "echo" has no result [missing-result]`.
fn line(fault: &Fault) -> String {
    let text = format!("{}: {} [{}]", fault.place, fault.message, fault.rule);
    format!("{}\n", sanitize::one_line(&text))
}
