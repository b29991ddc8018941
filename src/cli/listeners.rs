//! Who hears of a run: the events file, the events on stdout, and the progress on stderr, in this order.

use std::fs::File;
use std::io::{self, IsTerminal as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context as _;
use pitool::event::{Event, Listener, Notice};
use pitool::mcp::Hear;
use pitool::registry::Registry;
use pitool::stop::{StopLevel, Stopper};

use super::images::Saved;
use crate::report::lines::{Audience, EventLines};
use crate::report::progress::Progress;
use crate::report::sanitize;
use crate::report::style::{Styles, When};

/// What is listened to, and where it goes.
pub(crate) struct Listening<'a> {
    pub(crate) progress: When,
    pub(crate) color: When,
    pub(crate) events_file: Option<&'a Path>,
    pub(crate) events_to_stdout: bool,
}

/// All listeners of a run.
pub(crate) struct Listeners {
    events_file: Option<EventLines>,
    events: Option<EventLines>,
    progress: Progress,
    styles: Styles,
}

impl Listeners {
    /// Opens what is written to. A stdout that cannot be written stops the run at once.
    pub(crate) fn new(
        listening: &Listening<'_>,
        registry: &Arc<Registry>,
        stopper: Arc<Stopper>,
    ) -> anyhow::Result<Arc<Self>> {
        let start = Instant::now();
        let events_file = match listening.events_file {
            None => None,
            Some(path) => {
                let file = File::create(path)
                    .with_context(|| format!("cannot write {}", path.display()))?;
                Some(EventLines::new(file, Audience::Program, start, |_| ()))
            }
        };
        let events = listening.events_to_stdout.then(|| {
            let stdout = io::stdout();
            let audience = if stdout.is_terminal() {
                Audience::Terminal
            } else {
                Audience::Program
            };
            EventLines::new(stdout, audience, start, move |_| {
                stopper.raise(StopLevel::Now);
            })
        });
        let styles = Styles::of_stream(listening.color, io::stderr().is_terminal());
        let tools = Arc::clone(registry);
        let label = move |name: &str| tools.get(name).and_then(|tool| tool.label.clone());
        let progress = Progress::start(listening.progress, styles, Box::new(label));
        Ok(Arc::new(Self {
            events_file,
            events,
            progress,
            styles,
        }))
    }

    /// Hears what MCP servers say, which may be after the end.
    pub(crate) fn hear(listeners: &Arc<Self>) -> Hear {
        let listeners = Arc::downgrade(listeners);
        Arc::new(move |notice| {
            if let Some(listeners) = listeners.upgrade() {
                listeners.notice(notice);
            }
        })
    }

    /// Announces calls that will start.
    pub(crate) fn expect(&self, calls: usize) {
        self.progress.expect(calls);
    }

    /// Takes the progress away while something else uses the terminal.
    pub(crate) fn suspend<R>(&self, write: impl FnOnce() -> R) -> R {
        self.progress.suspend(write)
    }

    /// Tells of an input that could not be understood.
    pub(crate) fn error(&self, sentence: &str) {
        let error = self.styles.error.paint("error:");
        self.progress
            .say(&format!("pitool: {error} {}", sanitize::lines(sentence)));
    }

    /// Tells which images of a call could not be saved, and if `names_files` where the others are.
    pub(crate) fn images(&self, id: &str, saved: &Saved, names_files: bool) {
        for file in saved.files.iter().flatten().filter(|_| names_files) {
            let sentence = format!("{id}: image saved as {}", file.display());
            self.progress
                .say(&format!("pitool: {}", sanitize::lines(&sentence)));
        }
        for failure in &saved.failures {
            self.error(&format!("{id}: {failure}"));
        }
    }

    /// Writes out what is left and gives the terminal back: how stdout and the events file took it. Others may still hold
    /// the listeners, as who waits for the answer to a question does.
    pub(crate) fn finish(&self) -> (io::Result<()>, io::Result<()>) {
        let finish = |lines: &Option<EventLines>| lines.as_ref().map_or(Ok(()), EventLines::finish);
        let written = (finish(&self.events), finish(&self.events_file));
        self.progress.finish();
        written
    }
}

impl Listener for Listeners {
    fn event(&self, event: Event<'_>) {
        for lines in [&self.events_file, &self.events].into_iter().flatten() {
            lines.event(event);
        }
        self.progress.event(event);
    }

    fn notice(&self, notice: Notice) {
        self.progress.notice(notice);
    }
}
