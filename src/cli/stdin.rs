//! Stdin as a row of turns, read by a thread of its own: a read cannot be interrupted, and a stop must not wait for it.

use std::io::BufReader;

use pitool::format::{Format, Input, InputError, InputOptions, Keep, Rerun, Turn};
use tokio::sync::mpsc;

/// The turns of stdin, in order; ends with stdin.
pub(crate) type Turns = mpsc::Receiver<Result<Turn, InputError>>;

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
        let options = InputOptions {
            from: reading.from,
            rerun: reading.rerun,
            keep: Keep::Messages,
        };
        for turn in Input::new(BufReader::with_capacity(1 << 16, std::io::stdin()), options) {
            let is_last = turn.is_err() && reading.on_error == OnError::End;
            if sender.blocking_send(turn).is_err() || is_last {
                return;
            }
        }
    });
    receiver
}
