//! What is wrong with a value that a schema rejects: the reference's words, in its order.
//!
//! The walk asks the validator whether a node accepts a value and never decides that itself; it only finds out which
//! keyword to blame. `jsonschema`'s own errors are not looked at: they stand in another order, at other places.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use serde_json::{Map, Number, Value};

use super::Violation;
use super::assertion::{has_format, has_unique_items};
use super::convert::is_same;
use super::endless::endless;
use super::evaluated;
use super::node::{Arena, Condition, Keywords, Members, Node, NodeId, Reference};
use super::number::{compare, is_multiple};
use super::stack;
use super::union::{Tag, declared_keys};
use crate::json::{self, number_text};

/// How many violations are told at most; only schemas that repeat themselves at every level have more.
const MOST: usize = 100_000;

/// How many nodes the walk may stand in at a time for each level of the value; a guard for the stack.
const NODES_PER_LEVEL: usize = 16;

/// How many nodes may judge one value one below the other; a guard for the time, as each has a validator of its own.
const MOST_IN_PLACE: usize = 64;

/// Whether a node accepts a value.
pub(super) type Accepts<'a> = &'a dyn Fn(NodeId, &Value) -> bool;

/// Tells what the root of an arena has against a value; never empty.
pub(super) fn explain(arena: &Arena, value: &Value, accepts: Accepts<'_>) -> Vec<Violation> {
    let mut walk = Walk {
        arena,
        accepts,
        path: String::new(),
        found: Vec::new(),
        known: HashMap::new(),
        circular: HashSet::new(),
        room: json::depth(value).max(stack::SHALLOW) * NODES_PER_LEVEL,
        in_place: 0,
    };
    walk.node(arena.root(), value);
    if walk.found.is_empty() && walk.rejects_endlessly(arena.root(), value) {
        walk.report("$ref", "circular reference #");
    }
    if walk.found.is_empty() {
        walk.report("schema", "invalid");
    }
    walk.found
}

/// A node that judges the value at an address, at a path.
type Visit = (NodeId, *const Value, String);

struct Walk<'a> {
    arena: &'a Arena,
    accepts: Accepts<'a>,
    /// Where the walk is, as a JSON Pointer.
    path: String,
    found: Vec<Violation>,
    /// What targets of references were found to report, so that recursive unions are not walked again and again;
    /// nothing yet for one that is being walked.
    known: HashMap<Visit, Option<Rc<[Violation]>>>,
    /// The visits that came back to themselves without an end.
    circular: HashSet<Visit>,
    /// How many more nodes there is room for on the stack.
    room: usize,
    /// How many nodes judge the value where the walk is, one below the other.
    in_place: usize,
}

impl<'a> Walk<'a> {
    fn report(&mut self, keyword: &str, message: impl Into<String>) {
        self.tell(&[Violation {
            path: self.path.clone(),
            keyword: keyword.to_owned(),
            message: message.into(),
        }]);
    }

    fn tell(&mut self, violations: &[Violation]) {
        let room = MOST - self.found.len();
        self.found.extend(violations.iter().take(room).cloned());
    }

    /// Does something one level deeper in the value.
    fn at(&mut self, token: &str, then: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        let in_place = std::mem::take(&mut self.in_place);
        self.path.push('/');
        for character in token.chars() {
            match character {
                '~' => self.path.push_str("~0"),
                '/' => self.path.push_str("~1"),
                other => self.path.push(other),
            }
        }
        then(self);
        self.in_place = in_place;
        self.path.truncate(length);
    }

    fn report_at(&mut self, token: &str, keyword: &str, message: impl Into<String>) {
        self.at(token, |walk| walk.report(keyword, message));
    }

    fn node_at(&mut self, token: &str, id: NodeId, value: &'a Value) {
        self.at(token, |walk| walk.node(id, value));
    }

    /// What something reports, taken out of what is reported.
    fn apart(&mut self, walk: impl FnOnce(&mut Self)) -> Vec<Violation> {
        let before = std::mem::take(&mut self.found);
        walk(self);
        std::mem::replace(&mut self.found, before)
    }

    fn node(&mut self, id: NodeId, value: &'a Value) {
        if self.found.len() == MOST || (self.accepts)(id, value) {
            return;
        }
        if self.room == 0 || self.in_place == MOST_IN_PLACE {
            return self.report("schema", "invalid");
        }
        self.room -= 1;
        self.in_place += 1;
        match self.arena.node(id) {
            Node::Boolean(_) => self.report("false", "no value is allowed here"),
            Node::Keywords(keywords) => self.keywords(keywords, value),
        }
        self.in_place -= 1;
        self.room += 1;
    }

