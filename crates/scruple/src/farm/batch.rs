//! The units of one step of a history, as they were sent: a history that is taken up again waits for these, and sends no
//! others while what is stored is the same.

use super::folder::Folder;
use super::unit::{parse, text};
use crate::fault::Fault;
use serde::{Deserialize, Serialize};

/// The units of one step.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Batch {
    /// What the history was when they were planned, as a digest.
    pub basis: String,
    /// Units that build, with their commits.
    pub builds: Vec<(String, String)>,
    /// Units that weigh.
    pub measures: Vec<Planned>,
}

/// A unit that weighs.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Planned {
    /// Its name.
    pub unit: String,
    /// The number of its first round.
    pub first: u32,
    /// How many rounds it takes.
    pub rounds: u32,
}

impl Batch {
    /// The batch that was sent on this basis, if one was.
    pub fn sent(folder: &Folder, basis: &str) -> Result<Option<Batch>, Fault> {
        let path = folder.path().join("batch");
        let Ok(text) = std::fs::read_to_string(&path) else { return Ok(None) };
        let batch: Batch = parse(&text, &path)?;
        Ok((batch.basis == basis).then_some(batch))
    }

    /// Writes the batch down, before anything of it is sent.
    pub fn write(&self, folder: &Folder) -> Result<(), Fault> {
        folder.replace(&folder.path().join("batch"), &text(self)?)
    }

    /// The names of the units in stages.
    pub fn stages(&self) -> Vec<Vec<String>> {
        let builds = self.builds.iter().map(|(_, unit)| unit.clone()).collect();
        vec![builds, self.measures.iter().map(|planned| planned.unit.clone()).collect()]
    }
}
