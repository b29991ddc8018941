//! The arena: any JSON Schema as nodes, one per schema object, its keywords read once.
//!
//! Reading is as lenient as the reference's: a keyword whose value has the wrong shape counts as absent, `$schema`
//! is ignored, draft 7's `items` arrays, `additionalItems` and `dependencies` are understood beside 2020-12. What
//! remains is checked by nobody again: coercion, explanation and the document for the validator read these nodes.
//! Building never recurses, so that no schema is too deep for it.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Number, Value};

use super::{
    CompileError,
    applicator::is_schema,
    pattern::Pattern,
    reference::{Base, Identifiers},
};

/// Keywords that say nothing about validity.
const ANNOTATIONS: [&str; 9] = [
    "$comment",
    "$schema",
    "default",
    "deprecated",
    "description",
    "examples",
    "readOnly",
    "title",
    "writeOnly",
];

/// The place of a node in its [`Arena`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NodeId(u32);

impl NodeId {
    /// The node's place as an index.
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// All schemas that are reachable from one root, and the root itself.
#[derive(Debug)]
pub(crate) struct Arena {
    nodes: Vec<Node>,
}

/// One schema.
#[derive(Debug)]
pub(crate) enum Node {
    /// `true` or `false`.
    Boolean(bool),
    /// A schema object.
    Keywords(Arc<Keywords>),
}

/// The keywords of a schema object that mean something; lists and members in source order.
#[derive(Debug, Default)]
pub(crate) struct Keywords {
    /// `type`.
    pub(crate) types: Option<Types>,
    /// `enum`.
    pub(crate) enumeration: Option<Vec<Value>>,
    /// `const`.
    pub(crate) constant: Option<Value>,
    /// `minLength`: any number, the reference does not insist on whole ones.
    pub(crate) min_length: Option<Number>,
    /// `maxLength`.
    pub(crate) max_length: Option<Number>,
    /// `pattern`.
    pub(crate) pattern: Option<Pattern>,
    /// `format`, known or not.
    pub(crate) format: Option<String>,
    /// `minimum`.
    pub(crate) minimum: Option<Number>,
    /// `maximum`.
    pub(crate) maximum: Option<Number>,
    /// `exclusiveMinimum`.
    pub(crate) exclusive_minimum: Option<Number>,
    /// `exclusiveMaximum`.
    pub(crate) exclusive_maximum: Option<Number>,
    /// `multipleOf`.
    pub(crate) multiple_of: Option<Number>,
    /// `required`: its strings.
    pub(crate) required: Vec<String>,
    /// `properties`.
    pub(crate) properties: Option<Members>,
    /// `patternProperties`.
    pub(crate) pattern_properties: Option<Vec<(Pattern, NodeId)>>,
    /// `additionalProperties`.
    pub(crate) additional_properties: Option<NodeId>,
    /// `propertyNames`.
    pub(crate) property_names: Option<NodeId>,
    /// `minProperties`.
    pub(crate) min_properties: Option<Number>,
    /// `maxProperties`.
    pub(crate) max_properties: Option<Number>,
    /// `dependentRequired`.
    pub(crate) dependent_required: Vec<(String, Vec<String>)>,
    /// The lists of `dependencies`. The reference names what these miss in place of what `dependentRequired`
    /// says of the same key; both hold.
    pub(crate) dependencies_required: Vec<(String, Vec<String>)>,
    /// The schemas of `dependencies`, then those of `dependentSchemas`.
    pub(crate) dependent_schemas: Vec<(String, NodeId)>,
    /// `prefixItems`.
    pub(crate) prefix_items: Option<Vec<NodeId>>,
    /// `items`.
    pub(crate) items: Option<Items>,
    /// `additionalItems`, which counts only beside an `items` array.
    pub(crate) additional_items: Option<NodeId>,
    /// `minItems`.
    pub(crate) min_items: Option<Number>,
    /// `maxItems`.
    pub(crate) max_items: Option<Number>,
    /// `uniqueItems` is `true`.
    pub(crate) unique_items: bool,
    /// `contains`.
    pub(crate) contains: Option<NodeId>,
    /// `minContains`, which counts only beside `contains`.
    pub(crate) min_contains: Option<Number>,
    /// `maxContains`, which counts only beside `contains`.
    pub(crate) max_contains: Option<Number>,
    /// `allOf`.
    pub(crate) all_of: Option<Vec<NodeId>>,
    /// `anyOf`.
    pub(crate) any_of: Option<Vec<NodeId>>,
    /// `oneOf`.
    pub(crate) one_of: Option<Vec<NodeId>>,
    /// `not`.
    pub(crate) not: Option<NodeId>,
    /// `if`; without `then` and `else` it counts only for what is unevaluated.
    pub(crate) condition: Option<Condition>,
    /// `$ref`.
    pub(crate) reference: Option<Reference>,
    /// `$dynamicRef`.
    pub(crate) dynamic_reference: Option<DynamicReference>,
    /// `$dynamicAnchor`.
    pub(crate) dynamic_anchor: Option<String>,
    /// `unevaluatedProperties`.
    pub(crate) unevaluated_properties: Option<NodeId>,
    /// `unevaluatedItems`.
    pub(crate) unevaluated_items: Option<NodeId>,
    /// Which `$id` the schema lies under; only equality means something.
    pub(crate) resource: usize,
    /// Whether the schema says nothing but `type`.
    pub(crate) is_only_type: bool,
}

/// `type`: a name or a list of names.
#[derive(Debug)]
pub(crate) struct Types {
    /// The names as written, also those that are no types; a value that is no string is its JSON text.
    pub(crate) names: Vec<String>,
    /// The names that are types, in order.
    pub(crate) known: Vec<Type>,
    /// Whether it is a name on its own, not in a list.
    pub(crate) is_single: bool,
}

/// A type that a JSON value can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    Null,
    Boolean,
    Integer,
    Number,
    String,
    Array,
    Object,
}

