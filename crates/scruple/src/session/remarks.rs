//! What a reader must know of a run in order not to be misled by its figures.

use super::Session;
use scruple_core::judge;
use scruple_core::stats::quantile::median;
use scruple_core::subject::Role;

impl Session {
    pub(super) fn remark_on_outputs(&mut self) {
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
        let first = |index: &usize| self.outputs.get(index).and_then(|outputs| outputs.first());
        if let Some((reference, others)) = subjects.split_first()
            && remarks.is_empty()
        {
            let differ = |other: &&usize| {
                self.run.arms[**other].params == self.run.arms[*reference].params
                    && matches!((first(reference), first(other)), (Some(a), Some(b)) if a.stdout != b.stdout)
            };
            let names: Vec<String> = others
                .iter()
                .filter(differ)
                .map(|other| format!("‘{}’", self.run.arms[*other].name))
                .collect();
            if !names.is_empty() {
                let reference = &self.run.arms[*reference].name;
                remarks.push((
                    "outputs-differ",
                    format!(
                        "{} print{} something else than ‘{reference}’: are they doing the same work?",
                        names.join(", "),
                        if names.len() == 1 { "s" } else { "" }
                    ),
                ));
            }
        }
        for (code, text) in remarks {
            self.run.warn(code, text);
        }
    }

    pub(super) fn remark_on_waiting(&mut self) {
        let shares: Vec<(String, f64)> = self
            .run
            .arms_of(Role::Subject)
            .filter_map(|arm| Some((arm.name.clone(), judge::waiting_share(arm)?)))
            .collect();
        if let Some((name, share)) =
            shares.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, share)| *share > 0.1)
        {
            let share = scruple_core::unit::share(share);
            self.run.warn(
                "waiting",
                format!("the machine is busy: ‘{name}’ spent {share} of its wall time waiting for a core, so trust cpu time more"),
            );
        }
    }

    /// A first run much slower than the rest usually read files that the others found in memory.
    pub(super) fn remark_on_cold_start(&mut self) {
        let slow: Vec<String> = self
            .run
            .arms_of(Role::Subject)
            .filter(|arm| {
                let reads =
                    arm.sample("io.read").and_then(|sample| sample.readings.first().copied()).unwrap_or(0.0);
                arm.sample("time.wall").is_some_and(|sample| {
                    sample.readings.len() >= 5
                        && sample.readings[0] > 1.5 * median(&sample.readings[1..])
                        && (reads > 0.0 || sample.readings[0] > 3.0 * median(&sample.readings[1..]))
                })
            })
            .map(|arm| format!("‘{}’", arm.name))
            .collect();
        if !slow.is_empty() {
            self.run.warn(
                "cold-start",
                format!("the first run of {} was much slower than the rest: a cold cache? -w 3 runs it in first, or -p can clear caches before each run", slow.join(", ")),
            );
        }
    }
}
