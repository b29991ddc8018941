//! The deserializer: one reader for each value, which knows where that stands.

use std::cell::RefCell;

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Number, Value};

use super::{Error, add, did_you_mean};
use crate::json::pointer::escaped;
use crate::manifest::Fault;

/// Reads one value of the manifest.
pub(super) struct Reader<'v> {
    value: &'v Value,
    pointer: String,
    faults: &'v RefCell<Vec<Fault>>,
}

impl<'v> Reader<'v> {
    pub(super) fn root(value: &'v Value, faults: &'v RefCell<Vec<Fault>>) -> Self {
        Self {
            value,
            pointer: String::new(),
            faults,
        }
    }

    /// A reader of the member or element `name`.
    fn child(&self, name: &str, value: &'v Value) -> Self {
        let name = escaped(name);
        Self {
            value,
            pointer: format!("{}/{name}", self.pointer),
            faults: self.faults,
        }
    }

    /// Notes the members that a struct with these fields does not have.
    fn note_unknown(&self, members: &Map<String, Value>, fields: &[&str]) {
        for name in members
            .keys()
            .filter(|name| !fields.contains(&name.as_str()))
        {
            let pointer = self.child(name, self.value).pointer;
            add(
                self.faults,
                Fault::unknown_field(pointer, name, did_you_mean(name, fields)),
            );
        }
    }
}

impl<'de> Reader<'de> {
    fn whole_number<V: Visitor<'de>>(
        self,
        expected: &str,
        fits: fn(&Number) -> bool,
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.value {
            Value::Number(number) if fits(number) => self.deserialize_any(visitor),
            Value::Number(number) => {
                Err(Error::new(format!("expected {expected}, got {number}")).at(&self.pointer))
            }
            other => Err(Error::expected(expected, other).at(&self.pointer)),
        }
    }
}

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let pointer = self.pointer.clone();
        let read = match self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Number(number) => visit_number(number, visitor),
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Array(elements) => visitor.visit_seq(Elements {
                reader: self,
                elements: elements.iter().enumerate(),
            }),
            Value::Object(members) => visitor.visit_map(Members::new(self, members, None)),
        };
        read.map_err(|error| error.at(&pointer))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let pointer = self.pointer.clone();
        let Value::Object(members) = self.value else {
            return Err(Error::expected("an object", self.value).at(&pointer));
        };
        self.note_unknown(members, fields);
        visitor
            .visit_map(Members::new(self, members, Some(fields)))
            .map_err(|error| error.at(&pointer))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let pointer = self.pointer.clone();
        let variant = match self.value {
            Value::String(name) => Variant {
                name,
                content: None,
            },
            Value::Object(members) if members.len() == 1 => {
                let (name, value) = members.iter().next().expect("an object with one member");
                Variant {
                    name,
                    content: Some(self.child(name, value)),
                }
            }
            other => {
                let list: Vec<String> = variants.iter().map(|word| format!("\"{word}\"")).collect();
                return Err(Error::expected(&list.join(" or "), other).at(&pointer));
            }
        };
        visitor
            .visit_enum(variant)
            .map_err(|error| error.at(&pointer))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Bool(_) => self.deserialize_any(visitor),
            other => Err(Error::expected("true or false", other).at(&self.pointer)),
        }
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.whole_number("a whole number of 0 or more", Number::is_u64, visitor)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_u64(visitor)
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.whole_number("a whole number", Number::is_i64, visitor)
    }

    fn deserialize_i32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_i64(visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::String(_) => self.deserialize_any(visitor),
            other => Err(Error::expected("a string", other).at(&self.pointer)),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_string(visitor)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Array(_) => self.deserialize_any(visitor),
            other => Err(Error::expected("an array", other).at(&self.pointer)),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Object(_) => self.deserialize_any(visitor),
            other => Err(Error::expected("an object", other).at(&self.pointer)),
        }
    }

    forward_to_deserialize_any! {
        i8 i16 i128 u8 u16 u128 f32 f64 char bytes byte_buf unit unit_struct tuple tuple_struct identifier ignored_any
    }
}

fn visit_number<'de, V: Visitor<'de>>(number: &Number, visitor: V) -> Result<V::Value, Error> {
    if let Some(number) = number.as_u64() {
        visitor.visit_u64(number)
    } else if let Some(number) = number.as_i64() {
        visitor.visit_i64(number)
    } else {
        visitor.visit_f64(number.as_f64().unwrap_or(f64::MAX))
    }
}

/// The elements of an array, each read at its own pointer.
struct Elements<'v> {
    reader: Reader<'v>,
    elements: std::iter::Enumerate<std::slice::Iter<'v, Value>>,
}

impl<'de> SeqAccess<'de> for Elements<'de> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        let Some((index, value)) = self.elements.next() else {
            return Ok(None);
        };
        let reader = self.reader.child(&index.to_string(), value);
        seed_at(seed, reader).map(Some)
    }
}

/// The members of an object, each read at its own pointer.
struct Members<'v> {
    reader: Reader<'v>,
    rest: serde_json::map::Iter<'v>,
    /// Of a struct: the fields it has; others are passed over.
    fields: Option<&'static [&'static str]>,
    current: Option<(&'v str, &'v Value)>,
}

impl<'v> Members<'v> {
    fn new(
        reader: Reader<'v>,
        members: &'v Map<String, Value>,
        fields: Option<&'static [&'static str]>,
    ) -> Self {
        Self {
            reader,
            rest: members.iter(),
            fields,
            current: None,
        }
    }
}

impl<'de> MapAccess<'de> for Members<'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        let fields = self.fields;
        let known = |name: &str| fields.is_none_or(|fields| fields.contains(&name));
        let Some((name, value)) = self.rest.find(|(name, _)| known(name)) else {
            return Ok(None);
        };
        self.current = Some((name, value));
        let name: StrDeserializer<'_, Error> = name.as_str().into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Error> {
        let (name, value) = self
            .current
            .take()
            .expect("a value is asked for after its key");
        seed_at(seed, self.reader.child(name, value))
    }
}

/// Reads one value; an error that does not know its place yet is at this value.
fn seed_at<'de, T: DeserializeSeed<'de>>(seed: T, reader: Reader<'de>) -> Result<T::Value, Error> {
    let pointer = reader.pointer.clone();
    seed.deserialize(reader).map_err(|error| error.at(&pointer))
}

/// One alternative of an enum: its name alone, or an object with the name as its only key.
struct Variant<'v> {
    name: &'v str,
    content: Option<Reader<'v>>,
}

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Self), Error> {
        let name: StrDeserializer<'_, Error> = self.name.into_deserializer();
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'de> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        match self.content {
            None => Ok(()),
            Some(_) => Err(Error::new(format!("\"{}\" takes no value", self.name))),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        seed_at(seed, self.content()?)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, Error> {
        self.content()?.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.content()?.deserialize_struct("", fields, visitor)
    }
}

impl<'v> Variant<'v> {
    fn content(self) -> Result<Reader<'v>, Error> {
        let needs_a_value =
            || Error::new(format!("\"{0}\" needs a value: {{\"{0}\": …}}", self.name));
        self.content.ok_or_else(needs_a_value)
    }
}
