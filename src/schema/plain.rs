//! The judge of plain schemas: those that say nothing but what can be read off a value in one pass.
//!
//! Nearly all tools have such schemas. Judged here they need no documents and no validator of the `jsonschema` crate,
//! whose building costs more than judging thousands of values. A schema is plain only if every keyword in it is one of
//! those below with an argument of its usual shape; references, evaluation of what others left and the like never are.
//! On plain schemas both judges say the same of every value: the tests hold this one against the crate.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::{Map, Number, Value};

use super::node::{Arena, Items, Keywords, Node, NodeId, Type, Types};
use super::number::{compare, is_equal};
use super::own::OwnAssertions;

/// Schemas nested deeper than this are the crate's business.
const MOST_NESTED: usize = 16;

/// So many members are found faster by looking at each.
const FEW: usize = 8;

/// Integers up to here are the same whether they are read as doubles or not.
const MOST_EXACT: u64 = 1 << 53;

/// What a plain schema demands of a value.
#[derive(Debug)]
pub(super) enum Plain {
    /// Nothing, or everything.
    Boolean(bool),
    /// A type and no more.
    Type(TypeSet),
    /// More.
    Rules(Box<Rules>),
}

/// A set of types as bits; `integer` is a part of `number`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TypeSet(u8);

#[derive(Debug)]
pub(super) struct Rules {
    types: TypeSet,
    enumeration: Option<Vec<Value>>,
    constant: Option<Value>,
    number: NumberRules,
    text: Span,
    object: Option<ObjectRules>,
    array: Option<ArrayRules>,
    own: Option<OwnAssertions>,
    all_of: Vec<Plain>,
    any_of: Option<Vec<Plain>>,
    one_of: Option<Vec<Plain>>,
    not: Option<Plain>,
}

#[derive(Debug)]
struct NumberRules {
    minimum: Option<Number>,
    maximum: Option<Number>,
    exclusive_minimum: Option<Number>,
    exclusive_maximum: Option<Number>,
}

/// How many there may be of something.
#[derive(Debug, Clone, Copy)]
struct Span {
    least: Option<u64>,
    most: Option<u64>,
}

#[derive(Debug)]
struct ObjectRules {
    members: Vec<Member>,
    /// Only for many members.
    by_name: HashMap<String, usize>,
    /// How many of the members must be there.
    required: usize,
    /// What must be there beside the members.
    required_others: Vec<String>,
    others: Plain,
    count: Span,
}

#[derive(Debug)]
struct Member {
    name: String,
    is_required: bool,
    value: Plain,
}

#[derive(Debug)]
struct ArrayRules {
    items: Plain,
    count: Span,
}

impl Plain {
    /// Reads a node; `None` if it is not plain.
    pub(super) fn read(arena: &Arc<Arena>, id: NodeId) -> Option<Self> {
        read(arena, id, MOST_NESTED)
    }

    /// Whether a value is valid.
    pub(super) fn accepts(&self, value: &Value) -> bool {
        match self {
            Self::Boolean(accepts) => *accepts,
            Self::Type(types) => types.admits(value),
            Self::Rules(rules) => rules.accept(value),
        }
    }
}

fn read(arena: &Arc<Arena>, id: NodeId, room: usize) -> Option<Plain> {
    let keywords = match arena.node(id) {
        Node::Boolean(accepts) => return Some(Plain::Boolean(*accepts)),
        Node::Keywords(keywords) => keywords,
    };
    let types = keywords.types.as_ref().map_or(TypeSet::ALL, TypeSet::of);
    if keywords.is_only_type {
        return Some(Plain::Type(types));
    }
    let room = room.checked_sub(1)?;
    if has_other_rules(keywords) {
        return None;
    }
    let list = |ids: &Option<Vec<NodeId>>| match ids {
        None => Some(None),
        Some(ids) => {
            let rules: Option<Vec<Plain>> = ids.iter().map(|id| read(arena, *id, room)).collect();
            rules.map(Some)
        }
    };
    Some(Plain::Rules(Box::new(Rules {
        types,
        enumeration: comparable(keywords.enumeration.as_deref())?,
        constant: comparable(keywords.constant.as_ref().map(std::slice::from_ref))?
            .and_then(|mut constant| constant.pop()),
        number: NumberRules {
            minimum: keywords.minimum.clone(),
            maximum: keywords.maximum.clone(),
            exclusive_minimum: keywords.exclusive_minimum.clone(),
            exclusive_maximum: keywords.exclusive_maximum.clone(),
        },
        text: Span::read(keywords.min_length.as_ref(), keywords.max_length.as_ref())?,
        object: ObjectRules::read(arena, keywords, room)?,
        array: ArrayRules::read(arena, keywords, room)?,
        own: OwnAssertions::has_any(keywords).then(|| OwnAssertions::of(arena, id)),
        all_of: list(&keywords.all_of)?.unwrap_or_default(),
        any_of: list(&keywords.any_of)?,
        one_of: list(&keywords.one_of)?,
        not: match keywords.not {
            None => None,
            Some(not) => Some(read(arena, not, room)?),
        },
    })))
}

