//! From inputs to other inputs: some by byte, some by the structure of JSON.

use pitool::json;
use serde_json::{Map, Value};

use crate::corpus::MAX_BYTES;
use crate::random::Random;

/// Pieces of text that mean something somewhere.
const TOKENS: [&str; 48] = [
    "{",
    "}",
    "[",
    "]",
    "\"",
    ":",
    ",",
    "\n",
    "\\",
    " ",
    "\u{feff}",
    "\0",
    "\u{1b}[2J",
    "\u{202e}",
    "null",
    "true",
    "-0",
    "1e999",
    "18446744073709551616",
    "9007199254740993",
    "0.1",
    "1E-400",
    "\\ud800",
    "\\udc00",
    "\\u0000",
    "\"\"",
    "{}",
    "[]",
    "\"type\":",
    "\"id\":",
    "\"name\":",
    "\"content\":",
    "\"role\":\"assistant\"",
    "\"toolCall\"",
    "\"tool_use\"",
    "\"functionCall\":",
    "\"tool_calls\":",
    "\"arguments\":",
    "\"isError\":true",
    "\"stopReason\":\"length\"",
    "\"$ref\":\"#\"",
    "\"pattern\":\"(a+)+$\"",
    "\"{value}\"",
    "call_1",
    "{\"jq\":\".\"}",
    "\"command\":[\"true\"]",
    "\r\n",
    "é€😀",
];

/// A new input from one or two of the corpus, changed a few times.
pub(crate) fn mutate(corpus: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut input = random.pick(corpus).clone();
    for _ in 0..=random.below(4) {
        let other = random.pick(corpus);
        input = match random.below(3) {
            0 => by_bytes(input, other, random),
            1 => by_tokens(input, random),
            _ => by_structure(&input, other, random),
        };
    }
    input.truncate(MAX_BYTES);
    input
}

fn by_bytes(mut input: Vec<u8>, other: &[u8], random: &mut Random) -> Vec<u8> {
    let range = random.range(input.len());
    match random.below(6) {
        0 if !input.is_empty() => {
            let at = random.below(input.len());
            input[at] ^= 1 << random.below(8);
        }
        1 => {
            input.drain(range);
        }
        2 => {
            let copy = input[range].to_vec();
            let at = random.below(input.len() + 1);
            input.splice(at..at, copy);
        }
        3 => {
            let part = other[random.range(other.len())].to_vec();
            input.splice(range, part);
        }
        4 => {
            let piece = input[range].to_vec();
            let times = (MAX_BYTES / piece.len().max(1)).min(1 << random.below(12));
            input.extend(piece.repeat(times));
        }
        _ => input.truncate(range.end),
    }
    input
}

fn by_tokens(mut input: Vec<u8>, random: &mut Random) -> Vec<u8> {
    let token = random.pick(&TOKENS).as_bytes();
    let times = if random.below(16) == 0 {
        1 << random.below(12)
    } else {
        1
    };
    let at = random.below(input.len() + 1);
    let end = at + random.below(2) * token.len().min(input.len() - at);
    input.splice(at..end, token.repeat(times));
    input
}

/// Changes one value of the first line that is JSON, or of the whole.
fn by_structure(input: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let Ok(mut value) = json::parse(input) else {
        return by_line(input, other, random);
    };
    let donor = json::parse(other).unwrap_or(Value::Null);
    change(&mut value, &donor, random);
    json::compact(&value).into_bytes()
}

fn by_line(input: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> = input
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    let at = random.below(lines.len());
    match (random.below(3), json::parse(&lines[at])) {
        (0, _) => {
            let line = lines[at].clone();
            lines.insert(random.below(lines.len() + 1), line);
        }
        (_, Ok(mut value)) => {
            change(
                &mut value,
                &json::parse(other).unwrap_or(Value::Null),
                random,
            );
            lines[at] = json::compact(&value).into_bytes();
        }
        (_, Err(_)) => {
            lines.swap_remove(at);
        }
    }
    lines.join(&b'\n')
}

fn change(value: &mut Value, donor: &Value, random: &mut Random) {
    let mut paths = Vec::new();
    list(value, &mut Vec::new(), &mut paths);
    let path = random.pick(&paths).clone();
    let mut place = value;
    for step in path {
        place = match place {
            Value::Array(items) => &mut items[step],
            Value::Object(members) => members
                .values_mut()
                .nth(step)
                .expect("a step is a position"),
            _ => unreachable!("only containers have steps"),
        };
    }
    let old = place.take();
    *place = replacement(old, donor, random);
}

/// The ways to all values, as positions; not to all of very many.
fn list(value: &Value, path: &mut Vec<usize>, paths: &mut Vec<Vec<usize>>) {
    const MOST: usize = 400;
    if paths.len() == MOST || path.len() == json::MAX_DEPTH {
        return;
    }
    paths.push(path.clone());
    let members: Vec<&Value> = match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(members) => members.values().collect(),
        _ => return,
    };
    for (step, member) in members.into_iter().enumerate() {
        path.push(step);
        list(member, path, paths);
        path.pop();
    }
}

fn replacement(old: Value, donor: &Value, random: &mut Random) -> Value {
    match random.below(9) {
        0 => scalar(random),
        1 => part_of(donor, random),
        2 => Value::Array(vec![old]),
        3 => Value::Array(vec![old.clone(), old]),
        4 => json::compact(&old).into(),
        5 => wrapped(old, 1 << random.below(11)),
        6 => without_one(old, random),
        7 => with_one(old, donor, random),
        _ => Value::Object(Map::from_iter([(word(random), old)])),
    }
}

fn scalar(random: &mut Random) -> Value {
    let token = *random.pick(&TOKENS);
    json::parse(token.as_bytes()).unwrap_or_else(|_| token.into())
}

/// A name that some format or manifest knows.
fn word(random: &mut Random) -> String {
    const WORDS: [&str; 24] = [
        "type",
        "id",
        "name",
        "arguments",
        "content",
        "role",
        "toolCallId",
        "tool_call_id",
        "input",
        "output",
        "properties",
        "required",
        "items",
        "anyOf",
        "$ref",
        "enum",
        "additionalProperties",
        "execute",
        "command",
        "jq",
        "stdin",
        "sandbox",
        "isError",
        "",
    ];
    (*random.pick(&WORDS)).to_owned()
}

fn part_of(donor: &Value, random: &mut Random) -> Value {
    let mut part = donor;
    loop {
        let members: Vec<&Value> = match part {
            Value::Array(items) => items.iter().collect(),
            Value::Object(members) => members.values().collect(),
            _ => return part.clone(),
        };
        if members.is_empty() || random.below(3) == 0 {
            return part.clone();
        }
        part = members[random.below(members.len())];
    }
}

fn wrapped(old: Value, times: usize) -> Value {
    (0..times).fold(old, |inner, _| Value::Array(vec![inner]))
}

fn without_one(mut old: Value, random: &mut Random) -> Value {
    match &mut old {
        Value::Array(items) if !items.is_empty() => {
            items.remove(random.below(items.len()));
        }
        Value::Object(members) if !members.is_empty() => {
            let name = members.keys().nth(random.below(members.len())).cloned();
            members.shift_remove(&name.expect("below the length"));
        }
        _ => {}
    }
    old
}

fn with_one(mut old: Value, donor: &Value, random: &mut Random) -> Value {
    let part = part_of(donor, random);
    match &mut old {
        Value::Array(items) => items.insert(random.below(items.len() + 1), part),
        Value::Object(members) => {
            members.insert(word(random), part);
        }
        _ => {}
    }
    old
}
