//! A hook as its manifest writes it.

use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::manifest::{Fault, given};
use crate::pattern::Pattern;
use crate::program::{Program, ProgramManifest, Role};

use super::{Hook, HookRun, Moment};

/// A hook: runs before or after the calls of certain tools.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Hook")]
pub(crate) struct HookManifest {
    /// The JSON Schema of this file, for editors.
    #[serde(rename = "$schema", default)]
    #[schemars(with = "Value")]
    _schema: IgnoredAny,
    /// A remark; nobody reads it.
    #[serde(rename = "$comment", default)]
    #[schemars(with = "Value")]
    _comment: IgnoredAny,
    /// When it runs.
    hook: Moment,
    /// The tools around whose calls it runs; absent means all.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Vec<Pattern>")]
    tools: Option<Vec<Pattern>>,
    /// What runs. Its input is `{assistantMessage, toolCall, args}`, after a call with `{result, isError}`.
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
