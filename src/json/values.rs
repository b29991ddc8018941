//! JSON values one after another in a stream: JSON lines, pretty-printed values, or a mixture.

use std::io::{self, BufRead, ErrorKind};

use serde_json::Value;

use super::scan::{self, Scan, ScanError};
use super::{BYTE_ORDER_MARK, JsonError, Position, lenient};

/// A value and where it begins.
#[derive(Debug, Clone, PartialEq)]
pub struct Located {
    /// The line, from 1.
    pub line: usize,
    /// The value.
    pub value: Value,
}

/// The values of a stream, read as [`parse`](super::parse) reads them.
///
/// Holds one value at a time, whatever the length of the stream. What is no JSON is an error that names its
/// place, and reading goes on with the next line that does not belong to it: behind a value that was cut off
/// in its line that is the line below; the rest of a broken pretty-printed value is passed over, so that no
/// inner part of it is mistaken for a value of its own.
/// A stream that cannot be read any further ends with an error.
#[derive(Debug)]
pub struct Values<R> {
    source: Source<R>,
    /// Up to this byte of the stream everything was part of a value that turned out to be broken: no value may
    /// span lines there, so that no byte is scanned a third time.
    doubtful: usize,
    has_run_out: bool,
    has_ended: bool,
}

impl<R: BufRead> Values<R> {
    /// Begins at the beginning of a stream.
    pub fn new(reader: R) -> Self {
        Self {
            source: Source::new(reader),
            doubtful: 0,
            has_run_out: false,
            has_ended: false,
        }
    }

    /// How many bytes of the stream are used up: where the next value begins, or the white space before it.
    pub fn offset(&self) -> usize {
        self.source.offset
    }

    /// Whether the latest error is of a value that the end of the stream cut off: with more behind it, it might be good.
    pub fn has_run_out(&self) -> bool {
        self.has_run_out
    }

    fn read(&mut self) -> io::Result<Option<Result<Located, JsonError>>> {
        if !self.source.skip_blank()? {
            return Ok(None);
        }
        let (line, _) = self.source.position.line_and_column();
        let item = match self.read_line() {
            Some(value) => Ok(Located { line, value }),
            None => match self.scan()? {
                Ok(length) => {
                    let value = self.source.take(length, read_scanned);
                    Ok(Located { line, value })
                }
                Err(error) => Err(self.recover(error)?),
            },
        };
        Ok(Some(item))
    }

    /// The value that is the rest of its line, if it is one; the case that has to be fast.
    fn read_line(&mut self) -> Option<Value> {
        let line = self.source.rest();
        if !line.ends_with(b"\n") || self.doubtful_line().is_some() {
            return None;
        }
        let value = serde_json::from_slice(line).ok()?;
        self.source.pass(line.len());
        Some(value)
    }

    /// The length of the value that begins here.
    fn scan(&mut self) -> io::Result<Result<usize, ScanError>> {
        let mut scan = Scan::default();
        let mut scanned = 0;
        let limit = self.doubtful_line();
        loop {
            let end = limit.unwrap_or(self.source.rest().len());
            match scan.push(&self.source.rest()[scanned..end]) {
                Ok(None) => scanned = end,
                Ok(Some(length)) => return Ok(Ok(length)),
                Err(error) => return Ok(Err(error)),
            }
            if limit.is_some() || !self.source.fill()? {
                let finished = scan.finish().map(|()| scanned);
                self.has_run_out = limit.is_none() && finished.is_err();
                return Ok(finished);
            }
        }
    }

    /// The length of the line from here on, if all of it was part of a broken value.
    fn doubtful_line(&self) -> Option<usize> {
        let doubtful = self.doubtful.checked_sub(self.source.offset)?;
        line_length(self.source.rest()).filter(|length| *length <= doubtful)
    }

    /// Passes over the broken value that begins here.
    fn recover(&mut self, error: ScanError) -> io::Result<JsonError> {
        let begin = self.source.position;
        let broken = begin.after(&self.source.rest()[..error.offset]);
        let broken_offset = self.source.offset + error.offset;
        self.doubtful = self.doubtful.max(broken_offset);
        self.skip_broken(error.offset)?;
        let is_cut_off = self.source.offset <= broken_offset;
        let (place, message) = if is_cut_off {
            (
                begin,
                "the value that begins here is not complete".to_owned(),
            )
        } else {
            (broken, error.message)
        };
        let (line, column) = place.line_and_column();
        Ok(JsonError {
            line,
            column,
            message,
        })
    }

