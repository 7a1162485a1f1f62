//! Finds where the level changed among versions with a known uncertainty each.
//!
//! Each version has several readings, so a single version can be a level, and two versions suffice. The candidates are
//! the cuts of the cheapest piecewise constant along each line of versions, and the starts of branches. Then the
//! weakest cut is removed until every remaining one would be improbable in noise. A merge is compared with the parent
//! that it equals, so that it is not blamed for a change that came over a branch.

use super::build_noise;
use super::forest::Forest;
use super::partition::{RunningSums, about_median, add, cheapest, cost, weighted};
use scruple_stats::changepoint::StepSize;
use scruple_stats::quantile::median;
use scruple_stats::{Interval, normal};

/// The confidence level of intervals and of sets of candidates.
pub(super) const LEVEL: f64 = 0.95;

/// The price of a cut is this times ln n, in squared standard errors. It is low, so that few true cuts are missed; the
/// later test removes the false ones.
const PRICE: f64 = 2.0;

/// A step at the start of a branch is not a candidate below this many standard errors.
const PLAUSIBLE: f64 = 2.0;

/// The values of a series, what is known about them, and the terms of the search.
pub(super) struct SearchInput<'a> {
    /// One logarithm for each place; the places of a line are adjacent.
    pub values: &'a [f64],
    /// The variance of each value, from its readings.
    pub variances: &'a [f64],
    /// The degrees of freedom of the variances.
    pub freedom: f64,
    /// The additional variance between visits of the same artefacts.
    pub same_binary_variance: f64,
    /// The accepted probability that noise alone has a cut anywhere.
    pub error: f64,
    /// Steps with a smaller logarithm are not reported.
    pub least: f64,
    /// The place of the newest version.
    pub newest: usize,
    /// Whether readings taken side by side show that two groups of places differ.
    pub confirm: &'a dyn Fn(&[usize], &[usize]) -> bool,
}

/// A change of level.
#[derive(Clone, Debug)]
pub(super) struct Cut {
    /// The first place of the new level.
    pub at: usize,
    /// The places at which the change may have come instead, including `at`.
    pub candidates: Vec<usize>,
    /// The number of the old level; `to` is that of the new level.
    pub from: usize,
    pub to: usize,
    /// The new level divided by the old level.
    pub ratio: f64,
    pub interval: Option<Interval>,
    pub p: f64,
}

/// A series cut into levels.
#[derive(Clone, Debug, Default)]
pub(super) struct Steps {
    /// The cuts of the series, in the order of the places.
    pub cuts: Vec<Cut>,
    /// The number of the level of each place.
    pub parts: Vec<usize>,
    /// The levels, as logarithms, with their standard errors.
    pub levels: Vec<(f64, f64)>,
    /// The places, each with the place that it is compared with.
    pub forest: Forest,
    /// Standard deviation of values about their level.
    pub noise: f64,
    pub modes: Option<[f64; 2]>,
    /// The smallest lasting step, as a logarithm, that would be found four times in five.
    pub detectable: Option<f64>,
    /// The figures from which `detectable` is computed; absent where versions were not weighed in turns.
    pub power: Option<Power>,
    /// The slow drift of the series besides its steps, if there is one.
    pub drift: Option<SlowDrift>,
}

/// A slow movement of a series that no single version caused.
#[derive(Clone, Debug)]
pub(super) struct SlowDrift {
    /// What the drift adds to the level at each place, on the scale of the levels.
    pub added: Vec<f64>,
    /// The step from the least to the largest of these.
    pub range: StepSize,
}

impl Steps {
    /// What the drift adds to the level at a place: 0 where there is no drift.
    pub fn drift_at(&self, place: usize) -> f64 {
        self.drift.as_ref().map_or(0.0, |drift| drift.added[place])
    }
}

/// The figures that determine which steps would be found, at any error.
#[derive(Clone, Copy, Debug)]
pub(super) struct Power {
    /// The standard error of the difference between the two halves of the series.
    halves: f64,
    /// The number of places at which a step may be.
    places: f64,
    freedom: f64,
    /// Steps with a smaller logarithm are not reported.
    least: f64,
}

impl Power {
    pub(super) fn detectable(&self, error: f64) -> Option<f64> {
        let needed = normal::student(1.0 - error / self.places, self.freedom) + normal::quantile(0.8);
        let step = (needed * self.halves).max(self.least);
        step.is_finite().then_some(step)
    }
}

