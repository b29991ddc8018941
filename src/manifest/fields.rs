//! Which fields a type has, as its deserializer tells.

use serde::de::value::Error;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;

/// The fields that `T` asks its deserializer for; none if it is no struct.
pub(crate) fn fields_of<T: DeserializeOwned>() -> &'static [&'static str] {
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
        Err(Error::custom("only a struct has fields"))
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

    use super::*;

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    #[expect(dead_code, reason = "only the names of its fields are asked for")]
    struct Limits {
        timeout_ms: u64,
        deep: bool,
    }

    #[test]
    fn a_type_tells_its_fields() {
        assert_eq!(fields_of::<Limits>(), ["timeoutMs", "deep"]);
        assert_eq!(fields_of::<String>(), [""; 0]);
    }
}
