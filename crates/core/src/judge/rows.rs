//! The rows of a table of comparisons, and the families in which their verdicts hold together.

use super::failed_shares::FailedShares;
use super::pair_samples::{replicates_of, samples_of};
use super::{
    Judged, POOLED, Pair, RESOLUTION, between_runs, declaration, floor_of, node_replicates, pooled,
    possible_error, waiting_share,
};
use crate::evidence::{Evidence, ReadingRange, Readings};
use crate::metric::{Better, Pass, Quality};
use crate::run::Terms;
use crate::sample::Sample;
use crate::subject::{Arm, Role, Subject};
use crate::unit::Unit;
use crate::verdict::{self, Comparison};
use scruple_stats::quantile::median;
use scruple_stats::sorting;

/// Compares these pairs in every metric that both arms of a pair have, metric by metric.
///
/// The verdicts of a family of rows hold together at the level of the terms (Holm). For commands and cases, a family is
/// all pairs in one metric. The headline quotes wall or processor time, whichever decides, which gives two chances of
/// an error; but "different" and "same" each err on one side of the margin only, with half the error of the interval,
/// so both chances together stay within it. For loads, a family is all pairs in all metrics: no single row is quoted,
/// and a dozen rows at 95 % each would find something in every third table of identical servers. Where the run has a
/// twin of the reference, no margin is narrower than the difference that the twin showed.
pub fn compare_pairs(pairs: &[Pair<'_>], terms: &Terms) -> Vec<Judged> {
    let mut keys: Vec<&String> = pairs.iter().flat_map(|pair| pair.arm.figures.keys()).collect();
    sorting::ascending(&mut keys);
    keys.dedup();
    // The parameters of a batch, and the possible errors of figures, are not figures of the case.
    let is_figure =
        |key: &str| !key.starts_with("batch.") && !key.ends_with(POOLED) && !key.ends_with(RESOLUTION);
    keys.retain(|key| is_figure(key));
    let rows: Vec<Row<'_>> =
        keys.into_iter().flat_map(|key| rows_of(key, pairs, terms, level_of(key, pairs, terms))).collect();
    let loaded = |pair: &Pair<'_>| matches!(pair.arm.subject, Subject::Request { .. });
    let families: Vec<&[Row<'_>]> = match pairs.iter().any(loaded) {
        true => vec![&rows],
        false => rows.chunk_by(|left, right| left.key == right.key).collect(),
    };
    families.into_iter().flat_map(judged).collect()
}

/// The confidence level of the intervals of a metric. Several looks at the readings decide when the timing pass ends,
/// so they share its error; no look decides about the readings of other passes.
fn level_of(key: &str, pairs: &[Pair<'_>], terms: &Terms) -> f64 {
    let timed =
        pairs.iter().any(|pair| pair.arm.sample(key).is_some_and(|sample| sample.pass == Pass::Timing));
    let looks = if timed { terms.looks.max(1) } else { 1 };
    1.0 - (1.0 - terms.level) / f64::from(looks)
}

/// A row: one metric of one pair.
struct Row<'a> {
    key: &'a str,
    pair: &'a Pair<'a>,
    compared: ComparedBy<'a>,
    margin: f64,
    lower: bool,
    /// The confidence level of the interval if this were the only row.
    level: f64,
}

/// The method by which one metric of one pair is compared.
enum ComparedBy<'a> {
    /// By counts or ranges; or not at all, with a reason.
    Counted(Evidence),
    /// By the figures of all requests together.
    Pooled(pooled::Figures<'a>),
    /// By the shares of failed requests.
    Failed(FailedShares),
    /// By an interval from readings.
    Noisy(Readings),
}

impl Row<'_> {
    /// The comparison at this confidence level.
    fn at(&self, level: f64) -> Comparison {
        let evidence = match &self.compared {
            ComparedBy::Counted(evidence) => evidence.clone(),
            ComparedBy::Pooled(figures) => figures.evidence(level),
            ComparedBy::Failed(shares) => shares.evidence(level),
            ComparedBy::Noisy(readings) => readings.evidence(level),
        };
        Comparison::of(evidence, self.lower, self.margin)
    }
}

