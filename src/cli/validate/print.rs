//! A judgement as text or as a JSON line.

use std::io::{self, Write};

use clap::ValueEnum;
use pitool::schema::{Accepted, Step, Violation};
use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};

use super::judge::{Judged, Origin, Refusal};
use crate::report::style::Styles;
use crate::report::table::{Cell, Table};
use crate::report::{sanitize, steps, text};

/// What is printed of each input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Report {
    /// Valid values on stdout, one a line; what is wrong with the others on stderr
    #[default]
    Text,
    /// One JSON line per input with the verdict
    Jsonl,
}

/// What is asked beside the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// Nothing.
    Verdict,
    /// What coercion did.
    Explain,
}

/// Text on its way to the two streams.
#[derive(Debug, Default)]
pub(super) struct Printed {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    /// Where stdout stood when something for stderr was complete: both may be the same terminal.
    marks: Vec<Mark>,
}

/// How much of both streams was there at one moment.
#[derive(Debug, Clone, Copy)]
struct Mark {
    stdout: usize,
    stderr: usize,
}

impl Printed {
    /// How much it is altogether, in bytes.
    pub(super) fn len(&self) -> usize {
        self.stdout.len() + self.stderr.len()
    }

    /// Adds what another has, which is left empty.
    pub(super) fn append(&mut self, other: &mut Self) {
        let (stdout, stderr) = (self.stdout.len(), self.stderr.len());
        let moved = other.marks.drain(..).map(|mark| Mark {
            stdout: stdout + mark.stdout,
            stderr: stderr + mark.stderr,
        });
        self.marks.extend(moved);
        self.stdout.append(&mut other.stdout);
        self.stderr.append(&mut other.stderr);
    }

    fn complain(&mut self, text: &str) {
        self.stderr.extend_from_slice(text.as_bytes());
        self.marks.push(Mark {
            stdout: self.stdout.len(),
            stderr: self.stderr.len(),
        });
    }

    /// Writes everything and leaves it empty: in one piece to each stream, or as it was printed
    /// where both are seen at once.
    /// A closed stderr is nobody's business.
    pub(super) fn write(
        &mut self,
        order: Order,
        stdout: &mut impl Write,
        stderr: &mut impl Write,
    ) -> io::Result<()> {
        let all = Mark {
            stdout: self.stdout.len(),
            stderr: self.stderr.len(),
        };
        let marks = match order {
            Order::AsPrinted => std::mem::take(&mut self.marks),
            Order::Apart => vec![Mark { stdout: 0, ..all }],
        };
        let mut written = Mark {
            stdout: 0,
            stderr: 0,
        };
        for mark in marks.into_iter().chain([all]) {
            stdout.write_all(&self.stdout[written.stdout..mark.stdout])?;
            stdout.flush()?;
            let _ = stderr.write_all(&self.stderr[written.stderr..mark.stderr]);
            written = mark;
        }
        *self = Self {
            stdout: cleared(&mut self.stdout),
            stderr: cleared(&mut self.stderr),
            marks: Vec::new(),
        };
        Ok(())
    }
}

fn cleared(text: &mut Vec<u8>) -> Vec<u8> {
    text.clear();
    std::mem::take(text)
}

/// How the two streams follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// In big pieces.
    Apart,
    /// As their texts were printed.
    AsPrinted,
}

/// Prints judgements. Pure: it writes into [`Printed`].
#[derive(Debug, Clone)]
pub(super) struct Printer {
    pub(super) report: Report,
    pub(super) detail: Detail,
    /// What the input is called in each JSON line, so that lines of many inputs can be told apart.
    pub(super) source: Option<String>,
    /// The looks of stdout, and whether it is a terminal that must not obey what is in a value.
    pub(super) stdout: Stream,
    pub(super) stderr: Stream,
}

/// One of the two streams.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stream {
    pub(super) styles: Styles,
    pub(super) columns: usize,
    pub(super) is_terminal: bool,
}

impl Printer {
    /// How the two streams shall be written.
    pub(super) fn order(&self) -> Order {
        if self.stdout.is_terminal && self.stderr.is_terminal {
            Order::AsPrinted
        } else {
            Order::Apart
        }
    }

    /// Prints one judgement.
    pub(super) fn judged(&self, origin: Origin<'_>, judged: &Judged<'_>, printed: &mut Printed) {
        match self.report {
            Report::Jsonl => {
                let verdict = Verdict::new(self.source.as_deref(), origin, judged, self.detail);
                self.line(&verdict, printed);
            }
            Report::Text => self.text(origin, judged, printed),
        }
    }

