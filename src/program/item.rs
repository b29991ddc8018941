//! Items: what a program says, one JSON object at a time. An item is an update or a result.

use serde_json::{Map, Value};

use super::Throw;
use crate::message::{Content, ToolResult};

/// The fields that make an object a result.
const RESULT_FIELDS: [&str; 6] = [
    "content",
    "details",
    "structuredContent",
    "usage",
    "isError",
    "terminate",
];

/// One item.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Item {
    /// `{"type":"update","content":[…],"details":…}`, without its type.
    Update(Value),
    /// An object with any of the six fields of a result.
    Result(Box<ToolResult>),
}

impl Item {
    /// Reads a value; the error says why it is no item.
    pub(crate) fn read(value: Value) -> Result<Self, String> {
        let Value::Object(mut fields) = value else {
            return Err("an item is a JSON object".to_owned());
        };
        match fields.shift_remove("type") {
            Some(Value::String(kind)) if kind == "update" => update(fields),
            Some(Value::String(kind)) if kind == "result" => result(fields),
            Some(Value::Null) | None => result(fields),
            Some(kind) => Err(format!("the type is {kind}, not \"update\" or \"result\"")),
        }
    }
}

/// An update keeps its two fields; `content` is always there.
fn update(mut fields: Map<String, Value>) -> Result<Item, String> {
    let content = fields.shift_remove("content").unwrap_or(Value::Null);
    let content = match content {
        Value::Null => Value::Array(Vec::new()),
        given => {
            blocks(given.clone())?;
            given
        }
    };
    let mut update = Map::new();
    update.insert("content".to_owned(), content);
    if let Some(details) = fields.shift_remove("details") {
        update.insert("details".to_owned(), details);
    }
    Ok(Item::Update(Value::Object(update)))
}

/// `null` counts as not given.
fn result(mut fields: Map<String, Value>) -> Result<Item, String> {
    if !RESULT_FIELDS
        .iter()
        .any(|field| fields.contains_key(*field))
    {
        return Err(format!("it has none of {}", RESULT_FIELDS.join(", ")));
    }
    let mut take = |field| fields.shift_remove(field).filter(|value| !value.is_null());
    let content = match take("content") {
        Some(content) => blocks(content)?,
        None => Vec::new(),
    };
    Ok(Item::Result(Box::new(ToolResult {
        content,
        details: take("details"),
        structured_content: take("structuredContent"),
        usage: take("usage"),
        is_error: take("isError")
            .map(|value| flag("isError", &value))
            .transpose()?,
        terminate: take("terminate")
            .map(|value| flag("terminate", &value))
            .transpose()?,
    })))
}

fn flag(field: &str, value: &Value) -> Result<bool, String> {
    value
        .as_bool()
        .ok_or_else(|| format!("{field} is not true or false"))
}

fn blocks(content: Value) -> Result<Vec<Content>, String> {
    if !content.is_array() {
        return Err("content is not an array of blocks".to_owned());
    }
    serde_json::from_value(content).map_err(|error| {
        format!(
            "content is not an array of {{\"type\":\"text\",\"text\"}} and \
             {{\"type\":\"image\",\"data\",\"mimeType\"}}: {error}"
        )
    })
}

/// The items of one program as they come. Updates are passed on; the first result is the result.
pub(crate) struct Items<'a> {
    update: &'a (dyn Fn(Value) + Send + Sync),
    result: Option<ToolResult>,
    latest_update: Option<Value>,
    /// Why something that was printed is no item.
    wrong: Option<String>,
    ignored: u64,
}

impl<'a> Items<'a> {
    pub(crate) fn new(update: &'a (dyn Fn(Value) + Send + Sync)) -> Self {
        Self {
            update,
            result: None,
            latest_update: None,
            wrong: None,
            ignored: 0,
        }
    }

    /// Whether more items can change what the program came to.
    pub(crate) fn is_settled(&self) -> bool {
        self.result.is_some() || self.wrong.is_some()
    }

    /// Whether a result came.
    pub(crate) fn has_result(&self) -> bool {
        self.result.is_some()
    }

    /// Counts what is printed when nothing can change any more, without white space around it.
    pub(crate) fn ignore(&mut self, bytes: &[u8]) {
        self.ignored += bytes.trim_ascii().len() as u64;
    }

    /// How many bytes came after the result.
    pub(crate) fn ignored(&self) -> u64 {
        if self.has_result() { self.ignored } else { 0 }
    }

