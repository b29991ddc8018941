//! The files of a tools folder: which there are, and their text. Nothing here knows what a manifest means.

use std::ffi::OsStr;
use std::fs::{self, File, FileType, OpenOptions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::string::FromUtf8Error;

use rustix::fs::OFlags;

use crate::manifest::Place;

use super::problem::Problem;

/// No manifest is larger: what is, is something else.
const MAX_BYTES: u64 = 4 << 20;

/// A file of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) path: PathBuf,
    /// The folder says that it is a regular file. Of a link it does not say what is behind it.
    is_regular: bool,
}

/// The files of `dir` that should be manifests, by file name: those that end in `.json` and are not hidden.
pub(super) fn manifests(dir: &Path) -> Result<Vec<Listed>, Problem> {
    let entries = fs::read_dir(dir).map_err(|error| no_folder(dir, &error))?;
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| cannot_read(dir, &error))?;
        if is_manifest_name(&entry.file_name()) {
            files.push(Listed {
                path: entry.path(),
                is_regular: entry.file_type().is_ok_and(|kind| kind.is_file()),
            });
        }
    }
    files.sort_unstable_by(|one, other| one.path.file_name().cmp(&other.path.file_name()));
    Ok(files)
}

impl Listed {
    /// The text of the manifest, as [`read`] reads it; what the folder calls a regular file is not looked at twice.
    pub(super) fn read(&self) -> Result<String, Problem> {
        if self.is_regular {
            read_opened(&self.path)
        } else {
            read(&self.path)
        }
    }
}

fn is_manifest_name(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name.ends_with(b".json") && !name.starts_with(b".")
}

fn no_folder(dir: &Path, error: &io::Error) -> Problem {
    match error.kind() {
        io::ErrorKind::NotFound => Problem::of_file(dir, "there is no such folder").with_hint(
            "name the folder of your tools with --tools DIR, or begin with `pitool init`",
        ),
        io::ErrorKind::NotADirectory => Problem::of_file(dir, "is not a folder"),
        _ => cannot_read(dir, error),
    }
}

fn cannot_read(path: &Path, error: &io::Error) -> Problem {
    Problem::of_file(path, format!("cannot be read: {error}"))
}

/// The text of a manifest. What is no regular file, also behind a link, is refused without opening it: opening a FIFO
/// waits for its writer, opening a device may do anything.
pub(crate) fn read(path: &Path) -> Result<String, Problem> {
    let unreadable = |error: io::Error| cannot_read(path, &error);
    refuse_other_kinds(path, fs::metadata(path).map_err(unreadable)?.file_type())?;
    read_opened(path)
}

fn read_opened(path: &Path) -> Result<String, Problem> {
    let unreadable = |error: io::Error| cannot_read(path, &error);
    let file = open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    // The file may have become another one since the first look.
    refuse_other_kinds(path, metadata.file_type())?;
    let bytes = read_up_to_limit(&file, metadata.len()).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Problem::of_file(
            path,
            "is larger than 4 MiB, too large for a manifest or a case",
        ));
    }
    String::from_utf8(bytes).map_err(|error| not_utf8(path, &error))
}

fn not_utf8(path: &Path, error: &FromUtf8Error) -> Problem {
    let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
    let valid = str::from_utf8(valid).expect("valid up to there");
    Problem::at(path, Place::of(valid, valid.len()), "is not valid UTF-8")
}

fn refuse_other_kinds(path: &Path, kind: FileType) -> Result<(), Problem> {
    let what = if kind.is_file() {
        return Ok(());
    } else if kind.is_dir() {
        "a folder"
    } else if kind.is_fifo() {
        "a FIFO"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    };
    Err(Problem::of_file(
        path,
        format!("is {what}, not a regular file"),
    ))
}

/// Opens without ever waiting.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
}