    /// Prints that an input could not be understood.
    pub(super) fn unreadable(&self, line: usize, message: &str, printed: &mut Printed) {
        match self.report {
            Report::Jsonl => {
                let unreadable = Unreadable {
                    source: self.source.as_deref(),
                    line,
                    ok: false,
                    text: message,
                };
                self.line(&unreadable, printed);
            }
            Report::Text => self.complain(line, message, printed),
        }
    }

    /// Prints what a message has wrong that does not keep its calls from being judged.
    pub(super) fn warning(&self, line: usize, message: &str, printed: &mut Printed) {
        let warning = self.stderr.styles.warning.paint("warning:");
        let text = format!("line {line}: {warning} {}\n", sanitize::lines(message));
        printed.complain(&text);
    }

    /// Prints how the three ways of coercion judge the same input.
    pub(super) fn compared(
        &self,
        origin: Origin<'_>,
        judged: &[(&'static str, Judged<'_>)],
        printed: &mut Printed,
    ) {
        match self.report {
            Report::Jsonl => {
                let comparison = Comparison::new(self.source.as_deref(), origin, judged);
                self.line(&comparison, printed);
            }
            Report::Text => {
                let Stream {
                    styles, columns, ..
                } = self.stdout;
                let table = comparison(judged, columns, &styles);
                let text = format!("{}\n{table}", title(origin, &styles));
                printed.stdout.extend_from_slice(text.as_bytes());
            }
        }
    }

    fn text(&self, origin: Origin<'_>, judged: &Judged<'_>, printed: &mut Printed) {
        match judged {
            Ok(accepted) => self.line(&*accepted.value, printed),
            Err(refusal) => self.complain(origin.line, &refusal.text, printed),
        }
        if self.detail == Detail::Explain {
            let explained = self.explained(origin, judged);
            printed.complain(&explained);
        }
    }

    fn explained(&self, origin: Origin<'_>, judged: &Judged<'_>) -> String {
        let Stream {
            styles, columns, ..
        } = self.stderr;
        let steps = steps_of(judged);
        let title = title(origin, &styles);
        match judged {
            Ok(_) if steps.is_empty() => return format!("{title}: nothing changed\n"),
            Err(_) if steps.is_empty() => return String::new(),
            _ => {}
        }
        let changes = text::count(steps.len(), "change");
        format!(
            "{title}: {changes}\n{}",
            steps::table(steps, columns, &styles)
        )
    }

    fn complain(&self, line: usize, message: &str, printed: &mut Printed) {
        let place = self.stderr.styles.error.paint(format!("line {line}:"));
        let text = format!("{place} {}\n", sanitize::lines(message));
        printed.complain(&text);
    }

    /// A value as one line on stdout, numbers as JavaScript prints them.
    fn line(&self, value: &(impl Serialize + ?Sized), printed: &mut Printed) {
        let begin = printed.stdout.len();
        value
            .serialize(&mut Serializer::with_formatter(
                &mut printed.stdout,
                JavaScript,
            ))
            .expect("values of the wire have string keys");
        if self.stdout.is_terminal {
            let line = printed.stdout.split_off(begin);
            let line = String::from_utf8(line).expect("the formatter writes text");
            printed
                .stdout
                .extend_from_slice(sanitize::json(&line).as_bytes());
        }
        printed.stdout.push(b'\n');
    }
}

/// `line 3: echo call-1`, as far as the input has these.
fn title(origin: Origin<'_>, styles: &Styles) -> String {
    let mut title = format!("line {}", origin.line);
    if let Some(tool) = origin.tool {
        let tool = sanitize::one_line(tool);
        title.push_str(&format!(": {}", styles.tool.paint(tool)));
    }
    if let Some(id) = origin.tool_call_id {
        let id = sanitize::one_line(id);
        title.push_str(&format!(" {}", styles.dim.paint(id)));
    }
    title
}

fn comparison(judged: &[(&'static str, Judged<'_>)], columns: usize, styles: &Styles) -> String {
    let mut table = Table::new(&["COERCION", "VERDICT", "BECOMES"]);
    for (name, judged) in judged {
        let (verdict, becomes) = match judged {
            Ok(accepted) => {
                let value = pitool::json::compact(&accepted.value);
                let value = sanitize::one_line(&value).into_owned();
                (Cell::new("valid", styles.success), value)
            }
            Err(refusal) => (Cell::new("invalid", styles.error), on_one_line(refusal)),
        };
        table.row(vec![Cell::plain(*name), verdict, Cell::plain(becomes)]);
    }
    table.render(columns, styles)
}

