//! Where a `$ref` leads: the `$id`s and anchors of one schema document, and JSON Pointers into it.
//!
//! `$id` and anchors count only where a schema stands, never inside `enum`, `const` or unknown keywords.
//! Nothing outside the document is ever looked for.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::applicator::{Holds, holds};
use super::uri;
use crate::json::pointer::unescaped;

/// A base URI of the document, by its place in [`Identifiers::bases`]: one for each `$id`, and the root's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Base(pub(super) usize);

impl Base {
    /// The document's own.
    pub(super) const ROOT: Self = Self(0);
}

/// What a reference leads to.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    /// The JSON that stands there; a schema or not.
    pub(super) schema: &'a Value,
    /// The base that holds there.
    pub(super) base: Base,
    /// Whether a `$dynamicAnchor` led to it.
    pub(super) is_dynamic: bool,
}

/// The names of one document's schemas.
pub(super) struct Identifiers<'a> {
    bases: Vec<String>,
    resources: HashMap<String, Target<'a>>,
    anchors: HashMap<String, HashMap<&'a str, Target<'a>>>,
    /// The base at each schema, by the address of its JSON (the document does not move meanwhile).
    base_at: HashMap<*const Value, Base>,
}

impl<'a> Identifiers<'a> {
    /// Collects the names of all schemas of `document`.
    pub(super) fn of(document: &'a Value) -> Self {
        let root = Target {
            schema: document,
            base: Base(0),
            is_dynamic: false,
        };
        let mut identifiers = Self {
            bases: vec![String::new()],
            resources: HashMap::from([(String::new(), root)]),
            anchors: HashMap::new(),
            base_at: HashMap::new(),
        };
        let mut pending = vec![(document, Base(0))];
        while let Some((schema, base)) = pending.pop() {
            let Some(keywords) = schema.as_object() else {
                continue;
            };
            let base = identifiers.enter(schema, keywords, base);
            // Reversed, so that of two equal names the first one in the document counts.
            let from = pending.len();
            each_subschema(keywords, &mut |subschema| pending.push((subschema, base)));
            pending[from..].reverse();
        }
        identifiers
    }

    /// The base that holds at the document's root.
    pub(super) fn root_base(&self, document: &Value) -> Base {
        self.base_of(document, Base::ROOT)
    }

    /// Finds what `reference` leads to from a schema whose base is `base`; `None` if it names nothing.
    pub(super) fn find(&self, base: Base, reference: &str) -> Option<Target<'a>> {
        let (uri, fragment) = uri::resolve(&self.bases[base.0], reference);
        let resource = *self.resources.get(&uri)?;
        match fragment.as_deref() {
            None | Some("") => Some(resource),
            Some(pointer) if pointer.starts_with('/') => self.descend(resource, pointer),
            Some(name) => self.anchors.get(&uri)?.get(name).copied(),
        }
    }

    /// Every schema with that `$dynamicAnchor`.
    pub(super) fn dynamic_anchors(&self, name: &str) -> Vec<Target<'a>> {
        let named = self
            .anchors
            .values()
            .filter_map(|anchors| anchors.get(name));
        named.filter(|target| target.is_dynamic).copied().collect()
    }

    /// The base that holds at `schema`, or `outer` where no schema stands.
    pub(super) fn base_of(&self, schema: &Value, outer: Base) -> Base {
        self.base_at
            .get(&std::ptr::from_ref(schema))
            .copied()
            .unwrap_or(outer)
    }

    /// Notes the names that a schema gives itself; returns the base inside it.
    fn enter(&mut self, schema: &'a Value, keywords: &'a Map<String, Value>, outer: Base) -> Base {
        let text = |keyword: &str| keywords.get(keyword).and_then(Value::as_str);
        let mut base = outer;
        let mut legacy_anchor = None;
        if let Some(id) = text("$id") {
            let (before, fragment) = uri::split_fragment(id);
            if before.is_empty() {
                legacy_anchor = fragment.filter(|name| !name.is_empty());
            } else {
                let (uri, _) = uri::resolve(&self.bases[outer.0], before);
                base = Base(self.bases.len());
                self.bases.push(uri.clone());
                self.resources.entry(uri).or_insert(Target {
                    schema,
                    base,
                    is_dynamic: false,
                });
            }
        }
        self.base_at.insert(schema, base);
        for (name, is_dynamic) in [
            (text("$anchor"), false),
            (legacy_anchor, false),
            (text("$dynamicAnchor"), true),
        ] {
            let Some(name) = name else { continue };
            let anchors = self.anchors.entry(self.bases[base.0].clone()).or_default();
            anchors.entry(name).or_insert(Target {
                schema,
                base,
                is_dynamic,
            });
        }
        base
    }

    /// Follows a JSON Pointer from a resource's root, through whatever JSON lies on the way.
    fn descend(&self, resource: Target<'a>, pointer: &str) -> Option<Target<'a>> {
        let mut target = Target {
            is_dynamic: false,
            ..resource
        };
        for token in pointer.split('/').skip(1) {
            let token = unescaped(token);
            target.schema = match target.schema {
                Value::Object(members) => members.get(&token)?,
                Value::Array(items) => items.get(index(&token)?)?,
                _ => return None,
            };
            target.base = self.base_of(target.schema, target.base);
        }
        Some(target)
    }
}

/// Reads an array index of a JSON Pointer: digits without a leading zero.
fn index(token: &str) -> Option<usize> {
    let is_canonical = token == "0" || !token.starts_with(['0', '+']);
    token.parse().ok().filter(|_| is_canonical)
}

/// Hands over every place of a schema object where a schema stands, in source order.
fn each_subschema<'a>(keywords: &'a Map<String, Value>, visit: &mut dyn FnMut(&'a Value)) {
    for (keyword, value) in keywords {
        match (holds(keyword), value) {
            (Some(Holds::Members), Value::Object(members)) => {
                members.values().for_each(&mut *visit);
            }
            (Some(Holds::List | Holds::SchemaOrList), Value::Array(items)) => {
                items.iter().for_each(&mut *visit);
            }
            (Some(Holds::Schema | Holds::SchemaOrList), schema) => visit(schema),
            _ => {}
        }
    }
}
