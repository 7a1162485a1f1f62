//! What was read of a noisy metric of two arms, and the evidence that it gives.

use super::{Evidence, Replicate};

/// The readings of two arms, and what has to be known of them to tell a difference.
#[derive(Clone, Debug)]
pub struct Readings {
    /// The readings of the reference.
    pub reference: Vec<f64>,
    /// The readings of the arm.
    pub arm: Vec<f64>,
    /// Whether the i-th readings of both arms were taken in one block.
    pub paired: bool,
    /// What one reading stands for.
    pub replicate: Replicate,
    /// How much identical programs may differ, as a ratio less 1.
    pub resolution: f64,
}

impl Readings {
    /// The evidence on the difference at this confidence level.
    pub fn evidence(&self, level: f64) -> Evidence {
        let of_blocks = || match self.paired {
            true => Evidence::of_blocks(&self.reference, &self.arm, level),
            false => Evidence::of_samples(&self.reference, &self.arm, level),
        };
        let found = match self.replicate {
            Replicate::Block => of_blocks(),
            Replicate::Process => Evidence::of_processes(&self.reference, &self.arm, self.paired, level),
            Replicate::Turn => Evidence::of_turns(&self.reference, &self.arm, self.paired, level),
            Replicate::Nodes { nodes, of_class } => {
                Evidence::of_nodes(&self.reference, &self.arm, (nodes, of_class), level)
            }
            Replicate::Launch => match of_blocks() {
                Evidence::Absent { .. } => Evidence::of_handful(&self.reference, &self.arm, level),
                found => found,
            },
        };
        match found {
            Evidence::Interval { effect, of, .. } => {
                Evidence::Interval { effect, of, resolution: self.resolution }
            }
            found => found,
        }
    }
}