/// Whether there is a keyword that is not judged here.
fn has_other_rules(keywords: &Keywords) -> bool {
    keywords.pattern_properties.is_some()
        || keywords.property_names.is_some()
        || !keywords.dependent_required.is_empty()
        || !keywords.dependencies_required.is_empty()
        || !keywords.dependent_schemas.is_empty()
        || keywords.prefix_items.is_some()
        || matches!(keywords.items, Some(Items::Each(_)))
        || keywords.additional_items.is_some()
        || keywords.unique_items
        || keywords.contains.is_some()
        || keywords.condition.is_some()
        || keywords.reference.is_some()
        || keywords.dynamic_reference.is_some()
        || keywords.unevaluated_properties.is_some()
        || keywords.unevaluated_items.is_some()
        || (keywords.format.is_some() && !OwnAssertions::has_format(keywords))
}

/// The values of `enum` or `const`, if each is equal to another only where that is plain to see.
#[expect(
    clippy::option_option,
    reason = "not plain, or no such keyword, or its values"
)]
fn comparable(values: Option<&[Value]>) -> Option<Option<Vec<Value>>> {
    let Some(values) = values else {
        return Some(None);
    };
    let is_plain = |value: &Value| match value {
        Value::Null | Value::Bool(_) | Value::String(_) => true,
        Value::Number(number) => number
            .as_i64()
            .is_some_and(|number| number.unsigned_abs() <= MOST_EXACT),
        Value::Array(_) | Value::Object(_) => false,
    };
    values.iter().all(is_plain).then(|| Some(values.to_vec()))
}

fn is_same(listed: &Value, value: &Value) -> bool {
    match (listed, value) {
        (Value::Number(listed), Value::Number(number)) => is_equal(listed, number),
        _ => listed == value,
    }
}

impl TypeSet {
    const ALL: Self = Self(u8::MAX);

    fn of(types: &Types) -> Self {
        let bits = types.known.iter().map(|known| match known {
            Type::Null => 1,
            Type::Boolean => 2,
            Type::Integer => 4,
            Type::Number => 4 | 8,
            Type::String => 16,
            Type::Array => 32,
            Type::Object => 64,
        });
        Self(bits.fold(0, |all, bit| all | bit))
    }

    fn admits(self, value: &Value) -> bool {
        let bit = match value {
            Value::Null => 1,
            Value::Bool(_) => 2,
            Value::Number(_) if self.0 & 8 != 0 => 8,
            Value::Number(number) if super::node::is_integral(number) => 4,
            Value::Number(_) => 0,
            Value::String(_) => 16,
            Value::Array(_) => 32,
            Value::Object(_) => 64,
        };
        self.0 & bit != 0
    }
}

impl Rules {
    fn accept(&self, value: &Value) -> bool {
        self.types.admits(value)
            && self.are_about(value)
            && self
                .enumeration
                .as_ref()
                .is_none_or(|listed| listed.iter().any(|one| is_same(one, value)))
            && self
                .constant
                .as_ref()
                .is_none_or(|constant| is_same(constant, value))
            && self.own.as_ref().is_none_or(|own| own.hold(value))
            && self.all_of.iter().all(|member| member.accepts(value))
            && self
                .any_of
                .as_ref()
                .is_none_or(|branches| branches.iter().any(|branch| branch.accepts(value)))
            && self
                .one_of
                .as_ref()
                .is_none_or(|branches| has_one_that_accepts(branches, value))
            && self.not.as_ref().is_none_or(|not| !not.accepts(value))
    }

    /// What concerns one type of values only.
    fn are_about(&self, value: &Value) -> bool {
        match value {
            Value::Null | Value::Bool(_) => true,
            Value::Number(number) => self.number.accept(number),
            Value::String(text) => self.text.is_free() || self.text.holds(text.chars().count()),
            Value::Array(items) => self.array.as_ref().is_none_or(|array| array.accept(items)),
            Value::Object(members) => self
                .object
                .as_ref()
                .is_none_or(|object| object.accept(members)),
        }
    }
}

fn has_one_that_accepts(branches: &[Plain], value: &Value) -> bool {
    let mut accepting = branches.iter().filter(|branch| branch.accepts(value));
    accepting.next().is_some() && accepting.next().is_none()
}