/// Judges a family of rows, so that their verdicts hold together.
fn judged(family: &[Row<'_>]) -> Vec<Judged> {
    let level = family.iter().map(|row| row.level).fold(0.0, f64::max);
    let may_err = |row: usize, found: &Comparison| {
        found.interval().is_some() || matches!(family[row].compared, ComparedBy::Failed(_))
    };
    let compared = verdict::hold_together(family.len(), level, may_err, |row, level| family[row].at(level));
    let judged = family.iter().zip(compared).map(|(row, comparison)| {
        let Pair { reference, arm, .. } = row.pair;
        let waiting = if row.key == "time.wall" { more_waiting(reference, arm) } else { 0.0 };
        Judged {
            metric: row.key.to_owned(),
            reference: reference.name.clone(),
            arm: arm.name.clone(),
            comparison,
            waiting,
        }
    });
    judged.collect()
}

/// The rows of one metric, in the order of the pairs.
fn rows_of<'a>(key: &'a str, pairs: &'a [Pair<'a>], terms: &'a Terms, level: f64) -> Vec<Row<'a>> {
    let row = |pair: &'a Pair<'a>| {
        let (reference, arm) = samples_of(pair, key)?;
        let lower = declaration(key, &arm).better == Better::Lower;
        let compared = compared(key, pair, (&reference, &arm), terms, level);
        Some(Row { key, pair, compared, margin: terms.margin, lower, level })
    };
    let mut rows: Vec<Row<'_>> = pairs.iter().filter_map(row).collect();
    let is_twin = |row: &Row<'_>| row.pair.arm.role == Role::Twin;
    let twin = rows.iter().find(|row| is_twin(row) && matches!(row.compared, ComparedBy::Noisy(_)));
    let honest = verdict::honest_margin(terms.margin, twin.map(|twin| twin.at(level)).as_ref());
    // The twin itself is judged by the requested margin: a wider one would hide what it shows.
    for row in rows.iter_mut().filter(|row| honest > row.margin && !is_twin(row)) {
        if let ComparedBy::Noisy(readings) = &mut row.compared {
            readings.resolution = readings.resolution.max(honest);
        }
    }
    rows
}

/// The larger share of wall time that one of two arms spent waiting for a core; 0 where neither share is known.
fn more_waiting(reference: &Arm, arm: &Arm) -> f64 {
    let share = |arm: &Arm| waiting_share(arm).unwrap_or(0.0);
    share(reference).max(share(arm))
}

