//! Stdin as a row of turns, read by a thread of its own: a read cannot be interrupted, and a stop must not wait for it.
//! Only a short file needs no thread.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use pitool::format::{Document, Documents, Format, InputError, InputOptions, Keep, Rerun, Turn};
use rustix::fs::FileType;
use tokio::sync::mpsc;

/// What is read from stdin, in order, the steps of one value together: what was read is answered as a whole. Ends with stdin.
pub(crate) type Turns = mpsc::Receiver<Vec<Read>>;

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

/// How many values are read ahead: enough that a fast batch never waits for the reader.
const READ_AHEAD: usize = 4;

/// A file of at most this many bytes is short.
const SHORT: i64 = 1 << 16;

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

/// The commands whose input is stdin and nothing else.
const READERS: [&str; 3] = ["run", "timeline", "validate"];

/// What to type where one of them was given a file as an argument, as other programs take it.
pub(crate) fn hint(arguments: &[OsString], error: &clap::Error) -> Option<String> {
    let reader = READERS
        .into_iter()
        .find(|reader| arguments.iter().any(|argument| argument == reader))?;
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let is_file = error.kind() == ErrorKind::UnknownArgument && Path::new(word).is_file();
    is_file.then(|| {
        let file = super::quoted(Path::new(word));
        format!("the input is read from stdin: pitool {reader} < {file}")
    })
}

/// Begins to read. A short file is read at once; else a thread does it, which is never joined: it ends with stdin, or with
/// the process.
pub(crate) fn turns(reading: Reading) -> Turns {
    if let Some(text) = short_file() {
        return at_once(&text, reading);
    }
    let (sender, receiver) = mpsc::channel(READ_AHEAD);
    std::thread::spawn(move || {
        let stdin = BufReader::with_capacity(1 << 16, std::io::stdin());
        read(stdin, reading, |read| sender.blocking_send(read).is_ok());
    });
    receiver
}

/// All of stdin, if it is a short file: nobody has to be waited for, and a thread takes longer to start.
fn short_file() -> Option<Vec<u8>> {
    let mut stdin = std::io::stdin().lock();
    let status = rustix::fs::fstat(&stdin).ok()?;
    let is_file = FileType::from_raw_mode(status.st_mode).is_file();
    if !is_file || status.st_size > SHORT {
        return None;
    }
    // One byte more than it has: room for the end to be seen.
    let mut text = Vec::with_capacity(usize::try_from(status.st_size).ok()? + 1);
    stdin.read_to_end(&mut text).ok()?;
    Some(text)
}

fn at_once(text: &[u8], reading: Reading) -> Turns {
    let mut all = Vec::new();
    read(text, reading, |read| {
        all.push(read);
        true
    });
    let (sender, receiver) = mpsc::channel(all.len().max(1));
    for read in all {
        let sent = sender.try_send(read);
        sent.expect("there is room for all, and the receiver is here");
    }
    receiver
}

/// Reads an input until its end, or until `send` says that nobody listens.
fn read(input: impl BufRead, reading: Reading, mut send: impl FnMut(Vec<Read>) -> bool) {
    let options = InputOptions {
        from: reading.from,
        rerun: reading.rerun,
        keep: match reading.what {
            What::Turns => Keep::Messages,
            What::Documents => Keep::Documents,
        },
    };
    for document in Documents::new(input, options) {
        let is_last = document.is_err() && reading.on_error == OnError::End;
        let steps = match document {
            Ok(document) => steps(document, reading.what),
            Err(error) => vec![Read::Unreadable(error)],
        };
        if !send(steps) || is_last {
            return;
        }
    }
}

/// A document, if it is wanted, and then its turns.
fn steps(mut document: Document, what: What) -> Vec<Read> {
    let turns = match what {
        What::Turns => std::mem::take(&mut document.turns),
        What::Documents => document.turns.clone(),
    };
    let whole = match what {
        What::Turns => None,
        What::Documents => Some(Read::Document(Box::new(document))),
    };
    let turns = turns.into_iter().map(|turn| Read::Turn(Box::new(turn)));
    whole.into_iter().chain(turns).collect()
}
