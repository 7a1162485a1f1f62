//! The batch of units that was sent for one step of a history. A resumed history waits for the units of its batch, and
//! sends no others as long as the stored state is the same.

use super::folder::UnitFolder;
use super::unit_data::{parse, text};
use crate::fault::Fault;
use serde::{Deserialize, Serialize};

/// The units of one step.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UnitBatch {
    /// A digest of the state of the history when the units were planned.
    pub basis: String,
    /// The units that build, each as a pair of commit and unit name.
    pub builds: Vec<(String, String)>,
    /// The units that weigh.
    pub measures: Vec<Planned>,
}

/// A planned unit that weighs versions.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Planned {
    /// The name of the unit.
    pub unit: String,
    /// The number of the first round of the unit.
    pub first: u32,
    /// The number of rounds of the unit.
    pub rounds: u32,
}

impl UnitBatch {
    /// Returns the batch that was sent for this state of the history, if there is one.
    pub fn sent(folder: &UnitFolder, basis: &str) -> Result<Option<UnitBatch>, Fault> {
        let path = folder.path().join("batch");
        let Ok(text) = std::fs::read_to_string(&path) else { return Ok(None) };
        let batch: UnitBatch = parse(&text, &path)?;
        Ok((batch.basis == basis).then_some(batch))
    }

    /// Writes the batch to its file, before any of its units is sent.
    pub fn write(&self, folder: &UnitFolder) -> Result<(), Fault> {
        folder.replace(&folder.path().join("batch"), &text(self)?)
    }

    /// Returns the names of the units by stage: first those that build, then those that weigh.
    pub fn stages(&self) -> Vec<Vec<String>> {
        let builds = self.builds.iter().map(|(_, unit)| unit.clone()).collect();
        vec![builds, self.measures.iter().map(|planned| planned.unit.clone()).collect()]
    }
}