/// `properties`: members in source order, found by name.
#[derive(Debug, Default)]
pub(crate) struct Members {
    entries: Vec<(String, NodeId)>,
    /// Only for many members; few are found faster by looking at each.
    by_name: HashMap<String, NodeId>,
}

/// `items`.
#[derive(Debug)]
pub(crate) enum Items {
    /// One schema for every item, or for those after `prefixItems`.
    All(NodeId),
    /// Draft 7: a schema for each of the first items.
    Each(Vec<NodeId>),
}

/// `if`, and what follows from it.
#[derive(Debug)]
pub(crate) struct Condition {
    /// `if`.
    pub(crate) test: NodeId,
    /// `then`.
    pub(crate) consequence: Option<NodeId>,
    /// `else`.
    pub(crate) alternative: Option<NodeId>,
}

/// `$ref`.
#[derive(Debug)]
pub(crate) struct Reference {
    /// The reference as written.
    pub(crate) text: String,
    /// What it leads to; `None` if it names nothing.
    pub(crate) target: Option<NodeId>,
}

/// `$dynamicRef`.
#[derive(Debug)]
pub(crate) struct DynamicReference {
    /// The reference as written.
    pub(crate) text: String,
    /// What it leads to before the dynamic scope is looked at; `None` if it names nothing.
    pub(crate) target: Option<NodeId>,
    /// The `$dynamicAnchor` to look for in the dynamic scope, if one led to the target.
    pub(crate) anchor: Option<String>,
}

impl Arena {
    /// Reads a schema and everything it refers to.
    pub(crate) fn read(schema: &Value) -> Result<Self, CompileError> {
        let mut reader = Reader {
            identifiers: Identifiers::of(schema),
            known: HashMap::new(),
            pending: Vec::new(),
            count: 0,
        };
        let base = reader.identifiers.root_base(schema);
        reader.node(schema, base)?;
        let mut nodes: Vec<Option<Node>> = Vec::new();
        while let Some((id, schema, base)) = reader.pending.pop() {
            let node = reader.read(schema, base)?;
            nodes.resize_with(nodes.len().max(id.index() + 1), || None);
            nodes[id.index()] = Some(node);
        }
        let nodes = nodes
            .into_iter()
            .map(|node| node.expect("every node that got an id was read"));
        Ok(Self {
            nodes: nodes.collect(),
        })
    }

    /// The node of the whole schema.
    #[expect(clippy::unused_self, reason = "only an arena has a root")]
    pub(crate) fn root(&self) -> NodeId {
        NodeId(0)
    }

    /// The node with that id.
    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// The keywords of a node, unless it is a boolean.
    pub(crate) fn keywords(&self, id: NodeId) -> Option<&Keywords> {
        match self.node(id) {
            Node::Boolean(_) => None,
            Node::Keywords(keywords) => Some(keywords),
        }
    }