pub(super) fn steps(known: &SearchInput<'_>, forest: Forest) -> Steps {
    let extra = build_noise::extra(known.values, known.variances, known.same_binary_variance);
    let variances: Vec<f64> = known.variances.iter().map(|v| v + extra).collect();
    let mut search = CutSearch { known, forest, cuts: Vec::new() };
    search.begin(&variances);
    loop {
        search.move_cuts();
        search.attach_merges();
        let fit = StepFit::fit_levels(known, &search.forest, &search.cuts);
        let tests: Vec<Test> = search.cuts.iter().map(|&cut| search.test(&fit, cut)).collect();
        let falls = |i: &usize| {
            let test = &tests[*i];
            test.p > known.error || test.step.abs() < known.least || !search.confirmed(&fit, search.cuts[*i])
        };
        let weakest = (0..tests.len()).filter(falls).min_by(|&a, &b| tests[a].t.total_cmp(&tests[b].t));
        match weakest {
            Some(i) => {
                search.cuts.remove(i);
            }
            None => return search.conclude(&fit, &tests),
        }
    }
}

/// A search among candidate cuts, each given by the first place of its new level.
struct CutSearch<'a> {
    known: &'a SearchInput<'a>,
    forest: Forest,
    cuts: Vec<usize>,
}

impl CutSearch<'_> {
    /// Starts with the cheapest cuts of each line, and the starts of branches with a plausible step.
    fn begin(&mut self, variances: &[f64]) {
        let n = self.known.values.len();
        let sums = RunningSums::of(&about_median(self.known.values), variances);
        let price = PRICE * (n.max(3) as f64).ln();
        let (cheapest, _) = cheapest(n, price, |from, to| sums.cost(from, to));
        let starts = |place: &usize| self.forest.compared(*place).is_some_and(|other| other + 1 != *place);
        let mut cuts: Vec<usize> = (0..n).filter(starts).chain(cheapest).collect();
        cuts.retain(|&place| self.forest.compared(place).is_some());
        cuts.sort_unstable();
        cuts.dedup();
        self.cuts = cuts;
        let fit = StepFit::fit_levels(self.known, &self.forest, &self.cuts);
        let implausible: Vec<usize> = (0..n)
            .filter(starts)
            .filter(|&place| self.cuts.contains(&place) && self.test(&fit, place).t < PLAUSIBLE)
            .collect();
        self.cuts.retain(|place| !implausible.contains(place));
    }

    /// Moves every cut to the best place between the two levels that it separates.
    fn move_cuts(&mut self) {
        for i in 0..self.cuts.len() {
            let fit = StepFit::fit_levels(self.known, &self.forest, &self.cuts);
            let costs = self.costs_of_places(&fit, self.cuts[i]);
            if let Some((best, _)) = costs.into_iter().min_by(|a, b| a.1.total_cmp(&b.1)) {
                self.cuts[i] = best;
            }
        }
        self.cuts.sort_unstable();
        self.cuts.dedup();
    }

    /// For each merge with a cut: if another parent has the level of the merge, compares the merge with that parent and
    /// removes the cut.
    fn attach_merges(&mut self) {
        let merges: Vec<usize> =
            self.cuts.iter().copied().filter(|&cut| self.forest.before(cut).len() > 1).collect();
        for merge in merges {
            let fit = StepFit::fit_levels(self.known, &self.forest, &self.cuts);
            let own = fit.parts[merge];
            let others = self.forest.before(merge).iter().copied().filter(|&other| fit.parts[other] != own);
            let tested = others.map(|other| (other, self.compare(&fit, fit.parts[other], own)));
            let nearest = tested.min_by(|a, b| a.1.t.total_cmp(&b.1.t));
            if let Some((other, _)) = nearest.filter(|(_, test)| test.p > self.known.error) {
                self.forest.attach(merge, other);
                self.cuts.retain(|&cut| cut != merge);
            }
        }
    }

    /// The weighted residual sum of squares of the two levels beside a cut, for each possible place of the cut.
    fn costs_of_places(&self, fit: &StepFit, cut: usize) -> Vec<(usize, f64)> {
        let Some(before) = self.forest.compared(cut) else { return Vec::new() };
        let beside = [fit.parts[before], fit.parts[cut]];
        let within: Vec<usize> =
            self.forest.order().iter().copied().filter(|&place| beside.contains(&fit.parts[place])).collect();
        let mut below: Vec<[f64; 3]> = vec![[0.0; 3]; self.forest.len()];
        let mut all = [0.0; 3];
        let inside = |place: usize| self.forest.compared(place).filter(|&to| beside.contains(&fit.parts[to]));
        for &place in within.iter().rev() {
            let own = weighted(fit.values[place], fit.variances[place]);
            add(&mut all, own);
            add(&mut below[place], own);
            if let Some(to) = inside(place) {
                let sums = below[place];
                add(&mut below[to], sums);
            }
        }
        let mut costs: Vec<(usize, f64)> = within
            .into_iter()
            .filter(|&place| inside(place).is_some())
            .map(|place| {
                let rest = [0, 1, 2].map(|i| all[i] - below[place][i]);
                (place, cost(below[place]) + cost(rest))
            })
            .collect();
        costs.sort_unstable_by_key(|(place, _)| *place);
        costs
    }

    fn test(&self, fit: &StepFit, cut: usize) -> Test {
        let before = self.forest.compared(cut).unwrap_or(cut);
        self.compare(fit, fit.parts[before], fit.parts[cut])
    }

    fn compare(&self, fit: &StepFit, from: usize, to: usize) -> Test {
        let (left, right) = (fit.levels[from], fit.levels[to]);
        let step = right.0 - left.0;
        let error = left.1.hypot(right.1);
        let t = step.abs() / error;
        let tail = normal::student_tail(t, fit.freedom);
        // A stretch of one or two versions can be chosen in twice as many ways.
        let places = (fit.values.len() - 1) as f64 * if fit.short(from, to) { 2.0 } else { 1.0 };
        Test { p: (2.0 * tail * places).min(1.0), step, error, t }
    }

    /// Whether readings taken side by side confirm the cut; true without a check unless one of its levels has few
    /// versions.
    fn confirmed(&self, fit: &StepFit, cut: usize) -> bool {
        let before = self.forest.compared(cut).unwrap_or(cut);
        let (from, to) = (fit.parts[before], fit.parts[cut]);
        let of = |part: usize| -> Vec<usize> {
            (0..fit.parts.len()).filter(|&place| fit.parts[place] == part).collect()
        };
        !fit.short(from, to) || (self.known.confirm)(&of(from), &of(to))
    }

    fn conclude(self, fit: &StepFit, tests: &[Test]) -> Steps {
        let power = self.power(fit);
        let detectable = power.detectable(self.known.error);
        let power = Some(power);
        let mut line: Vec<usize> =
            self.forest.line_to(self.known.newest).into_iter().map(|place| fit.parts[place]).collect();
        line.dedup();
        let line: Vec<(f64, f64)> = line.into_iter().map(|part| fit.levels[part]).collect();
        if let Some(modes) = modes(&line, fit.noise) {
            let all = StepFit::fit_levels(self.known, &self.forest, &[]);
            let StepFit { parts, levels, .. } = all;
            let (noise, forest) = (fit.noise, self.forest);
            let (cuts, modes) = (Vec::new(), Some(modes));
            return Steps { cuts, parts, levels, forest, noise, modes, detectable, power, drift: None };
        }
        let reach = normal::student(LEVEL, fit.freedom);
        let cut = |(&at, test): (&usize, &Test)| {
            let before = self.forest.compared(at).unwrap_or(at);
            let (low, high) =
                ((test.step - reach * test.error).exp(), (test.step + reach * test.error).exp());
            let interval = Some(Interval { low, high, level: LEVEL });
            Cut {
                at,
                candidates: self.candidates(fit, at),
                from: fit.parts[before],
                to: fit.parts[at],
                ratio: test.step.exp(),
                interval,
                p: test.p,
            }
        };
        let cuts = self.cuts.iter().zip(tests).map(cut).collect();
        let (parts, levels) = (fit.parts.clone(), fit.levels.clone());
        Steps {
            cuts,
            parts,
            levels,
            forest: self.forest,
            noise: fit.noise,
            modes: None,
            detectable,
            power,
            drift: None,
        }
    }

    /// The places before which the cut fits nearly as well, by the same bound as in `changepoint`.
    fn candidates(&self, fit: &StepFit, cut: usize) -> Vec<usize> {
        let costs = self.costs_of_places(fit, cut);
        let own = costs.iter().find(|(place, _)| *place == cut).map_or(0.0, |(_, cost)| *cost);
        let allowed = own - (1.0 - LEVEL.sqrt()).ln() * 2.0;
        let fits = costs.into_iter().filter(|(place, cost)| *cost <= allowed || *place == cut);
        fits.map(|(place, _)| place).collect()
    }

    fn power(&self, fit: &StepFit) -> Power {
        let n = fit.values.len();
        let sums = RunningSums::of(&fit.values, &fit.variances);
        let [left, right] = [(0, n / 2), (n / 2, n)].map(|(from, to)| 1.0 / sums.part(from, to)[0]);
        Power {
            halves: (left + right).sqrt(),
            places: (n - 1) as f64,
            freedom: fit.freedom,
            least: self.known.least,
        }
    }
}

