//! A ready call to its outcome, and what surrounds that: the journal's lines before and after, and the calls that the
//! tool makes meanwhile.

use crate::call::{self, CallError, Outcome, Ready, Scope};
use crate::event::Notice;
use crate::journal::{BatchJournal, JournalError, RecordedOutcome};
use crate::message::{ToolCall, unix_millis};
use crate::nested::{Host, Parent, Slot};
use crate::queue::Ticket;
use crate::tool::Replay;

/// Where a call stands among others.
#[derive(Clone, Copy)]
pub(crate) struct Standing<'a> {
    /// How many calls are above it.
    pub(crate) depth: usize,
    /// The slot of its batch that it runs in.
    pub(crate) slot: &'a Slot,
    /// Where it is recorded.
    pub(crate) journal: Option<&'a BatchJournal>,
    /// The position in the batch of the call at the top.
    pub(crate) position: usize,
}

impl Standing<'_> {
    /// Where a call stands that this one makes.
    pub(crate) fn nested(self) -> Self {
        Self {
            depth: self.depth + 1,
            ..self
        }
    }

    async fn intent(self, call: &ToolCall, replay: Replay) -> Result<(), JournalError> {
        match self.journal {
            None => Ok(()),
            Some(journal) if self.depth == 0 => journal.intent(self.position, call).await,
            Some(journal) => journal.nested_intent(self.position, call, replay).await,
        }
    }

    /// Records the outcome. Its message gets the time that was recorded, now and whenever it is answered again.
    async fn outcome(self, outcome: &mut Outcome) -> Result<(), JournalError> {
        let Some(journal) = self.journal else {
            return Ok(());
        };
        let timestamp = unix_millis();
        outcome.recorded_at = Some(timestamp);
        let recorded = RecordedOutcome {
            result: outcome.result.clone(),
            is_error: outcome.is_error,
            duration_ms: outcome.duration_ms,
            nested_calls: outcome.nested_calls.clone(),
            timestamp,
        };
        let call = &outcome.tool_call;
        if self.depth == 0 {
            journal.outcome(self.position, call, &recorded).await
        } else {
            journal.nested_outcome(self.position, call, &recorded).await
        }
    }
}

/// Runs a ready call: intent, `execute`, the end of its turn with its files, `afterToolCall`, outcome.
///
/// Without its intent on disk nothing executes; an outcome that cannot be recorded is still answered, and said.
pub(crate) async fn execute(
    scope: Scope<'_>,
    call: &ToolCall,
    ready: Ready,
    ticket: Option<Ticket>,
    standing: Standing<'_>,
) -> Outcome {
    let host = match Host::open(&ready.tool) {
        Ok(host) => host,
        Err(error) => {
            let reason = format!("it cannot be given a way to call tools: {error}");
            return call::refused(scope, call, ready, CallError::NotExecuted(reason));
        }
    };
    if let Err(error) = standing.intent(call, ready.tool.replay).await {
        return call::refused(
            scope,
            call,
            ready,
            CallError::NotExecuted(error.to_string()),
        );
    }
    let executed = match host {
        None => call::run(scope, call, &ready, None).await,
        Some(host) => {
            let parent = Parent {
                scope,
                call,
                ready: &ready,
                ticket: ticket.as_ref(),
                standing,
            };
            host.run(parent).await
        }
    };
    drop(ticket);
    let mut outcome = call::finish(scope, call, ready, executed).await;
    if let Err(error) = standing.outcome(&mut outcome).await {
        scope.listener.notice(Notice::Warning(format!(
            "the outcome of call {:?} is not recorded: {error}",
            call.id
        )));
    }
    outcome
}
