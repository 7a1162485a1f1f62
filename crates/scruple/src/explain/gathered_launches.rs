//! The measurements of both programs.

use crate::profile::read::Kind;
use scruple_code::Side;
use scruple_core::explain::Count;

/// The measurements of both programs.
pub struct GatheredLaunches {
    /// The call trees of each launch, for the first and for the second program.
    pub sides: [Vec<Side>; 2],
    /// If each side ran once more to count only its total: by how much a total differed from that of the first launch.
    pub variation_of_totals: Option<u64>,
    /// The processor times of launches in shared blocks, in nanoseconds; empty if they were not requested.
    pub times: [Vec<f64>; 2],
    /// Sentences that the user should read.
    pub remarks: Vec<String>,
    /// The tool that counted, unless the counts were read from a file.
    pub counted_by: Option<String>,
    /// The meaning of the counts.
    pub kind: Kind,
    /// What is explained first.
    pub count: Count,
    /// The same programs by functions of their own language, where the interpreter could count these.
    pub script: Option<Box<GatheredLaunches>>,
}
