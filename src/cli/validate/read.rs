//! The values of a piece of the input, as fast as they can be read and exactly as [`Values`] reads them.

use pitool::format;
use pitool::json::{JsonError, Values};
use pitool::message::ToolCall;
use serde_json::Value;

use super::pipeline::{Piece, count_lines};

/// What became of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// It is done with.
    Done,
    /// It belongs together with what comes behind it.
    Unfinished,
    /// Nothing more is wanted.
    End,
}

/// What stands at a place of the input.
#[derive(Debug)]
pub(super) enum Content {
    /// A value.
    Value(Value),
    /// The calls of a message that has nothing else to say.
    Calls(Vec<ToolCall>),
}

/// What is made of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Its values.
    Values,
    /// Calls; values where it takes more than a look to find them.
    Calls,
}

/// What stands there, or why there is nothing, and the line where it begins.
pub(super) type Item = (usize, Result<Content, JsonError>);

/// So many lines in a row that are no plain messages make it unlikely that one comes.
const MOST_MISSES: usize = 8;

/// Hands each value of the piece to `take`. Answers where the piece is unfinished, if it is.
///
/// Values that serde_json reads cost one pass. At the first one that it does not (it is odd, broken, or goes on in the
/// next piece) the rest of the piece is read by [`Values`], which knows how to go on behind a broken one.
pub(super) fn values(
    piece: Piece<'_>,
    wanted: Wanted,
    mut take: impl FnMut(Item) -> Taken,
) -> Option<usize> {
    let text = match wanted {
        Wanted::Values => None,
        Wanted::Calls => str::from_utf8(piece.text).ok(),
    };
    let mut misses = 0;
    let mut line = piece.first_line;
    let mut end = 0;
    loop {
        let begin = end + blank_prefix(&piece.text[end..]);
        line += count_lines(&piece.text[end..begin]);
        let plain = text
            .filter(|_| misses < MOST_MISSES)
            .and_then(|text| plain_line(&text[begin..]));
        let content = if let Some((calls, length)) = plain {
            misses = 0;
            end = begin + length;
            Content::Calls(calls)
        } else {
            misses += 1;
            let rest = serde_json::Deserializer::from_slice(&piece.text[begin..]);
            let mut stream = rest.into_iter::<Value>();
            match stream.next() {
                None => return None,
                Some(Err(_)) => return odd_values(piece, begin, line, take),
                Some(Ok(value)) => {
                    end = begin + stream.byte_offset();
                    Content::Value(value)
                }
            }
        };
        match take((line, Ok(content))) {
            Taken::Done => {}
            Taken::Unfinished => return Some(begin),
            Taken::End => return None,
        }
        line += count_lines(&piece.text[begin..end]);
    }
}

/// The calls of a plain message that is the whole of the next line, and the length of the line.
fn plain_line(text: &str) -> Option<(Vec<ToolCall>, usize)> {
    let length = memchr::memchr(b'\n', text.as_bytes()).unwrap_or(text.len());
    Some((format::plain_calls(&text[..length])?, length))
}

/// The values from `begin` on, which is on this line.
fn odd_values(
    piece: Piece<'_>,
    begin: usize,
    line: usize,
    mut take: impl FnMut(Item) -> Taken,
) -> Option<usize> {
    let place = Place::of(piece.text, begin, line);
    let mut values = Values::new(&piece.text[begin..]);
    // How far a broken value reaches is only known when something comes behind it.
    let mut broken = None;
    loop {
        let end = begin + values.offset();
        let at = end + blank_prefix(&piece.text[end..]);
        let Some(item) = values.next() else {
            return broken.map(|(at, _)| at);
        };
        if let Some((_, error)) = broken.take()
            && take(error) == Taken::End
        {
            return None;
        }
        match item {
            Err(_) if values.has_run_out() => return Some(at),
            Err(error) => {
                let error = place.of_error(error);
                broken = Some((at, (error.line, Err(error))));
            }
            Ok(located) => {
                let line = place.line + located.line - 1;
                match take((line, Ok(Content::Value(located.value)))) {
                    Taken::Done => {}
                    Taken::Unfinished => return Some(at),
                    Taken::End => return None,
                }
            }
        }
    }
}

/// Where in the stream a text begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) line: usize,
    /// How many characters of its line stand before it.
    column: usize,
}

