//! `tools.d` as an MCP server: each `tools/call` is a batch of one, through the same steps as any other call.
//!
//! What the sessions of all clients share is [`Serving`]: the tools, the file queue, and the turn that a tool that
//! insists on sequence takes. Transports are the business of `stdio`, changed manifests that of `reload`.

mod call;
mod http;
mod message;
mod reload;
mod session;
mod stdio;
mod tools;

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use futures_util::future::join_all;
use rmcp::service::{Peer, RoleServer};
use tokio::sync::{Semaphore, watch};

use crate::call::Runner;
use crate::event::{Listener, Notice};
use crate::registry::Registry;
use crate::stop::Stop;

pub use http::{Access, Token, serve_http, url};
pub use reload::{Reload, watch};
pub use stdio::serve_stdio;

/// How long the announcement of changed tools may take.
const ANNOUNCE_TIME: Duration = Duration::from_secs(1);

/// What all sessions of a server share. Cheap to clone.
#[derive(Clone)]
pub struct Serving(Arc<Shared>);

struct Shared {
    runner: RwLock<Runner>,
    listener: Arc<dyn Listener>,
    stop: Stop,
    /// Held for writing by a call that runs alone, for reading by all others.
    turn: tokio::sync::RwLock<()>,
    slots: Option<Semaphore>,
    in_flight: watch::Sender<usize>,
    peers: Mutex<Vec<Peer<RoleServer>>>,
}

impl Serving {
    /// Serves the tools of `runner`; `listener` hears what happens in all calls, and `stop` ends them all.
    pub fn new(runner: Runner, listener: Arc<dyn Listener>, stop: Stop) -> Self {
        let slots = runner.options.jobs.map(|jobs| Semaphore::new(jobs.get()));
        Self(Arc::new(Shared {
            runner: RwLock::new(runner),
            listener,
            stop,
            turn: tokio::sync::RwLock::new(()),
            slots,
            in_flight: watch::Sender::new(0),
            peers: Mutex::new(Vec::new()),
        }))
    }

    fn runner(&self) -> Runner {
        self.0
            .runner
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The tools as they are now.
    pub fn registry(&self) -> Arc<Registry> {
        self.runner().registry
    }

    /// Serves other tools from now on; calls that run keep theirs. Servers that are no longer needed are ended.
    async fn replace(&self, registry: Registry) {
        let unneeded = {
            let mut runner = self
                .0
                .runner
                .write()
                .unwrap_or_else(PoisonError::into_inner);
            let mut registry = registry;
            let unneeded = registry.adopt_servers(&runner.registry);
            *runner = runner.with_registry(Arc::new(registry));
            unneeded
        };
        self.announce().await;
        for client in unneeded {
            client.close().await;
        }
    }

    /// Remembers a client that wants to hear of changes.
    fn welcome(&self, peer: Peer<RoleServer>) {
        let mut peers = self.peers();
        // Over HTTP clients come and go for as long as the server runs.
        peers.retain(|peer| !peer.is_transport_closed());
        peers.push(peer);
    }

    /// Tells all clients that the tools have changed.
    async fn announce(&self) {
        let peers = self.peers().clone();
        // All at the same time: one that does not read must not keep the others.
        let told = peers.iter().map(|peer| async move {
            // A client that is gone need not know.
            let told = peer.notify_tool_list_changed();
            let _ = tokio::time::timeout(ANNOUNCE_TIME, told).await;
        });
        join_all(told).await;
    }

    fn peers(&self) -> MutexGuard<'_, Vec<Peer<RoleServer>>> {
        self.0.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn warn(&self, sentence: impl Into<String>) {
        self.0.listener.notice(Notice::Warning(sentence.into()));
    }

    /// Waits until no call runs. A call whose client is gone is stopped, so this takes no longer than its grace.
    async fn idle(&self) {
        let mut in_flight = self.0.in_flight.subscribe();
        let _ = in_flight.wait_for(|calls| *calls == 0).await;
    }

    /// Runs a call that counts as one in flight, in its turn and in a slot.
    async fn in_turn<R>(&self, alone: bool, run: impl Future<Output = R>) -> R {
        let _counted = InFlight::new(&self.0.in_flight);
        let (_alone, _among_others);
        if alone {
            _alone = self.0.turn.write().await;
        } else {
            _among_others = self.0.turn.read().await;
        }
        let _slot = match &self.0.slots {
            Some(slots) => Some(
                slots
                    .acquire()
                    .await
                    .expect("the semaphore is never closed"),
            ),
            None => None,
        };
        run.await
    }
}

/// A call in flight, counted as long as this lives.
struct InFlight<'a>(&'a watch::Sender<usize>);

impl<'a> InFlight<'a> {
    fn new(count: &'a watch::Sender<usize>) -> Self {
        count.send_modify(|calls| *calls += 1);
        Self(count)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|calls| *calls -= 1);
    }
}
