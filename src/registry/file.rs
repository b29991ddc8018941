//! One manifest file: a tool, a hook or MCP servers, or all that is wrong with it.

use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use super::folder::{self, Listed};
use super::problem::{Problem, Severity};
use crate::hook::{Hook, HookManifest};
use crate::json::{self, JsonError};
use crate::manifest::{self, Fault, Place};
use crate::mcp::{self, ServerConfig, ServersManifest};
use crate::tool::{AsWritten, Tool, ToolManifest};

/// What a file defines.
#[derive(Debug)]
pub(super) enum Definition {
    /// A tool.
    Tool(Box<Tool>),
    /// A hook.
    Hook(Hook),
    /// MCP servers, and what is told of their file.
    Servers {
        /// In the order of the file.
        servers: Vec<ServerConfig>,
        /// Fields that are unknown here.
        warnings: Vec<Problem>,
    },
}

/// Reads a manifest; `home` is its folder, from the root.
pub(super) fn load(listed: &Listed, home: &Path) -> Result<Definition, Vec<Problem>> {
    let text = listed.read().map_err(|problem| vec![problem])?;
    let file = File {
        path: &listed.path,
        home,
        text: &text,
    };
    // Nearly every file is a tool without a fault.
    if !json::is_deeper_than(json::MAX_DEPTH, &text)
        && let Ok(tool) = serde_json::from_str::<ToolManifest<Box<RawValue>>>(&text)
    {
        return file.tool(tool).map_err(|faults| file.problems(&faults));
    }
    let value = json::parse(text.as_bytes()).map_err(|error| vec![file.not_json(&error)])?;
    if json::depth(&value) > json::MAX_DEPTH {
        let message = format!("is nested more than {} levels deep", json::MAX_DEPTH);
        return Err(vec![Problem::of_file(&listed.path, message)]);
    }
    if value.get("mcpServers").is_some() {
        return file.servers(&value);
    }
    let definition = if is_hook(&value) {
        file.examine(&value, File::hook)
    } else {
        file.examine(&value, File::tool::<Value>)
    };
    definition.map_err(|mut faults| {
        if !is_hook(&value) {
            ToolManifest::explain(&mut faults);
        }
        file.problems(&faults)
    })
}

/// A hook that has lost its `hook` is still meant as one.
fn is_hook(manifest: &Value) -> bool {
    let has = |field| manifest.get(field).is_some();
    has("hook") || has("run") && !has("name")
}

/// A manifest's text and where it comes from.
struct File<'a> {
    path: &'a Path,
    home: &'a Path,
    text: &'a str,
}

impl File<'_> {
    /// Reads what `serde_json` refused, and goes on looking for faults as far as it can.
    fn examine<M: DeserializeOwned>(
        &self,
        value: &Value,
        make: fn(&Self, M) -> Result<Definition, Vec<Fault>>,
    ) -> Result<Definition, Vec<Fault>> {
        let (read, mut faults) = manifest::read(self.text, value);
        match read.map(|read| make(self, read)) {
            Some(Ok(definition)) if faults.is_empty() => return Ok(definition),
            Some(Ok(_)) | None => {}
            Some(Err(more)) => faults.extend(more),
        }
        Err(faults)
    }

    fn tool<S: AsWritten>(&self, manifest: ToolManifest<S>) -> Result<Definition, Vec<Fault>> {
        let mut tool = manifest.into_tool(self.home)?;
        tool.source = Some(self.path.to_owned());
        Ok(Definition::Tool(Box::new(tool)))
    }

    fn hook(&self, manifest: HookManifest) -> Result<Definition, Vec<Fault>> {
        let mut hook = manifest.into_hook(self.home)?;
        hook.source = Some(self.path.to_owned());
        Ok(Definition::Hook(hook))
    }

    /// The file may be shared with other clients, so a field that is unknown here is a warning only.
    fn servers(&self, value: &Value) -> Result<Definition, Vec<Problem>> {
        let (read, faults) = manifest::read::<ServersManifest>(self.text, value);
        let Some(manifest) = read else {
            return Err(self.problems(&faults));
        };
        let servers = manifest.into_servers(self.path, self.home);
        let as_warning = |problem| Problem {
            severity: Severity::Warning,
            ..problem
        };
        let warnings = self.problems(&faults).into_iter().map(as_warning).collect();
        match servers {
            Ok(servers) => Ok(Definition::Servers { servers, warnings }),
            Err(more) => Err(self.problems(&more)),
        }
    }

    /// From top to bottom.
    fn problems(&self, faults: &[Fault]) -> Vec<Problem> {
        let mut problems: Vec<Problem> = faults
            .iter()
            .map(|fault| Problem::of_fault(self.path, self.text, fault))
            .collect();
        problems.sort_by_key(|problem| (problem.line, problem.column));
        problems
    }

    fn not_json(&self, error: &JsonError) -> Problem {
        let place = Place {
            line: error.line,
            column: error.column,
        };
        let message = format!("not valid JSON: {}", error.message);
        Problem::at(self.path, place, message)
    }
}

/// The problem of a tool whose name the `first` one has already; names both files.
pub(super) fn second_of_its_name(tool: &Tool, first: &Tool) -> Problem {
    let source = |tool: &Tool| tool.source.clone().unwrap_or_default();
    let (path, first) = (source(tool), source(first));
    let message = format!(
        "a tool \"{}\" is already defined in {}",
        tool.name(),
        first.display()
    );
    // Read a second time, as the texts of files without a fault are not kept.
    let problem = match folder::read(&path) {
        Ok(text) => Problem::at(&path, Fault::new("/name", "").place(&text), message),
        Err(_) => Problem::of_file(&path, message),
    };
    Problem {
        repeats: Some(tool.name().into()),
        ..problem
    }
}

/// The problem of the server `name` in the file `path`, whose tools would have the names of those of `first`.
pub(super) fn second_server(path: &Path, name: &str, first: &ServerConfig) -> Problem {
    let message = format!(
        "{}; \"{}\" is in {}",
        mcp::second_of_its_name(name, &first.name),
        first.name,
        first.source.display()
    );
    match folder::read(path) {
        Ok(text) => Problem::of_fault(path, &text, &Fault::new(mcp::pointer(name), message)),
        Err(_) => Problem::of_file(path, message),
    }
}