    /// Takes the next item; after a result everything is ignored.
    pub(crate) fn take(&mut self, item: Result<Item, String>) {
        if self.is_settled() {
            return;
        }
        match item {
            Ok(Item::Update(update)) => {
                (self.update)(update.clone());
                self.latest_update = Some(update);
            }
            Ok(Item::Result(result)) => self.result = Some(*result),
            Err(wrong) => self.wrong = Some(wrong),
        }
    }

    /// The text of the result, or of the latest update.
    pub(crate) fn text_so_far(&self) -> String {
        let latest = || {
            let content = self.latest_update.as_ref()?.get("content")?.clone();
            let content = blocks(content).ok()?;
            Some(
                ToolResult {
                    content,
                    ..ToolResult::default()
                }
                .joined_text(),
            )
        };
        match &self.result {
            Some(result) => result.joined_text(),
            None => latest().unwrap_or_default(),
        }
    }

    /// The text of the result, if there is one.
    pub(crate) fn result_text(&self) -> String {
        self.result
            .as_ref()
            .map(ToolResult::joined_text)
            .unwrap_or_default()
    }

    /// What a program that ended well came to; `who` printed it ("Command", "The filter").
    pub(crate) fn finish(self, who: &str) -> Result<ToolResult, Throw> {
        match (self.result, self.wrong) {
            (Some(result), _) => Ok(result),
            (None, Some(wrong)) => Err(Throw(wrong)),
            (None, None) => Err(Throw(format!("{who} gave no result"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn result_of(value: Value, expected: ToolResult) {
        assert_eq!(Item::read(value), Ok(Item::Result(Box::new(expected))));
    }

    #[track_caller]
    fn wrong(value: Value, expected: &str) {
        let error = Item::read(value).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn any_of_six_fields_makes_a_result() {
        result_of(
            json!({"content": [{"type": "text", "text": "x", "extra": 1}]}),
            ToolResult::text("x"),
        );
        result_of(
            json!({"terminate": true}),
            ToolResult {
                terminate: Some(true),
                ..ToolResult::default()
            },
        );
        result_of(
            json!({"type": "result", "details": null, "structuredContent": [], "isError": false, "other": 1}),
            ToolResult {
                structured_content: Some(json!([])),
                is_error: Some(false),
                ..ToolResult::default()
            },
        );
    }

    #[test]
    fn an_update_keeps_content_and_details() {
        assert_eq!(
            Item::read(json!({"type": "update", "details": {"progress": 1}, "isError": true})),
            Ok(Item::Update(
                json!({"content": [], "details": {"progress": 1}})
            ))
        );
    }

    #[test]
    fn everything_else_is_no_item() {
        wrong(json!([]), "JSON object");
        wrong(json!(3), "JSON object");
        wrong(json!({"text": "x"}), "none of content");
        wrong(
            json!({"type": "progress", "content": []}),
            "the type is \"progress\"",
        );
        wrong(json!({"content": "text"}), "not an array of blocks");
        wrong(
            json!({"content": [{"type": "video"}]}),
            "unknown variant `video`",
        );
        wrong(json!({"isError": "no"}), "isError is not true or false");
        wrong(
            json!({"type": "update", "content": 1}),
            "not an array of blocks",
        );
    }

    #[test]
    fn first_result_counts() {
        let updates = std::sync::Mutex::new(Vec::new());
        let update = |value| updates.lock().unwrap().push(value);
        let mut items = Items::new(&update);
        items.take(Item::read(
            json!({"type": "update", "content": [{"type": "text", "text": "half"}]}),
        ));
        assert_eq!(items.text_so_far(), "half");
        items.take(Item::read(
            json!({"content": [{"type": "text", "text": "one"}]}),
        ));
        items.take(Item::read(json!({"type": "update"})));
        items.take(Item::read(json!({"content": []})));
        items.take(Item::read(json!(7)));
        assert_eq!(items.text_so_far(), "one");
        assert_eq!(items.finish("Command"), Ok(ToolResult::text("one")));
        assert_eq!(updates.into_inner().unwrap().len(), 1);
    }

    #[test]
    fn no_result_is_an_error() {
        let ignore = |_| {};
        let mut items = Items::new(&ignore);
        items.take(Item::read(json!({"type": "update"})));
        assert_eq!(
            items.finish("Command"),
            Err(Throw("Command gave no result".into()))
        );
    }
}
