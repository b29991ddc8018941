//! The documents for the validator: the arena written down again, so that the `jsonschema` crate judges as the
//! reference does.
//!
//! Nodes are members of `$defs`, and subschemas references to them or written in place; only keywords that mean
//! something are written, in 2020-12. What names nothing or leads nowhere becomes `false` at its place: a dangling `$ref`, an
//! invalid pattern, a reference that comes back to the same schema with the same value.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde_json::{Map, Number, Value, json};

use super::{
    endless::endless,
    node::{Arena, Items, Keywords, Node, NodeId},
    own::OwnAssertions,
};

/// The keyword under which a node's assertions hang that the crate is not asked for; its value is the node's index.
pub(super) const OWN_KEYWORD: &str = "pitool";

/// How many times nodes of endless cycles are written down before a reference among them just rejects.
const MOST_UNROLLED: usize = 256;

/// How many schemas are written inside each other before one stands apart: the crate recurses into them.
const MOST_NESTED: usize = 16;

/// What the documents are for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// For the root alone: a schema with one user is written in its place, which is judged faster than a reference.
    Root,
    /// For any node: each stands apart.
    Nodes,
}

/// The way to a node on an endless cycle.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
struct Way {
    /// The schemas that are being judged with the same value: only those on endless cycles.
    in_progress: BTreeSet<NodeId>,
    /// Whether a `not` turns the verdict round, so that what must reject has to accept.
    is_negated: bool,
}

/// An arena as documents of JSON Schema 2020-12.
pub(super) struct Documents {
    by_uri: BTreeMap<String, Map<String, Value>>,
    has_dynamic_scope: bool,
}

impl Documents {
    /// Writes an arena down.
    pub(super) fn of(arena: &Arena, layout: Layout) -> Self {
        let has_dynamic_scope = arena.ids().any(|id| looks_in_dynamic_scope(arena, id));
        let may_stand_in_place = layout == Layout::Root && !has_dynamic_scope;
        let mut writer = Writer {
            arena,
            endless: endless(arena),
            has_dynamic_scope,
            users: if may_stand_in_place {
                users(arena)
            } else {
                Vec::new()
            },
            nested: 0,
            apart: HashSet::new(),
            unrolled: HashMap::new(),
            pending: Vec::new(),
        };
        if may_stand_in_place {
            writer.set_apart(arena.root());
        } else {
            arena.ids().for_each(|id| writer.set_apart(id));
        }
        let mut by_uri: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
        while let Some((id, name, way)) = writer.pending.pop() {
            let schema = writer.schema(id, &way);
            by_uri
                .entry(resource_uri(arena, id, has_dynamic_scope))
                .or_default()
                .insert(name, schema);
        }
        Self {
            by_uri,
            has_dynamic_scope,
        }
    }

    /// The documents by URI.
    pub(super) fn into_iter(self) -> impl Iterator<Item = (String, Value)> {
        self.by_uri
            .into_iter()
            .map(|(uri, defs)| (uri, json!({"$defs": defs})))
    }

    /// Whether `$dynamicRef` is at work, so that each `$id` has its own document.
    pub(super) fn has_dynamic_scope(&self) -> bool {
        self.has_dynamic_scope
    }
}

/// The reference by which a node is found in the documents.
pub(super) fn reference_to(arena: &Arena, id: NodeId, has_dynamic_scope: bool) -> String {
    format!(
        "{}#/$defs/{}",
        resource_uri(arena, id, has_dynamic_scope),
        id.index()
    )
}

fn resource_uri(arena: &Arena, id: NodeId, has_dynamic_scope: bool) -> String {
    let resource = arena
        .keywords(id)
        .filter(|_| has_dynamic_scope)
        .map_or(0, |keywords| keywords.resource);
    format!("pitool:/{resource}")
}

fn looks_in_dynamic_scope(arena: &Arena, id: NodeId) -> bool {
    let reference = arena
        .keywords(id)
        .and_then(|keywords| keywords.dynamic_reference.as_ref());
    reference.is_some_and(|reference| reference.anchor.is_some())
}

/// How many schemas use each node; the root counts as used.
fn users(arena: &Arena) -> Vec<usize> {
    let mut users = vec![0; arena.len()];
    users[arena.root().index()] = 1;
    for keywords in arena.ids().filter_map(|id| arena.keywords(id)) {
        for used in keywords.in_place().chain(keywords.in_parts()) {
            users[used.index()] += 1;
        }
    }
    users
}

