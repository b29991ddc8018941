//! The file queue: calls that change the same file run one after the other, in source order.
//!
//! A [`Ticket`] names all files of one call at once and waits until no earlier ticket names one of them,
//! so there is no order in which two calls can hold a file each and wait for the other's. The exception are
//! calls that a running tool makes: they come later than what their parent holds, and a wait of theirs that
//! would close a circle is refused instead ([`Deadlock`]).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// What makes two paths the same file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum FileKey {
    /// An existing file, links followed.
    Inode { device: u64, inode: u64 },
    /// The real folder and the name: also for a file that is still to be made.
    Path(PathBuf),
}

/// The files that one call changes, resolved.
#[derive(Debug, Clone, Default)]
pub struct Files {
    keys: Vec<(FileKey, PathBuf)>,
}

impl Files {
    /// Resolves `paths` against `cwd`. A path counts under its real folder and name and, if it exists,
    /// under its device and inode too, so that a file made meanwhile is still recognised by either.
    pub fn resolve(cwd: &Path, paths: &[&str]) -> Self {
        let mut keys = Vec::new();
        for path in paths {
            let full = cwd.join(path);
            if let Some(inode) = inode_of(&full) {
                keys.push((inode, full.clone()));
            }
            keys.push((FileKey::Path(real_path(&full)), full));
        }
        Self { keys }
    }

    /// Whether the call changes no file.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

#[cfg(unix)]
fn inode_of(path: &Path) -> Option<FileKey> {
    use std::os::unix::fs::MetadataExt;
    let metadata = std::fs::metadata(path).ok()?;
    Some(FileKey::Inode {
        device: metadata.dev(),
        inode: metadata.ino(),
    })
}

#[cfg(not(unix))]
fn inode_of(_path: &Path) -> Option<FileKey> {
    None
}

/// The real path of a file that may not exist: the nearest existing ancestor, links followed, and the rest.
fn real_path(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    // A link to a file that is still to be made: that file is meant.
    if let (Ok(target), Some(parent)) = (path.read_link(), path.parent()) {
        let target = parent.join(target);
        if target.read_link().is_err() {
            return real_path(&target);
        }
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => real_path(parent).join(name),
        _ => path.to_path_buf(),
    }
}

type TicketId = u64;

#[derive(Debug)]
struct Entry {
    files: Files,
    /// The ticket of the call that made this call, and so on up.
    ancestors: Vec<TicketId>,
    /// Whether it still waits for an earlier ticket.
    waits: bool,
}

#[derive(Debug, Default)]
struct State {
    /// By id: ids rise, so this is the order in which the tickets were taken.
    entries: BTreeMap<TicketId, Entry>,
    /// Which tickets name a file, in the order in which they were taken.
    by_file: HashMap<FileKey, Vec<TicketId>>,
    next: TicketId,
}

/// Hands out the files. Cheap to clone; all clones are one queue.
#[derive(Debug, Clone, Default)]
pub struct FileQueue {
    state: Arc<Mutex<State>>,
    released: Arc<Notify>,
}

/// A wait that would close a circle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deadlock {
    /// The file that can never come free.
    pub file: PathBuf,
}

impl FileQueue {
    /// Takes the place in the queue; `parent` is the ticket of the tool that makes this call.
    ///
    /// Nothing is waited for yet: take the tickets in source order, then await [`Ticket::ready`].
    pub fn take(&self, files: Files, parent: Option<&Ticket>) -> Result<Ticket, Deadlock> {
        let mut state = self.lock();
        let id = state.next;
        state.next += 1;
        let ancestors = parent.map_or_else(Vec::new, Ticket::lineage);
        let waits = state.ahead(id, &files, &ancestors).next().is_some();
        if waits && let Some(file) = state.circle(id, &files, &ancestors) {
            return Err(Deadlock { file });
        }
        for (key, _) in &files.keys {
            let tickets = state.by_file.entry(key.clone()).or_default();
            if tickets.last() != Some(&id) {
                tickets.push(id);
            }
        }
        let lineage = std::iter::once(id)
            .chain(ancestors.iter().copied())
            .collect();
        state.entries.insert(
            id,
            Entry {
                files,
                ancestors,
                waits,
            },
        );
        Ok(Ticket {
            queue: self.clone(),
            id,
            lineage,
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The earlier tickets that a ticket of this lineage has to wait for, with the file.
    ///
    /// A file that an ancestor holds is free for its descendants, whoever else waits for it;
    /// only they among themselves keep their order.
    fn ahead<'s>(
        &'s self,
        id: TicketId,
        files: &'s Files,
        ancestors: &'s [TicketId],
    ) -> impl Iterator<Item = (TicketId, &'s Path)> {
        files.keys.iter().flat_map(move |(key, path)| {
            let tickets = self.by_file.get(key).map_or(&[][..], Vec::as_slice);
            let holder = ancestors.iter().find(|ancestor| tickets.contains(ancestor));
            let counts = move |other: &TicketId| {
                *other < id
                    && !ancestors.contains(other)
                    && holder.is_none_or(|holder| self.entries[other].ancestors.contains(holder))
            };
            tickets
                .iter()
                .copied()
                .filter(counts)
                .map(move |other| (other, path.as_path()))
        })
    }

    /// The file for which a ticket of this lineage would wait for ever: following who waits for whom from
    /// its holder leads back to an ancestor, which cannot end before this call does.
    fn circle(&self, id: TicketId, files: &Files, ancestors: &[TicketId]) -> Option<PathBuf> {
        let mut seen = HashSet::new();
        self.ahead(id, files, ancestors)
            .find(|(other, _)| self.leads_to(*other, ancestors, &mut seen))
            .map(|(_, path)| path.to_path_buf())
    }

    /// Whether `from` cannot end before one of `goals` ends.
    fn leads_to(&self, from: TicketId, goals: &[TicketId], seen: &mut HashSet<TicketId>) -> bool {
        if goals.contains(&from) {
            return true;
        }
        if !seen.insert(from) {
            return false;
        }
        // It waits itself, or a call that it made does.
        self.entries
            .iter()
            .filter(|(id, entry)| entry.waits && (**id == from || entry.ancestors.contains(&from)))
            .any(|(id, entry)| {
                self.ahead(*id, &entry.files, &entry.ancestors)
                    .any(|(next, _)| self.leads_to(next, goals, seen))
            })
    }

    fn is_ready(&mut self, id: TicketId) -> bool {
        let Some(entry) = self.entries.get(&id) else {
            return true;
        };
        let waits = self
            .ahead(id, &entry.files, &entry.ancestors)
            .next()
            .is_some();
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.waits = waits;
        }
        !waits
    }

    fn remove(&mut self, id: TicketId) {
        let Some(entry) = self.entries.remove(&id) else {
            return;
        };
        for (key, _) in entry.files.keys {
            if let Some(tickets) = self.by_file.get_mut(&key) {
                tickets.retain(|other| *other != id);
                if tickets.is_empty() {
                    self.by_file.remove(&key);
                }
            }
        }
    }
}

/// A place in the queue; dropping it gives the files back.
#[derive(Debug)]
pub struct Ticket {
    queue: FileQueue,
    id: TicketId,
    /// This ticket and those of its ancestors, nearest first.
    lineage: Vec<TicketId>,
}

impl Ticket {
    /// Waits until no earlier call holds or awaits one of the files.
    pub async fn ready(&self) {
        loop {
            let released = self.queue.released.notified();
            tokio::pin!(released);
            released.as_mut().enable();
            if self.queue.lock().is_ready(self.id) {
                return;
            }
            released.await;
        }
    }

