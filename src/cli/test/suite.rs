//! Which cases are meant, and with which tools each of them runs.

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use pitool::cases::{Case, SURFACE, Surface, case_files, declared, read_cases};
use pitool::registry::{Problem, Registry};
use serde_json::Value;

use super::{CASES, cases_of};
use crate::cli::{Exit, Global, Hinted, load, print};
use crate::report::sanitize;
use crate::report::style::Styles;

/// All that is to be judged.
pub(super) struct Suite {
    /// In the order of the folders and files.
    pub(super) items: Vec<Item>,
    /// Whether a case could not be understood; it was told.
    pub(super) has_problems: bool,
}

/// One thing to judge.
pub(super) struct Item {
    /// What it is called.
    pub(super) name: String,
    /// The file to mend or record.
    pub(super) file: PathBuf,
    /// The line in it, if there are several.
    pub(super) line: Option<usize>,
    /// The tools folders, from the root.
    pub(super) tools: Vec<PathBuf>,
    /// What is judged.
    pub(super) task: Task,
}

/// What is judged.
pub(super) enum Task {
    /// Whether the tools of a folder are declared as they were.
    Surface(Surface, Value),
    /// Whether a case comes to what it came to.
    Case(Box<Case>),
}

/// The words of the command line.
struct Wanted {
    files: Vec<PathBuf>,
    parts: Vec<String>,
}

impl Wanted {
    fn of(words: &[String]) -> Self {
        let (files, parts): (Vec<_>, Vec<_>) = words
            .iter()
            .cloned()
            .partition(|word| Path::new(word).exists());
        Self {
            files: files.into_iter().map(PathBuf::from).collect(),
            parts,
        }
    }

    fn fits(&self, name: &str) -> bool {
        self.parts.is_empty() || self.parts.iter().any(|part| name.contains(part.as_str()))
    }
}

/// Collects items and tells what is wrong on the way.
struct Finder<'g> {
    global: &'g Global,
    /// The sets of tools folders that are known to load.
    loaded: Vec<Vec<PathBuf>>,
    items: Vec<Item>,
    has_problems: bool,
}

impl Suite {
    /// Finds what the words of the command line mean: files and folders as they are, other words as parts of names.
    pub(super) fn find(words: &[String], global: &Global) -> anyhow::Result<Self> {
        let wanted = Wanted::of(words);
        let mut finder = Finder {
            global,
            loaded: Vec::new(),
            items: Vec::new(),
            has_problems: false,
        };
        if wanted.files.is_empty() {
            let tools = load::folders(global);
            finder.folders(&tools)?;
        } else {
            for file in &wanted.files {
                finder.named(file)?;
            }
        }
        let Finder {
            mut items,
            has_problems,
            ..
        } = finder;
        if items.is_empty() && !has_problems {
            return Err(nothing_found(&wanted, global).into());
        }
        let names: Vec<String> = items.iter().map(|item| item.name.clone()).collect();
        items.retain(|item| wanted.fits(&item.name));
        if items.is_empty() && !has_problems {
            return Err(nothing_fits(&wanted.parts, &names).into());
        }
        Ok(Self {
            items,
            has_problems,
        })
    }

    /// Prints the names and files.
    pub(super) fn list(&self) -> anyhow::Result<Exit> {
        let line = |item: &Item| {
            let place = match item.line {
                Some(line) => format!("{}:{line}", item.file.display()),
                None => item.file.display().to_string(),
            };
            let (name, place) = (sanitize::one_line(&item.name), sanitize::one_line(&place));
            format!("{name}\t{place}\n")
        };
        let text: String = self.items.iter().map(line).collect();
        let exit = if self.has_problems {
            Exit::NotUnderstood
        } else {
            Exit::Ok
        };
        print::text_of(&text, exit)
    }
}

