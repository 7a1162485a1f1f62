//! Judges how much memory a program retains per unit of its work: whether it grows with the work, grows less and less,
//! or is constant.
//!
//! The readings at each size are averaged. Whether there is growth, and the bytes per unit, come from the straight line
//! by least squares, with Student's interval of its slope. The form comes from the family a + b·(n^p − 1)/p, which
//! contains all relevant forms: bounded (p < 0), logarithm (0), root (½), proportional (1), faster (> 1). The interval
//! of p is that of the profile of the residual sum of squares.
//!
//! Sources: Box & Tidwell, "Transformation of the Independent Variables" (1962), for the family; Draper & Smith,
//! "Applied Regression Analysis" (1998), §2.1 for pure error and lack of fit, §24.6 for the region of a non-linear
//! parameter.
//!
//! Readings may depart from every form, as those of tables that double do. This lack of fit counts as noise: intervals
//! become wider, and the answer becomes "can't tell".

use super::Interval;
use super::normal::student;
use super::ols::fit;
use crate::sorting;

/// The growth of the retained memory with the work. Slopes are in bytes per unit of work.
#[derive(Clone, Debug, PartialEq)]
pub enum Retained {
    /// The retained memory grows with the work, in proportion or faster.
    Grows {
        /// The bytes that are retained per unit of work.
        per_unit: f64,
        /// The interval of `per_unit`.
        interval: Interval,
        /// The interval of the power of the work.
        power: Interval,
    },
    /// The retained memory grows, but ever less per unit of work.
    Slows {
        /// The interval of the power of the work.
        power: Interval,
    },
    /// The retained memory grows at first, and stops at some size of the work.
    Stops {
        /// The size from which on there is no growth.
        after: f64,
    },
    /// The retained memory does not grow by an amount that matters.
    Constant {
        /// The interval of the slope.
        interval: Interval,
    },
    /// The readings do not decide.
    Unknown(GrowthDoubt),
}

/// Why the readings do not decide.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GrowthDoubt {
    /// There are too few sizes, or they are too close to each other.
    TooFewSizes,
    /// Growth up to this many bytes per unit of work would not be detected.
    Noise {
        /// The largest slope that the readings allow.
        at_most: f64,
    },
    /// The retained memory grows, and several forms are possible.
    Form {
        /// The interval of the power of the work.
        power: Interval,
    },
    /// The live heap of a language runtime does not grow with the work, but the bytes of malloc that were not freed do.
    OutsideTheHeap {
        /// The bytes of malloc that are retained per unit of work.
        per_unit: f64,
    },
    /// The bytes of malloc that were not freed, or the live heap, do not grow with the work. The largest resident size
    /// does, by more than the peak of malloc explains.
    OutsideMalloc {
        /// The resident bytes per unit of work that malloc does not explain.
        per_unit: f64,
    },
    /// The bytes that all processes together had not freed at their ends grow with the work. The peak of the largest
    /// process does not grow, and is smaller.
    InProcesses {
        /// The bytes per unit of work, of all processes.
        per_unit: f64,
    },
    /// The largest resident size grows with the work, but the collector of the language runtime is not known to have
    /// run often enough to free unused objects.
    Uncollected {
        /// The resident bytes per unit of work.
        per_unit: f64,
    },
}

/// The smallest number of sizes that shows a form.
pub const LEAST_SIZES: usize = 4;
/// The smallest ratio of the largest size to the smallest.
pub const LEAST_RANGE: f64 = 4.0;

/// The confidence level at which growth is accepted.
const EXISTS: f64 = 0.99;
/// The confidence level of the intervals that are shown and that distinguish forms.
const SHOWN: f64 = 0.95;
/// The range of powers that are tried, in steps of [`STEP`]; powers outside look like its ends.
const POWERS: (f64, f64) = (-6.0, 4.0);
const STEP: f64 = 0.02;
/// Growth of fewer bytes over all sizes is due to buffers, arguments and tables, not to the work.
const FEW_BYTES: f64 = 1024.0;
/// This replaces [`FEW_BYTES`] where runs of one size differ: a collector that looks more often sees a larger maximum
/// of live data.
const FEW_UNSTEADY_BYTES: f64 = 8192.0;
/// Growth of the resident size of less than this over all sizes is within the error of the kernel's high-water mark, which
/// sums its counters of each core only from time to time.
const FEW_RESIDENT_BYTES: f64 = 1_048_576.0;
/// Departures from a form of less than this share of the whole growth do not count against the form.
const RESOLUTION: f64 = 0.002;
/// Growth with a power below this is not proportional to the work; growth with a power up to [`ROOT`] may be a root.
const NEARLY_ONE: f64 = 0.9;
const ROOT: f64 = 0.5;

