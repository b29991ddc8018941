//! Numbers as the reference counts with them: doubles, but 64-bit integers keep every digit.

use std::cmp::Ordering;

use serde_json::Number;

/// Whether `number` is a multiple of `step`, for the keyword `multipleOf`.
///
/// Two integers are divided exactly. Otherwise the quotient is a double that must be a whole number, give or take
/// the rounding of the division: 19.99 is a multiple of 0.01.
pub(super) fn is_multiple(number: &Number, step: &Number) -> bool {
    if let (Some(number), Some(step)) = (integer(number), integer(step)) {
        return step != 0 && number % step == 0;
    }
    let (Some(number), Some(step)) = (number.as_f64(), step.as_f64()) else {
        return false;
    };
    let quotient = number / step;
    let is_whole = quotient.is_finite()
        && (quotient - quotient.round()).abs() <= f64::EPSILON * quotient.abs();
    is_whole || number % step == 0.0
}

fn integer(number: &Number) -> Option<i128> {
    number
        .as_i64()
        .map(i128::from)
        .or_else(|| number.as_u64().map(i128::from))
}

/// How much of the reference's grammar of numbers a string may use.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Grammar {
    /// Everything: also `"true"` and `"false"`, `"12n"`, and blank text for 0.
    Whole,
    /// Only what JavaScript's `Number` reads from text that is not blank.
    Plain,
}

/// Reads a number from text; `None` if it is none, or too large for a finite double.
pub(super) fn read(text: &str, grammar: Grammar) -> Option<Number> {
    if grammar == Grammar::Whole
        && let Some(number) = word(text).or_else(|| big_integer(text))
    {
        return Some(number.into());
    }
    let text = text.trim_matches(is_white_space);
    if text.is_empty() {
        return (grammar == Grammar::Whole).then(|| 0.into());
    }
    radix(text).or_else(|| decimal(text))
}

/// White space as JavaScript has it.
fn is_white_space(character: char) -> bool {
    character == '\u{feff}' || (character.is_whitespace() && character != '\u{85}')
}

fn word(text: &str) -> Option<i64> {
    if text.eq_ignore_ascii_case("true") {
        Some(1)
    } else {
        text.eq_ignore_ascii_case("false").then_some(0)
    }
}

/// Reads the text of a `BigInt` literal whose value a double holds exactly.
fn big_integer(text: &str) -> Option<i64> {
    const MOST: i64 = (1 << 53) - 1;
    let text = text.strip_suffix('n')?;
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_canonical = digits == "0" || (is_digits(digits) && !digits.starts_with('0'));
    text.parse()
        .ok()
        .filter(|number| is_canonical && (-MOST..=MOST).contains(number))
}

fn radix(text: &str) -> Option<Number> {
    let (prefix, digits) = text.split_at_checked(2)?;
    let radix = match prefix {
        "0x" | "0X" => 16,
        "0o" | "0O" => 8,
        "0b" | "0B" => 2,
        _ => return None,
    };
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return None;
    }
    match u64::from_str_radix(digits, radix) {
        Ok(number) => Some(number.into()),
        Err(_) => from_f64(digits.chars().fold(0.0, |number, digit| {
            number * f64::from(radix) + f64::from(digit.to_digit(radix).unwrap_or(0))
        })),
    }
}

fn decimal(text: &str) -> Option<Number> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let has_exponent = exponent
        .is_none_or(|exponent| is_digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)));
    let has_digits = !(whole.is_empty() && fraction.is_empty());
    if !has_exponent || !has_digits || !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let signed = text.strip_prefix('+').unwrap_or(text);
    let integer = signed
        .parse::<i64>()
        .ok()
        .map(Number::from)
        .or_else(|| signed.parse::<u64>().ok().map(Number::from));
    integer.or_else(|| from_f64(text.parse().ok()?))
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && all_digits(text)
}

fn all_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A double as a number: an integer if it is one that fits, as `5` and not `5.0`.
fn from_f64(number: f64) -> Option<Number> {
    const MOST: f64 = 9_223_372_036_854_775_808.0; // 2^63
    if number.fract() == 0.0 && (-MOST..MOST).contains(&number) {
        #[expect(clippy::cast_possible_truncation, reason = "whole and in range")]
        return Some((number as i64).into());
    }
    Number::from_f64(number)
}

/// Cuts off the fraction.
pub(super) fn truncated(number: &Number) -> Number {
    match number.as_f64() {
        Some(double) if number.is_f64() => {
            from_f64(double.trunc()).unwrap_or_else(|| number.clone())
        }
        _ => number.clone(),
    }
}

/// Whether two numbers have one value: `1` equals `1.0`, and integers are compared digit by digit.
pub(super) fn is_equal(left: &Number, right: &Number) -> bool {
    match (integer(left), integer(right)) {
        (Some(left), Some(right)) => left == right,
        _ => left.as_f64() == right.as_f64(),
    }
}

