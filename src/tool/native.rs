//! Tools that are functions of the Rust program which uses this library.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

use crate::message::ToolResult;
use crate::stop::Stop;

/// One run of a native tool.
#[derive(Debug)]
pub struct Execution {
    /// The call's id.
    pub tool_call_id: String,
    /// The tool's name.
    pub tool_name: String,
    /// The validated arguments.
    pub arguments: Value,
    /// Given when the batch stops; the tool then has two seconds to return.
    pub stop: Stop,
    /// Takes partial results.
    pub updates: Updates,
}

/// Takes the partial results of a running native tool. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Updates(UnboundedSender<Value>);

impl Updates {
    /// Updates and where they arrive.
    pub fn channel() -> (Self, UnboundedReceiver<Value>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(sender), receiver)
    }

    /// Reports a partial result, such as `{"content":[…],"details":…}`. After the call's end it is ignored.
    pub fn report(&self, partial_result: Value) {
        // The receiver is gone when the call has ended.
        let _ = self.0.send(partial_result);
    }
}

/// A tool as a function of a Rust program. Its error is a throw: the message is all that is left of the run.
pub type NativeExecute =
    Arc<dyn Fn(Execution) -> BoxFuture<'static, Result<ToolResult, String>> + Send + Sync>;

/// An argument preparation as a function of a Rust program: raw arguments in, arguments to validate out.
pub type NativePrepare =
    Arc<dyn Fn(Value) -> BoxFuture<'static, Result<Value, String>> + Send + Sync>;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn an_update_after_the_end_is_ignored() {
        let (updates, mut receiver) = Updates::channel();
        updates.report(json!(1));
        assert_eq!(receiver.recv().await, Some(json!(1)));
        drop(receiver);
        updates.report(json!(2));
    }
}
