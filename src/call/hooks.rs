//! The hooks around a call: what they are told, and what their answers do.

use std::time::Duration;

use serde_json::{Value, json};

use super::{CallError, Runner, Scope, hook_invocation, stopped, thrown};
use crate::hook::{AfterAnswer, BeforeAnswer, Hook, Moment};
use crate::message::{ToolCall, ToolResult};
use crate::program::Throw;
use crate::stop::{StopLevel, Stopper};

/// How long an after hook may still take once a stop was asked for.
const HOOK_GRACE: Duration = Duration::from_secs(2);

fn hooks<'r>(runner: &'r Runner, moment: Moment, name: &'r str) -> impl Iterator<Item = &'r Hook> {
    let hooks = runner.registry.hooks().iter();
    hooks.filter(move |hook| hook.moment == moment && hook.applies_to(name))
}

/// Asks the before hooks in file order; the first block wins.
pub(super) async fn before(
    scope: Scope<'_>,
    call: &ToolCall,
    arguments: &Value,
) -> Result<(), CallError> {
    let mut input = None;
    for hook in hooks(scope.runner, Moment::Before, &call.name) {
        let input = input.get_or_insert_with(|| hook_input(scope, call, arguments));
        let notice = |notice| scope.listener.notice(notice);
        let invocation = hook_invocation(call, scope.stop, &notice);
        let answer = hook.answer(input, &invocation).await;
        stopped(scope)?;
        let answer = answer.and_then(|answer| BeforeAnswer::read(answer, hook));
        let answer = answer.map_err(|Throw(message)| CallError::HookFailed(message))?;
        if answer.block {
            let terminate = answer.terminate;
            return Err(CallError::Blocked {
                reason: answer.reason,
                terminate,
            });
        }
    }
    stopped(scope)
}

fn hook_input(scope: Scope<'_>, call: &ToolCall, arguments: &Value) -> Value {
    let call = serde_json::to_value(call).expect("a call has only string keys");
    json!({"assistantMessage": scope.assistant_message, "toolCall": call, "args": arguments})
}

/// Lets the after hooks rewrite the result, in file order; one that fails replaces it by its error.
pub(super) async fn after(
    scope: Scope<'_>,
    call: &ToolCall,
    arguments: &Value,
    result: &mut ToolResult,
    is_error: &mut bool,
) {
    let mut input = None;
    for hook in hooks(scope.runner, Moment::After, &call.name) {
        let input = input.get_or_insert_with(|| hook_input(scope, call, arguments));
        input["result"] = serde_json::to_value(&*result).expect("a result has only string keys");
        input["isError"] = Value::Bool(*is_error);
        match after_hook(scope, call, hook, input).await {
            Ok(answer) => answer.apply(result, is_error),
            Err(Throw(message)) => {
                *result = thrown(scope.runner, call, &message);
                *is_error = true;
            }
        }
    }
}

/// Runs one after hook. A stop does not end it at once: it keeps [`HOOK_GRACE`], so that finished effects are told.
async fn after_hook(
    scope: Scope<'_>,
    call: &ToolCall,
    hook: &Hook,
    input: &Value,
) -> Result<AfterAnswer, Throw> {
    let own_stopper = Stopper::new();
    let own_stop = own_stopper.stop();
    let notice = |notice| scope.listener.notice(notice);
    let invocation = hook_invocation(call, &own_stop, &notice);
    let answer = hook.answer(input, &invocation);
    tokio::pin!(answer);
    let grace_is_over = async {
        scope.stop.stopped().await;
        tokio::select! {
            () = tokio::time::sleep(HOOK_GRACE) => {}
            () = scope.stop.stopped_now() => {}
        }
    };
    let answer = tokio::select! {
        answer = &mut answer => answer,
        () = grace_is_over => {
            own_stopper.raise(StopLevel::Now);
            answer.await
        }
    };
    answer.and_then(|answer| AfterAnswer::read(answer, hook))
}
