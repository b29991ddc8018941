//! The server over streamable HTTP: many clients at once, each with a session of its own.
//!
//! Sessions and event streams are the business of the SDK; who may come in is that of [`Access`], and what is no message
//! is answered before it gets to the SDK, in the words of the protocol.

mod access;
mod body;
mod request;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::Serving;
use super::session::Session;
pub use access::{Access, Token};
use body::{Answer, Open};

/// Where the protocol is spoken.
const PATH: &str = "/mcp";

/// How long a session without a sign of life is kept: a tool may be silent for long.
const SESSION_LIFE: Duration = Duration::from_hours(24);
/// How long answers that are ready have to reach their clients at the end, and connections to close.
const LAST_ANSWERS: Duration = Duration::from_secs(2);
const LAST_CONNECTIONS: Duration = Duration::from_millis(500);
/// How long to wait when no connection can be accepted, such as for want of file descriptors.
const BREATHER: Duration = Duration::from_millis(50);

type Service = StreamableHttpService<Session, LocalSessionManager>;

/// What every connection needs.
struct Door {
    service: Service,
    access: Access,
    /// Requests whose answers are on their way.
    requests: Open,
    connections: Open,
    is_closing: watch::Sender<bool>,
}

/// Serves all who come until the server is stopped; then calls that run are answered and connections end.
pub async fn serve_http(
    serving: &Serving,
    listener: TcpListener,
    access: Access,
) -> io::Result<()> {
    let door = Arc::new(Door {
        service: service(serving, &access),
        access,
        requests: Open::default(),
        connections: Open::default(),
        is_closing: watch::Sender::new(false),
    });
    let stop = serving.0.stop.clone();
    let stopped = stop.stopped();
    tokio::pin!(stopped);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stopped => break,
        };
        match accepted {
            Ok((stream, _)) => connect(stream, &door),
            Err(_) => tokio::time::sleep(BREATHER).await,
        }
    }
    drop(listener);
    serving.idle().await;
    let _ = tokio::time::timeout(LAST_ANSWERS, door.requests.none()).await;
    // Streams on which nothing more will come would keep their connections for ever.
    door.service.config.cancellation_token.cancel();
    door.is_closing.send_replace(true);
    let _ = tokio::time::timeout(LAST_CONNECTIONS, door.connections.none()).await;
    Ok(())
}

fn service(serving: &Serving, access: &Access) -> Service {
    let mut config =
        StreamableHttpServerConfig::default().with_max_request_body_bytes(request::MAX_BODY);
    config = config
        .with_allowed_origins(access.origins())
        .enforce_origin_validation();
    config = if access.is_for_any_host() {
        config.disable_allowed_hosts()
    } else {
        config.with_allowed_hosts(access::LOOPBACK_HOSTS)
    };
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.keep_alive = Some(SESSION_LIFE);
    let (serving, count) = (serving.clone(), AtomicU64::new(0));
    let session = move || {
        let number = count.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(Session::numbered(serving.clone(), number))
    };
    StreamableHttpService::new(session, Arc::new(sessions), config)
}

/// Serves a connection on a task of its own, which ends with the connection or at the latest with the runtime.
fn connect(stream: TcpStream, door: &Arc<Door>) {
    // Answers are small and somebody waits for each.
    let _ = stream.set_nodelay(true);
    let counted = door.connections.one_more();
    let mut is_closing = door.is_closing.subscribe();
    let door = Arc::clone(door);
    let service = service_fn(move |request| {
        let door = Arc::clone(&door);
        async move { Ok::<_, Infallible>(door.answer(request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(stream), service);
    tokio::spawn(async move {
        let _counted = counted;
        let mut connection = pin!(connection);
        // A client that breaks off need not be told.
        tokio::select! {
            _ = connection.as_mut() => return,
            _ = is_closing.wait_for(|is_closing| *is_closing) => {}
        }
        connection.as_mut().graceful_shutdown();
        let _ = connection.await;
    });
}

impl Door {
    async fn answer(&self, request: Request<Incoming>) -> Response<Answer> {
        if request.uri().path() != PATH {
            let text = format!("not found: MCP is spoken at {PATH}\n");
            return body::text(StatusCode::NOT_FOUND, text);
        }
        if let Err(refusal) = self.access.admit(request.headers()) {
            return *refusal;
        }
        if request.method() != Method::POST {
            return self.service.handle(request).await.map(Answer::stream);
        }
        let open = self.requests.one_more();
        match request::read(request).await {
            Ok(request) => {
                let response = self.service.handle(request).await;
                response.map(|body| Answer::stream(body).counted(open))
            }
            Err(refusal) => *refusal,
        }
    }
}

/// The address in an URL that a client on this machine can use.
pub fn url(address: SocketAddr) -> String {
    let mut address = address;
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    format!("http://{address}{PATH}")
}
