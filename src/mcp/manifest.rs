//! `mcpServers` files, as other clients of MCP read them.
//!
//! Files are shared with other clients, so a field that is unknown here is a warning; everything that is known must be
//! right. A server that is switched off is not looked at any further.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::{JsonSchema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use crate::json::pointer::escaped;
use crate::manifest::Fault;
use crate::program::ProgramError;
use crate::program::environment::{EnvironmentTemplate, Inherit, VariableText};

use super::http::HttpConfig;
use super::names::sanitized;

/// How long a server may take to start when its entry does not say: its first start may download it.
const START_TIMEOUT: Duration = Duration::from_mins(1);

/// A file with MCP servers, as other clients read it too.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "Servers", transform = open)]
pub(crate) struct ServersManifest {
    /// The JSON Schema of this file, for editors.
    #[serde(rename = "$schema", default)]
    #[schemars(with = "Value")]
    _schema: IgnoredAny,
    /// A remark; nobody reads it.
    #[serde(rename = "$comment", default)]
    #[schemars(with = "Value")]
    _comment: IgnoredAny,
    /// The servers by name; their tools are called `mcp__SERVER__TOOL`.
    mcp_servers: Entries,
}

/// The servers in the order of the file.
#[derive(Debug)]
struct Entries(Vec<(String, Entry)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Written;

        impl<'de> Visitor<'de> for Written {
            type Value = Entries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of servers")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }

        deserializer.deserialize_map(Written)
    }
}

impl JsonSchema for Entries {
    fn schema_name() -> Cow<'static, str> {
        "ServerEntries".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> schemars::Schema {
        let entry = generator.subschema_for::<Entry>();
        json_schema!({"type": "object", "additionalProperties": entry})
    }
}

/// An unknown field of a file that other clients read too is a warning here, nothing that an editor should refuse.
fn open(schema: &mut schemars::Schema) {
    schema.remove("additionalProperties");
}

/// One server as its file writes it.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "Server", transform = open)]
struct Entry {
    /// The transport: `stdio` or `http`; what it is shows from `command` or `url` too.
    #[serde(rename = "type")]
    kind: Option<String>,
    /// The program of a server that is a process; `${NAME}` stands for a variable.
    command: Option<String>,
    /// Its arguments; `${NAME}` stands for a variable.
    args: Vec<String>,
    /// Variables to add to its environment, which is a short one otherwise.
    env: BTreeMap<String, String>,
    /// Whether it gets all of pitool's environment.
    inherit_env: bool,
    /// Its working directory.
    cwd: Option<String>,
    /// The address of a server behind streamable HTTP.
    url: Option<String>,
    /// Headers of every request to it.
    headers: BTreeMap<String, String>,
    /// Seconds that a call may go without an answer or a sign of progress.
    timeout: Option<f64>,
    /// Milliseconds that the start may take; default 60000.
    start_timeout_ms: Option<u64>,
    /// `false` switches the server off.
    enabled: Option<bool>,
    /// `true` switches the server off.
    disabled: bool,
    /// Whether a call whose outcome is unknown may be made again.
    replay: Replay,
}

/// Whether a call may be made again when nobody knows how it ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ServerReplay")]
enum Replay {
    /// Its effect must not happen twice.
    #[default]
    Never,
    /// Running it twice is as good as once.
    Safe,
}

/// A server that can be started: checked, but nothing is looked up yet.
#[derive(Debug)]
pub struct ServerConfig {
    /// Its name in the file.
    pub name: String,
    /// The file that it comes from.
    pub source: PathBuf,
    /// How long a call may go without an answer or a sign of progress.
    pub timeout: Option<Duration>,
    /// How long the start may take, until the tools are known.
    pub start_timeout: Duration,
    /// Whether a call may be made again when nobody knows how it ended.
    pub is_safe_to_replay: bool,
    pub(crate) endpoint: Endpoint,
    written: Entry,
}

impl ServerConfig {
    /// Whether both say the same of the same server.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (&self.name, &self.source, &self.written) == (&other.name, &other.source, &other.written)
    }
}

/// Where a server is.
#[derive(Debug)]
pub(crate) enum Endpoint {
    Process(Box<ProcessConfig>),
    Http(Box<HttpConfig>),
}

/// A server that is a process of ours.
#[derive(Debug)]
pub(crate) struct ProcessConfig {
    pub(crate) command: VariableText,
    pub(crate) args: Vec<VariableText>,
    pub(crate) env: EnvironmentTemplate,
    pub(crate) cwd: Option<VariableText>,
    /// The folder of the file: what a command with a `/` is relative to.
    pub(crate) home: PathBuf,
}

