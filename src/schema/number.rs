//! Numbers as the reference counts with them: doubles, but 64-bit integers keep every digit.

use serde_json::Number;

/// Whether `number` is a multiple of `step`, for the keyword `multipleOf`.
///
/// Two integers are divided exactly. Otherwise the quotient is a double that must be a whole number, give or take
/// the rounding of the division: 19.99 is a multiple of 0.01.
pub(super) fn is_multiple(number: &Number, step: &Number) -> bool {
    if let (Some(number), Some(step)) = (integer(number), integer(step)) {
        return step != 0 && number % step == 0;
    }
    let (Some(number), Some(step)) = (number.as_f64(), step.as_f64()) else { return false };
    let quotient = number / step;
    let is_whole = quotient.is_finite() && (quotient - quotient.round()).abs() <= f64::EPSILON * quotient.abs();
    is_whole || number % step == 0.0
}

fn integer(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn case(number: &str, step: &str, expected: bool) {
        let read = |text: &str| serde_json::from_str::<Number>(text).expect("a number");
        assert_eq!(is_multiple(&read(number), &read(step)), expected, "{number} of {step}");
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
}
