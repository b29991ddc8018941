//! Providers' messages: how each API writes calls, takes results and declares tools.
//!
//! One file per format, one line in `Format::wire`. Reading goes from a stream ([`Input`]) over documents
//! ([`Document`]: one message, an array, a session file) to turns ([`Turn`]: the calls of one assistant message);
//! [`encode`] writes the answers. A whole transcript is a [`Conversation`], which [`lint()`] and [`repair()`] look at;
//! [`declare`] tells an API of the tools. Nothing here runs a tool.

mod answer;
mod anthropic;
mod arguments;
mod conversation;
pub mod declare;
mod document;
mod gemini;
mod input;
mod lint;
mod mcp;
mod openai;
mod openai_responses;
mod pi;
mod plain;
mod recognise;
mod repair;
mod session;
mod stop_reason;
mod thread;
mod turn;
mod weave;
mod wire;

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

pub use answer::{Reply, encode};
pub use arguments::{parse_text as parse_arguments, repair as repair_arguments};
pub use conversation::Conversation;
pub use document::Document;
pub use input::{Documents, Input, InputError, InputOptions, Keep, Rerun};
pub use lint::{Fault, lint};
pub use plain::plain_calls;
pub use repair::{Repaired, repair};
pub use turn::Turn;

use wire::Wire;

/// A way to write messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Messages of the pi agent; the form that hooks and events use.
    Pi,
    /// Anthropic's Messages API.
    Anthropic,
    /// OpenAI's chat completions.
    Openai,
    /// OpenAI's Responses API.
    OpenaiResponses,
    /// Gemini's generateContent.
    Gemini,
    /// MCP's `tools/call` over JSON-RPC.
    Mcp,
}

impl Format {
    /// All formats, in the order in which they are listed to people.
    pub const ALL: [Self; 6] = [
        Self::Pi,
        Self::Anthropic,
        Self::Openai,
        Self::OpenaiResponses,
        Self::Gemini,
        Self::Mcp,
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pi => "pi",
            Self::Anthropic => "anthropic",
            Self::Openai => "openai",
            Self::OpenaiResponses => "openai-responses",
            Self::Gemini => "gemini",
            Self::Mcp => "mcp",
        }
    }

    fn wire(self) -> &'static dyn Wire {
        match self {
            Self::Pi => &pi::Pi,
            Self::Anthropic => &anthropic::Anthropic,
            Self::Openai => &openai::Openai,
            Self::OpenaiResponses => &openai_responses::OpenaiResponses,
            Self::Gemini => &gemini::Gemini,
            Self::Mcp => &mcp::Mcp,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// A name that is no format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownFormat(String);

impl fmt::Display for UnknownFormat {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = Format::ALL.into_iter().map(Format::name).collect();
        write!(
            formatter,
            "unknown format {:?}, expected one of {}",
            self.0,
            names.join(", ")
        )
    }
}

impl std::error::Error for UnknownFormat {}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        Self::ALL
            .into_iter()
            .find(|format| format.name() == name)
            .ok_or_else(|| UnknownFormat(name.to_owned()))
    }
}