impl ServersManifest {
    /// The servers that are switched on, or all that is wrong with them. `home` is the file's folder.
    pub(crate) fn into_servers(
        self,
        file: &Path,
        home: &Path,
    ) -> Result<Vec<ServerConfig>, Vec<Fault>> {
        let mut servers: Vec<ServerConfig> = Vec::new();
        let mut faults = Vec::new();
        for (name, entry) in self.mcp_servers.0 {
            if entry.disabled || entry.enabled == Some(false) {
                continue;
            }
            let pointer = pointer(&name);
            if let Some(first) = servers.iter().find(|first| same_name(&first.name, &name)) {
                faults.push(Fault::new(pointer, second_of_its_name(&name, &first.name)));
                continue;
            }
            match entry.into_server(name, file, home) {
                Ok(server) => servers.push(server),
                Err(fault) => faults.push(within(&pointer, fault)),
            }
        }
        if faults.is_empty() {
            Ok(servers)
        } else {
            Err(faults)
        }
    }
}

/// Whether the tools of two servers would have the same names.
pub(crate) fn same_name(one: &str, other: &str) -> bool {
    sanitized(one) == sanitized(other)
}

/// Why the second of two such servers is refused.
pub(crate) fn second_of_its_name(name: &str, first: &str) -> String {
    let prefix = sanitized(name);
    format!("the tools of \"{name}\" and of \"{first}\" would both be named mcp__{prefix}__*")
}

/// The JSON Pointer of a server's entry.
pub(crate) fn pointer(name: &str) -> String {
    format!("/mcpServers/{}", escaped(name))
}

fn within(pointer: &str, fault: ProgramError) -> Fault {
    Fault::new(format!("{pointer}{}", fault.pointer), fault.message)
}

fn wrong(pointer: impl Into<String>, message: impl Into<String>) -> ProgramError {
    ProgramError {
        pointer: pointer.into(),
        message: message.into(),
    }
}

fn text(value: &str, pointer: &str) -> Result<VariableText, ProgramError> {
    VariableText::parse(value).map_err(|message| wrong(pointer, message))
}

impl Entry {
    fn into_server(
        self,
        name: String,
        file: &Path,
        home: &Path,
    ) -> Result<ServerConfig, ProgramError> {
        if name.is_empty() {
            return Err(wrong("", "a server needs a name"));
        }
        let endpoint = self.endpoint(home)?;
        Ok(ServerConfig {
            name,
            source: file.to_owned(),
            timeout: self.timeout()?,
            start_timeout: self
                .start_timeout_ms
                .map_or(START_TIMEOUT, Duration::from_millis),
            is_safe_to_replay: self.replay == Replay::Safe,
            endpoint,
            written: self,
        })
    }

    fn timeout(&self) -> Result<Option<Duration>, ProgramError> {
        let Some(seconds) = self.timeout else {
            return Ok(None);
        };
        match Duration::try_from_secs_f64(seconds) {
            Ok(timeout) if !timeout.is_zero() => Ok(Some(timeout)),
            _ => Err(wrong("/timeout", "expected a number of seconds above 0")),
        }
    }

    fn endpoint(&self, home: &Path) -> Result<Endpoint, ProgramError> {
        let is_http = self.url.is_some();
        match self.kind.as_deref() {
            None => {}
            Some("stdio") if !is_http => {}
            Some("http" | "streamable-http" | "streamableHttp" | "streamable_http") if is_http => {}
            Some("stdio") => {
                return Err(wrong(
                    "/type",
                    "a server of type \"stdio\" has a \"command\", no \"url\"",
                ));
            }
            Some("http" | "streamable-http" | "streamableHttp" | "streamable_http") => {
                return Err(wrong("/type", "a server of this type needs a \"url\""));
            }
            Some("sse") => {
                let message =
                    "the transport \"sse\" was replaced by \"http\" in 2025 and is not spoken here";
                return Err(wrong("/type", message));
            }
            Some(_) => return Err(wrong("/type", "expected \"stdio\" or \"http\"")),
        }
        match (&self.command, &self.url) {
            (Some(command), None) => Ok(Endpoint::Process(Box::new(self.process(command, home)?))),
            (None, Some(url)) => Ok(Endpoint::Http(Box::new(HttpConfig::new(
                url,
                &self.headers,
            )?))),
            (Some(_), Some(_)) => Err(wrong(
                "/url",
                "a server has a \"command\" or a \"url\", not both",
            )),
            (None, None) => Err(wrong("", "a server needs a \"command\" or a \"url\"")),
        }
    }

