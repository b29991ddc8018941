//! A JSON value as a message of a client.

use rmcp::model::{ClientJsonRpcMessage, RequestId};
use serde_json::Value;

/// What is said of a value that is no message.
pub(super) const NOT_A_MESSAGE: &str = "not a JSON-RPC 2.0 message";

/// The id of a message, also of one that is otherwise wrong.
pub(super) fn id(value: &Value) -> Option<RequestId> {
    value
        .get("id")
        .and_then(|id| serde_json::from_value(id.clone()).ok())
}

/// The message, if it is one.
pub(super) fn read(value: Value) -> Option<ClientJsonRpcMessage> {
    serde_json::from_value(value).ok()
}