struct Writer<'a> {
    arena: &'a Arena,
    endless: HashSet<NodeId>,
    has_dynamic_scope: bool,
    /// How many schemas use each node; empty where every node stands apart.
    users: Vec<usize>,
    /// How many schemas are being written inside each other.
    nested: usize,
    /// The nodes that stand apart.
    apart: HashSet<NodeId>,
    /// The names of nodes on endless cycles, by what is in progress.
    unrolled: HashMap<(NodeId, Way), String>,
    pending: Vec<(NodeId, String, Way)>,
}

impl Writer<'_> {
    fn schema(&mut self, id: NodeId, way: &Way) -> Value {
        let keywords = match self.arena.node(id) {
            Node::Boolean(accepts) => return json!(accepts),
            Node::Keywords(keywords) => keywords,
        };
        if rejects_everything(keywords) {
            return json!(false);
        }
        let mut way = way.clone();
        if self.endless.contains(&id) {
            way.in_progress.insert(id);
        }
        let mut schema = Schema::default();
        write_values(&mut schema, keywords);
        write_bounds(&mut schema, keywords);
        if OwnAssertions::has_any(keywords) {
            schema.put(OWN_KEYWORD, id.index());
        }
        self.write_object(&mut schema, keywords, &way);
        self.write_array(&mut schema, keywords);
        self.write_in_place(&mut schema, keywords, &way);
        schema.finish()
    }

    /// A subschema of a part of the value.
    fn descend(&mut self, id: NodeId) -> Value {
        if let Node::Boolean(accepts) = self.arena.node(id) {
            return json!(accepts);
        }
        let has_one_user = self.users.get(id.index()) == Some(&1);
        if has_one_user && self.nested < MOST_NESTED {
            self.nested += 1;
            let schema = self.schema(id, &Way::default());
            self.nested -= 1;
            return schema;
        }
        self.set_apart(id);
        json!({"$ref": reference_to(self.arena, id, self.has_dynamic_scope)})
    }

    /// Has a node written apart, once.
    fn set_apart(&mut self, id: NodeId) {
        if self.apart.insert(id) {
            self.pending
                .push((id, id.index().to_string(), Way::default()));
        }
    }

    /// A subschema of the value itself.
    fn stay(&mut self, id: NodeId, way: &Way) -> Value {
        if way.in_progress.is_empty() || !self.endless.contains(&id) {
            return self.descend(id);
        }
        let key = (id, way.clone());
        let is_known = self.unrolled.contains_key(&key);
        if way.in_progress.contains(&id) || (!is_known && self.unrolled.len() == MOST_UNROLLED) {
            return json!(way.is_negated);
        }
        if !is_known {
            let name = format!("{}.{}", id.index(), self.unrolled.len());
            self.pending.push((id, name.clone(), way.clone()));
            self.unrolled.insert(key.clone(), name);
        }
        let uri = resource_uri(self.arena, id, self.has_dynamic_scope);
        json!({"$ref": format!("{uri}#/$defs/{}", self.unrolled[&key])})
    }

    fn stay_all(&mut self, ids: &[NodeId], way: &Way) -> Vec<Value> {
        ids.iter().map(|id| self.stay(*id, way)).collect()
    }

    fn write_object(&mut self, schema: &mut Schema, keywords: &Keywords, way: &Way) {
        if let Some(properties) = &keywords.properties {
            let members: Map<_, _> = properties
                .iter()
                .map(|(name, id)| (name.to_owned(), self.descend(id)))
                .collect();
            schema.put("properties", members);
        }
        self.write_pattern_properties(schema, keywords);
        schema.put_some(
            "additionalProperties",
            keywords.additional_properties.map(|id| self.descend(id)),
        );
        schema.put_some(
            "propertyNames",
            keywords.property_names.map(|id| self.descend(id)),
        );
        if !keywords.required.is_empty() {
            schema.put("required", distinct(&keywords.required));
        }
        let mut dependent: Map<String, Value> = Map::new();
        for (key, names) in keywords
            .dependent_required
            .iter()
            .chain(&keywords.dependencies_required)
        {
            let list = dependent.entry(key).or_insert_with(|| json!([]));
            list.as_array_mut()
                .expect("made here")
                .extend(names.iter().map(|name| json!(name)));
        }
        if !dependent.is_empty() {
            schema.put("dependentRequired", dependent);
        }
        for (key, id) in &keywords.dependent_schemas {
            let dependent = self.stay(*id, way);
            schema.also(json!({"dependentSchemas": {key: dependent}}));
        }
        schema.put_some(
            "unevaluatedProperties",
            keywords.unevaluated_properties.map(|id| self.descend(id)),
        );
    }

    /// Patterns that are written differently may read the same once they are translated.
    fn write_pattern_properties(&mut self, schema: &mut Schema, keywords: &Keywords) {
        let Some(members) = &keywords.pattern_properties else {
            return;
        };
        let mut written: Map<String, Value> = Map::new();
        for (pattern, id) in members {
            let Some(pattern) = pattern.translated() else {
                // Any key could be meant, so an object with a key is what stands at the pattern's place.
                schema.also(json!({"maxProperties": 0}));
                continue;
            };
            let subschema = self.descend(*id);
            match written.get_mut(pattern) {
                None => {
                    written.insert(pattern.to_owned(), subschema);
                }
                Some(other) => *other = json!({"allOf": [other.take(), subschema]}),
            }
        }
        schema.put("patternProperties", written);
    }

    fn write_array(&mut self, schema: &mut Schema, keywords: &Keywords) {
        let (first, rest) = match &keywords.items {
            Some(Items::Each(each)) => (Some(each), keywords.additional_items),
            Some(Items::All(rest)) => (keywords.prefix_items.as_ref(), Some(*rest)),
            None => (keywords.prefix_items.as_ref(), None),
        };
        if let Some(first) = first.filter(|first| !first.is_empty()) {
            schema.put(
                "prefixItems",
                first.iter().map(|id| self.descend(*id)).collect::<Vec<_>>(),
            );
        }
        schema.put_some("items", rest.map(|id| self.descend(id)));
        if let Some(contains) = keywords.contains {
            schema.put("contains", self.descend(contains));
            schema.at_least("minContains", keywords.min_contains.as_ref());
            if is_zero_or_less(keywords.min_contains.as_ref()) {
                schema.put("minContains", 0);
            }
            schema.at_most("maxContains", keywords.max_contains.as_ref(), "array");
        }
        schema.put_some(
            "unevaluatedItems",
            keywords.unevaluated_items.map(|id| self.descend(id)),
        );
    }

    fn write_in_place(&mut self, schema: &mut Schema, keywords: &Keywords, way: &Way) {
        for (keyword, branches) in [("anyOf", &keywords.any_of), ("oneOf", &keywords.one_of)] {
            if let Some(branches) = branches {
                schema.put(keyword, self.stay_all(branches, way));
            }
        }
        for member in self.stay_all(keywords.all_of.as_deref().unwrap_or_default(), way) {
            schema.also(member);
        }
        let negated = Way {
            is_negated: !way.is_negated,
            ..way.clone()
        };
        schema.put_some("not", keywords.not.map(|id| self.stay(id, &negated)));
        if let Some(condition) = &keywords.condition {
            schema.put("if", self.stay(condition.test, way));
            schema.put_some("then", condition.consequence.map(|id| self.stay(id, way)));
            schema.put_some("else", condition.alternative.map(|id| self.stay(id, way)));
        }
        if let Some(target) = keywords
            .reference
            .as_ref()
            .and_then(|reference| reference.target)
        {
            let target = self.stay(target, way);
            schema.also(target);
        }
        if let Some(reference) = &keywords.dynamic_reference
            && let Some(target) = reference.target
        {
            let dynamic = self.dynamic(target, reference.anchor.as_deref(), way);
            schema.also(dynamic);
        }
        schema.put_some(
            "$dynamicAnchor",
            keywords
                .dynamic_anchor
                .clone()
                .filter(|_| self.has_dynamic_scope),
        );
    }

    /// A `$dynamicRef`; which schema it means is known only while it judges, so on an endless cycle it rejects.
    fn dynamic(&mut self, target: NodeId, anchor: Option<&str>, way: &Way) -> Value {
        match anchor {
            None => self.stay(target, way),
            Some(_) if way.in_progress.contains(&target) => json!(way.is_negated),
            Some(anchor) => {
                json!({"$dynamicRef": format!("{}#{anchor}", resource_uri(self.arena, target, self.has_dynamic_scope))})
            }
        }
    }
}