impl Place {
    /// The beginning of a line.
    pub(super) fn line(line: usize) -> Self {
        Self { line, column: 0 }
    }

    fn of(text: &[u8], begin: usize, line: usize) -> Self {
        let line_begin = memchr::memrchr(b'\n', &text[..begin]).map_or(0, |end| end + 1);
        let before = String::from_utf8_lossy(&text[line_begin..begin]);
        Self {
            line,
            column: before.chars().count(),
        }
    }

    /// An error of the text, where it is in the stream.
    pub(super) fn of_error(self, error: JsonError) -> JsonError {
        let column = if error.line == 1 { self.column } else { 0 };
        JsonError {
            line: self.line + error.line - 1,
            column: error.column + column,
            message: error.message,
        }
    }
}

fn blank_prefix(text: &[u8]) -> usize {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    text.iter()
        .position(|byte| !is_blank(byte))
        .unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use pitool::json::compact;

    use super::*;

    fn read(text: &str, wanted: Wanted) -> (Vec<String>, Option<usize>) {
        let mut items = Vec::new();
        let piece = Piece {
            text: text.as_bytes(),
            first_line: 10,
            is_last: false,
        };
        let unfinished = values(piece, wanted, |(line, item)| {
            items.push(match item {
                Ok(Content::Value(value)) => format!("{line}: {}", compact(&value)),
                Ok(Content::Calls(calls)) => format!("{line}: {} calls", calls.len()),
                Err(error) => error.to_string(),
            });
            Taken::Done
        });
        (items, unfinished)
    }

    /// Compares with [`Values`] over the same text, and what the piece leaves behind.
    #[track_caller]
    fn case(text: &str, expected: &[&str], left: Option<&str>) {
        for wanted in [Wanted::Values, Wanted::Calls] {
            let (items, unfinished) = read(text, wanted);
            assert_eq!(items, expected, "{text}");
            assert_eq!(unfinished.map(|begin| &text[begin..]), left, "{text}");
        }
    }

    #[test]
    fn lines_are_counted() {
        case("", &[], None);
        case(
            "{\"a\":1}\n\n \"x\"\n2 3\n",
            &["10: {\"a\":1}", "12: \"x\"", "13: 2", "13: 3"],
            None,
        );
        case("{\n\"a\":\n1}\n[]\n", &["10: {\"a\":1}", "13: []"], None);
    }

    #[test]
    fn plain_messages_are_calls_among_values() {
        let message = r#"{"role":"assistant","content":[{"type":"toolCall","id":"1","name":"a","arguments":{}}]}"#;
        let text = format!("{message}\n\n1\n{message} {message}\n{message}\n{{\n}}\n[{message}");
        let (items, unfinished) = read(&text, Wanted::Calls);
        let value = format!("13: {message}");
        let calls = [
            "10: 1 calls",
            "12: 1",
            &value,
            "13: 1 calls",
            "14: 1 calls",
            "15: {}",
        ];
        assert_eq!(items, calls);
        assert_eq!(
            unfinished.map(|begin| &text[begin..begin + 3]),
            Some("[{\"")
        );
        let (items, _) = read(&text, Wanted::Values);
        assert_eq!(items.len(), calls.len());
    }

    #[test]
    fn odd_values_are_read() {
        case(
            "1\n\"\\ud83d\"\n1e999\n2\n",
            &[
                "10: 1",
                "11: \"\u{FFFD}\"",
                "12: 1.7976931348623157e+308",
                "13: 2",
            ],
            None,
        );
    }

    #[test]
    fn broken_lines_do_not_stop_the_rest() {
        case(
            "1\nnope\n2\n",
            &["10: 1", "line 11 column 2: expected `null`", "12: 2"],
            None,
        );
        case(
            "1 x\n2\n",
            &["10: 1", "line 10 column 3: expected a value", "11: 2"],
            None,
        );
        case(
            "{\"a\":1\n{\"b\":1}\n",
            &[
                "line 10 column 1: the value that begins here is not complete",
                "11: {\"b\":1}",
            ],
            None,
        );
    }

    #[test]
    fn what_may_go_on_in_the_next_piece_is_left() {
        case("1\n{\"a\":\n", &["10: 1"], Some("{\"a\":\n"));
        case(
            "\"\\ud83d\"\n\n[1,\n2\n",
            &["10: \"\u{FFFD}\""],
            Some("[1,\n2\n"),
        );
    }
}
