//! The tools and hooks of a run, by name and in order.
//!
//! A registry is loaded from the manifests of tools folders ([`Registry::load`]), or filled by a Rust program with
//! tools of its own ([`Registry::register`]).

mod file;
pub(crate) mod folder;
pub(crate) mod json_schema;
mod load;
mod problem;
mod servers;

use std::collections::HashMap;
use std::sync::Arc;

use crate::hook::Hook;
use crate::manifest::nearest;
use crate::pattern::Pattern;
use crate::tool::Tool;

pub use json_schema::json_schema;
pub use load::Loaded;
pub use problem::{Problem, Severity};
pub use servers::ServerTools;
use servers::Servers;

/// A second tool of one name was refused; holds the name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DuplicateName(pub String);

impl std::fmt::Display for DuplicateName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a tool \"{}\" is registered already", self.0)
    }
}

impl std::error::Error for DuplicateName {}

/// The tools that calls may name, and the hooks around them.
///
/// Manifests and functions of the program live side by side:
///
/// ```no_run
/// use pitool::message::ToolResult;
/// use pitool::registry::Registry;
/// use pitool::tool::{Declaration, Tool};
/// use serde_json::json;
///
/// let loaded = Registry::load(&["tools.d".into()]);
/// for problem in &loaded.problems {
///     eprintln!("{problem}");
/// }
/// let mut registry = loaded.registry;
/// let declaration = Declaration::new("today", "The day", json!({"type": "object"}));
/// registry.register(Tool::native(declaration, |_| async { Ok(ToolResult::text("Monday")) }))?;
/// assert!(registry.get("today").is_some());
/// # Ok::<(), pitool::registry::DuplicateName>(())
/// ```
///
/// A file that could not be loaded may have been a guard: before you run calls, look at
/// [`Loaded::unloadable`] and set [`Options::withheld`](crate::call::Options::withheld).
#[derive(Debug, Default, Clone)]
pub struct Registry {
    tools: Vec<Arc<Tool>>,
    by_name: HashMap<String, usize>,
    hooks: Vec<Hook>,
    servers: Servers,
    /// Only tools with such names are known; absent means all.
    only: Option<Vec<Pattern>>,
}

impl Registry {
    /// A registry with nothing in it.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool behind the others; a second one of its name is refused.
    pub fn register(&mut self, tool: Tool) -> Result<(), DuplicateName> {
        if self.by_name.contains_key(tool.name()) {
            return Err(DuplicateName(tool.name().to_owned()));
        }
        self.add(Arc::new(tool));
        Ok(())
    }

    fn add(&mut self, tool: Arc<Tool>) {
        self.by_name
            .insert(tool.name().to_owned(), self.tools.len());
        self.tools.push(tool);
    }

    /// Adds a hook behind the others.
    pub fn add_hook(&mut self, hook: Hook) {
        self.hooks.push(hook);
    }

    /// The tool of exactly this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Tool>> {
        self.by_name.get(name).map(|&index| &self.tools[index])
    }

    /// All tools, in manifest order.
    pub fn tools(&self) -> &[Arc<Tool>] {
        &self.tools
    }

    /// All hooks, in file order.
    pub fn hooks(&self) -> &[Hook] {
        &self.hooks
    }

    /// Keeps only the tools that one of the patterns matches. Hooks stay, and servers keep only such tools.
    pub fn retain(&mut self, patterns: &[Pattern]) {
        self.tools
            .retain(|tool| patterns.iter().any(|pattern| pattern.matches(tool.name())));
        let names = self.tools.iter().map(|tool| tool.name().to_owned());
        self.by_name = names.zip(0..).collect();
        self.only = Some(patterns.to_vec());
    }

    fn is_wanted(&self, name: &str) -> bool {
        let only = self.only.as_ref();
        only.is_none_or(|patterns| patterns.iter().any(|pattern| pattern.matches(name)))
    }

    /// The names that look like `name`, the most alike first; at most three.
    pub fn nearest(&self, name: &str) -> Vec<String> {
        let of_servers = self.known_server_tools();
        let all = self.tools.iter().chain(&of_servers);
        let nearest = nearest(name, all.map(|tool| tool.name()));
        nearest.into_iter().map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::message::ToolResult;
    use crate::tool::Declaration;

    use super::*;

    fn tool(name: &str) -> Tool {
        let declaration = Declaration::new(name, "", json!({"type": "object"}));
        Tool::native(declaration, |_| async { Ok(ToolResult::text("ok")) })
    }

    fn registry(names: &[&str]) -> Registry {
        let mut registry = Registry::new();
        for name in names {
            registry.register(tool(name)).unwrap();
        }
        registry
    }

    fn names(registry: &Registry) -> Vec<&str> {
        registry.tools().iter().map(|tool| tool.name()).collect()
    }

    #[test]
    fn a_second_tool_of_one_name_is_refused() {
        let mut registry = registry(&["echo"]);
        assert_eq!(
            registry.register(tool("echo")),
            Err(DuplicateName("echo".into()))
        );
        assert_eq!(names(&registry), ["echo"]);
    }

    #[test]
    fn names_are_exact() {
        let registry = registry(&["echo", "Echo"]);
        assert_eq!(registry.get("Echo").unwrap().name(), "Echo");
        assert!(registry.get("ECHO").is_none());
    }

    #[test]
    fn retain_keeps_order_and_lookup() {
        let mut registry = registry(&["read_a", "write", "read_b", "now"]);
        registry.retain(&[Pattern::new("now"), Pattern::new("read_*")]);
        assert_eq!(names(&registry), ["read_a", "read_b", "now"]);
        assert_eq!(registry.get("now").unwrap().name(), "now");
        assert!(registry.get("write").is_none());
    }

    #[test]
    fn nearest_names_are_sorted_by_likeness() {
        let registry = registry(&["read_file", "read_files", "write_file", "now"]);
        assert_eq!(registry.nearest("read_fiel"), ["read_file", "read_files"]);
        assert_eq!(registry.nearest("xyz"), [""; 0]);
    }
}
