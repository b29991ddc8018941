//! Stdin as a row of turns, read by a thread of its own: a read cannot be interrupted, and a stop must not wait for it.

use std::io::BufReader;

use pitool::format::{
    Document, Documents, Format, Input, InputError, InputOptions, Keep, Rerun, Turn,
};
use tokio::sync::mpsc;

/// What is read from stdin, in order; ends with stdin.
pub(crate) type Turns = mpsc::Receiver<Read>;

/// One step of reading.
#[derive(Debug)]
pub(crate) enum Read {
    /// A value of the input as a whole, if it was asked for; its turns follow.
    Document(Box<Document>),
    /// An assistant message that wants answers.
    Turn(Box<Turn>),
    /// A value that cannot be understood.
    Unreadable(InputError),
}

/// How many turns are read ahead: enough that a fast batch never waits for the reader.
const READ_AHEAD: usize = 4;

/// How stdin is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    /// The format; absent recognises it value by value.
    pub(crate) from: Option<Format>,
    /// Which calls of arrays and sessions are answered.
    pub(crate) rerun: Rerun,
    /// What an input that cannot be understood means for the rest.
    pub(crate) on_error: OnError,
    /// What is read.
    pub(crate) what: What,
}

/// What is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// The turns alone.
    Turns,
    /// Each value as a whole, and then its turns.
    Documents,
}

/// What an input that cannot be understood means for the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnError {
    /// The others are still read.
    GoOn,
    /// Nothing more is read.
    End,
}

/// Starts the reading thread. It is never joined: it ends with stdin, or with the process.
pub(crate) fn turns(reading: Reading) -> Turns {
    let (sender, receiver) = mpsc::channel(READ_AHEAD);
    std::thread::spawn(move || {
        let stdin = BufReader::with_capacity(1 << 16, std::io::stdin());
        let options = |keep| InputOptions {
            from: reading.from,
            rerun: reading.rerun,
            keep,
        };
        let send = |read: Read| sender.blocking_send(read).is_ok();
        match reading.what {
            What::Turns => {
                let turns = Input::new(stdin, options(Keep::Messages));
                let steps = turns.map(|turn| turn.map(|turn| vec![Read::Turn(Box::new(turn))]));
                pass_on(steps, reading.on_error, send);
            }
            What::Documents => {
                let documents = Documents::new(stdin, options(Keep::Documents));
                pass_on(
                    documents.map(|document| document.map(steps)),
                    reading.on_error,
                    send,
                );
            }
        }
    });
    receiver
}

/// A document, and then its turns.
fn steps(document: Document) -> Vec<Read> {
    let turns = document.turns.clone();
    let turns = turns.into_iter().map(|turn| Read::Turn(Box::new(turn)));
    let mut steps: Vec<Read> = turns.collect();
    steps.insert(0, Read::Document(Box::new(document)));
    steps
}

/// Sends what is read until nobody listens, or an error ends it.
fn pass_on(
    read: impl Iterator<Item = Result<Vec<Read>, InputError>>,
    on_error: OnError,
    send: impl Fn(Read) -> bool,
) {
    for steps in read {
        let is_last = steps.is_err() && on_error == OnError::End;
        let steps = steps.unwrap_or_else(|error| vec![Read::Unreadable(error)]);
        let are_sent = steps.into_iter().all(&send);
        if !are_sent || is_last {
            return;
        }
    }
}
