//! The arena: any JSON Schema as nodes, one per schema object, its keywords read once.
//!
//! Reading is as lenient as the reference's: a keyword whose value has the wrong shape counts as absent, `$schema`
//! is ignored, draft 7's `items` arrays, `additionalItems` and `dependencies` are understood beside 2020-12. What
//! remains is checked by nobody again: coercion, explanation and the document for the validator read these nodes.
//! Building never recurses, so that no schema is too deep for it.

mod read;

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Number, Value};

use super::pattern::Pattern;

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

#[cfg(test)]
mod tests;
