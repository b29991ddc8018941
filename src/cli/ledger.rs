//! What `--journal` and `--replay` mean for a run.

use std::path::Path;

use pitool::format::Turn;
use pitool::journal::{BatchJournal, IdOrigin, Journal, Recording};
use pitool::past::Past;

/// What earlier runs left, and where this one is recorded.
#[derive(Debug)]
pub(crate) enum Ledger {
    None,
    Journal(Journal),
    Recording(Recording),
}

/// What the ledger says of one message.
#[derive(Debug)]
pub(crate) enum Entry<'a> {
    None,
    Journal(BatchJournal),
    Recording(&'a Recording),
    /// The message cannot be the one that was recorded, or the journal cannot be read.
    Refused(String),
}

impl Ledger {
    /// Opens what the options name; at most one of them.
    pub(crate) fn open(journal: Option<&Path>, replay: Option<&Path>) -> anyhow::Result<Self> {
        Ok(match (journal, replay) {
            (Some(path), _) => Self::Journal(Journal::open(path)?),
            (None, Some(path)) => Self::Recording(Recording::open(path)?),
            (None, None) => Self::None,
        })
    }

    /// Looks a message up. Once per message, in the order of the input: a repeated message is the next one of its kind.
    pub(crate) fn entry(&self, turn: &Turn) -> Entry<'_> {
        match self {
            Self::None => Entry::None,
            Self::Recording(recording) => Entry::Recording(recording),
            Self::Journal(journal) => {
                let origins: Vec<IdOrigin> = (0..turn.calls.len())
                    .map(|position| {
                        if turn.has_given_id(position) {
                            IdOrigin::Given
                        } else {
                            IdOrigin::MadeUp
                        }
                    })
                    .collect();
                let batch = journal.batch(&turn.calls, &origins);
                batch.map_or_else(|error| Entry::Refused(error.to_string()), Entry::Journal)
            }
        }
    }

    /// Whether something could not be recorded.
    pub(crate) fn has_failed(&self) -> bool {
        match self {
            Self::Journal(journal) => journal.has_failed(),
            Self::None | Self::Recording(_) => false,
        }
    }
}

impl Entry<'_> {
    /// What the batch gets to know.
    pub(crate) fn past(&self) -> Past<'_> {
        match self {
            Self::None => Past::None,
            Self::Journal(batch) => Past::Journal(batch),
            Self::Recording(recording) => Past::Recording(recording),
            Self::Refused(reason) => Past::Refused(reason),
        }
    }

    /// Why the message is refused, if it is.
    pub(crate) fn problem(&self) -> Option<&str> {
        match self {
            Self::Refused(reason) => Some(reason),
            Self::None | Self::Journal(_) | Self::Recording(_) => None,
        }
    }
}
