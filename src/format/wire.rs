//! What a format has to know: the seam between the providers' files and everything that is the same for all.

use serde_json::{Map, Value};

use crate::message::ToolCall;

use super::answer::Reply;
use super::arguments::RawArguments;
use super::turn::Turn;

/// Reads and writes the messages of one API.
pub(crate) trait Wire: Sync {
    /// How far a value is of this format.
    fn fit(&self, value: &Value) -> Fit;

    /// Takes what an API answered apart into what goes into the next request; other values stay as they are.
    fn unwrap(&self, value: Value) -> Result<Vec<Element>, String> {
        Ok(vec![Element::bare(value)])
    }

    /// What one element of a conversation says.
    fn read<'v>(&self, element: &'v Value) -> Entry<'v>;

    /// The objects that hold the element's calls, in the order of [`Entry::calls`].
    fn slots<'v>(&self, element: &'v mut Value) -> Vec<&'v mut Map<String, Value>>;

    /// The field of a slot that holds the call's id.
    fn id_key(&self) -> &'static str;

    /// Whether arguments are text that holds JSON.
    fn wants_text(&self) -> bool {
        false
    }

    /// Puts arguments that are an object into a slot.
    fn set_arguments(&self, slot: &mut Map<String, Value>, arguments: Value);

    /// Takes arguments that are a value out of a slot.
    fn take_arguments(&self, slot: &mut Map<String, Value>) -> Value;

    /// The objects that hold the element's results, in the order of [`Entry::results`].
    fn result_slots<'v>(&self, element: &'v mut Value) -> Vec<&'v mut Map<String, Value>>;

    /// The field of a result's slot that holds the id of its call.
    fn result_id_key(&self) -> &'static str;

    /// Whether nothing stands before the results in an element that holds some.
    fn results_lead(&self, _element: &Value) -> bool {
        true
    }

    /// The elements of one turn in pi form: an assistant message with `calls` in their places.
    fn to_pi(&self, elements: &[&Value], calls: Vec<ToolCall>) -> Map<String, Value>;

    /// One unit for each reply, and what has to follow behind all of them; `replies[i]` answers `turn.calls[i]`.
    fn answer(&self, turn: &Turn, replies: &[Reply<'_>]) -> Answer;

    /// Whether an element that follows a turn is one that results go into instead of before.
    fn joins(&self, _next: &Value) -> bool {
        false
    }

    /// Units as elements that follow a turn; `next` is what stands behind them if it [`Wire::joins`] them. A format
    /// whose answers have extras says where they stand.
    fn place(&self, answer: Answer, next: Option<Value>) -> Vec<Value> {
        answer.units.into_iter().chain(next).collect()
    }

    /// Takes the results at `indexes` (of [`Entry::results`]) out of an element, which is one unless it says otherwise;
    /// what stays, if anything does.
    fn take_results(&self, element: Value, indexes: &[usize]) -> (Vec<Value>, Option<Value>) {
        if indexes.is_empty() {
            (Vec::new(), Some(element))
        } else {
            (vec![element], None)
        }
    }

    /// Whether elements of the model that follow each other are one turn.
    fn groups(&self) -> bool {
        false
    }

    /// Whether calls that came in an array are answered by one array.
    fn answers_in_array(&self) -> bool {
        false
    }
}

/// How far a value is of a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fit {
    /// It is something else.
    No,
    /// It could be a message of this format, and holds neither calls nor results in it.
    Shape,
    /// It is what this API answers and no other, and holds neither calls nor results.
    Certain,
    /// It holds calls or results in this format.
    Calls,
}

impl Fit {
    /// `Calls` or `Shape`.
    pub(crate) fn with_calls(has_calls: bool) -> Self {
        if has_calls { Self::Calls } else { Self::Shape }
    }
}

/// One value of a conversation as the API's request wants it, and why the model stopped, where the API says that
/// around the message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Element {
    pub(crate) value: Value,
    pub(crate) stop_reason: Option<String>,
}

impl Element {
    pub(crate) fn bare(value: Value) -> Self {
        Self {
            value,
            stop_reason: None,
        }
    }
}

/// Who an element is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Author {
    /// The model.
    Model,
    /// Anybody else: the user, tools, the system.
    #[default]
    Other,
}

