//! Launches each subject once more to watch its memory map.

use super::{CommandPasses, Stop};
use scruple_core::metric::Pass;
use scruple_core::subject::Role;

impl CommandPasses {
    pub(crate) fn watch_memory(&mut self) -> Result<(), Stop> {
        let subjects: Vec<usize> =
            (0..self.run.arms.len()).filter(|index| self.run.arms[*index].role == Role::Subject).collect();
        for (visited, index) in subjects.iter().enumerate() {
            let name = self.run.arms[*index].name.clone();
            self.progress.step("memory map", 0, visited, subjects.len(), &name);
            let mut seen = None;
            let weighing = self.visit_by(*index, Pass::Memory, |weigher, job| {
                let (weighing, course) = weigher.watch(job)?;
                seen = Some(course);
                Ok(weighing)
            })?;
            self.keep(*index, Pass::Memory, 0, weighing);
            self.run.arms[*index].memory = seen;
        }
        Ok(())
    }
}
