//! The files of a case, as it writes them and as they stand in a folder.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::json::{self, pointer::escaped};
use crate::manifest::{Fault, nearest};

/// What stands in the folder of a case before it runs, by path.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Files(Vec<(PathBuf, Content)>);

/// What a file of a case holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// These bytes.
    Bytes(Vec<u8>),
    /// A copy of the file or folder at this path.
    Copy(PathBuf),
}

impl Files {
    /// Reads `files` of a case that stands in `home`.
    pub(super) fn read(files: &Map<String, Value>, home: &Path) -> Result<Self, Vec<Fault>> {
        let mut read = Vec::new();
        let mut faults = Vec::new();
        for (name, value) in files {
            let pointer = format!("/files/{}", escaped(name));
            let path = path_inside(name).ok_or_else(|| {
                Fault::new(
                    &pointer,
                    "expected a relative path that leads into the folder of the case",
                )
            });
            match path.and_then(|path| Ok((path, content(value, &pointer, home)?))) {
                Ok(file) => read.push(file),
                Err(fault) => faults.push(fault),
            }
        }
        if faults.is_empty() {
            Ok(Self(read))
        } else {
            Err(faults)
        }
    }

    /// Writes them into a folder.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        self.0.iter().try_for_each(|(path, content)| {
            let target = folder.join(path);
            if let Some(parent) = target.parent() {
                fs::create_dir_all(parent)?;
            }
            match content {
                Content::Bytes(bytes) => fs::write(target, bytes),
                Content::Copy(source) => copy(source, &target),
            }
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
        })
    }
}

/// A path that leads to something below the folder it is relative to, or to that folder.
fn path_inside(name: &str) -> Option<PathBuf> {
    let path = Path::new(name);
    let is_inside = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    (!name.is_empty() && path.components().all(is_inside)).then(|| path.components().collect())
}

fn content(value: &Value, pointer: &str, home: &Path) -> Result<Content, Fault> {
    if let Value::String(text) = value {
        return Ok(Content::Bytes(text.clone().into_bytes()));
    }
    let member = value
        .as_object()
        .filter(|members| members.len() == 1)
        .and_then(|members| members.iter().next());
    match member.map(|(name, value)| (name.as_str(), value)) {
        Some(("from", Value::String(path))) => Ok(Content::Copy(home.join(path))),
        Some(("base64", Value::String(text))) => {
            STANDARD.decode(text).map(Content::Bytes).map_err(|error| {
                Fault::new(format!("{pointer}/base64"), format!("no base64: {error}"))
            })
        }
        Some((name @ ("from" | "base64"), other)) => Err(Fault::new(
            format!("{pointer}/{name}"),
            format!("expected a string, got {}", json::kind(other)),
        )),
        other => Err(Fault {
            hint: other
                .and_then(|(name, _)| {
                    nearest(name, ["from", "base64"].into_iter())
                        .first()
                        .copied()
                })
                .map(|meant| format!("did you mean \"{meant}\"?")),
            ..Fault::new(
                pointer,
                "expected a text, {\"from\": PATH} or {\"base64\": TEXT}",
            )
        }),
    }
}

/// Copies a file, or a folder with all in it; links stay links, what is neither is refused.
fn copy(source: &Path, target: &Path) -> io::Result<()> {
    let kind = fs::metadata(source)?.file_type();
    if kind.is_dir() {
        fs::create_dir_all(target)?;
        if target.canonicalize()?.starts_with(source.canonicalize()?) {
            return Err(refused(
                source,
                "holds the folder that it is to be copied into",
            ));
        }
        return copy_folder(source, target);
    }
    if !kind.is_file() {
        return Err(refused(source, "is neither a file nor a folder"));
    }
    fs::copy(source, target).map(|_| ())
}

fn refused(source: &Path, why: &str) -> io::Error {
    let message = format!("{} {why}", source.display());
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

fn copy_folder(source: &Path, target: &Path) -> io::Result<()> {
    fs::create_dir_all(target)?;
    for entry in fs::read_dir(source)? {
        let entry = entry?;
        let target = target.join(entry.file_name());
        if entry.file_type()?.is_symlink() {
            symlink(fs::read_link(entry.path())?, target)?;
        } else {
            copy(&entry.path(), &target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(files: &Value, home: &Path) -> Result<Files, Vec<String>> {
        let faults = |faults: Vec<Fault>| faults.iter().map(Fault::full_message).collect();
        Files::read(files.as_object().unwrap(), home).map_err(faults)
    }

    #[test]
    fn texts_bytes_and_copies_are_written() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(home.path().join("data/deep")).unwrap();
        fs::write(home.path().join("data/deep/x"), "copied").unwrap();
        symlink("deep/x", home.path().join("data/link")).unwrap();
        let files = json!({"a/b.txt": "text", "bytes": {"base64": "/wA="}, "d": {"from": "data"},
            "./one": {"from": "data/deep/x"}});
        let folder = tempfile::tempdir().unwrap();
        read(&files, home.path())
            .unwrap()
            .write(folder.path())
            .unwrap();
        let content = |path: &str| fs::read(folder.path().join(path)).unwrap();
        assert_eq!(content("a/b.txt"), b"text");
        assert_eq!(content("bytes"), [255, 0]);
        assert_eq!(content("d/deep/x"), b"copied");
        assert_eq!(content("one"), b"copied");
        assert_eq!(
            fs::read_link(folder.path().join("d/link")).unwrap(),
            Path::new("deep/x")
        );
    }

    #[test]
    fn what_leads_out_or_is_no_content_is_refused() {
        let refused = |files: &Value, messages: &[&str]| {
            assert_eq!(read(files, Path::new("/")).unwrap_err(), messages);
        };
        let path = "expected a relative path that leads into the folder of the case";
        for name in ["../a", "/a", "a/../../b", ""] {
            refused(&json!({name: ""}), &[&format!("files.{name}: {path}")]);
        }
        let content = "expected a text, {\"from\": PATH} or {\"base64\": TEXT}";
        refused(
            &json!({"a": 1, "b": {"form": "x"}, "c": {"from": 1}}),
            &[
                &format!("files.a: {content}"),
                &format!("files.b: {content}"),
                "files.c.from: expected a string, got integer",
            ],
        );
    }

    #[test]
    fn a_folder_is_not_copied_into_itself() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("run/folder");
        fs::create_dir_all(&folder).unwrap();
        let files = read(&json!({"a": {"from": "run"}}), home.path()).unwrap();
        let error = files.write(&folder).unwrap_err().to_string();
        assert!(
            error.contains("holds the folder that it is to be copied into"),
            "{error}"
        );
    }

    #[test]
    fn a_missing_source_is_named() {
        let files = read(&json!({"a": {"from": "none"}}), Path::new("/nowhere")).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let error = files.write(folder.path()).unwrap_err().to_string();
        assert!(error.starts_with("a: No such file"), "{error}");
    }
}
