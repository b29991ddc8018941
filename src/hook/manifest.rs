//! A hook as its manifest writes it.

use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::manifest::{Fault, given};
use crate::pattern::Pattern;
use crate::program::{Program, ProgramManifest, Role};

use super::{Hook, HookRun, Moment};

/// What a hook's manifest may say: `{"hook": "beforeToolCall", "tools": ["edit_*"], "run": program}`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HookManifest {
    #[serde(rename = "$schema", default)]
    _schema: IgnoredAny,
    #[serde(rename = "$comment", default)]
    _comment: IgnoredAny,
    hook: Moment,
    #[serde(default, deserialize_with = "given")]
    tools: Option<Vec<Pattern>>,
    run: ProgramManifest,
}

impl HookManifest {
    /// Makes the hook, or says what is wrong with it. `home` is the manifest's folder.
    pub(crate) fn into_hook(self, home: &Path) -> Result<Hook, Vec<Fault>> {
        let program = Program::new(&self.run, home, Role::Answer)
            .map_err(|error| vec![Fault::new(format!("/run{}", error.pointer), error.message)])?;
        Ok(Hook {
            moment: self.hook,
            tools: self.tools,
            run: HookRun::Program(Arc::new(program)),
            source: None,
        })
    }
}
