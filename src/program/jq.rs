//! A jq filter as a program: runs inside this process, without files, network or environment.
//!
//! A filter is compiled when it is first used, once. It cannot be stopped, so it runs on a thread of its own, and whoever
//! waits for it can stop waiting.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jaq_core::data::JustLut;
use jaq_core::load::{self, Arena, File, Loader};
use jaq_core::native::{Fun, bome, run, v};
use jaq_core::{Compiler, Ctx, Vars, compile};
use jaq_json::{Map as JqMap, Num, Val, ValR};
use serde::Deserialize;
use serde_json::{Map, Number, Value, json as value};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::item::{Item, Items};
use super::process::GRACE;
use super::thread::{self, PATIENCE};
use super::{ABORTED, Invocation, Throw, timed_out};
use crate::json;
use crate::message::ToolResult;

type Data = JustLut<Val>;
type Compiled = jaq_core::Filter<Data>;

/// Natives that reach out of the filter: the process, its environment, its stderr, the machine's time zone.
const REMOVED: [&str; 9] = [
    "env",
    "halt",
    "halt_error",
    "stderr",
    "stderr_empty",
    "debug",
    "debug_empty",
    "localtime",
    "strflocaltime",
];

/// A filter that can run.
#[derive(Debug)]
pub(crate) struct Filter {
    code: Arc<Code>,
    output: JqOutput,
}

/// What the outputs of a filter mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JqOutput {
    Items,
    Text,
    Json,
}

/// What is asked of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// Items until the first result.
    Items,
    /// At most one value.
    Value,
}

struct Code {
    text: String,
    compiled: OnceLock<Result<Compiled, String>>,
}

impl fmt::Debug for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(formatter)
    }
}

/// What a run says.
#[derive(Debug)]
enum Message {
    Update(Item),
    /// The end: the result, the one value, or nothing.
    End(Result<End, Throw>),
}

#[derive(Debug)]
enum End {
    Result(Item),
    Value(Value),
    Nothing,
}

impl Filter {
    pub(crate) fn new(text: String, output: JqOutput) -> Self {
        let code = Code {
            text,
            compiled: OnceLock::new(),
        };
        Self {
            code: Arc::new(code),
            output,
        }
    }

    /// Says what is wrong with the filter's text, and where.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.code.compiled().map(|_| ()).map_err(Clone::clone)
    }

    pub(crate) async fn execute(
        &self,
        arguments: &Value,
        timeout: Duration,
        invocation: &Invocation<'_>,
        update: &(dyn Fn(Value) + Send + Sync),
    ) -> Result<ToolResult, Throw> {
        let mut items = Items::new(update);
        let wanted = match self.output {
            JqOutput::Items => Wanted::Items,
            JqOutput::Text | JqOutput::Json => Wanted::Value,
        };
        match self
            .run(arguments, wanted, timeout, invocation, &mut items)
            .await?
        {
            End::Result(result) => {
                items.take(Ok(result));
                items.finish("The filter")
            }
            End::Value(Value::String(text)) if self.output == JqOutput::Text => {
                Ok(ToolResult::text(text))
            }
            End::Value(value) => {
                let text = ToolResult::text(json::compact(&value));
                let structured_content = (self.output == JqOutput::Json).then_some(value);
                Ok(ToolResult {
                    structured_content,
                    ..text
                })
            }
            End::Nothing => Err(Throw("The filter gave no result".to_owned())),
        }
    }

    pub(crate) async fn answer(
        &self,
        input: &Value,
        timeout: Duration,
        invocation: &Invocation<'_>,
    ) -> Result<Option<Value>, Throw> {
        let ignore = |_| {};
        let mut items = Items::new(&ignore);
        match self
            .run(input, Wanted::Value, timeout, invocation, &mut items)
            .await?
        {
            End::Value(value) => Ok(Some(value)),
            End::Result(_) | End::Nothing => Ok(None),
        }
    }

    async fn run(
        &self,
        input: &Value,
        wanted: Wanted,
        timeout: Duration,
        invocation: &Invocation<'_>,
        items: &mut Items<'_>,
    ) -> Result<End, Throw> {
        let (sender, mut receiver) = mpsc::channel(16);
        let call =
            value!({"toolCallId": invocation.tool_call_id, "toolName": invocation.tool_name});
        let code = Arc::clone(&self.code);
        let input = input.clone();
        let task = thread::hand_over(move || {
            let end = catch_unwind(AssertUnwindSafe(|| code.run(input, call, wanted, &sender)));
            let end = end.unwrap_or_else(|_| Err(Throw("The filter broke down".to_owned())));
            let _ = sender.blocking_send(Message::End(end));
        });
        let start = Instant::now();
        let mut deadline = start.checked_add(timeout);
        let mut impatient = Some(start + PATIENCE);
        let mut stopped = std::pin::pin!(invocation.stop.stopped());
        let mut stopped_now = std::pin::pin!(invocation.stop.stopped_now());
        let mut is_stopping = false;
        loop {
            let wake = [impatient, deadline].into_iter().flatten().min();
            tokio::select! {
                biased;
                message = receiver.recv() => match message {
                    Some(Message::Update(update)) => items.take(Ok(update)),
                    Some(Message::End(end)) => {
                        task.done();
                        return end;
                    }
                    None => return Err(Throw("The filter broke down".to_owned())),
                },
                () = &mut stopped_now => return Err(aborted(items)),
                () = &mut stopped, if !is_stopping => {
                    is_stopping = true;
                    deadline = Some(Instant::now() + GRACE);
                }
                () = sleep_until(wake.unwrap_or(start)), if wake.is_some() => {
                    if deadline <= Some(Instant::now()) && deadline.is_some() {
                        return Err(if is_stopping { aborted(items) } else { late(items, timeout) });
                    }
                    task.hurry();
                    // Asks again only while it waits for a thread.
                    impatient = task.is_waiting().then(|| Instant::now() + PATIENCE);
                }
            }
        }
    }
}

