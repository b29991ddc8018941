//! `pitool test`: recorded cases of tools, run again and compared.
//!
//! [`suite`] finds the cases, [`run`] runs one in a folder of its own, [`outcome`] says what it came to, and [`report`]
//! tells of it. What cases are and how they are compared is the library's business, see [`pitool::cases`].

mod junit;
mod outcome;
mod report;
mod run;
mod suite;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::ValueEnum;
use futures_util::StreamExt as _;
use pitool::cases::{self, Recording};

use self::outcome::{Outcome, Status};
use self::report::Reporter;
use self::run::Runs;
use self::suite::{Item, Suite, Task};
use super::signals::Signals;
use super::{Exit, Global, duration};

/// Run recorded cases and compare
///
/// A case is a JSON file in the folder `cases` of a tools folder: a call or a message, what stands in its folder, and the
/// results that are expected. Each runs by itself in a fresh folder, as `pitool run --strict-output` would run it, with
/// LC_ALL=C.UTF-8 and TZ=UTC. What `pitool declare` prints is compared with cases/declare.json, so that no model is told
/// of something else unnoticed.
#[derive(Debug, clap::Args)]
#[command(after_long_help = AFTER_LONG_HELP)]
pub(crate) struct Args {
    /// Files, folders or parts of names of cases [default: all]
    #[arg(value_name = "FILE")]
    wanted: Vec<String>,

    /// Record what comes out now
    ///
    /// Expectations that still hold stay as they are written.
    #[arg(long)]
    update: bool,

    /// How many cases run at once [default: one per core]
    #[arg(long, short, value_name = "N")]
    jobs: Option<NonZeroUsize>,

    /// Time limit of a case, such as 1500ms, 30s, 2m
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "60s")]
    timeout: Duration,

    /// What to print
    #[arg(long, value_name = "HOW", value_enum, default_value_t)]
    report: Report,

    /// List the cases and run none
    #[arg(long, conflicts_with_all = ["update", "report"])]
    list: bool,
}

/// The exit codes stand on one line: clap wraps it.
const AFTER_LONG_HELP: &str = r#"A case, tools.d/cases/notes.json:
  {
    "call": {"name": "read_file", "arguments": {"path": "notes.txt"}},
    "files": {"notes.txt": "one\n"},
    "results": [{"$includes": {"content": [{"text": "one"}], "isError": false}}]
  }

Without "results" it is not recorded yet; --update records. Patterns in what is expected:
  {"$includes": …}   at least these members of an object, these elements, this part of a text
  {"$matches": "…"}  a text in which the regular expression is found
  {"$valid": …}      what the JSON Schema accepts
  {"$is": …}         exactly this
All fields: pitool schema --cases

Exit codes: 0 all as recorded (or recorded anew); 1 something else came out; 2 the command line, a manifest or a case could not be understood, or there are no cases."#;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Report {
    /// A line per case, what differs, and a summary
    #[default]
    Text,
    /// One JSON line per case
    Jsonl,
    /// JUnit's XML, as CI services read it
    Junit,
}

/// Runs the command.
pub(crate) fn run(args: &Args, global: &Global) -> anyhow::Result<Exit> {
    let suite = Suite::find(&args.wanted, global)?;
    if suite.items.is_empty() {
        // What could not be understood was told.
        return Ok(Exit::NotUnderstood);
    }
    if args.list {
        return suite.list();
    }
    let runtime = super::runtime()?;
    let exit = runtime.block_on(run_all(args, global, &suite));
    runtime.shutdown_background();
    exit
}

async fn run_all(args: &Args, global: &Global, suite: &Suite) -> anyhow::Result<Exit> {
    let signals = Signals::listen().context("cannot listen for signals")?;
    let start = Instant::now();
    let mut reporter = Reporter::new(args.report, global.color, suite, args.to_update(global));
    let runs = Runs::new(args.timeout)?;
    let jobs = args.jobs.map_or_else(cores, NonZeroUsize::get);
    let mut outcomes = futures_util::stream::iter(&suite.items)
        .map(|item| judge(&runs, item))
        .buffered(jobs);
    let mut judged = Vec::new();
    let stop = signals.stop();
    loop {
        let next = tokio::select! {
            biased;
            // What still runs is ended with its future.
            () = stop.stopped() => return Ok(Exit::Signal(signals.received().unwrap_or(2))),
            next = outcomes.next() => next,
        };
        let Some(mut outcome) = next else { break };
        if args.update {
            outcome.will_be_recorded();
        }
        if let Err(error) = reporter.outcome(&outcome) {
            return closed(error);
        }
        judged.push(outcome);
    }
    if args.update {
        record(&judged)?;
    }
    if let Err(error) = reporter.finish(&judged, start.elapsed()) {
        return closed(error);
    }
    Ok(exit(suite, &judged))
}

impl Args {
    /// The command that records what comes out of the same cases.
    fn to_update(&self, global: &Global) -> String {
        let wanted = self.wanted.iter();
        let wanted: String = wanted
            .map(|words| format!(" {}", super::quoted(Path::new(words))))
            .collect();
        format!(
            "pitool test{} --update{wanted}",
            super::tools_option(global)
        )
    }
}

/// Nobody reads on, or stdout cannot be written.
fn closed(error: std::io::Error) -> anyhow::Result<Exit> {
    if error.kind() == std::io::ErrorKind::BrokenPipe {
        return Ok(Exit::ClosedPipe);
    }
    Err(error).context("cannot write to stdout")
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

async fn judge<'s>(runs: &Runs, item: &'s Item) -> Outcome<'s> {
    match &item.task {
        Task::Surface(surface, declared) => Outcome::of_surface(item, surface, declared),
        Task::Case(case) => {
            let start = Instant::now();
            let observed = runs.run(case, &item.tools).await;
            Outcome::of_case(item, case, observed, start.elapsed())
        }
    }
}

/// Writes each file with something new in it once.
fn record(judged: &[Outcome<'_>]) -> anyhow::Result<()> {
    let mut files: BTreeMap<&Path, Vec<Recording<'_>>> = BTreeMap::new();
    for outcome in judged.iter().filter(|outcome| outcome.is_news()) {
        match (&outcome.item.task, &outcome.updated) {
            (Task::Surface(surface, declared), _) => surface
                .write(declared)
                .with_context(|| format!("cannot write {}", surface.file.display()))?,
            (Task::Case(case), Some(updated)) => {
                let recordings = files.entry(&case.source.file).or_default();
                recordings.push(Recording { case, updated });
            }
            (Task::Case(_), None) => {}
        }
    }
    for (file, recordings) in files {
        cases::write(file, &recordings)
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

fn exit(suite: &Suite, judged: &[Outcome<'_>]) -> Exit {
    let is = |status| judged.iter().any(|outcome| outcome.status == status);
    if suite.has_problems || is(Status::Broken) {
        Exit::NotUnderstood
    } else if is(Status::Failed) || is(Status::Unrecorded) {
        Exit::Errors
    } else {
        Exit::Ok
    }
}

/// A folder of cases belongs to the tools folder it stands in.
const CASES: &str = "cases";

/// The folder of cases of a tools folder.
fn cases_of(tools: &Path) -> PathBuf {
    tools.join(CASES)
}
