//! Changed manifests: noticed, loaded as a whole or not at all, announced.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::registry::Registry;

use super::Serving;

/// How often the folders are looked at. A look is one `stat` per manifest.
const INTERVAL: Duration = Duration::from_millis(500);

/// Loads the tools anew; the error says what is wrong with them.
pub type Reload = Box<dyn Fn() -> Result<Registry, String> + Send + Sync>;

/// Watches the manifests of `folders` and the tool lists of their servers, for ever.
///
/// A reload that fails keeps the last good set as a whole: what is missing could be a guard.
pub async fn watch(serving: &Serving, folders: &[PathBuf], reload: Reload) {
    let mut loaded = Snapshot::of(folders);
    let mut lists = list_changes(serving);
    loop {
        tokio::time::sleep(INTERVAL).await;
        let seen = Snapshot::of(folders);
        if seen != loaded {
            loaded = settled(folders, seen).await;
            match reload() {
                Ok(registry) => serving.replace(registry).await,
                Err(problem) => serving.warn(format!("the tools stay as they were: {problem}")),
            }
            lists = list_changes(serving);
        } else if list_changes(serving) != lists {
            lists = list_changes(serving);
            serving.announce().await;
        }
    }
}

/// Waits until nobody writes any more.
async fn settled(folders: &[PathBuf], mut seen: Snapshot) -> Snapshot {
    loop {
        tokio::time::sleep(INTERVAL / 5).await;
        let now = Snapshot::of(folders);
        if now == seen {
            return now;
        }
        seen = now;
    }
}

/// How often servers said that their tools changed.
fn list_changes(serving: &Serving) -> u64 {
    let registry = serving.registry();
    registry
        .servers()
        .map(|client| *client.changes().borrow())
        .sum()
}

/// What the manifests look like from outside.
#[derive(Debug, PartialEq, Eq)]
struct Snapshot(Vec<(PathBuf, Option<Look>)>);

/// What changes with a file: inode, length, time of change in nanoseconds.
type Look = (u64, u64, i64, i64);

impl Snapshot {
    fn of(folders: &[PathBuf]) -> Self {
        let mut files: Vec<PathBuf> = folders
            .iter()
            .flat_map(|folder| manifests(folder))
            .collect();
        files.sort();
        Self(
            files
                .into_iter()
                .map(|file| (file.clone(), look(&file)))
                .collect(),
        )
    }
}

fn manifests(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .collect()
}

fn look(file: &Path) -> Option<Look> {
    let metadata = fs::metadata(file).ok()?;
    Some((
        metadata.ino(),
        metadata.len(),
        metadata.mtime(),
        metadata.mtime_nsec(),
    ))
}