impl NumberRules {
    fn accept(&self, number: &Number) -> bool {
        let holds = |bound: &Option<Number>, is_fine: fn(std::cmp::Ordering) -> bool| {
            bound
                .as_ref()
                .is_none_or(|bound| is_fine(compare(number, bound)))
        };
        holds(&self.minimum, std::cmp::Ordering::is_ge)
            && holds(&self.maximum, std::cmp::Ordering::is_le)
            && holds(&self.exclusive_minimum, std::cmp::Ordering::is_gt)
            && holds(&self.exclusive_maximum, std::cmp::Ordering::is_lt)
    }
}

impl Span {
    /// Reads two bounds; `None` if one is no whole number.
    fn read(least: Option<&Number>, most: Option<&Number>) -> Option<Self> {
        let whole = |bound: Option<&Number>| match bound {
            None => Some(None),
            Some(bound) => bound.as_u64().map(Some),
        };
        Some(Self {
            least: whole(least)?,
            most: whole(most)?,
        })
    }

    fn is_free(self) -> bool {
        self.least.is_none() && self.most.is_none()
    }

    fn holds(self, count: usize) -> bool {
        let count = count as u64;
        self.least.is_none_or(|least| count >= least) && self.most.is_none_or(|most| count <= most)
    }
}

impl ObjectRules {
    #[expect(
        clippy::option_option,
        reason = "not plain, or nothing about objects, or rules"
    )]
    fn read(arena: &Arc<Arena>, keywords: &Keywords, room: usize) -> Option<Option<Self>> {
        let count = Span::read(
            keywords.min_properties.as_ref(),
            keywords.max_properties.as_ref(),
        )?;
        let says_nothing = keywords.properties.is_none()
            && keywords.additional_properties.is_none()
            && keywords.required.is_empty()
            && count.is_free();
        if says_nothing {
            return Some(None);
        }
        let mut members = Vec::new();
        for (name, id) in keywords
            .properties
            .iter()
            .flat_map(super::node::Members::iter)
        {
            members.push(Member {
                name: name.to_owned(),
                is_required: keywords.requires(name),
                value: read(arena, id, room)?,
            });
        }
        let names = members.iter().map(|member| member.name.clone());
        let by_name: HashMap<String, usize> = names.zip(0..).collect();
        let others: HashSet<&String> = keywords
            .required
            .iter()
            .filter(|name| !by_name.contains_key(*name))
            .collect();
        Some(Some(Self {
            required: members.iter().filter(|member| member.is_required).count(),
            required_others: others.into_iter().cloned().collect(),
            by_name: if members.len() > FEW {
                by_name
            } else {
                HashMap::new()
            },
            members,
            others: match keywords.additional_properties {
                None => Plain::Boolean(true),
                Some(id) => read(arena, id, room)?,
            },
            count,
        }))
    }

    fn accept(&self, object: &Map<String, Value>) -> bool {
        let mut required = 0;
        // Models mostly write members in the order of the schema.
        let mut next = 0;
        for (key, value) in object {
            match self.find(key, next) {
                Some(index) => {
                    let member = &self.members[index];
                    if !member.value.accepts(value) {
                        return false;
                    }
                    required += usize::from(member.is_required);
                    next = index + 1;
                }
                None if !self.others.accepts(value) => return false,
                None => {}
            }
        }
        required == self.required
            && self
                .required_others
                .iter()
                .all(|name| object.contains_key(name))
            && self.count.holds(object.len())
    }

    fn find(&self, key: &str, next: usize) -> Option<usize> {
        if self
            .members
            .get(next)
            .is_some_and(|member| member.name == key)
        {
            return Some(next);
        }
        if self.members.len() > FEW {
            return self.by_name.get(key).copied();
        }
        self.members.iter().position(|member| member.name == key)
    }
}

impl ArrayRules {
    #[expect(
        clippy::option_option,
        reason = "not plain, or nothing about arrays, or rules"
    )]
    fn read(arena: &Arc<Arena>, keywords: &Keywords, room: usize) -> Option<Option<Self>> {
        let count = Span::read(keywords.min_items.as_ref(), keywords.max_items.as_ref())?;
        let items = match &keywords.items {
            None if count.is_free() => return Some(None),
            None => Plain::Boolean(true),
            Some(Items::All(id)) => read(arena, *id, room)?,
            Some(Items::Each(_)) => return None,
        };
        Some(Some(Self { items, count }))
    }

    fn accept(&self, items: &[Value]) -> bool {
        self.count.holds(items.len()) && items.iter().all(|item| self.items.accepts(item))
    }
}
