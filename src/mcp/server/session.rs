//! One client of the server: what it asks, answered.

use std::borrow::Cow;
use std::sync::Mutex;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorCode,
    Implementation, ListToolsResult, PaginatedRequestParams, ProtocolVersion, RequestId,
    ServerCapabilities, ServerConfig,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer};
use rmcp::{ErrorData, ServerHandler};
use serde_json::{Value, json};

use crate::format;
use crate::message::ToolCall;

use super::tools::declaration;
use super::{Serving, call};

/// The level from which a client wants log messages; none until it asks for them.
#[expect(
    deprecated,
    reason = "the SDK marks what the newest protocol drops; today's clients ask for logs"
)]
pub(super) type LogLevel = rmcp::model::LoggingLevel;

/// What one client sees.
pub(super) struct Session {
    serving: Serving,
    /// Which of many it is; the only one has no number.
    number: Option<u64>,
    log_level: Mutex<Option<LogLevel>>,
}

impl Session {
    pub(super) fn new(serving: Serving) -> Self {
        Self {
            serving,
            number: None,
            log_level: Mutex::new(None),
        }
    }

    /// One of many sessions: their clients count their requests alike, so a call's id begins with the number.
    pub(super) fn numbered(serving: Serving, number: u64) -> Self {
        Self {
            number: Some(number),
            ..Self::new(serving)
        }
    }

    /// The call of a request; its id is for events and the journal. Text is arguments text, as in every message.
    fn tool_call(&self, request: &RequestId, name: &str, arguments: Value) -> ToolCall {
        let (arguments, arguments_error) = match arguments {
            Value::String(text) => match format::parse_arguments(&text) {
                Ok(arguments) => (arguments, None),
                Err(reason) => (json!({}), Some(reason)),
            },
            arguments => (arguments, None),
        };
        let id = match self.number {
            Some(number) => format!("{number}.{request}"),
            None => request.to_string(),
        };
        ToolCall {
            id,
            name: name.to_owned(),
            arguments,
            arguments_error,
        }
    }

    fn log_level(&self) -> Option<LogLevel> {
        *self
            .log_level
            .lock()
            .expect("nothing panics while it is held")
    }
}

impl ServerHandler for Session {
    #[expect(
        deprecated,
        reason = "the SDK marks what the newest protocol drops; today's clients ask for logs"
    )]
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_logging()
            .build();
        ServerConfig::new(capabilities)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
            .with_server_info(Implementation::new("pitool", env!("CARGO_PKG_VERSION")))
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        // What has a handshake: the newest version is not settled in the clients that exist.
        Cow::Borrowed(ProtocolVersion::known_up_to(
            &ProtocolVersion::LATEST_WITH_INITIALIZE,
        ))
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.serving.welcome(context.peer);
    }

    #[expect(
        deprecated,
        reason = "the SDK marks what the newest protocol drops; today's clients ask for logs"
    )]
    async fn set_level(
        &self,
        request: rmcp::model::SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        *self
            .log_level
            .lock()
            .expect("nothing panics while it is held") = Some(request.level);
        Ok(())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let registry = self.serving.registry();
        let of_servers = registry.server_tools().await;
        for problem in &of_servers.problems {
            self.serving.warn(problem.to_string());
        }
        let all = registry.tools().iter().chain(&of_servers.tools);
        Ok(ListToolsResult::with_all_items(
            all.map(|tool| declaration(tool)).collect(),
        ))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let call = self.tool_call(&context.id, &request.name, arguments);
        let call = call::run(&self.serving, &call, self.log_level(), &context);
        // Boxed, so that a request that waits is small.
        Box::pin(call).await.map(CallToolResponse::Complete)
    }

    /// What the SDK does not recognise. A call whose arguments are no object comes here too: its error is for the model.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method != "tools/call" {
            return Err(ErrorData::new(
                ErrorCode::METHOD_NOT_FOUND,
                request.method,
                None,
            ));
        }
        let params = request.params.unwrap_or_default();
        let Some(name) = params.get("name").and_then(Value::as_str) else {
            return Err(ErrorData::invalid_params(
                "tools/call needs the name of a tool",
                None,
            ));
        };
        let arguments = params.get("arguments").cloned();
        let arguments = arguments.unwrap_or_else(|| json!({}));
        let call = self.tool_call(&context.id, name, arguments);
        let call = call::run(&self.serving, &call, self.log_level(), &context);
        let result = Box::pin(call).await?;
        let mut result = serde_json::to_value(result)
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        // A field of the newest protocol, which is not spoken; where it knows the result, the SDK leaves it out.
        if let Some(fields) = result.as_object_mut() {
            fields.shift_remove("resultType");
        }
        Ok(CustomResult::new(result))
    }
}
