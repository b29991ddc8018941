//! What is told of the cases: lines for people, JSON lines, or JUnit's XML.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use pitool::cases::Difference;
use serde::Serialize;
use serde_json::Value;

use super::outcome::{Outcome, Status};
use super::suite::{Suite, Task};
use super::{Report, junit};
use crate::report::style::{Look, Styles, When};
use crate::report::{difference, sanitize, text};

/// From so many cases on, what did not pass is named at the end again.
const MANY: usize = 20;

/// Tells of each case as it ends, in order, and of all at the end.
pub(super) struct Reporter {
    report: Report,
    styles: Styles,
    is_terminal: bool,
    has_problems: bool,
    /// The command that records.
    to_update: String,
}

impl Reporter {
    pub(super) fn new(report: Report, color: When, suite: &Suite, to_update: String) -> Self {
        let is_terminal = io::stdout().is_terminal();
        Self {
            report,
            styles: Styles::of_stream(color, is_terminal),
            is_terminal,
            has_problems: suite.has_problems,
            to_update,
        }
    }

    pub(super) fn outcome(&mut self, outcome: &Outcome<'_>) -> io::Result<()> {
        match self.report {
            Report::Text => print(&self.words(outcome)),
            Report::Jsonl => print(&self.line(outcome)),
            Report::Junit => Ok(()),
        }
    }

    pub(super) fn finish(&mut self, judged: &[Outcome<'_>], elapsed: Duration) -> io::Result<()> {
        match self.report {
            Report::Text => print(&self.summary(judged, elapsed)),
            Report::Jsonl => Ok(()),
            Report::Junit => print(&junit::document(judged, elapsed)),
        }
    }

    /// `PASS   12ms  echo`, and below a failure what differs.
    fn words(&self, outcome: &Outcome<'_>) -> String {
        let styles = &self.styles;
        let (word, look) = word(outcome.status, styles);
        let name = sanitize::one_line(&outcome.item.name);
        let duration = text::duration(outcome.duration);
        let mut words = format!(
            "{} {}  {}\n",
            look.paint(format!("{word:<6}")),
            styles.dim.paint(format!("{duration:>6}")),
            styles.tool.paint(name)
        );
        if outcome.status == Status::Passed {
            return words;
        }
        for line in details(outcome, styles).lines() {
            words += format!("  {line}").trim_end();
            words.push('\n');
        }
        words
    }

    /// `3 cases: 2 passed, 1 failed, 0.2s`, and what to do.
    fn summary(&self, judged: &[Outcome<'_>], elapsed: Duration) -> String {
        let mut counts: Vec<String> = Status::ALL
            .into_iter()
            .filter_map(|status| {
                let count = judged.iter().filter(|it| it.status == status).count();
                let (_, look) = word(status, &self.styles);
                let shown = look.paint(format!("{count} {}", status.name())).to_string();
                (count > 0).then_some(shown)
            })
            .collect();
        if self.has_problems {
            let look = self.styles.error;
            counts.push(look.paint("others not understood").to_string());
        }
        counts.push(text::duration(elapsed));
        let total = text::count(judged.len(), "case");
        let mut summary = format!("\n{total}: {}\n", counts.join(", "));
        if judged.len() > MANY {
            summary += &self.recap(judged);
        }
        let wants_update =
            |it: &Outcome<'_>| matches!(it.status, Status::Failed | Status::Unrecorded);
        if judged.iter().any(wants_update) {
            summary += &format!(
                "hint: if this is what the tools should answer, record it: {}\n",
                self.to_update
            );
        }
        summary
    }

    /// What did not pass, by name: it may have left the screen long ago.
    fn recap(&self, judged: &[Outcome<'_>]) -> String {
        let failed = judged.iter().filter(|it| it.status != Status::Passed);
        let lines = failed.map(|outcome| {
            let (word, look) = word(outcome.status, &self.styles);
            let name = sanitize::one_line(&outcome.item.name);
            let place = self.styles.dim.paint(place(outcome));
            format!(
                "{} {}  {place}\n",
                look.paint(format!("{word:<6}")),
                self.styles.tool.paint(name)
            )
        });
        lines.collect()
    }

    fn line(&self, outcome: &Outcome<'_>) -> String {
        let line =
            serde_json::to_string(&Judged::of(outcome)).expect("a line has only string keys");
        let line = if self.is_terminal {
            sanitize::json(&line).into_owned()
        } else {
            line
        };
        line + "\n"
    }
}

fn word(status: Status, styles: &Styles) -> (&'static str, Look) {
    match status {
        Status::Passed => ("PASS", styles.success),
        Status::Failed => ("FAIL", styles.error),
        Status::Unrecorded => ("NEW", styles.warning),
        Status::Broken => ("ERROR", styles.error),
        Status::Updated => ("UPDATE", styles.warning),
        Status::Recorded => ("RECORD", styles.warning),
    }
}

/// Where the case stands, what differs, and what was said on stderr.
pub(super) fn details(outcome: &Outcome<'_>, styles: &Styles) -> String {
    let mut details = format!("{}\n", styles.dim.paint(place(outcome)));
    if let Some(reason) = &outcome.reason {
        details += &format!("{}\n", sanitize::lines(reason));
    }
    match (outcome.status, &outcome.item.task) {
        (Status::Unrecorded | Status::Recorded, Task::Surface(_, declared)) => {
            details += &format!("{}\n", told_of(declared));
            return details;
        }
        (Status::Unrecorded, Task::Case(_)) => {
            details += "nothing is recorded yet; this came out:\n";
        }
        _ => {}
    }
    for it in &outcome.differences {
        details += &difference::text(it, styles);
    }
    let is_told = matches!(
        outcome.status,
        Status::Failed | Status::Broken | Status::Unrecorded
    );
    if is_told && !outcome.stderr.trim().is_empty() {
        details += &format!("{}\n", styles.dim.paint("stderr"));
        for line in outcome.stderr.lines() {
            details += &format!("    {}\n", sanitize::one_line(line));
        }
    }
    details
}

/// What a model is told of, where nothing was recorded to compare it with.
fn told_of(declared: &Value) -> String {
    let tools = declared.as_array().map(Vec::as_slice).unwrap_or_default();
    let names: Vec<&str> = tools
        .iter()
        .filter_map(|tool| tool.get("name")?.as_str())
        .collect();
    format!(
        "what a model is told of {}: {}",
        text::count(names.len(), "tool"),
        sanitize::one_line(&names.join(", "))
    )
}

/// `tools.d/cases/many.jsonl:3`.
fn place(outcome: &Outcome<'_>) -> String {
    let file = outcome.item.file.display().to_string();
    let file = sanitize::one_line(&file);
    match outcome.item.line {
        Some(line) => format!("{file}:{line}"),
        None => file.into_owned(),
    }
}

/// One case on the wire.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Judged<'a> {
    name: &'a str,
    file: &'a std::path::Path,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    status: Value,
    duration_ms: u64,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    differences: &'a [Difference],
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    stderr: &'a str,
}

impl<'a> Judged<'a> {
    fn of(outcome: &'a Outcome<'_>) -> Self {
        let status = match outcome.status {
            Status::Unrecorded => "unrecorded",
            other => other.name(),
        };
        Self {
            name: &outcome.item.name,
            file: &outcome.item.file,
            line: outcome.item.line,
            status: status.into(),
            duration_ms: u64::try_from(outcome.duration.as_millis()).unwrap_or(u64::MAX),
            differences: &outcome.differences,
            reason: outcome.reason.as_deref(),
            stderr: &outcome.stderr,
        }
    }
}

fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}