/// Judges pairs of size and retained bytes. Growth of less than `smallest` bytes per unit of work does not matter.
pub fn judge_growth(readings: &[(f64, f64)], smallest: f64) -> Retained {
    let mut sizes = Sizes::of(readings);
    let n = &sizes.at;
    if n.len() < LEAST_SIZES || n[n.len() - 1] < LEAST_RANGE * n[0] || n[0] <= 0.0 {
        return Retained::Unknown(GrowthDoubt::TooFewSizes);
    }
    let grown = sizes.mean[n.len() - 1] - sizes.mean[0];
    let few = if sizes.repeats() { FEW_BYTES } else { FEW_UNSTEADY_BYTES };
    if grown >= few && sizes.drop_unseen() && sizes.at.len() < LEAST_SIZES {
        let power = Interval { low: POWERS.0, high: POWERS.1, level: SHOWN };
        return Retained::Unknown(GrowthDoubt::Form { power });
    }
    let Some(slope) = sizes.slope(EXISTS) else { return Retained::Unknown(GrowthDoubt::TooFewSizes) };
    let shape = sizes.shape();
    let negligible = slope.high <= smallest / 10.0;
    let exists = grown >= few && !negligible && (slope.low > 0.0 || shape.explains);
    let power = shape.power;
    if exists && slope.low > 0.0 && power.low > ROOT && power.high >= NEARLY_ONE && sizes.goes_on() {
        let interval = sizes.slope(SHOWN).unwrap_or(slope);
        return Retained::Grows { per_unit: (interval.low + interval.high) / 2.0, interval, power };
    }
    if exists && power.high < NEARLY_ONE {
        return Retained::Slows { power };
    }
    if let (true, Some(after)) = (grown >= few && slope.high > smallest, sizes.level_from(smallest)) {
        return Retained::Stops { after };
    }
    let level = grown < few || (slope.low <= 0.0 && !shape.explains) || negligible;
    match level && slope.high <= smallest {
        true => Retained::Constant { interval: slope },
        false if exists => Retained::Unknown(GrowthDoubt::Form { power }),
        false => Retained::Unknown(GrowthDoubt::Noise { at_most: slope.high }),
    }
}

/// Judges pairs of size and retained bytes. `at_most` are upper bounds of the retained bytes. Some collectors do not
/// look at the end of a program, so that the readings lack what was allocated since. Where the upper bounds grow with
/// the work, smaller growth of the readings proves nothing.
pub fn judge_bounded_growth(readings: &[(f64, f64)], at_most: &[(f64, f64)], smallest: f64) -> Retained {
    let found = judge_growth(readings, smallest);
    let Retained::Grows { power: above, interval, .. } = judge_growth(at_most, smallest) else {
        return found;
    };
    let low = match &found {
        Retained::Slows { power } => power.low,
        Retained::Stops { .. } => POWERS.0,
        Retained::Constant { .. } => return Retained::Unknown(GrowthDoubt::Noise { at_most: interval.high }),
        Retained::Grows { .. } | Retained::Unknown(_) => return found,
    };
    Retained::Unknown(GrowthDoubt::Form { power: Interval { low, ..above } })
}

/// Judges a verdict about the live heap of a language runtime together with readings of the bytes of malloc that are
/// not freed at the end. Memory that native code keeps is not in the heap, so growth of these bytes contradicts "no
/// growth". It does not prove a leak, because runtimes take memory from malloc as well.
pub fn judge_outside_the_heap(heap: Retained, of_malloc: &[(f64, f64)], smallest: f64) -> Retained {
    match (heap, judge_growth(of_malloc, smallest)) {
        (
            Retained::Constant { .. } | Retained::Slows { .. } | Retained::Stops { .. },
            Retained::Grows { per_unit, .. },
        ) => Retained::Unknown(GrowthDoubt::OutsideTheHeap { per_unit }),
        (heap, _) => heap,
    }
}

/// The number of the smallest sizes that may differ from the others because a language runtime starts.
const STARTS: usize = 2;

