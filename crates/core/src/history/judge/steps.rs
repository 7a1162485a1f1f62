//! Where the level changed among versions whose own uncertainty is known.
//!
//! Since each version has several readings, a stretch of a single version can be a level, and two versions suffice.
//! Candidates are the cuts of the cheapest piecewise constant (Jackson et al., "An Algorithm for Optimal Partitioning
//! of Data on an Interval" (2005)); then the weakest is taken back until each that is left would be improbable.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::layout;
use crate::stats::normal;
use crate::stats::quantile::{Interval, median};

/// The level of intervals and of sets.
pub(super) const LEVEL: f64 = 0.95;

/// A cut costs this much times ln n, in squared standard errors: true ones are seldom missed, false ones left to the
/// test.
const PRICE: f64 = 2.0;

/// What is known of the values.
pub(super) struct Known<'a> {
    /// One logarithm for each version.
    pub values: &'a [f64],
    /// Their variances, as far as their readings tell.
    pub variances: &'a [f64],
    /// The degrees of freedom of those.
    pub freedom: f64,
    /// The variance that visits of the same artefacts show beyond it.
    pub twins: f64,
    /// How probable any cut may be in noise alone.
    pub error: f64,
    /// A step that is smaller is not named.
    pub least: f64,
    /// Whether readings taken side by side bear out that versions `from..middle` and `middle..to` differ.
    pub confirm: &'a dyn Fn(usize, usize, usize) -> bool,
}

/// One change of level.
#[derive(Clone, Debug)]
pub(super) struct Cut {
    /// The first place of the new level.
    pub at: usize,
    /// The first place that it may be instead, and the last.
    pub first: usize,
    pub last: usize,
    /// The ratio of levels.
    pub ratio: f64,
    pub interval: Option<Interval>,
    pub p: f64,
}

/// A series cut into levels.
#[derive(Clone, Debug, Default)]
pub(super) struct Steps {
    pub cuts: Vec<Cut>,
    /// The level of each stretch, as a logarithm, and its standard error.
    pub levels: Vec<(f64, f64)>,
    /// Standard deviation of values about their level.
    pub noise: f64,
    pub modes: Option<[f64; 2]>,
    /// The smallest step that lasts which would be found four times in five, as a logarithm.
    pub detectable: Option<f64>,
}

pub(super) fn steps(known: &Known<'_>) -> Steps {
    let extra = layout::extra(known);
    let variances: Vec<f64> = known.variances.iter().map(|v| v + extra).collect();
    let mut cuts = partition(known.values, &variances);
    loop {
        let fit = Fit::about(known, &cuts);
        settle(&mut cuts, &fit);
        let fit = Fit::about(known, &cuts);
        let tests: Vec<Test> = (0..cuts.len()).map(|i| fit.test(&cuts, i)).collect();
        let falls = |i: &usize| {
            let test = &tests[*i];
            test.p > known.error || test.step.abs() < known.least || !fit.confirmed(known, &cuts, *i)
        };
        let weakest = (0..cuts.len()).filter(falls).min_by(|&a, &b| tests[a].t.total_cmp(&tests[b].t));
        match weakest {
            Some(i) => {
                cuts.remove(i);
            }
            None => return fit.told(known, &cuts, &tests),
        }
    }
}

/// Running sums of weights, weighted values and weighted squares.
pub(super) struct Sums(Vec<[f64; 3]>);

impl Sums {
    pub(super) fn of(values: &[f64], variances: &[f64]) -> Sums {
        let mut sums = vec![[0.0; 3]];
        let mut now = [0.0; 3];
        for (value, variance) in values.iter().zip(variances) {
            let weight = 1.0 / variance;
            now = [now[0] + weight, now[1] + weight * value, now[2] + weight * value * value];
            sums.push(now);
        }
        Sums(sums)
    }

    pub(super) fn part(&self, from: usize, to: usize) -> [f64; 3] {
        [0, 1, 2].map(|i| self.0[to][i] - self.0[from][i])
    }

