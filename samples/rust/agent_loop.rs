//! An agent in one file: tools that are async functions of its own, a sink for events, and the loop.
//!
//! `cargo run --example agent_loop` plays it against recorded answers of a model, so that nothing else is needed. An
//! agent of yours asks a real one in [`Model::answer`]; all the rest stays.

use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pitool::batch::{self, Batch};
use pitool::call::{Options, Runner};
use pitool::event::{Event, Listener, Notice};
use pitool::format::declare::{Strictness, declare};
use pitool::format::{self, Format, Input, InputOptions};
use pitool::message::ToolResult;
use pitool::registry::{DuplicateName, Registry};
use pitool::stop::{Stop, StopLevel, Stopper};
use pitool::tool::{Declaration, Execution, Tool};
use serde_json::{Value, json};

/// A tool of a few lines: arguments are valid here, and an error is what the model reads.
async fn capital(execution: Execution) -> Result<ToolResult, String> {
    match execution.arguments["country"].as_str() {
        Some("France") => Ok(ToolResult::text("Paris")),
        Some("Japan") => Ok(ToolResult::text("Tokyo")),
        country => Err(format!(
            "no capital of {} is known",
            country.unwrap_or_default()
        )),
    }
}

/// A tool that takes its time: it tells how far it is, and ends early when the batch is stopped.
async fn count(execution: Execution) -> Result<ToolResult, String> {
    let total = execution.arguments["to"].as_u64().unwrap_or_default();
    for number in 1..=total {
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(1)) => {}
            () = execution.stop.stopped() => return Err(format!("stopped at {number}")),
        }
        execution.updates.report(json!({
            "content": [{"type": "text", "text": number.to_string()}],
            "details": {"progress": number, "total": total},
        }));
    }
    Ok(ToolResult::text(format!("counted to {total}")))
}

/// The tools of this agent. Those of manifests come the same way: `Registry::load` begins a registry with them.
fn registry() -> Result<Registry, DuplicateName> {
    let mut registry = Registry::new();
    let country = json!({"type": "object", "properties": {"country": {"type": "string"}}, "required": ["country"]});
    let declaration = Declaration::new("capital", "The capital of a country", country);
    registry.register(Tool::native(declaration, capital))?;
    let to = json!({"type": "object", "properties": {"to": {"type": "integer", "minimum": 1}}, "required": ["to"]});
    let declaration = Declaration::new("count", "Count to a number", to);
    registry.register(Tool::native(declaration, count))?;
    Ok(registry)
}

/// The sink for events: keeps what happened as lines. A real one would draw, log or send them.
#[derive(Default)]
struct Sink(Mutex<Vec<String>>);

impl Sink {
    fn note(&self, line: String) {
        self.0
            .lock()
            .expect("nobody panics while noting")
            .push(line);
    }
}

impl Listener for Sink {
    fn event(&self, event: Event<'_>) {
        match event {
            Event::Start { call, .. } => {
                self.note(format!("{} starts with {}", call.id, call.arguments));
            }
            Event::Update {
                call,
                partial_result,
            } => {
                self.note(format!(
                    "{} is at {}",
                    call.id, partial_result["details"]["progress"]
                ));
            }
            Event::End { call, is_error, .. } => {
                self.note(format!(
                    "{} {}",
                    call.id,
                    if is_error { "failed" } else { "is done" }
                ));
            }
            Event::MessageStart { .. } | Event::MessageEnd { .. } | Event::TurnEnd { .. } => {}
        }
    }

    fn notice(&self, notice: Notice) {
        self.note(format!("{notice:?}"));
    }
}

/// Stands for the API of a model: gives one recorded answer after the other.
struct Model(std::vec::IntoIter<Value>);

impl Model {
    /// What the model says to a request with these tools and messages.
    fn answer(&mut self, tools: &Value, messages: &[Value]) -> Result<Value, Box<dyn Error>> {
        let _request = json!({"model": "claude-opus-5-5", "max_tokens": 4096, "tools": tools, "messages": messages});
        Ok(self.0.next().ok_or("nothing more was recorded")?)
    }

