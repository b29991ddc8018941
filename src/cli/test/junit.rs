//! JUnit's XML, as CI services read it.

use std::time::Duration;

use super::outcome::{Outcome, Status};
use super::report::details;
use crate::report::sanitize;
use crate::report::style::Styles;

/// The whole document.
pub(super) fn document(judged: &[Outcome<'_>], elapsed: Duration) -> String {
    let count = |is: fn(Status) -> bool| judged.iter().filter(|it| is(it.status)).count();
    let totals = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" time=\"{:.3}\"",
        judged.len(),
        count(|status| matches!(status, Status::Failed | Status::Unrecorded)),
        count(|status| status == Status::Broken),
        elapsed.as_secs_f64()
    );
    let cases: String = judged.iter().map(case).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"pitool\" {totals}>\n  \
         <testsuite name=\"pitool\" {totals}>\n{cases}  </testsuite>\n</testsuites>\n"
    )
}

fn case(outcome: &Outcome<'_>) -> String {
    let item = outcome.item;
    let folder = item
        .file
        .parent()
        .map(|folder| folder.display().to_string());
    let line = item
        .line
        .map(|line| format!(" line=\"{line}\""))
        .unwrap_or_default();
    let opening = format!(
        "    <testcase name=\"{}\" classname=\"{}\" file=\"{}\"{line} time=\"{:.3}\"",
        sanitize::xml(&item.name),
        sanitize::xml(&folder.unwrap_or_default()),
        sanitize::xml(&item.file.display().to_string()),
        outcome.duration.as_secs_f64()
    );
    let (element, message) = match outcome.status {
        Status::Passed | Status::Updated | Status::Recorded => return format!("{opening}/>\n"),
        Status::Failed => ("failure", "something else came out"),
        Status::Unrecorded => ("failure", "nothing is recorded yet"),
        Status::Broken => ("error", outcome.reason.as_deref().unwrap_or_default()),
    };
    format!(
        "{opening}>\n      <{element} message=\"{}\">{}</{element}>\n    </testcase>\n",
        sanitize::xml(message),
        sanitize::xml(&details(outcome, &Styles::default()))
    )
}
