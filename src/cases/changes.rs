//! What a run left behind in its folder.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

/// A larger file is known by its size alone.
const MAX_BYTES: u64 = 1 << 20;

/// Files that are new or different, `null` for those that are gone, by their path.
pub type Changes = Map<String, Value>;

/// The files of a folder at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot(BTreeMap<String, Value>);

impl Snapshot {
    /// Looks at all files below a folder. What is neither a file nor a link is passed over: opening it could wait for ever.
    pub fn of(folder: &Path) -> io::Result<Self> {
        let mut files = BTreeMap::new();
        let mut pending = vec![PathBuf::new()];
        while let Some(below) = pending.pop() {
            for entry in fs::read_dir(folder.join(&below))? {
                let entry = entry?;
                let name = below.join(entry.file_name());
                let kind = entry.file_type()?;
                if kind.is_dir() {
                    pending.push(name);
                } else if let Some(content) = content(&entry.path(), kind)? {
                    files.insert(name.to_string_lossy().into_owned(), content);
                }
            }
        }
        Ok(Self(files))
    }

    /// What became of the files until `after`.
    pub fn until(&self, after: &Self) -> Changes {
        let gone = self.0.keys().filter(|name| !after.0.contains_key(*name));
        let gone = gone.map(|name| (name.clone(), Value::Null));
        let changed = after
            .0
            .iter()
            .filter(|(name, content)| self.0.get(*name) != Some(content));
        let changed = changed.map(|(name, content)| (name.clone(), content.clone()));
        let mut changes: Vec<_> = gone.chain(changed).collect();
        changes.sort_by(|(a, _), (b, _)| a.cmp(b));
        changes.into_iter().collect()
    }
}

fn content(path: &Path, kind: fs::FileType) -> io::Result<Option<Value>> {
    if kind.is_symlink() {
        let target = fs::read_link(path)?;
        return Ok(Some(json!({"link": target.to_string_lossy()})));
    }
    if !kind.is_file() {
        return Ok(None);
    }
    let length = fs::metadata(path)?.len();
    if length > MAX_BYTES {
        return Ok(Some(json!({"bytes": length})));
    }
    Ok(Some(match String::from_utf8(fs::read(path)?) {
        Ok(text) => text.into(),
        Err(error) => json!({"base64": STANDARD.encode(error.as_bytes())}),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_what_is_new_different_or_gone() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("d")).unwrap();
        for name in ["same", "gone", "d/changed"] {
            fs::write(path(name), "before").unwrap();
        }
        let before = Snapshot::of(folder.path()).unwrap();
        assert_eq!(before.until(&before), Map::new());
        fs::remove_file(path("gone")).unwrap();
        fs::write(path("d/changed"), "after").unwrap();
        fs::write(path("bytes"), [255]).unwrap();
        fs::write(path("large"), vec![b'x'; (1 << 20) + 1]).unwrap();
        std::os::unix::fs::symlink("same", path("link")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
        let after = Snapshot::of(folder.path()).unwrap();
        assert_eq!(
            Value::Object(before.until(&after)),
            json!({"bytes": {"base64": "/w=="}, "d/changed": "after", "gone": null,
                "large": {"bytes": (1 << 20) + 1}, "link": {"link": "same"}})
        );
    }
}
