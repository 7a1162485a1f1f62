//! The memory of a tree of processes: how much it had over time, and what its largest process had mapped. `measure`
//! reads both from the kernel.

use crate::words::words;
use core::time::Duration;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Amounts of memory in bytes, by whether it is shared and whether it differs from what is on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryAmount {
    /// The address space, whether used or not.
    pub size: u64,
    /// The resident memory.
    pub resident: u64,
    /// The resident memory, each page divided by the number of processes that share it.
    pub proportional: u64,
    /// Memory shared with other processes, unchanged from disk.
    pub shared_clean: u64,
    /// Memory shared with other processes, modified.
    pub shared_dirty: u64,
    /// Private memory, unchanged from disk.
    pub private_clean: u64,
    /// Private memory that was modified: the cost of this process alone.
    pub private_dirty: u64,
    /// Memory that was swapped out.
    pub swapped: u64,
    /// Memory in huge pages.
    pub huge: u64,
}

impl MemoryAmount {
    /// The memory that would be freed if the process ended (unique set size, USS), in bytes.
    pub fn unique(&self) -> u64 {
        self.private_clean.saturating_add(self.private_dirty)
    }

    /// Adds another amount to this one.
    pub fn add(&mut self, other: &MemoryAmount) {
        self.size = self.size.saturating_add(other.size);
        self.resident = self.resident.saturating_add(other.resident);
        self.proportional = self.proportional.saturating_add(other.proportional);
        self.shared_clean = self.shared_clean.saturating_add(other.shared_clean);
        self.shared_dirty = self.shared_dirty.saturating_add(other.shared_dirty);
        self.private_clean = self.private_clean.saturating_add(other.private_clean);
        self.private_dirty = self.private_dirty.saturating_add(other.private_dirty);
        self.swapped = self.swapped.saturating_add(other.swapped);
        self.huge = self.huge.saturating_add(other.huge);
    }
}

/// A function that selects a part of an amount of memory, in bytes.
pub type AmountPart = fn(&MemoryAmount) -> u64;

words! {
    /// The purpose of a mapping.
    pub enum Class {
        /// Machine code of a file.
        Code = "code",
        /// Constants of a file.
        ReadOnly = "read-only data",
        /// Variables of a file.
        Data = "data",
        /// Another mapping of a file: shared and written to, or inaccessible.
        File = "mapped files",
        /// The heap that `brk` grows.
        Heap = "heap",
        /// Memory without a file: that of allocators and runtimes, and stacks of threads.
        Anonymous = "anonymous",
        /// The stack of the first thread.
        Stack = "stack",
        /// Shared memory without a file name.
        SharedMemory = "shared memory",
        /// Memory that the kernel itself mapped.
        Kernel = "kernel",
    }
}

impl Class {
    /// Whether mappings of this class belong to a file.
    pub fn is_mapped(self) -> bool {
        matches!(self, Class::Code | Class::ReadOnly | Class::Data | Class::File)
    }
}

/// Serializes an amount with its unique part, which follows from the other parts.
///
/// # Errors
///
/// Fails as the serializer does.
pub fn with_unique<S: Serializer>(amount: &MemoryAmount, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Whole<'a> {
        #[serde(flatten)]
        amount: &'a MemoryAmount,
        unique: u64,
    }
    Whole { amount, unique: amount.unique() }.serialize(serializer)
}

/// The mappings of one class with the same permissions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapRow {
    /// The purpose of the mappings.
    pub class: Class,
    /// Whether the mappings belong to a file.
    pub from_file: bool,
    /// The permissions of the mappings, as the kernel writes them: `rw-p`.
    pub permissions: String,
    /// The number of mappings.
    pub mappings: usize,
    /// The total amount of the mappings.
    #[serde(flatten, serialize_with = "with_unique")]
    pub amount: MemoryAmount,
}

impl MapRow {
    /// Whether the row is worth a line of a table: part of its memory is resident or was swapped out.
    pub fn is_used(&self) -> bool {
        self.amount.resident > 0 || self.amount.swapped > 0
    }
}

