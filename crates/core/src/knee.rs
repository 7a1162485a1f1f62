//! Finds the highest rate that a server sustains: decides which rate to try next, and gives the result so far.
//!
//! Every measurement counts, for each limit, how many requests were beyond it in each of several stretches of time.
//! These counts are used in two ways. First, a rate is *certainly* good or bad when the confidence interval of the
//! share beyond lies below or above what the limit allows; it is also bad when the server fell behind. The answer lies
//! between the highest certainly good and the lowest certainly bad rate. Second, where the share grows smoothly,
//! [`share_crossing`] estimates the rate at which it reaches what is allowed, with an interval. The search doubles the rate (or
//! halves it, if the first rate is too high) until one rate is good and another bad. Then it halves the distance, and
//! finally measures around the estimate until one of the two intervals is narrow enough. Medians over measurements are
//! not used: slow requests come in groups, so most measurements show too few of them.

mod late;
mod limits;
mod measurement;

use scruple_stats::Interval;
use scruple_stats::share_crossing::{self, Crossing};
use serde::{Deserialize, Serialize};

pub use limits::{BEHIND, Measure, RateFigures, RateLimit, Slo};
pub use measurement::{LimitCount, Measurement, RateOutcome};

/// The parameters of a search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct KneeSearch {
    /// The first rate, in requests per second.
    pub from: f64,
    /// The highest rate that is tried, in requests per second.
    pub most: f64,
    /// The ratio of the upper to the lower end of the interval at which the search may stop.
    pub precision: f64,
    /// The number of measurements of both ends that are required where the server turns from good to bad abruptly.
    pub repeats: u32,
    /// The number of measurements after which the search ends with the result so far.
    pub steps: u32,
}

impl Default for KneeSearch {
    fn default() -> KneeSearch {
        KneeSearch {
            from: 100.0,
            most: 1e6,
            precision: 1.0 + crate::default_margins::HIGHEST_RATES,
            repeats: 3,
            steps: 100,
        }
    }
}

/// The outcomes of all measurements of one rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// The rate, in requests per second.
    pub rate: f64,
    /// The number of measurements in which every limit was kept and the server kept up.
    pub good: u32,
    /// The number of measurements in which a limit was broken or the server fell behind.
    pub bad: u32,
    /// The number of void measurements.
    pub void: u32,
}

/// A search under way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Knee {
    search: KneeSearch,
    /// The share of requests with which the generator may be late.
    most_late: f64,
    /// The share of requests that each limit allows beyond it; `None` where none is allowed.
    allowed: Vec<Option<f64>>,
    measurements: Vec<Measurement>,
    tallies: Vec<Tally>,
    /// The number of void measurements in a row; one without any punctual part counts twice.
    void_in_a_row: u32,
}

/// The next action of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Next {
    /// Measure at this rate, in requests per second, and pass the result to [`Knee::report`].
    Measure(f64),
    /// The search is over, with this result.
    Found(KneeInterval),
}

/// The highest sustainable rate, in requests per second, as an interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct KneeInterval {
    /// The most likely rate; absent where it could not be estimated.
    pub estimate: Option<f64>,
    /// The lower end of the interval; absent where even the lowest rate tried was bad.
    pub low: Option<f64>,
    /// The upper end of the interval; absent where the highest rate allowed was good.
    pub high: Option<f64>,
    /// Whether the interval is as narrow as requested.
    pub settled: bool,
    /// Whether the search ended because several measurements in a row were void.
    pub void: bool,
    /// The share of requests, from 0 to 1, with which the generator was late in the measurements that were bad or void.
    /// It is set if it is so large that the machine may be the limit and not the server. The upper end is then not
    /// known, and the lower end is the highest rate that was mostly good.
    pub late: Option<f64>,
}

/// The number of void measurements in a row that ends a search. Other work on the machine may make every other
/// measurement void for minutes, and the search waits for it to end; a generator that cannot keep the rate makes all of
/// them void. A measurement in which the generator was never punctual counts as two of them.
const MOST_VOID: u32 = 8;

