//! `batch.jsonl`: what the reference's agent loop did with scripted tools, replayed with native tools and hooks.
//!
//! Time is paused, so what happens 20 ms apart in a case happens in exactly that order here.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use pitool::batch::{self, Batch};
use pitool::call::{Mode, Options, Runner};
use pitool::event::{Event, Listener};
use pitool::format::{Input, InputOptions};
use pitool::hook::{Hook, HookRun, Moment};
use pitool::message::ToolResult;
use pitool::registry::Registry;
use pitool::stop::{StopLevel, Stopper};
use pitool::tool::{Declaration, Execution, ExecutionMode, Prepare, Tool, Updates};
use serde_json::{Map, Value, json};

/// Cases where pitool is different on purpose.
const DIFFERENT: [&str; 5] = [
    "batch/stop-reason/002", // pitool answers these calls: a transcript with an unanswered call is refused
    "batch/stop-reason/003",
    "batch/duplicate/003", // a second tool of one name is refused
    "batch/duplicate/004",
    "batch/duplicate/005", // an empty id is replaced, an empty name never exists
];

/// Compares what was expected with what came, as the data want it: numbers by value, keys in any order,
/// `"<volatile>"` for any whole number.
fn same(what: &str, expected: &Value, actual: &Value) -> Result<(), String> {
    let difference = |what: &str| Err(format!("{what}: expected {expected}, got {actual}"));
    match (expected, actual) {
        (Value::String(volatile), Value::Number(number))
            if volatile == "<volatile>" && number.is_u64() =>
        {
            Ok(())
        }
        (Value::Number(left), Value::Number(right)) if left.as_f64() == right.as_f64() => Ok(()),
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            let mut pairs = left.iter().zip(right).enumerate();
            pairs.try_for_each(|(index, (left, right))| {
                same(&format!("{what}/{index}"), left, right)
            })
        }
        (Value::Object(left), Value::Object(right)) if left.len() == right.len() => {
            let mut pairs = left.iter().map(|(key, left)| (key, left, right.get(key)));
            pairs.try_for_each(|(key, left, right)| match right {
                Some(right) => same(&format!("{what}/{key}"), left, right),
                None => difference(&format!("{what}/{key}")),
            })
        }
        _ if expected == actual => Ok(()),
        _ => difference(what),
    }
}

type Log = Arc<Mutex<Vec<Value>>>;

fn push(log: &Log, entry: Value) {
    log.lock().unwrap().push(entry);
}

fn take(log: &Log) -> Vec<Value> {
    std::mem::take(&mut log.lock().unwrap())
}

/// What a case observes.
#[derive(Default, Clone)]
struct Logs {
    events: Log,
    executions: Log,
    hook_calls: Log,
}

impl Listener for Logs {
    fn event(&self, event: Event<'_>) {
        let mut line: Value = serde_json::from_str(&event.to_json(Instant::now())).unwrap();
        let fields = line.as_object_mut().unwrap();
        assert!(fields.remove("atMs").is_some_and(|at| at.is_u64()));
        if fields["type"] == "turn_end" {
            fields.remove("terminate");
            fields.insert("message".into(), "<assistant message>".into());
        }
        push(&self.events, line);
    }
}

fn millis(value: &Value) -> Duration {
    Duration::from_millis(value.as_u64().unwrap_or(0))
}

fn result(value: &Value) -> ToolResult {
    serde_json::from_value(value.clone()).unwrap()
}

/// Settles after `delayMs` and reports each update after its `afterMs`, also when it has settled by then.
async fn play(script: Value, execution: Execution, logs: Logs) -> Result<ToolResult, String> {
    push(
        &logs.executions,
        json!({"toolCallId": execution.tool_call_id, "toolName": execution.tool_name, "args": execution.arguments}),
    );
    for update in script["updates"].as_array().into_iter().flatten() {
        report_later(
            execution.updates.clone(),
            millis(&update["afterMs"]),
            update["partial"].clone(),
        );
    }
    tokio::time::sleep(millis(&script["delayMs"])).await;
    if let Some(message) = script["throw"].as_str() {
        return Err(message.to_owned());
    }
    let mut result = result(&script["result"]);
    if script["echoArgs"] == true {
        result.details = Some(json!({"args": execution.arguments}));
    }
    Ok(result)
}