fn aborted(items: &Items<'_>) -> Throw {
    so_far(items, ABORTED)
}

fn late(items: &Items<'_>, timeout: Duration) -> Throw {
    so_far(items, &timed_out("The filter", timeout))
}

fn so_far(items: &Items<'_>, sentence: &str) -> Throw {
    let text = items.text_so_far();
    Throw(if text.is_empty() {
        sentence.to_owned()
    } else {
        format!("{text}\n\n{sentence}")
    })
}

impl Code {
    fn compiled(&self) -> Result<&Compiled, &String> {
        self.compiled.get_or_init(|| compiled(&self.text)).as_ref()
    }

    /// Runs to the end, or to the point where nothing more can change the outcome.
    fn run(
        &self,
        input: Value,
        call: Value,
        wanted: Wanted,
        messages: &mpsc::Sender<Message>,
    ) -> Result<End, Throw> {
        let filter = self
            .compiled()
            .map_err(|wrong| Throw(format!("The filter is wrong: {wrong}")))?;
        let context = Ctx::<Data>::new(&filter.lut, Vars::new([to_val(call)]));
        let mut only = None;
        for output in filter.id.run((context, to_val(input))) {
            if messages.is_closed() {
                break;
            }
            let output = match output {
                Ok(output) => from_val(&output, 0).map_err(Throw)?,
                Err(exception) => return Err(thrown(exception)),
            };
            match wanted {
                Wanted::Items => match item(output)? {
                    update @ Item::Update(_) => {
                        let _ = messages.blocking_send(Message::Update(update));
                    }
                    result @ Item::Result(_) => return Ok(End::Result(result)),
                },
                Wanted::Value if only.is_some() => {
                    return Err(Throw("The filter gave more than one value".to_owned()));
                }
                Wanted::Value => only = Some(output),
            }
        }
        Ok(only.map_or(End::Nothing, End::Value))
    }
}

fn item(output: Value) -> Result<Item, Throw> {
    let excerpt: String = json::compact(&output).chars().take(100).collect();
    Item::read(output).map_err(|wrong| {
        Throw(format!(
            "The filter gave something that is no item: {wrong}: {excerpt}"
        ))
    })
}

/// What `error` was given, as text.
fn thrown(exception: jaq_core::Exn<'_, Val>) -> Throw {
    let Ok(error) = exception.get_err() else {
        return Throw("The filter broke off".to_owned());
    };
    let text = match from_val(&error.into_val(), 0) {
        Ok(Value::String(text)) => text,
        Ok(value) => json::compact(&value),
        Err(wrong) => wrong,
    };
    Throw(if text.is_empty() {
        "The filter failed without a message".to_owned()
    } else {
        text
    })
}

