//! What coercion did to arguments, as a table.

use pitool::json::{self, pointer::unescaped};
use pitool::schema::Step;

use super::sanitize;
use super::style::Styles;
use super::table::{Cell, Table};

/// The steps in order, one a row: where, what was sent, what it became, by which rule.
pub(crate) fn table(steps: &[Step], columns: usize, styles: &Styles) -> String {
    let mut table = Table::new(&["PATH", "SENT", "BECAME", "RULE", "LOSSY"]);
    for step in steps {
        table.row(vec![
            Cell::new(path(&step.path), styles.key),
            Cell::plain(sanitize::one_line(&json::compact(&step.from))),
            became(step, styles),
            Cell::plain(step.rule),
            lossy(step, styles),
        ]);
    }
    table.render(columns, styles)
}

fn became(step: &Step, styles: &Styles) -> Cell {
    match &step.to {
        Some(value) => Cell::plain(sanitize::one_line(&json::compact(value))),
        None => Cell::new("(dropped)", styles.dim),
    }
}

fn lossy(step: &Step, styles: &Styles) -> Cell {
    if step.lossy {
        Cell::new("lossy", styles.warning)
    } else {
        Cell::plain("")
    }
}

/// A JSON Pointer as the error texts write it: dots between the names, `root` for the whole.
pub(crate) fn path(pointer: &str) -> String {
    let Some(names) = pointer.strip_prefix('/') else {
        return "root".to_owned();
    };
    let names = names.split('/').map(unescaped);
    let path = names.collect::<Vec<_>>().join(".");
    sanitize::one_line(&path).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_step_is_a_row() {
        let step = |path: &str, from, to, rule, lossy| Step {
            path: path.into(),
            from,
            to,
            rule,
            lossy,
        };
        let steps = [
            step("/limit", json!("5"), Some(json!(5)), "to-integer", false),
            step("/a~1b/0", json!(null), None, "drop-null", false),
            step("", json!(3.7), Some(json!(3)), "to-integer", true),
        ];
        assert_eq!(
            table(&steps, 80, &Styles::default()),
            "PATH   SENT  BECAME     RULE        LOSSY\n\
             limit  \"5\"   5          to-integer\n\
             a/b.0  null  (dropped)  drop-null\n\
             root   3.7   3          to-integer  lossy\n"
        );
    }
}
