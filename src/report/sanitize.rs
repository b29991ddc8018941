//! What tools say, made safe to show: no control character of theirs ever reaches a terminal.
//!
//! Controls are shown as visible text (`\x1b`), so that a person sees that something was there.
//! JSON keeps its data: inside strings the same characters become JSON escapes.

use std::borrow::Cow;
use std::fmt::Write as _;

/// How much of a text's own layout may be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Line breaks and tabs stay.
    Lines,
    /// Everything fits on one line: line breaks and tabs are shown as `\n` and `\t`.
    OneLine,
}

/// The text with every character that can drive a terminal or turn the reading direction shown as an escape.
/// A carriage return before a line feed is part of the line break and disappears.
pub(crate) fn sanitize(text: &str, layout: Layout) -> Cow<'_, str> {
    // Nearly every text is of such bytes, and judging bytes is much faster than judging characters.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Cow::Borrowed(text);
    }
    if !text.chars().any(|character| must_escape(character, layout)) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let ends_line = character == '\r' && characters.peek() == Some(&'\n');
        if ends_line {
            continue;
        }
        if must_escape(character, layout) {
            push_visible(&mut safe, character);
        } else {
            safe.push(character);
        }
    }
    Cow::Owned(safe)
}

/// A text that must stay on one line.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    sanitize(text, Layout::OneLine)
}

/// A text that may have lines.
pub(crate) fn lines(text: &str) -> Cow<'_, str> {
    sanitize(text, Layout::Lines)
}

/// A text that may have lines, in XML; also in its attributes.
pub(crate) fn xml(text: &str) -> String {
    lines(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        // XML has no way to write these two.
        .replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}

/// JSON text for a terminal: the same data, with the characters that JSON itself does not escape written as `\uXXXX`.
pub(crate) fn json(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe_in_json) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        push_json(&mut safe, character);
    }
    Cow::Owned(safe)
}

/// Appends a character of a JSON string, escaped if a terminal would obey it.
pub(crate) fn push_json(safe: &mut String, character: char) {
    if !is_unsafe_in_json(character) {
        safe.push(character);
        return;
    }
    for unit in character.encode_utf16(&mut [0; 2]) {
        write!(safe, "\\u{unit:04x}").expect("a string takes every write");
    }
}

/// Whether JSON leaves the character as it is, but a terminal must not see it.
/// Line breaks are the writer's own: inside strings JSON escapes them.
pub(crate) fn is_unsafe_in_json(character: char) -> bool {
    character != '\n' && is_unsafe(character)
}

fn must_escape(character: char, layout: Layout) -> bool {
    match character {
        '\n' | '\t' => layout == Layout::OneLine,
        _ => is_unsafe(character),
    }
}

/// Controls (C0, DEL, C1), line and paragraph separators, and characters that are invisible or change the direction
/// of others. Joiners stay: emoji and several scripts need them.
fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{61c}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

fn push_visible(safe: &mut String, character: char) {
    let code = u32::from(character);
    match character {
        '\n' => safe.push_str("\\n"),
        '\r' => safe.push_str("\\r"),
        '\t' => safe.push_str("\\t"),
        '\0'..='\x7f' => write!(safe, "\\x{code:02x}").expect("a string takes every write"),
        _ => write!(safe, "\\u{{{code:x}}}").expect("a string takes every write"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn case(text: &str, in_lines: &str, on_one_line: &str) {
        assert_eq!(lines(text), in_lines);
        assert_eq!(one_line(text), on_one_line);
    }

    #[test]
    fn controls_become_visible() {
        case("plain äöü 漢字", "plain äöü 漢字", "plain äöü 漢字");
        case("a\nb\tc", "a\nb\tc", "a\\nb\\tc");
        case(
            "\x1b]52;c;eA==\x07",
            "\\x1b]52;c;eA==\\x07",
            "\\x1b]52;c;eA==\\x07",
        );
        case("\x1b[2J", "\\x1b[2J", "\\x1b[2J");
        case(
            "del\x7f c1\u{9b}2J",
            "del\\x7f c1\\u{9b}2J",
            "del\\x7f c1\\u{9b}2J",
        );
        case("nul\0", "nul\\x00", "nul\\x00");
    }

    #[test]
    fn xml_holds_what_it_can_and_no_more() {
        assert_eq!(
            xml("<a b=\"&\">\n\x1b\u{ffff}"),
            "&lt;a b=&quot;&amp;&quot;&gt;\n\\x1b\u{fffd}"
        );
    }

    #[test]
    fn carriage_returns_cannot_hide_a_line() {
        case("rm -rf /\rls", "rm -rf /\\rls", "rm -rf /\\rls");
        case("dos\r\nline", "dos\nline", "dos\\nline");
        case("end\r", "end\\r", "end\\r");
    }

    #[test]
    fn direction_cannot_be_turned() {
        case(
            "a\u{202e}b\u{2066}c",
            "a\\u{202e}b\\u{2066}c",
            "a\\u{202e}b\\u{2066}c",
        );
        case("👩\u{200d}🚀", "👩\u{200d}🚀", "👩\u{200d}🚀");
    }

    #[test]
    fn json_keeps_its_data() {
        let value = serde_json::json!({"a": "x\u{7f}\u{9b}\u{202e}\u{e0041}\n\u{1b}"});
        let text = serde_json::to_string_pretty(&value).unwrap();
        let safe = json(&text);
        assert!(
            !safe
                .chars()
                .any(|character| character != '\n' && is_unsafe(character)),
            "{safe}"
        );
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&safe).unwrap(),
            value
        );
    }
}
