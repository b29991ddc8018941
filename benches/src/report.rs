//! The figures as a table for people and as JSON for programs.

use serde_json::{Value, json};

use crate::figure::{Aim, Bound, Figure, Row};
use crate::figures::{Extent, FIGURES};

/// Prints what can be asked for.
pub(crate) fn list() {
    for (name, _) in FIGURES {
        println!("{name}");
    }
}

/// Prints all figures.
pub(crate) fn table(figures: &[Figure]) {
    for figure in figures {
        println!("\n{}: {}", figure.name, figure.title);
        for row in &figure.rows {
            let peak = row
                .peak_mib
                .map_or(String::new(), |peak| format!("{peak:9.1} MiB"));
            println!(
                "  {:<52}{:>12} {:<10}{peak}",
                row.who,
                number(row.value),
                row.unit
            );
        }
        for aim in &figure.aims {
            let sign = if aim.is_reached() {
                "reached"
            } else {
                "MISSED"
            };
            let (word, bound) = bound(aim);
            println!(
                "  {:<7} {:<44}{:>12} {:<4} (aim: {word} {} {})",
                sign,
                aim.what,
                number(aim.measured),
                aim.unit,
                number(bound),
                aim.unit,
            );
        }
    }
}

fn bound(aim: &Aim) -> (&'static str, f64) {
    match aim.bound {
        Bound::AtMost(limit) => ("at most", limit),
        Bound::AtLeast(limit) => ("at least", limit),
    }
}

fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// All figures as one JSON text, with the machine they were measured on.
pub(crate) fn json(figures: &[Figure], extent: Extent) -> String {
    let figures: Vec<Value> = figures.iter().map(figure).collect();
    let whole = json!({
        "machine": machine(),
        "extent": match extent { Extent::Whole => "whole", Extent::Quick => "quick" },
        "figures": figures,
    });
    format!("{whole:#}\n")
}

fn figure(figure: &Figure) -> Value {
    let rows = figure.rows.iter().map(row);
    let aims = figure.aims.iter().map(|aim| {
        let (word, bound) = bound(aim);
        json!({"what": aim.what, "measured": aim.measured, "aim": word, "bound": bound,
               "unit": aim.unit, "reached": aim.is_reached()})
    });
    json!({"name": figure.name, "title": figure.title, "rows": rows.collect::<Vec<_>>(),
           "aims": aims.collect::<Vec<_>>()})
}

fn row(row: &Row) -> Value {
    json!({"who": row.who, "value": row.value, "unit": row.unit, "peakMib": row.peak_mib})
}

fn machine() -> Value {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let model = read("/proc/cpuinfo")
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map(|(_, model)| model.to_owned());
    json!({
        "cores": std::thread::available_parallelism().map_or(1, usize::from),
        "cpu": model,
        "kernel": read("/proc/sys/kernel/osrelease").trim(),
    })
}