fn on_one_line(refusal: &Refusal) -> String {
    if refusal.violations.is_empty() {
        return sanitize::one_line(&refusal.text).into_owned();
    }
    let words = |violation: &Violation| {
        let message = sanitize::one_line(&violation.message);
        format!("{}: {message}", steps::path(&violation.path))
    };
    let words: Vec<String> = refusal.violations.iter().map(words).collect();
    words.join("; ")
}

fn steps_of<'a>(judged: &'a Judged<'_>) -> &'a [Step] {
    match judged {
        Ok(accepted) => &accepted.steps,
        Err(refusal) => &refusal.steps,
    }
}

/// A judgement on the wire.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Verdict<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a str>,
    line: usize,
    call: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<&'a str>,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    errors: Option<&'a [Violation]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<&'a [Step]>,
}

impl<'a> Verdict<'a> {
    fn new(
        source: Option<&'a str>,
        origin: Origin<'a>,
        judged: &'a Judged<'_>,
        detail: Detail,
    ) -> Self {
        let accepted = judged.as_ref().ok();
        let refusal = judged.as_ref().err();
        Self {
            source,
            line: origin.line,
            call: origin.call,
            tool_call_id: origin.tool_call_id,
            tool: origin.tool,
            ok: judged.is_ok(),
            value: accepted.map(|Accepted { value, .. }| &**value),
            errors: refusal.map(|refusal| refusal.violations.as_slice()),
            text: refusal.map(|refusal| refusal.text.as_str()),
            steps: (detail == Detail::Explain).then(|| steps_of(judged)),
        }
    }
}

/// An input that could not be understood, on the wire.
#[derive(Serialize)]
struct Unreadable<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a str>,
    line: usize,
    ok: bool,
    text: &'a str,
}

/// Three judgements of one input on the wire: `{"line":1,"call":1,"compare":{"off":{"ok":false,"errors":[…]},…}}`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Comparison<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a str>,
    line: usize,
    call: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<&'a str>,
    compare: serde_json::Map<String, Value>,
}

impl<'a> Comparison<'a> {
    fn new(
        source: Option<&'a str>,
        origin: Origin<'a>,
        judged: &[(&'static str, Judged<'_>)],
    ) -> Self {
        let entry = |(name, judged): &(&'static str, Judged<'_>)| {
            let entry = Compared {
                ok: judged.is_ok(),
                value: judged.as_ref().ok().map(|accepted| &*accepted.value),
                errors: judged
                    .as_ref()
                    .err()
                    .map(|refusal| refusal.violations.as_slice()),
                text: judged.as_ref().err().map(|refusal| refusal.text.as_str()),
                steps: steps_of(judged),
            };
            let value = serde_json::to_value(entry).expect("a verdict has only string keys");
            ((*name).to_owned(), value)
        };
        Self {
            source,
            line: origin.line,
            call: origin.call,
            tool_call_id: origin.tool_call_id,
            tool: origin.tool,
            compare: judged.iter().map(entry).collect(),
        }
    }
}

#[derive(Serialize)]
struct Compared<'a> {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    errors: Option<&'a [Violation]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    steps: &'a [Step],
}

/// Compact JSON (what [`Formatter`] writes by itself) with numbers as JavaScript prints them.
struct JavaScript;

impl Formatter for JavaScript {
    fn write_f64<W: Write + ?Sized>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(ryu_js::Buffer::new().format(value).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// Writes into one text that two streams share.
    struct Shared<'t>(&'t RefCell<String>);

    impl Write for Shared<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().push_str(str::from_utf8(bytes).unwrap());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn printed(order: Order) -> String {
        let mut first = Printed::default();
        first.stdout.extend_from_slice(b"1 ");
        first.complain("two ");
        first.stdout.extend_from_slice(b"3 ");
        let mut second = Printed::default();
        second.complain("four ");
        second.stdout.extend_from_slice(b"5 ");
        first.append(&mut second);
        assert_eq!((first.len(), second.len()), (15, 0));
        let text = RefCell::new(String::new());
        first
            .write(order, &mut Shared(&text), &mut Shared(&text))
            .unwrap();
        assert_eq!(first.len(), 0);
        text.into_inner()
    }

    #[test]
    fn what_both_streams_say_keeps_its_order_on_one_terminal() {
        assert_eq!(printed(Order::AsPrinted), "1 two 3 four 5 ");
        assert_eq!(printed(Order::Apart), "two four 1 3 5 ");
    }
}