struct Test {
    p: f64,
    step: f64,
    error: f64,
    t: f64,
}

/// The levels between cuts, with the remaining variance between versions.
struct StepFit {
    /// The values minus their median.
    values: Vec<f64>,
    variances: Vec<f64>,
    parts: Vec<usize>,
    sizes: Vec<usize>,
    levels: Vec<(f64, f64)>,
    freedom: f64,
    noise: f64,
}

impl StepFit {
    fn fit_levels(known: &SearchInput<'_>, forest: &Forest, cuts: &[usize]) -> StepFit {
        let (parts, count) = forest.parts(cuts);
        let centre = median(known.values);
        let values = about_median(known.values);
        let mut sizes = vec![0; count];
        parts.iter().for_each(|&part| sizes[part] += 1);
        let sums = |variances: &[f64]| {
            let mut sums = vec![[0.0; 3]; count];
            for (place, &part) in parts.iter().enumerate() {
                add(&mut sums[part], weighted(values[place], variances[place]));
            }
            sums
        };
        let rough: Vec<f64> = sums(known.variances).iter().map(|[weight, sum, _]| sum / weight).collect();
        let (mut squares, mut expected) = (0.0, 0.0);
        for (place, &part) in parts.iter().enumerate() {
            squares += (values[place] - rough[part]).powi(2);
            expected += known.variances[place] * (1.0 - 1.0 / sizes[part] as f64);
        }
        let free = (values.len() - count) as f64;
        let extra = if free >= 2.0 { ((squares - expected) / free).max(0.0) } else { 0.0 };
        let variances: Vec<f64> = known.variances.iter().map(|v| v + extra).collect();
        let share = extra / (extra + median(known.variances));
        let freedom = 1.0 / ((1.0 - share).powi(2) / known.freedom + share.powi(2) / free.max(1.0));
        let level = |[weight, sum, _]: [f64; 3]| (centre + sum / weight, (1.0 / weight).sqrt());
        let levels = sums(&variances).into_iter().map(level).collect();
        let noise = if free > 0.0 { (squares / free).sqrt() } else { median(known.variances).sqrt() };
        StepFit { values, variances, parts, sizes, levels, freedom, noise }
    }

    /// Whether one of two parts has fewer than three places, so that chance finds such a part twice as easily.
    fn short(&self, one: usize, other: usize) -> bool {
        self.sizes[one].min(self.sizes[other]) < 3
    }
}

/// The two levels between which the series alternates, if it has at least six stretches. `changepoint` requires five:
/// here a stretch may be a single version, and a range may well hold two reverted changes.
fn modes(levels: &[(f64, f64)], noise: f64) -> Option<[f64; 2]> {
    if levels.len() < 6 {
        return None;
    }
    let side = |odd: usize| levels.iter().skip(odd).step_by(2).map(|level| level.0).collect::<Vec<f64>>();
    let sides = [side(0), side(1)];
    let centres = [median(&sides[0]), median(&sides[1])];
    let apart = (centres[0] - centres[1]).abs();
    let near = |i: usize| sides[i].iter().all(|level| (level - centres[i]).abs() < (apart / 4.0).max(noise));
    let alternates = apart > 2.0 * noise && near(0) && near(1);
    alternates.then(|| [centres[0].min(centres[1]), centres[0].max(centres[1])])
}
