//! Adds the remarks that a reader needs in order not to be misled by the figures of a run.

use super::CommandPasses;
use scruple_core::judge;
use scruple_core::subject::Role;
use scruple_stats::quantile::median;

/// The share of wall time that a program with several threads or processes may have waited for a core, from which a
/// remark says so. It is higher than for measured waiting, because it is only an upper bound.
const MUCH_WAITING: f64 = 0.5;

impl CommandPasses {
    pub(crate) fn remark_on_outputs(&mut self) {
        let subjects: Vec<usize> =
            (0..self.run.arms.len()).filter(|index| self.run.arms[*index].role == Role::Subject).collect();
        let mut remarks = Vec::new();
        for index in &subjects {
            let Some(outputs) = self.outputs.get(index) else { continue };
            if outputs.windows(2).any(|pair| pair[0].stdout != pair[1].stdout) {
                let name = &self.run.arms[*index].name;
                remarks.push(("output-varies", format!("‘{name}’ does not print the same each time")));
            }
        }
        if remarks.is_empty() {
            remarks.extend(self.other_outputs().map(|text| ("outputs-differ", text)));
        }
        for (code, text) in remarks {
            self.run.warn(code, text);
        }
    }

    /// Names the arms whose output differs from that of their reference, if there are any.
    fn other_outputs(&self) -> Option<String> {
        let first = |name: &str| {
            let place = self.run.arms.iter().position(|arm| arm.name == name)?;
            self.outputs.get(&place)?.first()
        };
        let pairs = judge::pairs(&self.run);
        let differ = |pair: &&judge::Pair<'_>| {
            pair.arm.role == Role::Subject
                && pair.arm.params == pair.reference.params
                && matches!((first(&pair.reference.name), first(&pair.arm.name)), (Some(a), Some(b)) if a.stdout != b.stdout)
        };
        let found: Vec<_> = pairs.iter().filter(differ).collect();
        let reference = &found.first()?.reference.name;
        let names: Vec<String> = found.iter().map(|pair| format!("‘{}’", pair.arm.name)).collect();
        let (other, work) = match found.iter().all(|pair| pair.reference.name == *reference) {
            true => (format!("‘{reference}’"), "are they doing the same work?"),
            false => ("at the other version".to_owned(), "is it still the same work?"),
        };
        let verb = if names.len() == 1 { "prints" } else { "print" };
        Some(format!("{} {verb} something other than {other}: {work}", names.join(", ")))
    }

    pub(crate) fn remark_on_waiting(&mut self) {
        let shares: Vec<(String, f64)> = self
            .run
            .arms_of(Role::Subject)
            .filter_map(|arm| Some((arm.name.clone(), judge::waiting_share(arm)?)))
            .collect();
        if let Some((name, share)) =
            shares.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, share)| *share > 0.1)
        {
            let share = scruple_core::unit::share(share);
            if let Some(cores) = self.weigher.held_up_by_quota() {
                let text = format!(
                    "a quota held the programs up: their control group may use {cores:.2} cores, and ‘{name}’ spent {share} \
                     of its wall time waiting; raise the quota (docker --cpus, cpu.max), or trust cpu time more"
                );
                self.run.warn("quota", text);
                return;
            }
            self.run.warn(
                "waiting",
                format!("the machine is busy: ‘{name}’ spent {share} of its wall time waiting for a core, so trust cpu time more"),
            );
        } else if let Some((name, share)) = self.possibly_waiting() {
            let share = scruple_core::unit::share(share);
            self.run.warn(
                "waiting",
                format!(
                    "‘{name}’ may have waited for a core: while it ran, threads on this machine did for up to {share} of the \
                     time, its own included (the kernel does not keep which), so trust cpu time more"
                ),
            );
        }
    }

    /// Returns the arm that may have waited longest for a core, and the largest share of its wall time, of the arms with
    /// several threads or processes, whose waiting the kernel does not keep; `None` if that is not much.
    fn possibly_waiting(&self) -> Option<(String, f64)> {
        let cores = self.run.provenance.cores;
        self.run
            .arms_of(Role::Subject)
            .filter(|arm| judge::waiting_share(arm).is_none())
            .filter_map(|arm| Some((arm.name.clone(), judge::possible_waiting_share(arm, cores)?)))
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .filter(|(_, share)| *share > MUCH_WAITING)
    }

    /// Adds a remark if the first launch is much slower than the rest, because it then usually read files that later
    /// launches found in memory. No remark is added after `warm_ups`, because the launch was not the first one, or if
    /// the launch read nothing, because the slowness has another cause.
    pub(crate) fn remark_on_cold_start(&mut self, warm_ups: u32) {
        if warm_ups > 0 {
            return;
        }
        let slow: Vec<String> = self
            .run
            .arms_of(Role::Subject)
            .filter(|arm| {
                let reads = arm.sample("io.read").and_then(|sample| sample.readings.first().copied());
                // A launch that waited for a core is not slow because of a cold cache.
                let waited = arm
                    .sample("time.wait")
                    .and_then(|sample| sample.readings.first().copied())
                    .unwrap_or(0.0);
                arm.sample("time.wall").filter(|sample| sample.readings.len() >= 5).is_some_and(|sample| {
                    let (first, rest) = (sample.readings[0] - waited, median(&sample.readings[1..]));
                    match reads {
                        Some(bytes) => bytes > 0.0 && first > 1.5 * rest,
                        None => first > 3.0 * rest,
                    }
                })
            })
            .map(|arm| format!("‘{}’", arm.name))
            .collect();
        if !slow.is_empty() {
            self.run.warn(
                "cold-start",
                format!("the first launch of {} was much slower than the rest, probably because its files were not in memory yet: -w 3 launches it without measuring first, or -p can clear caches before each launch", slow.join(", ")),
            );
        }
    }
}
