//! `--connect`: looking runs nothing unless it is asked for, and MCP servers tell of their tools only when they run.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;

use pitool::event::Notice;
use pitool::registry::{Problem, Registry};

use super::{Exit, Global, complain, load};
use crate::report::sanitize;
use crate::report::style::Styles;

/// Whether the MCP servers are started, for a command that looks at tools.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Connect {
    /// Start the MCP servers to look at their tools too; without it none is started
    #[arg(long)]
    connect: bool,
}

impl Connect {
    /// Takes up the tools of the servers, and gives what kept some from telling theirs. Without the option no server
    /// is started, and stderr says which were not.
    pub(crate) fn look(self, registry: &mut Registry) -> anyhow::Result<Vec<Problem>> {
        if registry.servers().next().is_none() {
            return Ok(Vec::new());
        }
        if !self.connect {
            complain(&left_out(registry));
            return Ok(Vec::new());
        }
        registry.hear_servers(Arc::new(|notice| complain(&sentence(&notice))));
        let runtime = super::runtime()?;
        let problems = runtime.block_on(async {
            let problems = registry.connect().await;
            registry.close_servers().await;
            problems
        });
        Ok(problems)
    }

    /// The same with what is wrong told on stderr, and the exit code that it calls for.
    pub(crate) fn look_and_tell(
        self,
        registry: &mut Registry,
        global: &Global,
    ) -> anyhow::Result<Exit> {
        let problems = self.look(registry)?;
        let mut stderr = std::io::stderr().lock();
        let styles = Styles::of_stream(global.color, stderr.is_terminal());
        for problem in &problems {
            // Nobody is left to tell when stderr is gone.
            let _ = stderr.write_all(load::text(problem, &styles).as_bytes());
        }
        Ok(if problems.is_empty() {
            Exit::Ok
        } else {
            Exit::Errors
        })
    }

    /// Whether servers have tools that nobody looked at.
    pub(crate) fn leaves_out(self, registry: &Registry) -> bool {
        !self.connect && registry.servers().next().is_some()
    }
}

fn left_out(registry: &Registry) -> String {
    let names: Vec<String> = registry
        .servers()
        .map(|server| sanitize::one_line(&server.config().name).into_owned())
        .collect();
    let (noun, verb, them) = match names.len() {
        1 => ("MCP server", "was", "it"),
        _ => ("MCP servers", "were", "them"),
    };
    format!(
        "{noun} {} {verb} not started; --connect starts {them} to look at the tools",
        names.join(", ")
    )
}

fn sentence(notice: &Notice) -> String {
    match notice {
        Notice::ServerLine { server, line } => {
            format!(
                "{}: {}",
                sanitize::one_line(server),
                sanitize::one_line(line)
            )
        }
        Notice::Warning(text) => format!("warning: {}", sanitize::lines(text)),
        Notice::ToolStderr {
            tool_name, lines, ..
        } => format!(
            "{}: {}",
            sanitize::one_line(tool_name),
            sanitize::lines(lines)
        ),
    }
}
