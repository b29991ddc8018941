//! A tool of an MCP server.

use std::sync::Arc;

use serde_json::Value;

use crate::mcp::{Client, ListedTool};
use crate::message::ToolResult;
use crate::program::{Invocation, Throw};
use crate::schema::WrittenSchema;

use super::{Declaration, Executor, Replay, Tool};

/// A tool that a server runs; the server is started when the first call needs it.
#[derive(Debug, Clone)]
pub struct RemoteTool {
    client: Arc<Client>,
    name: String,
}

impl RemoteTool {
    /// The server.
    pub fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// What the server calls the tool.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs the tool. Progress of the server is told to `update`, always before this ends.
    pub async fn execute(
        &self,
        arguments: &Value,
        invocation: &Invocation<'_>,
        update: &(dyn Fn(Value) + Send + Sync),
    ) -> Result<ToolResult, Throw> {
        self.client
            .call(&self.name, arguments, invocation, update)
            .await
    }
}

impl Tool {
    /// The tool that a server lists.
    pub(crate) fn remote(client: &Arc<Client>, listed: &ListedTool) -> Self {
        let declaration = Declaration::new(
            listed.full_name.clone(),
            listed.description.clone(),
            listed.input_schema.clone(),
        );
        let remote = RemoteTool {
            client: Arc::clone(client),
            name: listed.name.clone(),
        };
        let config = client.config();
        Self {
            label: listed.title.clone(),
            output_schema: listed.output_schema.clone().map(WrittenSchema::from),
            annotations: listed.annotations.clone(),
            replay: if config.is_safe_to_replay {
                Replay::Safe
            } else {
                Replay::Never
            },
            source: Some(config.source.clone()),
            ..Self::new(declaration, Executor::Mcp(remote))
        }
    }
}
