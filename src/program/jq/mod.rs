//! A jq filter as a program, without files, network or environment.
//!
//! A filter is compiled when it is first used, once. It cannot be stopped, so it runs on a thread of its own, and whoever
//! waits for it can stop waiting; one that might grow without bound runs [`apart`]. A simple one with a small input is done
//! before a thread could begin, and runs at once.

pub mod apart;
mod compile;
mod convert;
mod copies;
mod growth;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jaq_core::{Ctx, Exn, Vars};
use jaq_json::Val;
use serde_json::{Value, json as value};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use self::apart::Job;
use self::compile::{Compiled, Data, compiled};
use self::convert::{from_val, to_val};
use self::growth::Growth;
use super::item::{Item, Items};
use super::process::GRACE;
use super::thread::{self, PATIENCE};
use super::{ABORTED, Invocation, Throw, timed_out};
use crate::json;
use crate::message::ToolResult;

/// What is said of a filter that ended without an answer.
const BROKE_DOWN: &str = "The filter broke down";

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
    growth: OnceLock<Growth>,
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

/// Whoever hears the updates of a run.
trait Hearer {
    /// Nobody waits for the run any more.
    fn is_gone(&self) -> bool;

    fn hear(&mut self, update: Item);
}

/// On another thread.
impl Hearer for mpsc::Sender<Message> {
    fn is_gone(&self) -> bool {
        self.is_closed()
    }

    fn hear(&mut self, update: Item) {
        let _ = self.blocking_send(Message::Update(update));
    }
}

/// On the same thread.
impl Hearer for Items<'_> {
    fn is_gone(&self) -> bool {
        false
    }

    fn hear(&mut self, update: Item) {
        self.take(Ok(update));
    }
}

impl Filter {
    /// The filter as it was written.
    pub(crate) fn text(&self) -> &str {
        &self.code.text
    }

    pub(crate) fn new(text: String, output: JqOutput) -> Self {
        Self {
            code: Arc::new(Code::new(text)),
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
        if !self.code.growth().is_harmless(input) {
            let job = Job {
                text: &self.code.text,
                input,
                wanted,
                timeout,
            };
            if let Some(end) = apart::run(job, invocation, items).await {
                return end;
            }
        }
        let call =
            value!({"toolCallId": invocation.tool_call_id, "toolName": invocation.tool_name});
        if self.code.growth().is_done_at_once(input) {
            let run = || self.code.run(input.clone(), call, wanted, items);
            let end = catch_unwind(AssertUnwindSafe(run));
            return end.unwrap_or_else(|_| Err(Throw(BROKE_DOWN.to_owned())));
        }
        let (mut sender, mut receiver) = mpsc::channel(16);
        let code = Arc::clone(&self.code);
        let input = input.clone();
        let task = thread::hand_over(move || {
            let end = catch_unwind(AssertUnwindSafe(|| {
                code.run(input, call, wanted, &mut sender)
            }));
            let end = end.unwrap_or_else(|_| Err(Throw(BROKE_DOWN.to_owned())));
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
                    None => return Err(Throw(BROKE_DOWN.to_owned())),
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
    fn new(text: String) -> Self {
        Self {
            text,
            growth: OnceLock::new(),
            compiled: OnceLock::new(),
        }
    }

    fn growth(&self) -> Growth {
        *self.growth.get_or_init(|| Growth::of(&self.text))
    }

    fn compiled(&self) -> Result<&Compiled, &String> {
        self.compiled.get_or_init(|| compiled(&self.text)).as_ref()
    }

    /// Runs to the end, or to the point where nothing more can change the outcome.
    fn run(
        &self,
        input: Value,
        call: Value,
        wanted: Wanted,
        hearer: &mut impl Hearer,
    ) -> Result<End, Throw> {
        let filter = self
            .compiled()
            .map_err(|wrong| Throw(format!("The filter is wrong: {wrong}")))?;
        let context = Ctx::<Data>::new(&filter.lut, Vars::new([to_val(call)]));
        let mut only = None;
        for output in filter.id.run((context, to_val(input))) {
            if hearer.is_gone() {
                break;
            }
            let output = match output {
                Ok(output) => from_val(&output).map_err(Throw)?,
                Err(exception) => return Err(thrown(exception)),
            };
            match wanted {
                Wanted::Items => match item(output)? {
                    update @ Item::Update(_) => hearer.hear(update),
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
            "The filter gave something that is no item: {wrong}: {excerpt} \
             (for values that are none its manifest says \"output\": \"text\" or \"json\")"
        ))
    })
}

/// What `error` was given, as text.
fn thrown(exception: Exn<'_, Val>) -> Throw {
    let Ok(error) = exception.get_err() else {
        return Throw("The filter broke off".to_owned());
    };
    let text = match from_val(&error.into_val()) {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::program::tests::{invocation, runtime};
    use crate::stop::Stop;

    fn run(
        text: &str,
        output: JqOutput,
        input: &Value,
        timeout: Duration,
    ) -> Result<ToolResult, Throw> {
        let stop = Stop::never();
        let invocation = invocation(&stop);
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
