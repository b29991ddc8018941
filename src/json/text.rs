//! Values as JavaScript prints them: what `JSON.stringify` answers, but for integers of 64 bits, which keep
//! every digit.

use std::fmt::Write;

use serde_json::{Number, Value, map};

/// A number as JavaScript prints it: `1`, `0.5`, `1e+21`; 64-bit integers with every digit.
pub fn number_text(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() => ryu_js::Buffer::new().format(float).to_owned(),
        _ => number.to_string(),
    }
}

/// A value on one line without spaces, as `JSON.stringify(value)`.
pub fn compact(value: &Value) -> String {
    print(value, Layout::Compact)
}

/// A value on one line, with a space behind each comma and colon.
pub fn spaced(value: &Value) -> String {
    print(value, Layout::Spaced)
}

/// A value indented by two spaces a level, in which what fits into 100 columns stands on one line. The text is to stand
/// at this level of indentation itself, on a line that holds so many characters already.
pub fn fitted(value: &Value, level: usize, before: usize) -> String {
    lay_out(value, level, before, COLUMNS)
}

/// How wide a line is where it can be.
const COLUMNS: usize = 100;

fn lay_out(value: &Value, level: usize, before: usize, columns: usize) -> String {
    let line = spaced(value);
    if 2 * level + before + line.chars().count() <= columns {
        return line;
    }
    let indented = |name: &str, value: &Value| {
        let value = lay_out(value, level + 1, name.chars().count(), columns);
        format!("\n{}{name}{value}", "  ".repeat(level + 1))
    };
    let (open, members, close): (_, Vec<String>, _) = match value {
        Value::Array(items) if !items.is_empty() => {
            let items = items.iter().map(|item| indented("", item));
            ('[', items.collect(), ']')
        }
        Value::Object(members) if !members.is_empty() => {
            let member = |(name, value): (&String, &Value)| {
                indented(&format!("{}: ", spaced(&name.as_str().into())), value)
            };
            ('{', members.iter().map(member).collect(), '}')
        }
        _ => return line,
    };
    format!("{open}{}\n{}{close}", members.join(","), "  ".repeat(level))
}

/// A value indented by two spaces a level, as `JSON.stringify(value, null, 2)`.
pub fn pretty(value: &Value) -> String {
    print(value, Layout::Pretty)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    Compact,
    Spaced,
    Pretty,
}

/// A container of which some members are printed.
enum Open<'v> {
    Array(std::slice::Iter<'v, Value>),
    Object(map::Iter<'v>),
}

/// Prints without recursion: a value may come from anywhere and be of any depth.
fn print(value: &Value, layout: Layout) -> String {
    let mut text = String::new();
    let mut open: Vec<Open<'_>> = Vec::new();
    open.extend(begin(&mut text, value));
    while let Some(container) = open.last_mut() {
        let (next, close) = match container {
            Open::Array(items) => (items.next().map(|item| (None, item)), ']'),
            Open::Object(members) => (members.next().map(|(key, member)| (Some(key), member)), '}'),
        };
        let Some((key, value)) = next else {
            open.pop();
            break_line(&mut text, layout, open.len());
            text.push(close);
            continue;
        };
        if !text.ends_with(['[', '{']) {
            text.push_str(if layout == Layout::Spaced { ", " } else { "," });
        }
        break_line(&mut text, layout, open.len());
        if let Some(key) = key {
            print_string(&mut text, key);
            text.push_str(if layout == Layout::Compact { ":" } else { ": " });
        }
        open.extend(begin(&mut text, value));
    }
    text
}

/// Prints a scalar or an empty container whole, of any other only the bracket that opens it.
fn begin<'v>(text: &mut String, value: &'v Value) -> Option<Open<'v>> {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(true) => text.push_str("true"),
        Value::Bool(false) => text.push_str("false"),
        Value::Number(number) => text.push_str(&number_text(number)),
        Value::String(string) => print_string(text, string),
        Value::Array(items) if items.is_empty() => text.push_str("[]"),
        Value::Object(members) if members.is_empty() => text.push_str("{}"),
        Value::Array(items) => {
            text.push('[');
            return Some(Open::Array(items.iter()));
        }
        Value::Object(members) => {
            text.push('{');
            return Some(Open::Object(members.iter()));
        }
    }
    None
}

