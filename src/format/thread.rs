//! The turns of a conversation and which result answers which call.
//!
//! A result belongs to the nearest call before it that has its id and no result yet, so that ids which a program
//! makes up anew in each turn (`call_1`) pair as they were meant. Without ids, results follow the order of the calls
//! of their tool.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use super::Format;
use super::stop_reason;
use super::turn::{Arguments, Decoded, Ids, decode};
use super::wire::{Author, Element, Entry, RawResult, WireId};

/// A conversation, taken apart.
pub(super) struct Thread {
    pub(super) turns: Vec<ThreadTurn>,
    /// Results that answer no call.
    pub(super) orphans: Vec<Place>,
}

/// One turn of the model.
pub(super) struct ThreadTurn {
    /// The elements that the model said.
    pub(super) elements: Range<usize>,
    pub(super) calls: Vec<ThreadCall>,
    pub(super) stop_reason: Option<String>,
    pub(super) warnings: Vec<String>,
}

/// One call and what answers it.
pub(super) struct ThreadCall {
    pub(super) decoded: Decoded,
    /// Where the call stands: the element, and which of its calls it is.
    pub(super) place: Place,
    /// Whether its format pairs by ids.
    pub(super) wants_id: bool,
    bad_arguments: bool,
    /// Normally none or one; more is a fault of the conversation.
    pub(super) results: Vec<FoundResult>,
}

/// A result in the conversation.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FoundResult {
    pub(super) place: Place,
    pub(super) is_error: Option<bool>,
}

/// The `index`-th call or result of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) element: usize,
    pub(super) index: usize,
}

/// Takes a conversation apart.
pub(super) fn read(format: Format, elements: &[Element], policy: Arguments) -> Thread {
    let wire = format.wire();
    let entries: Vec<Entry<'_>> = elements
        .iter()
        .map(|element| wire.read(&element.value))
        .collect();
    let mut ids = Ids::default();
    for call in entries.iter().flat_map(|entry| &entry.calls) {
        ids.reserve(call.id);
    }
    let mut thread = Thread {
        turns: Vec::new(),
        orphans: Vec::new(),
    };
    let mut calls = Calls::default();
    let mut at = 0;
    while at < entries.len() {
        let end = turn_end(&entries, at, wire.groups());
        if entries[at].author == Author::Model {
            let turn = read_turn(format, policy, &entries, elements, at..end, &mut ids);
            calls.add(thread.turns.len(), &turn.calls);
            thread.turns.push(turn);
        }
        for (element, entry) in entries.iter().enumerate().take(end).skip(at) {
            for (index, result) in entry.results.iter().enumerate() {
                thread.pair(result, Place { element, index }, &mut calls);
            }
        }
        at = end;
    }
    thread
}