    fn skip_broken(&mut self, sound: usize) -> io::Result<()> {
        let mut extent = Extent::new(&self.source.rest()[..sound]);
        loop {
            let rest = self.source.rest();
            let line_end = line_length(rest);
            let piece = line_end.unwrap_or(rest.len());
            extent.push(&rest[..piece]);
            self.source.pass(piece);
            if self.source.rest().is_empty() && !self.source.fill()? {
                return Ok(());
            }
            if line_end.is_some() && !extent.includes_line(self.source.rest()[0]) {
                return Ok(());
            }
        }
    }
}

impl<R: BufRead> Iterator for Values<R> {
    type Item = Result<Located, JsonError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_ended {
            return None;
        }
        let item = self.read().unwrap_or_else(|error| {
            self.has_ended = true;
            let (line, column) = self.source.position.line_and_column();
            Some(Err(JsonError {
                line,
                column,
                message: format!("cannot be read: {error}"),
            }))
        });
        self.has_ended |= item.is_none();
        item
    }
}

fn read_scanned(text: &[u8]) -> Value {
    serde_json::from_slice(text).unwrap_or_else(|_| lenient::read(text))
}

/// How far the first line reaches, its line break included.
fn line_length(text: &[u8]) -> Option<usize> {
    text.iter()
        .position(|byte| *byte == b'\n')
        .map(|last| last + 1)
}

/// The bytes of a reader that are not used up yet.
#[derive(Debug)]
struct Source<R> {
    reader: R,
    buffer: Vec<u8>,
    /// Where in the buffer the bytes begin that are not used up.
    at: usize,
    /// The same place, counted from the beginning of the stream.
    offset: usize,
    position: Position,
    /// Whether the reader has come to its end. A terminal is not asked again: it would want a second Ctrl-D.
    has_ended: bool,
}

impl<R: BufRead> Source<R> {
    fn new(reader: R) -> Self {
        Self {
            reader,
            buffer: Vec::new(),
            at: 0,
            offset: 0,
            position: Position::START,
            has_ended: false,
        }
    }

    fn rest(&self) -> &[u8] {
        &self.buffer[self.at..]
    }

    /// Adds what the reader has at hand, but no more than a line; false at the end of the stream.
    fn fill(&mut self) -> io::Result<bool> {
        if self.has_ended {
            return Ok(false);
        }
        let length = loop {
            match self.reader.fill_buf() {
                Ok(mut available) => break available.read_until(b'\n', &mut self.buffer)?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        };
        self.reader.consume(length);
        self.has_ended = length == 0;
        Ok(length > 0)
    }

    /// Uses up bytes.
    fn pass(&mut self, length: usize) {
        self.position = self.position.after(&self.buffer[self.at..self.at + length]);
        self.at += length;
        self.offset += length;
        if self.at * 2 >= self.buffer.len() {
            self.buffer.drain(..self.at);
            self.at = 0;
        }
    }

    fn take<T>(&mut self, length: usize, read: impl FnOnce(&[u8]) -> T) -> T {
        let taken = read(&self.rest()[..length]);
        self.pass(length);
        taken
    }

    /// Goes to the next byte that is not blank; false at the end of the stream.
    fn skip_blank(&mut self) -> io::Result<bool> {
        if self.offset == 0 {
            self.skip_byte_order_mark()?;
        }
        loop {
            self.pass(scan::blank_prefix(self.rest()));
            if !self.rest().is_empty() {
                return Ok(true);
            }
            if !self.fill()? {
                return Ok(false);
            }
        }
    }

    fn skip_byte_order_mark(&mut self) -> io::Result<()> {
        while self.rest().len() < BYTE_ORDER_MARK.len()
            && BYTE_ORDER_MARK.starts_with(self.rest())
            && self.fill()?
        {}
        if self.rest().starts_with(BYTE_ORDER_MARK) {
            self.pass(BYTE_ORDER_MARK.len());
            self.position = Position::START;
        }
        Ok(())
    }
}

/// How far a broken value reaches, as well as its layout and its brackets tell.
#[derive(Debug)]
struct Extent {
    layout: Layout,
    depth: isize,
    text: Text,
}

/// What the first line of a broken value tells of the lines below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// It is `{` alone: they are members, indented or not.
    Members,
    /// It is `[` alone: they are items, indented or not.
    Items,
    /// It has more: the value was most likely meant to be that line, unless the others are indented.
    Line,
}

