//! Where in a JSON text a value stands that a JSON Pointer names.

use std::ops::Range;

use crate::json::pointer::unescaped;

/// A place in a text: both count from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The character in the line.
    pub column: usize,
}

impl Place {
    /// The place of a byte offset of `text`.
    pub(crate) fn of(text: &str, offset: usize) -> Self {
        let before = &text[..offset];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

/// What of a member a fault is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The key, where it should not be there at all.
    Key,
    /// The value.
    Value,
}

/// Finds the value that `pointer` names in `text`, or the key in front of it.
///
/// `text` is valid JSON. A pointer that leads nowhere finds the last place on its way that is there, so that a
/// missing field is located at the object that lacks it. Of a key that stands twice the last one counts, as for
/// the value read from the text.
pub(super) fn place(text: &str, pointer: &str, part: Part) -> Place {
    let mut scanner = Scanner { text, at: 0 };
    scanner.skip_blank();
    let mut found = Member {
        key: scanner.at,
        value: scanner.at,
    };
    for step in pointer.split('/').skip(1) {
        scanner.at = found.value;
        let Some(member) = scanner.member(&unescaped(step)) else {
            return Place::of(text, found.value);
        };
        found = member;
    }
    Place::of(
        text,
        match part {
            Part::Key => found.key,
            Part::Value => found.value,
        },
    )
}

/// The bytes of `text`, a JSON object, that hold the value of the member `name`.
pub(crate) fn member_span(text: &str, name: &str) -> Option<Range<usize>> {
    let mut scanner = Scanner { text, at: 0 };
    scanner.skip_blank();
    let start = scanner.member(name)?.value;
    scanner.at = start;
    scanner.skip_value();
    Some(start..start + text[start..scanner.at].trim_end().len())
}

/// Byte offsets of a member of an object; in an array both are the element.
#[derive(Clone, Copy)]
struct Member {
    key: usize,
    value: usize,
}

/// Walks over valid JSON by its punctuation alone, without recursion.
struct Scanner<'t> {
    text: &'t str,
    at: usize,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_blank(&mut self) {
        // A byte order mark may stand before the value.
        if self.at == 0 && self.text.starts_with('\u{feff}') {
            self.at = '\u{feff}'.len_utf8();
        }
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    /// The member `name` of the container that starts here.
    fn member(&mut self, name: &str) -> Option<Member> {
        match self.peek()? {
            b'{' => self.object_member(name),
            b'[' => self.element(name.parse().ok()?),
            _ => None,
        }
    }

    fn object_member(&mut self, name: &str) -> Option<Member> {
        let mut found = None;
        self.enter();
        while self.peek() == Some(b'"') {
            let key = self.at;
            self.skip_string();
            let is_it = serde_json::from_str::<String>(&self.text[key..self.at])
                .is_ok_and(|key| key == name);
            self.skip_punctuation(b':');
            if is_it {
                found = Some(Member {
                    key,
                    value: self.at,
                });
            }
            self.skip_value();
            self.skip_punctuation(b',');
        }
        found
    }

    fn element(&mut self, index: usize) -> Option<Member> {
        self.enter();
        for _ in 0..index {
            self.skip_value();
            self.skip_punctuation(b',');
        }
        self.peek().filter(|&byte| byte != b']').map(|_| Member {
            key: self.at,
            value: self.at,
        })
    }

    fn enter(&mut self) {
        self.at += 1;
        self.skip_blank();
    }

    fn skip_punctuation(&mut self, sign: u8) {
        self.skip_blank();
        if self.peek() == Some(sign) {
            self.enter();
        }
    }

    /// Leaves `at` behind the value that starts here, and behind the blanks after it.
    fn skip_value(&mut self) {
        let mut depth = 0_usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => self.skip_string(),
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' | b',' if depth == 0 => return,
                b'}' | b']' => {
                    depth -= 1;
                    self.at += 1;
                }
                _ => self.at += 1,
            }
        }
    }

    fn skip_string(&mut self) {
        self.at += 1;
        while let Some(byte) = self.peek() {
            self.at += match byte {
                b'\\' => 2,
                _ => 1,
            };
            if byte == b'"' {
                return;
            }
        }
        // A backslash cannot be the last byte of valid JSON, but never point outside of the text.
        self.at = self.at.min(self.text.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "{\n  \"name\": \"a\\\"b\",\n  \"é\\u0031\": [1, {\"x/y~\": true}, [ ]],\n  \"name\":  2\n}\n";

    #[track_caller]
    fn case(pointer: &str, part: Part, line: usize, column: usize) {
        assert_eq!(place(TEXT, pointer, part), Place { line, column });
    }

    #[test]
    fn the_root_is_the_first_value() {
        case("", Part::Value, 1, 1);
        assert_eq!(
            place("\u{feff}\n\t[]", "", Part::Value),
            Place { line: 2, column: 2 }
        );
    }

    #[test]
    fn keys_and_values_are_found_at_every_level() {
        case("/é1", Part::Key, 3, 3);
        case("/é1", Part::Value, 3, 14);
        case("/é1/0", Part::Value, 3, 15);
        case("/é1/1/x~1y~0", Part::Key, 3, 19);
        case("/é1/1/x~1y~0", Part::Value, 3, 27);
        case("/é1/2", Part::Value, 3, 34);
    }

    #[test]
    fn the_last_of_two_equal_keys_counts() {
        case("/name", Part::Key, 4, 3);
        case("/name", Part::Value, 4, 12);
    }

    #[test]
    fn the_bytes_of_a_member_are_found() {
        let member = |name: &str| Some(&TEXT[member_span(TEXT, name)?]);
        assert_eq!(member("name"), Some("2"));
        assert_eq!(member("é1"), Some("[1, {\"x/y~\": true}, [ ]]"));
        assert_eq!(member("none"), None);
        assert_eq!(member_span("[1]", "a"), None);
    }

    #[test]
    fn a_missing_place_is_found_at_its_parent() {
        case("/none", Part::Value, 1, 1);
        case("/é1/1/none", Part::Key, 3, 18);
        case("/é1/2/0", Part::Value, 3, 34);
        case("/name/deeper", Part::Value, 4, 12);
    }
}
