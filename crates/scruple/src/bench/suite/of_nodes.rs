//! Adopts the results of cases that the nodes of a farm have weighed.

use super::Suite;
use crate::farm::send_command_line::MeasuredByNodes;
use crate::fault::Fault;
use crate::store::Store;

impl Suite {
    /// Replaces the run of the suite by that of the nodes, and stores it.
    pub fn adopt(&mut self, measured: MeasuredByNodes, store: Option<Store>) -> Result<(), Fault> {
        for weighed in &mut self.weighed {
            let name = &self.run.arms[weighed.arm].name;
            weighed.failed = measured.failed.iter().any(|(failed, _)| failed == name);
            // The index of the arm in the run of the nodes may differ.
            weighed.arm = measured.run.arms.iter().position(|arm| arm.name == *name).unwrap_or(weighed.arm);
        }
        (self.run, self.writer) = measured.store_in(store)?;
        Ok(())
    }
}
