//! Keywords that judge the members of an object or the items of an array.

use serde_json::{Map, Number, Value};

use super::Walk;
use super::assertions::{is_above, is_below, is_count};
use crate::json::number_text;
use crate::schema::assertion::has_unique_items;
use crate::schema::node::{Keywords, Members, Node, NodeId};

impl<'a> Walk<'a> {
    pub(super) fn object(
        &mut self,
        keywords: &'a Keywords,
        members: &'a Map<String, Value>,
        value: &'a Value,
    ) {
        for name in keywords
            .required
            .iter()
            .filter(|name| !members.contains_key(*name))
        {
            self.report_at(name, "required", "missing");
        }
        for (name, id) in keywords.properties.iter().flat_map(Members::iter) {
            if let Some(member) = members.get(name) {
                self.node_at(name, id, member);
            }
        }
        for (pattern, _) in keywords.pattern_properties.iter().flatten() {
            if !pattern.is_valid() {
                self.report(
                    "patternProperties",
                    format!("invalid pattern {}", pattern.source()),
                );
            }
        }
        for (key, member) in members {
            self.key(keywords, key, member);
        }
        let bounds = (&keywords.min_properties, &keywords.max_properties);
        self.count("Properties", bounds, members.len(), "properties");
        self.dependencies(keywords, members);
        for (key, id) in &keywords.dependent_schemas {
            if members.contains_key(key) {
                self.node(*id, value);
            }
        }
    }

    /// A key of an object and its value, but for `properties`.
    fn key(&mut self, keywords: &'a Keywords, key: &str, member: &'a Value) {
        let is_declared = keywords
            .properties
            .as_ref()
            .is_some_and(|properties| properties.get(key).is_some());
        let mut has_pattern = false;
        for (pattern, id) in keywords.pattern_properties.iter().flatten() {
            if pattern.matches(key) {
                has_pattern = true;
                self.node_at(key, *id, member);
            }
        }
        if let Some(additional) = keywords
            .additional_properties
            .filter(|_| !is_declared && !has_pattern)
        {
            self.unknown(
                additional,
                ("additionalProperties", "unknown field"),
                key,
                member,
            );
        }
        if let Some(names) = keywords.property_names
            && !(self.accepts)(names, &Value::String(key.to_owned()))
        {
            self.report_at(key, "propertyNames", "invalid property name");
        }
    }

    /// A member or item that only a keyword for the rest covers: if that is `false`, the keyword is to blame.
    pub(super) fn unknown(
        &mut self,
        id: NodeId,
        (keyword, message): (&str, &str),
        token: &str,
        value: &'a Value,
    ) {
        match self.arena.node(id) {
            Node::Boolean(false) => self.report_at(token, keyword, message),
            _ => self.node_at(token, id, value),
        }
    }

    /// `dependentRequired`, and the lists of `dependencies`: for one key, first what the latter miss.
    fn dependencies(&mut self, keywords: &Keywords, members: &Map<String, Value>) {
        let newer = &keywords.dependent_required;
        let older = &keywords.dependencies_required;
        let list_of = |lists: &'_ [(String, Vec<String>)], key: &str| {
            lists.iter().position(|(other, _)| other == key)
        };
        for (key, names) in newer {
            let in_place = list_of(older, key).map(|index| &older[index].1);
            let is_told = in_place.is_some_and(|names| self.missing(key, names, members));
            if !is_told {
                self.missing(key, names, members);
            }
        }
        for (key, names) in older
            .iter()
            .filter(|(key, _)| list_of(newer, key).is_none())
        {
            self.missing(key, names, members);
        }
    }

    /// Whether a key asks for members that are missing, each of which is reported.
    fn missing(&mut self, key: &str, names: &[String], members: &Map<String, Value>) -> bool {
        if !members.contains_key(key) {
            return false;
        }
        let missing: Vec<&String> = names
            .iter()
            .filter(|name| !members.contains_key(*name))
            .collect();
        for name in &missing {
            self.report_at(
                name,
                "dependentRequired",
                format!("required when {key} is present"),
            );
        }
        !missing.is_empty()
    }

    pub(super) fn array(&mut self, keywords: &'a Keywords, items: &'a [Value], value: &Value) {
        for (index, item) in items.iter().enumerate() {
            if let Some(id) = keywords.item(index) {
                self.node_at(&index.to_string(), id, item);
            }
        }
        self.count(
            "Items",
            (&keywords.min_items, &keywords.max_items),
            items.len(),
            "items",
        );
        if keywords.unique_items && !has_unique_items(value) {
            self.report("uniqueItems", "expected unique items");
        }
        if let Some(contained) = keywords.contains {
            self.contains(keywords, contained, items);
        }
    }

    fn contains(&mut self, keywords: &Keywords, contained: NodeId, items: &[Value]) {
        let matching = items
            .iter()
            .filter(|item| (self.accepts)(contained, item))
            .count();
        let one = Number::from(1);
        let least = keywords.min_contains.as_ref().unwrap_or(&one);
        let most = keywords.max_contains.as_ref();
        if !is_below(matching, least) && !most.is_some_and(|most| is_above(matching, most)) {
            return;
        }
        let items = |count: &Number| {
            let things = if is_count(count, 1) {
                "matching item"
            } else {
                "matching items"
            };
            format!("{} {things}", number_text(count))
        };
        let message = match most {
            None => format!("expected at least {}", items(least)),
            Some(most) if is_count(least, 0) => format!("expected at most {}", items(most)),
            Some(most) => format!(
                "expected between {} and {} matching items",
                number_text(least),
                number_text(most)
            ),
        };
        self.report("contains", message);
    }
}
