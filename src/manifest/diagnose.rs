//! A deserializer over a JSON value that remembers where it is and does not stop at the first fault.

use std::cell::RefCell;
use std::fmt::{self, Display};

use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Expected, IntoDeserializer,
    MapAccess, SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Number, Value};

use crate::json::kind;
use crate::json::pointer::{escaped, unescaped};

use super::{Fault, nearest};

/// Reads `value` as a `T` and collects all faults.
///
/// A field with a wrong value is taken out and the rest is read again, so that the next fault shows too.
pub(crate) fn diagnose<T: DeserializeOwned>(value: &Value) -> (Option<T>, Vec<Fault>) {
    let mut value = value.clone();
    let mut removed: Vec<String> = Vec::new();
    let faults = RefCell::new(Vec::new());
    loop {
        let error = match T::deserialize(Reader::root(&value, &faults)) {
            Ok(read) => {
                let read = removed.is_empty().then_some(read);
                return (read, faults.into_inner());
            }
            Err(error) => error,
        };
        let pointer = error.pointer.clone().unwrap_or_default();
        if !error.follows_from(&removed) {
            add(&faults, error.fault());
        }
        if !remove(&mut value, &pointer) {
            return (None, faults.into_inner());
        }
        removed.push(pointer);
    }
}

/// Every reading meets the faults of the reading before it again.
fn add(faults: &RefCell<Vec<Fault>>, fault: Fault) {
    let mut faults = faults.borrow_mut();
    if !faults.contains(&fault) {
        faults.push(fault);
    }
}

/// Takes the member that `pointer` names out of its object; false if it is in none.
fn remove(value: &mut Value, pointer: &str) -> bool {
    let Some((parent, name)) = pointer.rsplit_once('/') else {
        return false;
    };
    match value.pointer_mut(parent) {
        Some(Value::Object(members)) => members.shift_remove(&unescaped(name)).is_some(),
        // An element of a list: the list as a whole is what is wrong.
        Some(_) => remove(value, parent),
        None => false,
    }
}

/// The first fault on the way through a value.
#[derive(Debug)]
struct Error {
    /// Set by the innermost reader that the error passes.
    pointer: Option<String>,
    message: String,
    hint: Option<String>,
    /// The field that is missing, if that is the fault.
    missing: Option<&'static str>,
}

impl Error {
    fn new(message: String) -> Self {
        Self {
            pointer: None,
            message,
            hint: None,
            missing: None,
        }
    }

    fn expected(expected: &str, value: &Value) -> Self {
        Self::new(format!("expected {expected}, got {}", kind(value)))
    }

    fn at(mut self, pointer: &str) -> Self {
        self.pointer.get_or_insert_with(|| pointer.to_owned());
        self
    }

    /// Whether only the taking out of faulty values made this error.
    fn follows_from(&self, removed: &[String]) -> bool {
        let pointer = self.pointer.as_deref().unwrap_or_default();
        match self.missing {
            Some(name) => removed.contains(&format!("{pointer}/{name}")),
            None => removed
                .iter()
                .any(|removed| removed.starts_with(&format!("{pointer}/"))),
        }
    }

    fn fault(self) -> Fault {
        Fault {
            hint: self.hint,
            ..Fault::new(self.pointer.unwrap_or_default(), self.message)
        }
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl de::Error for Error {
    fn custom<T: Display>(message: T) -> Self {
        Self::new(message.to_string())
    }

    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(format!("expected {expected}, got {}", word(unexpected)))
    }

    fn missing_field(field: &'static str) -> Self {
        Self {
            missing: Some(field),
            ..Self::new(format!("missing field \"{field}\""))
        }
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let list: Vec<String> = expected.iter().map(|word| format!("\"{word}\"")).collect();
        Self {
            hint: did_you_mean(variant, expected),
            ..Self::new(format!("\"{variant}\" is not one of {}", list.join(", ")))
        }
    }
}

fn did_you_mean(word: &str, candidates: &[&str]) -> Option<String> {
    nearest(word, candidates.iter().copied())
        .first()
        .map(|candidate| format!("did you mean \"{candidate}\"?"))
}

fn word(unexpected: Unexpected<'_>) -> String {
    match unexpected {
        Unexpected::Unit | Unexpected::Option => "null".into(),
        Unexpected::Bool(_) => "boolean".into(),
        Unexpected::Unsigned(_) | Unexpected::Signed(_) => "integer".into(),
        Unexpected::Float(_) => "number".into(),
        Unexpected::Str(_) | Unexpected::Char(_) => "string".into(),
        Unexpected::Seq => "array".into(),
        Unexpected::Map => "object".into(),
        other => other.to_string(),
    }
}

/// Reads one value of the manifest.
struct Reader<'v> {
    value: &'v Value,
    pointer: String,
    faults: &'v RefCell<Vec<Fault>>,
}

impl<'v> Reader<'v> {
    fn root(value: &'v Value, faults: &'v RefCell<Vec<Fault>>) -> Self {
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

/// The fields that `T` asks its deserializer for; none if it is no struct.
pub(super) fn fields_of<T: DeserializeOwned>() -> &'static [&'static str] {
    let mut fields = FieldNames(&[]);
    // The reading itself must fail: there is nothing to read.
    let _ = T::deserialize(&mut fields);
    fields.0
}

/// Writes down the field names that a struct asks for.
struct FieldNames(&'static [&'static str]);

