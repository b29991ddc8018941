//! Results in the words of an API.

use serde_json::Value;

use crate::message::{Content, ToolResultMessage, joined_text};

use super::Format;
use super::turn::Turn;

/// One result on its way to an API.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reply<'r> {
    /// The message that answers the call.
    pub message: &'r ToolResultMessage,
    /// The result as data, for MCP; the other APIs have no place for it.
    pub structured_content: Option<&'r Value>,
}

impl<'r> From<&'r ToolResultMessage> for Reply<'r> {
    fn from(message: &'r ToolResultMessage) -> Self {
        Self {
            message,
            structured_content: None,
        }
    }
}

/// Writes the results of a turn's calls, ready to append to the next request of the API; the `i`-th reply answers
/// `turn.calls[i]`. How many values come out depends on the API: chat completions want a message per call, Anthropic
/// one for all.
pub fn encode<'r, R: Into<Reply<'r>>>(
    turn: &Turn,
    to: Format,
    replies: impl IntoIterator<Item = R>,
) -> Vec<Value> {
    let replies: Vec<Reply<'r>> = replies.into_iter().map(Into::into).collect();
    if replies.is_empty() {
        return Vec::new();
    }
    let wire = to.wire();
    let values = wire.place(wire.answer(turn, &replies), None);
    if to == turn.format && turn.in_list && wire.answers_in_array() {
        vec![Value::Array(values)]
    } else {
        values
    }
}

pub(super) fn replies(messages: &[ToolResultMessage]) -> Vec<Reply<'_>> {
    messages.iter().map(Reply::from).collect()
}

impl<'r> Reply<'r> {
    /// All text blocks, joined by line breaks.
    pub(super) fn text(&self) -> String {
        joined_text(&self.message.content)
    }

    /// The images: base64 data and media type.
    pub(super) fn images(&self) -> impl Iterator<Item = Image<'r>> {
        self.message.content.iter().filter_map(|block| match block {
            Content::Image { data, mime_type } => Some(Image { data, mime_type }),
            Content::Text { .. } => None,
        })
    }

    pub(super) fn has_images(&self) -> bool {
        self.images().next().is_some()
    }
}

/// An image of a result.
#[derive(Debug, Clone, Copy)]
pub(super) struct Image<'r> {
    pub(super) data: &'r str,
    pub(super) mime_type: &'r str,
}

impl Image<'_> {
    /// The image as a `data:` URL.
    pub(super) fn data_url(self) -> String {
        format!("data:{};base64,{}", self.mime_type, self.data)
    }

    /// What stands for an image of a type that an API refuses.
    pub(super) fn omitted(self) -> String {
        format!("[image omitted: this API does not take {}]", self.mime_type)
    }
}