/// A schema object that is being written.
#[derive(Default)]
struct Schema {
    keywords: Map<String, Value>,
    /// What holds besides: the members of `allOf`.
    also: Vec<Value>,
}

impl Schema {
    fn put(&mut self, keyword: &str, value: impl Into<Value>) {
        self.keywords.insert(keyword.to_owned(), value.into());
    }

    fn put_some(&mut self, keyword: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.put(keyword, value);
        }
    }

    fn also(&mut self, schema: Value) {
        self.also.push(schema);
    }

    /// Writes a lower bound of a count, which may be any number.
    fn at_least(&mut self, keyword: &str, bound: Option<&Number>) {
        if let Some(bound) = bound.filter(|_| !is_zero_or_less(bound)) {
            self.put(keyword, whole(bound, f64::ceil));
        }
    }

    /// Writes an upper bound of a count; nothing of that type keeps a negative one.
    fn at_most(&mut self, keyword: &str, bound: Option<&Number>, kind: &str) {
        let Some(bound) = bound else { return };
        if bound.as_f64().is_some_and(|bound| bound < 0.0) {
            self.also(json!({"not": {"type": kind}}));
        } else {
            self.put(keyword, whole(bound, f64::floor));
        }
    }

    fn finish(mut self) -> Value {
        let is_bare_reference = self.keywords.is_empty() && self.also.len() == 1;
        if is_bare_reference {
            return self.also.remove(0);
        }
        if !self.also.is_empty() {
            let members = std::mem::take(&mut self.also);
            self.put("allOf", members);
        }
        Value::Object(self.keywords)
    }
}

