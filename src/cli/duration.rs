//! Durations as people write them on the command line.

use std::time::Duration;

/// Reads `1500ms`, `30s`, `2m`, `1.5` (a bare number is seconds). Zero and less are refused.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let (number, unit) = match text.find(|c: char| c.is_ascii_alphabetic()) {
        Some(at) => text.split_at(at),
        None => (text, "s"),
    };
    let seconds_per_unit = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => {
            return Err(format!(
                "unknown unit \"{unit}\": write 1500ms, 30s, 2m or 1h"
            ));
        }
    };
    let number: f64 = number
        .parse()
        .map_err(|_| format!("\"{number}\" is no number: write 1500ms, 30s, 2m or 1h"))?;
    match Duration::try_from_secs_f64(number * seconds_per_unit) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err("a duration must be positive".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn case(text: &str, millis: u64) {
        assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
    }

    #[test]
    fn units() {
        case("1500ms", 1500);
        case("30s", 30_000);
        case("2m", 120_000);
        case("1h", 3_600_000);
        case("1.5", 1500);
        case("7", 7000);
    }

    #[test]
    fn refused() {
        for text in ["", "s", "-1", "0", "5x", "1 s 2", "nan", "inf", "1e999"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
