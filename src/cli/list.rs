//! `pitool list`: the tools that there are.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::Arc;

use pitool::pattern::Pattern;
use pitool::registry::Registry;
use pitool::tool::{ExecutionMode, Executor, Tool};
use serde::Serialize;

use super::connect::Connect;
use super::{Exit, Global, load, print};
use crate::report::style::Styles;
use crate::report::table::{Cell, Table};
use crate::report::{self, sanitize};

/// List the tools
///
/// One tool a line, in the order of the manifests: in a pipe name, description and manifest behind tabs.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only tools whose names match; repeatable, `*` matches anything
    #[arg(value_name = "PATTERN")]
    patterns: Vec<Pattern>,

    /// Print a JSON line per tool
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    connect: Connect,
}

/// Runs the command.
pub(crate) fn run(args: &Args, global: &Global) -> anyhow::Result<Exit> {
    let (mut registry, exit) = load::tolerant(global);
    if !args.patterns.is_empty() {
        registry.retain(&args.patterns);
    }
    let exit = exit.or(args.connect.look_and_tell(&mut registry, global)?);
    let stdout = io::stdout();
    let is_terminal = stdout.is_terminal();
    let text = if args.json {
        json_lines(&registry, is_terminal)
    } else if is_terminal {
        let styles = Styles::of_stream(global.color, is_terminal);
        table(&registry, report::columns(&stdout), &styles)
    } else {
        lines(&registry)
    };
    print::text_of(&text, exit)
}

fn table(registry: &Registry, columns: usize, styles: &Styles) -> String {
    let mut table = Table::new(&["NAME", "DESCRIPTION", "MARKS"]);
    for tool in registry.tools() {
        table.row(vec![
            Cell::new(sanitize::one_line(tool.name()), styles.tool),
            Cell::plain(sanitize::one_line(summary(tool))),
            Cell::new(marks(tool).join(", "), styles.dim),
        ]);
    }
    table.render(columns, styles)
}

fn lines(registry: &Registry) -> String {
    let line = |tool: &Arc<Tool>| {
        let source = tool.source.as_deref().unwrap_or(Path::new(""));
        format!(
            "{}\t{}\t{}\n",
            sanitize::one_line(tool.name()),
            sanitize::one_line(summary(tool)),
            sanitize::one_line(&source.to_string_lossy())
        )
    };
    registry.tools().iter().map(line).collect()
}

fn json_lines(registry: &Registry, is_terminal: bool) -> String {
    let line = |tool: &Arc<Tool>| {
        let line = serde_json::to_string(&Line::new(tool)).expect("a line has only string keys");
        let line = if is_terminal {
            sanitize::json(&line).into_owned()
        } else {
            line
        };
        line + "\n"
    };
    registry.tools().iter().map(line).collect()
}

/// The first line of the description, behind the label if there is one.
fn summary(tool: &Tool) -> &str {
    tool.declaration
        .description
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default()
        .trim()
}

/// What is special about the tool, in a word each.
fn marks(tool: &Tool) -> Vec<&'static str> {
    let marks = [
        (
            tool.execution_mode == Some(ExecutionMode::Sequential),
            "sequential",
        ),
        (!tool.mutates.is_empty(), "changes files"),
        (tool.sandbox.is_some(), "sandbox"),
        (matches!(tool.executor, Executor::Mcp(_)), "MCP"),
    ];
    marks
        .into_iter()
        .filter_map(|(has_it, mark)| has_it.then_some(mark))
        .collect()
}

/// A tool on the wire.
#[derive(Serialize)]
struct Line<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<&'a str>,
    description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a Path>,
}

impl<'a> Line<'a> {
    fn new(tool: &'a Tool) -> Self {
        Self {
            name: tool.name(),
            label: tool.label.as_deref(),
            description: &tool.declaration.description,
            file: tool.source.as_deref(),
        }
    }
}
