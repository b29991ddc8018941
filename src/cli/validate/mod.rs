//! `pitool validate`: judges arguments and runs nothing but `prepareArguments`.
//!
//! [`pipeline`] brings the input through all cores, [`read`] finds the values in it, [`judge`] judges one, [`print`]
//! prints the judgement, and [`work`] ties them together.

mod judge;
mod pipeline;
mod prepare;
mod print;
mod read;
mod summary;
mod work;

use std::io::{self, ErrorKind, IsTerminal};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use anyhow::Context as _;
use pitool::format::{Format, InputOptions, Keep, Rerun};
use pitool::json;
use pitool::pattern::Pattern;
use pitool::registry::Registry;
use pitool::schema::{Coercion, Lossy, Schema};

use self::judge::{Rules, Subject};
use self::print::{Detail, Printer, Report, Stream};
use self::work::{Ending, OnFailure, Question, Validation};
use super::connect::Connect;
use super::options::Coerce;
use super::{Exit, Global, Hinted, load};
use crate::report;
use crate::report::style::{Styles, When};

/// Judge arguments without running a tool
///
/// Reads messages from stdin and judges each call by the schema of its own tool, as `run` would before it runs it:
/// prepareArguments, coercion, validation. With --tool the input is argument values of that tool, with --schema values
/// of any kind. Any number of inputs stream through in order, one JSON value after another.
#[derive(Debug, clap::Args)]
#[command(
    after_long_help = "Exit codes: 0 all valid; 1 some input is invalid; 2 the command line, a manifest or an input could \
                  not be understood; 141 when stdout was closed early."
)]
pub(crate) struct Args {
    /// Read argument values of this tool
    #[arg(long, value_name = "NAME", conflicts_with = "schema")]
    tool: Option<String>,

    /// Read values of any kind, judge them by this JSON Schema
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,

    /// What to print of each input
    #[arg(long, value_name = "HOW", value_enum, default_value_t)]
    report: Report,

    /// Name the input in each line of --report jsonl and in the summary, so that many inputs can be told apart
    #[arg(hide_short_help = true, long, value_name = "NAME")]
    source: Option<String>,

    /// When the whole input is judged, write to this file how many inputs were valid, invalid and unreadable
    #[arg(hide_short_help = true, long, value_name = "FILE", conflicts_with_all = ["compare", "fail_fast"])]
    summary: Option<PathBuf>,

    /// Show what coercion changed, where, and by which rule
    #[arg(long)]
    explain: bool,

    /// Judge with coercion off, standard and extended side by side
    #[arg(long, conflicts_with_all = ["explain", "coerce"])]
    compare: bool,

    /// How arguments are coerced, whatever the manifests say
    #[arg(hide_short_help = true, long, value_name = "HOW", value_enum)]
    coerce: Option<Coerce>,

    /// Refuse arguments that coercion would make less of, such as 3.7 for an integer
    #[arg(hide_short_help = true, long)]
    deny_lossy: bool,

    /// Stop at the first input that is invalid or cannot be understood
    #[arg(hide_short_help = true, long)]
    fail_fast: bool,

    /// Know only tools of such names; repeatable, `*` matches anything
    #[arg(long, value_name = "PATTERN", conflicts_with = "schema")]
    only: Vec<Pattern>,

    /// Format of the messages [default: recognised]
    #[arg(long, value_name = "FORMAT", conflicts_with_all = ["tool", "schema"])]
    from: Option<Format>,

    /// In arrays and session files judge calls that have a result too
    #[arg(hide_short_help = true, long, conflicts_with_all = ["tool", "schema"])]
    rerun: bool,

    #[command(flatten)]
    connect: Connect,
}

/// Runs the command.
pub(crate) fn run(args: &Args, global: &Global) -> anyhow::Result<Exit> {
    let ending = Arc::<Mutex<Ending>>::default();
    let validation = Validation {
        subject: args.subject(global)?,
        rules: Rules {
            coerce: args.coerce.map(Coercion::from),
            lossy: if args.deny_lossy {
                Lossy::Deny
            } else {
                Lossy::Allow
            },
        },
        reading: args.reading(),
        question: if args.compare {
            Question::Compare
        } else {
            Question::Verdict
        },
        printer: args.printer(global.color),
        on_failure: if args.fail_fast {
            OnFailure::End
        } else {
            OnFailure::GoOn
        },
        ending: Arc::clone(&ending),
    };
    super::await_typed();
    let read = pipeline::run(io::stdin(), validation);
    let ending = std::mem::take(&mut *ending.lock().expect("no holder of the lock panics"));
    match ending.stdout {
        Some(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(Exit::ClosedPipe),
        Some(error) => return Err(error).context("cannot write to stdout"),
        None => {}
    }
    read.context("cannot read stdin")?;
    if let Some(path) = &args.summary {
        summary::write(path, ending.tally, args.source.as_deref())
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(if ending.tally.unreadable > 0 {
        Exit::NotUnderstood
    } else if ending.tally.invalid > 0 {
        Exit::Errors
    } else {
        Exit::Ok
    })
}

impl Args {
    fn subject(&self, global: &Global) -> anyhow::Result<Subject> {
        if let Some(file) = &self.schema {
            return Ok(Subject::Schema(Box::new(read_schema(file)?)));
        }
        let mut registry = load::usable(global)?;
        if !self.only.is_empty() {
            registry.retain(&self.only);
        }
        // What cannot be looked at is not there: its calls are judged as those of unknown tools.
        self.connect.look_and_tell(&mut registry, global)?;
        match &self.tool {
            None => Ok(Subject::Messages(load::for_good(registry))),
            Some(name) => match registry.get(name) {
                Some(tool) => Ok(Subject::Tool(Arc::clone(tool))),
                None => Err(no_such_tool(name, &registry)),
            },
        }
    }

    fn reading(&self) -> InputOptions {
        InputOptions {
            from: self.from,
            rerun: if self.rerun {
                Rerun::All
            } else {
                Rerun::Unanswered
            },
            keep: Keep::Calls,
        }
    }

    fn printer(&self, color: When) -> Printer {
        Printer {
            report: self.report,
            detail: if self.explain {
                Detail::Explain
            } else {
                Detail::Verdict
            },
            source: self.source.clone(),
            stdout: stream(&io::stdout(), color),
            stderr: stream(&io::stderr(), color),
        }
    }
}

fn stream(stream: &(impl AsFd + IsTerminal), color: When) -> Stream {
    let is_terminal = stream.is_terminal();
    Stream {
        styles: Styles::of_stream(color, is_terminal),
        columns: report::columns(stream),
        is_terminal,
    }
}

fn read_schema(file: &Path) -> anyhow::Result<Schema> {
    let text = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let schema =
        json::parse(&text).with_context(|| format!("{} is not valid JSON", file.display()))?;
    Schema::compile(&schema).with_context(|| format!("{} is no usable schema", file.display()))
}

/// The error of a tool that was named and is not there.
pub(super) fn no_such_tool(name: &str, registry: &Registry) -> anyhow::Error {
    let message = format!("no tool is named \"{name}\"");
    let nearest = registry.nearest(name);
    match nearest.as_slice() {
        [] => anyhow::anyhow!(message),
        names => Hinted::new(message, format!("did you mean {}?", names.join(" or "))).into(),
    }
}
