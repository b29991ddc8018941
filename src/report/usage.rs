//! What tools say they spent, added up over a run.

use std::fmt;

use serde_json::Value;

/// How many different numbers are kept; tools make up the names.
const MAX_NUMBERS: usize = 16;
/// How deep numbers are looked for.
const MAX_DEPTH: usize = 4;

/// Numbers by name, in the order in which they first came. Names of nested objects are joined by dots: `cost.total`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Usage {
    numbers: Vec<(String, f64)>,
}

impl Usage {
    /// Adds every number of one tool's usage; whatever else it holds is no amount.
    pub(crate) fn add(&mut self, usage: &Value) {
        self.add_under("", usage, MAX_DEPTH);
    }

    /// Whether no tool spent anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.numbers.iter().all(|(_, amount)| *amount == 0.0)
    }

    fn add_under(&mut self, path: &str, value: &Value, depth: usize) {
        match value {
            Value::Number(number) => self.add_amount(path, number.as_f64().unwrap_or(0.0)),
            Value::Object(members) if depth > 0 => {
                for (name, member) in members {
                    let dot = if path.is_empty() { "" } else { "." };
                    self.add_under(&format!("{path}{dot}{name}"), member, depth - 1);
                }
            }
            _ => {}
        }
    }

    fn add_amount(&mut self, path: &str, amount: f64) {
        if let Some((_, sum)) = self.numbers.iter_mut().find(|(name, _)| name == path) {
            *sum += amount;
        } else if self.numbers.len() < MAX_NUMBERS {
            self.numbers.push((path.to_owned(), amount));
        }
    }
}

/// `input 120, cost.total 0.003`; zeros are left out.
impl fmt::Display for Usage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spent = self.numbers.iter().filter(|(_, amount)| *amount != 0.0);
        let parts: Vec<String> = spent.map(|(name, amount)| part(name, *amount)).collect();
        formatter.write_str(&parts.join(", "))
    }
}

fn part(name: &str, amount: f64) -> String {
    // Six decimals hide what adding binary fractions leaves behind.
    let amount = format!("{amount:.6}");
    let amount = amount.trim_end_matches('0').trim_end_matches('.');
    if name.is_empty() {
        amount.to_owned()
    } else {
        format!("{name} {amount}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_add_up_by_name() {
        let mut usage = Usage::default();
        assert!(usage.is_empty());
        usage.add(&json!({"input": 100, "cacheRead": 0, "cost": {"total": 0.1}, "model": "m"}));
        usage.add(&json!({"input": 20, "output": 7, "cost": {"total": 0.2}}));
        assert_eq!(usage.to_string(), "input 120, cost.total 0.3, output 7");
        assert!(!usage.is_empty());
    }

    #[test]
    fn what_is_no_amount_is_ignored() {
        let mut usage = Usage::default();
        usage.add(&json!(["x"]));
        usage.add(&json!(null));
        usage.add(&json!({"a": {"b": {"c": {"d": {"e": 1}}}}}));
        assert!(usage.is_empty());
        usage.add(&json!(2));
        assert_eq!(usage.to_string(), "2");
    }
}
