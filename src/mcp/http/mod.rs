//! Servers behind a `url`: streamable HTTP (MCP 2025-11-25, basic/transports).
//!
//! Sessions, event streams and their resumption are the business of the SDK. What is here is the requests themselves,
//! so that every answer keeps all its fields and every failure is told in words that name the address and the status.

mod client;
mod fault;
mod seal;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Once};
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use reqwest::redirect::{Action, Attempt, Policy};
use rmcp::model::ServerJsonRpcMessage;
use rmcp::service::{RoleClient, TxJsonRpcMessage};
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
};
use rmcp::transport::{Transport, WorkerTransport};

use crate::json::pointer::escaped;
use crate::program::environment::VariableText;
use crate::program::{ProgramError, Throw};

use super::lines::{MAX_LINE, Skipped};
use client::HttpClient;
pub(crate) use fault::{Fault, Faults};

/// How long a connection to a server may take to be there.
const CONNECT_TIME: Duration = Duration::from_secs(30);
/// How often a broken stream is asked for again before its call fails; the waits double from the first on.
const RESUMPTIONS: usize = 4;
const FIRST_RESUMPTION: Duration = Duration::from_millis(250);
/// More requests at once than anybody makes: the bound is that of the run.
const REQUESTS: usize = 4096;
/// How many redirects within one server are followed.
const REDIRECTS: usize = 5;

/// Headers that the protocol or the connection sets.
const OWN_HEADERS: [HeaderName; 4] = [ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HOST];
const OWN_PREFIXES: [&str; 2] = ["mcp-", "last-event-id"];

/// A server that somebody else runs.
#[derive(Debug)]
pub(crate) struct HttpConfig {
    url: VariableText,
    headers: Vec<(HeaderName, VariableText)>,
    /// The address as its file writes it, without what may be secret.
    shown: Arc<str>,
}

impl HttpConfig {
    /// Reads `url` and `headers` of an entry.
    pub(super) fn new(url: &str, headers: &BTreeMap<String, String>) -> Result<Self, ProgramError> {
        let template = VariableText::parse(url).map_err(|text| ProgramError::new("/url", text))?;
        if !url.contains("${") {
            address(url).map_err(|text| ProgramError::new("/url", text))?;
        }
        let headers = headers
            .iter()
            .map(|(name, value)| header(name, value))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            url: template,
            headers,
            shown: shown(url).into(),
        })
    }

    /// A transport to the server, and what goes wrong on it. The error is a sentence for the model; inside a runtime.
    pub(super) fn connect(&self, skipped: Skipped) -> Result<(HttpTransport, Faults), String> {
        let (url, headers) = self.filled_in().map_err(|Throw(message)| message)?;
        let url = address(&url).map_err(|text| format!("{}: {text}", self.shown))?;
        let faults = Faults::default();
        let client = HttpClient {
            inner: requests(&url).map_err(|error| format!("{}: {error}", self.shown))?,
            shown: Arc::clone(&self.shown),
            skipped,
            faults: faults.clone(),
        };
        let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
            .max_concurrent_requests(REQUESTS);
        config.custom_headers = headers;
        config.max_sse_event_size = MAX_LINE;
        config.max_json_response_size = MAX_LINE;
        let mut resumption = ExponentialBackoff::default();
        resumption.max_times = Some(RESUMPTIONS);
        resumption.base_duration = FIRST_RESUMPTION;
        config.retry_config = Arc::new(resumption);
        let transport = StreamableHttpClientTransport::with_client(client, config);
        Ok((HttpTransport(transport), faults))
    }

    fn filled_in(&self) -> Result<(String, HashMap<HeaderName, HeaderValue>), Throw> {
        let url = self.url.value("the server's url")?;
        let url = url.into_string().map_err(|_| {
            Throw("The server's url is made from a variable that is not UTF-8".to_owned())
        })?;
        let mut headers = HashMap::new();
        for (name, value) in &self.headers {
            let value = value.value(&format!("the server's header {name}"))?;
            let mut value = HeaderValue::from_bytes(value.as_encoded_bytes()).map_err(|_| {
                Throw(format!(
                    "The server's header {name} would hold a line break or another control character"
                ))
            })?;
            value.set_sensitive(true);
            headers.insert(name.clone(), value);
        }
        Ok((url, headers))
    }
}

/// The address of a server.
fn address(url: &str) -> Result<Url, String> {
    let url = Url::parse(url).map_err(|error| format!("this is no address: {error}"))?;
    if matches!(url.scheme(), "http" | "https") && url.has_host() {
        Ok(url)
    } else {
        Err("expected an address that starts with http:// or https://".to_owned())
    }
}

