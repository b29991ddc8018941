//! What a case came to.

use std::time::Duration;

use pitool::cases::{Case, Difference, Surface};
use serde_json::Value;

use super::run::{CannotRun, Ran};
use super::suite::Item;

/// How a case ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    /// As recorded.
    Passed,
    /// Something else came out.
    Failed,
    /// Nothing is recorded yet.
    Unrecorded,
    /// It could not be run.
    Broken,
    /// It had been something else and is recorded now.
    Updated,
    /// Nothing was recorded, and is now.
    Recorded,
}

impl Status {
    /// All, in the order of a summary.
    pub(super) const ALL: [Self; 6] = [
        Self::Passed,
        Self::Failed,
        Self::Unrecorded,
        Self::Broken,
        Self::Updated,
        Self::Recorded,
    ];

    /// The word for programs and summaries.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Unrecorded => "not recorded",
            Self::Broken => "broken",
            Self::Updated => "updated",
            Self::Recorded => "recorded",
        }
    }
}

/// One judgement.
pub(super) struct Outcome<'s> {
    pub(super) item: &'s Item,
    pub(super) status: Status,
    pub(super) duration: Duration,
    /// Where it is not what is expected.
    pub(super) differences: Vec<Difference>,
    /// Why it could not be run.
    pub(super) reason: Option<String>,
    /// What was said to people meanwhile.
    pub(super) stderr: String,
    /// What a case would have to expect.
    pub(super) updated: Option<Value>,
}

impl<'s> Outcome<'s> {
    pub(super) fn of_case(
        item: &'s Item,
        case: &Case,
        ran: Result<Ran, CannotRun>,
        duration: Duration,
    ) -> Self {
        let ran = match ran {
            Ok(ran) => ran,
            Err(CannotRun { reason, stderr }) => {
                return Self {
                    status: Status::Broken,
                    duration,
                    reason: Some(reason),
                    stderr,
                    ..Self::passed(item)
                };
            }
        };
        let updated = case.updated(&ran.observed, &ran.volatile);
        let differences = case.differences(&updated);
        let status = match (differences.is_empty(), case.is_recorded()) {
            (true, _) => Status::Passed,
            (false, true) => Status::Failed,
            (false, false) => Status::Unrecorded,
        };
        Self {
            status,
            duration,
            differences,
            stderr: ran.stderr,
            updated: Some(updated),
            ..Self::passed(item)
        }
    }

    pub(super) fn of_surface(item: &'s Item, surface: &Surface, declared: &Value) -> Self {
        let difference = surface.difference(declared);
        let status = match (&difference, surface.is_recorded()) {
            (None, _) => Status::Passed,
            (Some(_), true) => Status::Failed,
            (Some(_), false) => Status::Unrecorded,
        };
        Self {
            status,
            differences: difference.into_iter().collect(),
            ..Self::passed(item)
        }
    }

    fn passed(item: &'s Item) -> Self {
        Self {
            item,
            status: Status::Passed,
            duration: Duration::ZERO,
            differences: Vec::new(),
            reason: None,
            stderr: String::new(),
            updated: None,
        }
    }

    /// Takes what came out for what is expected from now on.
    pub(super) fn will_be_recorded(&mut self) {
        self.status = match self.status {
            Status::Failed => Status::Updated,
            Status::Unrecorded => Status::Recorded,
            other => other,
        };
    }

    /// Whether there is something to be written to its file.
    pub(super) fn is_news(&self) -> bool {
        match self.status {
            Status::Updated | Status::Recorded => true,
            Status::Passed | Status::Failed | Status::Unrecorded | Status::Broken => false,
        }
    }
}
