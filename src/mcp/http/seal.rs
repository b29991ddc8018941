//! Results on their way through the SDK.
//!
//! The SDK reads a result by trying one type after the other, which loses what the type does not know. A result that
//! is a string can only be a string: so it is sealed as the text of its JSON where it comes in, and opened where it
//! leaves the SDK.

use rmcp::model::{CustomResult, JsonRpcMessage, ServerJsonRpcMessage, ServerResult};
use serde_json::Value;

use crate::json;
use crate::mcp::lines;

/// The messages of a text, sealed.
pub(super) fn sealed(text: &[u8]) -> Option<Vec<ServerJsonRpcMessage>> {
    let messages = lines::whole(text)?;
    Some(messages.into_iter().map(seal).collect())
}

fn seal(message: ServerJsonRpcMessage) -> ServerJsonRpcMessage {
    match message {
        JsonRpcMessage::Response(mut response) => {
            if let ServerResult::CustomResult(CustomResult(result)) = &mut response.result {
                *result = Value::String(json::compact(result));
            }
            JsonRpcMessage::Response(response)
        }
        other => other,
    }
}

/// A message with its result as it came.
pub(super) fn opened(mut message: ServerJsonRpcMessage) -> ServerJsonRpcMessage {
    if let JsonRpcMessage::Response(response) = &mut message
        && let ServerResult::CustomResult(CustomResult(result)) = &mut response.result
        && let Value::String(text) = result
        && let Ok(opened) = json::parse(text.as_bytes())
    {
        *result = opened;
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_out_as_they_went_in() {
        let deep = format!("{}{}", "[".repeat(400), "]".repeat(400));
        for result in [
            r#"{"structuredContent":{"n":18446744073709551615},"content":[{"type":"new","x":1}]}"#,
            r#""text""#,
            "{}",
            &deep,
        ] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
            let sealed = sealed(text.as_bytes()).unwrap();
            assert_eq!(sealed.len(), 1);
            let sealed = serde_json::to_string(&sealed[0]).unwrap();
            let read: ServerJsonRpcMessage = serde_json::from_str(&sealed).unwrap();
            let JsonRpcMessage::Response(response) = opened(read) else {
                panic!("{sealed:?}")
            };
            let ServerResult::CustomResult(opened) = response.result else {
                panic!("{sealed:?}")
            };
            assert_eq!(json::compact(&opened.0), result);
        }
    }

    #[test]
    fn what_is_no_result_stays_as_it_is() {
        let error = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}"#;
        let texts = |text: &str| -> Option<Vec<String>> {
            let messages = sealed(text.as_bytes())?;
            let texts = messages.iter().map(serde_json::to_string);
            Some(texts.map(Result::unwrap).collect())
        };
        assert_eq!(texts(error).unwrap(), [error]);
        assert_eq!(texts("plain"), None);
        assert_eq!(texts(&format!("[{error},{error}]")).unwrap().len(), 2);
    }
}