/// The lowest rate at which a good one is searched, as a share of the first rate.
const LOWEST: f64 = 1.0 / 1_048_576.0;

/// The confidence level of the interval. It is higher than the 95 % that is reported, because a search that ends as
/// soon as the interval is narrow tends to end where chance has made it too narrow.
pub const LEVEL: f64 = 0.995;

/// The ratio of the lowest bad to the highest good rate at which measuring around the estimate begins.
const CLOSE: f64 = 1.5;

/// Rates whose ratio is less than this count as neighbours.
const NEAR: f64 = 1.1;

/// The number of requests beyond a limit that are assumed to come together, as long as too few were counted to know it.
const BUNCH: f64 = 10.0;

/// The normal quantile of the interval that makes a rate certainly good or bad.
const SURE: f64 = 2.576;

impl Knee {
    /// Starts a search for the highest rate at which the server keeps the limits of `slo`.
    pub fn new(search: KneeSearch, slo: &Slo) -> Knee {
        let allowed = slo.limits.iter().map(RateLimit::allowed).collect();
        let most_late = late::most_late(slo);
        Knee { search, most_late, allowed, measurements: Vec::new(), tallies: Vec::new(), void_in_a_row: 0 }
    }

    /// The tallies so far, in increasing order of the rate.
    pub fn tallies(&self) -> &[Tally] {
        &self.tallies
    }

    /// The result if the search ends now.
    pub fn result_if_ended(&self) -> KneeInterval {
        self.unless_late(self.interval())
    }

    /// The next action; it stays the same until a measurement is reported.
    pub fn next(&self) -> Next {
        match self.next_if_punctual() {
            Next::Found(found) => Next::Found(self.unless_late(found)),
            Next::Measure(_) if self.is_hopeless() => Next::Found(self.result_if_ended()),
            measure @ Next::Measure(_) => measure,
        }
    }

    fn interval(&self) -> KneeInterval {
        let (good, bad) = self.sure();
        let smooth = self.crossing(self.guess());
        let interval = smooth.and_then(|crossing| crossing.interval);
        let (low, high) = match interval {
            Some(interval) => (Some(interval.low), Some(interval.high)),
            None => (good, bad),
        };
        KneeInterval {
            estimate: smooth
                .map(|crossing| crossing.rate)
                .filter(|rate| low.is_none_or(|low| *rate >= low) && high.is_none_or(|high| *rate <= high)),
            low,
            high,
            settled: false,
            void: self.void_in_a_row >= MOST_VOID,
            late: None,
        }
    }

    fn next_if_punctual(&self) -> Next {
        let over = |settled| Next::Found(KneeInterval { settled, ..self.interval() });
        if self.measurements.len() as u32 >= self.search.steps || self.void_in_a_row >= MOST_VOID {
            return over(false);
        }
        let (good, bad) = match self.ends() {
            (None, None) => return Next::Measure(self.search.from.min(self.search.most)),
            (Some(good), None) if good >= self.search.most => {
                let settled = self.measured(good) >= self.search.repeats;
                let found = KneeInterval { low: Some(good), high: None, settled, ..self.interval() };
                return if settled { Next::Found(found) } else { Next::Measure(good) };
            }
            (Some(good), None) => return Next::Measure((good * 2.0).min(self.search.most)),
            (None, Some(bad)) if bad <= self.search.from * LOWEST => return over(true),
            (None, Some(bad)) => return Next::Measure(rounded(bad / 2.0)),
            (Some(good), Some(bad)) => (good, bad),
        };
        let middle = rounded((good * bad).sqrt());
        if bad / good > CLOSE && middle > good && middle < bad {
            return Next::Measure(middle);
        }
        match self.crossing((good * bad).sqrt()) {
            Some(crossing) => {
                if self.narrow(self.interval()) {
                    return over(true);
                }
                Next::Measure(self.next_rate_near(&crossing))
            }
            None if self.any_smooth() => {
                let rate = [middle, good / 1.07, bad * 1.07][self.measurements.len() % 3];
                Next::Measure(rounded(rate).min(self.search.most))
            }
            None => self.at_once(good, bad, middle),
        }
    }