/// Whether a string is open; a line break closes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Text {
    Outside,
    Inside,
    Escape,
}

impl Extent {
    /// Begins at the beginning of a value that is known to be good up to the end of `sound`.
    fn new(sound: &[u8]) -> Self {
        let first_line = line_length(sound).map(|length| sound[..length].trim_ascii());
        Self {
            layout: match first_line {
                Some(b"{") => Layout::Members,
                Some(b"[") => Layout::Items,
                _ => Layout::Line,
            },
            depth: 0,
            text: Text::Outside,
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.text = match (self.text, byte) {
                (Text::Outside, b'"') | (Text::Escape, _) => Text::Inside,
                (Text::Inside, b'\\') => Text::Escape,
                (_, b'\n') | (Text::Inside, b'"') => Text::Outside,
                (text, _) => text,
            };
            match (self.text, byte) {
                (Text::Outside, b'[' | b'{') => self.depth += 1,
                (Text::Outside, b']' | b'}') => self.depth -= 1,
                _ => {}
            }
        }
    }

    /// Whether the line that begins with this byte is still part of the value.
    fn includes_line(&self, first: u8) -> bool {
        let is_open = self.depth > 0;
        is_open
            && match first {
                b' ' | b'\t' | b'\r' | b'\n' | b']' | b'}' | b',' | b':' => true,
                b'[' | b'{' => self.layout == Layout::Items,
                _ => self.layout != Layout::Line,
            }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Read, repeat};

    use serde_json::json;

    use super::*;
    use crate::json::compact;

    /// All items of a stream, a line each, however the stream is cut into pieces.
    #[track_caller]
    fn case(stream: &str, expected: &str) {
        let items = |capacity| {
            Values::new(BufReader::with_capacity(capacity, stream.as_bytes()))
                .map(|item| match item {
                    Ok(Located { line, value }) => format!("{line}: {}", compact(&value)),
                    Err(error) => error.to_string(),
                })
                .collect::<Vec<_>>()
                .join("\n")
        };
        for capacity in [1, 2, 7, 1 << 16] {
            assert_eq!(
                items(capacity),
                expected,
                "in pieces of {capacity} bytes: {stream}"
            );
        }
    }

    const CUT_OFF: &str = "the value that begins here is not complete";

    #[test]
    fn values_stand_in_any_layout() {
        case("", "");
        case(" \n\r\n\t", "");
        case("{\"a\":1}\n\n{\"a\":2}\n", "1: {\"a\":1}\n3: {\"a\":2}");
        case("{\"a\":1}\r\n{\"a\":2}", "1: {\"a\":1}\n2: {\"a\":2}");
        case(
            "{\n  \"a\": [\n    1\n  ]\n}\n[\n]\n2 3\n\"x\"null",
            "1: {\"a\":[1]}\n6: []\n8: 2\n8: 3\n9: \"x\"\n9: null",
        );
        case("{}[]{}\n", "1: {}\n1: []\n1: {}");
        case(
            "\u{FEFF}{\"a\":\"\u{e9}\"} 5",
            "1: {\"a\":\"\u{e9}\"}\n1: 5",
        );
    }

    #[test]
    fn odd_values_are_read_as_parse_reads_them() {
        case(
            "{\"a\":\"\\ud83d\"}\n1e400\n",
            "1: {\"a\":\"\u{FFFD}\"}\n2: 1.7976931348623157e+308",
        );
    }

    #[test]
    fn bad_line_is_named_and_the_next_is_read() {
        case(
            "1\nnot json {\n  {\"a\":1}\n2",
            "1: 1\nline 2 column 2: expected `null`\n4: 2",
        );
        case(
            "{\"a\":tru}\n  {\"a\":1}\n",
            "line 1 column 9: expected `true`\n2: {\"a\":1}",
        );
        case(
            "{\"a\":1}}\n2\n",
            "1: {\"a\":1}\nline 1 column 8: expected a value\n2: 2",
        );
        case(
            "{\"a\":1} x {}\n2\n",
            "1: {\"a\":1}\nline 1 column 9: expected a value\n2: 2",
        );
    }