fn header(name: &str, value: &str) -> Result<(HeaderName, VariableText), ProgramError> {
    let pointer = format!("/headers/{}", escaped(name));
    let wrong = |message: String| ProgramError::new(pointer.clone(), message);
    let header = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| wrong("this is no name of a header".to_owned()))?;
    let is_own = OWN_HEADERS.contains(&header)
        || OWN_PREFIXES
            .iter()
            .any(|own| header.as_str().starts_with(own));
    if is_own {
        return Err(wrong("this header is set by the protocol".to_owned()));
    }
    if value.contains(['\r', '\n', '\0']) {
        return Err(wrong("a header cannot hold a line break".to_owned()));
    }
    let value = VariableText::parse(value).map_err(wrong)?;
    Ok((header, value))
}

/// An address without user, password, query and fragment; its variables stay names.
pub(super) fn shown(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let end = rest.find('/').unwrap_or(rest.len());
    let host = rest[..end].rfind('@').map_or(0, |at| at + 1);
    format!("{scheme}://{}", &rest[host..])
}

fn requests(url: &Url) -> Result<reqwest::Client, reqwest::Error> {
    static PROVIDER: Once = Once::new();
    // Fails only if the program that uses the library has chosen one already: then that is it.
    PROVIDER.call_once(|| {
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    let builder = reqwest::Client::builder()
        .user_agent(concat!("pitool/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIME)
        .redirect(Policy::custom(within_server));
    // What is on this machine is not behind a proxy.
    let builder = if is_here(url) {
        builder.no_proxy()
    } else {
        builder
    };
    builder.build()
}

fn is_here(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_loopback = |ip: std::net::IpAddr| ip.is_loopback();
    host == "localhost" || host.parse().is_ok_and(is_loopback)
}

/// Follows a redirect that keeps the request as it is and stays with the server: headers may hold secrets.
fn within_server(attempt: Attempt<'_>) -> Action {
    let keeps_request = matches!(attempt.status().as_u16(), 307 | 308);
    let is_same = attempt
        .previous()
        .first()
        .is_some_and(|first| first.origin() == attempt.url().origin());
    if keeps_request && is_same && attempt.previous().len() <= REDIRECTS {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

/// The way to a server; results come out as the JSON that they were.
pub(super) struct HttpTransport(
    WorkerTransport<
        rmcp::transport::streamable_http_client::StreamableHttpClientWorker<HttpClient>,
    >,
);

impl Transport<RoleClient> for HttpTransport {
    type Error = Fault;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let sent = self.0.send(message);
        async move { sent.await.map_err(Fault::from) }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.0.receive().await.map(seal::opened)
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.0.close().await.map_err(Fault::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn case(url: &str, expected: &str) {
        assert_eq!(shown(url), expected);
    }

    #[test]
    fn addresses_are_shown_without_secrets() {
        case("https://h:1/mcp", "https://h:1/mcp");
        case("https://me:secret@h/mcp?key=secret#x", "https://h/mcp");
        case("https://h/${KEY}/mcp?k=${K}", "https://h/${KEY}/mcp");
        case("https://h?a=b@c", "https://h");
        case("https://h/a@b", "https://h/a@b");
        case("${URL}", "${URL}");
    }

    #[track_caller]
    fn wrong(url: &str, headers: &[(&str, &str)], pointer: &str, message: &str) {
        let headers = headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let error = HttpConfig::new(url, &headers).unwrap_err();
        assert_eq!(
            (error.pointer.as_str(), error.message.as_str()),
            (pointer, message)
        );
    }

    #[test]
    fn wrong_addresses_and_headers_are_named() {
        let expected = "expected an address that starts with http:// or https://";
        wrong("ftp://h/", &[], "/url", expected);
        wrong("data:x", &[], "/url", expected);
        wrong(
            "/mcp",
            &[],
            "/url",
            "this is no address: relative URL without a base",
        );
        wrong("${", &[], "/url", "`${` without `}`");
        let url = "http://h";
        wrong(
            url,
            &[("a b", "")],
            "/headers/a b",
            "this is no name of a header",
        );
        let own = "this header is set by the protocol";
        wrong(url, &[("Accept", "x")], "/headers/Accept", own);
        wrong(
            url,
            &[("MCP-Session-Id", "x")],
            "/headers/MCP-Session-Id",
            own,
        );
        wrong(
            url,
            &[("X", "a\nb")],
            "/headers/X",
            "a header cannot hold a line break",
        );
    }

    #[test]
    fn what_is_here_is_behind_no_proxy() {
        let here = |url: &str| is_here(&Url::parse(url).unwrap());
        assert!(here("http://127.0.0.1:1/") && here("http://[::1]/") && here("http://localhost/"));
        assert!(!here("http://example.org/") && !here("http://10.0.0.1/"));
    }
}
