//! A server that runs: the handshake, its tools, calls to them, its end.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientCapabilities, ClientConfig, ClientRequest,
    ErrorCode, GetExtensions as _, Implementation, ListToolsRequest, PaginatedRequestParams,
    ProgressNotificationParam, ProtocolVersion, ServerResult,
};
use rmcp::service::{
    ClientInitializeError, NotificationContext, Peer, PeerRequestOptions, RequestHandle,
    RoleClient, RunningService, ServiceError, serve_client,
};
use rmcp::transport::Transport;
use rmcp::{ClientHandler, ErrorData};
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::event::Notice;
use crate::json;
use crate::message::ToolResult;
use crate::program::{ABORTED, Invocation, Throw, timed_out};

use super::content;
use super::http::Faults;
use super::lines::LineTransport;
use super::listed::{ListedTool, Listing};
use super::manifest::{Endpoint, ServerConfig};
use super::names::full_names;
use super::notices::Notices;
use super::process::ServerProcess;
use super::progress::{Patience, as_update};
use super::routes::{Route, Routed, Routes};

/// How long the cancellation of a call may take to be sent.
const CANCEL_TIME: Duration = Duration::from_secs(1);
/// More pages of tools than any server has; a server that gives more repeats itself.
const MAX_PAGES: usize = 1000;

/// A server that has answered the handshake.
pub(crate) struct Connection {
    name: String,
    timeout: Option<Duration>,
    list_timeout: Duration,
    peer: Peer<RoleClient>,
    service: Mutex<Option<RunningService<RoleClient, Handler>>>,
    far_end: FarEnd,
    routes: Routes,
    /// Counts how often the server said that its tools changed.
    changes: watch::Receiver<u64>,
    listing: tokio::sync::Mutex<Option<(u64, Listing)>>,
    notices: Notices,
}

/// What is at the other end of a connection.
enum FarEnd {
    Process(ServerProcess),
    Http(Faults),
}

/// Hears what a server says on its own account.
struct Handler {
    server: String,
    notices: Notices,
    changes: watch::Sender<u64>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("pitool", env!("CARGO_PKG_VERSION"));
        // The SDK's default is a version that has no handshake.
        ClientConfig::new(ClientCapabilities::default(), us)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    #[expect(
        deprecated,
        reason = "the SDK marks what the newest protocol drops; servers still send logs"
    )]
    async fn on_logging_message(
        &self,
        log: rmcp::model::LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let text = match &log.data {
            Value::String(text) => text.clone(),
            other => json::compact(other),
        };
        self.notices.send(Notice::ServerLine {
            server: self.server.clone(),
            line: text,
        });
    }
}

impl Connection {
    /// Starts a server and learns its tools. The error is a sentence for the model.
    pub(crate) async fn start(
        config: &ServerConfig,
        notices: &Notices,
        changes: &watch::Sender<u64>,
    ) -> Result<Self, String> {
        let skipped = skipped(&config.name, notices);
        let started = match &config.endpoint {
            Endpoint::Process(process) => {
                match ServerProcess::start(&config.name, process, notices) {
                    Ok((process, pipes)) => {
                        let transport = LineTransport::new(pipes.stdout, pipes.stdin, skipped);
                        let far_end = FarEnd::Process(process);
                        Self::open(config, notices, changes, transport, far_end).await
                    }
                    Err(reason) => Err(reason),
                }
            }
            Endpoint::Http(http) => match http.connect(skipped) {
                Ok((transport, faults)) => {
                    let far_end = FarEnd::Http(faults);
                    Self::open(config, notices, changes, transport, far_end).await
                }
                Err(reason) => Err(reason),
            },
        };
        started.map_err(|reason| format!("MCP server \"{}\" did not start: {reason}", config.name))
    }