impl Finder<'_> {
    /// All cases of some tools folders, and what each of them declares.
    fn folders(&mut self, tools: &[PathBuf]) -> anyhow::Result<()> {
        let all = self.load(tools)?;
        for folder in tools {
            let cases = cases_of(folder);
            let files = self.files(&cases);
            if !files.is_empty() {
                self.surface(folder);
            }
            for file in files {
                self.file(&file, &all);
            }
        }
        Ok(())
    }

    /// The folders from the root. Tools that do not load make every case fail for a reason that is none of its own.
    fn load(&mut self, tools: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
        if !self.loaded.iter().any(|loaded| loaded == tools) {
            load::usable(&Global {
                tools: tools.to_vec(),
                color: self.global.color,
            })?;
            self.loaded.push(tools.to_vec());
        }
        let absolute = |folder: &PathBuf| folder.canonicalize().unwrap_or_else(|_| folder.clone());
        Ok(tools.iter().map(absolute).collect())
    }

    /// A file or folder of the command line.
    fn named(&mut self, path: &Path) -> anyhow::Result<()> {
        let tools = self.tools_of(path);
        if path.is_dir() {
            let cases = cases_of(path);
            if cases.is_dir() {
                return self.folders(&[path.to_owned()]);
            }
            if tools.iter().any(|folder| cases_of(folder) == path) {
                return self.folders(&tools);
            }
            let all = self.load(&tools)?;
            for file in self.files(path) {
                self.file(&file, &all);
            }
            return Ok(());
        }
        let all = self.load(&tools)?;
        if path.file_name().is_some_and(|name| name == SURFACE) {
            for folder in &tools {
                self.surface(folder);
            }
        } else {
            self.file(path, &all);
        }
        Ok(())
    }

    /// A case in `DIR/cases` runs with the tools of DIR if there are any, any other with those of every command.
    fn tools_of(&self, path: &Path) -> Vec<PathBuf> {
        let owner = Self::owner_of(path).filter(|_| self.global.tools.is_empty());
        match owner {
            Some(owner) if has_tools(&owner) => vec![owner],
            _ => load::folders(self.global),
        }
    }

    /// The DIR of `DIR/cases` or a file in it.
    fn owner_of(path: &Path) -> Option<PathBuf> {
        let cases = if path.is_dir() { path } else { path.parent()? };
        let cases = if cases == Path::new("") {
            std::env::current_dir().ok()?
        } else {
            cases.to_owned()
        };
        let above = cases.parent().filter(|_| is_cases(&cases))?;
        Some(if above == Path::new("") {
            PathBuf::from(".")
        } else {
            above.to_owned()
        })
    }

    fn files(&mut self, folder: &Path) -> Vec<PathBuf> {
        case_files(folder).unwrap_or_else(|problem| {
            self.tell(&problem);
            Vec::new()
        })
    }

    fn file(&mut self, file: &Path, tools: &[PathBuf]) {
        let found = read_cases(file);
        for problem in &found.problems {
            self.tell(problem);
        }
        self.items.extend(found.cases.into_iter().map(|case| Item {
            name: case.name.clone(),
            file: case.source.file.clone(),
            line: case.source.line,
            tools: tools.to_vec(),
            task: Task::Case(Box::new(case)),
        }));
    }

    fn surface(&mut self, tools: &Path) {
        match Surface::read(&cases_of(tools)) {
            Err(problem) => self.tell(&problem),
            Ok(surface) => {
                let declared = declared(&Registry::load(&[tools.to_owned()]).registry);
                self.items.push(Item {
                    name: "declare".to_owned(),
                    file: surface.file.clone(),
                    line: None,
                    tools: Vec::new(),
                    task: Task::Surface(surface, declared),
                });
            }
        }
    }

    fn tell(&mut self, problem: &Problem) {
        self.has_problems = true;
        let mut stderr = std::io::stderr().lock();
        let styles = Styles::of_stream(self.global.color, stderr.is_terminal());
        // Nobody is left to tell when stderr is gone.
        let _ = stderr.write_all(load::text(problem, &styles).as_bytes());
    }
}

fn has_tools(folder: &Path) -> bool {
    let loaded = Registry::load(&[folder.to_owned()]);
    !loaded.registry.tools().is_empty()
}

fn is_cases(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name == CASES)
}

fn nothing_found(wanted: &Wanted, global: &Global) -> Hinted {
    let looked: Vec<PathBuf> = if wanted.files.is_empty() {
        load::folders(global)
            .iter()
            .map(|folder| cases_of(folder))
            .collect()
    } else {
        wanted.files.clone()
    };
    let looked: Vec<String> = looked
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    Hinted::new(
        format!("no cases found in {}", looked.join(", ")),
        format!(
            "write {}/NAME.json with {{\"call\": {{\"name\": \"TOOL\", \"arguments\": {{…}}}}}}, then `pitool test --update` \
             records what the tool answers",
            looked.first().map_or("tools.d/cases", String::as_str)
        ),
    )
}

fn nothing_fits(parts: &[String], names: &[String]) -> Hinted {
    let quoted: Vec<String> = parts.iter().map(|part| format!("\"{part}\"")).collect();
    let shown: Vec<&str> = names.iter().map(String::as_str).take(10).collect();
    let more = if names.len() > shown.len() {
        ", …"
    } else {
        ""
    };
    Hinted::new(
        format!(
            "there is no file {} and no case with that in its name",
            quoted.join(" or ")
        ),
        format!("cases are {}{more}", shown.join(", ")),
    )
}