fn to_val(value: Value) -> Val {
    Val::deserialize(value).expect("every JSON value is one of jq's")
}

/// A value of jq as JSON: integers of up to 64 bits keep every digit, keys their order.
fn from_val(val: &Val, depth: usize) -> Result<Value, String> {
    if depth > json::MAX_DEPTH {
        return Err(format!(
            "The filter gave a value nested more than {} levels deep",
            json::MAX_DEPTH
        ));
    }
    Ok(match val {
        Val::Null => Value::Null,
        Val::Bool(flag) => Value::Bool(*flag),
        Val::Num(number) => from_num(number),
        Val::BStr(bytes) | Val::TStr(bytes) => String::from_utf8_lossy(bytes).into_owned().into(),
        Val::Arr(items) => items
            .iter()
            .map(|item| from_val(item, depth + 1))
            .collect::<Result<_, _>>()?,
        Val::Obj(entries) => Value::Object(from_entries(entries, depth + 1)?),
    })
}

fn from_entries(entries: &JqMap<Val, Val>, depth: usize) -> Result<Map<String, Value>, String> {
    entries
        .iter()
        .map(|(key, value)| match key {
            Val::BStr(key) | Val::TStr(key) => Ok((
                String::from_utf8_lossy(key).into_owned(),
                from_val(value, depth)?,
            )),
            other => Err(format!(
                "The filter gave an object with a key that is no string: {other}"
            )),
        })
        .collect()
}

/// JSON has no number beyond those of a double, and no NaN; a whole number is an integer, as in JavaScript.
fn from_num(number: &Num) -> Value {
    let float = match number {
        Num::Int(int) => return (*int as i64).into(),
        Num::BigInt(int) => {
            let digits = int.to_string();
            match (digits.parse::<i64>(), digits.parse::<u64>()) {
                (Ok(int), _) => return int.into(),
                (_, Ok(int)) => return int.into(),
                _ => digits.parse().unwrap_or(f64::NAN),
            }
        }
        Num::Float(float) => *float,
        Num::Dec(digits) => digits.parse().unwrap_or(f64::NAN),
    };
    if float.is_nan() {
        return Value::Null;
    }
    whole(float).map_or_else(
        || Number::from_f64(float.clamp(f64::MIN, f64::MAX)).map_or(Value::Null, Value::Number),
        Value::from,
    )
}

/// The integer that a float stands for, where floats still count by ones.
fn whole(float: f64) -> Option<i64> {
    const MOST: f64 = 9_007_199_254_740_992.0;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::float_cmp,
        reason = "it has no fraction and is small"
    )]
    (float.trunc() == float && float.abs() <= MOST).then_some(float as i64)
}

/// Compiles a filter; the error says where and what.
fn compiled(text: &str) -> Result<Compiled, String> {
    let is_kept = |name: &str| !REMOVED.contains(&name);
    let defs = jaq_core::defs()
        .chain(jaq_std::defs())
        .chain(jaq_json::defs())
        .filter(|def| is_kept(def.name));
    let funs = jaq_core::funs::<Data>()
        .chain(jaq_std::funs())
        .chain(jaq_json::funs())
        .filter(|(name, ..)| is_kept(name) && *name != "fromjson")
        .chain([from_json()]);
    let arena = Arena::default();
    let modules = Loader::new(defs)
        .load(
            &arena,
            File {
                code: text,
                path: (),
            },
        )
        .map_err(|errors| load_error(text, errors))?;
    load::import(&modules, |_| Err("there are no modules here".to_owned()))
        .map_err(|errors| load_error(text, errors))?;
    Compiler::default()
        .with_funs(funs)
        .with_global_vars(["$call"])
        .compile(modules)
        .map_err(|errors| compile_error(text, errors))
}

/// `fromjson` on text that a model may have written: no depth of it may overflow the stack.
fn from_json() -> Fun<Data> {
    run(("fromjson", v(0), |cv| bome(parsed(&cv.1))))
}