    async fn open<T: Transport<RoleClient> + 'static>(
        config: &ServerConfig,
        notices: &Notices,
        changes: &watch::Sender<u64>,
        transport: T,
        far_end: FarEnd,
    ) -> Result<Self, String> {
        let deadline = Instant::now() + config.start_timeout;
        let routes = Routes::default();
        let handler = Handler {
            server: config.name.clone(),
            notices: notices.clone(),
            changes: changes.clone(),
        };
        let handshake = serve_client(handler, Routed::new(transport, routes.clone()));
        let service = match tokio::time::timeout_at(deadline, handshake).await {
            Ok(Ok(service)) => service,
            Ok(Err(error)) => return Err(not_started(&error, far_end).await),
            Err(_) => return Err(too_slow(config, far_end)),
        };
        let connection = Self {
            name: config.name.clone(),
            timeout: config.timeout,
            list_timeout: config.start_timeout,
            peer: service.peer().clone(),
            service: Mutex::new(Some(service)),
            far_end,
            routes,
            changes: changes.subscribe(),
            listing: tokio::sync::Mutex::default(),
            notices: notices.clone(),
        };
        match tokio::time::timeout_at(deadline, connection.refreshed()).await {
            Ok(Ok(_)) => Ok(connection),
            Ok(Err(reason)) => Err(reason),
            Err(_) => Err(too_slow(config, connection.far_end)),
        }
    }

    /// The tools that the server has now.
    pub(crate) async fn tools(&self) -> Result<Listing, String> {
        match tokio::time::timeout(self.list_timeout, self.refreshed()).await {
            Ok(tools) => tools,
            Err(_) => Err(format!(
                "MCP server \"{}\" did not list its tools",
                self.name
            )),
        }
    }

    async fn refreshed(&self) -> Result<Listing, String> {
        let mut listing = self.listing.lock().await;
        let changes = *self.changes.borrow();
        if let Some((seen, tools)) = &*listing
            && *seen == changes
        {
            return Ok(Arc::clone(tools));
        }
        let tools = self.list().await?;
        *listing = Some((changes, Arc::clone(&tools)));
        Ok(tools)
    }

    async fn list(&self) -> Result<Listing, String> {
        let mut listed = Vec::new();
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let page = PaginatedRequestParams::default().with_cursor(cursor);
            let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(page));
            let mut page = match self.peer.send_request(request).await {
                Ok(result) => to_json(result),
                // A server without tools need not know the question.
                Err(ServiceError::McpError(error)) if error.code == ErrorCode::METHOD_NOT_FOUND => {
                    break;
                }
                Err(error) => return Err(self.failed(error).await),
            };
            if let Some(Value::Array(tools)) = page.get_mut("tools").map(Value::take) {
                listed.extend(tools);
            }
            cursor = page
                .get("nextCursor")
                .and_then(Value::as_str)
                .map(str::to_owned);
            if cursor.is_none() {
                break;
            }
        }
        Ok(Arc::new(self.named(listed)))
    }

    /// The tools under the names that they have here; what is no tool is told and left out.
    fn named(&self, listed: Vec<Value>) -> Vec<ListedTool> {
        let mut tools: Vec<ListedTool> = Vec::new();
        for value in listed {
            match ListedTool::read(value) {
                Some(tool) if tools.iter().all(|other| other.name != tool.name) => tools.push(tool),
                Some(tool) => self.warn(&format!(
                    "lists the tool \"{}\" twice; the second is left out",
                    tool.name
                )),
                None => self.warn("lists a tool without a name; it is left out"),
            }
        }
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let full_names = full_names(&self.name, &names);
        for (tool, full_name) in tools.iter_mut().zip(full_names) {
            tool.full_name = full_name;
        }
        tools
    }

    fn warn(&self, sentence: &str) {
        self.notices.send(Notice::Warning(format!(
            "MCP server \"{}\" {sentence}",
            self.name
        )));
    }

    /// Calls a tool by the name that the server gives it.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: &Value,
        invocation: &Invocation<'_>,
        update: &(dyn Fn(Value) + Send + Sync),
    ) -> Result<ToolResult, Throw> {
        let (sender, progress) = mpsc::unbounded_channel();
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let mut request = CallToolRequest::new(params);
        request.extensions_mut().insert(Route(sender));
        let request = ClientRequest::CallToolRequest(request);
        let sent = self
            .peer
            .send_request_with_option(request, PeerRequestOptions::no_options());
        let handle = tokio::select! {
            sent = sent => match sent {
                Ok(handle) => handle,
                Err(error) => return Err(Throw(self.failed(error).await)),
            },
            () = invocation.stop.stopped() => return Err(Throw(ABORTED.to_owned())),
        };
        let token = handle.progress_token.clone();
        let patience = Patience::new(self.timeout.or(invocation.timeout));
        let answer = self
            .answer(handle, progress, patience, invocation, update)
            .await;
        self.routes.forget(&token);
        answer.map(|result| content::tool_result(to_json(result)))
    }

    /// Waits for the answer of a call while its progress passes through.
    async fn answer(
        &self,
        mut handle: RequestHandle<RoleClient>,
        mut progress: mpsc::UnboundedReceiver<ProgressNotificationParam>,
        mut patience: Patience,
        invocation: &Invocation<'_>,
        update: &(dyn Fn(Value) + Send + Sync),
    ) -> Result<ServerResult, Throw> {
        let mut text_so_far = String::new();
        let reason = loop {
            tokio::select! {
                biased;
                Some(progress) = progress.recv() => {
                    patience.renew();
                    if let Some(message) = &progress.message {
                        text_so_far.clone_from(message);
                    }
                    update(as_update(&progress));
                }
                answer = &mut handle.rx => {
                    let answer = answer.unwrap_or(Err(ServiceError::TransportClosed));
                    return match answer {
                        Ok(result) => Ok(result),
                        Err(error) => Err(Throw(self.failed(error).await)),
                    };
                }
                () = invocation.stop.stopped() => break ABORTED.to_owned(),
                timeout = patience.end() => {
                    let who = format!("Tool of MCP server \"{}\"", self.name);
                    break timed_out(&who, timeout);
                }
            }
        };
        // A server that does not read must not keep us.
        let _ = tokio::time::timeout(CANCEL_TIME, handle.cancel(Some(reason.clone()))).await;
        Err(Throw(if text_so_far.is_empty() {
            reason
        } else {
            format!("{text_so_far}\n\n{reason}")
        }))
    }

    /// A failed request in words for the model.
    async fn failed(&self, error: ServiceError) -> String {
        match error {
            ServiceError::McpError(error) => protocol_error(&error),
            ServiceError::TransportSend(error) if matches!(self.far_end, FarEnd::Http(_)) => {
                format!("MCP server \"{}\": {}", self.name, error.error)
            }
            ServiceError::TransportClosed | ServiceError::TransportSend(_) => self.gone().await,
            other => format!("MCP server \"{}\": {other}", self.name),
        }
    }

    async fn gone(&self) -> String {
        let name = &self.name;
        let process = match &self.far_end {
            FarEnd::Process(process) => process,
            FarEnd::Http(faults) => {
                return match faults.take() {
                    Some(fault) => format!("MCP server \"{name}\": {fault}"),
                    None => {
                        format!("MCP server \"{name}\" closed the connection before it answered")
                    }
                };
            }
        };
        let end = process.exit().await;
        let end = end.as_deref().unwrap_or("closed its stdout");
        process.with_stderr(format!("MCP server \"{name}\" {end} before it answered"))
    }

    /// Ends the server: its stdin is closed, then SIGTERM, then SIGKILL to its group.
    pub(crate) async fn close(&self) {
        let service = self
            .service
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(mut service) = service {
            // It has nothing to say any more that anybody waits for.
            let _ = service.close_with_timeout(CANCEL_TIME).await;
        }
        if let FarEnd::Process(process) = &self.far_end {
            process.end().await;
        }
    }
}