    /// Whether the share beyond some limit grows smoothly with the rate, and the server does not fall behind first.
    fn any_smooth(&self) -> bool {
        (0..self.allowed.len()).any(|limit| self.is_smooth(limit))
            && self.ends().1.is_some_and(|bad| !self.falls_behind(bad))
    }

    fn is_smooth(&self, limit: usize) -> bool {
        let most = (self.target(limit) * 25.0).min(0.5);
        let partly = self.not_void().filter(|m| {
            let sum = sum(&m.counts[limit]);
            sum.beyond > 0.0 && (self.allowed[limit] == Some(1.0) || sum.beyond < sum.requests * most)
        });
        partly.count() > 1
    }

    /// The next action where the server turns from good to bad abruptly: the two ends approach each other, and are then
    /// repeated.
    fn at_once(&self, good: f64, bad: f64, middle: f64) -> Next {
        if bad / good > self.search.precision && middle > good && middle < bad {
            return Next::Measure(middle);
        }
        let (of_good, of_bad) = (self.measured(good), self.measured(bad));
        let clear = |rate: f64| self.tallies.iter().any(|t| t.rate == rate && (t.good == 0 || t.bad == 0));
        let by_the_server = self.not_void().filter(|m| m.rate == bad).all(|m| self.is_bad_without_delays(m));
        if of_good.min(of_bad) >= self.search.repeats && clear(good) && clear(bad) && by_the_server {
            let settled = KneeInterval { low: Some(good), high: Some(bad), settled: true, ..self.interval() };
            return Next::Found(settled);
        }
        // Both ends are measured in turn, so that a lasting disturbance does not affect only one of them.
        Next::Measure(if of_good <= of_bad { good } else { bad })
    }

    /// Whether a measurement is bad even without the delays of the generator.
    fn is_bad_without_delays(&self, measurement: &Measurement) -> bool {
        let exceeded = |(counts, allowed): (&Vec<LimitCount>, &Option<f64>)| {
            let all = sum(counts);
            all.least > 0.0 && all.least >= all.requests * allowed.unwrap_or(0.0)
        };
        !measurement.kept_up || measurement.counts.iter().zip(&self.allowed).any(exceeded)
    }

    fn narrow(&self, found: KneeInterval) -> bool {
        found.low.zip(found.high).is_some_and(|(low, high)| high / low <= self.search.precision)
    }

    /// A rate near the estimate: in turn at it, above and below it, so that the growth of the share is known as well.
    fn next_rate_near(&self, crossing: &Crossing) -> f64 {
        let half = crossing.interval.map_or(0.2, |interval| (interval.high / interval.low).ln() / 2.0);
        let aside = half.clamp(0.04, 0.15);
        let turn = [0.0, aside, -aside][self.measurements.len() % 3];
        rounded(crossing.rate * f64::exp(turn)).min(self.search.most)
    }

    /// Adds a measurement to the search.
    pub fn report(&mut self, measurement: Measurement) {
        let (rate, outcome) = (measurement.rate, measurement.outcome);
        let has_requests = measurement.counts.iter().flatten().any(|count| count.requests > 0.0);
        self.measurements.push(measurement);
        let place = self.tallies.partition_point(|tally| tally.rate < rate);
        if self.tallies.get(place).is_none_or(|tally| tally.rate != rate) {
            self.tallies.insert(place, Tally { rate, good: 0, bad: 0, void: 0 });
        }
        let tally = &mut self.tallies[place];
        match outcome {
            RateOutcome::Good => tally.good += 1,
            RateOutcome::Bad => tally.bad += 1,
            RateOutcome::Void => tally.void += 1,
        }
        self.void_in_a_row = match (outcome, has_requests) {
            (RateOutcome::Void, true) => self.void_in_a_row + 1,
            (RateOutcome::Void, false) => self.void_in_a_row + 2,
            (RateOutcome::Good | RateOutcome::Bad, _) => 0,
        };
    }

    fn measured(&self, rate: f64) -> u32 {
        self.tallies.iter().find(|tally| tally.rate == rate).map_or(0, |tally| tally.good + tally.bad)
    }

