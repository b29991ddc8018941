//! What all inputs came to, in a file of its own.
//!
//! The file is there when the whole input was judged, and not before: it is written beside its place and moved there in
//! one step. Whoever adds up the summaries of many inputs can so run any of them again, as often as it takes.

use std::fs;
use std::io;
use std::path::Path;

use serde::Serialize;

/// How many inputs there were, by what they came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) valid: u64,
    pub(super) invalid: u64,
    /// Those that could not be understood.
    pub(super) unreadable: u64,
}

impl Tally {
    /// Adds what another has, which is left empty.
    pub(super) fn add(&mut self, other: &mut Self) {
        let other = std::mem::take(other);
        self.valid += other.valid;
        self.invalid += other.invalid;
        self.unreadable += other.unreadable;
    }
}

/// The file's one line: `{"valid":6537,"invalid":199,"unreadable":0,"source":"shard-0001"}`.
#[derive(Serialize)]
struct Summary<'a> {
    valid: u64,
    invalid: u64,
    unreadable: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a str>,
}

/// Writes the summary file, durably and as a whole.
pub(super) fn write(path: &Path, tally: Tally, source: Option<&str>) -> io::Result<()> {
    let summary = Summary {
        valid: tally.valid,
        invalid: tally.invalid,
        unreadable: tally.unreadable,
        source,
    };
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(name);
    let line = serde_json::to_string(&summary).expect("numbers and text") + "\n";
    let written = fs::write(&part, line)
        .and_then(|()| fs::File::open(&part)?.sync_data())
        .and_then(|()| fs::rename(&part, path));
    if written.is_err() {
        // It is of no use to anybody.
        let _ = fs::remove_file(&part);
    }
    written
}