/// The most that the resident size could have grown for each unit of work without being noticed, if that is more than
/// `smallest`: growth within the kernel's error does not count.
///
/// ```
/// use scruple_stats::leak::unseen_resident_growth;
///
/// let resident = [(1000.0, 2e6), (2000.0, 2e6), (9000.0, 2e6)];
/// assert_eq!(unseen_resident_growth(&resident, 1.0), Some(131.072));
/// assert_eq!(unseen_resident_growth(&resident, 200.0), None);
/// assert_eq!(unseen_resident_growth(&[], 1.0), None);
/// ```
pub fn unseen_resident_growth(resident: &[(f64, f64)], smallest: f64) -> Option<f64> {
    let sizes = || resident.iter().map(|(size, _)| *size);
    let range = sizes().reduce(f64::max)? - sizes().reduce(f64::min)?;
    (range > 0.0).then(|| FEW_RESIDENT_BYTES / range).filter(|unseen| *unseen > smallest)
}

/// The growth of the resident size per unit of work, with its interval, if it is steady from one of the smallest sizes on.
/// A runtime takes more memory in its first moments, for instance when it first has no room for young objects; with the
/// sizes in which it has not done so yet, steady growth would not be in proportion. Growth whose form the readings leave
/// open counts as well, unless it surely slows down.
fn steady_growth(resident: &[(f64, f64)], smallest: f64) -> Option<(f64, Interval)> {
    let all = Sizes::of(resident);
    all.at.iter().take(STARTS + 1).find_map(|from| {
        let beyond: Vec<(f64, f64)> = resident.iter().filter(|(size, _)| size >= from).copied().collect();
        let sizes = Sizes::of(&beyond);
        let (smallest_size, largest_size) = (sizes.at[0], sizes.at[sizes.at.len() - 1]);
        if sizes.at.len() < LEAST_SIZES || largest_size < LEAST_RANGE * smallest_size {
            return None;
        }
        let interval = sizes.slope(SHOWN)?;
        let grows = sizes.slope(EXISTS)?.low > 0.0 && interval.high > smallest;
        let grown = sizes.mean[sizes.mean.len() - 1] - sizes.mean[0] >= FEW_RESIDENT_BYTES;
        let steady = grows && grown && sizes.goes_on() && sizes.shape().power.high >= NEARLY_ONE;
        steady.then_some(((interval.low + interval.high) / 2.0, interval))
    })
}

/// Judges a verdict about the bytes that all processes had not freed at their ends, together with the peak of the
/// largest process. The memory of a process is freed when it ends, so it is not a leak that more work takes more
/// processes.
pub fn judge_processes(found: Retained, left: &[(f64, f64)], most: &[(f64, f64)], smallest: f64) -> Retained {
    let Retained::Grows { per_unit, .. } = found else { return found };
    let last = |figure: &[(f64, f64)]| Sizes::of(figure).mean.last().copied();
    let is_more = last(left).zip(last(most)).is_some_and(|(left, most)| left > most);
    match judge_growth(most, smallest) {
        Retained::Constant { .. } | Retained::Stops { .. } if is_more => {
            Retained::Unknown(GrowthDoubt::InProcesses { per_unit })
        }
        _ => found,
    }
}

/// The most resident bytes that one allocated byte may take: a block of 24 bytes takes 32, and a block that moves while
/// it grows is there twice.
const RESIDENT_OF_ALLOCATED: f64 = 1.5;

/// Judges a verdict about the bytes of malloc that were not freed, or about a live heap, together with the largest
/// resident size and the peak of malloc, if they are known. Memory that a program maps itself, and stacks of threads,
/// are not malloc's, so growth of the resident size beyond malloc's peak contradicts "no growth". It does not prove a
/// leak, because resident memory includes mapped files, and memory that was released before the end.
pub fn judge_outside_malloc(
    found: Retained,
    resident: &[(f64, f64)],
    allocated: &[(f64, f64)],
    smallest: f64,
) -> Retained {
    let allocated = Sizes::of(allocated);
    let unexplained = |(size, bytes): &(f64, f64)| {
        if allocated.at.is_empty() {
            return Some((*size, *bytes));
        }
        let at = allocated.at.iter().position(|at| at == size)?;
        Some((*size, bytes - RESIDENT_OF_ALLOCATED * allocated.mean[at]))
    };
    let unexplained: Vec<(f64, f64)> = resident.iter().filter_map(unexplained).collect();
    match (steady_growth(&unexplained, smallest), found) {
        (_, found @ (Retained::Grows { .. } | Retained::Unknown(_))) => found,
        (Some((per_unit, _)), _) => Retained::Unknown(GrowthDoubt::OutsideMalloc { per_unit }),
        (None, found) => found,
    }
}