/// Chooses the method for one metric of one pair. Whether readings repeated decides, since the declared quality of a
/// metric is only an expectation.
fn compared<'a>(
    key: &'a str,
    pair: &'a Pair<'a>,
    (reference, arm): (&Sample, &Sample),
    terms: &Terms,
    level: f64,
) -> ComparedBy<'a> {
    // Requests of several nodes together do not show how far nodes differ.
    if !pair.nodes.are_several()
        && let Some(figures) = pooled::Figures::of(key, pair, terms.level)
    {
        return ComparedBy::Pooled(figures);
    }
    if !pair.nodes.are_several()
        && let Some(shares) = FailedShares::of(key, pair, (reference, arm), terms.level)
    {
        return ComparedBy::Failed(shares);
    }
    let worst = reference.quality.max(arm.quality);
    let timed = matches!(arm.pass, Pass::Timing | Pass::Build);
    // Each of the two figures may be off by the possible error. A count of 0 states no possible error, and is given the
    // other one's.
    let error = possible_error(pair.reference, key).max(possible_error(pair.arm, key));
    let floor = floor_of(key).max(2.0 * error);
    let is_time = arm.unit == Unit::Nanoseconds;
    if arm.pass == Pass::Build
        && worst == Quality::Exact
        && let Some(evidence) = Evidence::of_fact(&reference.readings, &arm.readings)
    {
        return ComparedBy::Counted(evidence);
    }
    if (worst == Quality::Exact || !timed && !is_time)
        && let Some(evidence) =
            Evidence::of_counts(&reference.readings, &arm.readings, worst == Quality::Exact, floor)
    {
        return ComparedBy::Counted(evidence);
    }
    if worst <= Quality::Near && !timed {
        return ComparedBy::Counted(Evidence::of_near_counts(&reference.readings, &arm.readings, floor));
    }
    // There is no ratio to nothing, but counts that differ by less than their possible error are the same.
    let all = ReadingRange::of(&[reference.readings.as_slice(), &arm.readings].concat());
    if !timed && !is_time && all.is_some_and(|all| all.low <= 0.0 && all.high - all.low <= floor) {
        return ComparedBy::Counted(Evidence::of_near_counts(&reference.readings, &arm.readings, floor));
    }
    let taken = |reference: &Sample, arm: &Sample| replicates_of(pair, reference, arm);
    let over_nodes = node_replicates::replicates(pair, (reference, arm), &taken);
    let paired = pair.paired || over_nodes.is_some();
    let (left, right, replicate) = match over_nodes.unwrap_or_else(|| Ok(taken(reference, arm))) {
        Ok(replicates) => replicates,
        Err(why) => {
            return ComparedBy::Counted(Evidence::undecided(why, &reference.readings, &arm.readings));
        }
    };
    let resolution = if floor > 0.0 { floor / median(&reference.readings) } else { 0.0 };
    let resolution = if resolution.is_finite() { resolution } else { 0.0 };
    match between_runs::reach(key, pair, level) {
        Ok(machine) => {
            let resolution = resolution.max(machine);
            ComparedBy::Noisy(Readings { reference: left, arm: right, paired, replicate, resolution })
        }
        Err(why) => ComparedBy::Counted(Evidence::undecided(why, &left, &right)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::resolution_key;
    use crate::metric::Metric;
    use crate::sample::{Figure, Reading};
    use crate::unit::Unit;
    use crate::verdict::Verdict;

    /// A program that always allocates the same has the same number of collections in each batch. Another process may have
    /// one more, because its batches begin elsewhere between two collections.
    #[test]
    fn counts_that_differ_by_their_possible_error_are_not_different() {
        let case = |events: f64, error: Option<f64>| {
            let mut arm = Arm::new("f", Subject::case("f", Vec::new()), Role::Subject);
            let figures = [("gc.count".to_owned(), Some(events)), (resolution_key("gc.count"), error)];
            for (key, value) in figures.iter().filter_map(|(key, value)| Some((key, (*value)?))) {
                let metric = Metric::custom(key, Unit::Count, Quality::Noisy, Pass::Counting);
                let mut figure = None;
                for block in 0..6 {
                    let reading = Reading::of(&metric, value / 1000.0, "test");
                    Figure::add(&mut figure, reading, Pass::Counting, block);
                }
                arm.figures.extend(figure.map(|figure| (key.clone(), figure)));
            }
            arm
        };
        let verdict = |from: (f64, Option<f64>), to: (f64, Option<f64>)| {
            let (reference, arm) = (case(from.0, from.1), case(to.0, to.1));
            let found = compare_pairs(&[Pair::new(&reference, &arm, true)], &Terms::default());
            found[0].comparison.verdict
        };
        let one = Some(1.0);
        assert_eq!(verdict((10.0, None), (11.0, None)), Verdict::Different);
        assert_ne!(verdict((10.0, one), (11.0, one)), Verdict::Different);
        assert_ne!(verdict((0.0, None), (1.0, one)), Verdict::Different);
        assert_eq!(verdict((10.0, one), (20.0, one)), Verdict::Different);
        assert_eq!(verdict((0.0, None), (10.0, one)), Verdict::Different);
        // One batch of the second had a collection.
        let (reference, mut arm) = (case(0.0, None), case(0.0, one));
        if let Some(Figure::Sample(sample)) = arm.figures.get_mut("gc.count") {
            sample.readings[5] = 0.001;
        }
        let found = compare_pairs(&[Pair::new(&reference, &arm, true)], &Terms::default());
        assert_eq!(found[0].comparison.verdict, Verdict::Same);
    }
}
