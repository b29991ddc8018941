//! Values between JSON and jq: integers of up to 64 bits keep every digit, keys their order.

use jaq_json::{Map as JqMap, Num, Val};
use serde::Deserialize;
use serde_json::{Map, Number, Value};

use crate::json;

pub(super) fn to_val(value: Value) -> Val {
    Val::deserialize(value).expect("every JSON value is one of jq's")
}

/// A value of jq as JSON; the error says why it is none.
pub(super) fn from_val(val: &Val) -> Result<Value, String> {
    from_level(val, 0)
}

fn from_level(val: &Val, depth: usize) -> Result<Value, String> {
    if depth > json::MAX_DEPTH {
        return Err(format!(
            "The filter gave a value nested more than {} levels deep",
            json::MAX_DEPTH
        ));
    }
    Ok(match val {
        Val::Null => Value::Null,
        Val::Bool(flag) => Value::Bool(*flag),
        Val::Num(number) => from_num(number),
        Val::BStr(bytes) | Val::TStr(bytes) => String::from_utf8_lossy(bytes).into_owned().into(),
        Val::Arr(items) => items
            .iter()
            .map(|item| from_level(item, depth + 1))
            .collect::<Result<_, _>>()?,
        Val::Obj(entries) => Value::Object(from_entries(entries, depth + 1)?),
    })
}

fn from_entries(entries: &JqMap<Val, Val>, depth: usize) -> Result<Map<String, Value>, String> {
    entries
        .iter()
        .map(|(key, value)| match key {
            Val::BStr(key) | Val::TStr(key) => Ok((
                String::from_utf8_lossy(key).into_owned(),
                from_level(value, depth)?,
            )),
            other => Err(format!(
                "The filter gave an object with a key that is no string: {other}"
            )),
        })
        .collect()
}

/// JSON has no number beyond those of a double, and no NaN; a whole number is an integer, as in JavaScript.
fn from_num(number: &Num) -> Value {
    let float = match number {
        Num::Int(int) => return (*int as i64).into(),
        Num::BigInt(int) => {
            let digits = int.to_string();
            match (digits.parse::<i64>(), digits.parse::<u64>()) {
                (Ok(int), _) => return int.into(),
                (_, Ok(int)) => return int.into(),
                _ => digits.parse().unwrap_or(f64::NAN),
            }
        }
        Num::Float(float) => *float,
        Num::Dec(digits) => digits.parse().unwrap_or(f64::NAN),
    };
    if float.is_nan() {
        return Value::Null;
    }
    whole(float).map_or_else(
        || Number::from_f64(float.clamp(f64::MIN, f64::MAX)).map_or(Value::Null, Value::Number),
        Value::from,
    )
}

/// The integer that a float stands for, where floats still count by ones.
fn whole(float: f64) -> Option<i64> {
    const MOST: f64 = 9_007_199_254_740_992.0;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::float_cmp,
        reason = "it has no fraction and is small"
    )]
    (float.trunc() == float && float.abs() <= MOST).then_some(float as i64)
}
