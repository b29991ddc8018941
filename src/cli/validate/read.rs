//! The values of a piece of the input, as fast as they can be read and exactly as [`Values`] reads them.

use pitool::json::{JsonError, Values};
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

/// A value, or why there is none, and the line where it begins.
pub(super) type Item = (usize, Result<Value, JsonError>);

/// Hands each value of the piece to `take`. Answers where the piece is unfinished, if it is.
///
/// Values that serde_json reads cost one pass. At the first one that it does not (it is odd, broken, or goes on in the
/// next piece) the rest of the piece is read by [`Values`], which knows how to go on behind a broken one.
pub(super) fn values(piece: Piece<'_>, mut take: impl FnMut(Item) -> Taken) -> Option<usize> {
    let mut stream = serde_json::Deserializer::from_slice(piece.text).into_iter::<Value>();
    let mut line = piece.first_line;
    loop {
        let end = stream.byte_offset();
        let begin = end + blank_prefix(&piece.text[end..]);
        line += count_lines(&piece.text[end..begin]);
        match stream.next() {
            None => return None,
            Some(Err(_)) => return odd_values(piece, begin, line, take),
            Some(Ok(value)) => match take((line, Ok(value))) {
                Taken::Done => {}
                Taken::Unfinished => return Some(begin),
                Taken::End => return None,
            },
        }
        line += count_lines(&piece.text[begin..stream.byte_offset()]);
    }
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
            Ok(located) => match take((place.line + located.line - 1, Ok(located.value))) {
                Taken::Done => {}
                Taken::Unfinished => return Some(at),
                Taken::End => return None,
            },
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

    fn read(text: &str) -> (Vec<String>, Option<usize>) {
        let mut items = Vec::new();
        let piece = Piece {
            text: text.as_bytes(),
            first_line: 10,
            is_last: false,
        };
        let unfinished = values(piece, |(line, item)| {
            items.push(match item {
                Ok(value) => format!("{line}: {}", compact(&value)),
                Err(error) => error.to_string(),
            });
            Taken::Done
        });
        (items, unfinished)
    }

    /// Compares with [`Values`] over the same text, and what the piece leaves behind.
    #[track_caller]
    fn case(text: &str, expected: &[&str], left: Option<&str>) {
        let (items, unfinished) = read(text);
        assert_eq!(items, expected, "{text}");
        assert_eq!(unfinished.map(|begin| &text[begin..]), left, "{text}");
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
