//! Why a model stopped, in pi's words: `stop`, `length`, `toolUse`, `error`, `aborted`.
//!
//! Only three of them change what happens: after `length`, `error` and `aborted` no call runs. Words that no API has
//! published yet are carried as they are, and their calls run.

/// The answer is complete.
pub(super) const STOP: &str = "stop";
/// The answer was cut off, so its calls may be half of what was meant.
pub(super) const LENGTH: &str = "length";
/// The answer ends with calls.
pub(super) const TOOL_USE: &str = "toolUse";
/// The answer failed.
pub(super) const ERROR: &str = "error";
/// The answer was given up.
pub(super) const ABORTED: &str = "aborted";

/// A pi message may hold a word that its writer took over from an API.
pub(super) fn from_pi(word: &str) -> String {
    let word = match word {
        "max_tokens"
        | "MAX_TOKENS"
        | "incomplete"
        | "max_output_tokens"
        | "model_context_window_exceeded" => LENGTH,
        "tool_use" | "tool_calls" => TOOL_USE,
        other => other,
    };
    word.to_owned()
}

/// Anthropic's `stop_reason`.
pub(super) fn from_anthropic(word: &str) -> String {
    let word = match word {
        "end_turn" | "stop_sequence" | "pause_turn" => STOP,
        "max_tokens" | "model_context_window_exceeded" => LENGTH,
        "tool_use" => TOOL_USE,
        "refusal" => ERROR,
        other => other,
    };
    word.to_owned()
}

/// The `finish_reason` of chat completions.
pub(super) fn from_openai(word: &str) -> String {
    let word = match word {
        "tool_calls" | "function_call" => TOOL_USE,
        "content_filter" => ERROR,
        // `stop` and `length` are pi's words.
        other => other,
    };
    word.to_owned()
}

/// The `status` of an OpenAI response, with the reason of an incomplete one.
pub(super) fn from_openai_response(status: &str, incomplete_reason: Option<&str>) -> String {
    let word = match status {
        "completed" => STOP,
        "incomplete" if incomplete_reason == Some("content_filter") => ERROR,
        "incomplete" => LENGTH,
        "failed" => ERROR,
        // A response that was recorded before it was finished is as good as given up.
        "cancelled" | "in_progress" | "queued" => ABORTED,
        other => other,
    };
    word.to_owned()
}

/// The `status` of one item of an OpenAI response: one that is not finished was cut off.
pub(super) fn from_openai_item(status: &str) -> Option<String> {
    matches!(status, "incomplete" | "in_progress").then(|| LENGTH.to_owned())
}

/// Gemini's `finishReason`.
pub(super) fn from_gemini(word: &str) -> String {
    let word = match word {
        "STOP" | "FINISH_REASON_UNSPECIFIED" => STOP,
        "MAX_TOKENS" => LENGTH,
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "OTHER"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "MALFORMED_FUNCTION_CALL"
        | "MALFORMED_RESPONSE"
        | "MISSING_THOUGHT_SIGNATURE"
        | "UNEXPECTED_TOOL_CALL"
        | "TOO_MANY_TOOL_CALLS"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION"
        | "IMAGE_OTHER"
        | "NO_IMAGE" => ERROR,
        other => other,
    };
    word.to_owned()
}

/// Some APIs call an answer with calls complete; pi calls it `toolUse`.
pub(super) fn with_calls(word: String) -> String {
    if word == STOP {
        TOOL_USE.to_owned()
    } else {
        word
    }
}

/// Whether calls of an answer that ended so are not run.
pub(super) fn keeps_calls_from_running(word: &str) -> bool {
    [LENGTH, ERROR, ABORTED].contains(&word)
}

/// Of several words for one turn the one that keeps calls from running, else the first.
pub(super) fn worst(words: Vec<String>) -> Option<String> {
    let keeps_calls_from_running =
        |word: &String| [LENGTH, ERROR, ABORTED].contains(&word.as_str());
    let worst = words.iter().position(keeps_calls_from_running);
    words.into_iter().nth(worst.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_for_truncation_is_length() {
        for word in [
            from_pi("max_tokens"),
            from_pi("length"),
            from_anthropic("max_tokens"),
            from_anthropic("model_context_window_exceeded"),
            from_openai("length"),
            from_openai_response("incomplete", Some("max_output_tokens")),
            from_openai_response("incomplete", None),
            from_openai_item("incomplete").unwrap(),
            from_gemini("MAX_TOKENS"),
        ] {
            assert_eq!(word, LENGTH);
        }
    }

    #[test]
    fn unknown_words_are_carried() {
        assert_eq!(from_pi("new"), "new");
        assert_eq!(from_anthropic("new"), "new");
        assert_eq!(from_openai("new"), "new");
        assert_eq!(from_openai_response("new", None), "new");
        assert_eq!(from_gemini("NEW"), "NEW");
    }

    #[test]
    fn the_word_that_stops_calls_wins() {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        assert_eq!(
            worst(words(&["toolUse", "length"])).as_deref(),
            Some(LENGTH)
        );
        assert_eq!(worst(words(&["stop", "toolUse"])).as_deref(), Some(STOP));
        assert_eq!(worst(Vec::new()), None);
    }
}
