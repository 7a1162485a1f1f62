//! Cases that the nodes of a farm have weighed.

use super::Suite;
use crate::farm::lines::Lines;
use crate::fault::Fault;
use crate::store::Store;

impl Suite {
    /// Takes what the nodes of a farm have read in place of readings of its own, and stores it.
    pub fn adopt(&mut self, lines: Lines, store: Option<Store>) -> Result<(), Fault> {
        for weighed in &mut self.weighed {
            let name = &self.run.arms[weighed.arm].name;
            weighed.failed = lines.failed.iter().any(|(failed, _)| failed == name);
            // Its place in the run of the nodes.
            weighed.arm = lines.run.arms.iter().position(|arm| arm.name == *name).unwrap_or(weighed.arm);
        }
        (self.run, self.ledger) = lines.store_in(store)?;
        Ok(())
    }
}
