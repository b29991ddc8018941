//! What `/proc` says about other processes: only asked when something was left behind.

use std::fs;

/// One process, as `/proc/PID/stat` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) id: i32,
    pub(crate) name: String,
    /// It has ended and nobody has reaped it yet.
    pub(crate) has_ended: bool,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
}

impl Process {
    /// The process with this id, if there is one.
    pub(crate) fn find(id: i32) -> Option<Self> {
        parse(&fs::read(format!("/proc/{id}/stat")).ok()?)
    }

    /// A variable of the environment that the process was started with.
    pub(crate) fn variable(&self, name: &str) -> Option<Vec<u8>> {
        let environment = fs::read(format!("/proc/{}/environ", self.id)).ok()?;
        environment.split(|byte| *byte == 0).find_map(|variable| {
            let value = variable.strip_prefix(name.as_bytes())?;
            value.strip_prefix(b"=").map(<[u8]>::to_vec)
        })
    }
}

/// All processes that can be seen.
pub(crate) fn processes() -> impl Iterator<Item = Process> {
    let entries = fs::read_dir("/proc").ok().into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(Process::find)
}

/// Reads `ID (NAME) STATE PARENT GROUP SESSION …`; the name may hold anything, parentheses too.
fn parse(stat: &[u8]) -> Option<Process> {
    let stat = String::from_utf8_lossy(stat);
    let (id, rest) = stat.split_once(" (")?;
    let (name, rest) = rest.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let state = fields.next()?;
    Some(Process {
        id: id.parse().ok()?,
        name: name.to_owned(),
        has_ended: matches!(state, "Z" | "X"),
        parent: fields.next()?.parse().ok()?,
        group: fields.next()?.parse().ok()?,
        session: fields.next()?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_is_read_whatever_the_name() {
        assert_eq!(
            parse(b"42 (a) b (c)) Z 1 40 30 0 -1 4194560"),
            Some(Process {
                id: 42,
                name: "a) b (c)".into(),
                has_ended: true,
                parent: 1,
                group: 40,
                session: 30,
            })
        );
    }

    #[test]
    fn this_process_is_found() {
        let id = i32::try_from(std::process::id()).unwrap();
        let process = Process::find(id).unwrap();
        assert_eq!(process.id, id);
        assert!(!process.has_ended);
        assert!(
            process
                .variable("PATH")
                .is_some_and(|path| !path.is_empty())
        );
        assert_eq!(process.variable("PITOOL_NOT_SET"), None);
        assert!(processes().any(|one| one.id == id));
    }
}
