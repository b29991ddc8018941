//! What the reference answered: data files, and a module for each that replays it.
//!
//! The data were written by running `@earendil-works/pi-schema`, `pi-ai` and `pi-agent-core` 1.6.0; see
//! `THIRD_PARTY.md`. Larger sets are replayed where `PITOOL_CONFORMANCE` names their folder or
//! `../shared/conformance` holds them.

mod batch;
mod bfcl;
mod cases;
mod exceptions;
mod transcript;
mod validation;
