//! Puts results into a conversation: directly behind the turn that they answer, as its API wants them.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::Format;
use super::thread::Place;
use super::wire::Answer;

/// The results of one turn as they shall stand behind it.
pub(super) struct Woven {
    /// The element behind which they go.
    pub(super) after: usize,
    /// In the order of the calls.
    pub(super) units: Vec<Unit>,
    /// What has to follow behind all units.
    pub(super) extras: Vec<Value>,
}

/// One result.
pub(super) enum Unit {
    /// One that the conversation has, wherever it stands.
    Kept(Place),
    /// A new one.
    New(Value),
}

/// Rebuilds a conversation: results at `dropped` go, those of `turns` come together behind their turns.
/// Everything else stays in its order.
pub(super) fn weave(
    format: Format,
    elements: Vec<Value>,
    turns: Vec<Woven>,
    dropped: &[Place],
) -> Vec<Value> {
    let mut moved: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let kept = turns
        .iter()
        .flat_map(|turn| &turn.units)
        .filter_map(|unit| match unit {
            Unit::Kept(place) => Some(*place),
            Unit::New(_) => None,
        });
    for place in kept.chain(dropped.iter().copied()) {
        moved.entry(place.element).or_default().push(place.index);
    }
    let (elements, taken) = take(format, elements, moved);
    join(format, elements, turns, taken)
}

/// Takes results out of their elements; an element of nothing else is `None` afterwards.
fn take(
    format: Format,
    elements: Vec<Value>,
    mut moved: BTreeMap<usize, Vec<usize>>,
) -> (Vec<Option<Value>>, HashMap<Place, Value>) {
    let mut taken = HashMap::new();
    let elements = elements.into_iter().enumerate().map(|(element, value)| {
        let Some(mut indexes) = moved.remove(&element) else {
            return Some(value);
        };
        indexes.sort_unstable();
        indexes.dedup();
        let (results, rest) = format.wire().take_results(value, &indexes);
        let places = indexes.into_iter().map(|index| Place { element, index });
        taken.extend(places.zip(results));
        rest
    });
    (elements.collect(), taken)
}

fn join(
    format: Format,
    mut elements: Vec<Option<Value>>,
    turns: Vec<Woven>,
    mut taken: HashMap<Place, Value>,
) -> Vec<Value> {
    let mut woven = Vec::new();
    let mut turns = turns.into_iter().peekable();
    for at in 0..elements.len() {
        woven.extend(elements[at].take());
        if let Some(turn) = turns.next_if(|turn| turn.after == at) {
            let units = turn.units.into_iter().filter_map(|unit| match unit {
                Unit::Kept(place) => taken.remove(&place),
                Unit::New(value) => Some(value),
            });
            let answer = Answer {
                units: units.collect(),
                extras: turn.extras,
            };
            let next = elements[at + 1..]
                .iter_mut()
                .find(|next| next.is_some())
                .and_then(|next| next.take_if(|next| format.wire().joins(next)));
            woven.extend(format.wire().place(answer, next));
        }
    }
    woven
}
