//! Runs the tool calls of an LLM agent: every call gets exactly one paired result, in source order.
//!
//! A **message** holds **tool calls**; a **batch** answers each with a **tool result**, in the same order, always.
//! Everything that runs (tool, argument preparation, hook) is a **program**: one JSON value in, JSON values out.
//! Everything that happens is an **event**; progress lines, the event stream and the journal only listen.
//! A provider is a **format**: how to read calls, write results, and declare tools.
//!
//! A Rust agent brings its own tools:
//!
//! ```
//! use std::sync::Arc;
//!
//! use pitool::batch::{self, Batch};
//! use pitool::call::{Options, Runner};
//! use pitool::event::Silent;
//! use pitool::message::{ToolCall, ToolResult};
//! use pitool::past::Past;
//! use pitool::registry::Registry;
//! use pitool::stop::Stop;
//! use pitool::tool::{Declaration, Tool};
//! use serde_json::json;
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! # runtime.block_on(async {
//! let declaration = Declaration {
//!     name: "shout".into(),
//!     description: "Say it loudly".into(),
//!     parameters: json!({"type": "object", "properties": {"text": {"type": "string"}}}),
//!     constrained_sampling: None,
//! };
//! let mut registry = Registry::new();
//! registry.register(Tool::native(declaration, |execution| async move {
//!     let text = execution.arguments["text"].as_str().unwrap_or_default();
//!     Ok(ToolResult::text(text.to_uppercase()))
//! }))?;
//!
//! let calls = [ToolCall {
//!     id: "call-1".into(),
//!     name: "shout".into(),
//!     arguments: json!({"text": true}),
//!     arguments_error: None,
//! }];
//! let message = json!({"role": "assistant", "content": calls});
//! let runner = Runner::new(Arc::new(registry), Options::default());
//! let batch = Batch {
//!     message: &message,
//!     calls: &calls,
//!     stop_reason: Some("toolUse"),
//!     past: Past::None,
//! };
//! let answered = batch::run(&runner, batch, &Silent, &Stop::never()).await;
//! assert_eq!(answered.outcomes[0].result, ToolResult::text("TRUE"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
pub mod stop;
pub mod tool;
pub mod transcript;