fn report_later(updates: Updates, after: Duration, partial: Value) {
    if after.is_zero() {
        updates.report(partial);
        return;
    }
    tokio::spawn(async move {
        tokio::time::sleep(after).await;
        updates.report(partial);
    });
}

fn tool(manifest: &Value, logs: &Logs) -> Tool {
    let name = manifest["name"].as_str().unwrap();
    let declaration = Declaration::new(name, "", manifest["parameters"].clone());
    let scripts: VecDeque<Value> = match &manifest["scripts"] {
        Value::Array(scripts) => scripts.iter().cloned().collect(),
        _ => VecDeque::new(),
    };
    let (scripts, only, logs) = (
        Mutex::new(scripts),
        manifest["script"].clone(),
        logs.clone(),
    );
    let mut tool = Tool::native(declaration, move |execution| {
        let script = scripts
            .lock()
            .unwrap()
            .pop_front()
            .unwrap_or_else(|| only.clone());
        play(script, execution, logs.clone())
    });
    tool.execution_mode = match manifest["executionMode"].as_str() {
        None => None,
        Some("sequential") => Some(ExecutionMode::Sequential),
        Some("parallel") => Some(ExecutionMode::Parallel),
        Some(other) => panic!("unknown executionMode {other}"),
    };
    let how = manifest["prepareArguments"].clone();
    if !how.is_null() {
        tool.prepare_arguments = Some(Prepare::Native(Arc::new(move |arguments| {
            std::future::ready(prepare(&how, arguments)).boxed()
        })));
    }
    tool
}

fn prepare(how: &Value, arguments: Value) -> Result<Value, String> {
    let (what, with) = how.as_object().unwrap().iter().next().unwrap();
    match what.as_str() {
        "same" => Ok(arguments),
        "return" => Ok(with.clone()),
        "throw" => Err(with.as_str().unwrap().to_owned()),
        "rename" => {
            let rename = |(key, value): (String, Value)| {
                let to = with.get(&key).and_then(Value::as_str).map(str::to_owned);
                (to.unwrap_or(key), value)
            };
            let Value::Object(fields) = arguments else {
                return Ok(arguments);
            };
            Ok(fields.into_iter().map(rename).collect::<Map<_, _>>().into())
        }
        "parseJson" => {
            let mut arguments = arguments;
            for key in with.as_array().unwrap() {
                let slot = &mut arguments[key.as_str().unwrap()];
                if let Some(text) = slot.as_str() {
                    *slot = serde_json::from_str(text).unwrap();
                }
            }
            Ok(arguments)
        }
        other => panic!("unknown prepareArguments {other}"),
    }
}

/// The hook of a case: it logs its call, then does what the first entry for this tool (and call) says.
fn hook(moment: Moment, entries: &Value, logs: &Logs) -> Hook {
    let (entries, logs) = (entries.as_array().unwrap().clone(), logs.clone());
    let run = move |input: Value| {
        let call = &input["toolCall"];
        let entry = entries.iter().find(|entry| {
            entry["tool"] == call["name"] && entry.get("call").is_none_or(|id| *id == call["id"])
        });
        let entry = entry.cloned().unwrap_or_default();
        push(&logs.hook_calls, hook_call(moment, &input));
        async move {
            tokio::time::sleep(millis(&entry["delayMs"])).await;
            if let Some(message) = entry["throw"].as_str() {
                return Err(message.to_owned());
            }
            Ok(match moment {
                Moment::After => entry.get("return").cloned(),
                Moment::Before => entry.as_object().map(|fields| {
                    let says = ["block", "reason", "terminate"];
                    let says = says.iter().filter_map(|key| fields.get_key_value(*key));
                    says.map(|(key, value)| (key.clone(), value.clone()))
                        .collect::<Map<_, _>>()
                        .into()
                }),
            })
        }
        .boxed()
    };
    Hook {
        moment,
        tools: None,
        run: HookRun::Native(Arc::new(run)),
        source: None,
    }
}

