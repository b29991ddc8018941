//! What a tool asks of the pitool that runs it. Both ends are one program, so there is no version.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json;

/// One call: `{"name":"echo","arguments":{…}}`, one line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) name: String,
    pub(super) arguments: Value,
}

impl Request {
    /// The longest line that is read.
    pub(super) const MAX_BYTES: u64 = 64 << 20;

    pub(super) fn to_line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).expect("a request has only string keys");
        line.push(b'\n');
        line
    }

    /// `None` for anything that is no request.
    pub(super) fn read(line: &[u8]) -> Option<Self> {
        serde_json::from_value(json::parse(line).ok()?).ok()
    }
}
