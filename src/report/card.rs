//! One call as a card for people: who was called with what, and what came back.

use std::path::PathBuf;
use std::time::Duration;

use pitool::message::{Content, ToolCall, ToolResult};
use serde_json::Value;

use super::style::{Look, Styles};
use super::{sanitize, text};

/// How many arguments a card shows before it only counts them.
const MAX_ARGUMENTS: usize = 8;

/// What a card shows.
pub(crate) struct Card<'a> {
    /// The tool's label for people, if it has one.
    pub(crate) label: Option<&'a str>,
    /// The call as the model sent it.
    pub(crate) call: &'a ToolCall,
    /// Arguments of the top level that the tool did not get: stripped keys, dropped nulls.
    pub(crate) dropped: &'a [&'a str],
    /// What the call came to.
    pub(crate) result: &'a ToolResult,
    /// Whether it failed.
    pub(crate) is_error: bool,
    /// Where the images of the result were saved, in their order; absent where one was not.
    pub(crate) images: &'a [Option<PathBuf>],
    /// Milliseconds of `execute`; absent when it did not run.
    pub(crate) duration_ms: Option<u64>,
}

impl Card<'_> {
    /// The card, each line of it ended. `columns` is the width of the terminal: titles and arguments are cut to it,
    /// the result is whole.
    pub(crate) fn render(&self, columns: usize, styles: &Styles) -> String {
        let edge = if self.is_error {
            styles.error
        } else {
            styles.dim
        };
        let mut card = format!("{} {}\n", edge.paint("╭─"), self.title(styles));
        for line in self.argument_lines(columns.saturating_sub(3), styles) {
            push_line(&mut card, edge, &line);
        }
        card.push_str(&format!("{}\n", edge.paint("├─")));
        for line in self.result_lines() {
            push_line(&mut card, edge, &line);
        }
        card.push_str(&format!("{}\n", edge.paint("╰─")));
        card
    }

    fn title(&self, styles: &Styles) -> String {
        let name = sanitize::one_line(self.label.unwrap_or(&self.call.name));
        let id = sanitize::one_line(&self.call.id);
        let verdict = if self.is_error {
            styles.error.paint("error")
        } else {
            styles.success.paint("ok")
        };
        let mut title = format!(
            "{}  {}  {verdict}",
            styles.tool.paint(name),
            styles.dim.paint(id)
        );
        if let Some(millis) = self.duration_ms {
            let time = text::duration(Duration::from_millis(millis));
            title.push_str(&format!("  {}", styles.dim.paint(time)));
        }
        title
    }

    fn argument_lines(&self, columns: usize, styles: &Styles) -> Vec<String> {
        if let Some(error) = &self.call.arguments_error {
            let reason = error.lines().next().unwrap_or_default();
            return vec![argument_line("arguments", reason, columns, styles)];
        }
        let Value::Object(arguments) = &self.call.arguments else {
            let value = one_line_value(&self.call.arguments);
            return vec![argument_line("arguments", &value, columns, styles)];
        };
        let mattered: Vec<_> = arguments
            .iter()
            .filter(|(name, _)| !self.dropped.contains(&name.as_str()))
            .collect();
        let mut lines: Vec<String> = mattered
            .iter()
            .take(MAX_ARGUMENTS)
            .map(|(name, value)| argument_line(name, &one_line_value(value), columns, styles))
            .collect();
        if mattered.len() > MAX_ARGUMENTS {
            let more = text::count(mattered.len() - MAX_ARGUMENTS, "more argument");
            lines.push(styles.dim.paint(more).to_string());
        }
        lines
    }

    fn result_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut images = self.images.iter();
        for block in &self.result.content {
            match block {
                Content::Text { text } => {
                    lines.extend(sanitize::lines(text).split('\n').map(str::to_owned));
                }
                Content::Image { data, mime_type } => {
                    let mut line = image_line(data, mime_type);
                    if let Some(Some(file)) = images.next() {
                        line += &format!(" {}", sanitize::one_line(&file.to_string_lossy()));
                    }
                    lines.push(line);
                }
            }
        }
        lines
    }
}

