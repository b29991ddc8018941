//! Room on the stack for values that are nested deeply: judging, coercing and explaining recurse into them.

use std::thread;

use serde_json::Value;

use crate::json::MAX_DEPTH;

/// Values nested no deeper than this are worked on where the caller stands.
pub(super) const SHALLOW: usize = 32;

/// Enough for [`MAX_DEPTH`] levels of any schema, also without optimisation; only what is used becomes memory.
const ROOM: usize = 256 << 20;

/// Works on a value with enough stack for its depth; `None` if it is nested deeper than [`MAX_DEPTH`].
pub(super) fn with_room<T: Send>(value: &Value, work: impl FnOnce() -> T + Send) -> Option<T> {
    if !is_deeper_than(value, SHALLOW) {
        return Some(work());
    }
    if is_deeper_than(value, MAX_DEPTH) {
        return None;
    }
    thread::scope(|scope| {
        let worker = thread::Builder::new()
            .stack_size(ROOM)
            .spawn_scoped(scope, work)
            .ok()?;
        Some(
            worker
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        )
    })
}

/// Whether a value is nested deeper than that, as [`crate::json::depth`] counts; looks no further.
fn is_deeper_than(value: &Value, levels: usize) -> bool {
    let is_deeper = |part: &Value| {
        levels
            .checked_sub(1)
            .is_none_or(|below| is_deeper_than(part, below))
    };
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(is_deeper),
        Value::Object(members) => levels == 0 || members.values().any(is_deeper),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::json::depth;

    #[test]
    fn depth_is_counted_as_the_json_module_does() {
        for value in [
            json!(1),
            json!([]),
            json!({}),
            json!([[1]]),
            json!({"a": [{}], "b": 1}),
        ] {
            for levels in 0..5 {
                assert_eq!(
                    is_deeper_than(&value, levels),
                    depth(&value) > levels,
                    "{value} {levels}"
                );
            }
        }
    }
}
