//! The memory map of a process: how much of it is shared or private, clean or dirty, mapped from files or anonymous, by
//! access rights; and its course over time.
//!
//! Private dirty memory is the cost of a process alone, and the figure for comparing versions: proportional and unique
//! sizes depend on which other processes map the same libraries.

mod course;

pub use course::{WatchedProcesses, read_once, watch, watch_process};

use scruple_core::memory_map::{Class, MapRow, MemoryAmount, mapped_and_anonymous};
use scruple_stats::sorting::SortedMap;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;

/// One mapping of a process's address space.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mapping {
    /// The permissions as the kernel writes them, such as `rw-p`.
    pub permissions: String,
    /// The path of the mapped file, or the kernel's name for the mapping; empty for anonymous memory.
    pub name: String,
    /// What the mapping is used for.
    pub class: Class,
    /// The sizes of the mapping.
    pub amount: MemoryAmount,
}

/// All mappings of a process at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryMap {
    /// The mappings, by address.
    pub mappings: Vec<Mapping>,
}

impl MemoryMap {
    /// Reads the map of a process. Walking its page tables delays the process: about 15 µs for each megabyte.
    pub fn of(pid: i32) -> io::Result<MemoryMap> {
        MemoryMap::parse(&fs::read_to_string(format!("/proc/{pid}/smaps"))?)
            .map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))
    }

    /// Parses the text of `/proc/PID/smaps`.
    pub fn parse(text: &str) -> Result<MemoryMap, String> {
        let mut map = MemoryMap::default();
        for line in text.lines() {
            let first = line.split_whitespace().next().unwrap_or("");
            if let Some(field) = first.strip_suffix(':') {
                let mapping = map.mappings.last_mut().ok_or("the memory map begins without a mapping")?;
                set(&mut mapping.amount, field, line);
            } else if first.contains('-') {
                map.mappings.push(head(line).ok_or_else(|| format!("cannot parse the mapping ‘{line}’"))?);
            }
        }
        Ok(map)
    }

    /// One row for each class and permission that occurs, ordered by class (files before anonymous memory) and
    /// permission.
    pub fn rows(&self) -> Vec<MapRow> {
        let mut rows: SortedMap<(Class, &str), MapRow> = SortedMap::new();
        for mapping in &self.mappings {
            let row = rows.entry((mapping.class, &mapping.permissions)).or_insert_with(|| MapRow {
                class: mapping.class,
                from_file: mapping.class.is_mapped(),
                permissions: mapping.permissions.clone(),
                mappings: 0,
                amount: MemoryAmount::default(),
            });
            row.mappings += 1;
            row.amount.add(&mapping.amount);
        }
        rows.into_values().collect()
    }

    /// The rows with memory that is resident or swapped.
    pub fn table(&self) -> Vec<MapRow> {
        let mut rows = self.rows();
        rows.retain(MapRow::is_used);
        rows
    }

    /// The sum over all mappings.
    pub fn total(&self) -> MemoryAmount {
        let mut total = MemoryAmount::default();
        self.mappings.iter().for_each(|mapping| total.add(&mapping.amount));
        total
    }

    /// The sum over mappings of files, and the sum over anonymous mappings.
    pub fn mapped_and_anonymous(&self) -> (MemoryAmount, MemoryAmount) {
        mapped_and_anonymous(&self.rows())
    }
}

/// Parses the first line of a mapping: `55f0c0a00000-55f0c0a02000 r--p 00000000 08:01 123 /bin/x`.
fn head(line: &str) -> Option<Mapping> {
    let mut words = line.split_whitespace();
    let (_, permissions) = (words.next()?, words.next()?);
    let inode = words.nth(2)?;
    // The name is the rest of the line and may contain blanks.
    let at = line.find(&format!(" {inode} ")).map(|at| at + inode.len() + 2);
    let name = at.and_then(|at| line.get(at..)).unwrap_or("").trim().to_owned();
    Some(Mapping {
        permissions: permissions.to_owned(),
        class: class(permissions, &name),
        name,
        amount: MemoryAmount::default(),
    })
}

fn class(permissions: &str, name: &str) -> Class {
    let has = |letter| permissions.contains(letter);
    match name {
        "" => Class::Anonymous,
        "[heap]" => Class::Heap,
        "[stack]" => Class::Stack,
        _ if name.starts_with("[anon") || name.starts_with("[stack:") => Class::Anonymous,
        _ if name.starts_with('[') => Class::Kernel,
        _ if ["/dev/zero", "/SYSV", "/memfd:"].iter().any(|start| name.starts_with(start)) => {
            Class::SharedMemory
        }
        // A program may also lie there.
        _ if has('s') && name.starts_with("/dev/shm/") => Class::SharedMemory,
        _ if has('x') => Class::Code,
        _ if has('w') && has('p') => Class::Data,
        _ if has('w') || !has('r') => Class::File,
        _ => Class::ReadOnly,
    }
}

