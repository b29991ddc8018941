//! Lengths, times and counts as people read them.

use std::borrow::Cow;
use std::time::Duration;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// How many columns a text takes on a terminal; it must hold no control characters.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// The text in at most `columns`, with `…` at the end if something is missing.
pub(crate) fn truncate(text: &str, columns: usize) -> Cow<'_, str> {
    if text.len() <= columns || width(text) <= columns {
        return Cow::Borrowed(text);
    }
    let mut short = String::new();
    let mut used = 1;
    for character in text.chars() {
        used += character.width().unwrap_or(0);
        if used > columns {
            break;
        }
        short.push(character);
    }
    if columns > 0 {
        short.push('…');
    }
    Cow::Owned(short)
}

/// The text in at most `columns`, with `…` at the beginning if something is missing.
pub(crate) fn truncate_front(text: &str, columns: usize) -> Cow<'_, str> {
    if width(text) <= columns {
        return Cow::Borrowed(text);
    }
    let mut used = 1;
    let begin = text
        .char_indices()
        .rev()
        .take_while(|(_, character)| {
            used += character.width().unwrap_or(0);
            used <= columns
        })
        .last()
        .map_or(text.len(), |(begin, _)| begin);
    Cow::Owned(format!("…{}", &text[begin..]))
}

/// The text followed by the spaces that fill `columns`.
pub(crate) fn pad(text: &str, columns: usize) -> String {
    let missing = columns.saturating_sub(width(text));
    format!("{text}{}", " ".repeat(missing))
}

/// `12ms`, `1.2s`, `2m05s`, `1h02m`.
pub(crate) fn duration(duration: Duration) -> String {
    let millis = duration.as_millis();
    let seconds = duration.as_secs();
    match seconds {
        0 => format!("{millis}ms"),
        1..60 => format!("{}.{}s", seconds, millis / 100 % 10),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
    }
}

/// `1 call`, `2 calls`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncation_counts_columns() {
        assert_eq!(truncate("short", 5), "short");
        assert_eq!(truncate("longer", 5), "long…");
        assert_eq!(truncate("漢字漢字", 5), "漢字…");
        assert_eq!(truncate("漢字漢字", 4), "漢…");
        assert_eq!(truncate("äöü", 3), "äöü");
        assert_eq!(truncate("abc", 0), "");
    }

    #[test]
    fn padding_counts_columns() {
        assert_eq!(pad("漢", 4), "漢  ");
        assert_eq!(pad("abc", 2), "abc");
    }

    #[test]
    fn durations_get_coarser() {
        let case = |millis, text: &str| assert_eq!(duration(Duration::from_millis(millis)), text);
        case(0, "0ms");
        case(999, "999ms");
        case(1_250, "1.2s");
        case(59_999, "59.9s");
        case(125_000, "2m05s");
        case(3_720_000, "1h02m");
    }

    #[test]
    fn counts_have_their_plural() {
        assert_eq!(count(1, "call"), "1 call");
        assert_eq!(count(0, "error"), "0 errors");
    }
}