fn hook_call(moment: Moment, input: &Value) -> Value {
    let mut call = json!({
        "hook": match moment { Moment::Before => "before", Moment::After => "after" },
        "toolCallId": input["toolCall"]["id"],
        "toolName": input["toolCall"]["name"],
        "args": input["args"],
    });
    if moment == Moment::After {
        call["result"] = input["result"].clone();
        call["isError"] = input["isError"].clone();
    }
    call
}

fn registry(case: &Value, logs: &Logs) -> Registry {
    let mut registry = Registry::new();
    for manifest in case["tools"].as_array().unwrap() {
        registry.register(tool(manifest, logs)).unwrap();
    }
    for (moment, key) in [
        (Moment::Before, "beforeToolCall"),
        (Moment::After, "afterToolCall"),
    ] {
        if let Some(entries) = case.get(key) {
            registry.add_hook(hook(moment, entries, logs));
        }
    }
    registry
}

/// Replays a case: what differs from the reference, if anything.
async fn replay(case: &Value) -> Result<(), String> {
    let logs = Logs::default();
    let options = Options {
        mode: if case["toolExecution"] == "sequential" {
            Mode::Sequential
        } else {
            Mode::Parallel
        },
        ..Options::default()
    };
    let runner = Runner::new(Arc::new(registry(case, &logs)), options);
    let message = case["message"].to_string();
    let turn = Input::new(message.as_bytes(), InputOptions::default()).next();
    let stopper = Stopper::new();
    let stop = stopper.stop();
    match case["abortAtMs"].as_u64() {
        None => {}
        Some(0) => stopper.raise(StopLevel::Stopping),
        Some(at) => {
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(at)).await;
                stopper.raise(StopLevel::Stopping);
            });
        }
    }
    let turn = turn.transpose().map_err(|error| error.to_string())?;
    let calls = turn.as_ref().map_or(&[][..], |turn| &turn.calls);
    let stop_reason = turn.as_ref().and_then(|turn| turn.stop_reason.as_deref());
    let batch = Batch {
        message: &case["message"],
        calls,
        stop_reason,
        past: pitool::past::Past::None,
    };
    let answered = batch::run(&runner, batch, &logs, &stop).await;

    let expect = &case["expect"];
    same("events", &expect["events"], &take(&logs.events).into())?;
    same(
        "messages",
        &expect["messages"],
        &serde_json::to_value(&answered.messages).unwrap(),
    )?;
    same(
        "executions",
        &expect["executions"],
        &take(&logs.executions).into(),
    )?;
    same(
        "hookCalls",
        &expect["hookCalls"],
        &take(&logs.hook_calls).into(),
    )?;
    if answered.outcomes.is_empty() {
        // The reference's run ends without calls, but there is no batch that could have asked for it.
        return same("terminate", &false.into(), &answered.terminate.into());
    }
    same(
        "terminate",
        &expect["terminate"],
        &answered.terminate.into(),
    )
}

#[test]
fn batches_are_run_as_the_reference_runs_them() {
    let mut failures = BTreeMap::new();
    let mut replayed = 0;
    for line in include_str!("batch.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let id = case["id"].as_str().unwrap();
        if DIFFERENT.contains(&id) || case["jsOnly"] == true {
            continue;
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        replayed += 1;
        if let Err(difference) = runtime.block_on(replay(&case)) {
            failures.insert(id.to_owned(), difference);
        }
    }
    assert_eq!(replayed, 162);
    assert!(
        failures.is_empty(),
        "{} cases differ: {failures:#?}",
        failures.len()
    );
}
