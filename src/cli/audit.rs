//! `pitool audit`: how a tool behaves as a process.

use std::io::{self, IsTerminal as _};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::ValueEnum;
use clap::builder::PossibleValuesParser;
use pitool::audit::{self, CHECKS, Finding, NotAudited, Subject, Verdict};
use pitool::registry::Registry;
use serde_json::Value;

use super::arguments::Arguments;
use super::signals::Signals;
use super::{Exit, Global, duration, load, print, validate};
use crate::report;
use crate::report::sanitize;
use crate::report::style::Styles;
use crate::report::table::{Cell, Table};

/// Run a tool under observation and report how it behaves
///
/// The tool runs up to four times, effects included, each time as `pitool call` would run it: twice as usual, once with
/// nothing on its stdin, once told to end midway. Hooks apply: what a guard blocks is not run by an audit either.
#[derive(Debug, clap::Args)]
#[command(
    after_long_help = "Exit codes: 0 nothing is wrong; 1 something is; 2 the tool could not be run; 128 + signal when stopped."
)]
pub(crate) struct Args {
    /// The tool
    name: String,

    #[command(flatten)]
    arguments: Arguments,

    /// How long a run may take if the manifest sets no limit, such as 1500ms, 30s, 2m
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "30s")]
    timeout: Duration,

    /// Leave this check out; repeatable
    #[arg(hide_short_help = true, long, value_name = "CHECK", value_parser = PossibleValuesParser::new(CHECKS.iter().map(|check| check.name)))]
    skip: Vec<String>,

    /// How to report
    #[arg(long, value_name = "HOW", value_enum, default_value_t)]
    report: Report,
}

/// How findings are reported.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum Report {
    /// A table, and below it what to do
    #[default]
    Text,
    /// A JSON object per check
    Jsonl,
}

/// Runs the command.
pub(crate) fn run(args: &Args, global: &Global) -> anyhow::Result<Exit> {
    let arguments = args.arguments.read()?;
    let registry = load::usable(global)?;
    let runtime = super::runtime()?;
    let exit = runtime.block_on(audit(args, global, Arc::new(registry), arguments));
    runtime.shutdown_background();
    exit
}

async fn audit(
    args: &Args,
    global: &Global,
    registry: Arc<Registry>,
    arguments: Value,
) -> anyhow::Result<Exit> {
    let signals = Signals::listen().context("cannot listen for signals")?;
    let tool = match registry.find(&args.name).await {
        Ok(Some(tool)) => tool,
        Ok(None) => return Err(validate::no_such_tool(&args.name, &registry)),
        Err(reason) => bail!("{reason}"),
    };
    let subject = Subject {
        registry: Arc::clone(&registry),
        tool,
        arguments,
        timeout: args.timeout,
    };
    let audited = audit::run(&subject, &signals.stop()).await;
    registry.close_servers().await;
    match audited {
        Ok(findings) => args.print(&findings, global),
        Err(NotAudited::NotRun(message)) => bail!("the tool was not run: {message}"),
        Err(NotAudited::Stopped) => Ok(Exit::Signal(signals.received().unwrap_or_default())),
    }
}

impl Args {
    fn print(&self, findings: &[Finding], global: &Global) -> anyhow::Result<Exit> {
        let is_skipped = |finding: &&Finding| self.skip.iter().any(|skip| skip == finding.check);
        let findings: Vec<&Finding> = findings.iter().filter(|one| !is_skipped(one)).collect();
        let is_wrong = |finding: &&Finding| finding.verdict == Verdict::Wrong;
        let exit = if findings.iter().any(is_wrong) {
            Exit::Errors
        } else {
            Exit::Ok
        };
        match self.report {
            Report::Text => print::text_of(&text(&findings, global), exit),
            Report::Jsonl => {
                let values: Result<Vec<Value>, _> =
                    findings.iter().map(serde_json::to_value).collect();
                print::lines(&values?, exit)
            }
        }
    }
}

/// The table, and below it a line for each finding with what to do about it.
fn text(findings: &[&Finding], global: &Global) -> String {
    let stdout = io::stdout();
    let styles = Styles::of_stream(global.color, stdout.is_terminal());
    let mut table = Table::new(&["CHECK", "VERDICT", "SEEN"]);
    for finding in findings {
        let (verdict, look) = match finding.verdict {
            Verdict::Ok => ("ok", styles.success),
            Verdict::Wrong => ("wrong", styles.error),
            Verdict::NotApplicable => ("-", styles.dim),
        };
        table.row(vec![
            Cell::plain(finding.check),
            Cell::new(verdict, look),
            Cell::plain(sanitize::one_line(&finding.seen)),
        ]);
    }
    let mut text = table.render(report::columns(&stdout), &styles);
    for finding in findings {
        if let Some(advice) = finding.advice {
            text.push_str(&format!("{}: {advice}\n", finding.check));
        }
    }
    text
}