fn parsed(text: &Val) -> ValR {
    let wrong = |wrong: &str| jaq_json::Error::str(format!("cannot parse as JSON: {wrong}"));
    let value =
        json::parse(&text.try_as_utf8_bytes_owned()?).map_err(|error| wrong(&error.to_string()))?;
    if json::depth(&value) > json::MAX_DEPTH {
        return Err(wrong(&format!("more than {} levels deep", json::MAX_DEPTH)));
    }
    Ok(to_val(value))
}

fn load_error(text: &str, errors: load::Errors<&str, ()>) -> String {
    let first = errors.into_iter().next();
    match first.map(|(_, error)| error) {
        Some(load::Error::Lex(errors)) => match errors.into_iter().next() {
            Some((expected, found)) => unexpected(text, expected.as_str(), found),
            None => "it cannot be read".to_owned(),
        },
        Some(load::Error::Parse(errors)) => match errors.into_iter().next() {
            Some((expected, found)) => unexpected(text, expected.as_str(), found),
            None => "it cannot be parsed".to_owned(),
        },
        Some(load::Error::Io(errors)) => match errors.into_iter().next() {
            Some((path, _)) => {
                format!(
                    "{}: cannot load {path:?}: there are no modules here",
                    place(text, path)
                )
            }
            None => "there are no modules here".to_owned(),
        },
        None => "it cannot be read".to_owned(),
    }
}

fn unexpected(text: &str, expected: &str, found: &str) -> String {
    let found_words: String = found.chars().take(20).take_while(|c| *c != '\n').collect();
    let found_words = if found.is_empty() {
        "the end".to_owned()
    } else {
        format!("`{found_words}`")
    };
    format!(
        "{}: expected {expected}, found {found_words}",
        place(text, found)
    )
}

fn compile_error(text: &str, errors: compile::Errors<&str, ()>) -> String {
    let first = errors.into_iter().flat_map(|(_, errors)| errors).next();
    match first {
        Some((name, compile::Undefined::Filter(arity))) => {
            format!("{}: no filter is named {name}/{arity}", place(text, name))
        }
        Some((name, undefined)) => {
            format!(
                "{}: no {} is named {name}",
                place(text, name),
                undefined.as_str()
            )
        }
        None => "it cannot be compiled".to_owned(),
    }
}