fn break_line(text: &mut String, layout: Layout, level: usize) {
    if layout == Layout::Pretty {
        text.push('\n');
        text.extend(std::iter::repeat_n("  ", level));
    }
}

fn print_string(text: &mut String, string: &str) {
    text.push('"');
    let mut rest = string;
    while let Some(plain) = rest.find(|c| matches!(c, '"' | '\\' | ..'\u{20}')) {
        text.push_str(&rest[..plain]);
        print_escape(text, rest.as_bytes()[plain]);
        rest = &rest[plain + 1..];
    }
    text.push_str(rest);
    text.push('"');
}

fn print_escape(text: &mut String, byte: u8) {
    match byte {
        b'"' => text.push_str("\\\""),
        b'\\' => text.push_str("\\\\"),
        0x08 => text.push_str("\\b"),
        0x0C => text.push_str("\\f"),
        b'\n' => text.push_str("\\n"),
        b'\r' => text.push_str("\\r"),
        b'\t' => text.push_str("\\t"),
        other => write!(text, "\\u{other:04x}").expect("a string takes every text"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn number(value: &Value, text: &str) {
        assert_eq!(compact(value), text);
    }

    #[test]
    fn numbers_are_printed_as_javascript_prints_them() {
        number(&json!(1.0), "1");
        number(&json!(-0.0), "0");
        number(&json!(0.5), "0.5");
        number(&json!(1e21), "1e+21");
        number(&json!(1e20), "100000000000000000000");
        number(&json!(1e-7), "1e-7");
        number(&json!(0.000_001), "0.000001");
        number(&json!(f64::MAX), "1.7976931348623157e+308");
        number(&json!(9_007_199_254_740_993_u64), "9007199254740993");
        number(&json!(u64::MAX), "18446744073709551615");
        number(&json!(i64::MIN), "-9223372036854775808");
    }

    #[test]
    fn strings_are_escaped_as_json_stringify_escapes_them() {
        assert_eq!(
            compact(&json!(
                "\"\\/\u{8}\u{c}\n\r\t\u{0}\u{1f}\u{7f}\u{2028}é\u{1F600}"
            )),
            "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f\u{7f}\u{2028}é\u{1F600}\""
        );
    }

    #[test]
    fn what_fits_stands_on_one_line() {
        let value = json!({"a": [1, 2], "bc": {"d": "long enough", "e": []}});
        assert_eq!(fitted(&value, 0, 0), spaced(&value));
        assert_eq!(
            lay_out(&value, 0, 0, 30),
            "{\n  \"a\": [1, 2],\n  \"bc\": {\n    \"d\": \"long enough\",\n    \"e\": []\n  }\n}"
        );
        assert_eq!(
            spaced(&value),
            r#"{"a": [1, 2], "bc": {"d": "long enough", "e": []}}"#
        );
    }

    #[test]
    fn compact_has_no_spaces() {
        assert_eq!(
            compact(&json!({"b": [1, [], {}, "["], "a": {"[": null, "t": [true, false]}})),
            r#"{"b":[1,[],{},"["],"a":{"[":null,"t":[true,false]}}"#
        );
    }

    #[test]
    fn pretty_has_two_spaces_a_level_and_short_empty_containers() {
        let value = json!({"b": [1, [], {}, [2]], "a": {"k": "v"}});
        assert_eq!(
            pretty(&value),
            "{\n  \"b\": [\n    1,\n    [],\n    {},\n    [\n      2\n    ]\n  ],\n  \"a\": {\n    \"k\": \"v\"\n  }\n}"
        );
        assert_eq!(pretty(&json!([])), "[]");
    }
}
