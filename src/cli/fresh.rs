//! New files, none of which takes the place of another.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::Hinted;

/// A file to be written.
pub(crate) struct Fresh {
    /// Where.
    pub(crate) path: PathBuf,
    /// What it holds.
    pub(crate) content: String,
}

impl Fresh {
    /// A file of this content.
    pub(crate) fn new(path: impl Into<PathBuf>, content: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            content: content.into(),
        }
    }
}

/// Writes all of them, or none if one is there already; `hint` says what to do then.
pub(crate) fn write_all(files: &[Fresh], hint: &str) -> anyhow::Result<()> {
    let exists = |file: &&Fresh| fs::symlink_metadata(&file.path).is_ok();
    if let Some(file) = files.iter().find(exists) {
        let message = format!(
            "{} is there already; nothing was written",
            file.path.display()
        );
        return Err(Hinted::new(message, hint).into());
    }
    files.iter().try_for_each(|file| {
        write(&file.path, &file.content)
            .with_context(|| format!("cannot write {}", file.path.display()))
    })
}

fn write(path: &Path, content: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    File::create_new(path)?.write_all(content.as_bytes())
}
