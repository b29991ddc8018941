//! The points of hygiene, a row each: what is asked, and what the observations answer.

use super::{Finding, Kind, Observations, Run, Verdict};
use crate::program::{Ending, OutputKind, Sighting};

/// One point.
pub struct Check {
    /// The word that stands for it.
    pub name: &'static str,
    judge: fn(&Observations, &Sighting) -> Judgement,
    /// What is said of a tool that has no process.
    without_process: Option<fn(&Observations) -> Judgement>,
}

/// All points, in the order in which they are told.
pub const CHECKS: [Check; 10] = [
    Check::of_all("ends", |all, _| ends(all), ends),
    Check::of_process("exit-status", exit_status),
    Check::of_process("reads-stdin", reads_stdin),
    Check::of_process("closed-stdin", closed_stdin),
    Check::of_process("stops", stops),
    Check::of_process("leaves-children", leaves_children),
    Check::of_process("after-result", after_result),
    Check::of_process("utf-8", utf_8),
    Check::of_process("cap", cap),
    Check::of_all("same-answer", |all, _| same_answer(all), same_answer),
];

/// What the observations say about one point.
struct Judgement {
    verdict: Verdict,
    seen: String,
    advice: Option<&'static str>,
}

impl Judgement {
    fn ok(seen: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Ok,
            seen: seen.into(),
            advice: None,
        }
    }

    fn wrong(seen: impl Into<String>, advice: &'static str) -> Self {
        Self {
            verdict: Verdict::Wrong,
            seen: seen.into(),
            advice: Some(advice),
        }
    }

    fn not_applicable(seen: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::NotApplicable,
            ..Self::ok(seen)
        }
    }
}

impl Check {
    const fn of_process(
        name: &'static str,
        judge: fn(&Observations, &Sighting) -> Judgement,
    ) -> Self {
        Self {
            name,
            judge,
            without_process: None,
        }
    }

    const fn of_all(
        name: &'static str,
        judge: fn(&Observations, &Sighting) -> Judgement,
        without_process: fn(&Observations) -> Judgement,
    ) -> Self {
        Self {
            name,
            judge,
            without_process: Some(without_process),
        }
    }

    pub(super) fn finding(&self, all: &Observations) -> Finding {
        let judgement = match (&all.first.sighting, self.without_process) {
            (Some(seen), _) => (self.judge)(all, seen),
            (None, Some(judge)) => judge(all),
            (None, None) => Judgement::not_applicable(no_process(all)),
        };
        Finding {
            check: self.name,
            verdict: judgement.verdict,
            seen: judgement.seen,
            advice: judgement.advice,
        }
    }
}

fn no_process(all: &Observations) -> &'static str {
    match all.kind {
        Kind::NoProcess => "no process of its own",
        Kind::Process { .. } => "its process did not start",
    }
}

fn ends(all: &Observations) -> Judgement {
    let took = all.first.took.as_millis();
    match all.first.sighting.as_ref().map(|seen| seen.ending) {
        Some(Ending::Timeout) => Judgement::wrong(
            last_line(&all.first),
            "let it end by itself, or give it more time: timeoutMs, --timeout",
        ),
        None if matches!(all.kind, Kind::Process { .. }) => Judgement::wrong(
            last_line(&all.first),
            "make the program one that can be started",
        ),
        Some(Ending::Itself | Ending::Stop | Ending::Output) | None => {
            Judgement::ok(format!("after {took} ms"))
        }
    }
}

/// The sentence that a failure ends with.
fn last_line(run: &Run) -> String {
    let text = run.outcome.result.joined_text();
    text.lines().last().unwrap_or_default().to_owned()
}

fn exit_status(all: &Observations, seen: &Sighting) -> Judgement {
    let code = match &seen.exit {
        _ if seen.ending != Ending::Itself => {
            return Judgement::not_applicable("it did not end by itself");
        }
        Err(signal) => {
            return Judgement::wrong(
                format!("killed by {signal}"),
                "a crash tells the model nothing: catch it, say why on stderr, exit with a code",
            );
        }
        Ok(code) => format!("exit code {code}"),
    };
    let printed_nothing = seen.stdout.bytes == 0 && seen.stderr.bytes == 0;
    match (seen.exit_is_ok, seen.has_result) {
        (false, true) if seen.output != OutputKind::Text => Judgement::wrong(
            format!("{code} after a result, which is lost but for its text"),
            "print \"isError\": true and exit with 0, or name the code in okExitCodes",
        ),
        (false, _) if printed_nothing => Judgement::wrong(
            format!("{code} and not a word"),
            "say on stderr why it failed: the model reads it",
        ),
        (true, false) if all.first.outcome.is_error => Judgement::wrong(
            format!("{code} and no result"),
            "print a result, or exit with another code and say why on stderr",
        ),
        (true, false) if seen.stderr.bytes > 0 => Judgement::wrong(
            format!(
                "{code}, nothing on stdout and {} on stderr",
                count(seen.stderr.bytes, "byte")
            ),
            "exit with another code if it failed; what the model shall read belongs on stdout",
        ),
        _ => Judgement::ok(code),
    }
}