/// One byte more than the limit tells that there is more.
fn read_up_to_limit(file: &File, expected: u64) -> io::Result<Vec<u8>> {
    let capacity = usize::try_from(expected.min(MAX_BYTES)).unwrap_or(0) + 1;
    let mut bytes = vec![0; capacity];
    let mut file = file.take(MAX_BYTES + 1);
    let length = loop {
        match file.read(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => break read?,
        }
    };
    bytes.truncate(length);
    // A regular file gives less than there is room for only at its end.
    if length == capacity {
        file.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::fs::{FileType as NodeType, Mode, mknodat};

    use super::*;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    fn write(dir: &Path, name: &str, text: &[u8]) -> PathBuf {
        let path = dir.join(name);
        fs::write(&path, text).unwrap();
        path
    }

    #[track_caller]
    fn refused(path: &Path, message: &str) {
        assert_eq!(read(path), Err(Problem::of_file(path, message)));
    }

    #[test]
    fn files_come_by_name_without_hidden_ones_and_other_endings() {
        let dir = folder();
        for name in [
            "b.json",
            "10-a.json",
            "2.json",
            ".hidden.json",
            "a.JSON",
            "readme.md",
            "json",
            ".json",
        ] {
            write(dir.path(), name, b"{}");
        }
        let files = manifests(dir.path()).unwrap();
        let names: Vec<_> = files
            .iter()
            .map(|file| file.path.file_name().unwrap())
            .collect();
        assert_eq!(names, ["10-a.json", "2.json", "b.json"]);
    }

    #[test]
    fn a_missing_folder_says_what_to_do() {
        let dir = folder();
        let missing = dir.path().join("none");
        let problem = manifests(&missing).unwrap_err();
        assert_eq!(problem.message, "there is no such folder");
        assert!(problem.hint.is_some());
        let file = write(dir.path(), "file", b"");
        assert_eq!(manifests(&file).unwrap_err().message, "is not a folder");
    }

    #[test]
    fn a_link_to_a_regular_file_is_a_file() {
        let dir = folder();
        write(dir.path(), "real", b"text");
        symlink("real", dir.path().join("link.json")).unwrap();
        assert_eq!(read(&dir.path().join("link.json")), Ok("text".into()));
    }

    #[test]
    fn what_is_no_regular_file_is_refused_without_opening_it() {
        let dir = folder();
        let fifo = dir.path().join("fifo.json");
        mknodat(
            rustix::fs::CWD,
            &fifo,
            NodeType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        refused(&fifo, "is a FIFO, not a regular file");
        let link = dir.path().join("link.json");
        symlink("fifo.json", &link).unwrap();
        refused(&link, "is a FIFO, not a regular file");
        let device = dir.path().join("zero.json");
        symlink("/dev/zero", &device).unwrap();
        refused(&device, "is a device, not a regular file");
        let inner = dir.path().join("inner.json");
        fs::create_dir(&inner).unwrap();
        refused(&inner, "is a folder, not a regular file");
        let socket = dir.path().join("socket.json");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        refused(&socket, "is a socket, not a regular file");
    }

    #[test]
    fn a_dangling_link_cannot_be_read() {
        let dir = folder();
        let link = dir.path().join("link.json");
        symlink("none", &link).unwrap();
        refused(
            &link,
            "cannot be read: No such file or directory (os error 2)",
        );
    }

    #[test]
    fn four_mebibytes_are_read_and_one_byte_more_is_refused() {
        let dir = folder();
        let limit = usize::try_from(MAX_BYTES).unwrap();
        let path = write(dir.path(), "large.json", &vec![b' '; limit]);
        assert_eq!(read(&path).unwrap().len(), limit);
        write(dir.path(), "large.json", &vec![b' '; limit + 1]);
        refused(
            &path,
            "is larger than 4 MiB, too large for a manifest or a case",
        );
    }

    #[test]
    fn invalid_bytes_are_found() {
        let dir = folder();
        let path = write(dir.path(), "a.json", b"{\n\"a\": \"\xff\"}");
        let place = Place { line: 2, column: 7 };
        assert_eq!(
            read(&path),
            Err(Problem::at(&path, place, "is not valid UTF-8"))
        );
    }
}
