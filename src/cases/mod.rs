//! Recorded cases of tools: what goes in, what came out, and whether it still does.
//!
//! A case file is JSON, in the folder `cases` of a tools folder:
//!
//! ```json
//! {
//!   "call": {"name": "echo", "arguments": {"value": "Pi"}},
//!   "results": [{"$includes": {"content": [{"type": "text", "text": "Pi"}], "isError": false}}]
//! }
//! ```
//!
//! | field | meaning |
//! |---|---|
//! | `message` | an assistant message of any provider, or a list of messages, as `pitool run` reads it; or `{"from": PATH}` |
//! | `call` | one call instead: `name` and `arguments`; `id` and `argumentsError` if they matter |
//! | `name`, `arguments` | the same without the `call` around them |
//! | `title` | what is shown beside the name of the file |
//! | `env` | variables to set, `null` to unset |
//! | `files` | what stands in the fresh folder it runs in: text, `{"base64": …}`, or `{"from": PATH}` beside the case |
//! | `options` | more options of `pitool run` |
//! | `results` | the messages that are printed; absent: not recorded yet |
//! | `changes` | files that are new or different afterwards, `null` for those that are gone; absent: none |
//! | `events` | events that happen in this order, others may stand between; `[]` to have them recorded |
//!
//! Expectations are compared as they stand, except for patterns ([`Expectation`]). What changes from run to run is made
//! the same first ([`Volatile`]). Nothing here starts a process: who runs a case hands in what it [`Observed`].

mod case;
mod changes;
mod difference;
mod expectation;
mod files;
mod find;
mod record;
mod surface;
mod volatile;

pub use case::{Case, Source, json_schema};
pub use changes::{Changes, Snapshot};
pub use difference::{Difference, differences};
pub use expectation::Expectation;
pub use files::{Content, Files};
pub use find::{Found, SURFACE, case_files, read_cases};
pub use record::{Recording, write};
pub use surface::{Surface, declared};
pub use volatile::Volatile;

use serde_json::{Map, Value};

/// What a case came to, with everything volatile in it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observed {
    /// The messages that were printed.
    pub results: Vec<Value>,
    /// What became of the files; `null` for those that are gone.
    pub changes: Map<String, Value>,
    /// The events, in the order in which they happened.
    pub events: Vec<Value>,
}
