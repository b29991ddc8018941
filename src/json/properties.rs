//! What holds of every text and every value, tried on random ones.

use std::io::BufReader;

use proptest::prelude::*;
use serde_json::{Map, Number, Value};

use super::{Located, Values, compact, depth, lenient, parse, pretty, scan};

/// Any value, numbers of all kinds and strings of all characters.
fn value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(|float| Number::from_f64(float).map_or(Value::Null, Value::Number)),
        any::<String>().prop_map(Value::from),
    ];
    scalar.prop_recursive(6, 60, 6, |inner| {
        let member = (any::<String>(), inner.clone());
        prop_oneof![
            prop::collection::vec(inner, 0..6).prop_map(Value::from),
            prop::collection::vec(member, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Text that is nearly JSON.
fn text() -> impl Strategy<Value = String> {
    const PIECES: &[&str] = &[
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\"a\"",
        "\"\\u00e9\\n\"",
        "\"\\ud83d\"",
        "\"\\ude00",
        "\\ud83d\\ude00",
        "\\",
        "1",
        "0",
        "-",
        "-0",
        ".5",
        "1.5",
        "e+3",
        "1e400",
        "18446744073709551616",
        "-9223372036854775808",
        "true",
        "false",
        "null",
        "nul",
        "{\"k\":",
        "[1,",
        " ",
        "\n",
        "\r\n",
        "\t",
        "é",
        "\u{1}",
        "\u{FEFF}",
    ];
    prop::collection::vec(prop::sample::select(PIECES), 0..14).prop_map(|pieces| pieces.concat())
}

/// Compares by value: `1` equals `1.0`, and the order of keys counts.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            left == right || left.as_f64() == right.as_f64()
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            let is_same = |(left, right): ((&String, &Value), (&String, &Value))| {
                left.0 == right.0 && same(left.1, right.1)
            };
            left.len() == right.len() && left.iter().zip(right).all(is_same)
        }
        _ => left == right,
    }
}

/// What a stream gives when it arrives in pieces of that size.
fn items(stream: &[u8], capacity: usize) -> Vec<Result<Located, String>> {
    Values::new(BufReader::with_capacity(capacity, stream))
        .map(|item| item.map_err(|error| error.to_string()))
        .collect()
}

proptest! {
    #[test]
    fn what_is_printed_is_read_back(value in value()) {
        for text in [compact(&value), pretty(&value)] {
            let read = parse(text.as_bytes()).expect("what is printed is JSON");
            prop_assert!(same(&read, &value), "{text}");
            prop_assert_eq!(compact(&read), compact(&value));
        }
    }

    #[test]
    fn integers_keep_every_digit(signed: i64, unsigned: u64) {
        let text = format!("[{signed},{unsigned}]");
        prop_assert_eq!(compact(&parse(text.as_bytes()).expect("integers are JSON")), text);
    }

    #[test]
    fn reading_leniently_agrees_with_serde_json(text in text()) {
        // A byte order mark in front is skipped, which serde_json does not do.
        let text = text.trim_start_matches('\u{feff}');
        let scanned = scan::only_value(text.as_bytes());
        match serde_json::from_str::<Value>(text) {
            Ok(value) => prop_assert_eq!(scanned.map(lenient::read), Ok(value)),
            Err(error) if scanned.is_ok() => {
                let reason = error.to_string();
                let is_known = ["surrogate", "hex escape", "number out of range"].iter().any(|known| reason.contains(known));
                prop_assert!(is_known, "{text:?}: {reason}");
                parse(text.as_bytes()).expect("what the scan accepts is read");
            }
            Err(_) => prop_assert!(parse(text.as_bytes()).is_err()),
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
        let _ = parse(&bytes);
        let quoted = [b"\"", &bytes[..], b"\""].concat();
        let _ = parse(&quoted);
        prop_assert_eq!(items(&quoted, 1), items(&quoted, 1 << 16));
    }

    #[test]
    fn a_stream_gives_every_value_with_its_line(
        values in prop::collection::vec((value(), any::<bool>(), "\n| \n|\n\n|\r\n"), 0..5),
        capacity in 1_usize..200,
    ) {
        let mut stream = String::new();
        let mut lines = Vec::new();
        for (value, is_pretty, separator) in &values {
            lines.push(stream.matches('\n').count() + 1);
            stream += &if *is_pretty { pretty(value) } else { compact(value) };
            stream += separator;
        }
        let found = items(stream.as_bytes(), capacity);
        prop_assert_eq!(found.len(), values.len());
        for ((item, (value, ..)), line) in found.into_iter().zip(&values).zip(lines) {
            let located = item.expect("every value is JSON");
            prop_assert_eq!(located.line, line);
            prop_assert!(same(&located.value, value));
        }
    }

    #[test]
    fn a_stream_is_read_the_same_in_pieces_of_any_size(texts in prop::collection::vec(text(), 0..6), capacity in 1_usize..40) {
        let stream = texts.join("\n");
        prop_assert_eq!(items(stream.as_bytes(), capacity), items(stream.as_bytes(), 1 << 16));
    }

    #[test]
    fn a_bad_line_costs_no_good_one(bad in "[\\[{\"]?[a-z\"\\[{:,1]{1,12}") {
        prop_assume!(parse(bad.as_bytes()).is_err());
        // A bracket at the end of a line opens a value of several lines.
        prop_assume!(!bad.ends_with(['[', '{']));
        let stream = format!("1\n{bad}\n{{\"good\":1}}\n{{\"good\":2}}\n");
        let good = items(stream.as_bytes(), 1 << 16)
            .into_iter()
            .filter(|item| item.as_ref().is_ok_and(|located| located.value.get("good").is_some()));
        let lines: Vec<usize> = good.flatten().map(|located| located.line).collect();
        prop_assert_eq!(lines, [3, 4], "{}", stream);
    }

    #[test]
    fn depth_is_what_was_nested(levels in 0_usize..1200, is_object: bool) {
        let (open, close) = if is_object { ("{\"k\":", "}") } else { ("[", "]") };
        let text = open.repeat(levels) + "7" + &close.repeat(levels);
        let value = parse(text.as_bytes()).expect("depth is no reason to refuse");
        prop_assert_eq!(depth(&value), levels.min(1024));
    }
}
