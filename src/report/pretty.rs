//! JSON for a person at a terminal: indented, coloured, and safe to show.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{CharEscape, Formatter, PrettyFormatter, Serializer};

use super::sanitize;
use super::style::{Look, Styles};

/// The value as indented JSON in colours, without a line break at the end.
/// The data is unchanged: what a terminal would obey is written as JSON escapes.
pub(crate) fn pretty<T: Serialize + ?Sized>(value: &T, styles: &Styles) -> String {
    let mut text = Vec::new();
    let formatter = Colored {
        layout: PrettyFormatter::new(),
        styles: *styles,
        string: styles.string,
    };
    value
        .serialize(&mut Serializer::with_formatter(&mut text, formatter))
        .expect("values of the wire have string keys");
    String::from_utf8(text).expect("the formatter writes text")
}

/// Lays out as serde_json's own pretty printer does and puts a look around each scalar.
struct Colored {
    layout: PrettyFormatter<'static>,
    styles: Styles,
    /// The look of the string that is being written: a key or a value.
    string: Look,
}

impl Colored {
    fn scalar<W: Write + ?Sized>(writer: &mut W, look: Look, text: &str) -> io::Result<()> {
        write!(writer, "{}", look.paint(text))
    }
}

impl Formatter for Colored {
    fn write_null<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        Self::scalar(writer, self.styles.literal, "null")
    }

    fn write_bool<W: Write + ?Sized>(&mut self, writer: &mut W, value: bool) -> io::Result<()> {
        let text = if value { "true" } else { "false" };
        Self::scalar(writer, self.styles.literal, text)
    }

    fn begin_string<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        // The look reaches from quote to quote, so its two halves are written apart.
        let (before, _) = halves(self.string);
        write!(writer, "{before}\"")
    }

    fn end_string<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        let (_, after) = halves(self.string);
        write!(writer, "\"{after}")
    }

    fn write_string_fragment<W: Write + ?Sized>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        writer.write_all(sanitize::json(fragment).as_bytes())
    }

    fn write_char_escape<W: Write + ?Sized>(
        &mut self,
        writer: &mut W,
        escape: CharEscape,
    ) -> io::Result<()> {
        self.layout.write_char_escape(writer, escape)
    }

    fn begin_array<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.layout.begin_array(writer)
    }

    fn end_array<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.layout.end_array(writer)
    }

    fn begin_array_value<W: Write + ?Sized>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.layout.begin_array_value(writer, first)
    }

    fn end_array_value<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.layout.end_array_value(writer)
    }

    fn begin_object<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.layout.begin_object(writer)
    }

    fn end_object<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.layout.end_object(writer)
    }

    fn begin_object_key<W: Write + ?Sized>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.string = self.styles.key;
        self.layout.begin_object_key(writer, first)
    }

    fn begin_object_value<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.string = self.styles.string;
        self.layout.begin_object_value(writer)
    }

    fn end_object_value<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.layout.end_object_value(writer)
    }
}

/// What a look writes before and after its text.
fn halves(look: Look) -> (String, String) {
    let painted = look.paint("|").to_string();
    let (before, after) = painted.split_once('|').unwrap_or_default();
    (before.to_owned(), after.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn without_colours_it_is_plain_json() {
        let value =
            json!({"a": [1, -2.5, "x\n\"y\""], "b": {}, "c": [], "d": {"e": null, "f": true}});
        assert_eq!(
            pretty(&value, &Styles::default()),
            serde_json::to_string_pretty(&value).unwrap()
        );
    }

    #[test]
    fn data_is_kept_and_terminals_are_safe() {
        let value = json!({"k\u{9b}": "\u{7f}\u{202e}\u{1b}[2J"});
        let text = pretty(&value, &Styles::default());
        assert_eq!(text, "{\n  \"k\\u009b\": \"\\u007f\\u202e\\u001b[2J\"\n}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }

    #[test]
    fn keys_and_strings_look_different() {
        let styles = Styles::colored();
        let text = pretty(&json!({"k": "v", "n": [null, 1]}), &styles);
        let expected = format!(
            "{{\n  {}: {},\n  {}: [\n    {},\n    1\n  ]\n}}",
            styles.key.paint("\"k\""),
            styles.string.paint("\"v\""),
            styles.key.paint("\"n\""),
            styles.literal.paint("null"),
        );
        assert_eq!(text, expected);
    }
}
