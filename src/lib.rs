//! Runs the tool calls of an LLM agent: every call gets exactly one paired result, in source order.
//!
//! A **message** holds **tool calls**; a **batch** answers each with a **tool result**, in the same order, always.
//! Everything that runs (tool, argument preparation, hook) is a **program**: one JSON value in, JSON values out.
//! Everything that happens is an **event**; progress lines, the event stream and the journal only listen.
//! A provider is a **format**: how to read calls, write results, and declare tools.

#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod batch;
pub mod call;
pub mod event;
mod execute;
pub mod format;
pub mod hook;
pub mod journal;
pub mod json;
pub mod manifest;
pub mod mcp;
pub mod message;
pub mod nested;
pub mod past;
pub mod pattern;
pub mod private_folder;
pub mod program;
pub mod queue;
pub mod registry;
pub mod schema;
pub mod stop;
pub mod tool;
pub mod transcript;