    /// The id of the node at an index.
    pub(crate) fn id_at(&self, index: usize) -> Option<NodeId> {
        (index < self.nodes.len()).then(|| node_id(index))
    }

    /// All ids, the root's first.
    pub(crate) fn ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len()).map(node_id)
    }

    /// How many nodes there are; at least one.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }
}

impl Members {
    const FEW: usize = 8;

    fn new(entries: Vec<(String, NodeId)>) -> Self {
        let by_name = if entries.len() > Self::FEW {
            entries.iter().cloned().collect()
        } else {
            HashMap::new()
        };
        Self { entries, by_name }
    }

    /// The members in source order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, NodeId)> {
        self.entries.iter().map(|(name, id)| (name.as_str(), *id))
    }

    /// The schema of the member with that name.
    pub(crate) fn get(&self, name: &str) -> Option<NodeId> {
        if self.entries.len() > Self::FEW {
            return self.by_name.get(name).copied();
        }
        self.entries
            .iter()
            .find(|(member, _)| member == name)
            .map(|(_, id)| *id)
    }
}

impl Keywords {
    /// The schema of the array item at `index`, as validation sees it: of an `items` array and `additionalItems`
    /// if there is such an array, else of `prefixItems` and `items`.
    pub(crate) fn item(&self, index: usize) -> Option<NodeId> {
        match &self.items {
            Some(Items::Each(each)) => each.get(index).copied().or(self.additional_items),
            Some(Items::All(rest)) => Some(self.prefix_item(index).unwrap_or(*rest)),
            None => self.prefix_item(index),
        }
    }

    /// The schema of the array item at `index`, as coercion sees it: it never looks at `additionalItems`.
    pub(crate) fn covering_item(&self, index: usize) -> Option<NodeId> {
        match &self.items {
            Some(Items::Each(each)) => each.get(index).copied(),
            _ => self.item(index),
        }
    }

    /// The schemas of the member with that key: of `properties`, of every pattern that matches, else of
    /// `additionalProperties`.
    pub(crate) fn covering(&self, key: &str) -> impl Iterator<Item = NodeId> {
        let declared = self
            .properties
            .as_ref()
            .and_then(|members| members.get(key));
        let patterns = self.pattern_properties.iter().flatten();
        let mut matching = patterns
            .filter(move |(pattern, _)| pattern.matches(key))
            .map(|(_, id)| *id)
            .peekable();
        let additional = self
            .additional_properties
            .filter(|_| declared.is_none() && matching.peek().is_none());
        declared.into_iter().chain(matching).chain(additional)
    }

    /// Whether `required` names a key.
    pub(crate) fn requires(&self, key: &str) -> bool {
        self.required.iter().any(|name| name == key)
    }

    fn prefix_item(&self, index: usize) -> Option<NodeId> {
        self.prefix_items.as_ref()?.get(index).copied()
    }

    /// Every schema that judges a part of the value, or the name of one.
    pub(crate) fn in_parts(&self) -> impl Iterator<Item = NodeId> {
        let members = self
            .properties
            .iter()
            .flat_map(|members| members.iter().map(|(_, id)| id));
        let patterns = self.pattern_properties.iter().flatten().map(|(_, id)| *id);
        let (rest, each) = match &self.items {
            None => (None, None),
            Some(Items::All(rest)) => (Some(*rest), None),
            Some(Items::Each(each)) => (self.additional_items, Some(each)),
        };
        members
            .chain(patterns)
            .chain(self.additional_properties)
            .chain(self.property_names)
            .chain(self.unevaluated_properties)
            .chain(
                each.or(self.prefix_items.as_ref())
                    .into_iter()
                    .flatten()
                    .copied(),
            )
            .chain(rest)
            .chain(self.contains)
            .chain(self.unevaluated_items)
    }

    /// Every schema that judges the same value as this one does.
    pub(crate) fn in_place(&self) -> impl Iterator<Item = NodeId> {
        let lists = [&self.all_of, &self.any_of, &self.one_of];
        let condition = self.condition.as_ref();
        lists
            .into_iter()
            .flatten()
            .flatten()
            .copied()
            .chain(self.not)
            .chain(condition.map(|condition| condition.test))
            .chain(condition.and_then(|condition| condition.consequence))
            .chain(condition.and_then(|condition| condition.alternative))
            .chain(self.dependent_schemas.iter().map(|(_, id)| *id))
            .chain(
                self.reference
                    .as_ref()
                    .and_then(|reference| reference.target),
            )
            .chain(
                self.dynamic_reference
                    .as_ref()
                    .and_then(|reference| reference.target),
            )
    }
}

