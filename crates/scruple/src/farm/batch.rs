//! The batch of units that was sent for one step of a history. A resumed history waits for the units of its batch, and
//! sends no others as long as the stored state is the same.

use super::folder::UnitFolder;
use super::same_version::Writer;
use super::unit_data::{parse, text};
use crate::fault::Fault;
use serde::{Deserialize, Serialize};

/// The units of one step.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UnitBatch {
    /// The program that planned the units.
    #[serde(flatten)]
    pub writer: Writer,
    /// A digest of the state of the history when the units were planned.
    pub basis: String,
    /// The units that build, each as a pair of commit and unit name.
    pub builds: Vec<(String, String)>,
    /// The units that weigh.
    pub measures: Vec<PlannedUnit>,
}

/// A planned unit that weighs versions.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedUnit {
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
        if batch.basis != basis {
            return Ok(None);
        }
        // Its nodes may have the version that it was sent with, and some results may be there.
        let advice = format!(
            "continue with that version, or remove ‘{}’, so that they are done again",
            path.display()
        );
        batch.writer.check("the command that sent the units of this history", "this command", &advice)?;
        Ok(Some(batch))
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

#[cfg(test)]
mod tests {
    use super::super::same_version::VERSION;
    use super::*;

    #[test]
    fn units_that_another_version_sent_are_not_sent_again_and_what_to_do_is_said() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = UnitFolder::make(place.path().join("farm")).expect("made");
        let ours = UnitBatch { writer: Writer::this(), basis: "state".to_owned(), ..UnitBatch::default() };
        ours.write(&folder).expect("written");
        assert_eq!(UnitBatch::sent(&folder, "state").expect("ours"), Some(ours));
        let path = folder.path().join("batch");
        let text = std::fs::read_to_string(&path).expect("a batch").replace(VERSION, "0.0.9");
        folder.replace(&path, &text).expect("written");
        let fault = UnitBatch::sent(&folder, "state").expect_err("it is of another version");
        assert_eq!(
            fault.message,
            format!(
                "the command that sent the units of this history has Scruple 0.0.9, and this command has {VERSION}: \
                 continue with that version, or remove ‘{}’, so that they are done again",
                path.display()
            )
        );
        // Units of another state of the history are not used.
        assert_eq!(UnitBatch::sent(&folder, "another").expect("no error"), None);
    }
}
