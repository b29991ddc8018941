//! Fuzzing: whatever bytes arrive on stdin, in a manifest, from a tool or in a journal, nothing panics, hangs or
//! contradicts itself.
//!
//! `cargo test` tries the whole corpus and a fixed number of mutations of it. `PITOOL_FUZZ_SECONDS=3600 cargo test --test
//! fuzz -- --test-threads=1` goes on for that long, shared by the targets, from another place each time; a failure names the
//! seed that leads to it and the file that holds the input. Inputs that once failed stay in `corpus/TARGET`.

mod corpus;
mod effort;
mod harness;
mod mutate;
mod random;
mod targets;