impl Types {
    fn read(value: &Value) -> Self {
        let written = match value {
            Value::Array(names) => names.as_slice(),
            single => std::slice::from_ref(single),
        };
        let name = |value: &Value| {
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned)
        };
        Self {
            names: written.iter().map(name).collect(),
            known: written
                .iter()
                .filter_map(|name| Type::named(name.as_str()?))
                .collect(),
            is_single: !value.is_array(),
        }
    }

    /// The type of a `type` that is a name on its own and a type.
    pub(crate) fn single(&self) -> Option<Type> {
        self.known.first().copied().filter(|_| self.is_single)
    }
}

impl Type {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "null" => Self::Null,
            "boolean" => Self::Boolean,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "string" => Self::String,
            "array" => Self::Array,
            "object" => Self::Object,
            _ => return None,
        })
    }

    /// The type's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "boolean",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::String => "string",
            Self::Array => "array",
            Self::Object => "object",
        }
    }

    /// Whether a value has the type; `1.0` is an integer.
    pub(crate) fn admits(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Integer, Value::Number(number)) => is_integral(number),
            (Self::Null, Value::Null)
            | (Self::Boolean, Value::Bool(_))
            | (Self::Number, Value::Number(_))
            | (Self::String, Value::String(_))
            | (Self::Array, Value::Array(_))
            | (Self::Object, Value::Object(_)) => true,
            _ => false,
        }
    }
}

/// Whether a number has no fraction, however it is written.
pub(crate) fn is_integral(number: &Number) -> bool {
    !number.is_f64() || number.as_f64().is_some_and(|number| number.fract() == 0.0)
}

fn node_id(index: usize) -> NodeId {
    NodeId(u32::try_from(index).expect("a schema has fewer than four milliards of nodes"))
}

/// Gives every schema its node, each once, however many references lead to it.
struct Reader<'a> {
    identifiers: Identifiers<'a>,
    known: HashMap<*const Value, NodeId>,
    pending: Vec<(NodeId, &'a Value, Base)>,
    count: usize,
}

impl<'a> Reader<'a> {
    /// The id of a schema, which is read later if it is new.
    fn node(&mut self, schema: &'a Value, outer: Base) -> Result<NodeId, CompileError> {
        if !schema.is_object() && !schema.is_boolean() {
            return Err(CompileError::not_a_schema(schema));
        }
        if let Some(id) = self.known.get(&std::ptr::from_ref(schema)) {
            return Ok(*id);
        }
        let id = node_id(self.count);
        self.count += 1;
        self.known.insert(schema, id);
        self.pending
            .push((id, schema, self.identifiers.base_of(schema, outer)));
        Ok(id)
    }

    fn read(&mut self, schema: &'a Value, base: Base) -> Result<Node, CompileError> {
        match schema {
            Value::Bool(accepts) => Ok(Node::Boolean(*accepts)),
            Value::Object(written) => Ok(Node::Keywords(match only_type(written, base) {
                Some(known) => plain_type(known),
                None => Arc::new(self.keywords(written, base)?),
            })),
            other => Err(CompileError::not_a_schema(other)),
        }
    }

    fn keywords(
        &mut self,
        written: &'a Map<String, Value>,
        base: Base,
    ) -> Result<Keywords, CompileError> {
        let mut keywords = Keywords {
            resource: base.0,
            ..Keywords::default()
        };
        for (keyword, value) in written {
            if !read_assertion(&mut keywords, keyword, value) {
                self.read_applicator(&mut keywords, keyword, value, base)?;
            }
        }
        self.read_context(&mut keywords, written, base)?;
        keywords.is_only_type = keywords.types.is_some() && says_at_most_type(written);
        Ok(keywords)
    }

