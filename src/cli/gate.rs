//! `--allow`, `--deny` and `--confirm`: what the person who runs the batch permits.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::sync::Arc;

use futures_util::FutureExt as _;
use pitool::call::{Gate, Verdict};
use pitool::message::ToolCall;
use pitool::pattern::Pattern;
use serde_json::Value;

use super::listeners::Listeners;
use crate::report::sanitize;

/// What these options permit.
#[derive(Debug, Clone)]
pub(crate) struct Permits {
    /// If there are any, only these.
    pub(crate) allow: Vec<Pattern>,
    /// Never these.
    pub(crate) deny: Vec<Pattern>,
    /// These only after a yes.
    pub(crate) confirm: Vec<Pattern>,
}

impl Permits {
    /// Whether calls of this tool are blocked without a question.
    pub(crate) fn denies(&self, name: &str) -> bool {
        matches(&self.deny, name) || !(self.allow.is_empty() || matches(&self.allow, name))
    }

    /// The gate; none if everything is permitted.
    pub(crate) fn gate(self, listeners: &Arc<Listeners>) -> Option<Gate> {
        if self.allow.is_empty() && self.deny.is_empty() && self.confirm.is_empty() {
            return None;
        }
        let listeners = Arc::clone(listeners);
        Some(Arc::new(move |call: &ToolCall, arguments: &Value| {
            if self.denies(&call.name) {
                return std::future::ready(Verdict::Block).boxed();
            }
            if !matches(&self.confirm, &call.name) {
                return std::future::ready(Verdict::Allow).boxed();
            }
            let question = question(call, arguments);
            let listeners = Arc::clone(&listeners);
            let (sender, answer) = tokio::sync::oneshot::channel();
            // A thread of its own, never joined: a person may never answer, and a stop must not wait for that.
            std::thread::spawn(move || {
                let verdict = listeners.suspend(|| ask(&question));
                drop(listeners);
                // The batch may have been stopped meanwhile.
                let _ = sender.send(verdict);
            });
            async {
                let mut line = OpenLine { is_answered: false };
                let verdict = answer.await;
                line.is_answered = true;
                verdict.unwrap_or(Verdict::Block)
            }
            .boxed()
        }))
    }
}

fn matches(patterns: &[Pattern], name: &str) -> bool {
    patterns.iter().any(|pattern| pattern.matches(name))
}

fn question(call: &ToolCall, arguments: &Value) -> String {
    let arguments = pitool::json::pretty(arguments);
    let name = sanitize::one_line(&call.name);
    format!("{}\nRun {name}? [y/N] ", sanitize::lines(&arguments))
}

/// The line on which a question waits. Given up, it is ended, so that nothing else is written behind the question.
struct OpenLine {
    is_answered: bool,
}

impl Drop for OpenLine {
    fn drop(&mut self) {
        if !self.is_answered
            && let Ok(mut terminal) = terminal()
        {
            let _ = terminal.write_all(b"\n");
        }
    }
}

fn terminal() -> std::io::Result<File> {
    File::options().read(true).write(true).open("/dev/tty")
}

/// Asks on the terminal, which is not stdin: that holds the messages. Without one the answer is no.
fn ask(question: &str) -> Verdict {
    let Ok(mut terminal) = terminal() else {
        return Verdict::Block;
    };
    let mut line = String::new();
    let asked = terminal.write_all(question.as_bytes());
    if asked.is_err() || BufReader::new(&terminal).read_line(&mut line).is_err() {
        return Verdict::Block;
    }
    if !line.ends_with('\n') {
        // Ctrl-D: nothing has ended the line on the terminal.
        let _ = terminal.write_all(b"\n");
    }
    match line.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Verdict::Allow,
        _ => Verdict::Block,
    }
}