/// What one element of a conversation says.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Entry<'v> {
    pub(crate) author: Author,
    pub(crate) calls: Vec<RawCall<'v>>,
    pub(crate) results: Vec<RawResult<'v>>,
    /// In pi's words.
    pub(crate) stop_reason: Option<String>,
    pub(crate) warnings: Vec<String>,
}

/// A call as it is on the wire.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RawCall<'v> {
    pub(crate) id: WireId<'v>,
    pub(crate) name: Option<&'v str>,
    pub(crate) arguments: RawArguments<'v>,
    pub(crate) arguments_error: Option<&'v str>,
    /// Fields of the call that its result repeats.
    pub(crate) echo: Vec<(&'static str, &'v Value)>,
}

impl<'v> RawCall<'v> {
    /// A call without anything special.
    pub(crate) fn new(
        id: WireId<'v>,
        name: Option<&'v Value>,
        arguments: RawArguments<'v>,
    ) -> Self {
        Self {
            id,
            name: name.and_then(Value::as_str),
            arguments,
            arguments_error: None,
            echo: Vec::new(),
        }
    }
}

/// A result as it is on the wire.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RawResult<'v> {
    pub(crate) id: WireId<'v>,
    /// The tool's name, where results carry it.
    pub(crate) name: Option<&'v str>,
    /// Whether it says that the call failed; `None` where the API has no word for it.
    pub(crate) is_error: Option<bool>,
}

/// The id that pairs a call with its result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum WireId<'v> {
    /// Absent, and the format needs it; an empty text counts as absent.
    Missing,
    /// Absent, as the format allows; results follow the order of their calls.
    Optional,
    /// A text that is not empty, or a number.
    Given(&'v Value),
}

impl<'v> WireId<'v> {
    /// A field that should hold an id.
    pub(crate) fn required(field: Option<&'v Value>) -> Self {
        Self::given(field).unwrap_or(Self::Missing)
    }

    /// A field that may hold an id.
    pub(crate) fn optional(field: Option<&'v Value>) -> Self {
        Self::given(field).unwrap_or(Self::Optional)
    }

    fn given(field: Option<&'v Value>) -> Option<Self> {
        match field? {
            Value::String(text) if text.is_empty() => None,
            value @ (Value::String(_) | Value::Number(_)) => Some(Self::Given(value)),
            _ => None,
        }
    }

    /// The id as text.
    pub(crate) fn text(self) -> Option<String> {
        match self {
            Self::Given(Value::String(text)) => Some(text.clone()),
            Self::Given(other) => Some(other.to_string()),
            Self::Missing | Self::Optional => None,
        }
    }
}

/// Results on their way into a conversation.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Answer {
    /// One for each result, in the order of the calls.
    pub(crate) units: Vec<Value>,
    /// What the API does not take in a result, such as images in chat completions.
    pub(crate) extras: Vec<Value>,
}

/// A text field.
pub(crate) fn text_at<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key)?.as_str()
}

/// The elements of an array field; empty when it is none.
pub(crate) fn items_at<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// The objects of an array field that `wanted` picks, mutably.
pub(crate) fn objects_at_mut<'v>(
    value: &'v mut Value,
    key: &str,
    wanted: impl Fn(&Map<String, Value>) -> bool,
) -> Vec<&'v mut Map<String, Value>> {
    let Some(Value::Array(items)) = value.get_mut(key) else {
        return Vec::new();
    };
    items
        .iter_mut()
        .filter_map(Value::as_object_mut)
        .filter(|object| wanted(object))
        .collect()
}

/// Whether an object's `type` is this.
pub(crate) fn has_type(object: &Map<String, Value>, wanted: &str) -> bool {
    object.get("type").and_then(Value::as_str) == Some(wanted)
}

/// Splits an array field: the objects that `wanted` picks at `indexes` (counted among the picked), and the rest.
pub(crate) fn split_items(
    mut value: Value,
    key: &str,
    indexes: &[usize],
    wanted: impl Fn(&Value) -> bool,
) -> (Vec<Value>, Option<Value>) {
    let Some(Value::Array(items)) = value.get_mut(key) else {
        return (Vec::new(), Some(value));
    };
    let mut seen = 0;
    let (taken, kept): (Vec<_>, Vec<_>) = std::mem::take(items).into_iter().partition(|item| {
        let picked = wanted(item);
        let take = picked && indexes.contains(&seen);
        seen += usize::from(picked);
        take
    });
    if kept.is_empty() {
        return (taken, None);
    }
    *items = kept;
    (taken, Some(value))
}
