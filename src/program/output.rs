//! What the output of a process means: text, items, a JSON value or an image, and what remains of it after a failure.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json as value};
use tokio::time::Instant;

use super::capture::{Capture, Lines};
use super::exit::exit_failure;
use super::item::{Item, Items};
use super::probe::{Heard, OutputKind};
use super::process::{Cause, Ended, Flow, Sink};
use super::{ABORTED, Invocation, ProgramError, Throw, timed_out};
use crate::json;
use crate::message::{Content, ToolResult};

/// The longest line of items, JSON value or image that is taken.
const MAX_VALUE_BYTES: usize = 32 * 1024 * 1024;

/// The shortest time between two updates of text.
const UPDATE_INTERVAL: Duration = Duration::from_millis(100);

/// What stdout means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Output {
    Text,
    Items,
    Json,
    /// The bytes of an image of this media type.
    Image(String),
}

impl Output {
    pub(crate) fn new(output: Option<&str>) -> Result<Self, ProgramError> {
        match output {
            None | Some("text") => Ok(Self::Text),
            Some("items") => Ok(Self::Items),
            Some("json") => Ok(Self::Json),
            Some(media_type) if media_type.starts_with("image/") && media_type.len() > 6 => {
                Ok(Self::Image(media_type.to_owned()))
            }
            Some(other) => Err(ProgramError::new(
                "/output",
                format!(
                    "{other:?} is not \"text\", \"items\", \"json\" or the media type of an image such as \"image/png\""
                ),
            )),
        }
    }
}

/// What was agreed on the output and the end of a process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms<'a> {
    pub(crate) output: &'a Output,
    pub(crate) max_output_bytes: usize,
    pub(crate) ok_exit_codes: &'a [i32],
    pub(crate) timeout: Option<Duration>,
}

/// Takes what a process prints, by the meaning of its output.
pub(crate) struct Reader<'a> {
    terms: Terms<'a>,
    stdout: Stdout<'a>,
    stderr: Lines,
    invocation: &'a Invocation<'a>,
}

enum Stdout<'a> {
    Text(TextUpdates<'a>),
    Items {
        items: Box<Items<'a>>,
        line: Vec<u8>,
    },
    /// A JSON value or an image counts only as a whole.
    Whole(Vec<u8>),
}

/// The text so far, as updates that never come too fast.
struct TextUpdates<'a> {
    capture: Capture,
    update: &'a (dyn Fn(Value) + Send + Sync),
    last: Option<Instant>,
    is_due: bool,
}

impl TextUpdates<'_> {
    fn push(&mut self, bytes: &[u8]) {
        self.capture.push(bytes);
        self.is_due = true;
        if self.next().is_some_and(|next| next <= Instant::now()) {
            self.send();
        }
    }

    fn next(&self) -> Option<Instant> {
        let next = self
            .last
            .map_or_else(Instant::now, |last| last + UPDATE_INTERVAL);
        self.is_due.then_some(next)
    }

    fn send(&mut self) {
        self.is_due = false;
        self.last = Some(Instant::now());
        (self.update)(value!({"content": [{"type": "text", "text": self.capture.text_so_far()}]}));
    }
}

impl Sink for Reader<'_> {
    fn stdout(&mut self, bytes: &[u8]) -> Flow {
        match &mut self.stdout {
            Stdout::Text(text) => text.push(bytes),
            Stdout::Items { items, line } => return take_lines(items, line, bytes),
            Stdout::Whole(whole) => {
                if whole.len() + bytes.len() > MAX_VALUE_BYTES {
                    whole.clear();
                    return Flow::End;
                }
                whole.extend_from_slice(bytes);
            }
        }
        Flow::GoOn
    }

    fn stderr(&mut self, bytes: &[u8]) {
        let invocation = self.invocation;
        self.stderr
            .push(bytes, &|lines| invocation.stderr_lines(lines));
    }

    fn next_tick(&self) -> Option<Instant> {
        match &self.stdout {
            Stdout::Text(text) => text.next(),
            Stdout::Items { .. } | Stdout::Whole(_) => None,
        }
    }

    fn tick(&mut self) {
        if let Stdout::Text(text) = &mut self.stdout {
            text.send();
        }
    }
}