/// Compares two numbers by value, integers digit by digit.
pub(super) fn compare(left: &Number, right: &Number) -> Ordering {
    let double = |number: &Number| number.as_f64().unwrap_or_default();
    match (integer(left), integer(right)) {
        (Some(left), Some(right)) => left.cmp(&right),
        (Some(left), None) => compare_with_double(left, double(right)),
        (None, Some(right)) => compare_with_double(right, double(left)).reverse(),
        (None, None) => order(double(left), double(right)),
    }
}

fn compare_with_double(integer: i128, double: f64) -> Ordering {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the cast saturates, far beyond every integer of 64 bits"
    )]
    let whole = double.trunc() as i128;
    integer.cmp(&whole).then(order(0.0, double.fract()))
}

fn order(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right).unwrap_or(Ordering::Equal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn case(number: &str, step: &str, expected: bool) {
        let read = |text: &str| serde_json::from_str::<Number>(text).expect("a number");
        assert_eq!(
            is_multiple(&read(number), &read(step)),
            expected,
            "{number} of {step}"
        );
    }

    #[test]
    fn multiples_are_those_of_the_reference() {
        case("19.99", "0.01", true);
        case("0.07", "0.01", true);
        case("4.015", "0.01", false);
        case("0.0075", "0.0001", true);
        case("0.00751", "0.0001", false);
        case("4", "-2", true);
        case("0", "0", false);
        case("1", "0", false);
        case("1e21", "3", true);
        case("1e300", "1e-300", false);
        case("1e308", "0.5", true);
        case("1e-20", "1", false);
        case("9007199254740993", "3", true);
        case("9007199254740994", "3", false);
        case("18446744073709551615", "5", true);
    }

    #[track_caller]
    fn reads(text: &str, whole: Option<&str>, plain: Option<&str>) {
        let read = |grammar| super::read(text, grammar).map(|number| number.to_string());
        assert_eq!(
            read(Grammar::Whole).as_deref(),
            whole,
            "{text:?} as a whole"
        );
        assert_eq!(read(Grammar::Plain).as_deref(), plain, "{text:?} plainly");
    }

    #[track_caller]
    fn both(text: &str, number: &str) {
        reads(text, Some(number), Some(number));
    }

    #[test]
    fn text_is_a_number_as_javascript_reads_it() {
        both("5", "5");
        both("+5", "5");
        both("-5", "-5");
        both(".5", "0.5");
        both("5.", "5");
        both("5.0", "5");
        both("1e3", "1000");
        both("1E+3", "1000");
        both("007", "7");
        both(" 12\n", "12");
        both("\u{a0}\u{feff}12\u{2028}", "12");
        both("0x10", "16");
        both("0o17", "15");
        both("0B11", "3");
        both("-0", "0");
        both("18446744073709551615", "18446744073709551615");
        both("9007199254740993", "9007199254740993");
        both("0xffffffffffffffffff", "4.722366482869645e+21");
    }

    #[test]
    fn some_text_is_a_number_only_to_the_whole_grammar() {
        reads("", Some("0"), None);
        reads(" \t", Some("0"), None);
        reads("TRUE", Some("1"), None);
        reads("false", Some("0"), None);
        reads("12n", Some("12"), None);
        reads("-0n", Some("0"), None);
    }

    #[test]
    fn other_text_is_no_number() {
        for text in [
            "Infinity",
            "inf",
            "nan",
            "NaN",
            "1_000",
            "12px",
            "1e309",
            "-1e309",
            "+12n",
            "012n",
            " 12n",
            "9007199254740993n",
            "-0x10",
            "0x",
            "0b2",
            ".",
            "e5",
            "1e",
            "1e+",
            "1.2.3",
            "+",
            "--5",
            "\u{85}5",
            " true",
            "5 5",
            "é5",
        ] {
            reads(text, None, None);
        }
    }

    #[test]
    fn a_fraction_is_cut_off_towards_zero() {
        for (number, expected) in [(3.7, "3"), (-3.7, "-3"), (-0.5, "0"), (1e300, "1e+300")] {
            assert_eq!(
                truncated(&Number::from_f64(number).unwrap()).to_string(),
                expected
            );
        }
    }

    #[test]
    fn numbers_are_compared_by_value() {
        use Ordering::{Equal, Greater, Less};
        let compare = |left: &str, right: &str| {
            let read = |text: &str| serde_json::from_str::<Number>(text).expect("a number");
            super::compare(&read(left), &read(right))
        };
        assert_eq!(compare("9007199254740993", "9007199254740992.0"), Greater);
        assert_eq!(compare("18446744073709551615", "-1"), Greater);
        assert_eq!(compare("-5", "-5.0"), Equal);
        assert_eq!(compare("-5.5", "-5"), Less);
        assert_eq!(compare("0", "-0.0"), Equal);
        assert_eq!(compare("18446744073709551615", "1e300"), Less);
    }
}
