//! `--save-images`: the images of results as files.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pitool::message::{Content, ToolResult};

/// What the name of a file keeps of an id, in bytes.
const MAX_STEM: usize = 80;

/// A folder that images are saved in. Nothing that is there already is ever overwritten.
pub(crate) struct Images {
    folder: PathBuf,
    /// How many files of a name there were, so that a long run does not look for the next one from the start.
    counts: HashMap<String, usize>,
}

/// The images of one result, in its order.
#[derive(Debug, Default)]
pub(crate) struct Saved {
    /// Where each image is; absent if it could not be saved.
    pub(crate) files: Vec<Option<PathBuf>>,
    /// Why some could not.
    pub(crate) failures: Vec<String>,
}

impl Images {
    /// Makes the folder, before anything runs that could not be saved.
    pub(crate) fn in_folder(folder: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(folder)
            .with_context(|| format!("--save-images: cannot make {}", folder.display()))?;
        Ok(Self {
            folder: folder.to_owned(),
            counts: HashMap::new(),
        })
    }

    /// Saves the images of a result under the id of its call.
    pub(crate) fn save(&mut self, id: &str, result: &ToolResult) -> Saved {
        let mut saved = Saved::default();
        for block in &result.content {
            let Content::Image { data, mime_type } = block else {
                continue;
            };
            let file = self.save_one(id, data, mime_type);
            match file {
                Ok(file) => saved.files.push(Some(file)),
                Err(reason) => {
                    saved.files.push(None);
                    saved.failures.push(reason);
                }
            }
        }
        saved
    }

    fn save_one(&mut self, id: &str, data: &str, mime_type: &str) -> Result<PathBuf, String> {
        let bytes = STANDARD
            .decode(data)
            .map_err(|error| format!("an image is no base64 ({error})"))?;
        let (path, mut file) = self
            .new_file(&stem(id), ending(mime_type))
            .map_err(|error| {
                format!("cannot save an image in {}: {error}", self.folder.display())
            })?;
        let written = file.write_all(&bytes);
        written.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        Ok(path)
    }

    /// `call-1.png`, then `call-1-2.png`: the first name that nothing has.
    fn new_file(&mut self, stem: &str, ending: &str) -> io::Result<(PathBuf, File)> {
        let count = self.counts.entry(format!("{stem}.{ending}")).or_default();
        loop {
            *count += 1;
            let name = match *count {
                1 => format!("{stem}.{ending}"),
                count => format!("{stem}-{count}.{ending}"),
            };
            let path = self.folder.join(name);
            // Does not follow a link that lies in wait there either.
            match File::create_new(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                file => return file.map(|file| (path, file)),
            }
        }
    }
}

/// An id as the name of a file: letters, digits, `_` and `-` stay, so that it is no path and not hidden.
fn stem(id: &str) -> String {
    let mut stem: String = id
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '-' {
                c
            } else {
                '_'
            }
        })
        .take(MAX_STEM)
        .collect();
    // A name that begins with `-` is an option for whoever opens it.
    if stem.is_empty() || stem.starts_with('-') {
        stem.insert(0, '_');
    }
    stem
}

fn ending(mime_type: &str) -> &'static str {
    match mime_type.to_ascii_lowercase().as_str() {
        "image/png" => "png",
        "image/jpeg" | "image/jpg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/avif" => "avif",
        "image/bmp" => "bmp",
        "image/tiff" => "tiff",
        "image/svg+xml" => "svg",
        _ => "bin",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn images(count: usize) -> ToolResult {
        let image = Content::Image {
            data: "UE5H".to_owned(),
            mime_type: "image/png".to_owned(),
        };
        ToolResult {
            content: vec![image; count],
            ..ToolResult::default()
        }
    }

    fn names(saved: &Saved) -> Vec<String> {
        let files = saved.files.iter().flatten();
        files
            .map(|file| file.file_name().unwrap().to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn an_id_is_never_a_path() {
        for (id, expected) in [
            ("call-1", "call-1"),
            ("toolu_01AbC", "toolu_01AbC"),
            ("../../etc/passwd", "______etc_passwd"),
            ("parent/2", "parent_2"),
            (".hidden", "_hidden"),
            ("-rf", "_-rf"),
            ("", "_"),
            ("ü\u{1b}[2J", "___2J"),
        ] {
            assert_eq!(stem(id), expected, "{id:?}");
        }
        assert_eq!(stem(&"x".repeat(5000)).len(), MAX_STEM);
    }

    #[test]
    fn nothing_is_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.png"), "mine").unwrap();
        std::os::unix::fs::symlink("elsewhere", folder.path().join("a-2.png")).unwrap();
        let mut images_of = Images::in_folder(folder.path()).unwrap();
        assert_eq!(
            names(&images_of.save("a", &images(2))),
            ["a-3.png", "a-4.png"]
        );
        assert_eq!(names(&images_of.save("a", &images(1))), ["a-5.png"]);
        assert_eq!(names(&images_of.save("b", &images(1))), ["b.png"]);
        assert_eq!(fs::read(folder.path().join("a.png")).unwrap(), b"mine");
        assert_eq!(fs::read(folder.path().join("b.png")).unwrap(), b"PNG");
        assert!(!folder.path().join("elsewhere").exists());
    }

    #[test]
    fn what_is_no_image_is_told_and_the_others_are_saved() {
        let folder = tempfile::tempdir().unwrap();
        let mut result = images(2);
        result.content[0] = Content::Image {
            data: "?".to_owned(),
            mime_type: "image/png".to_owned(),
        };
        let saved = Images::in_folder(folder.path()).unwrap().save("a", &result);
        assert_eq!(saved.files.len(), 2);
        assert_eq!(
            (saved.files[0].is_none(), names(&saved)),
            (true, vec!["a.png".to_owned()])
        );
        assert!(saved.failures[0].starts_with("an image is no base64"));
    }
}
