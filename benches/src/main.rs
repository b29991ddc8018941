//! Measures pitool: every figure beside its rival and its limit, medians of interleaved runs, as a table and as JSON.
//!
//! `benches/run` builds what is needed and starts this. The same program is also the limits themselves, as processes of
//! their own: `limit print` parses and prints JSON lines, `limit spawn COUNT JOBS` starts `/bin/true` again and again,
//! `limit sleep COUNT` that many `sleep 0.3` at once.

mod figure;
mod figures;
mod inputs;
mod limit;
mod measure;
mod report;
mod stdio;
mod syncs;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;

use crate::figures::{Bench, Extent};

const USAGE: &str = "usage: pitool-bench PITOOL WORK_FOLDER [--quick] [--json FILE] [FIGURE…]
       pitool-bench --list";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["limit", "print"] => limit::print(),
        ["limit", "spawn", count, jobs] => limit::spawn(count, jobs),
        ["limit", "sleep", count] => limit::sleep(count),
        ["--list"] => {
            report::list();
            Ok(())
        }
        _ => bench(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn bench(arguments: &[String]) -> anyhow::Result<()> {
    let mut names = Vec::new();
    let mut extent = Extent::Whole;
    let mut json = None;
    let mut places = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--quick" => extent = Extent::Quick,
            "--json" => json = Some(PathBuf::from(rest.next().context(USAGE)?)),
            option if option.starts_with("--") => anyhow::bail!("unknown option {option}\n{USAGE}"),
            _ if places.len() < 2 => places.push(PathBuf::from(argument)),
            name => names.push(name.to_owned()),
        }
    }
    let [pitool, work] = places.try_into().ok().context(USAGE)?;
    let bench = Bench::new(pitool, work, extent)?;
    let measured = figures::measure(&bench, &names)?;
    report::table(&measured);
    if let Some(path) = json {
        std::fs::write(&path, report::json(&measured, extent))
            .with_context(|| format!("cannot write {}", path.display()))?;
        eprintln!("bench: written to {}", path.display());
    }
    Ok(())
}
