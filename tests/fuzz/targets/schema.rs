//! `{"schema": …, "values": […]}`: a schema and what it is asked about.

use pitool::json;
use pitool::schema::{AcceptOptions, Coercion, Lossy, Schema, UnknownArguments, error_text};
use serde_json::Value;

use crate::harness::{Observed, Target};

pub(crate) const TARGET: Target = Target {
    name: "schema",
    beside: &[],
    inputs: 3_000,
    check,
};

fn check(input: &[u8], observed: &mut Observed) {
    let Ok(input) = json::parse(input) else {
        return;
    };
    let schema = match Schema::compile(&input["schema"]) {
        Ok(schema) => schema,
        Err(error) => return observed.sentence(&error.to_string()),
    };
    for finding in schema.findings() {
        observed.sentence(&finding.message);
    }
    let none = Vec::new();
    for value in input["values"].as_array().unwrap_or(&none) {
        for coercion in [Coercion::Off, Coercion::Standard, Coercion::Extended] {
            for unknown_arguments in [UnknownArguments::Schema, UnknownArguments::Strip] {
                let options = AcceptOptions {
                    coercion,
                    unknown_arguments,
                    lossy: Lossy::Allow,
                };
                judge(&schema, value, options, observed);
            }
        }
    }
}

fn judge(schema: &Schema, value: &Value, options: AcceptOptions, observed: &mut Observed) {
    let is_valid = schema.check(value);
    assert_eq!(
        schema.violations(value).is_empty(),
        is_valid,
        "judged and explained"
    );
    match schema.accept(value, &options) {
        Ok(accepted) => {
            assert!(
                schema.check(&accepted.value),
                "accepted and refused: {}",
                accepted.value
            );
            if is_valid && options.unknown_arguments == UnknownArguments::Schema {
                assert_eq!(&*accepted.value, value, "valid arguments are never touched");
            }
            for step in accepted.steps {
                observed.fact(format!("{:?}", step.rule));
            }
        }
        Err(rejected) => {
            assert!(!rejected.violations.is_empty());
            for violation in &rejected.violations {
                observed.fact(violation.keyword.clone());
            }
            assert!(error_text("t", &rejected.violations, value).starts_with("Validation failed"));
        }
    }
}