fn push_line(card: &mut String, edge: Look, line: &str) {
    if line.is_empty() {
        card.push_str(&format!("{}\n", edge.paint("│")));
    } else {
        card.push_str(&format!("{}  {line}\n", edge.paint("│")));
    }
}

fn argument_line(name: &str, value: &str, columns: usize, styles: &Styles) -> String {
    let name = sanitize::one_line(name);
    let name = text::truncate(&name, columns / 2);
    let value = sanitize::one_line(value);
    let rest = columns.saturating_sub(text::width(&name) + 2);
    format!(
        "{}: {}",
        styles.key.paint(&name),
        text::truncate(&value, rest)
    )
}

/// Strings as they are, everything else as compact JSON.
fn one_line_value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// `[image/png, 12 kB]`; the size is that of the decoded bytes.
fn image_line(data: &str, mime_type: &str) -> String {
    let padding = data.bytes().rev().take_while(|byte| *byte == b'=').count();
    let bytes = (data.len() / 4 * 3).saturating_sub(padding);
    let size = if bytes < 1000 {
        text::count(bytes, "byte")
    } else {
        format!("{} kB", bytes.div_ceil(1000))
    };
    format!("[{}, {size}]", sanitize::one_line(mime_type))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(arguments: Value) -> ToolCall {
        ToolCall {
            id: "call-1".into(),
            name: "echo".into(),
            arguments,
            arguments_error: None,
        }
    }

    #[test]
    fn a_card_shows_call_and_result() {
        let call = call(json!({"value": "Pi", "ignored": "drop me", "depth": {"a": [1]}}));
        let result = ToolResult::text("Pi\n\nsecond");
        let card = Card {
            label: Some("Echo"),
            call: &call,
            dropped: &["ignored"],
            result: &result,
            images: &[],
            is_error: false,
            duration_ms: Some(12),
        };
        assert_eq!(
            card.render(80, &Styles::default()),
            "╭─ Echo  call-1  ok  12ms\n│  value: Pi\n│  depth: {\"a\":[1]}\n├─\n│  Pi\n│\n│  second\n╰─\n"
        );
    }

    #[test]
    fn an_error_that_never_ran_has_no_time() {
        let call = call(json!([1]));
        let result = ToolResult::thrown("Tool \u{1b}[2J not found");
        let card = Card {
            label: None,
            call: &call,
            dropped: &[],
            result: &result,
            images: &[],
            is_error: true,
            duration_ms: None,
        };
        assert_eq!(
            card.render(80, &Styles::default()),
            "╭─ echo  call-1  error\n│  arguments: [1]\n├─\n│  Tool \\x1b[2J not found\n╰─\n"
        );
    }

    #[test]
    fn long_arguments_fit_the_terminal() {
        let call = call(json!({"text": "line one\nline two ".repeat(20), "b\u{7}": 1}));
        let result = ToolResult::text("ok");
        let card = Card {
            label: None,
            call: &call,
            dropped: &[],
            result: &result,
            images: &[],
            is_error: false,
            duration_ms: None,
        };
        let rendered = card.render(40, &Styles::default());
        assert!(
            rendered.lines().all(|line| text::width(line) <= 40),
            "{rendered}"
        );
        assert!(
            rendered.contains("│  text: line one\\nline two line one\\nl…\n│  b\\x07: 1\n"),
            "{rendered}"
        );
    }

    #[test]
    fn many_arguments_are_counted_and_images_measured() {
        let arguments: serde_json::Map<_, _> =
            (0..10).map(|n| (format!("a{n}"), json!(n))).collect();
        let call = call(Value::Object(arguments));
        let result = ToolResult {
            content: vec![
                Content::Image {
                    data: "AAAA".repeat(1000),
                    mime_type: "image/png".into(),
                };
                2
            ],
            ..ToolResult::default()
        };
        let card = Card {
            label: None,
            call: &call,
            dropped: &[],
            result: &result,
            images: &[None, Some(PathBuf::from("out/call-1.png"))],
            is_error: false,
            duration_ms: None,
        };
        let rendered = card.render(80, &Styles::default());
        assert!(
            rendered.contains("│  2 more arguments\n├─\n│  [image/png, 3 kB]\n│  [image/png, 3 kB] out/call-1.png\n"),
            "{rendered}"
        );
    }
}