impl<'de> Deserializer<'de> for &mut FieldNames {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Error> {
        Err(Error::new("only a struct has fields".into()))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.0 = fields;
        self.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    struct Outer {
        name: String,
        #[serde(default)]
        inner: Option<Inner>,
        #[serde(default)]
        words: Vec<String>,
        #[serde(default)]
        source: Source,
        #[serde(default)]
        anything: Value,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    struct Inner {
        timeout_ms: u64,
        #[serde(default)]
        deep: bool,
        #[serde(default)]
        codes: Vec<i32>,
    }

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(rename_all = "camelCase")]
    enum Source {
        #[default]
        Arguments,
        Nothing,
        Text(String),
    }

    #[track_caller]
    fn case(value: &Value, expected: &[(&str, Option<&str>)]) {
        let (read, faults) = diagnose::<Outer>(value);
        let found: Vec<(String, Option<&str>)> = faults
            .iter()
            .map(|fault| (fault.full_message(), fault.hint.as_deref()))
            .collect();
        let found: Vec<(&str, Option<&str>)> = found
            .iter()
            .map(|(message, hint)| (message.as_str(), *hint))
            .collect();
        assert_eq!(found, expected);
        let only_unknown = found.iter().all(|(message, _)| message.contains("unknown"));
        assert_eq!(read.is_some(), only_unknown);
    }

    #[test]
    fn what_is_right_is_read() {
        let value = json!({"name": "a", "inner": {"timeoutMs": 5, "codes": [-1]}, "words": ["w"],
            "source": {"text": "{x}"}, "anything": {"n": [1, -2, 1.5, null, true]}});
        let (read, faults) = diagnose::<Outer>(&value);
        assert_eq!(faults, []);
        assert_eq!(read, serde_json::from_value(value).ok());
    }

    #[test]
    fn unknown_fields_are_found_at_every_level_at_once() {
        case(
            &json!({"nmae": 1, "name": "a", "inner": {"timeoutMs": 1, "timeout": 2}, "x": 1}),
            &[
                ("unknown field \"nmae\"", Some("did you mean \"name\"?")),
                ("unknown field \"x\"", None),
                (
                    "inner: unknown field \"timeout\"",
                    Some("did you mean \"timeoutMs\"?"),
                ),
            ],
        );
    }

    #[test]
    fn all_wrong_values_are_found() {
        case(
            &json!({"name": 5, "inner": {"timeoutMs": "soon", "deep": 1, "codes": ["x"]}, "words": ["a", 1],
                "source": "argument"}),
            &[
                ("name: expected a string, got integer", None),
                (
                    "inner.timeoutMs: expected a whole number of 0 or more, got string",
                    None,
                ),
                ("inner.deep: expected true or false, got integer", None),
                ("inner.codes.0: expected a whole number, got string", None),
                ("words.1: expected a string, got integer", None),
                (
                    "source: \"argument\" is not one of \"arguments\", \"nothing\", \"text\"",
                    Some("did you mean \"arguments\"?"),
                ),
            ],
        );
    }

    #[test]
    fn numbers_that_do_not_fit_are_named() {
        case(
            &json!({"name": "a", "inner": {"timeoutMs": -1}}),
            &[(
                "inner.timeoutMs: expected a whole number of 0 or more, got -1",
                None,
            )],
        );
        case(
            &json!({"name": "a", "inner": {"timeoutMs": 1, "codes": [1.5]}}),
            &[("inner.codes.0: expected a whole number, got 1.5", None)],
        );
    }

    #[test]
    fn missing_fields_are_named() {
        case(&json!({}), &[("missing field \"name\"", None)]);
        case(
            &json!({"name": "a", "inner": {}}),
            &[("inner: missing field \"timeoutMs\"", None)],
        );
    }

    #[test]
    fn other_kinds_of_value_are_told() {
        case(&json!([]), &[("expected an object, got array", None)]);
        case(
            &json!({"name": "a", "inner": "x", "words": {}, "source": 1}),
            &[
                ("inner: expected an object, got string", None),
                ("words: expected an array, got object", None),
                (
                    "source: expected \"arguments\" or \"nothing\" or \"text\", got integer",
                    None,
                ),
            ],
        );
        case(
            &json!({"name": "a", "source": {"nothing": 1}}),
            &[("source: \"nothing\" takes no value", None)],
        );
        case(
            &json!({"name": "a", "source": "text"}),
            &[("source: \"text\" needs a value: {\"text\": …}", None)],
        );
        case(
            &json!({"name": "a", "source": {"text": 1}}),
            &[("source.text: expected a string, got integer", None)],
        );
    }

    #[test]
    fn a_type_tells_its_fields() {
        assert_eq!(fields_of::<Inner>(), ["timeoutMs", "deep", "codes"]);
        assert_eq!(fields_of::<String>(), [""; 0]);
    }
}