fn reads_stdin(all: &Observations, seen: &Sighting) -> Judgement {
    let has_arguments = all
        .arguments
        .as_object()
        .is_some_and(|given| !given.is_empty());
    let Kind::Process { has_placeholders } = all.kind else {
        return Judgement::not_applicable(no_process(all));
    };
    match seen.input {
        None => Judgement::not_applicable("its manifest gives it none"),
        Some((_, 0)) if has_arguments && !has_placeholders => Judgement::wrong(
            "it does not, and its command has no placeholder: no argument reaches it",
            "read the JSON line on stdin, or write {NAME} in the command",
        ),
        Some((_, 0)) => Judgement::ok("it does not"),
        Some((given, read)) => Judgement::ok(format!("{read} of {given} bytes")),
    }
}

fn closed_stdin(all: &Observations, _: &Sighting) -> Judgement {
    let Some(seen) = all
        .without_stdin
        .as_ref()
        .and_then(|run| run.sighting.as_ref())
    else {
        return Judgement::not_applicable(if all.ends() {
            "its manifest gives it no stdin"
        } else {
            "it does not end anyway"
        });
    };
    match (&seen.exit, seen.ending) {
        (_, Ending::Timeout) => Judgement::wrong(
            "does not end when its stdin is empty",
            "stop at the end of the input instead of waiting for more",
        ),
        (Err(signal), Ending::Itself) => Judgement::wrong(
            format!("killed by {signal} when its stdin is empty"),
            "treat an empty stdin as missing arguments: say so on stderr, exit with a code",
        ),
        (Ok(code), _) => Judgement::ok(format!("exit code {code}")),
        (Err(signal), _) => Judgement::ok(format!("ended by {signal}")),
    }
}

fn stops(all: &Observations, first: &Sighting) -> Judgement {
    let midway = all.stopped.as_ref().and_then(|run| run.sighting.as_ref());
    let Some(seen) = midway.or((!all.ends()).then_some(first)) else {
        return Judgement::not_applicable("done too soon to be stopped");
    };
    match (seen.stopped_after, &seen.exit) {
        (None, _) => Judgement::not_applicable("done before it was told to"),
        (Some(_), Err(signal)) if signal == "SIGKILL" => Judgement::wrong(
            "ignored SIGTERM for 2 s and was killed",
            "let SIGTERM end it: no `trap ''`, and `exec` or `wait` in a shell that starts a program",
        ),
        (Some(time), _) => Judgement::ok(format!("{} ms after SIGTERM", time.as_millis())),
    }
}

fn leaves_children(all: &Observations, _: &Sighting) -> Judgement {
    let left_group: Vec<&str> = all
        .sightings()
        .flat_map(|seen| seen.left_group.iter().map(String::as_str))
        .collect();
    let advice = "wait for what it starts, or end it before it exits";
    if let Some(name) = left_group.first() {
        return Judgement::wrong(format!("left its group and ran on: {name}"), advice);
    }
    if all
        .sightings()
        .any(|seen| seen.left_running || seen.output_held)
    {
        return Judgement::wrong("a process that it started ran on and was stopped", advice);
    }
    Judgement::ok("none")
}

fn after_result(_: &Observations, seen: &Sighting) -> Judgement {
    match seen.after_result {
        0 => Judgement::ok("nothing"),
        bytes => Judgement::wrong(
            format!(
                "{} after its result, which nobody reads",
                count(bytes, "byte")
            ),
            "print the result last; what comes before it is an update with \"type\": \"update\"",
        ),
    }
}

fn utf_8(_: &Observations, seen: &Sighting) -> Judgement {
    let advice = "print UTF-8 (LANG=C.UTF-8), or say in `output` that it is an image";
    if seen.stdout.is_invalid && seen.output != OutputKind::Image {
        return Judgement::wrong("bytes on stdout that are none", advice);
    }
    if seen.stderr.is_invalid {
        return Judgement::wrong("bytes on stderr that are none", advice);
    }
    Judgement::ok("all of it")
}

fn cap(_: &Observations, seen: &Sighting) -> Judgement {
    let advice = "print less: take a limit and an offset as arguments, or raise maxOutputBytes";
    let printed = format!(
        "{} and {}",
        count(seen.stdout.bytes, "byte"),
        count(seen.stdout.lines, "line break")
    );
    if seen.ending == Ending::Output {
        return Judgement::wrong("more than 32 MiB, which are never taken", advice);
    }
    if seen.is_cut {
        return Judgement::wrong(
            format!("{printed}, of which the model gets the end"),
            advice,
        );
    }
    Judgement::ok(printed)
}

fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

fn same_answer(all: &Observations) -> Judgement {
    let Some(second) = &all.second else {
        return Judgement::not_applicable("there was no answer");
    };
    let answer = |run: &Run| (run.outcome.is_error, run.outcome.result.clone());
    if answer(&all.first) == answer(second) {
        return Judgement::ok("twice the same");
    }
    Judgement::wrong(
        "another one the second time",
        "leave out times and random names; if the answer has to differ, --skip same-answer",
    )
}