/// The most resident bytes that one byte of a live heap may take: collectors that copy reserve room for two copies, and
/// free unused memory only after a while.
const RESIDENT_OF_LIVE: f64 = 3.0;

/// Returns the resident bytes per unit of work in two cases: the largest resident size grows by more than a growing
/// live heap of a language runtime explains, or it is not known whether the live heap grows. Memory that only belongs
/// to an object of the heap, such as mapped memory, is not in the heap.
pub fn resident_growth_beyond(heap: &Retained, resident: &[(f64, f64)], smallest: f64) -> Option<f64> {
    let (per_unit, interval) = steady_growth(resident, smallest)?;
    match heap {
        Retained::Grows { interval: of_heap, .. } => {
            (interval.low > RESIDENT_OF_LIVE * of_heap.high).then_some(per_unit)
        }
        Retained::Unknown(GrowthDoubt::Form { .. } | GrowthDoubt::Noise { .. }) => Some(per_unit),
        _ => None,
    }
}

/// The smallest number of collections after which unused memory is used again instead of further memory.
const ENOUGH_COLLECTIONS: f64 = 2.0;

/// Judges growth of the largest resident size of a program whose language runtime collects, together with the number of
/// collections with the second largest size of the work, if it is known. Growth between sizes without collections may
/// consist of objects that nothing uses.
pub fn judge_collected(resident: Retained, collections: Option<f64>) -> Retained {
    match resident {
        Retained::Grows { per_unit, .. } if collections.is_none_or(|count| count < ENOUGH_COLLECTIONS) => {
            Retained::Unknown(GrowthDoubt::Uncollected { per_unit })
        }
        resident => resident,
    }
}

/// The readings averaged by size, smallest size first.
struct Sizes {
    at: Vec<f64>,
    mean: Vec<f64>,
    /// The variance of a mean from repeated runs, with its degrees of freedom; `None` where no size was run twice.
    pure: Option<(f64, f64)>,
    /// The variance of a mean from rounding.
    rounding: f64,
}

/// The result of fitting the family of forms.
struct FormFit {
    power: Interval,
    /// Whether the best form explains significantly more than a constant.
    explains: bool,
}

impl Sizes {
    fn of(readings: &[(f64, f64)]) -> Sizes {
        let mut sorted = readings.to_vec();
        sorting::by(&mut sorted, |a, b| a.0.total_cmp(&b.0));
        let mut sizes = Sizes { at: Vec::new(), mean: Vec::new(), pure: None, rounding: 0.0 };
        let (mut squares, mut freedom, mut runs) = (0.0, 0.0, 0.0_f64);
        for group in sorted.chunk_by(|a, b| a.0 == b.0) {
            let count = group.len() as f64;
            let mean = group.iter().map(|(_, bytes)| bytes).sum::<f64>() / count;
            squares += group.iter().map(|(_, bytes)| (bytes - mean).powi(2)).sum::<f64>();
            freedom += count - 1.0;
            runs += count;
            sizes.at.push(group[0].0);
            sizes.mean.push(mean);
        }
        let per_size = runs / sizes.at.len().max(1) as f64;
        // Rounding is the same for every run of a size, so averaging does not reduce its variance.
        sizes.rounding = rounded_to(readings).powi(2) / 12.0;
        sizes.pure = (freedom > 0.0).then(|| (squares / freedom / per_size, freedom));
        sizes
    }

    /// Whether all runs of the same size gave the same reading.
    fn repeats(&self) -> bool {
        self.pure.is_none_or(|(variance, _)| variance == 0.0)
    }

    /// Leaves out the smallest sizes that all gave the same reading, and returns whether there were any. A collector
    /// that looks at live data only when there is enough of it has not looked at them yet, so the growth up to there is
    /// unknown.
    fn drop_unseen(&mut self) -> bool {
        let same = self.mean.windows(2).take_while(|pair| pair[0] == pair[1]).count();
        self.at.drain(..same);
        self.mean.drain(..same);
        same > 0
    }

    /// The larger of two variances of a mean, with its degrees of freedom: from the departures from a form, and from
    /// repeated runs.
    fn variance(&self, squares: f64, freedom: f64) -> (f64, f64) {
        let lack = (squares / freedom + self.rounding, freedom);
        self.pure.filter(|(variance, _)| *variance > lack.0).unwrap_or(lack)
    }