/// Splits items at line breaks; the beginning of a line waits for its end.
fn take_lines(items: &mut Items<'_>, line: &mut Vec<u8>, mut bytes: &[u8]) -> Flow {
    while !items.is_settled() {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let piece = &bytes[..end.unwrap_or(bytes.len())];
        if line.len() + piece.len() > MAX_VALUE_BYTES {
            line.clear();
            return Flow::End;
        }
        let Some(end) = end else {
            line.extend_from_slice(piece);
            break;
        };
        if line.is_empty() {
            take_line(items, piece);
        } else {
            line.extend_from_slice(piece);
            take_line(items, line);
            line.clear();
        }
        bytes = &bytes[end + 1..];
    }
    if items.is_settled() {
        items.ignore(bytes);
    }
    Flow::GoOn
}

/// A line of white space is no item and no fault.
fn take_line(items: &mut Items<'_>, line: &[u8]) {
    if line.trim_ascii().is_empty() {
        return;
    }
    let item = parse(line).and_then(Item::read).map_err(|wrong| {
        format!(
            "Command printed something that is no item: {wrong}: {}",
            excerpt(line)
        )
    });
    items.take(item);
}

/// The beginning of what was printed, for a message.
fn excerpt(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(400)]);
    let mut excerpt: String = text.chars().take(100).collect();
    if excerpt.len() < bytes.len() {
        excerpt.push('…');
    }
    excerpt
}

fn parse(bytes: &[u8]) -> Result<Value, String> {
    let value = json::parse(bytes).map_err(|error| error.to_string())?;
    if json::depth(&value) > json::MAX_DEPTH {
        return Err(format!(
            "it is nested more than {} levels deep",
            json::MAX_DEPTH
        ));
    }
    Ok(value)
}

impl<'a> Reader<'a> {
    pub(crate) fn new(
        terms: Terms<'a>,
        update: &'a (dyn Fn(Value) + Send + Sync),
        invocation: &'a Invocation<'a>,
    ) -> Self {
        let stdout = match terms.output {
            Output::Text => Stdout::Text(TextUpdates {
                capture: Capture::new(terms.max_output_bytes),
                update,
                last: None,
                is_due: false,
            }),
            Output::Items => Stdout::Items {
                items: Box::new(Items::new(update)),
                line: Vec::new(),
            },
            Output::Json | Output::Image(_) => Stdout::Whole(Vec::new()),
        };
        Self {
            terms,
            stdout,
            stderr: Lines::default(),
            invocation,
        }
    }

    /// What a tool came to.
    pub(crate) fn result(mut self, ended: &Ended) -> Result<ToolResult, Throw> {
        self.end_of_output();
        if let Some(sentence) = self.failure(ended) {
            return Err(self.throw(ended, &sentence));
        }
        self.pass_on_stderr();
        match (self.stdout, self.terms.output) {
            (Stdout::Text(text), _) => Ok(text_result(text.capture, self.invocation)),
            (Stdout::Items { items, .. }, _) => items.finish("Command"),
            (Stdout::Whole(bytes), Output::Image(media_type)) => image_result(&bytes, media_type),
            (Stdout::Whole(bytes), _) => {
                json_result(&bytes, self.terms.max_output_bytes, self.invocation)
            }
        }
    }

    /// What is known of the output beside what it means.
    pub(crate) fn heard(&self, ended: &Ended) -> Heard {
        let (has_result, after_result, is_cut) = match &self.stdout {
            Stdout::Text(text) => (!text.capture.is_empty(), 0, text.capture.is_cut()),
            Stdout::Items { items, .. } => (items.has_result(), items.ignored(), false),
            Stdout::Whole(bytes) => (!bytes.trim_ascii().is_empty(), 0, false),
        };
        Heard {
            output: match self.terms.output {
                Output::Text => OutputKind::Text,
                Output::Items => OutputKind::Items,
                Output::Json => OutputKind::Json,
                Output::Image(_) => OutputKind::Image,
            },
            has_result,
            after_result,
            is_cut,
            exit_is_ok: exit_failure(ended.status, self.terms.ok_exit_codes).is_none(),
        }
    }

    /// What a hook answered.
    pub(crate) fn answer(mut self, ended: &Ended) -> Result<Option<Value>, Throw> {
        if let Some(sentence) = self.failure(ended) {
            return Err(self.throw(ended, &sentence));
        }
        self.pass_on_stderr();
        match &self.stdout {
            Stdout::Whole(bytes) if !bytes.trim_ascii().is_empty() => json_value(bytes).map(Some),
            _ => Ok(None),
        }
    }

