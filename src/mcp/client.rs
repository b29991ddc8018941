//! One server of an `mcpServers` file: started once, when the first call needs it, for all calls.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::message::ToolResult;
use crate::program::{ABORTED, Invocation, Throw};

use super::connection::Connection;
use super::listed::Listing;
use super::manifest::ServerConfig;
use super::names;
use super::notices::Notices;

/// A server as its tools and their callers see it. Starting happens at most once: a server that did not start, or that
/// has ended, answers every later call with the reason, so that nothing is tried again behind anybody's back.
pub struct Client {
    config: ServerConfig,
    prefix: String,
    notices: Notices,
    state: watch::Sender<State>,
    start: Mutex<Option<AbortHandle>>,
    changes: watch::Sender<u64>,
}

#[derive(Clone)]
enum State {
    Idle,
    Starting,
    Running(Arc<Connection>),
    Failed(String),
}

impl Client {
    pub(crate) fn new(config: ServerConfig, notices: Notices) -> Arc<Self> {
        Arc::new(Self {
            prefix: names::server_prefix(&config.name),
            config,
            notices,
            state: watch::Sender::new(State::Idle),
            start: Mutex::new(None),
            changes: watch::Sender::new(0),
        })
    }

    /// What its file says of it.
    pub fn config(&self) -> &ServerConfig {
        &self.config
    }

    /// What the names of all its tools start with, `mcp__SERVER__`.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Counts how often the server said that its tools changed.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The tools that the server has now; starts it if nobody did. Giving up waiting does not stop the start.
    pub(crate) async fn tools(self: &Arc<Self>) -> Result<Listing, String> {
        self.connection().await?.tools().await
    }

    /// Calls a tool by the name that the server gives it.
    pub(crate) async fn call(
        self: &Arc<Self>,
        tool: &str,
        arguments: &Value,
        invocation: &Invocation<'_>,
        update: &(dyn Fn(Value) + Send + Sync),
    ) -> Result<ToolResult, Throw> {
        let connection = tokio::select! {
            connection = self.connection() => connection.map_err(Throw)?,
            () = invocation.stop.stopped() => return Err(Throw(ABORTED.to_owned())),
        };
        connection.call(tool, arguments, invocation, update).await
    }

    async fn connection(self: &Arc<Self>) -> Result<Arc<Connection>, String> {
        let mut state = self.state.subscribe();
        self.start_once();
        let settled = state
            .wait_for(|state| matches!(state, State::Running(_) | State::Failed(_)))
            .await
            .expect("the state lives as long as the client");
        match &*settled {
            State::Running(connection) => Ok(Arc::clone(connection)),
            State::Failed(reason) => Err(reason.clone()),
            State::Idle | State::Starting => unreachable!("waited for the other states"),
        }
    }

    /// Starts the server if nobody did; inside a runtime.
    pub(crate) fn start_once(self: &Arc<Self>) {
        let is_first = self.state.send_if_modified(|state| {
            let is_idle = matches!(state, State::Idle);
            if is_idle {
                *state = State::Starting;
            }
            is_idle
        });
        if !is_first {
            return;
        }
        let client = Arc::clone(self);
        // Joined by everyone who waits for the state; `close` aborts it.
        let start = tokio::spawn(async move {
            let started = Connection::start(&client.config, &client.notices, &client.changes).await;
            client.settle(match started {
                Ok(connection) => State::Running(Arc::new(connection)),
                Err(reason) => State::Failed(reason),
            });
        });
        *self.start.lock().unwrap_or_else(PoisonError::into_inner) = Some(start.abort_handle());
    }

    /// The end of a start, unless the server was closed meanwhile.
    fn settle(&self, settled: State) {
        self.state.send_if_modified(|state| {
            let is_awaited = matches!(state, State::Starting);
            if is_awaited {
                *state = settled;
            }
            is_awaited
        });
    }

    /// Ends the server if it runs: stdin closed, then SIGTERM, then SIGKILL to its group. It never starts again.
    pub async fn close(&self) {
        if let Some(start) = self
            .start
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
        {
            start.abort();
        }
        let reason = format!("MCP server \"{}\" was closed", self.config.name);
        if let State::Running(connection) = self.state.send_replace(State::Failed(reason)) {
            connection.close().await;
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("name", &self.config.name)
            .finish_non_exhaustive()
    }
}
