//! What an author should know about a schema: what in it can never be met, or is not looked at.
//!
//! None of it keeps a schema from being used: it rejects values at its place, or nothing.

use std::collections::HashSet;

use super::endless::endless;
use super::node::{Arena, Items, Keywords, Members, NodeId};
use super::pattern::Pattern;
use crate::json::pointer::escaped;

/// The formats that are checked; others are only annotations.
const FORMATS: [&str; 21] = [
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "idn-email",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "iri",
    "iri-reference",
    "json-pointer",
    "json-pointer-uri-fragment",
    "regex",
    "relative-json-pointer",
    "time",
    "uri",
    "uri-reference",
    "uri-template",
    "url",
    "uuid",
];

/// Something that the author of a schema should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Where in the schema, as a JSON Pointer.
    pub pointer: String,
    /// What kind of finding it is.
    pub rule: Rule,
    /// What is wrong there; no period.
    pub message: String,
}

/// The kinds of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    /// A reference names nothing; every value at its place is rejected.
    DanglingReference,
    /// A reference comes back to itself; every value at its place is rejected.
    EndlessReference,
    /// A pattern is no regular expression; every string at its place is rejected.
    InvalidPattern,
    /// A type is none of JSON Schema's.
    UnknownType,
    /// A format is none that is checked.
    UnknownFormat,
}

impl Rule {
    /// The name that reports use.
    pub fn name(self) -> &'static str {
        match self {
            Self::DanglingReference => "dangling-ref",
            Self::EndlessReference => "endless-ref",
            Self::InvalidPattern => "invalid-pattern",
            Self::UnknownType => "unknown-type",
            Self::UnknownFormat => "unknown-format",
        }
    }

    /// Whether it rejects whatever stands at its place.
    pub fn rejects_all(self) -> bool {
        matches!(
            self,
            Self::DanglingReference | Self::EndlessReference | Self::InvalidPattern
        )
    }
}

/// Looks at every schema that the root leads to, in the order in which it does.
pub(super) fn findings(arena: &Arena) -> Vec<Finding> {
    let mut walk = Walk {
        endless: endless(arena),
        seen: HashSet::new(),
        open: Vec::new(),
        findings: Vec::new(),
    };
    walk.meet(arena.root(), String::new());
    while let Some((id, pointer)) = walk.open.pop() {
        if let Some(keywords) = arena.keywords(id) {
            walk.look(id, keywords, &pointer);
        }
    }
    walk.findings
}

struct Walk {
    endless: HashSet<NodeId>,
    seen: HashSet<NodeId>,
    open: Vec<(NodeId, String)>,
    findings: Vec<Finding>,
}

impl Walk {
    fn meet(&mut self, id: NodeId, pointer: String) {
        if self.seen.insert(id) {
            self.open.push((id, pointer));
        }
    }

    fn look(&mut self, id: NodeId, keywords: &Keywords, pointer: &str) {
        self.references(id, keywords, pointer);
        self.words(keywords, pointer);
        let begin = self.open.len();
        for (step, child) in children(keywords) {
            self.meet(child, format!("{pointer}/{step}"));
        }
        if let Some(reference) = &keywords.reference
            && let Some(target) = reference.target
        {
            self.meet(target, target_pointer(&reference.text, pointer));
        }
        // The first child is looked at first.
        self.open[begin..].reverse();
    }

    fn references(&mut self, id: NodeId, keywords: &Keywords, pointer: &str) {
        let reference = keywords
            .reference
            .as_ref()
            .map(|it| ("$ref", &it.text, it.target));
        let dynamic = keywords
            .dynamic_reference
            .as_ref()
            .map(|it| ("$dynamicRef", &it.text, it.target));
        for (keyword, text, target) in reference.into_iter().chain(dynamic) {
            let comes_back = |target| self.endless.contains(&id) && self.endless.contains(&target);
            let (rule, what) = match target {
                None => (
                    Rule::DanglingReference,
                    "names nothing here, so every value at this place is rejected",
                ),
                Some(target) if comes_back(target) => (
                    Rule::EndlessReference,
                    "comes back to itself without going into the value, so every value at this place is rejected",
                ),
                Some(_) => continue,
            };
            self.add(
                format!("{pointer}/{keyword}"),
                rule,
                format!("{keyword} \"{text}\" {what}"),
            );
        }
    }

    fn words(&mut self, keywords: &Keywords, pointer: &str) {
        let patterns = keywords.pattern_properties.iter().flatten();
        let properties = patterns.map(|(pattern, _)| {
            (
                pattern,
                format!("patternProperties/{}", escaped(pattern.source())),
            )
        });
        let pattern = keywords
            .pattern
            .iter()
            .map(|pattern| (pattern, "pattern".to_owned()));
        for (pattern, step) in pattern.chain(properties) {
            self.pattern(pattern, format!("{pointer}/{step}"));
        }
        if let Some(types) = &keywords.types
            && types.known.len() < types.names.len()
        {
            let names = types.names.join("\", \"");
            self.add(
                format!("{pointer}/type"),
                Rule::UnknownType,
                format!("\"{names}\" is not a type of JSON Schema"),
            );
        }
        if let Some(format) = &keywords.format
            && !FORMATS.contains(&format.as_str())
        {
            self.format(format, pointer);
        }
    }

