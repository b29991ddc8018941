//! Arguments text and JSON as such.

use std::borrow::Cow;

use pitool::format::{parse_arguments, repair_arguments};
use pitool::json::{self, Values};

use crate::harness::{Observed, Target};

pub(crate) const TARGET: Target = Target {
    name: "arguments",
    beside: &["samples/echo.json", "samples/openai.json"],
    inputs: 3_000,
    check,
};

fn check(input: &[u8], observed: &mut Observed) {
    let parsed = json::parse(input);
    match &parsed {
        Ok(value) => {
            // As text: a float without a fraction is printed like an integer, as JavaScript does.
            let printed = json::compact(value);
            for text in [&printed, &json::pretty(value)] {
                let again = json::parse(text.as_bytes()).map(|value| json::compact(&value));
                assert_eq!(again.as_ref(), Ok(&printed), "printed and read");
            }
            observed.fact(json::depth(value).min(8));
        }
        Err(error) => observed.sentence(&error.message),
    }
    stream(input, observed);
    text(&String::from_utf8_lossy(input), observed);
}

/// The same values come out however the stream is cut, and a single value is one of them.
fn stream(input: &[u8], observed: &mut Observed) {
    let whole: Vec<_> = Values::new(input).collect();
    for capacity in [1, 7, 4096] {
        let pieces = std::io::BufReader::with_capacity(capacity, input);
        let pieces: Vec<_> = Values::new(pieces).collect();
        assert_eq!(pieces, whole, "read in pieces of {capacity}");
    }
    if json::parse(input).is_ok() {
        assert_eq!(whole.len(), 1, "one value is one value: {whole:?}");
    }
    observed.fact(whole.len().min(8));
}

fn text(text: &str, observed: &mut Observed) {
    let repaired = repair_arguments(text);
    match parse_arguments(text) {
        Ok(value) => assert!(value.is_object()),
        Err(error) => {
            assert!(
                error.ends_with(&format!("\n\nReceived arguments:\n{text}"))
                    || error.contains("levels deep")
            );
            observed.sentence(error.lines().next().unwrap_or_default());
        }
    }
    let again = repair_arguments(&repaired);
    assert!(
        matches!(again, Cow::Borrowed(_)),
        "repaired twice: {repaired:?} {again:?}"
    );
}