/// Whether no value is valid, whatever else the node says.
fn rejects_everything(keywords: &Keywords) -> bool {
    let is_empty = |list: &Option<Vec<NodeId>>| list.as_ref().is_some_and(Vec::is_empty);
    keywords
        .types
        .as_ref()
        .is_some_and(|types| types.known.is_empty())
        || keywords.enumeration.as_ref().is_some_and(Vec::is_empty)
        || is_empty(&keywords.any_of)
        || is_empty(&keywords.one_of)
        || keywords
            .reference
            .as_ref()
            .is_some_and(|reference| reference.target.is_none())
        || keywords
            .dynamic_reference
            .as_ref()
            .is_some_and(|reference| reference.target.is_none())
}

fn write_values(schema: &mut Schema, keywords: &Keywords) {
    if let Some(types) = &keywords.types {
        let names: Vec<String> = types
            .known
            .iter()
            .map(|known| known.name().to_owned())
            .collect();
        schema.put("type", distinct(&names));
    }
    schema.put_some("enum", keywords.enumeration.clone());
    schema.put_some("const", keywords.constant.clone());
    schema.put_some(
        "format",
        keywords
            .format
            .clone()
            .filter(|_| !OwnAssertions::has_format(keywords)),
    );
    if keywords.unique_items {
        schema.put("uniqueItems", true);
    }
}

fn write_bounds(schema: &mut Schema, keywords: &Keywords) {
    schema.put_some("minimum", keywords.minimum.clone().map(Value::Number));
    schema.put_some("maximum", keywords.maximum.clone().map(Value::Number));
    schema.put_some(
        "exclusiveMinimum",
        keywords.exclusive_minimum.clone().map(Value::Number),
    );
    schema.put_some(
        "exclusiveMaximum",
        keywords.exclusive_maximum.clone().map(Value::Number),
    );
    schema.at_least("minLength", keywords.min_length.as_ref());
    schema.at_most("maxLength", keywords.max_length.as_ref(), "string");
    schema.at_least("minItems", keywords.min_items.as_ref());
    schema.at_most("maxItems", keywords.max_items.as_ref(), "array");
    schema.at_least("minProperties", keywords.min_properties.as_ref());
    schema.at_most("maxProperties", keywords.max_properties.as_ref(), "object");
}

fn is_zero_or_less(number: Option<&Number>) -> bool {
    number
        .and_then(Number::as_f64)
        .is_some_and(|number| number <= 0.0)
}

fn whole(bound: &Number, round: fn(f64) -> f64) -> Value {
    if bound.is_u64() {
        return Value::Number(bound.clone());
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "casts saturate, as a count should"
    )]
    let whole = round(bound.as_f64().unwrap_or(0.0)) as u64;
    json!(whole)
}

fn distinct(names: &[String]) -> Vec<Value> {
    let mut seen = HashSet::new();
    names
        .iter()
        .filter(|name| seen.insert(name.as_str()))
        .map(|name| json!(name))
        .collect()
}
