//! Runs the tool calls of an LLM agent: every call gets exactly one paired result, in source order.
//!
//! A **message** holds **tool calls**; a **batch** answers each with a **tool result**, in the same order, always.
//! Everything that runs (tool, argument preparation, hook) is a **program**: one JSON value in, JSON values out.
//! Everything that happens is an **event**; progress lines, the event stream and the journal only listen.
//! A provider is a **format**: how to read calls, write results, and declare tools.
//!
//! # The way of a message
//!
//! ```text
//!  stdin ── JSON ──▶ format ──▶ calls
//!                                │          Registry ◀── tools.d, your own functions
//!                                ▼
//!                            batch::run ──── Event ────▶ Listener: progress, event lines, a sink of yours
//!    per group:                  │
//!      1. in order:  start ▸ prepareArguments ▸ coerce and validate ▸ beforeToolCall
//!      2. at once:   execute ▸ updates ▸ afterToolCall ▸ end
//!                                │
//!                                ▼
//! stdout ◀── JSON ── format ◀── messages               (result i answers call i)
//! ```
//!
//! A step before `execute` that fails ends its call, and only it. Once `execute` has started, `afterToolCall` always
//! runs. Whatever goes wrong with a call is its result: [`batch::run`] cannot fail.
//!
//! # An agent's own tools
//!
//! A tool is an async function. It gets the call's id, valid arguments, a stop signal and a place for updates
//! ([`tool::Execution`]); its error is what the model reads.
//!
//! ```
//! use std::sync::Arc;
//!
//! use pitool::batch::{self, Batch};
//! use pitool::call::{Options, Runner};
//! use pitool::event::Silent;
//! use pitool::format::{Input, InputOptions};
//! use pitool::message::ToolResult;
//! use pitool::registry::Registry;
//! use pitool::stop::Stop;
//! use pitool::tool::{Declaration, Tool};
//! use serde_json::json;
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! # runtime.block_on(async {
//! let parameters = json!({"type": "object", "properties": {"text": {"type": "string"}}});
//! let declaration = Declaration::new("shout", "Say it loudly", parameters);
//! let mut registry = Registry::new();
//! registry.register(Tool::native(declaration, |execution| async move {
//!     let text = execution.arguments["text"].as_str().unwrap_or_default();
//!     Ok(ToolResult::text(text.to_uppercase()))
//! }))?;
//! let runner = Runner::new(Arc::new(registry), Options::default());
//!
//! // What a model said, in the words of any API.
//! let response = json!({"role": "assistant", "content": [
//!     {"type": "tool_use", "id": "toolu_1", "name": "shout", "input": {"text": true}},
//! ]});
//! for turn in Input::new(response.to_string().as_bytes(), InputOptions::default()) {
//!     let answered = batch::run(&runner, Batch::of(&turn?), &Silent, &Stop::never()).await;
//!     assert_eq!(answered.outcomes[0].result, ToolResult::text("TRUE"));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `samples/rust/agent_loop.rs` is a whole agent: tools with updates and stop, a sink for events, and the loop.
//!
//! # Where to read on
//!
//! | you want to | begin with |
//! |---|---|
//! | load manifests, or fill a registry | [`registry::Registry`] |
//! | write a tool | [`tool::Tool::native`], [`tool::Execution`] |
//! | run the calls of a message | [`batch::run`], [`call::Options`], [`call::Runner`] |
//! | hear what happens | [`event::Listener`], [`event::Event`] |
//! | stop what runs | [`stop::Stopper`] |
//! | coerce and validate arguments, nothing else | [`schema::Schema`] |
//! | read and answer a provider's messages | [`format::Input`], [`format::encode`] |
//! | declare tools to a provider | [`format::declare::declare`] |
//! | find and mend what is wrong with a transcript | [`format::lint()`], [`format::repair()`] |
//! | know which tools a transcript declares | [`transcript`] |
//! | judge how a tool behaves as a process | [`audit::run`] |
//! | hold tools to recorded cases | [`cases`] |
//! | survive an interruption, or replay a run | [`journal`], [`past::Past`] |
//! | use MCP servers, or be one | [`mcp`], [`mcp::server`] |

#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod audit;
pub mod batch;
pub mod call;
pub mod cases;
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
#[cfg(test)]
mod still_time;
pub mod stop;
pub mod tool;
pub mod transcript;