    /// The squares that one level leaves of a stretch.
    pub(super) fn cost(&self, from: usize, to: usize) -> f64 {
        let [weight, sum, squares] = self.part(from, to);
        (squares - sum * sum / weight).max(0.0)
    }
}

fn partition(values: &[f64], variances: &[f64]) -> Vec<usize> {
    let n = values.len();
    let sums = Sums::of(&about_median(values), variances);
    let price = PRICE * (n.max(3) as f64).ln();
    cheapest(n, price, |from, to| sums.cost(from, to)).0
}

/// Values relative to their median, since sums of squares of nearly equal large numbers lose digits.
pub(super) fn about_median(values: &[f64]) -> Vec<f64> {
    let centre = median(values);
    values.iter().map(|value| value - centre).collect()
}

/// The cuts of n values for which stretches and cuts cost least, and what they cost.
pub(super) fn cheapest(n: usize, price: f64, cost: impl Fn(usize, usize) -> f64) -> (Vec<usize>, f64) {
    let mut best = vec![0.0; n + 1];
    let mut came_from = vec![0; n + 1];
    for to in 1..=n {
        let (mut cheapest, mut source) = (f64::INFINITY, 0);
        for (from, before) in best.iter().enumerate().take(to) {
            let cost = before + cost(from, to) + if from > 0 { price } else { 0.0 };
            if cost < cheapest {
                (cheapest, source) = (cost, from);
            }
        }
        (best[to], came_from[to]) = (cheapest, source);
    }
    let mut cuts = Vec::new();
    let mut place = came_from[n];
    while place > 0 {
        cuts.push(place);
        place = came_from[place];
    }
    cuts.reverse();
    (cuts, best[n])
}

/// Moves every cut to the best place between its neighbours.
fn settle(cuts: &mut [usize], fit: &Fit) {
    for i in 0..cuts.len() {
        let ends = bounds(cuts, fit.variances.len());
        let (from, to) = (ends[i], ends[i + 2]);
        let cost = |place: &usize| fit.sums.cost(from, *place) + fit.sums.cost(*place, to);
        let best = (from + 1..to).min_by(|a, b| cost(a).total_cmp(&cost(b)));
        cuts[i] = best.unwrap_or(cuts[i]);
    }
}

fn bounds(cuts: &[usize], n: usize) -> Vec<usize> {
    std::iter::once(0).chain(cuts.iter().copied()).chain(std::iter::once(n)).collect()
}

struct Test {
    p: f64,
    step: f64,
    error: f64,
    t: f64,
}

/// The levels between cuts, with the variance between versions that they leave.
struct Fit {
    variances: Vec<f64>,
    sums: Sums,
    levels: Vec<(f64, f64)>,
    freedom: f64,
    noise: f64,
}

impl Fit {
    fn about(known: &Known<'_>, cuts: &[usize]) -> Fit {
        let ends = bounds(cuts, known.values.len());
        let centre = median(known.values);
        let values = about_median(known.values);
        let rough = Sums::of(&values, known.variances);
        let (mut squares, mut expected) = (0.0, 0.0);
        for pair in ends.windows(2) {
            let part = rough.part(pair[0], pair[1]);
            let level = part[1] / part[0];
            let share = 1.0 - 1.0 / (pair[1] - pair[0]) as f64;
            squares += values[pair[0]..pair[1]].iter().map(|v| (v - level).powi(2)).sum::<f64>();
            expected += known.variances[pair[0]..pair[1]].iter().sum::<f64>() * share;
        }
        let free = (ends.last().copied().unwrap_or(0) + 1 - ends.len()) as f64;
        let extra = if free >= 2.0 { ((squares - expected) / free).max(0.0) } else { 0.0 };
        let variances: Vec<f64> = known.variances.iter().map(|v| v + extra).collect();
        let share = extra / (extra + median(known.variances));
        let freedom = 1.0 / ((1.0 - share).powi(2) / known.freedom + share.powi(2) / free.max(1.0));
        let sums = Sums::of(&values, &variances);
        let level = |pair: &[usize]| {
            let [weight, sum, _] = sums.part(pair[0], pair[1]);
            (centre + sum / weight, (1.0 / weight).sqrt())
        };
        let levels = ends.windows(2).map(level).collect();
        let noise = if free > 0.0 { (squares / free).sqrt() } else { median(known.variances).sqrt() };
        Fit { variances, sums, levels, freedom, noise }
    }

