//! Builds the value of a text that [`super::scan`] has found to be JSON, whatever serde_json thinks of it.
//!
//! Nothing here can fail or recurse: the grammar is known to hold, and open containers are kept in a list.

use serde_json::{Map, Number, Value};

/// The level below which containers become `null`: a value of this depth can be walked, compared and dropped
/// by recursion on the smallest stack in use.
const CLIP: usize = 1024;

/// Reads a text that is exactly one JSON value by its grammar.
pub(super) fn read(text: &[u8]) -> Value {
    Reader { text, at: 0 }.value()
}

/// A container that is still open.
enum Open {
    Array(Vec<Value>),
    Object {
        members: Map<String, Value>,
        key: Option<String>,
    },
}

impl Open {
    fn add(&mut self, value: Value) {
        match self {
            Self::Array(items) => items.push(value),
            Self::Object { members, key } => match (key.take(), value) {
                (Some(key), value) => drop(members.insert(key, value)),
                (None, Value::String(name)) => *key = Some(name),
                (None, _) => unreachable!("the scan lets only strings be keys"),
            },
        }
    }

    fn close(self) -> Value {
        match self {
            Self::Array(items) => Value::Array(items),
            Self::Object { members, .. } => Value::Object(members),
        }
    }
}

struct Reader<'t> {
    text: &'t [u8],
    at: usize,
}

impl Reader<'_> {
    fn value(mut self) -> Value {
        let mut open: Vec<Open> = Vec::new();
        while self.at < self.text.len() {
            let value = match self.text[self.at] {
                b'[' | b'{' if open.len() == CLIP => self.skip_container(),
                b'[' => {
                    self.at += 1;
                    open.push(Open::Array(Vec::new()));
                    continue;
                }
                b'{' => {
                    self.at += 1;
                    open.push(Open::Object {
                        members: Map::new(),
                        key: None,
                    });
                    continue;
                }
                b']' | b'}' => {
                    self.at += 1;
                    open.pop().expect("the scan pairs all brackets").close()
                }
                b'"' => Value::String(self.string()),
                b't' | b'f' | b'n' | b'-' | b'0'..=b'9' => self.scalar(),
                _ => {
                    self.at += 1;
                    continue;
                }
            };
            match open.last_mut() {
                Some(container) => container.add(value),
                None => return value,
            }
        }
        unreachable!("the scan has seen the end of the value")
    }

    /// Passes over the container that begins here.
    fn skip_container(&mut self) -> Value {
        let mut depth = 0_usize;
        loop {
            match self.text[self.at] {
                b'[' | b'{' => depth += 1,
                b']' | b'}' => depth -= 1,
                b'"' => {
                    self.raw_string();
                    continue;
                }
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Value::Null;
            }
        }
    }

    fn scalar(&mut self) -> Value {
        let rest = &self.text[self.at..];
        let length = rest
            .iter()
            .position(|byte| !matches!(byte, b'+' | b'-' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z'))
            .unwrap_or(rest.len());
        self.at += length;
        match &rest[..length] {
            b"true" => Value::Bool(true),
            b"false" => Value::Bool(false),
            b"null" => Value::Null,
            digits => Value::Number(number(digits)),
        }
    }

    /// The text between the quotes of the string that begins here, as it is written.
    fn raw_string(&mut self) -> &[u8] {
        let start = self.at + 1;
        let mut end = start;
        while self.text[end] != b'"' {
            end += if self.text[end] == b'\\' { 2 } else { 1 };
        }
        self.at = end + 1;
        &self.text[start..end]
    }

    fn string(&mut self) -> String {
        let raw = self.raw_string();
        let mut text = String::with_capacity(raw.len());
        let mut rest = raw;
        while let Some(plain) = rest.iter().position(|byte| *byte == b'\\') {
            text.push_str(&String::from_utf8_lossy(&rest[..plain]));
            let (character, length) = escaped(&rest[plain..]);
            text.push(character);
            rest = &rest[plain + length..];
        }
        text.push_str(&String::from_utf8_lossy(rest));
        text
    }
}

/// The number that is written so; never infinite.
fn number(digits: &[u8]) -> Number {
    let digits = str::from_utf8(digits).expect("the scan lets only ASCII be a number");
    if let Ok(unsigned) = digits.parse::<u64>() {
        return unsigned.into();
    }
    match digits.parse::<i64>() {
        Ok(signed) if signed != 0 => signed.into(),
        _ => {
            let float: f64 = digits.parse().expect("the scan lets only numbers pass");
            Number::from_f64(float.clamp(f64::MIN, f64::MAX)).expect("a clamped number is finite")
        }
    }
}

/// The character that an escape sequence stands for, and how long the sequence is.
fn escaped(sequence: &[u8]) -> (char, usize) {
    let character = match sequence[1] {
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return unicode_escaped(sequence),
        other => char::from(other),
    };
    (character, 2)
}

/// The same for `\uXXXX`, with its other half if it is one of a pair.
fn unicode_escaped(sequence: &[u8]) -> (char, usize) {
    let first = code_unit(sequence).expect("the scan lets only hexadecimal digits follow");
    let second = (0xD800..0xDC00)
        .contains(&first)
        .then(|| code_unit(&sequence[6..]))
        .flatten();
    match (first, second) {
        (high, Some(low @ 0xDC00..=0xDFFF)) => {
            let code = 0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00);
            (
                char::from_u32(code).expect("a pair of surrogates is a character"),
                12,
            )
        }
        (unit, _) => (
            char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER),
            6,
        ),
    }
}

fn code_unit(sequence: &[u8]) -> Option<u32> {
    let digits = sequence.strip_prefix(b"\\u")?.get(..4)?;
    u32::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
}
