//! What is done with the input: each value is judged and printed, in order.

use std::io::{self, BufRead};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use pitool::format::{self, Document, Documents, Format, InputOptions};
use pitool::json::{Located, Values};
use pitool::message::ToolCall;
use pitool::registry::Registry;
use pitool::schema::Coercion;
use pitool::tool::Tool;
use serde_json::{Map, Value};

use super::judge::{self, Judged, Origin, Rules, Subject};
use super::pipeline::{Piece, Work};
use super::print::{Printed, Printer};
use super::read::{self, Content, Place, Taken, Wanted};
use super::summary::Tally;

/// How much is printed at most before it is written, where one thread reads all.
const ENOUGH: usize = 64 << 10;

/// What is asked of each input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    /// Whether it is valid.
    Verdict,
    /// How the three ways of coercion judge it.
    Compare,
}

/// What the first input that is not well means for the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnFailure {
    /// The others are still judged.
    GoOn,
    /// Nothing more is read.
    End,
}

/// Judges and prints a stream of inputs.
pub(super) struct Validation {
    pub(super) subject: Subject,
    pub(super) rules: Rules,
    pub(super) reading: InputOptions,
    pub(super) question: Question,
    pub(super) printer: Printer,
    pub(super) on_failure: OnFailure,
    pub(super) ending: Arc<Mutex<Ending>>,
}

/// What all inputs came to.
#[derive(Debug, Default)]
pub(super) struct Ending {
    pub(super) tally: Tally,
    /// Why stdout could not be written any more.
    pub(super) stdout: Option<io::Error>,
}

/// What came of some inputs.
#[derive(Debug, Default)]
pub(super) struct Output {
    printed: Printed,
    tally: Tally,
    is_last: bool,
    /// The line of the input that was judged last, and how many of it were.
    line: (usize, usize),
}

impl Work for Validation {
    type Output = Output;

    fn piece(&self, piece: Piece<'_>, output: &mut Output) -> Option<usize> {
        if piece.is_last {
            let mut text = piece.text;
            self.rest(&mut text, piece.first_line, &mut |rest| {
                output.append(rest);
                ControlFlow::Continue(())
            });
            return None;
        }
        read::values(piece, self.wanted(), |(line, content)| match content {
            Ok(Content::Value(value)) => self.value(line, value, output),
            Ok(Content::Calls(calls)) => self.calls(line, &calls, output),
            Err(error) => self.unreadable(line, &not_json(error.column, &error.message), output),
        })
    }

    fn rest(
        &self,
        rest: &mut dyn BufRead,
        first_line: usize,
        write: &mut dyn FnMut(&mut Output) -> ControlFlow<()>,
    ) {
        let mut output = Output::default();
        let mut is_over = |output: &mut Output, taken: Taken| {
            let is_enough = output.printed.len() > ENOUGH;
            match taken {
                Taken::End => {
                    let _ = write(output);
                    true
                }
                Taken::Done | Taken::Unfinished => is_enough && write(output).is_break(),
            }
        };
        let place = Place::line(first_line);
        if let Subject::Messages(_) = self.subject {
            for document in Documents::new(rest, self.reading) {
                let taken = self.document_or_error(place, document, &mut output);
                if is_over(&mut output, taken) {
                    return;
                }
            }
        } else {
            for item in Values::new(rest) {
                let taken = self.located(place, item, &mut output);
                if is_over(&mut output, taken) {
                    return;
                }
            }
        }
        // There is nothing left that could be ended.
        let _ = write(&mut output);
    }

