//! Cases whose answer depends on JavaScript, and what is right in its place.

use serde_json::Value;

use crate::cases::Case;

/// What a case is compared with.
pub(crate) enum Right {
    /// The reference's answer.
    Reference,
    /// Another answer.
    Otherwise(Value),
    /// The reference's answer, but not all of it.
    Leniently(fn(&Value, &Value) -> Option<String>),
    /// Nothing.
    Excluded,
}

/// Draft 7 ignores what stands beside a `$ref`; pitool has no draft option.
const NEED_DRAFT_7: [&str; 3] = ["suite/7/ref/0018", "suite/7/ref/0020", "suite/7/ref/0021"];

/// What is right for a case.
pub(crate) fn right(case: &Case) -> Right {
    if NEED_DRAFT_7.contains(&case.id.as_str()) {
        return Right::Excluded;
    }
    Right::Reference
}
