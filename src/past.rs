//! What earlier runs already know of a batch, and which of its calls that answers.

use crate::call::{self, CallError, Outcome, Runner};
use crate::journal::{BatchJournal, Recorded, RecordedOutcome, Recording};
use crate::message::ToolCall;

/// Where the calls of a batch may be answered from without running them.
#[derive(Debug, Clone, Copy, Default)]
pub enum Past<'a> {
    /// Nowhere, and nothing is recorded.
    #[default]
    None,
    /// What the journal has an outcome for is answered from it; everything else is recorded there.
    Journal(&'a BatchJournal),
    /// Every call is answered from the recording, or has no answer; nothing runs.
    Recording(&'a Recording),
    /// The batch contradicts the past, for this reason; nothing runs.
    Refused(&'a str),
}

impl<'a> Past<'a> {
    /// Why nothing of the batch may run, if so.
    pub(crate) fn refusal(self) -> Option<String> {
        match self {
            Self::Refused(reason) => Some(reason.to_owned()),
            Self::None | Self::Journal(_) | Self::Recording(_) => None,
        }
    }

    /// Where the calls that run are recorded.
    pub(crate) fn journal(self) -> Option<&'a BatchJournal> {
        match self {
            Self::Journal(journal) => Some(journal),
            Self::None | Self::Recording(_) | Self::Refused(_) => None,
        }
    }

    /// The outcome of a call that is not to run; `None` if it is.
    pub(crate) fn answer(
        self,
        runner: &Runner,
        position: usize,
        call: &ToolCall,
    ) -> Option<Outcome> {
        match self {
            Self::None | Self::Refused(_) => None,
            Self::Journal(journal) => {
                let recorded = journal.recorded(position);
                recorded.map_or_else(
                    |error| Some(call::not_executed(runner, call, &error.to_string())),
                    |recorded| answer_recorded(runner, call, recorded),
                )
            }
            Self::Recording(recording) => {
                let recorded = recording.outcome(&call.name, &call.arguments);
                Some(match recorded {
                    Ok(Some(recorded)) => replayed(runner, call, recorded),
                    Ok(None) => Outcome::refused(runner, call, CallError::NotRecorded),
                    Err(error) => call::not_executed(runner, call, &error.to_string()),
                })
            }
        }
    }
}

fn answer_recorded(runner: &Runner, call: &ToolCall, recorded: Recorded) -> Option<Outcome> {
    match recorded {
        Recorded::Nothing => None,
        Recorded::Outcome(recorded) => Some(replayed(runner, call, *recorded)),
        Recorded::OpenIntent { called_never } => {
            if runner.registry.is_safe_to_replay(&call.name) && !called_never {
                None
            } else {
                Some(Outcome::refused(runner, call, CallError::OutcomeUnknown))
            }
        }
    }
}

fn replayed(runner: &Runner, call: &ToolCall, recorded: RecordedOutcome) -> Outcome {
    let output_errors = match runner.registry.get(&call.name) {
        Some(tool) if !recorded.is_error => call::output_errors(tool, &recorded.result),
        _ => Vec::new(),
    };
    Outcome {
        tool_call: call.clone(),
        result: recorded.result,
        is_error: recorded.is_error,
        duration_ms: recorded.duration_ms,
        coercion: Vec::new(),
        output_errors,
        replayed: true,
        nested_calls: recorded.nested_calls,
        recorded_at: Some(recorded.timestamp),
    }
}