/// Where a part of the text stands.
fn place(text: &str, part: &str) -> String {
    let offset = (part.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before
        .rsplit('\n')
        .next()
        .unwrap_or_default()
        .chars()
        .count()
        + 1;
    format!("line {line} column {column}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::stop::Stop;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    }

    fn run(
        text: &str,
        output: JqOutput,
        input: &Value,
        timeout: Duration,
    ) -> Result<ToolResult, Throw> {
        let stop = Stop::never();
        let invocation = Invocation {
            tool_call_id: "call-1",
            tool_name: "tool",
            timeout: None,
            socket: None,
            sandbox: None,
            stop: &stop,
            notice: &|_| {},
        };
        let filter = Filter::new(text.to_owned(), output);
        runtime().block_on(filter.execute(input, timeout, &invocation, &|_| {}))
    }

    #[track_caller]
    fn value(text: &str, input: &Value, expected: &Value) {
        let result = run(text, JqOutput::Json, input, super::super::JQ_TIMEOUT).unwrap();
        assert_eq!(result.structured_content, Some(expected.clone()), "{text}");
        assert_eq!(result.joined_text(), json::compact(expected), "{text}");
    }

    #[track_caller]
    fn throws(text: &str, expected: &str) {
        let thrown = run(text, JqOutput::Json, &json!(null), super::super::JQ_TIMEOUT).unwrap_err();
        assert_eq!(thrown.0, expected, "{text}");
    }

    #[track_caller]
    fn wrong(text: &str, expected: &str) {
        let wrong = Filter::new(text.to_owned(), JqOutput::Items)
            .check()
            .unwrap_err();
        assert_eq!(wrong, expected, "{text}");
    }

    #[test]
    fn values_keep_digits_and_order() {
        let input = json!({"z": 18_446_744_073_709_551_615_u64, "a": [-9_223_372_036_854_775_808_i64, 0.1, null, true, "é\u{0}"]});
        value(".", &input, &input);
        value(
            ".a + 1",
            &json!({"a": 9_007_199_254_740_992_u64}),
            &json!(9_007_199_254_740_993_u64),
        );
        value(
            "{b: 1, a: 2} + {c: 3}",
            &json!(null),
            &json!({"b": 1, "a": 2, "c": 3}),
        );
        value("6 / 2", &json!(null), &json!(3));
        value(
            "[nan, infinite, -infinite]",
            &json!(null),
            &json!([null, f64::MAX, f64::MIN]),
        );
        value("tojson | fromjson", &json!({"a": [1]}), &json!({"a": [1]}));
        value(
            "18446744073709551616",
            &json!(null),
            &json!(18_446_744_073_709_551_616_f64),
        );
    }

    #[test]
    fn text_is_a_string_or_printed() {
        let text = |text: &str| {
            run(
                text,
                JqOutput::Text,
                &json!({"a": "x"}),
                super::super::JQ_TIMEOUT,
            )
        };
        assert_eq!(text(".a"), Ok(ToolResult::text("x")));
        assert_eq!(text("."), Ok(ToolResult::text(r#"{"a":"x"}"#)));
    }

    #[test]
    fn failures_are_in_words() {
        throws("error(\"why\")", "why");
        throws("error({a: 1})", r#"{"a":1}"#);
        throws("error(\"\")", "The filter failed without a message");
        throws(
            ".a.b | keys",
            "cannot use null as iterable (array or object)",
        );
        throws("empty", "The filter gave no result");
        throws("1, 2", "The filter gave more than one value");
        throws(
            "{(1 | tostring): 1} | {a: {(1): 2}}",
            "The filter gave an object with a key that is no string: 1",
        );
        throws(
            "reduce range(1000) as $_ (0; [.])",
            "The filter gave a value nested more than 512 levels deep",
        );
        throws(
            "\"[\" * 100000 + \"]\" * 100000 | fromjson",
            "cannot parse as JSON: more than 512 levels deep",
        );
    }

    #[test]
    fn nothing_outside_can_be_reached() {
        wrong("env", "line 1 column 1: no filter is named env/0");
        wrong("$ENV", "line 1 column 1: no variable is named $ENV");
        wrong("1 | halt", "line 1 column 5: no filter is named halt/0");
        wrong(
            "halt_error",
            "line 1 column 1: no filter is named halt_error/0",
        );
        wrong("debug", "line 1 column 1: no filter is named debug/0");
        wrong("stderr", "line 1 column 1: no filter is named stderr/0");
        wrong("input", "line 1 column 1: no filter is named input/0");
        wrong(
            "localtime",
            "line 1 column 1: no filter is named localtime/0",
        );
        wrong(
            "import \"a\" as a; .",
            "line 1 column 9: cannot load \"a\": there are no modules here",
        );
        wrong(
            "import \"a\" as $a; .",
            "line 1 column 9: cannot load \"a\": there are no modules here",
        );
        wrong(
            "include \"a\"; .",
            "line 1 column 10: cannot load \"a\": there are no modules here",
        );
    }

    #[test]
    fn wrong_text_names_its_place() {
        wrong(".a |", "line 1 column 5: expected term, found the end");
        wrong(
            "{a: 1",
            "line 1 column 6: expected closing brace, found the end",
        );
        wrong(
            ".a\n| nosuch(1)",
            "line 2 column 3: no filter is named nosuch/1",
        );
        wrong("\"é\" | $x", "line 1 column 7: no variable is named $x");
        assert_eq!(
            Filter::new("[.a[] | select(. > 1)]".to_owned(), JqOutput::Items).check(),
            Ok(())
        );
    }

    #[test]
    fn endless_filters_are_abandoned() {
        let short = Duration::from_millis(100);
        let late = "The filter timed out after 0.1 seconds";
        for endless in [
            "def f: f; f",
            "last(repeat(1))",
            "[range(infinite) | empty]",
            "def f: f; f",
        ] {
            let thrown = run(endless, JqOutput::Json, &json!(1), short).unwrap_err();
            assert_eq!(thrown.0, late, "{endless}");
        }
        // More than there are processors hang by now: the next one still gets a thread.
        value(".", &json!(1), &json!(1));
    }

    #[test]
    fn first_result_ends_an_endless_filter() {
        let result = run(
            "repeat({details: 1})",
            JqOutput::Items,
            &json!(1),
            super::super::JQ_TIMEOUT,
        );
        assert_eq!(result.unwrap().details, Some(json!(1)));
    }
}