    /// Reads a keyword that holds schemas and means something on its own.
    fn read_applicator(
        &mut self,
        keywords: &mut Keywords,
        keyword: &str,
        value: &'a Value,
        base: Base,
    ) -> Result<(), CompileError> {
        match (keyword, value) {
            ("properties", Value::Object(members)) => {
                keywords.properties = Some(Members::new(self.members(members, base)?));
            }
            ("patternProperties", Value::Object(members)) => {
                let members = self.members(members, base)?;
                let compiled = members
                    .into_iter()
                    .map(|(source, id)| (Pattern::new(source), id));
                keywords.pattern_properties = Some(compiled.collect());
            }
            ("additionalProperties", _) => {
                keywords.additional_properties = Some(self.node(value, base)?);
            }
            ("propertyNames", _) => keywords.property_names = Some(self.node(value, base)?),
            ("prefixItems", Value::Array(items)) => {
                keywords.prefix_items = Some(self.list(items, base)?);
            }
            ("items", Value::Array(items)) => {
                keywords.items = Some(Items::Each(self.list(items, base)?));
            }
            ("items", _) => keywords.items = Some(Items::All(self.node(value, base)?)),
            ("contains", _) => keywords.contains = Some(self.node(value, base)?),
            ("allOf", Value::Array(members)) => keywords.all_of = Some(self.list(members, base)?),
            ("anyOf", Value::Array(branches)) => keywords.any_of = Some(self.list(branches, base)?),
            ("oneOf", Value::Array(branches)) => keywords.one_of = Some(self.list(branches, base)?),
            ("not", _) => keywords.not = Some(self.node(value, base)?),
            ("unevaluatedProperties", _) => {
                keywords.unevaluated_properties = Some(self.node(value, base)?);
            }
            ("unevaluatedItems", _) => keywords.unevaluated_items = Some(self.node(value, base)?),
            ("$ref", Value::String(text)) => {
                let target = self.identifiers.find(base, text);
                let target = target
                    .map(|target| self.node(target.schema, target.base))
                    .transpose()?;
                keywords.reference = Some(Reference {
                    text: text.clone(),
                    target,
                });
            }
            ("$dynamicRef", Value::String(text)) => {
                keywords.dynamic_reference = Some(self.dynamic_reference(text, base)?);
            }
            _ => {}
        }
        Ok(())
    }

    /// Reads the keywords whose meaning hangs on a neighbour.
    fn read_context(
        &mut self,
        keywords: &mut Keywords,
        written: &'a Map<String, Value>,
        base: Base,
    ) -> Result<(), CompileError> {
        if let (Some(Items::Each(_)), Some(rest)) =
            (&keywords.items, written.get("additionalItems"))
        {
            keywords.additional_items = Some(self.node(rest, base)?);
        }
        let (consequence, alternative) = (written.get("then"), written.get("else"));
        let is_alone = consequence.is_none() && alternative.is_none();
        if let Some(test) = written
            .get("if")
            .filter(|test| !is_alone || is_schema(test))
        {
            keywords.condition = Some(Condition {
                test: self.node(test, base)?,
                consequence: consequence
                    .map(|schema| self.node(schema, base))
                    .transpose()?,
                alternative: alternative
                    .map(|schema| self.node(schema, base))
                    .transpose()?,
            });
        }
        for (key, value) in written
            .get("dependencies")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            match value {
                Value::Array(names) => keywords
                    .dependencies_required
                    .push((key.clone(), strings(names))),
                schema => keywords
                    .dependent_schemas
                    .push((key.clone(), self.node(schema, base)?)),
            }
        }
        if let Some(members) = written.get("dependentSchemas").and_then(Value::as_object) {
            keywords
                .dependent_schemas
                .extend(self.members(members, base)?);
        }
        Ok(())
    }

    fn dynamic_reference(
        &mut self,
        text: &'a str,
        base: Base,
    ) -> Result<DynamicReference, CompileError> {
        let found = self.identifiers.find(base, text);
        let anchor = found
            .filter(|target| target.is_dynamic)
            .and_then(|_| text.rsplit_once('#'));
        if let Some((_, name)) = anchor {
            // Whatever bears the name may be meant, also what nothing else leads to.
            for target in self.identifiers.dynamic_anchors(name) {
                self.node(target.schema, target.base)?;
            }
        }
        let target = found
            .map(|target| self.node(target.schema, target.base))
            .transpose()?;
        let anchor = anchor.map(|(_, name)| name.to_owned());
        Ok(DynamicReference {
            text: text.to_owned(),
            target,
            anchor,
        })
    }

    fn list(&mut self, schemas: &'a [Value], base: Base) -> Result<Vec<NodeId>, CompileError> {
        schemas
            .iter()
            .map(|schema| self.node(schema, base))
            .collect()
    }

    fn members(
        &mut self,
        members: &'a Map<String, Value>,
        base: Base,
    ) -> Result<Vec<(String, NodeId)>, CompileError> {
        members
            .iter()
            .map(|(name, schema)| Ok((name.clone(), self.node(schema, base)?)))
            .collect()
    }
}