    fn test(&self, cuts: &[usize], i: usize) -> Test {
        let (left, right) = (self.levels[i], self.levels[i + 1]);
        let step = right.0 - left.0;
        let error = left.1.hypot(right.1);
        let t = step.abs() / error;
        let tail = StudentsT::new(0.0, 1.0, self.freedom).map_or(1.0, |student| student.sf(t));
        // A stretch of one or two versions may be had in twice as many ways.
        let ends = bounds(cuts, self.variances.len());
        let short = (ends[i + 1] - ends[i]).min(ends[i + 2] - ends[i + 1]) < 3;
        let places = (self.variances.len() - 1) as f64 * if short { 2.0 } else { 1.0 };
        Test { p: (2.0 * tail * places).min(1.0), step, error, t }
    }

    /// Levels of few versions must be borne out by readings taken side by side.
    fn confirmed(&self, known: &Known<'_>, cuts: &[usize], i: usize) -> bool {
        let ends = bounds(cuts, self.variances.len());
        let short = (ends[i + 1] - ends[i]).min(ends[i + 2] - ends[i + 1]) < 3;
        !short || (known.confirm)(ends[i], ends[i + 1], ends[i + 2])
    }

    fn told(&self, known: &Known<'_>, cuts: &[usize], tests: &[Test]) -> Steps {
        let detectable = self.detectable(known);
        if let Some(modes) = modes(&self.levels, self.noise) {
            let all = Fit::about(known, &[]);
            let levels = all.levels;
            return Steps { cuts: Vec::new(), levels, noise: self.noise, modes: Some(modes), detectable };
        }
        let reach = normal::student(LEVEL, self.freedom);
        let cut = |(i, test): (usize, &Test)| {
            let (first, last) = self.places(cuts, i);
            let (low, high) =
                ((test.step - reach * test.error).exp(), (test.step + reach * test.error).exp());
            let interval = Some(Interval { low, high, level: LEVEL });
            Cut { at: cuts[i], first, last, ratio: test.step.exp(), interval, p: test.p }
        };
        let cuts = tests.iter().enumerate().map(cut).collect();
        Steps { cuts, levels: self.levels.clone(), noise: self.noise, modes: None, detectable }
    }

    /// The places at which the cut fits nearly as well; see `changepoint`, which does the same, for the bound.
    fn places(&self, cuts: &[usize], i: usize) -> (usize, usize) {
        let ends = bounds(cuts, self.variances.len());
        let (from, to) = (ends[i], ends[i + 2]);
        let cost = |place: usize| self.sums.cost(from, place) + self.sums.cost(place, to);
        let allowed = cost(cuts[i]) - (1.0 - LEVEL.sqrt()).ln() * 2.0;
        let fits: Vec<usize> = (from + 1..to).filter(|&place| cost(place) <= allowed).collect();
        (fits.first().copied().unwrap_or(cuts[i]), fits.last().copied().unwrap_or(cuts[i]))
    }

    fn detectable(&self, known: &Known<'_>) -> Option<f64> {
        let n = self.variances.len();
        let [left, right] = [(0, n / 2), (n / 2, n)].map(|(from, to)| 1.0 / self.sums.part(from, to)[0]);
        let places = (n - 1) as f64;
        let needed = normal::student(1.0 - known.error / places, self.freedom) + normal::quantile(0.8);
        let step = (needed * (left + right).sqrt()).max(known.least);
        step.is_finite().then_some(step)
    }
}

/// Two levels that at least six stretches keep returning to, as `changepoint` has it for five: here stretches may be
/// single versions, and a range may well hold two that were taken back.
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
