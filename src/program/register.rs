//! What lives, in a file without a name: pitool writes it, and the watcher reads it when pitool is gone.
//!
//! Each start and each group has a slot. Writing one is a system call that wakes nobody, and what was written stays when
//! the writer is killed.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// What stands in a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    /// A process of this call is about to start.
    Announced { call: u64 },
    /// This group lives.
    Live { group: i32 },
}

/// A place in the register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot(u64);

/// The register as its writer has it.
#[derive(Debug)]
pub(super) struct Register {
    file: File,
    free: Vec<Slot>,
    slots: u64,
}

/// A slot's bytes: which kind of entry, then what it says.
const SIZE: usize = 16;
const EMPTY: u64 = 0;
const ANNOUNCED: u64 = 1;
const LIVE: u64 = 2;

impl Register {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            file: nameless()?,
            free: Vec::new(),
            slots: 0,
        })
    }

    /// The file, for the reader.
    pub(super) fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Enters something into a free slot.
    pub(super) fn enter(&mut self, entry: Entry) -> Slot {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots += 1;
            Slot(self.slots - 1)
        });
        self.change(slot, entry);
        slot
    }

    /// Changes what stands in a slot.
    pub(super) fn change(&mut self, slot: Slot, entry: Entry) {
        self.write(slot, bytes(entry));
    }

    /// Empties a slot.
    pub(super) fn leave(&mut self, slot: Slot) {
        self.write(slot, pair(EMPTY, 0));
        self.free.push(slot);
    }

    fn write(&mut self, slot: Slot, bytes: [u8; SIZE]) {
        // Without memory for it there is no help: it was a safety net.
        let _ = self.file.write_all_at(&bytes, slot.0 * SIZE as u64);
    }
}

/// All that stands in a register.
pub(super) fn read(file: &File) -> io::Result<Vec<Entry>> {
    let length = usize::try_from(file.metadata()?.len()).unwrap_or(0);
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes.chunks_exact(SIZE).filter_map(entry).collect())
}

fn pair(kind: u64, what: u64) -> [u8; SIZE] {
    (u128::from(kind) << 64 | u128::from(what)).to_ne_bytes()
}

fn bytes(entry: Entry) -> [u8; SIZE] {
    match entry {
        Entry::Announced { call } => pair(ANNOUNCED, call),
        Entry::Live { group } => pair(LIVE, u64::from(group.cast_unsigned())),
    }
}

fn entry(bytes: &[u8]) -> Option<Entry> {
    let both = u128::from_ne_bytes(bytes.try_into().ok()?);
    #[expect(clippy::cast_possible_truncation, reason = "the lower half")]
    let (kind, what) = ((both >> 64) as u64, both as u64);
    match kind {
        ANNOUNCED => Some(Entry::Announced { call: what }),
        LIVE => {
            let group = u32::try_from(what).ok()?.cast_signed();
            Some(Entry::Live { group })
        }
        _ => None,
    }
}

#[cfg(target_os = "linux")]
fn nameless() -> io::Result<File> {
    use rustix::fs::{MemfdFlags, memfd_create};

    Ok(memfd_create(c"pitool-register", MemfdFlags::CLOEXEC)?.into())
}

#[cfg(not(target_os = "linux"))]
fn nameless() -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;

    let path = std::env::temp_dir().join(format!("pitool-register-{}", std::process::id()));
    let mut options = File::options();
    let file = options
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_left_is_not_read_and_its_slot_is_used_again() {
        let mut register = Register::new().unwrap();
        let start = register.enter(Entry::Announced { call: u64::MAX });
        let server = register.enter(Entry::Live { group: 7 });
        register.change(start, Entry::Live { group: i32::MAX });
        let file = register.file().unwrap();
        let live = [i32::MAX, 7].map(|group| Entry::Live { group });
        assert_eq!(read(&file).unwrap(), live);
        register.leave(start);
        assert_eq!(read(&file).unwrap(), live[1..]);
        assert_eq!(register.enter(Entry::Announced { call: 0 }), start);
        register.leave(server);
        assert_eq!(read(&file).unwrap(), [Entry::Announced { call: 0 }]);
    }
}