    fn pattern(&mut self, pattern: &Pattern, pointer: String) {
        if !pattern.is_valid() {
            let message = format!(
                "\"{}\" is no regular expression, so every text at this place is rejected",
                pattern.source()
            );
            self.add(pointer, Rule::InvalidPattern, message);
        }
    }

    /// All unknown formats are one finding, where the first of them stands: they do no harm.
    fn format(&mut self, format: &str, pointer: &str) {
        let name = format!("\"{format}\"");
        let known = self
            .findings
            .iter_mut()
            .find(|finding| finding.rule == Rule::UnknownFormat);
        match known {
            Some(finding) if finding.message.contains(&name) => {}
            Some(finding) => finding.message.push_str(&format!(", {name}")),
            None => self.add(
                format!("{pointer}/format"),
                Rule::UnknownFormat,
                format!("no check is known for the format {name}"),
            ),
        }
    }

    fn add(&mut self, pointer: String, rule: Rule, message: String) {
        self.findings.push(Finding {
            pointer,
            rule,
            message,
        });
    }
}

/// The schemas inside a schema and the rest of the way to each.
fn children(keywords: &Keywords) -> Vec<(String, NodeId)> {
    let mut children = Vec::new();
    let one = |name: &str, id: Option<NodeId>| id.map(|id| (name.to_owned(), id));
    let list = |name: &'static str, ids: &Option<Vec<NodeId>>| {
        let ids = ids.clone().unwrap_or_default().into_iter().enumerate();
        ids.map(move |(index, id)| (format!("{name}/{index}"), id))
            .collect::<Vec<_>>()
    };
    let members = keywords.properties.iter().flat_map(Members::iter);
    children.extend(members.map(|(name, id)| (format!("properties/{}", escaped(name)), id)));
    let patterns = keywords.pattern_properties.iter().flatten();
    children.extend(patterns.map(|(pattern, id)| {
        (
            format!("patternProperties/{}", escaped(pattern.source())),
            *id,
        )
    }));
    children.extend(one("additionalProperties", keywords.additional_properties));
    children.extend(one("propertyNames", keywords.property_names));
    children.extend(
        keywords
            .dependent_schemas
            .iter()
            .map(|(name, id)| (format!("dependentSchemas/{}", escaped(name)), *id)),
    );
    children.extend(list("prefixItems", &keywords.prefix_items));
    match &keywords.items {
        Some(Items::All(id)) => children.push(("items".to_owned(), *id)),
        Some(Items::Each(ids)) => children.extend(list("items", &Some(ids.clone()))),
        None => {}
    }
    children.extend(one("additionalItems", keywords.additional_items));
    children.extend(one("contains", keywords.contains));
    children.extend(list("allOf", &keywords.all_of));
    children.extend(list("anyOf", &keywords.any_of));
    children.extend(list("oneOf", &keywords.one_of));
    children.extend(one("not", keywords.not));
    if let Some(condition) = &keywords.condition {
        children.push(("if".to_owned(), condition.test));
        children.extend(one("then", condition.consequence));
        children.extend(one("else", condition.alternative));
    }
    children.extend(one(
        "unevaluatedProperties",
        keywords.unevaluated_properties,
    ));
    children.extend(one("unevaluatedItems", keywords.unevaluated_items));
    children
}

/// Where the target of a reference stands, as far as the reference says it; else the reference itself.
fn target_pointer(text: &str, pointer: &str) -> String {
    match text.strip_prefix('#') {
        Some(target) if target.is_empty() || target.starts_with('/') => target.to_owned(),
        _ => format!("{pointer}/$ref"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn case(schema: &Value, expected: &[&str]) {
        let arena = Arena::read(schema).unwrap();
        let found: Vec<String> = findings(&arena)
            .into_iter()
            .map(|finding| {
                format!(
                    "{} {}: {}",
                    finding.pointer,
                    finding.rule.name(),
                    finding.message
                )
            })
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_good_schema_has_no_findings() {
        case(&json!(true), &[]);
        case(
            &json!({"$defs": {"N": {"properties": {"next": {"$ref": "#/$defs/N"}}}}, "$ref": "#/$defs/N", "format": "date"}),
            &[],
        );
    }

    #[test]
    fn what_rejects_everything_is_found() {
        case(
            &json!({"properties": {"a": {"$ref": "#/$defs/gone"}, "b/c": {"type": "string", "pattern": "("}}}),
            &[
                "/properties/a/$ref dangling-ref: $ref \"#/$defs/gone\" names nothing here, so every value at this place is rejected",
                "/properties/b~1c/pattern invalid-pattern: \"(\" is no regular expression, so every text at this place is rejected",
            ],
        );
        case(
            &json!({"$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}, "properties": {"x": {"$ref": "#/$defs/A"}}}),
            &[
                "/$defs/A/$ref endless-ref: $ref \"#/$defs/B\" comes back to itself without going into the value, so every value at this place is rejected",
                "/$defs/B/$ref endless-ref: $ref \"#/$defs/A\" comes back to itself without going into the value, so every value at this place is rejected",
            ],
        );
    }

    #[test]
    fn what_is_not_looked_at_is_found_once() {
        case(
            &json!({"items": {"format": "uint32"}, "anyOf": [{"format": "made-up"}, {"format": "uint32"}]}),
            &[
                "/items/format unknown-format: no check is known for the format \"uint32\", \"made-up\"",
            ],
        );
        case(
            &json!({"properties": {"x": {"type": "any"}}}),
            &["/properties/x/type unknown-type: \"any\" is not a type of JSON Schema"],
        );
    }
}
