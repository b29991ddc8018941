//! MCP, both ways: tools of other servers in `tools.d`, and `tools.d` as a server.
//!
//! The protocol itself is the business of the official SDK, `rmcp`. What is here is what surrounds it: files that name
//! servers ([`ServerConfig`]), servers as tools ([`Client`]), and our tools as a server.

mod client;
mod connection;
mod content;
mod http;
mod lines;
mod listed;
mod manifest;
mod names;
mod notices;
mod process;
mod progress;
mod routes;
pub mod server;

#[cfg(test)]
mod tests;

pub use client::Client;
pub(crate) use listed::{ListedTool, Listing};
pub use manifest::ServerConfig;
pub(crate) use manifest::{ServersManifest, pointer, second_of_its_name};
pub use notices::Hear;
pub(crate) use notices::Notices;
