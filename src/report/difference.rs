//! What was expected and what is there instead, line by line.

use pitool::cases::Difference;
use pitool::json;
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use super::style::Styles;
use super::{sanitize, steps};

/// How many equal lines stand around the others.
const CONTEXT: usize = 3;

/// A difference: where, then the lines; those that were expected behind `-`, those that are there behind `+`.
pub(crate) fn text(difference: &Difference, styles: &Styles) -> String {
    let mut text = String::new();
    if !difference.path.is_empty() {
        text += &format!("{}\n", styles.key.paint(steps::path(&difference.path)));
    }
    let (expected, actual) = texts(difference);
    let diff = TextDiff::from_lines(&expected, &actual);
    for (index, group) in diff.grouped_ops(CONTEXT).iter().enumerate() {
        if index > 0 {
            text += &format!("{}\n", styles.dim.paint("  …"));
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            text += &line(change.tag(), change.value(), styles);
        }
    }
    text
}

fn line(tag: ChangeTag, line: &str, styles: &Styles) -> String {
    let is_whole = line.ends_with('\n');
    let shown = sanitize::one_line(line.strip_suffix('\n').unwrap_or(line));
    let shown = match tag {
        ChangeTag::Equal => styles.dim.paint(format!("    {shown}")).to_string(),
        ChangeTag::Delete => styles.error.paint(format!("  - {shown}")).to_string(),
        ChangeTag::Insert => styles.success.paint(format!("  + {shown}")).to_string(),
    };
    let end = if is_whole || tag == ChangeTag::Equal {
        String::new()
    } else {
        styles.dim.paint(" (no line break at the end)").to_string()
    };
    format!("{}{end}\n", shown.trim_end())
}

/// Both sides as texts. Two texts of several lines are compared as they are, everything else as JSON.
fn texts(difference: &Difference) -> (String, String) {
    let as_text = |value: &Option<Value>| match value {
        Some(Value::String(text)) => Some(text.clone()),
        _ => None,
    };
    match (as_text(&difference.expected), as_text(&difference.actual)) {
        (Some(expected), Some(actual)) if expected.contains('\n') || actual.contains('\n') => {
            balanced(expected, actual)
        }
        _ => (
            shown(difference.expected.as_ref()),
            shown(difference.actual.as_ref()),
        ),
    }
}

/// Where neither text ends in a line break there is nothing to tell about it.
fn balanced(mut expected: String, mut actual: String) -> (String, String) {
    if !expected.ends_with('\n') && !actual.ends_with('\n') {
        expected.push('\n');
        actual.push('\n');
    }
    (expected, actual)
}

fn shown(value: Option<&Value>) -> String {
    value.map_or_else(String::new, |value| json::fitted(value, 0, 0) + "\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn case(path: &str, expected: Option<Value>, actual: Option<Value>, lines: &[&str]) {
        let difference = Difference {
            path: path.to_owned(),
            expected,
            actual,
        };
        let text = text(&difference, &Styles::default());
        assert_eq!(text.lines().collect::<Vec<_>>(), lines);
    }

    #[test]
    fn values_are_shown_as_json() {
        case(
            "/results/0/isError",
            Some(json!(false)),
            Some(json!(true)),
            &["results.0.isError", "  - false", "  + true"],
        );
        case(
            "/a",
            None,
            Some(json!({"b": "c"})),
            &["a", "  + {\"b\": \"c\"}"],
        );
        case("", Some(json!("a")), None, &["  - \"a\""]);
    }

    #[test]
    fn texts_are_compared_line_by_line() {
        let lines = |changed: &str| format!("1\n2\n3\n4\n5\n{changed}\n7");
        case(
            "/t",
            Some(lines("six").into()),
            Some(lines("6").into()),
            &["t", "    3", "    4", "    5", "  - six", "  + 6", "    7"],
        );
    }

    #[test]
    fn a_missing_line_break_is_told_where_it_is_the_difference() {
        case(
            "/t",
            Some("a\nb\n".into()),
            Some("a\nb".into()),
            &["t", "    a", "  - b", "  + b (no line break at the end)"],
        );
    }

    #[test]
    fn what_tools_say_is_safe_to_show() {
        case(
            "/t",
            Some("a\n\u{1b}[2J\u{202e}".into()),
            Some("a\n\r".into()),
            &["t", "    a", "  - \\x1b[2J\\u{202e}", "  + \\r"],
        );
        case(
            "/t",
            None,
            Some(json!("\u{1b}[2J\u{9b}")),
            &["t", "  + \"\\u001b[2J\\u{9b}\""],
        );
    }
}