    fn not_void(&self) -> impl Iterator<Item = &Measurement> {
        self.measurements.iter().filter(|measurement| measurement.outcome != RateOutcome::Void)
    }

    /// The share of requests that a limit allows beyond it; where none is allowed, one request per measurement.
    fn target(&self, limit: usize) -> f64 {
        self.allowed[limit].unwrap_or_else(|| {
            let requests = |m: &Measurement| m.counts[limit].iter().map(|count| count.requests).sum::<f64>();
            let all: Vec<f64> = self.not_void().map(requests).collect();
            all.len() as f64 / all.iter().sum::<f64>().max(1.0)
        })
    }

    fn guess(&self) -> f64 {
        match self.ends() {
            (Some(good), Some(bad)) => (good * bad).sqrt(),
            (Some(end), None) | (None, Some(end)) => end,
            (None, None) => self.search.from,
        }
    }

    /// The lowest rate at which the share beyond a limit reaches what is allowed; `None` where no share grows smoothly.
    /// Where the generator was late, the lower end of the interval is that of the shares with its delays, and the upper
    /// end that of the shares without them.
    fn crossing(&self, guess: f64) -> Option<Crossing> {
        let found = self.crossing_of(guess, |count| count.beyond)?;
        let late =
            self.not_void().flat_map(|m| m.counts.iter().flatten()).any(|count| count.least < count.beyond);
        if !late {
            return Some(found);
        }
        let least = self.crossing_of(guess, |count| count.least).and_then(|least| least.interval);
        let interval = found.interval.zip(least).map(|(most, least)| Interval {
            low: most.low.min(least.low),
            high: most.high.max(least.high),
            ..most
        });
        Some(Crossing { interval, ..found })
    }

    fn crossing_of(&self, guess: f64, beyond: fn(&LimitCount) -> f64) -> Option<Crossing> {
        let found = (0..self.allowed.len()).filter_map(|limit| {
            let target = self.target(limit);
            let counts = || measurement::stretch_counts(self.not_void(), limit, beyond);
            self.is_smooth(limit).then(|| share_crossing::crossing(&counts(), target, guess, LEVEL))?
        });
        let lowest = found.min_by(|a, b| a.rate.total_cmp(&b.rate))?;
        // Where the server falls behind before it reaches the limit, the limit does not determine the rate.
        let near = self.not_void().any(|m| (m.rate / lowest.rate).ln().abs() < CLOSE.ln());
        (near && !self.falls_behind(lowest.rate)).then_some(lowest)
    }

    /// Whether the server mostly fell behind in the measurements at a rate and just below it.
    fn falls_behind(&self, rate: f64) -> bool {
        let below = self.not_void().filter(|m| m.rate <= rate && m.rate > rate / NEAR);
        let (behind, up): (Vec<_>, Vec<_>) = below.partition(|m| !m.kept_up);
        behind.len() > 1 && behind.len() > 2 * up.len()
    }

    /// The highest rate that is certainly good, and the lowest that is certainly bad. Measurements at a rate and just
    /// above it are evidence that it is good; measurements at it and just below it are evidence that it is bad.
    fn sure(&self) -> (Option<f64>, Option<f64>) {
        let rates: Vec<f64> = self.tallies.iter().filter(|t| t.good + t.bad > 0).map(|t| t.rate).collect();
        let is_bad = |rate: f64| {
            self.falls_behind(rate)
                || (0..self.allowed.len()).any(|limit| {
                    let near = |r: f64| r <= rate && r > rate / NEAR;
                    self.share(limit, near, |count| count.least)
                        .is_some_and(|(low, _)| low > self.target(limit))
                })
        };
        let is_good = |rate: f64| {
            let near = |r: f64| r >= rate && r < rate * NEAR;
            let (up, behind): (Vec<_>, Vec<_>) =
                self.not_void().filter(|m| near(m.rate)).partition(|m| m.kept_up);
            !self.falls_behind(rate)
                && up.len() > behind.len()
                && (0..self.allowed.len()).all(|limit| {
                    self.share(limit, near, |count| count.beyond)
                        .is_some_and(|(_, high)| high < self.target(limit))
                })
        };
        let bad = rates.iter().copied().find(|rate| is_bad(*rate));
        let good = rates
            .iter()
            .copied()
            .filter(|rate| bad.is_none_or(|bad| *rate < bad))
            .rev()
            .find(|rate| is_good(*rate));
        (good, bad)
    }