fn says_at_most_type(written: &Map<String, Value>) -> bool {
    let mut keywords = written.keys();
    keywords.all(|keyword| keyword == "type" || ANNOTATIONS.contains(&keyword.as_str()))
}

/// The type of a schema that says nothing but one, as most of all schemas do.
fn only_type(written: &Map<String, Value>, base: Base) -> Option<Type> {
    let known = Type::named(written.get("type")?.as_str()?)?;
    (base == Base::ROOT && says_at_most_type(written)).then_some(known)
}

/// The one schema of that type alone, which all share: keywords take much room.
fn plain_type(known: Type) -> Arc<Keywords> {
    static SHARED: [OnceLock<Arc<Keywords>>; 7] = [const { OnceLock::new() }; 7];
    let keywords = SHARED[known as usize].get_or_init(|| {
        Arc::new(Keywords {
            types: Some(Types {
                names: vec![known.name().to_owned()],
                known: vec![known],
                is_single: true,
            }),
            is_only_type: true,
            resource: Base::ROOT.0,
            ..Keywords::default()
        })
    });
    Arc::clone(keywords)
}

/// Reads a keyword that holds no schema; `false` if it is none of these.
fn read_assertion(keywords: &mut Keywords, keyword: &str, value: &Value) -> bool {
    let number = || match value {
        Value::Number(number) => Some(number.clone()),
        _ => None,
    };
    let text = || value.as_str().map(str::to_owned);
    match keyword {
        "type" => keywords.types = Some(Types::read(value)),
        "enum" => keywords.enumeration = value.as_array().cloned(),
        "const" => keywords.constant = Some(value.clone()),
        "minLength" => keywords.min_length = number(),
        "maxLength" => keywords.max_length = number(),
        "pattern" => keywords.pattern = text().map(Pattern::new),
        "format" => keywords.format = text(),
        "minimum" => keywords.minimum = number(),
        "maximum" => keywords.maximum = number(),
        "exclusiveMinimum" => keywords.exclusive_minimum = number(),
        "exclusiveMaximum" => keywords.exclusive_maximum = number(),
        "multipleOf" => keywords.multiple_of = number(),
        "required" => {
            keywords.required = value
                .as_array()
                .map(|names| strings(names))
                .unwrap_or_default();
        }
        "minProperties" => keywords.min_properties = number(),
        "maxProperties" => keywords.max_properties = number(),
        "dependentRequired" => keywords.dependent_required = lists_by_key(value),
        "minItems" => keywords.min_items = number(),
        "maxItems" => keywords.max_items = number(),
        "uniqueItems" => keywords.unique_items = value == &Value::Bool(true),
        "minContains" => keywords.min_contains = number(),
        "maxContains" => keywords.max_contains = number(),
        "$dynamicAnchor" => keywords.dynamic_anchor = text(),
        _ => return false,
    }
    true
}

fn lists_by_key(value: &Value) -> Vec<(String, Vec<String>)> {
    let members = value.as_object().into_iter().flatten();
    members
        .filter_map(|(key, names)| Some((key.clone(), strings(names.as_array()?))))
        .collect()
}

