//! Brings progress of a server to the call that it belongs to, before the answer of that call.
//!
//! The SDK gives every notification to a task of its own, which may come after the answer. So a transport is wrapped:
//! the way of a call's progress is learned when its request is sent, and progress is taken out where it comes in.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{
    GetExtensions as _, GetMeta as _, JsonRpcMessage, ProgressNotificationParam, ProgressToken,
    ServerJsonRpcMessage, ServerNotification,
};
use rmcp::service::{RoleClient, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::mpsc::UnboundedSender;

/// Where the progress of a call goes; an extension of its request.
#[derive(Debug, Clone)]
pub(crate) struct Route(pub(crate) UnboundedSender<ProgressNotificationParam>);

/// The routes of all calls in flight.
#[derive(Debug, Clone, Default)]
pub(crate) struct Routes(Arc<Mutex<HashMap<ProgressToken, Route>>>);

impl Routes {
    fn lock(&self) -> MutexGuard<'_, HashMap<ProgressToken, Route>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets the route of a call that has ended.
    pub(crate) fn forget(&self, token: &ProgressToken) {
        self.lock().remove(token);
    }
}

/// A transport whose progress notifications go their own way.
pub(crate) struct Routed<T> {
    inner: T,
    routes: Routes,
}

impl<T> Routed<T> {
    pub(crate) fn new(inner: T, routes: Routes) -> Self {
        Self { inner, routes }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Routed<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        if let JsonRpcMessage::Request(request) = &message
            && let Some(route) = request.request.extensions().get::<Route>()
            && let Some(token) = request.request.get_meta().get_progress_token()
        {
            self.routes.lock().insert(token, route.clone());
        }
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let message = self.inner.receive().await?;
            match message {
                JsonRpcMessage::Notification(notification) => match notification.notification {
                    ServerNotification::ProgressNotification(progress) => {
                        self.pass_on(progress.params);
                    }
                    other => return Some(JsonRpcMessage::notification(other)),
                },
                other => return Some(other),
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}

impl<T> Routed<T> {
    fn pass_on(&self, progress: ProgressNotificationParam) {
        // Progress of a call that has ended already is of no use.
        if let Some(Route(sender)) = self.routes.lock().get(&progress.progress_token) {
            let _ = sender.send(progress);
        }
    }
}
