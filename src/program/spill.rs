//! The file that holds the whole of an output that was cut for the model.
//!
//! Only its owner can read it, it never grows beyond 1 GiB, and files of this kind that are older than 7 days are removed
//! when the first new one of a run is made.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use crate::private_folder::{self, UNFINISHED};

/// The most that is kept of one output.
const MAX_BYTES: u64 = 1 << 30;

/// How long files are left for whoever reads them.
const MAX_AGE: Duration = Duration::from_hours(7 * 24);

/// Once per run is enough.
static SWEEP: Once = Once::new();

/// How the names of these files begin.
const PREFIX: &str = "pitool-output-";

/// The file of one output; removed again unless [`Spill::keep`] says that somebody knows of it.
#[derive(Debug, Default)]
pub(crate) struct Spill {
    state: State,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Unused,
    Open {
        file: File,
        path: PathBuf,
        written: u64,
        is_whole: bool,
    },
    Failed(io::Error),
    Kept,
}

/// What became of the whole output.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) path: Option<String>,
    /// For the note that the model reads.
    pub(crate) sentence: String,
}

impl Spill {
    /// Makes the file and writes what came before it, if there is none yet.
    pub(crate) fn begin_with(&mut self, bytes: &[u8]) {
        if !matches!(self.state, State::Unused) {
            return;
        }
        let folder = std::env::temp_dir();
        // Whoever reads it may be somewhere else.
        let folder = std::path::absolute(&folder).unwrap_or(folder);
        SWEEP.call_once(|| sweep(&folder, SystemTime::now()));
        match create(&folder) {
            Ok((file, path)) => {
                self.state = State::Open {
                    file,
                    path,
                    written: 0,
                    is_whole: true,
                };
                self.write(bytes);
            }
            Err(error) => self.state = State::Failed(error),
        }
    }

    /// Appends; a file that cannot be written is given up and removed.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        let State::Open {
            file,
            path,
            written,
            is_whole,
        } = &mut self.state
        else {
            return;
        };
        let room = usize::try_from(MAX_BYTES - *written).unwrap_or(usize::MAX);
        let fitting = &bytes[..bytes.len().min(room)];
        *is_whole &= fitting.len() == bytes.len();
        match file.write_all(fitting) {
            Ok(()) => *written += fitting.len() as u64,
            Err(error) => {
                // What was written so far is no use and takes room that others need.
                let _ = std::fs::remove_file(path);
                self.state = State::Failed(error);
            }
        }
    }

    /// Leaves the file to whoever reads the note.
    pub(crate) fn keep(&mut self) -> Kept {
        match std::mem::replace(&mut self.state, State::Kept) {
            State::Open { path, is_whole, .. } => {
                let path = finished(path).to_string_lossy().into_owned();
                let what = if is_whole {
                    "Full output"
                } else {
                    "First 1 GiB of the output"
                };
                Kept {
                    sentence: format!("{what}: {path}"),
                    path: Some(path),
                }
            }
            State::Failed(error) => Kept {
                path: None,
                sentence: format!(
                    "The full output could not be kept: {}",
                    super::reason(&error)
                ),
            },
            State::Unused | State::Kept => Kept {
                path: None,
                sentence: "The full output was not kept".to_owned(),
            },
        }
    }
}

/// The same file under a name that says that somebody knows of it.
fn finished(path: PathBuf) -> PathBuf {
    let name = path.with_extension("txt");
    match std::fs::rename(&path, &name) {
        Ok(()) => name,
        Err(_) => path,
    }
}

impl Drop for Spill {
    fn drop(&mut self) {
        if let State::Open { path, .. } = &self.state {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Makes a new file that nobody else can read.
fn create(folder: &Path) -> io::Result<(File, PathBuf)> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    loop {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{count}{UNFINISHED}", private_folder::mark());
        let path = folder.join(name);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path);
        match file {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            other => return other.map(|file| (file, path)),
        }
    }
}

/// Removes our own files that are too old; what cannot be read or removed stays.
fn sweep(folder: &Path, now: SystemTime) {
    let user = rustix::process::geteuid().as_raw();
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        let is_old = metadata
            .modified()
            .ok()
            .and_then(|modified| now.duration_since(modified).ok())
            .is_some_and(|age| age > MAX_AGE);
        if metadata.is_file() && metadata.uid() == user && is_old {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_the_owner_can_read() {
        let mut spill = Spill::default();
        spill.begin_with(b"secret");
        let path = spill.keep().path.unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn file_that_nobody_knows_of_is_removed() {
        let mut spill = Spill::default();
        spill.begin_with(b"x");
        let State::Open { path, .. } = &spill.state else {
            panic!("not open: {spill:?}");
        };
        let path = path.clone();
        assert!(path.exists());
        drop(spill);
        assert!(!path.exists());
    }

    #[test]
    fn full_disk_is_told() {
        let mut spill = Spill {
            state: State::Open {
                file: OpenOptions::new().write(true).open("/dev/full").unwrap(),
                path: PathBuf::from("/nonexistent/spill"),
                written: 0,
                is_whole: true,
            },
        };
        spill.write(b"x");
        let kept = spill.keep();
        assert_eq!(kept.path, None);
        assert_eq!(
            kept.sentence,
            "The full output could not be kept: No space left on device"
        );
    }

    #[test]
    fn only_the_first_gibibyte_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (file, path) = create(folder.path()).unwrap();
        let mut spill = Spill {
            state: State::Open {
                file,
                path: path.clone(),
                written: MAX_BYTES - 3,
                is_whole: true,
            },
        };
        spill.write(b"abcdef");
        spill.write(b"ghi");
        let kept = spill.keep();
        let path = path.with_extension("txt");
        let sentence = format!("First 1 GiB of the output: {}", path.display());
        assert_eq!(kept.sentence, sentence);
        assert_eq!(std::fs::read(path).unwrap(), b"abc");
    }

    #[test]
    fn old_files_of_ours_are_swept() {
        let folder = tempfile::tempdir().unwrap();
        let ours = folder.path().join(format!("{PREFIX}1-2-3.txt"));
        let other = folder.path().join("other.txt");
        for path in [&ours, &other] {
            std::fs::write(path, "x").unwrap();
        }
        sweep(folder.path(), SystemTime::now() + MAX_AGE / 2);
        assert!(ours.exists());
        sweep(folder.path(), SystemTime::now() + MAX_AGE * 2);
        assert!(!ours.exists());
        assert!(other.exists());
    }
}