fn strings(values: &[Value]) -> Vec<String> {
    values
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(schema: &Value) -> Arena {
        Arena::read(schema).expect("the schema is readable")
    }

    fn property(arena: &Arena, at: NodeId, name: &str) -> NodeId {
        let keywords = arena.keywords(at).expect("a schema object");
        keywords
            .properties
            .as_ref()
            .and_then(|members| members.get(name))
            .expect(name)
    }

    /// The target of the `$ref` of the property `a`.
    fn target(schema: &Value) -> Option<NodeId> {
        let arena = read(schema);
        let keywords = arena
            .keywords(property(&arena, arena.root(), "a"))
            .expect("a schema object");
        keywords.reference.as_ref().expect("a reference").target
    }

    #[track_caller]
    fn case(reference: &str, rest: &Value, leads_somewhere: bool) {
        let mut schema = json!({"properties": {"a": {"$ref": reference}}});
        schema
            .as_object_mut()
            .unwrap()
            .extend(rest.as_object().unwrap().clone());
        assert_eq!(target(&schema).is_some(), leads_somewhere, "{schema}");
    }

    #[test]
    fn references_find_pointers_anchors_and_ids() {
        case("#", &json!({}), true);
        case("#/$defs/n", &json!({"$defs": {"n": true}}), true);
        case("#/$defs/x~1y", &json!({"$defs": {"x/y": {}}}), true);
        case("#/$defs/a%20b", &json!({"$defs": {"a b": {}}}), true);
        case("#/anyOf/1", &json!({"anyOf": [{}, {}]}), true);
        case("#/anyOf/01", &json!({"anyOf": [{}, {}]}), false);
        case("#n", &json!({"$defs": {"n": {"$anchor": "n"}}}), true);
        case(
            "#n",
            &json!({"$defs": {"n": {"$dynamicAnchor": "n"}}}),
            true,
        );
        case("#n", &json!({"$defs": {"n": {"$id": "#n"}}}), true);
        case("n.json", &json!({"$defs": {"n": {"$id": "n.json"}}}), true);
        case(
            "n.json",
            &json!({"$id": "https://e.com/t/", "$defs": {"n": {"$id": "n.json"}}}),
            true,
        );
        case(
            "https://e.com/t.json#/$defs/n",
            &json!({"$id": "https://e.com/t.json#", "$defs": {"n": {}}}),
            true,
        );
    }

    #[test]
    fn references_to_nothing_are_left_open() {
        case("#/$defs/n", &json!({}), false);
        case(
            "#n",
            &json!({"$defs": {"n": {"$id": "n.json", "$anchor": "n"}}}),
            false,
        );
        case("n.json", &json!({"const": {"$id": "n.json"}}), false);
        case("n.json", &json!({"x-unknown": {"$id": "n.json"}}), false);
        case(
            "https://json-schema.org/draft/2020-12/schema",
            &json!({}),
            false,
        );
    }

    #[test]
    fn a_pointer_into_another_id_takes_its_base_along() {
        let inner = json!({"$id": "https://e.com/o", "$defs": {"i": {"$ref": "#/$defs/k"}, "k": {"type": "integer"}}});
        let arena = read(
            &json!({"properties": {"a": {"$ref": "#/$defs/o/$defs/i"}}, "$defs": {"o": inner}}),
        );
        let follow = |id| {
            arena
                .keywords(id)
                .unwrap()
                .reference
                .as_ref()
                .unwrap()
                .target
                .unwrap()
        };
        let last = follow(follow(property(&arena, arena.root(), "a")));
        assert_eq!(
            arena.keywords(last).unwrap().types.as_ref().unwrap().names,
            ["integer"]
        );
    }

    #[test]
    fn one_schema_is_one_node() {
        let schema =
            json!({"properties": {"a": {"$ref": "#/properties/b"}, "b": {"items": {"$ref": "#"}}}});
        assert_eq!(read(&schema).len(), 4);
    }

    #[test]
    fn keywords_of_a_wrong_shape_are_absent() {
        let arena = read(&json!({
            "properties": [], "required": "a", "enum": "a", "minLength": "3", "pattern": 5, "anyOf": {},
            "$ref": 5, "exclusiveMinimum": true, "if": 5, "$defs": {"unused": 5},
        }));
        let keywords = arena.keywords(arena.root()).unwrap();
        assert!(
            keywords.properties.is_none()
                && keywords.enumeration.is_none()
                && keywords.pattern.is_none()
        );
        assert!(
            keywords.any_of.is_none()
                && keywords.reference.is_none()
                && keywords.condition.is_none()
        );
        assert!(keywords.min_length.is_none() && keywords.exclusive_minimum.is_none());
        assert!(keywords.required.is_empty());
    }

    #[test]
    fn what_is_no_schema_is_named() {
        for (schema, text) in [
            (json!({"properties": {"a": 5}}), "5"),
            (json!({"items": "string"}), "\"string\""),
            (json!({"if": true, "then": null}), "null"),
            (json!({"$ref": "#/$defs/a", "$defs": {"a": []}}), "[]"),
            (json!([]), "[]"),
        ] {
            let error = Arena::read(&schema).expect_err("no schema").to_string();
            assert_eq!(
                error,
                format!("A schema must be an object or a boolean, got {text}")
            );
        }
    }

    #[test]
    fn a_deep_schema_is_read_without_recursion() {
        let mut schema = json!(true);
        for _ in 0..1000 {
            schema = json!({"not": schema});
        }
        assert_eq!(read(&schema).len(), 1001);
    }
}