    fn keywords(&mut self, keywords: &'a Keywords, value: &'a Value) {
        let before = self.found.len();
        if self.wrong_type(keywords, value) {
            return;
        }
        self.values(keywords, value);
        match value {
            Value::String(text) => self.string(keywords, text, value),
            Value::Number(number) => self.number(keywords, number),
            Value::Object(members) => self.object(keywords, members, value),
            Value::Array(items) => self.array(keywords, items, value),
            Value::Null | Value::Bool(_) => {}
        }
        self.in_place(keywords, value);
        if self.found.len() == before {
            self.unevaluated(keywords, value);
        }
        if self.found.len() == before && keywords.dynamic_reference.is_some() {
            self.report(
                "$dynamicRef",
                "does not match the dynamically referenced schema",
            );
        }
    }

    fn wrong_type(&mut self, keywords: &Keywords, value: &Value) -> bool {
        let Some(types) = &keywords.types else {
            return false;
        };
        if types.known.iter().any(|known| known.admits(value)) {
            return false;
        }
        let expected = types.names.join(" or ");
        self.report(
            "type",
            format!("expected {expected}, got {}", json::kind(value)),
        );
        true
    }

    /// `enum` and `const`.
    fn values(&mut self, keywords: &Keywords, value: &Value) {
        if let Some(members) = &keywords.enumeration
            && !members.iter().any(|member| is_same(member, value))
        {
            self.report("enum", one_of(members));
        }
        if let Some(constant) = &keywords.constant
            && !is_same(constant, value)
        {
            self.report("const", format!("expected {}", json::compact(constant)));
        }
    }

    fn string(&mut self, keywords: &Keywords, text: &str, value: &Value) {
        let bounds = (&keywords.min_length, &keywords.max_length);
        self.count("Length", bounds, text.chars().count(), "characters");
        if let Some(pattern) = &keywords.pattern
            && !pattern.matches(text)
        {
            self.report("pattern", format!("expected to match {}", pattern.source()));
        }
        if let Some(format) = &keywords.format
            && !has_format(value, format)
        {
            self.report("format", format!("expected format {format}"));
        }
    }

    /// Bounds of a count: `minLength` and `maxLength` and their like.
    fn count(
        &mut self,
        what: &str,
        (least, most): (&Option<Number>, &Option<Number>),
        count: usize,
        things: &str,
    ) {
        if let Some(least) = least.as_ref().filter(|least| is_below(count, least)) {
            self.report(
                &format!("min{what}"),
                format!("expected at least {} {things}", number_text(least)),
            );
        }
        if let Some(most) = most.as_ref().filter(|most| is_above(count, most)) {
            self.report(
                &format!("max{what}"),
                format!("expected at most {} {things}", number_text(most)),
            );
        }
    }

    fn number(&mut self, keywords: &Keywords, value: &Number) {
        use Ordering::{Equal, Greater, Less};
        let bounds = [
            ("minimum", &keywords.minimum, ">=", &[Greater, Equal][..]),
            ("maximum", &keywords.maximum, "<=", &[Less, Equal]),
            (
                "exclusiveMinimum",
                &keywords.exclusive_minimum,
                ">",
                &[Greater],
            ),
            (
                "exclusiveMaximum",
                &keywords.exclusive_maximum,
                "<",
                &[Less],
            ),
        ];
        for (keyword, bound, sign, allowed) in bounds {
            if let Some(bound) = bound
                && !allowed.contains(&compare(value, bound))
            {
                self.report(keyword, format!("expected {sign} {}", number_text(bound)));
            }
        }
        if let Some(step) = &keywords.multiple_of
            && !is_multiple(value, step)
        {
            self.report(
                "multipleOf",
                format!("expected a multiple of {}", number_text(step)),
            );
        }
    }