    fn write(&self, output: &mut Output) -> ControlFlow<()> {
        let mut ending = self.ending.lock().expect("no holder of the lock panics");
        ending.tally.add(&mut output.tally);
        let written = output.printed.write(
            self.printer.order(),
            &mut io::stdout().lock(),
            &mut io::stderr(),
        );
        if let Err(error) = written {
            ending.stdout = Some(error);
            return ControlFlow::Break(());
        }
        if output.is_last {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

impl Validation {
    fn wanted(&self) -> Wanted {
        match (&self.subject, self.reading.from) {
            (Subject::Messages(_), None | Some(Format::Pi)) => Wanted::Calls,
            _ => Wanted::Values,
        }
    }

    fn value(&self, line: usize, value: Value, output: &mut Output) -> Taken {
        match &self.subject {
            Subject::Schema(schema) => {
                let origin = Origin {
                    line,
                    call: output.next_of(line),
                    tool_call_id: None,
                    tool: None,
                };
                self.judge(origin, |rules| judge::value(schema, &value, rules), output)
            }
            Subject::Tool(tool) => self.arguments(line, tool, value, output),
            Subject::Messages(registry) => match Document::read_alone(line, value, self.reading) {
                Err(_) => Taken::Unfinished,
                Ok(Ok(document)) => self.document(registry, &document, output),
                Ok(Err(error)) => self.unreadable(line, &error.message, output),
            },
        }
    }

    fn located(
        &self,
        place: Place,
        item: Result<Located, pitool::json::JsonError>,
        output: &mut Output,
    ) -> Taken {
        match item {
            Ok(located) => self.value(place.line + located.line - 1, located.value, output),
            Err(error) => {
                let line = place.line + error.line - 1;
                self.unreadable(line, &not_json(error.column, &error.message), output)
            }
        }
    }

    fn arguments(&self, line: usize, tool: &Tool, value: Value, output: &mut Output) -> Taken {
        let (arguments, arguments_error) = match value {
            // As in a message: a string is arguments text.
            Value::String(text) => match format::parse_arguments(&text) {
                Ok(arguments) => (arguments, None),
                Err(error) => (Value::Object(Map::new()), Some(error)),
            },
            value => (value, None),
        };
        let call = ToolCall {
            id: String::new(),
            name: tool.name().to_owned(),
            arguments,
            arguments_error,
        };
        let origin = Origin {
            line,
            call: output.next_of(line),
            tool_call_id: None,
            tool: Some(tool.name()),
        };
        self.judge(origin, |rules| judge::call(tool, &call, rules), output)
    }

    fn document_or_error(
        &self,
        place: Place,
        document: Result<Document, format::InputError>,
        output: &mut Output,
    ) -> Taken {
        match (document, &self.subject) {
            (Ok(mut document), Subject::Messages(registry)) => {
                for turn in &mut document.turns {
                    turn.line += place.line - 1;
                }
                self.document(registry, &document, output)
            }
            (Ok(_), _) => unreachable!("only messages are read as documents"),
            (Err(error), _) => {
                let message = match error.column {
                    Some(column) => not_json(column, &error.message),
                    None => error.message,
                };
                self.unreadable(place.line + error.line - 1, &message, output)
            }
        }
    }

    fn document(&self, registry: &Registry, document: &Document, output: &mut Output) -> Taken {
        for turn in &document.turns {
            for warning in &turn.warnings {
                self.printer
                    .warning(turn.line, warning, &mut output.printed);
            }
            if self.calls_of(registry, turn.line, &turn.calls, output) == Taken::End {
                return Taken::End;
            }
        }
        Taken::Done
    }

    /// The calls of a message that has nothing else to say.
    fn calls(&self, line: usize, calls: &[ToolCall], output: &mut Output) -> Taken {
        match &self.subject {
            Subject::Messages(registry) => self.calls_of(registry, line, calls, output),
            _ => unreachable!("only messages are read for their calls"),
        }
    }

    fn calls_of(
        &self,
        registry: &Registry,
        line: usize,
        calls: &[ToolCall],
        output: &mut Output,
    ) -> Taken {
        for call in calls {
            let origin = Origin {
                line,
                call: output.next_of(line),
                tool_call_id: Some(&call.id),
                tool: Some(&call.name),
            };
            let tool = registry.get(&call.name);
            let judge = |rules| match tool {
                Some(tool) => judge::call(tool, call, rules),
                None => Err(judge::unknown(call)),
            };
            if self.judge(origin, judge, output) == Taken::End {
                return Taken::End;
            }
        }
        Taken::Done
    }

    fn judge<'v>(
        &self,
        origin: Origin<'_>,
        judge: impl Fn(Rules) -> Judged<'v>,
        output: &mut Output,
    ) -> Taken {
        let judged = judge(self.rules);
        match self.question {
            Question::Verdict => self.printer.judged(origin, &judged, &mut output.printed),
            Question::Compare => {
                let ways = [
                    ("off", Coercion::Off),
                    ("standard", Coercion::Standard),
                    ("extended", Coercion::Extended),
                ];
                let compared = ways.map(|(name, coercion)| {
                    let rules = Rules {
                        coerce: Some(coercion),
                        ..self.rules
                    };
                    (name, judge(rules))
                });
                self.printer
                    .compared(origin, &compared, &mut output.printed);
            }
        }
        if judged.is_ok() {
            output.tally.valid += 1;
            return Taken::Done;
        }
        output.tally.invalid += 1;
        self.after_failure(output)
    }

    fn unreadable(&self, line: usize, message: &str, output: &mut Output) -> Taken {
        self.printer.unreadable(line, message, &mut output.printed);
        output.tally.unreadable += 1;
        self.after_failure(output)
    }

    fn after_failure(&self, output: &mut Output) -> Taken {
        match self.on_failure {
            OnFailure::GoOn => Taken::Done,
            OnFailure::End => {
                output.is_last = true;
                Taken::End
            }
        }
    }
}

impl Output {
    /// Counts one more input of that line.
    fn next_of(&mut self, line: usize) -> usize {
        let before = if self.line.0 == line { self.line.1 } else { 0 };
        self.line = (line, before + 1);
        self.line.1
    }

    fn append(&mut self, other: &mut Self) {
        self.printed.append(&mut other.printed);
        self.tally.add(&mut other.tally);
        self.is_last |= other.is_last;
    }
}

fn not_json(column: usize, message: &str) -> String {
    format!("not JSON at column {column}: {message}")
}