fn set(amount: &mut MemoryAmount, field: &str, line: &str) {
    let place = match field {
        "Size" => &mut amount.size,
        "Rss" => &mut amount.resident,
        "Pss" => &mut amount.proportional,
        "Shared_Clean" => &mut amount.shared_clean,
        "Shared_Dirty" => &mut amount.shared_dirty,
        "Private_Clean" => &mut amount.private_clean,
        "Private_Dirty" => &mut amount.private_dirty,
        "Swap" => &mut amount.swapped,
        "AnonHugePages" => &mut amount.huge,
        _ => return,
    };
    *place = kilobytes(line).unwrap_or(0);
}

/// The number in a `Name:   12 kB` line, converted to bytes.
fn kilobytes(line: &str) -> Option<u64> {
    line.split_whitespace().nth(1)?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use scruple_fuzz::Corpus;

    const SMAPS: &str = "\
55f0c0a00000-55f0c0a02000 r-xp 00000000 08:01 123                        /usr/bin/a b
Size:                  8 kB
Rss:                   8 kB
Pss:                   4 kB
Shared_Clean:          8 kB
Shared_Dirty:          0 kB
Private_Clean:         0 kB
Private_Dirty:         0 kB
Swap:                  0 kB
VmFlags: rd ex mr mw me
55f0c0a02000-55f0c0a03000 rw-p 00002000 08:01 123                        /usr/bin/a b
Size:                  4 kB
Rss:                   4 kB
Pss:                   4 kB
Private_Dirty:         4 kB
7f0000000000-7f0000100000 rw-p 00000000 00:00 0 
Size:               1024 kB
Rss:                 512 kB
Pss:                 512 kB
Private_Dirty:       512 kB
Swap:                 16 kB
AnonHugePages:         0 kB
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]
Size:                132 kB
Rss:                   0 kB
7ffc00100000-7ffc00102000 r-xp 00000000 00:00 0                          [vdso]
Size:                  8 kB
Rss:                   4 kB
Shared_Clean:          4 kB
";

    #[test]
    fn a_program_in_a_folder_of_shared_memory_is_code_and_a_segment_is_shared_memory() {
        let classes = ["r-xp", "rw-p", "rw-s"].map(|permissions| class(permissions, "/dev/shm/app"));
        assert_eq!(classes, [Class::Code, Class::Data, Class::SharedMemory]);
    }

    #[test]
    fn the_table_is_made_of_classes_and_permissions() {
        let map = MemoryMap::parse(SMAPS).expect("a map");
        let rows: Vec<String> = map
            .table()
            .iter()
            .map(|row| {
                let dirty = row.amount.private_dirty / 1024;
                format!("{} {} {} {dirty}", row.class.word(), row.permissions, row.mappings)
            })
            .collect();
        assert_eq!(rows, ["code r-xp 1 0", "data rw-p 1 4", "anonymous rw-p 1 512", "kernel r-xp 1 0"]);
        assert_eq!(map.mappings[0].name, "/usr/bin/a b");
        let (mapped, anonymous) = map.mapped_and_anonymous();
        assert_eq!((mapped.resident, anonymous.resident), (12 * 1024, 516 * 1024));
        let total = map.total();
        assert_eq!((total.unique(), total.proportional, total.swapped), (516 * 1024, 520 * 1024, 16 * 1024));
    }

    #[test]
    fn a_text_that_is_not_a_map_is_an_error() {
        assert!(MemoryMap::parse("Rss: 4 kB\n").is_err());
        assert!(MemoryMap::parse("1-2 r\n").is_err());
        assert_eq!(MemoryMap::parse("").expect("empty").table(), []);
    }

    #[test]
    fn our_own_map_adds_up() {
        let map = MemoryMap::of(std::process::id() as i32).expect("our own map");
        let total = map.total();
        let parts = total.shared_clean + total.shared_dirty + total.private_clean + total.private_dirty;
        assert_eq!(parts, total.resident);
        assert!(map.table().iter().any(|row| row.class == Class::Code));
        assert!(map.table().iter().any(|row| row.class == Class::Stack));
    }

    #[test]
    fn damaged_maps_are_survived() {
        Corpus::named("smaps").is_survived_by_text(|text| {
            if let Ok(map) = MemoryMap::parse(text) {
                let _ = (map.table(), map.total());
            }
        });
    }
}