    /// The last line may have no line break.
    fn end_of_output(&mut self) {
        if let Stdout::Items { items, line } = &mut self.stdout {
            take_line(items, line);
            line.clear();
        }
    }

    fn pass_on_stderr(&mut self) {
        let invocation = self.invocation;
        self.stderr.drain(&|lines| invocation.stderr_lines(lines));
    }

    /// Why nothing that was printed is a result, if so.
    fn failure(&self, ended: &Ended) -> Option<String> {
        let exit = exit_failure(ended.status, self.terms.ok_exit_codes);
        match ended.cause {
            Cause::Itself => exit,
            Cause::Timeout => Some(timed_out("Command", self.terms.timeout.unwrap_or_default())),
            Cause::Output => Some(match &self.stdout {
                Stdout::Items { .. } => "Command printed a line of more than 32 MiB".to_owned(),
                Stdout::Text(_) | Stdout::Whole(_) => "Command printed more than 32 MiB".to_owned(),
            }),
            Cause::Stop => {
                // A result that was printed in time counts, however an item's process then ended.
                let has_result = match &self.stdout {
                    Stdout::Items { items, .. } => items.has_result(),
                    Stdout::Text(_) => exit.is_none(),
                    Stdout::Whole(bytes) => exit.is_none() && !bytes.is_empty(),
                };
                (!has_result).then(|| ABORTED.to_owned())
            }
        }
    }

    /// The message of a failure: what was printed, and why that is not the result.
    fn throw(self, ended: &Ended, sentence: &str) -> Throw {
        let stderr = self.stderr.trimmed();
        let by_itself = ended.cause == Cause::Itself;
        match self.stdout {
            Stdout::Text(text) => {
                let output = joined(&text.capture.finish().text, "\n", &stderr);
                Throw(joined(&output, "\n\n", sentence))
            }
            Stdout::Items { items, .. } if by_itself => {
                let reason = if stderr.is_empty() { sentence } else { &stderr };
                Throw(joined(&items.result_text(), "\n\n", reason))
            }
            Stdout::Items { items, .. } => {
                let output = joined(&items.text_so_far(), "\n", &stderr);
                Throw(joined(&output, "\n\n", sentence))
            }
            Stdout::Whole(_) if by_itself && !stderr.is_empty() => Throw(stderr),
            Stdout::Whole(_) => Throw(joined(&stderr, "\n\n", sentence)),
        }
    }
}

/// Two texts with something between them, if there are two.
fn joined(first: &str, between: &str, second: &str) -> String {
    if first.is_empty() || second.is_empty() {
        return format!("{first}{second}");
    }
    format!("{first}{between}{second}")
}

fn text_result(capture: Capture, invocation: &Invocation<'_>) -> ToolResult {
    let captured = capture.finish();
    if captured.has_invalid_bytes {
        invocation.warn("its output is not UTF-8; bytes that are no characters became U+FFFD");
    }
    let text = if captured.text.is_empty() {
        "(no output)".to_owned()
    } else {
        captured.text
    };
    ToolResult {
        details: captured
            .full_output
            .map(|path| value!({"fullOutputPath": path})),
        ..ToolResult::text(text)
    }
}

fn image_result(bytes: &[u8], media_type: &str) -> Result<ToolResult, Throw> {
    if bytes.is_empty() {
        return Err(Throw("Command printed no image".to_owned()));
    }
    let image = Content::Image {
        data: STANDARD.encode(bytes),
        mime_type: media_type.to_owned(),
    };
    Ok(ToolResult {
        content: vec![image],
        ..ToolResult::default()
    })
}

/// The value is the structured content, and printed it is the text.
fn json_result(
    bytes: &[u8],
    max_output_bytes: usize,
    invocation: &Invocation<'_>,
) -> Result<ToolResult, Throw> {
    if bytes.trim_ascii().is_empty() {
        return Err(Throw("Command printed no JSON value".to_owned()));
    }
    let value = json_value(bytes)?;
    let mut capture = Capture::new(max_output_bytes);
    capture.push(json::compact(&value).as_bytes());
    Ok(ToolResult {
        structured_content: Some(value),
        ..text_result(capture, invocation)
    })
}

fn json_value(bytes: &[u8]) -> Result<Value, Throw> {
    parse(bytes).map_err(|wrong| {
        Throw(format!(
            "Command printed something that is not one JSON value: {wrong}: {}",
            excerpt(bytes)
        ))
    })
}