    fn slope(&self, level: f64) -> Option<Interval> {
        let line = fit(&self.at, &self.mean)?;
        let freedom = self.at.len() as f64 - 2.0;
        let left = |n: f64, bytes: f64| (bytes - line.intercept - line.slope * n).powi(2);
        let squares = self.at.iter().zip(&self.mean).map(|(n, bytes)| left(*n, *bytes)).sum::<f64>();
        let middle = self.at.iter().sum::<f64>() / self.at.len() as f64;
        let spread = self.at.iter().map(|n| (n - middle).powi(2)).sum::<f64>();
        let (variance, freedom) = self.variance(squares, freedom);
        let half = student(level, freedom) * (variance / spread).sqrt();
        Some(Interval { low: line.slope - half, high: line.slope + half, level })
    }

    /// The residual sum of squares of the best a + b·g with b ≥ 0; the total sum of squares where there is no increase.
    fn left_by(&self, g: impl Fn(f64) -> f64) -> f64 {
        let x: Vec<f64> = self.at.iter().map(|n| g(*n)).collect();
        let all = self.about_mean();
        match fit(&x, &self.mean).filter(|line| line.slope > 0.0) {
            Some(line) => all * (1.0 - line.r_squared),
            None => all,
        }
    }

    fn about_mean(&self) -> f64 {
        let mean = self.mean.iter().sum::<f64>() / self.mean.len() as f64;
        self.mean.iter().map(|bytes| (bytes - mean).powi(2)).sum()
    }

    fn shape(&self) -> FormFit {
        let largest = self.at[self.at.len() - 1];
        let powers = || (0..).map(|i| POWERS.0 + f64::from(i) * STEP).take_while(|p| *p <= POWERS.1);
        let form = |p: f64| {
            move |n: f64| {
                if p.abs() < STEP / 2.0 { (n / largest).ln() } else { ((n / largest).powf(p) - 1.0) / p }
            }
        };
        let profile: Vec<(f64, f64)> = powers().map(|p| (p, self.left_by(form(p)))).collect();
        let least = profile.iter().map(|(_, left)| *left).fold(f64::INFINITY, f64::min);
        let (most, fewest) =
            self.mean.iter().fold((f64::NEG_INFINITY, f64::INFINITY), |(most, fewest), bytes| {
                (most.max(*bytes), fewest.min(*bytes))
            });
        let (variance, freedom) = self.variance(least, self.at.len() as f64 - 3.0);
        let variance = variance.max((RESOLUTION * (most - fewest)).powi(2));
        let limit = least + variance * student(SHOWN, freedom).powi(2);
        let allowed = || profile.iter().filter(|(_, left)| *left <= limit).map(|(p, _)| *p);
        let power = Interval {
            low: allowed().fold(f64::INFINITY, f64::min),
            high: allowed().fold(f64::NEG_INFINITY, f64::max),
            level: SHOWN,
        };
        let explained = (self.about_mean() - least) / 2.0 / variance;
        FormFit { power, explains: explained > super::normal::fisher(EXISTS, 2.0, freedom) }
    }

    /// The size from which on there is no growth that matters, over at least three sizes and a wide enough range.
    fn level_from(&self, smallest: f64) -> Option<f64> {
        let last = self.at.len() - 1;
        (1..self.at.len().saturating_sub(2))
            .filter(|from| self.at[last] >= LEAST_RANGE * self.at[*from])
            .find_map(|from| {
                let (at, mean) = (self.at[from..].to_vec(), self.mean[from..].to_vec());
                let slope = Sizes { at, mean, ..*self }.slope(EXISTS)?;
                (slope.high <= smallest).then_some(self.at[from])
            })
    }

    /// Whether the last step costs at least two fifths of the average per unit; otherwise growth may just have ended.
    fn goes_on(&self) -> bool {
        let step = |from: usize, to: usize| (self.mean[to] - self.mean[from]) / (self.at[to] - self.at[from]);
        let last = self.at.len() - 1;
        step(last - 1, last) >= 0.4 * step(0, last)
    }
}

/// The granularity of the readings in bytes; 0 where there is none. Readings that are all multiples of a large power of
/// two are rounded to it, as those of collectors that count whole regions of the heap are. Multiples of smaller powers
/// may be chance.
fn rounded_to(readings: &[(f64, f64)]) -> f64 {
    const REGION: u32 = 20;
    let common = readings.iter().fold(0_u64, |common, (_, bytes)| common | *bytes as u64);
    match common.trailing_zeros() {
        zeros @ REGION..64 => 2.0_f64.powi(zeros as i32),
        _ => 0.0,
    }
}