/// The totals of the rows with a file, and of those without one.
pub fn mapped_and_anonymous(rows: &[MapRow]) -> (MemoryAmount, MemoryAmount) {
    let mut both = (MemoryAmount::default(), MemoryAmount::default());
    for row in rows {
        let side = if row.class.is_mapped() { &mut both.0 } else { &mut both.1 };
        side.add(&row.amount);
    }
    both
}

/// The memory of a process and its descendants at one moment, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    /// The time since watching started; nanoseconds in JSON.
    #[serde(serialize_with = "nanoseconds", deserialize_with = "from_nanoseconds")]
    pub at: Duration,
    /// The number of processes.
    pub processes: usize,
    /// The resident memory of all processes; shared pages count in each of them.
    pub resident: u64,
    /// The part of the resident memory without a file: private memory, and what fork left shared.
    pub anonymous: u64,
    /// The memory with sharing taken into account. It is read less often, because reading it delays the processes.
    #[serde(flatten)]
    pub divided: Option<Divided>,
}

/// The memory of processes with sharing taken into account, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Divided {
    /// The resident memory, each page divided by the number of processes that share it.
    pub proportional: u64,
    /// The private memory.
    pub unique: u64,
}

fn nanoseconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(duration.as_nanos() as u64)
}

fn from_nanoseconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    u64::deserialize(deserializer).map(Duration::from_nanos)
}

/// The memory of a tree of processes from its start to its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemoryCourse {
    /// The moments, at most some hundreds. When there are too many, neighbours are paired and the smaller of each pair
    /// is dropped, repeatedly.
    pub moments: Vec<Moment>,
    /// The largest process at the time when the tree was largest.
    pub largest: Option<Largest>,
    /// The mappings of the largest process at that time; empty where the kernel does not show them.
    pub map: Vec<MapRow>,
    /// The kernel's own high-water mark of the largest process, in bytes, which also covers the time between moments.
    pub high_water: u64,
}

/// One process of a tree at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Largest {
    /// The id of the process.
    pub pid: i32,
    /// The kernel's name of the process.
    pub name: String,
    /// The time since watching started; nanoseconds in JSON.
    #[serde(serialize_with = "nanoseconds", deserialize_with = "from_nanoseconds")]
    pub at: Duration,
    /// The number of processes of the tree at that time.
    pub processes: usize,
    /// The resident memory of the whole tree at that time.
    pub resident: u64,
}

impl MemoryCourse {
    /// The moment with the most resident memory.
    pub fn peak(&self) -> Option<&Moment> {
        self.moments.iter().max_by_key(|moment| moment.resident)
    }

    /// The largest observed proportional and private size.
    pub fn divided_peaks(&self) -> Option<Divided> {
        let divided = self.moments.iter().filter_map(|moment| moment.divided);
        divided.reduce(|most, one| Divided {
            proportional: most.proportional.max(one.proportional),
            unique: most.unique.max(one.unique),
        })
    }

    /// The total of the map.
    pub fn total(&self) -> MemoryAmount {
        let mut total = MemoryAmount::default();
        self.map.iter().for_each(|row| total.add(&row.amount));
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_course_is_read_back_as_it_was_written() {
        let divided = Some(Divided { proportional: 3, unique: 2 });
        let moment = |divided| Moment {
            at: Duration::from_millis(5),
            processes: 1,
            resident: 4,
            anonymous: 1,
            divided,
        };
        let amount =
            MemoryAmount { resident: 4, private_clean: 1, private_dirty: 1, ..MemoryAmount::default() };
        let course = MemoryCourse {
            moments: vec![moment(divided), moment(None)],
            largest: Some(Largest { pid: 7, name: "app".to_owned(), ..Largest::default() }),
            map: vec![MapRow {
                class: Class::Heap,
                from_file: false,
                permissions: "rw-p".to_owned(),
                mappings: 1,
                amount,
            }],
            high_water: 9,
        };
        let text = serde_json::to_string(&course).expect("JSON");
        assert_eq!(serde_json::from_str::<MemoryCourse>(&text).expect("a course"), course, "{text}");
    }
}