    fn process(&self, command: &str, home: &Path) -> Result<ProcessConfig, ProgramError> {
        if command.trim().is_empty() {
            return Err(wrong("/command", "expected a program"));
        }
        let args = self.args.iter().enumerate();
        let inherit = if self.inherit_env {
            Inherit::All
        } else {
            Inherit::Short
        };
        Ok(ProcessConfig {
            command: text(command, "/command")?,
            args: args
                .map(|(index, arg)| text(arg, &format!("/args/{index}")))
                .collect::<Result<_, _>>()?,
            env: EnvironmentTemplate::new(&self.env, inherit)?,
            cwd: self
                .cwd
                .as_deref()
                .map(|cwd| text(cwd, "/cwd"))
                .transpose()?,
            home: home.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{self, At};

    /// Reads a file's text: its servers, or what is wrong.
    fn read(text: &str) -> Result<Vec<ServerConfig>, Vec<Fault>> {
        let value: Value = serde_json::from_str(text).unwrap();
        let (read, faults) = manifest::read::<ServersManifest>(text, &value);
        match read {
            Some(read) => read.into_servers(Path::new("t/s.json"), Path::new("/t")),
            None => Err(faults),
        }
    }

    #[track_caller]
    fn wrong(text: &str, pointer: &str, message: &str) {
        let faults = read(text).unwrap_err();
        let At::Pointer(at, _) = &faults[0].at else {
            panic!("{faults:?}")
        };
        assert_eq!(
            (at.as_str(), faults[0].message.as_str()),
            (pointer, message)
        );
        assert_eq!(faults.len(), 1, "{faults:?}");
    }

    #[test]
    fn servers_come_in_the_order_of_the_file() {
        let servers = read(
            r#"{"mcpServers": {
                "z": {"command": "npx", "args": ["-y", "pkg"], "env": {"TOKEN": "${HOME}"}, "timeout": 1.5},
                "off": {"command": "x", "disabled": true}, "off2": {"enabled": false},
                "a": {"type": "stdio", "command": "a", "startTimeoutMs": 5, "replay": "safe"}}}"#,
        )
        .unwrap();
        let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
        assert_eq!(names, ["z", "a"]);
        let [z, a] = &servers[..] else { panic!() };
        assert_eq!(
            (z.timeout, z.start_timeout),
            (Some(Duration::from_millis(1500)), Duration::from_mins(1))
        );
        assert!(!z.is_safe_to_replay && a.is_safe_to_replay);
        assert_eq!(
            (a.timeout, a.start_timeout),
            (None, Duration::from_millis(5))
        );
        assert!(z.is_same(z) && !z.is_same(a));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let entry = |entry: &str| format!(r#"{{"mcpServers": {{"a/b": {entry}}}}}"#);
        let at = |field: &str| format!("/mcpServers/a~1b{field}");
        wrong(
            &entry("{}"),
            &at(""),
            "a server needs a \"command\" or a \"url\"",
        );
        wrong(
            &entry(r#"{"command": "a", "url": "http://x"}"#),
            &at("/url"),
            "a server has a \"command\" or a \"url\", not both",
        );
        wrong(
            &entry(r#"{"url": "x"}"#),
            &at("/url"),
            "this is no address: relative URL without a base",
        );
        wrong(
            &entry(r#"{"type": "http", "command": "a"}"#),
            &at("/type"),
            "a server of this type needs a \"url\"",
        );
        wrong(
            &entry(r#"{"command": "a", "timeout": 0}"#),
            &at("/timeout"),
            "expected a number of seconds above 0",
        );
        wrong(
            &entry(r#"{"command": "a", "args": ["${"]}"#),
            &at("/args/0"),
            "`${` without `}`",
        );
        let message = "variables named PITOOL_* are set by pitool alone";
        wrong(
            &entry(r#"{"command": "a", "env": {"PITOOL_X": "1"}}"#),
            &at("/env/PITOOL_X"),
            message,
        );
        wrong(
            r#"{"mcpServers": []}"#,
            "/mcpServers",
            "expected an object, got array",
        );
    }

    #[test]
    fn two_servers_of_one_name_are_refused() {
        wrong(
            r#"{"mcpServers": {"my.fs": {"command": "a"}, "my-fs": {"command": "b"}}}"#,
            "/mcpServers/my-fs",
            "the tools of \"my-fs\" and of \"my.fs\" would both be named mcp__my_fs__*",
        );
        let same = r#"{"mcpServers": {"a": {"command": "a"}, "a": {"command": "b"}}}"#;
        wrong(
            same,
            "/mcpServers/a",
            "the tools of \"a\" and of \"a\" would both be named mcp__a__*",
        );
    }

    #[test]
    fn unknown_fields_leave_the_servers_readable() {
        let text = r#"{"mcpServers": {"a": {"command": "a", "autoApprove": [1], "disabled": false}}, "theme": 1}"#;
        let value: Value = serde_json::from_str(text).unwrap();
        let (read, faults) = manifest::read::<ServersManifest>(text, &value);
        assert_eq!(faults.len(), 2);
        let servers = read
            .unwrap()
            .into_servers(Path::new("s.json"), Path::new("/t"))
            .unwrap();
        assert_eq!(servers.len(), 1);
    }
}