    fn object(
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
    fn unknown(
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

    fn array(&mut self, keywords: &'a Keywords, items: &'a [Value], value: &Value) {
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

    /// The keywords that judge the same value again.
    fn in_place(&mut self, keywords: &'a Keywords, value: &'a Value) {
        for id in keywords.all_of.iter().flatten() {
            self.node(*id, value);
        }
        for (keyword, branches) in [("anyOf", &keywords.any_of), ("oneOf", &keywords.one_of)] {
            if let Some(branches) = branches {
                self.union(keyword, branches, value);
            }
        }
        if keywords.not.is_some_and(|id| (self.accepts)(id, value)) {
            self.report("not", "must not match the schema in not");
        }
        if let Some(condition) = &keywords.condition {
            self.condition(condition, value);
        }
        if let Some(reference) = &keywords.reference {
            self.reference(reference, value);
        }
    }

    fn condition(&mut self, condition: &Condition, value: &'a Value) {
        let consequence = if (self.accepts)(condition.test, value) {
            condition.consequence
        } else {
            condition.alternative
        };
        if let Some(id) = consequence {
            self.node(id, value);
        }
    }

    fn reference(&mut self, reference: &Reference, value: &'a Value) {
        let Some(target) = reference.target else {
            self.report("$ref", format!("unresolved reference {}", reference.text));
            return;
        };
        let visit: Visit = (target, std::ptr::from_ref(value), self.path.clone());
        match self.known.get(&visit) {
            Some(Some(known)) => {
                let known = Rc::clone(known);
                return self.tell(&known);
            }
            Some(None) => {
                self.circular.insert(visit);
                return;
            }
            None => {}
        }
        self.known.insert(visit.clone(), None);
        let circular = self.circular.len();
        let mut found = self.apart(|walk| walk.node(target, value));
        let is_circular = found.is_empty()
            && match self.circular.len() - circular {
                0 => self.rejects_endlessly(target, value),
                _ => self.circular.contains(&visit),
            };
        if is_circular {
            found = self.apart(|walk| {
                walk.report("$ref", format!("circular reference {}", reference.text));
            });
        }
        self.tell(&found);
        self.known.insert(visit, Some(found.into()));
    }

    /// Whether a node rejects a value because its check comes back to itself and would never end.
    fn rejects_endlessly(&self, id: NodeId, value: &Value) -> bool {
        !(self.accepts)(id, value) && endless(self.arena).contains(&id)
    }

    fn union(&mut self, keyword: &str, branches: &'a [NodeId], value: &'a Value) {
        let accepting = branches
            .iter()
            .filter(|id| (self.accepts)(**id, value))
            .count();
        match (keyword, accepting) {
            (_, 0) => {}
            ("oneOf", 2..) => return self.report(keyword, "matches more than one alternative"),
            _ => return,
        }
        if let (Value::Object(members), Some(tag)) = (value, Tag::of(self.arena, branches)) {
            return self.tagged(keyword, &tag, members, value);
        }
        match self.blamed(branches, value) {
            Some(found) => self.tell(&found),
            None => self.report(keyword, "matches no alternative"),
        }
    }

    fn tagged(
        &mut self,
        keyword: &str,
        tag: &Tag<'_>,
        members: &Map<String, Value>,
        value: &'a Value,
    ) {
        let is_actual = |constant| {
            members
                .get(tag.name)
                .is_some_and(|actual| is_same(actual, constant))
        };
        if let Some((_, id)) = tag
            .branches
            .iter()
            .find(|(constant, _)| is_actual(constant))
        {
            return self.node(*id, value);
        }
        let tags: Vec<Value> = tag
            .branches
            .iter()
            .map(|(constant, _)| (*constant).clone())
            .collect();
        self.report_at(tag.name, keyword, one_of(&tags));
    }

    /// What the branch that was most likely meant reports.
    fn blamed(&mut self, branches: &'a [NodeId], value: &'a Value) -> Option<Vec<Violation>> {
        let mut best: Option<((usize, usize), Vec<Violation>)> = None;
        for id in branches {
            let found = self.apart(|walk| walk.node(*id, value));
            let Some(first) = found.first() else { continue };
            let rank = (
                declared_keys(self.arena, *id, value),
                first.path.encode_utf16().count(),
            );
            if best.as_ref().is_none_or(|(highest, _)| rank > *highest) {
                best = Some((rank, found));
            }
        }
        best.map(|(_, found)| found)
    }

    /// `unevaluatedProperties` and `unevaluatedItems`.
    fn unevaluated(&mut self, keywords: &'a Keywords, value: &'a Value) {
        if let (Value::Object(members), Some(rest)) = (value, keywords.unevaluated_properties) {
            let evaluated = evaluated::keys(self.arena, self.accepts, keywords, value);
            let rule = ("unevaluatedProperties", "unknown field");
            for (key, member) in members
                .iter()
                .filter(|(key, _)| !evaluated.contains(key.as_str()))
            {
                self.unknown(rest, rule, key, member);
            }
        }
        if let (Value::Array(items), Some(rest)) = (value, keywords.unevaluated_items) {
            let evaluated = evaluated::indices(self.arena, self.accepts, keywords, value);
            let rule = ("unevaluatedItems", "unexpected item");
            for (index, item) in items
                .iter()
                .enumerate()
                .filter(|(index, _)| !evaluated.contains(index))
            {
                self.unknown(rest, rule, &index.to_string(), item);
            }
        }
    }
}

/// A choice, as compact JSON; of many values the first ones.
fn one_of(values: &[Value]) -> String {
    const SHOWN: usize = 20;
    let shown: Vec<String> = values.iter().take(SHOWN).map(json::compact).collect();
    let shown = shown.join(",");
    match values.len().saturating_sub(SHOWN) {
        0 => format!("expected one of [{shown}]"),
        more => format!("expected one of [{shown}, ... and {more} more]"),
    }
}

fn is_below(count: usize, bound: &Number) -> bool {
    compare(&count.into(), bound) == Ordering::Less
}

fn is_above(count: usize, bound: &Number) -> bool {
    compare(&count.into(), bound) == Ordering::Greater
}

fn is_count(number: &Number, count: u64) -> bool {
    compare(number, &count.into()) == Ordering::Equal
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::Schema;

    /// Compares all violations, each as `POINTER KEYWORD MESSAGE`.
    #[track_caller]
    fn case(schema: &Value, value: &Value, expected: &[&str]) {
        let schema = Schema::compile(schema).expect("the schema compiles");
        let lines: Vec<String> = schema
            .violations(value)
            .iter()
            .map(
                |Violation {
                     path,
                     keyword,
                     message,
                 }| format!("{path} {keyword} {message}"),
            )
            .collect();
        assert_eq!(lines, expected, "{value}");
    }

    #[test]
    fn a_wrong_type_is_all_that_a_node_reports() {
        case(
            &json!({"type": ["integer", "null"], "minimum": 3}),
            &json!("x"),
            &[" type expected integer or null, got string"],
        );
        case(
            &json!({"type": "integer", "minimum": 3}),
            &json!(1.5),
            &[" type expected integer, got number"],
        );
        case(
            &json!({"type": "any"}),
            &json!(2.0),
            &[" type expected any, got integer"],
        );
        case(
            &json!(false),
            &json!({}),
            &[" false no value is allowed here"],
        );
    }

    #[test]
    fn choices_are_listed_up_to_twenty() {
        case(
            &json!({"enum": ["a", 1.0, {"b": []}]}),
            &json!(null),
            &[r#" enum expected one of ["a",1,{"b":[]}]"#],
        );
        let many: Vec<usize> = (1..=22).collect();
        let expected = " enum expected one of [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20, ... and 2 more]";
        case(&json!({"enum": many}), &json!(0), &[expected]);
        case(
            &json!({"const": {"a": 1}}),
            &json!({"a": 2}),
            &[r#" const expected {"a":1}"#],
        );
    }

    #[test]
    fn strings_are_measured_in_characters() {
        case(
            &json!({"minLength": 3, "pattern": "^x", "format": "email"}),
            &json!("\u{1F600}\u{1F600}"),
            &[
                " minLength expected at least 3 characters",
                " pattern expected to match ^x",
                " format expected format email",
            ],
        );
        case(
            &json!({"maxLength": 1}),
            &json!("ab"),
            &[" maxLength expected at most 1 characters"],
        );
        case(
            &json!({"format": "url"}),
            &json!("x"),
            &[" format expected format url"],
        );
        case(
            &json!({"pattern": "("}),
            &json!("x"),
            &[" pattern expected to match ("],
        );
    }

    #[test]
    fn numbers_are_compared_digit_by_digit() {
        case(
            &json!({"minimum": 9_007_199_254_740_993_u64, "exclusiveMinimum": 1e21, "multipleOf": 5}),
            &json!(9_007_199_254_740_992_u64),
            &[
                " minimum expected >= 9007199254740993",
                " exclusiveMinimum expected > 1e+21",
                " multipleOf expected a multiple of 5",
            ],
        );
        case(
            &json!({"maximum": 0.5, "exclusiveMaximum": -1.5}),
            &json!(1),
            &[
                " maximum expected <= 0.5",
                " exclusiveMaximum expected < -1.5",
            ],
        );
        case(
            &json!({"exclusiveMaximum": -5.0}),
            &json!(-5),
            &[" exclusiveMaximum expected < -5"],
        );
    }

    #[test]
    fn objects_report_in_the_order_of_the_rules() {
        let schema = json!({
            "required": ["z", "a/b"],
            "properties": {"p": {"type": "string"}, "q": {"type": "string"}},
            "patternProperties": {"^n": {"type": "null"}, "1$": false},
            "additionalProperties": false,
            "propertyNames": {"maxLength": 2},
            "minProperties": 9,
            "dependentRequired": {"p": ["r"]},
            "dependencies": {"q": {"required": ["s"]}, "n1": ["t"]},
            "dependentSchemas": {"p": {"maxProperties": 1}},
        });
        case(
            &schema,
            &json!({"long": 1, "q": 1, "n1": 1, "p": 1}),
            &[
                "/z required missing",
                "/a~1b required missing",
                "/p type expected string, got integer",
                "/q type expected string, got integer",
                "/long additionalProperties unknown field",
                "/long propertyNames invalid property name",
                "/n1 type expected null, got integer",
                "/n1 false no value is allowed here",
                " minProperties expected at least 9 properties",
                "/r dependentRequired required when p is present",
                "/t dependentRequired required when n1 is present",
                "/s required missing",
                " maxProperties expected at most 1 properties",
            ],
        );
        case(
            &json!({"patternProperties": {"[": true}}),
            &json!({"a": 1}),
            &[" patternProperties invalid pattern ["],
        );
    }

    #[test]
    fn what_the_older_dependencies_miss_comes_first_but_nothing_goes_unsaid() {
        let schema = json!({"dependentRequired": {"a": ["b"]}, "dependencies": {"a": ["c"]}});
        case(
            &schema,
            &json!({"a": 1}),
            &["/c dependentRequired required when a is present"],
        );
        case(
            &schema,
            &json!({"a": 1, "c": 1}),
            &["/b dependentRequired required when a is present"],
        );
    }

    #[test]
    fn arrays_report_items_then_counts() {
        let schema = json!({
            "prefixItems": [true], "items": {"type": "string"}, "minItems": 9, "maxItems": 1, "uniqueItems": true,
            "contains": {"type": "null"},
        });
        case(
            &schema,
            &json!([1, 1.0]),
            &[
                "/1 type expected string, got integer",
                " minItems expected at least 9 items",
                " maxItems expected at most 1 items",
                " uniqueItems expected unique items",
                " contains expected at least 1 matching item",
            ],
        );
        let contains = |least: Value, most: Value| json!({"contains": {}, "minContains": least, "maxContains": most});
        case(
            &json!({"contains": {}, "minContains": 3}),
            &json!([1]),
            &[" contains expected at least 3 matching items"],
        );
        case(
            &contains(json!(0), json!(1)),
            &json!([1, 2]),
            &[" contains expected at most 1 matching item"],
        );
        case(
            &contains(json!(1), json!(1)),
            &json!([1, 2]),
            &[" contains expected between 1 and 1 matching items"],
        );
    }

    #[test]
    fn schemas_in_place_report_after_the_value_itself() {
        case(
            &json!({"maximum": 1, "allOf": [{"maximum": 2}], "not": {"type": "number"}, "if": true, "then": false, "$ref": "#/x"}),
            &json!(5),
            &[
                " maximum expected <= 1",
                " maximum expected <= 2",
                " not must not match the schema in not",
                " false no value is allowed here",
                " $ref unresolved reference #/x",
            ],
        );
        case(
            &json!({"if": {"type": "string"}, "then": true, "else": {"const": 1}}),
            &json!(5),
            &[" const expected 1"],
        );
    }

    #[test]
    fn what_is_not_evaluated_is_told_only_if_nothing_else_is() {
        let schema = json!({
            "properties": {"a": {"type": "string"}},
            "anyOf": [{"properties": {"b": true}, "required": ["b"]}, true],
            "unevaluatedProperties": false,
        });
        case(
            &schema,
            &json!({"b": 1, "c": 1}),
            &["/c unevaluatedProperties unknown field"],
        );
        case(
            &schema,
            &json!({"a": 1, "c": 1}),
            &["/a type expected string, got integer"],
        );
        case(
            &json!({"prefixItems": [true], "contains": {"const": 3}, "unevaluatedItems": {"type": "null"}}),
            &json!([1, 2, 3]),
            &["/1 type expected null, got integer"],
        );
        case(
            &json!({"items": [true], "unevaluatedItems": false}),
            &json!([1, 2]),
            &["/1 unevaluatedItems unexpected item"],
        );
    }

    #[test]
    fn tagged_unions_are_judged_by_their_tag() {
        let branch = |tag: &str| json!({"properties": {"kind": {"const": tag}, "n": {"type": "integer"}}, "required": ["kind"]});
        let schema =
            json!({"oneOf": [{"$ref": "#/$defs/a"}, branch("b")], "$defs": {"a": branch("a")}});
        case(
            &schema,
            &json!({"kind": "b", "n": "x"}),
            &["/n type expected integer, got string"],
        );
        case(
            &schema,
            &json!({"kind": "c", "n": "x"}),
            &[r#"/kind oneOf expected one of ["a","b"]"#],
        );
        case(
            &schema,
            &json!({}),
            &[r#"/kind oneOf expected one of ["a","b"]"#],
        );
    }

    #[test]
    fn other_unions_blame_the_branch_that_was_most_likely_meant() {
        let schema = json!({"anyOf": [
            {"type": "string"},
            {"type": "object", "properties": {"a": {"type": "null"}}, "required": ["a"]},
            {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}},
        ]});
        case(
            &schema,
            &json!({"a": "x", "b": 1}),
            &["/b type expected string, got integer"],
        );
        case(
            &schema,
            &json!({"a": 1}),
            &["/a type expected null, got integer"],
        );
        case(&schema, &json!(5), &[" type expected string, got integer"]);
        case(
            &json!({"anyOf": []}),
            &json!(5),
            &[" anyOf matches no alternative"],
        );
        case(
            &json!({"oneOf": [true, {}]}),
            &json!(5),
            &[" oneOf matches more than one alternative"],
        );
    }

    #[test]
    fn cycles_without_progress_are_named_at_their_place() {
        let named = |definitions: Value| json!({"properties": {"p": {"$ref": "#/$defs/a"}}, "$defs": definitions});
        let circular = ["/p $ref circular reference #/$defs/a"];
        case(
            &named(json!({"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}})),
            &json!({"p": 1}),
            &circular,
        );
        case(
            &named(json!({"a": {"allOf": [{"$ref": "#/$defs/a"}]}})),
            &json!({"p": 1}),
            &circular,
        );
        case(
            &json!({"$ref": "#"}),
            &json!({}),
            &[" $ref circular reference #"],
        );
        let with_way_out = json!({"a": {"anyOf": [{"$ref": "#/$defs/b"}, {"type": "integer"}]}, "b": {"$ref": "#/$defs/a"}});
        case(
            &named(with_way_out),
            &json!({"p": "x"}),
            &["/p type expected integer, got string"],
        );
    }

    #[test]
    fn recursive_unions_are_not_walked_again_and_again() {
        let branch = |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}, "next": {"$ref": "#"}}});
        let schema = json!({"anyOf": [branch("a"), branch("b"), branch("c"), {"type": "null"}]});
        let depth = 60;
        let value = (0..depth).fold(json!(7), |next, _| json!({"next": next}));
        let path = "/next".repeat(depth);
        case(
            &schema,
            &value,
            &[&format!("{path} type expected object, got integer")],
        );
    }

    #[test]
    fn a_value_of_the_greatest_depth_is_explained() {
        let schema = json!({"type": ["array", "string"], "items": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}});
        let value = (0..json::MAX_DEPTH).fold(json!(7), |item, _| json!([item]));
        let path = "/0".repeat(json::MAX_DEPTH);
        case(
            &schema,
            &value,
            &[&format!(
                "{path} type expected array or string, got integer"
            )],
        );
    }

    #[test]
    fn a_schema_that_leads_from_node_to_node_is_followed_only_so_far() {
        let chain: Map<String, Value> = (0..120)
            .map(|index| {
                (
                    index.to_string(),
                    json!({"allOf": [{"$ref": format!("#/$defs/{}", index + 1)}]}),
                )
            })
            .chain([("120".to_owned(), json!(false))])
            .collect();
        let schema = json!({"properties": {"p": {"$ref": "#/$defs/0"}}, "$defs": chain});
        case(&schema, &json!({"p": 1}), &["/p schema invalid"]);
    }

    #[test]
    fn repetition_at_every_level_has_a_limit() {
        let level = json!({"properties": {"n": {"$ref": "#/$defs/n"}}});
        let schema = json!({"$ref": "#/$defs/n", "$defs": {"n": {"type": "object", "allOf": [level, level]}}});
        let value = (0..17).fold(json!(7), |next, _| json!({"n": next}));
        assert_eq!(
            Schema::compile(&schema)
                .expect("the schema compiles")
                .violations(&value)
                .len(),
            MOST
        );
    }
}
