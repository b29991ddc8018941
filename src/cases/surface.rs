//! What a model is told of the tools of a folder, as it was recorded.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Difference;
use super::find::SURFACE;
use super::record;
use crate::format::Format;
use crate::format::declare::{Strictness, declare};
use crate::json;
use crate::manifest::Place;
use crate::registry::{Problem, Registry, folder};

/// The recorded declarations of a tools folder: `cases/declare.json`.
#[derive(Debug, Clone, PartialEq)]
pub struct Surface {
    /// The file.
    pub file: PathBuf,
    recorded: Option<Value>,
}

/// What `pitool declare` prints of a registry.
pub fn declared(registry: &Registry) -> Value {
    declare(registry.tools(), Format::Pi, Strictness::AsDeclared).tools
}

impl Surface {
    /// Reads what was recorded in a folder of cases, if anything was.
    pub fn read(cases: &Path) -> Result<Self, Problem> {
        let file = cases.join(SURFACE);
        if !file.exists() {
            return Ok(Self {
                file,
                recorded: None,
            });
        }
        let text = folder::read(&file)?;
        let recorded = json::parse(text.as_bytes()).map_err(|error| {
            let place = Place {
                line: error.line,
                column: error.column,
            };
            Problem::at(&file, place, format!("not valid JSON: {}", error.message))
        })?;
        Ok(Self {
            file,
            recorded: Some(recorded),
        })
    }

    /// Whether anything was recorded.
    pub fn is_recorded(&self) -> bool {
        self.recorded.is_some()
    }

    /// How the tools differ from what was recorded; the order of keys counts, as a model reads it.
    pub fn difference(&self, declared: &Value) -> Option<Difference> {
        let is_same = self
            .recorded
            .as_ref()
            .is_some_and(|recorded| json::compact(recorded) == json::compact(declared));
        (!is_same).then(|| Difference {
            path: String::new(),
            expected: self.recorded.clone(),
            actual: Some(declared.clone()),
        })
    }

    /// Records the tools as they are now.
    pub fn write(&self, declared: &Value) -> std::io::Result<()> {
        record::replace(&self.file, &(json::fitted(declared, 0, 0) + "\n"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_order_of_keys_is_part_of_the_surface() {
        let dir = tempfile::tempdir().unwrap();
        let surface = Surface::read(dir.path()).unwrap();
        assert!(!surface.is_recorded());
        let declared = json!([{"name": "a", "description": "b"}]);
        assert!(surface.difference(&declared).is_some());
        surface.write(&declared).unwrap();
        let surface = Surface::read(dir.path()).unwrap();
        assert_eq!(surface.difference(&declared), None);
        let turned = json!([{"description": "b", "name": "a"}]);
        assert_eq!(surface.difference(&turned).unwrap().actual, Some(turned));
    }
}
