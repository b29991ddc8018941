//! How one primitive value becomes another: the tables of the coercion's passes 2 and 3.

use serde_json::{Number, Value};

use super::{
    node::{Type, is_integral},
    number::{self, Grammar},
};
use crate::json::number_text;

/// A value, and by which rule it came to be.
pub(super) struct Converted {
    pub(super) value: Value,
    pub(super) rule: &'static str,
    pub(super) lossy: bool,
}

/// Converts a value to a primitive type as pass 2 does; `None` if no rule of the type applies.
pub(super) fn convert(value: &Value, to: Type) -> Option<Converted> {
    let converted = match to {
        Type::String => text(value, "null")?,
        Type::Number => number(value)?,
        Type::Integer => Value::Number(number::truncated(number(value)?.as_number()?)),
        Type::Boolean => boolean(value)?,
        Type::Null => null(value)?,
        Type::Array | Type::Object => return None,
    };
    differs(value, converted, rule(to))
}

/// Converts a value to a primitive type as pass 3 does; `None` if no rule of the type changes it.
pub(super) fn settle(value: &Value, to: Type) -> Option<Converted> {
    let settled = match (to, value) {
        (Type::Number | Type::Integer, Value::String(text)) => {
            let number = number::read(text, Grammar::Plain)?;
            if to == Type::Integer && !is_integral(&number) {
                return None;
            }
            Value::Number(number)
        }
        (Type::Number | Type::Integer, Value::Null | Value::Bool(_)) => number(value)?,
        (Type::Boolean, Value::String(text)) => match text.as_str() {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => return None,
        },
        (Type::Boolean, Value::Null | Value::Number(_)) => boolean(value)?,
        (Type::String, _) => text(value, "")?,
        (Type::Null, Value::String(text)) if text.is_empty() => Value::Null,
        (Type::Null, Value::Bool(_) | Value::Number(_)) => null(value)?,
        _ => return None,
    };
    differs(value, settled, rule(to))
}

/// Whether two values are equal, numbers by value.
pub(super) fn is_same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => number::is_equal(left, right),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|(left, right)| is_same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(key, left)| right.get(key).is_some_and(|right| is_same(left, right)))
        }
        _ => left == right,
    }
}

/// Whether the tool gets less than was sent.
///
/// Not so for text that is written otherwise (`"007"`), nor where only the type changes.
pub(super) fn is_lossy(from: &Value, to: &Value) -> bool {
    match (from, to) {
        (Value::Number(from), Value::Number(to)) => !number::is_equal(from, to),
        (Value::String(from), Value::Number(to)) => {
            let read = number::read(from, Grammar::Plain);
            let is_word = number::read(from, Grammar::Whole).is_some() && !from.trim().is_empty();
            read.map_or(!is_word, |read| !number::is_equal(&read, to))
        }
        (Value::String(from), Value::Null) => from == "0",
        (Value::Null, _) | (_, Value::Null) => true,
        _ => false,
    }
}

/// The name of the rule that converts to a type.
fn rule(to: Type) -> &'static str {
    match to {
        Type::Null => "to-null",
        Type::Boolean => "to-boolean",
        Type::Integer => "to-integer",
        Type::Number => "to-number",
        Type::String => "to-string",
        Type::Array => "to-array",
        Type::Object => "to-object",
    }
}

fn differs(from: &Value, value: Value, rule: &'static str) -> Option<Converted> {
    if is_same(from, &value) {
        return None;
    }
    let lossy = is_lossy(from, &value);
    Some(Converted { value, rule, lossy })
}

fn text(value: &Value, of_null: &str) -> Option<Value> {
    Some(match value {
        Value::Null => of_null.into(),
        Value::Bool(value) => value.to_string().into(),
        Value::Number(number) => number_text(number).into(),
        Value::String(_) => value.clone(),
        Value::Array(_) | Value::Object(_) => return None,
    })
}

fn number(value: &Value) -> Option<Value> {
    Some(match value {
        Value::Null => 0.into(),
        Value::Bool(value) => i64::from(*value).into(),
        Value::Number(_) => value.clone(),
        Value::String(text) => Value::Number(number::read(text, Grammar::Whole)?),
        Value::Array(_) | Value::Object(_) => return None,
    })
}

fn boolean(value: &Value) -> Option<Value> {
    let is = |number: &Number, one: u8| number.as_f64() == Some(f64::from(one));
    Some(Value::Bool(match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) if is(number, 1) => true,
        Value::Number(number) if is(number, 0) => false,
        Value::String(text) if text == "1" || text.eq_ignore_ascii_case("true") => true,
        Value::String(text) if text == "0" || text.eq_ignore_ascii_case("false") => false,
        _ => return None,
    }))
}

fn null(value: &Value) -> Option<Value> {
    let is_nothing = match value {
        Value::Null | Value::Bool(false) => true,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => {
            text.is_empty()
                || text == "0"
                || text.eq_ignore_ascii_case("null")
                || text.eq_ignore_ascii_case("undefined")
        }
        _ => false,
    };
    is_nothing.then_some(Value::Null)
}