    #[test]
    fn value_cut_off_in_its_line_takes_no_other_with_it() {
        for cut in ["{\"a\":1", "{\"a\":", "{\"a\":[1,", "{\"a\"", "[[[\"x\""] {
            case(
                &format!("{cut}\n{{\"b\":1}}\n{{\"c\":2}}\n"),
                &format!("line 1 column 1: {CUT_OFF}\n2: {{\"b\":1}}\n3: {{\"c\":2}}"),
            );
        }
        case(
            "{\"a\":\"x\n{\"b\":1}\n",
            "line 1 column 8: control character in a string\n2: {\"b\":1}",
        );
        case(
            "{\"a\":1\n5\n6\n",
            &format!("line 1 column 1: {CUT_OFF}\n2: 5\n3: 6"),
        );
        case(
            "[1,\n[2,\n[3,\n[4]\n[5]\n",
            &format!(
                "line 1 column 1: {CUT_OFF}\nline 2 column 1: {CUT_OFF}\nline 3 column 1: {CUT_OFF}\n4: [4]\n5: [5]"
            ),
        );
        case("{\"a\":[", &format!("line 1 column 1: {CUT_OFF}"));
    }

    #[test]
    fn no_part_of_a_broken_pretty_printed_value_is_a_value() {
        case(
            "[\n{\"b\":1}\n{\"c\":2}\n",
            "line 3 column 1: expected `,` or `]`",
        );
        case(
            "{\n  \"a\": tru,\n  \"b\": [\n    {\"c\": 1}\n  ]\n}\n2\n",
            "line 2 column 11: expected `true`\n7: 2",
        );
        case(
            "{\n\"a\": 1\n{\n\"b\": 2\n}\n",
            &format!("line 1 column 1: {CUT_OFF}\n3: {{\"b\":2}}"),
        );
        case(
            "{\n\"a\": 1,,\n\"b\": 2\n}\n3\n",
            "line 2 column 8: expected a key in double quotes\n5: 3",
        );
        case(
            "[\n{\"a\":1},\n{\"a\":tru},\n{\"a\":3}\n]\n4\n",
            "line 3 column 9: expected `true`\n6: 4",
        );
        case(
            "{\"r\":1, \"c\":[\n  {\"a\":1},,\n  {\"a\":2}\n]}\n5\n",
            "line 2 column 11: expected a value\n5: 5",
        );
    }

    #[test]
    fn every_byte_of_unclosed_lines_is_scanned_a_bounded_number_of_times() {
        let stream = "[0,\n".repeat(50_000) + "7\n";
        let items: Vec<_> = Values::new(stream.as_bytes()).collect();
        assert_eq!(items.len(), 50_001);
        assert_eq!(
            items[50_000],
            Ok(Located {
                line: 50_001,
                value: json!(7)
            })
        );
    }

    #[test]
    fn million_levels_are_one_value() {
        let stream = "[".repeat(1_000_000) + &"]".repeat(1_000_000) + "\n7\n";
        let items: Vec<_> = Values::new(stream.as_bytes())
            .map(|item| item.unwrap().line)
            .collect();
        assert_eq!(items, [1, 2]);
    }

    #[test]
    fn memory_does_not_grow_with_the_stream() {
        let mut values = Values::new(BufReader::new(
            repeat(b'7')
                .take(20)
                .chain(repeat(b' ').take(3_000_000))
                .chain(&b"1 "[..]),
        ));
        assert_eq!(values.by_ref().count(), 2);
        assert!(values.source.buffer.capacity() < 50_000);
        let lines = b"{\"a\":[1,2,3]} ".repeat(20_000);
        let mut values = Values::new(BufReader::new(&lines[..]));
        assert_eq!(values.by_ref().flatten().count(), 20_000);
        assert!(values.source.buffer.capacity() < 50_000);
    }

    #[test]
    fn stream_that_cannot_be_read_ends_with_an_error() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("gone"))
            }
        }
        let items: Vec<_> = Values::new(BufReader::new(b"1\n2".chain(Broken))).collect();
        assert_eq!(items.len(), 2);
        assert_eq!(
            items[1].as_ref().unwrap_err().to_string(),
            "line 2 column 1: cannot be read: gone"
        );
    }
}