    /// The bounds of the share beyond a limit, over the measurements of the selected rates; `None` where there are
    /// none.
    fn share(
        &self,
        limit: usize,
        rates: impl Fn(f64) -> bool,
        beyond: fn(&LimitCount) -> f64,
    ) -> Option<(f64, f64)> {
        let of = |count: &LimitCount| LimitCount::of(count.requests, beyond(count));
        let counts: Vec<LimitCount> =
            self.not_void().filter(|m| rates(m.rate)).flat_map(|m| m.counts[limit].iter().map(of)).collect();
        let all = sum(&counts);
        if all.requests <= 0.0 {
            return None;
        }
        let share = all.beyond / all.requests;
        let off: f64 = counts.iter().map(|count| (count.beyond - share * count.requests).powi(2)).sum();
        let n = counts.len() as f64;
        let bunch = match all.beyond > 2.0 * BUNCH && n > 2.0 {
            true => (off / all.beyond * n / (n - 1.0)).max(1.0),
            false => BUNCH,
        };
        let bunches = all.beyond / bunch;
        // Wilson's interval for the number of bunches.
        let (middle, half) = (bunches + SURE * SURE / 2.0, SURE * (bunches + SURE * SURE / 4.0).sqrt());
        Some(((middle - half).max(0.0) * bunch / all.requests, (middle + half) * bunch / all.requests))
    }

    /// The highest good rate without a bad one below it, and the lowest bad rate, by the majority of outcomes. A tie is
    /// bad: a rate that breaks its limits half of the time is not sustained.
    fn ends(&self) -> (Option<f64>, Option<f64>) {
        let judged = || self.tallies.iter().filter(|tally| tally.good + tally.bad > 0);
        let bad = judged().find(|tally| self.is_mostly_bad(tally)).map(|tally| tally.rate);
        let good = judged().take_while(|tally| !self.is_mostly_bad(tally)).last().map(|tally| tally.rate);
        (good, bad)
    }

    /// Whether a rate counts as bad. The majority of its outcomes decides, with one exception: a rate measured once or
    /// twice may have been bad by chance, and the lowest of many such rates nearly always was. So a bad rate counts as
    /// good if the server kept up, and the measurements at it and just above it together keep every limit. Likewise, a
    /// good rate counts as bad if the measurements at it and just below it together break a limit.
    fn is_mostly_bad(&self, tally: &Tally) -> bool {
        let (rate, bad) = (tally.rate, tally.bad >= tally.good);
        let near = |m: &Measurement| match bad {
            true => m.rate >= rate && m.rate < rate * NEAR,
            false => m.rate <= rate && m.rate > rate / NEAR,
        };
        let several = self.not_void().filter(|m| near(m)).count() > 1;
        if !several || self.not_void().any(|m| near(m) && !m.kept_up) {
            return bad;
        }
        let broken = (0..self.allowed.len()).map(|limit| {
            let counts = self.not_void().filter(|m| near(m)).map(|m| sum(&m.counts[limit]));
            let all = sum(&counts.collect::<Vec<_>>());
            Some(all.beyond > all.requests * self.allowed[limit]?)
        });
        broken.collect::<Option<Vec<bool>>>().map_or(bad, |broken| broken.contains(&true))
    }
}

fn sum(counts: &[LimitCount]) -> LimitCount {
    counts.iter().fold(LimitCount::default(), |sum, count| LimitCount {
        requests: sum.requests + count.requests,
        beyond: sum.beyond + count.beyond,
        least: sum.least + count.least,
    })
}

/// Rounds to three significant digits.
fn rounded(rate: f64) -> f64 {
    let step = 10_f64.powf(rate.log10().floor() - 2.0);
    (rate / step).round() * step
}