/// The end of the run of elements that starts at `start` and belongs together.
fn turn_end(entries: &[Entry<'_>], start: usize, groups: bool) -> usize {
    if !groups || entries[start].author != Author::Model {
        return start + 1;
    }
    let more = entries[start..]
        .iter()
        .take_while(|entry| entry.author == Author::Model)
        .count();
    start + more
}

fn read_turn(
    format: Format,
    policy: Arguments,
    entries: &[Entry<'_>],
    elements: &[Element],
    range: Range<usize>,
    ids: &mut Ids,
) -> ThreadTurn {
    let mut raw = Vec::new();
    let mut places = Vec::new();
    let mut warnings = Vec::new();
    let mut stop_reasons = Vec::new();
    for element in range.clone() {
        for (index, call) in entries[element].calls.iter().enumerate() {
            raw.push(call.clone());
            places.push(Place { element, index });
        }
        warnings.extend(entries[element].warnings.iter().cloned());
        stop_reasons.extend(entries[element].stop_reason.clone());
        stop_reasons.extend(elements[element].stop_reason.clone());
    }
    let stop_reason = stop_reason::worst(stop_reasons);
    let stop_reason = if raw.is_empty() || format == Format::Pi {
        stop_reason
    } else {
        stop_reason.map(stop_reason::with_calls)
    };
    let decoded = decode(&raw, policy, ids, &mut warnings);
    let calls = decoded
        .into_iter()
        .zip(raw.iter().zip(places))
        .map(|(decoded, (raw, place))| ThreadCall {
            decoded,
            place,
            wants_id: raw.id != WireId::Optional,
            bad_arguments: raw.arguments.are_bad(format.wire().wants_text()),
            results: Vec::new(),
        })
        .collect();
    ThreadTurn {
        elements: range,
        calls,
        stop_reason,
        warnings,
    }
}

impl Thread {
    /// A result goes to the latest turn with a call that waits for it, there to the first such call; else it is a
    /// further one of the latest call with its id.
    fn pair(&mut self, result: &RawResult<'_>, place: Place, calls: &mut Calls) {
        let Some(alike) = calls.alike(result) else {
            self.orphans.push(place);
            return;
        };
        let open = alike.first_open(&self.turns);
        match open.or(alike
            .first_of_latest
            .filter(|_| result.id != WireId::Optional))
        {
            Some((turn, call)) => self.turns[turn].calls[call].results.push(FoundResult {
                place,
                is_error: result.is_error,
            }),
            None => self.orphans.push(place),
        }
    }
}

/// The calls so far by what results name, so that a long transcript is not searched for each of its results.
#[derive(Default)]
struct Calls {
    by_id: HashMap<String, Alike>,
    /// Those without an id, which formats without ids pair by name.
    by_name: HashMap<String, Alike>,
}

/// Calls of one id or name, by turn and position.
#[derive(Default)]
struct Alike {
    /// Those that may still wait, turn by turn.
    open: Vec<(usize, VecDeque<usize>)>,
    first_of_latest: Option<(usize, usize)>,
}

impl Calls {
    fn add(&mut self, turn: usize, calls: &[ThreadCall]) {
        for (position, call) in calls.iter().enumerate() {
            let alike = self.by_id.entry(call.own_id()).or_default();
            alike.add(turn, position);
            if call.decoded.origin.id.is_none() {
                let name = call.decoded.call.name.clone();
                self.by_name.entry(name).or_default().add(turn, position);
            }
        }
    }

    /// Ids are compared as the texts that calls go by: a writer may have turned a number into one.
    fn alike(&mut self, result: &RawResult<'_>) -> Option<&mut Alike> {
        match result.id {
            WireId::Given(_) => self.by_id.get_mut(&result.id.text()?),
            WireId::Missing => None,
            WireId::Optional => self.by_name.get_mut(result.name?),
        }
    }
}

impl Alike {
    fn add(&mut self, turn: usize, position: usize) {
        match self.open.last_mut() {
            Some((latest, positions)) if *latest == turn => positions.push_back(position),
            _ => self.open.push((turn, VecDeque::from([position]))),
        }
        match self.first_of_latest {
            Some((latest, _)) if latest == turn => {}
            _ => self.first_of_latest = Some((turn, position)),
        }
    }

    /// The first call of the latest turn that has one without a result. An answered call never waits again, so each
    /// is passed over once.
    fn first_open(&mut self, turns: &[ThreadTurn]) -> Option<(usize, usize)> {
        while let Some((turn, positions)) = self.open.last_mut() {
            let is_open = |position: &usize| turns[*turn].calls[*position].results.is_empty();
            match positions.front() {
                Some(position) if is_open(position) => return Some((*turn, *position)),
                Some(_) => {
                    positions.pop_front();
                }
                None => {
                    self.open.pop();
                }
            }
        }
        None
    }
}

impl ThreadCall {
    /// Whether the format wants an id and the call had none.
    pub(super) fn id_is_made_up(&self) -> bool {
        self.decoded.origin.id.is_none() && self.wants_id
    }

    /// Whether its arguments would have to be an object on the wire, and are none.
    pub(super) fn has_bad_arguments(&self) -> bool {
        self.bad_arguments
    }

    fn own_id(&self) -> String {
        let given = self.decoded.origin.id.as_ref();
        let given = given.and_then(|id| WireId::Given(id).text());
        given.unwrap_or_else(|| self.decoded.call.id.clone())
    }
}