    fn lineage(&self) -> Vec<TicketId> {
        self.lineage.clone()
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.queue.lock().remove(self.id);
        self.queue.released.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn is_ready(ticket: &Ticket) -> bool {
        ticket.ready().now_or_never().is_some()
    }

    fn files(dir: &Path, names: &[&str]) -> Files {
        Files::resolve(dir, names)
    }

    #[test]
    fn same_file_in_source_order_others_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let queue = FileQueue::default();
        let first = queue.take(files(dir.path(), &["a"]), None).unwrap();
        let second = queue.take(files(dir.path(), &["./a", "b"]), None).unwrap();
        let third = queue.take(files(dir.path(), &["b"]), None).unwrap();
        let other = queue.take(files(dir.path(), &["c"]), None).unwrap();
        assert!(is_ready(&first) && is_ready(&other));
        assert!(
            !is_ready(&second) && !is_ready(&third),
            "b waits behind the earlier call that wants it"
        );
        drop(first);
        assert!(is_ready(&second) && !is_ready(&third));
        drop(second);
        assert!(is_ready(&third));
    }

    #[test]
    fn links_are_the_file_they_point_to() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("real"), "x").unwrap();
        std::fs::hard_link(dir.path().join("real"), dir.path().join("hard")).unwrap();
        std::os::unix::fs::symlink("real", dir.path().join("soft")).unwrap();
        std::os::unix::fs::symlink("new", dir.path().join("dangling")).unwrap();
        let queue = FileQueue::default();
        let _first = queue
            .take(files(dir.path(), &["real", "new"]), None)
            .unwrap();
        for name in ["hard", "soft", "dangling"] {
            let other = queue.take(files(dir.path(), &[name]), None).unwrap();
            assert!(!is_ready(&other), "{name}");
        }
    }

    #[test]
    fn a_file_made_meanwhile_is_still_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let queue = FileQueue::default();
        let _first = queue.take(files(dir.path(), &["new"]), None).unwrap();
        std::fs::write(dir.path().join("new"), "x").unwrap();
        let second = queue.take(files(dir.path(), &["new"]), None).unwrap();
        assert!(!is_ready(&second));
    }

    #[test]
    fn nested_call_does_not_wait_for_its_ancestors() {
        let dir = tempfile::tempdir().unwrap();
        let queue = FileQueue::default();
        let parent = queue.take(files(dir.path(), &["a"]), None).unwrap();
        let behind = queue.take(files(dir.path(), &["a"]), None).unwrap();
        let nested = queue
            .take(files(dir.path(), &["a"]), Some(&parent))
            .unwrap();
        let sibling = queue
            .take(files(dir.path(), &["a"]), Some(&parent))
            .unwrap();
        assert!(is_ready(&nested) && !is_ready(&sibling) && !is_ready(&behind));
        drop(nested);
        assert!(is_ready(&sibling));
        drop((sibling, parent));
        assert!(is_ready(&behind));
    }

    #[test]
    fn circle_of_two_parents_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let queue = FileQueue::default();
        let left = queue.take(files(dir.path(), &["a"]), None).unwrap();
        let right = queue.take(files(dir.path(), &["b"]), None).unwrap();
        let left_nested = queue.take(files(dir.path(), &["b"]), Some(&left)).unwrap();
        assert!(!is_ready(&left_nested));
        let right_nested = queue.take(files(dir.path(), &["a"]), Some(&right));
        assert_eq!(right_nested.unwrap_err().file, dir.path().join("a"));
    }
}
