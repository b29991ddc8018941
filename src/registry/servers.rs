//! The MCP servers of a registry: started when the first call needs them, and found by the names of their tools.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::join_all;

use crate::mcp::{Client, Hear, Listing, Notices, ServerConfig};
use crate::tool::{Replay, Tool};

use super::{Problem, Registry};

/// A server with its tools as they are known.
#[derive(Debug, Clone)]
pub(super) struct Server {
    client: Arc<Client>,
    /// The tools made of the listing beside them; made again only for another listing, as they hold compiled schemas.
    known: Arc<Mutex<Option<Known>>>,
}

/// A listing and the tools made of it.
type Known = (Listing, Vec<Arc<Tool>>);

/// The servers, in manifest order.
#[derive(Debug, Clone, Default)]
pub(super) struct Servers {
    all: Vec<Server>,
    notices: Notices,
}

impl Server {
    /// The tools that the server has now; starts it if nobody did.
    async fn tools(&self) -> Result<Vec<Arc<Tool>>, String> {
        let listing = self.client.tools().await?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, tools)) = &*known
            && Arc::ptr_eq(of, &listing)
        {
            return Ok(tools.clone());
        }
        let tools: Vec<Arc<Tool>> = listing
            .iter()
            .map(|listed| Arc::new(Tool::remote(&self.client, listed)))
            .collect();
        *known = Some((listing, tools.clone()));
        Ok(tools)
    }

    /// The tools as they were last heard of; none of a server that was not started.
    fn known_tools(&self) -> Vec<Arc<Tool>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known
            .as_ref()
            .map(|(_, tools)| tools.clone())
            .unwrap_or_default()
    }
}

/// The tools of servers, and why some could not be asked.
#[derive(Debug, Default)]
pub struct ServerTools {
    /// In manifest order, within a server in its own.
    pub tools: Vec<Arc<Tool>>,
    /// One per server that did not start.
    pub problems: Vec<Problem>,
}

impl Registry {
    /// Adds a server behind the others; one whose tools would have the names of another's is refused, and that other
    /// server is the error.
    pub fn add_server(&mut self, config: ServerConfig) -> Result<(), Arc<Client>> {
        let client = Client::new(config, self.servers.notices.clone());
        if let Some(first) = self
            .servers()
            .find(|other| other.prefix() == client.prefix())
        {
            return Err(Arc::clone(first));
        }
        self.servers.all.push(Server {
            client,
            known: Arc::default(),
        });
        Ok(())
    }

    /// The MCP servers, in manifest order.
    pub fn servers(&self) -> impl Iterator<Item = &Arc<Client>> {
        self.servers.all.iter().map(|server| &server.client)
    }

    /// The server that would be asked first for a tool of this name.
    pub fn server_of(&self, name: &str) -> Option<&Arc<Client>> {
        if !self.is_wanted(name) {
            return None;
        }
        self.candidates(name).first().map(|server| &server.client)
    }

    /// Whether a call to the tool may be made again when nobody knows how it ended; asks no server.
    pub fn is_safe_to_replay(&self, name: &str) -> bool {
        match self.get(name) {
            Some(tool) => tool.replay == Replay::Safe,
            None => self
                .server_of(name)
                .is_some_and(|client| client.config().is_safe_to_replay),
        }
    }

    /// Lets `hear` hear what the servers say: lines of stderr, warnings. The first listener stays.
    pub fn hear_servers(&self, hear: Hear) {
        self.servers.notices.hear(hear);
    }

    /// The tool of exactly this name, also of a server, which is started if it was not. The error says why a server
    /// that may have the tool could not be asked. Giving up waiting does not stop the start.
    pub async fn find(&self, name: &str) -> Result<Option<Arc<Tool>>, String> {
        if let Some(tool) = self.get(name) {
            return Ok(Some(Arc::clone(tool)));
        }
        if !self.is_wanted(name) {
            return Ok(None);
        }
        let mut failure = None;
        for server in self.candidates(name) {
            match server.tools().await {
                Ok(tools) => {
                    let found = tools.into_iter().find(|tool| tool.name() == name);
                    if found.is_some() {
                        return Ok(found);
                    }
                }
                Err(reason) => failure = failure.or(Some(reason)),
            }
        }
        failure.map_or(Ok(None), Err)
    }

    /// Starts the servers that will be asked for tools of these names, so that they start at the same time and not one
    /// after the other. Inside a runtime.
    pub fn expect<'n>(&self, names: impl IntoIterator<Item = &'n str>) {
        for name in names {
            if self.get(name).is_none()
                && let Some(client) = self.server_of(name)
            {
                client.start_once();
            }
        }
    }

    /// The servers that may have the tool: those whose names begin its own, the longest first.
    fn candidates(&self, name: &str) -> Vec<&Server> {
        let all = self.servers.all.iter();
        let mut candidates: Vec<&Server> = all
            .filter(|server| name.starts_with(server.client.prefix()))
            .collect();
        candidates.sort_by_key(|server| std::cmp::Reverse(server.client.prefix().len()));
        candidates
    }

    /// All tools of all servers, which are started at the same time.
    pub async fn server_tools(&self) -> ServerTools {
        let asked = self.servers.all.iter().map(Server::tools);
        let mut all = ServerTools::default();
        for (server, tools) in self.servers.all.iter().zip(join_all(asked).await) {
            match tools {
                Ok(tools) => {
                    let is_new = |tool: &Arc<Tool>| {
                        self.is_wanted(tool.name()) && self.get(tool.name()).is_none()
                    };
                    all.tools.extend(tools.into_iter().filter(is_new));
                }
                Err(reason) => {
                    let file = &server.client.config().source;
                    all.problems.push(Problem::of_file(file, reason));
                }
            }
        }
        all
    }

    /// Starts all servers and takes their tools up like all others: what looking at tools does when it is allowed to run
    /// something. The answer says which servers did not start.
    pub async fn connect(&mut self) -> Vec<Problem> {
        let ServerTools { tools, problems } = self.server_tools().await;
        for tool in tools {
            self.add(tool);
        }
        problems
    }

    /// The tools of servers that are known without asking.
    pub(super) fn known_server_tools(&self) -> Vec<Arc<Tool>> {
        let known = self.servers.all.iter().flat_map(Server::known_tools);
        known.filter(|tool| self.is_wanted(tool.name())).collect()
    }

    /// Takes over the servers of `old` that are the same here, running or not: what a reload does.
    /// The answer are those that are no longer needed.
    pub fn adopt_servers(&mut self, old: &Self) -> Vec<Arc<Client>> {
        for server in &mut self.servers.all {
            let same = |other: &&Server| other.client.config().is_same(server.client.config());
            if let Some(other) = old.servers.all.iter().find(same) {
                *server = other.clone();
            }
        }
        let is_left = |client: &&Arc<Client>| !self.servers().any(|own| Arc::ptr_eq(own, client));
        old.servers().filter(is_left).cloned().collect()
    }

    /// Ends all servers that run, at the same time. None starts again.
    pub async fn close_servers(&self) {
        join_all(self.servers().map(|client| client.close())).await;
    }
}