    fn recorded() -> Self {
        let answer = |content: Value, stop_reason: &str| json!({"type": "message", "role": "assistant", "content": content, "stop_reason": stop_reason});
        let calls = json!([
            {"type": "text", "text": "Let me see."},
            {"type": "tool_use", "id": "a", "name": "capital", "input": {"country": "Japan"}},
            // A number as text: repaired, as the schema allows it.
            {"type": "tool_use", "id": "b", "name": "count", "input": {"to": "2"}},
            {"type": "tool_use", "id": "c", "name": "capital", "input": {"country": "Atlantis"}},
        ]);
        let text = json!([{"type": "text", "text": "Tokyo, and I counted to 2."}]);
        Self(vec![answer(calls, "tool_use"), answer(text, "end_turn")].into_iter())
    }
}

/// Asks the model and runs its calls until it makes none; the whole conversation comes out.
async fn converse(
    question: &str,
    model: &mut Model,
    listener: &dyn Listener,
    stop: &Stop,
) -> Result<Vec<Value>, Box<dyn Error>> {
    let runner = Runner::new(Arc::new(registry()?), Options::default());
    let tools = declare(
        runner.registry.tools(),
        Format::Anthropic,
        Strictness::AsDeclared,
    )
    .tools;
    let mut messages = vec![json!({"role": "user", "content": question})];
    loop {
        let response = model.answer(&tools, &messages)?;
        messages.push(json!({"role": "assistant", "content": response["content"]}));
        let mut has_calls = false;
        for turn in Input::new(response.to_string().as_bytes(), InputOptions::default()) {
            let turn = turn?;
            has_calls |= !turn.calls.is_empty();
            let answered = batch::run(&runner, Batch::of(&turn), listener, stop).await;
            messages.extend(format::encode(&turn, turn.format, &answered.messages));
        }
        if !has_calls {
            return Ok(messages);
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (mut model, sink) = (Model::recorded(), Sink::default());
    let question = "What is the capital of Japan, and can you count to 2?";
    let stopper = Stopper::new();
    let stop = stopper.stop();
    let conversation = async {
        // Ctrl-C ends the tools; their results, and all others, are still in the conversation.
        let interrupt = async {
            let _ = tokio::signal::ctrl_c().await;
            stopper.raise(StopLevel::Stopping);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            messages = converse(question, &mut model, &sink, &stop) => messages,
            () = interrupt => unreachable!("an interrupt only raises the signal"),
        }
    };
    for message in runtime.block_on(conversation)? {
        println!("{message}");
    }
    for line in sink.0.into_inner()? {
        eprintln!("{line}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_call_is_answered_in_order_and_the_sink_hears_of_it() {
        let sink = Sink::default();
        let stop = Stop::never();
        let messages = converse("?", &mut Model::recorded(), &sink, &stop)
            .await
            .unwrap();
        assert_eq!(messages.len(), 4);
        let result = |id: &str, text: &str| {
            let content = json!([{"type": "text", "text": text}]);
            json!({"type": "tool_result", "tool_use_id": id, "content": content})
        };
        let mut unknown = result("c", "no capital of Atlantis is known");
        unknown["is_error"] = json!(true);
        let answers = json!([result("a", "Tokyo"), result("b", "counted to 2"), unknown]);
        assert_eq!(messages[2], json!({"role": "user", "content": answers}));
        assert_eq!(
            messages[3]["content"][0]["text"],
            "Tokyo, and I counted to 2."
        );

        let heard = sink.0.into_inner().unwrap();
        assert_eq!(heard[0], "a starts with {\"country\":\"Japan\"}");
        let of_b: Vec<&String> = heard.iter().filter(|line| line.starts_with("b ")).collect();
        assert_eq!(
            of_b,
            [
                "b starts with {\"to\":\"2\"}",
                "b is at 1",
                "b is at 2",
                "b is done"
            ]
        );
        assert!(heard.contains(&"c failed".to_owned()));
    }

    #[tokio::test]
    async fn a_stop_ends_the_tools_and_loses_no_result() {
        let stopper = Stopper::new();
        stopper.raise(StopLevel::Stopping);
        let messages = converse(
            "?",
            &mut Model::recorded(),
            &Sink::default(),
            &stopper.stop(),
        )
        .await
        .unwrap();
        let answers = messages[2]["content"].as_array().unwrap();
        assert_eq!(answers.len(), 3);
        assert!(answers.iter().all(|answer| answer["is_error"] == true));
    }
}
