//! A selected version and the tree that it is built from.

use scruple_core::history::Version;

/// A selected version and the tree that it is built from.
pub struct SelectedVersion {
    /// The version, in the state `queued`.
    pub version: Version,
    /// The id of the version's git tree.
    pub tree: String,
    /// The ids of the left-out commits whose first selected descendant is this version.
    pub left_out: Vec<String>,
}
