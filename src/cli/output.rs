//! `--output`: the results on stdout.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Arc;

use clap::ValueEnum;
use pitool::batch::Answered;
use pitool::call::Outcome;
use pitool::format::{self, Document, Format, Turn};
use pitool::message::ToolResultMessage;
use pitool::registry::Registry;
use serde::Serialize;

use super::images::Saved;
use crate::report::card::Card;
use crate::report::style::{Styles, When};
use crate::report::{self, pretty, sanitize};

/// What is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// One message a line
    Jsonl,
    /// Messages as indented JSON, for people
    Pretty,
    /// One JSON array of all messages
    Json,
    /// The events as they happen, one a line
    Events,
    /// A card per call, for people
    Text,
    /// One outcome a line: the call, the whole result, what coercion did
    Outcomes,
    /// The input with the results where its API wants them, ready for the next request
    Transcript,
}

/// Prints results, message by message of the input.
pub(crate) struct Printer {
    output: Output,
    to: Option<Format>,
    registry: Arc<Registry>,
    styles: Styles,
    is_terminal: bool,
    /// Whether the array of [`Output::Json`] has an element already.
    has_element: bool,
    /// The value of the input that is being answered, for [`Output::Transcript`].
    open: Option<Open>,
}

/// A value of the input, and the answers to its turns so far.
struct Open {
    document: Document,
    answers: Vec<Vec<ToolResultMessage>>,
}

impl Printer {
    /// A printer to stdout; `output` absent is pretty on a terminal, else lines.
    pub(crate) fn new(
        output: Option<Output>,
        to: Option<Format>,
        color: When,
        registry: &Arc<Registry>,
    ) -> Self {
        let is_terminal = io::stdout().is_terminal();
        let default = if is_terminal {
            Output::Pretty
        } else {
            Output::Jsonl
        };
        Self {
            output: output.unwrap_or(default),
            to,
            registry: Arc::clone(registry),
            styles: Styles::of_stream(color, is_terminal),
            is_terminal,
            has_element: false,
            open: None,
        }
    }

    /// Takes a value of the input, whose turns are answered next.
    pub(crate) fn begin(&mut self, document: Document) -> io::Result<()> {
        self.open = Some(Open {
            document,
            answers: Vec::new(),
        });
        self.close_if_answered()
    }

    /// Prints the open value once all of its turns are answered.
    fn close_if_answered(&mut self) -> io::Result<()> {
        let is_answered = |open: &mut Open| open.answers.len() == open.document.turns.len();
        match self.open.take_if(is_answered) {
            Some(open) => self.close(open),
            None => Ok(()),
        }
    }

    fn close(&self, open: Open) -> io::Result<()> {
        let values = open.document.answered(&open.answers);
        let lines: String = values.iter().map(|value| self.line(value)).collect();
        write(&lines)
    }

    /// Prints the answers of one message, in one write; `saved` is where the images of each call are.
    pub(crate) fn print(
        &mut self,
        turn: &Turn,
        answered: &Answered,
        saved: &[Saved],
    ) -> io::Result<()> {
        let text = match self.output {
            Output::Events => return Ok(()),
            Output::Transcript => {
                if let Some(open) = &mut self.open {
                    open.answers.push(answered.messages.clone());
                }
                return self.close_if_answered();
            }
            Output::Outcomes => answered
                .outcomes
                .iter()
                .map(|outcome| self.line(outcome))
                .collect(),
            Output::Text => answered
                .outcomes
                .iter()
                .enumerate()
                .map(|(index, outcome)| self.card(outcome, saved.get(index)))
                .collect(),
            Output::Jsonl | Output::Pretty | Output::Json => self.messages(turn, answered),
        };
        write(&text)
    }

    /// Ends the output; a value that was not answered to its end, after a stop, is printed as far as it was.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        if let Some(open) = self.open.take() {
            self.close(open)?;
        }
        match (self.output, self.has_element) {
            (Output::Json, true) => write("\n]\n"),
            (Output::Json, false) => write("[]\n"),
            _ => Ok(()),
        }
    }

    /// The messages in the format of the API; those of pi are written as they are, without a detour.
    fn messages(&mut self, turn: &Turn, answered: &Answered) -> String {
        let to = self.to.unwrap_or(turn.format);
        if to == Format::Pi && !turn.is_in_list() {
            return answered
                .messages
                .iter()
                .map(|message| self.message(message))
                .collect();
        }
        let values = format::encode(turn, to, &answered.messages);
        values.iter().map(|value| self.message(value)).collect()
    }

    fn message(&mut self, message: &impl Serialize) -> String {
        match self.output {
            Output::Pretty => pretty::pretty(message, &self.styles) + "\n",
            Output::Json => {
                let before = if std::mem::replace(&mut self.has_element, true) {
                    ",\n"
                } else {
                    "[\n"
                };
                before.to_owned() + self.line(message).trim_end()
            }
            _ => self.line(message),
        }
    }

    fn line(&self, value: &impl Serialize) -> String {
        let line = serde_json::to_string(value).expect("messages have only string keys");
        // A terminal must not obey what a tool says.
        let line = if self.is_terminal {
            sanitize::json(&line).into_owned()
        } else {
            line
        };
        line + "\n"
    }

    fn card(&self, outcome: &Outcome, saved: Option<&Saved>) -> String {
        let tool = self.registry.get(&outcome.tool_call.name);
        let dropped: Vec<&str> = outcome
            .coercion
            .iter()
            .filter(|step| step.to.is_none())
            .map(|step| step.path.as_str())
            .collect();
        let card = Card {
            label: tool.and_then(|tool| tool.label.as_deref()),
            call: &outcome.tool_call,
            dropped: &dropped,
            result: &outcome.result,
            images: saved.map_or(&[], |saved| &saved.files),
            is_error: outcome.is_error,
            duration_ms: outcome.duration_ms,
        };
        card.render(report::columns(&io::stdout()), &self.styles) + "\n"
    }
}

fn write(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}
