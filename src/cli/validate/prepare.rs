//! `prepareArguments` where no batch runs: each worker waits for its own.

use std::borrow::Cow;

use pitool::call::{self, CallError};
use pitool::event::{Listener, Notice};
use pitool::message::ToolCall;
use pitool::stop::Stop;
use pitool::tool::Tool;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

use crate::report::progress::notice_line;
use crate::report::style::Styles;

thread_local! {
    /// Made when a tool of this worker first has something to prepare.
    static RUNTIME: Runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime needs a few descriptors");
}

/// The arguments to judge: what `prepareArguments` makes of them, else as sent.
pub(super) fn arguments<'c>(tool: &Tool, call: &'c ToolCall) -> Result<Cow<'c, Value>, CallError> {
    if tool.prepare_arguments.is_none() {
        return Ok(Cow::Borrowed(&call.arguments));
    }
    RUNTIME.with(|runtime| {
        let stop = Stop::never();
        runtime.block_on(call::prepare_arguments(tool, call, &Notices, &stop))
    })
}

/// Shows what the preparation says on stderr.
struct Notices;

impl Listener for Notices {
    fn event(&self, _: pitool::event::Event<'_>) {}

    fn notice(&self, notice: Notice) {
        // One write, so that lines of other workers do not land inside; a closed stderr is nobody's business.
        let line = notice_line(&notice, &Styles::default()) + "\n";
        let _ = std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes());
    }
}