/// A result as the JSON that it was.
fn to_json(result: ServerResult) -> Value {
    match result {
        ServerResult::CustomResult(result) => result.0,
        other => serde_json::to_value(other).unwrap_or_default(),
    }
}

pub(super) fn protocol_error(error: &ErrorData) -> String {
    let text = format!("MCP error {}: {}", error.code.0, error.message);
    match &error.data {
        None | Some(Value::Null) => text,
        Some(Value::String(data)) => format!("{text}\n{data}"),
        Some(data) => format!("{text}\n{}", json::compact(data)),
    }
}

/// Tells of lines on a server's stdout that are no messages.
fn skipped(server: &str, notices: &Notices) -> super::lines::Skipped {
    let (server, notices) = (server.to_owned(), notices.clone());
    Arc::new(move |line| {
        notices.send(Notice::ServerLine {
            server: server.clone(),
            line,
        });
    })
}

async fn not_started(error: &ClientInitializeError, far_end: FarEnd) -> String {
    let reason = match error {
        ClientInitializeError::JsonRpcError(error) => protocol_error(error),
        ClientInitializeError::ConnectionClosed(_)
        | ClientInitializeError::TransportError { .. } => {
            let told = match &far_end {
                FarEnd::Process(process) => process.exit().await.map(|exit| format!("it {exit}")),
                FarEnd::Http(faults) => faults.take().map(|fault| fault.0),
            };
            told.unwrap_or_else(|| error.to_string())
        }
        other => other.to_string(),
    };
    give_up(reason, far_end)
}

fn too_slow(config: &ServerConfig, far_end: FarEnd) -> String {
    let seconds = config.start_timeout.as_secs_f64();
    let reason = format!(
        "it was not ready after {seconds} seconds; \"startTimeoutMs\" in its entry sets this limit"
    );
    give_up(reason, far_end)
}

/// The reason with the server's own words; what still runs of it is ended.
fn give_up(reason: String, far_end: FarEnd) -> String {
    let FarEnd::Process(process) = far_end else {
        return reason;
    };
    let reason = process.with_stderr(reason);
    // Joined by nobody: if the runtime ends first, dropping the process kills its group.
    tokio::spawn(async move { process.end().await });
    reason
}
