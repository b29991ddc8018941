//! A folder that only its owner can enter and that is gone when its owner drops it.
//!
//! The `TMPDIR` of a confined tool, the folder of a nested-call socket and those in which cases run are such folders.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// A socket's path has 104 bytes at most (macOS; 108 on Linux), and what is made below takes up to 50 of them.
const LONGEST_SOCKET_PARENT: usize = 50;

/// A folder of mode 0700 below the system's folder for temporary files, removed with its content on drop.
///
/// Removing is best effort: what a tool made immutable, or still writes, may stay.
#[derive(Debug)]
pub struct PrivateFolder {
    path: PathBuf,
}

impl PrivateFolder {
    /// Makes the folder `pitool-PURPOSE-MARK-N`. A name that exists is never taken over.
    pub fn new(purpose: &str) -> io::Result<Self> {
        Self::below(&std::env::temp_dir(), purpose)
    }

    /// The same, where a socket inside has a path of a length that systems take.
    pub fn for_socket(purpose: &str) -> io::Result<Self> {
        let parent = std::env::temp_dir();
        if parent.as_os_str().len() <= LONGEST_SOCKET_PARENT {
            Self::below(&parent, purpose)
        } else {
            Self::below(Path::new("/tmp"), purpose)
        }
    }

    fn below(parent: &Path, purpose: &str) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let parent = parent.canonicalize()?;
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = parent.join(format!("pitool-{purpose}-{}-{number}", mark()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self { path }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Where it is, absolute.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

fn remove(folder: &Path) {
    if fs::remove_dir_all(folder).is_err() {
        open_folders(folder);
        let _ = fs::remove_dir_all(folder);
    }
}

/// The part of a name that nothing but the temporary folders and files of this process has: process ids alone come again,
/// and in another namespace at the same time.
pub(crate) fn mark() -> &'static str {
    static MARK: OnceLock<String> = OnceLock::new();
    MARK.get_or_init(|| {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let nanos = since.map_or(0, |since| since.subsec_nanos());
        format!("{}-{nanos:08x}", process::id())
    })
}

/// How the name of a temporary file ends that nobody needs any more when its process is gone.
pub(crate) const UNFINISHED: &str = ".partial";

/// Removes the folders and the unfinished files that the process with this mark left in `temporary`, its folder for such.
pub(crate) fn remove_left(mark: &str, temporary: &Path) {
    for folder in [temporary, Path::new("/tmp")] {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        for entry in entries {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if !name.starts_with("pitool-") || !name.contains(&format!("-{mark}-")) {
                continue;
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                remove(&entry.path());
            } else if name.ends_with(UNFINISHED) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// Makes every folder below `folder` one that can be emptied, whatever its permissions were.
/// Never follows a link; a stack of its own, since a tool decides how deep this goes.
fn open_folders(folder: &Path) {
    let mut pending = vec![folder.to_path_buf()];
    while let Some(folder) = pending.pop() {
        let _ = fs::set_permissions(&folder, Permissions::from_mode(0o700));
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        pending.extend(
            entries
                .flatten()
                .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
                .map(|entry| entry.path()),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_is_private_and_goes_with_its_content() {
        let folder = PrivateFolder::new("test").unwrap();
        let path = folder.path().to_path_buf();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o700
        );
        fs::create_dir_all(path.join("a/b")).unwrap();
        fs::write(path.join("a/b/file"), "x").unwrap();
        fs::set_permissions(path.join("a/b"), Permissions::from_mode(0o000)).unwrap();
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn what_a_dead_process_left_is_removed() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path().join("pitool-tmp-1-ab-0");
        let unfinished = temporary.path().join("pitool-output-1-ab-0.partial");
        let kept = temporary.path().join("pitool-output-1-ab-1.txt");
        let others = temporary.path().join("pitool-tmp-1-cd-0");
        fs::create_dir_all(folder.join("a")).unwrap();
        fs::create_dir(&others).unwrap();
        fs::write(&unfinished, "x").unwrap();
        fs::write(&kept, "x").unwrap();
        remove_left("1-ab", temporary.path());
        assert!(!folder.exists() && !unfinished.exists());
        assert!(kept.exists() && others.exists());
    }

    #[test]
    fn two_folders_are_two() {
        let (one, other) = (
            PrivateFolder::new("test").unwrap(),
            PrivateFolder::new("test").unwrap(),
        );
        assert_ne!(one.path(), other.path());
    }
}
