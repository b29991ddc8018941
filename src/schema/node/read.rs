//! Reading schemas into the arena, as leniently as the reference does.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use super::{
    Arena, Condition, DynamicReference, Items, Keywords, Members, Node, NodeId, Reference, Type,
    Types, node_id,
};
use crate::schema::{
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
}
