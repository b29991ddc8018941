//! `pitool transcript changes`: from the tools of the transcript to those of `tools.d`.

use anyhow::Context as _;
use pitool::transcript::{current_tools, tool_changes};
use serde_json::Value;

use super::Source;
use crate::cli::{Exit, Global, load, print};

/// Print what changed from its tools to those of the tools folder
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    source: Source,
}

pub(super) fn run(args: &Args, global: &Global) -> anyhow::Result<Exit> {
    let declared = current_tools(&args.source.messages()?);
    let Some(tools) = declarations(global)? else {
        return Ok(Exit::NotUnderstood);
    };
    print::document(&tool_changes(&declared, &tools), global, Exit::Ok)
}

/// The declarations of the tools folder; `None` when it could not be loaded, which has been said then.
pub(super) fn declarations(global: &Global) -> anyhow::Result<Option<Vec<Value>>> {
    let loaded = load::load(global);
    if load::withheld(&loaded).is_some() {
        return Ok(None);
    }
    let declarations = loaded
        .registry
        .tools()
        .iter()
        .map(|tool| serde_json::to_value(&tool.declaration));
    let declarations: Result<Vec<Value>, _> = declarations.collect();
    Ok(Some(declarations.context("cannot write a declaration")?))
}
