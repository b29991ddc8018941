//! Which names an API takes.

use serde_json::Value;

use super::super::Format;
use super::Report;
use super::walk::{map_subschemas, step};

/// What an API says of tool names.
struct Rule {
    longest: usize,
    beyond_letters_and_digits: &'static str,
    first: fn(char) -> bool,
}

fn rule(format: Format) -> Option<Rule> {
    let (longest, beyond_letters_and_digits) = match format {
        Format::Pi => return None,
        Format::Anthropic => (128, "_-"),
        Format::Openai | Format::OpenaiResponses => (64, "_-"),
        Format::Gemini => (128, "_.:-"),
        Format::Mcp => (128, "_.-"),
    };
    let first: fn(char) -> bool = if format == Format::Gemini {
        |first| first.is_ascii_alphabetic() || first == '_'
    } else {
        |_| true
    };
    Some(Rule {
        longest,
        beyond_letters_and_digits,
        first,
    })
}

/// Finds fault with a tool's name.
pub(super) fn check(report: &mut Report, format: Format) {
    let Some(rule) = rule(format) else {
        return;
    };
    let name = report.tool.clone();
    let other = name.chars().find(|&character| {
        !character.is_ascii_alphanumeric() && !rule.beyond_letters_and_digits.contains(character)
    });
    if let Some(other) = other {
        let message = format!("{format} refuses {other:?} in the name of a tool");
        report.error("tool-name", "", message);
    } else if !name.starts_with(rule.first) {
        let message = format!("{format} wants a letter or _ at the start of a tool's name");
        report.error("tool-name", "", message);
    }
    if name.is_empty() || name.len() > rule.longest {
        let message = format!(
            "{format} wants tool names of 1 to {} characters, this has {}",
            rule.longest,
            name.len()
        );
        report.error("tool-name", "", message);
    }
}

/// Finds fault with the names of properties: Anthropic takes 1 to 64 of `A-Za-z0-9_.-`.
pub(super) fn check_properties(schema: &Value, report: &mut Report) {
    check_properties_at("", schema.clone(), report);
}

fn check_properties_at(path: &str, schema: Value, report: &mut Report) -> Value {
    let Value::Object(keywords) = schema else {
        return schema;
    };
    let properties = keywords.get("properties").and_then(Value::as_object);
    for name in properties
        .into_iter()
        .flat_map(|properties| properties.keys())
    {
        let is_fine = (1..=64).contains(&name.len())
            && name
                .chars()
                .all(|character| character.is_ascii_alphanumeric() || "_.-".contains(character));
        if !is_fine {
            let message = format!(
                "anthropic takes 1 to 64 letters, digits, _, . and - in the name of a property, not {name:?}"
            );
            report.error(
                "property-name",
                &step(&step(path, "properties"), name),
                message,
            );
        }
    }
    Value::Object(map_subschemas(keywords, path, &mut |path, schema| {
        check_properties_at(path, schema, report)
    }))
}
