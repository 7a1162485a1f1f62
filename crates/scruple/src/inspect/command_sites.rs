//! The sites of a command.

use scruple_code::allocation_sites::HeapSites;

/// The sites of a command, with remarks.
pub struct CommandSites {
    /// The command line.
    pub title: String,
    /// Each process that allocated or freed something, the one with the largest peak first; not empty.
    pub processes: Vec<HeapSites>,
    /// Remarks for the reader, each a sentence.
    pub remarks: Vec<String>,
}
