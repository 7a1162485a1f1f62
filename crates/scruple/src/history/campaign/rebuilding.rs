//! Builds versions more than once, in turns, to compare what building them costs.

use super::Campaign;
use super::builds::BUILD;
use crate::fault::Fault;
use scruple_core::metric::{Pass, metric};
use scruple_core::sample::{Reading, Sample};
use scruple_core::visit_order::VisitOrder;
use std::sync::atomic::Ordering;

impl Campaign {
    /// Returns how often a version was built, or `u32::MAX` if it has no build steps or cannot be built again.
    pub(super) fn times_built(&self, index: usize) -> u32 {
        let commit = &self.journal.history.entries[index].version.commit;
        if self.builds.once.contains(&index) || self.builds.builder.effective(commit).steps.is_empty() {
            return u32::MAX;
        }
        self.build_times(index).map_or(0, |sample| sample.readings.len() as u32)
    }

    pub(super) fn build_times(&self, index: usize) -> Option<&Sample> {
        let arm = self.build_arm(index)?;
        self.journal.history.run.arms[arm].sample("build.time")
    }

    /// Returns the arm that carries the build costs of a version.
    fn build_arm(&self, index: usize) -> Option<usize> {
        self.journal.arms.launched(0, &self.journal.history.entries[index].version.commit).first().copied()
    }

    /// Builds each of these versions once more, in an order drawn from the seed. The results are discarded: the
    /// artefacts that are weighed remain those of the first build.
    pub(super) fn rebuild(&mut self, set: &[usize]) -> Result<(), Fault> {
        let blocks = (0..self.journal.history.entries.len())
            .filter_map(|index| self.build_times(index)?.blocks.iter().max().copied());
        let block = blocks.max().map_or(0, |last| last + 1);
        let order = VisitOrder::new(set.len(), self.journal.history.run.seed).order(block);
        for (done, place) in order.into_iter().enumerate() {
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(Fault::interrupted());
            }
            let index = set[place];
            let version = &self.journal.history.entries[index].version;
            let (commit, short) = (version.commit.clone(), version.short().to_owned());
            self.progress.tell(&format!("building · round {}", block + 1), done, set.len(), &short);
            let arm = self.build_arm(index);
            match (self.builds.builder.build_again(&commit)?, arm) {
                (Ok(time), Some(arm)) => {
                    let elapsed =
                        metric("build.time").map(|metric| Reading::of(metric, time.as_nanos() as f64, BUILD));
                    self.journal.keep(arm, Pass::Build, block, elapsed.into_iter().collect())?;
                }
                (failed, _) => {
                    self.builds.once.insert(index);
                    let why = failed.err().unwrap_or_default();
                    let log = self.builds.log(&commit).display().to_string();
                    self.journal.history.run.warn(
                        "rebuild-failed",
                        format!("{short} could be built once and not again: {why}; see {log}"),
                    );
                }
            }
        }
        self.progress.done(&format!("round {}: built {} versions again", block + 1, set.len()));
        Ok(())
    }
}
