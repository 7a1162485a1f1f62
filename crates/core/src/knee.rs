//! The highest rate a server sustains: which rate to try next, and what has been found.
//!
//! A search keeps nothing but a tally per rate. From it follow the lowest rate that was mostly bad and the highest
//! mostly good one below it, and from these two the next step: ramp up by doubling until a rate is bad, then bisect
//! between them, then measure both again until each has been seen often enough. A rate that turns out otherwise when it
//! is measured again moves the interval, and the search goes on from there.

use crate::unit::{Unit, parse_quantity};
use serde::{Deserialize, Serialize};

/// What a server has to keep to: every limit at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slo {
    /// The limits, in the order given; at least one.
    pub limits: Vec<Limit>,
}

/// One limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// What is limited.
    pub of: Measure,
    /// It must be less than this: nanoseconds, or a share from 0 to 1 for failures.
    pub below: f64,
    /// The limit as it was written.
    pub text: String,
}

/// What can be limited.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// The response that this share of requests does not exceed, 0 to 1.
    Quantile(f64),
    /// The mean response.
    Mean,
    /// The longest response.
    Max,
    /// The share of requests that fail.
    Errors,
}

/// What was seen at one rate.
pub struct Seen<'a> {
    /// The response at a quantile, in nanoseconds; none when nothing was answered.
    pub quantile: &'a dyn Fn(f64) -> Option<f64>,
    /// The mean response in nanoseconds.
    pub mean: Option<f64>,
    /// The share of failed requests, 0 to 1.
    pub errors: f64,
    /// By how much the answers were behind the requests at the end, as a part of the time in which requests were due.
    pub behind: f64,
}

impl Seen<'_> {
    /// Whether the server answered at the rate at which requests were due.
    pub fn kept_up(&self) -> bool {
        self.behind < BEHIND
    }
}

/// A server is behind when what was due in some time took this part of it longer to be answered.
pub const BEHIND: f64 = 0.02;

impl Slo {
    /// Reads limits such as `p99<20ms,errors<0.1%`: `pN`, `median`, `mean`, `max` with a duration, `errors` with a share.
    ///
    /// # Errors
    /// Which part is wrong and what is expected, as a sentence.
    pub fn parse(text: &str) -> Result<Slo, String> {
        let limits: Vec<Limit> = text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(limit)
            .collect::<Result<_, _>>()?;
        if limits.is_empty() {
            return Err("no limit is given: write for instance p99<20ms,errors<0.1%".to_owned());
        }
        Ok(Slo { limits })
    }

    /// The limits that were not kept. Without a single answer none that is about responses was.
    pub fn broken(&self, seen: &Seen<'_>) -> Vec<&Limit> {
        let value = |limit: &Limit| match limit.of {
            Measure::Quantile(q) => (seen.quantile)(q),
            Measure::Mean => seen.mean,
            Measure::Max => (seen.quantile)(1.0),
            Measure::Errors => Some(seen.errors),
        };
        // A limit of no errors at all can only be met exactly, so zero is below it.
        let kept = |limit: &Limit, value: f64| value < limit.below || (limit.below == 0.0 && value == 0.0);
        self.limits.iter().filter(|limit| !value(limit).is_some_and(|value| kept(limit, value))).collect()
    }

    /// What a measurement says of its rate. A rate that the server does not keep up with is not sustained, whatever the
    /// limits: its backlog would break any of them in time. A generator that was at fault makes only a bad measurement
    /// void, because a good one would be better still without.
    pub fn outcome(&self, seen: &Seen<'_>, generator_at_fault: bool) -> Outcome {
        match (self.broken(seen).is_empty() && seen.kept_up(), generator_at_fault) {
            (true, _) => Outcome::Good,
            (false, true) => Outcome::Void,
            (false, false) => Outcome::Bad,
        }
    }
}

fn limit(part: &str) -> Result<Limit, String> {
    let expected = "write for instance p99<20ms, mean<5ms, max<1s or errors<0.1%";
    let (name, bound) = part.split_once('<').ok_or_else(|| format!("‘{part}’ is not a limit: {expected}"))?;
    let (name, bound) = (name.trim(), bound.strip_prefix('=').unwrap_or(bound).trim());
    let of = match name {
        "errors" => Measure::Errors,
        "mean" => Measure::Mean,
        "max" => Measure::Max,
        "median" => Measure::Quantile(0.5),
        _ => {
            let percent: Option<f64> = name.strip_prefix('p').and_then(|number| number.parse().ok());
            let percent = percent.filter(|p| (0.0..100.0).contains(p));
            Measure::Quantile(
                percent.ok_or_else(|| format!("‘{name}’ cannot be limited: {expected}"))? / 100.0,
            )
        }
    };
    let unit = if of == Measure::Errors { Unit::Ratio } else { Unit::Nanoseconds };
    let below = parse_quantity(bound, &unit)?;
    if below < 0.0 || (of != Measure::Errors && below == 0.0) {
        return Err(format!("‘{part}’ can never be kept"));
    }
    Ok(Limit { of, below, text: part.to_owned() })
}

/// How a search is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Search {
    /// The first rate, in requests per second.
    pub from: f64,
    /// No higher rate is tried.
    pub most: f64,
    /// The interval is narrow enough when its upper end is at most this multiple of the lower.
    pub precision: f64,
    /// How often both ends have to be measured.
    pub repeats: u32,
    /// After this many measurements the search ends with what it has.
    pub steps: u32,
}

impl Default for Search {
    fn default() -> Search {
        Search { from: 100.0, most: 1e6, precision: 1.05, repeats: 3, steps: 60 }
    }
}

/// What was seen of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Every limit was kept, and the server kept up with the rate.
    Good,
    /// A limit was broken, or the server fell behind.
    Bad,
    /// The measurement itself is void, because the generator was late for instance.
    Void,
}

/// All measurements of one rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// Requests per second.
    pub rate: f64,
    /// Measurements in which every limit was kept, and the rate.
    pub good: u32,
    /// Measurements in which one was broken.
    pub bad: u32,
    /// Void measurements.
    pub void: u32,
}

/// A search under way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Knee {
    search: Search,
    tallies: Vec<Tally>,
    taken: u32,
    void_in_a_row: u32,
}

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Next {
    /// Measure at this rate and [`Knee::report`] what came of it.
    Measure(f64),
    /// The search is over.
    Found(Found),
}

/// The interval that holds the highest sustainable rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// The highest rate that was good and has no bad one below it; none when even the lowest tried was bad.
    pub last_good: Option<f64>,
    /// The lowest rate that was bad; none when the highest allowed was good.
    pub first_bad: Option<f64>,
    /// Whether the interval is as narrow and its ends as often measured as was asked.
    pub settled: bool,
    /// Whether the search ended because one measurement after the other was void.
    pub void: bool,
}

/// Void measurements in a row that end a search.
const MOST_VOID: u32 = 3;

/// So far below the first rate the search for a good one goes.
const LOWEST: f64 = 1.0 / 1024.0;

impl Knee {
    /// A search that has not begun.
    pub fn new(search: Search) -> Knee {
        Knee { search, tallies: Vec::new(), taken: 0, void_in_a_row: 0 }
    }

    /// The tallies so far, by rate.
    pub fn tallies(&self) -> &[Tally] {
        &self.tallies
    }

    /// What is known if the search is given up now.
    pub fn so_far(&self) -> Found {
        let (last_good, first_bad) = self.ends();
        Found { last_good, first_bad, settled: false, void: self.void_in_a_row >= MOST_VOID }
    }

    /// What is to be done next; the same until something is reported.
    pub fn next(&self) -> Next {
        let (good, bad) = self.ends();
        let over = |settled| Next::Found(Found { settled, ..self.so_far() });
        if self.taken >= self.search.steps || self.void_in_a_row >= MOST_VOID {
            return over(false);
        }
        match (good, bad) {
            (None, None) => Next::Measure(self.search.from.min(self.search.most)),
            (Some(good), None) if good >= self.search.most => match self.measured(good) < self.search.repeats
            {
                true => Next::Measure(good),
                false => over(true),
            },
            (Some(good), None) => Next::Measure((good * 2.0).min(self.search.most)),
            (None, Some(bad)) if bad <= self.search.from * LOWEST => over(true),
            (None, Some(bad)) => Next::Measure(bad / 2.0),
            (Some(good), Some(bad)) => {
                let middle = rounded((good * bad).sqrt());
                if bad / good > self.search.precision && middle > good && middle < bad {
                    return Next::Measure(middle);
                }
                let (of_good, of_bad) = (self.measured(good), self.measured(bad));
                if of_good.min(of_bad) >= self.search.repeats {
                    over(true)
                } else {
                    // In turn, so that a disturbance that lasts does not fall on one end alone.
                    Next::Measure(if of_good <= of_bad { good } else { bad })
                }
            }
        }
    }

    /// Takes in what a measurement at `rate` has shown.
    pub fn report(&mut self, rate: f64, outcome: Outcome) {
        self.taken += 1;
        let place = self.tallies.partition_point(|tally| tally.rate < rate);
        if self.tallies.get(place).is_none_or(|tally| tally.rate != rate) {
            self.tallies.insert(place, Tally { rate, good: 0, bad: 0, void: 0 });
        }
        let tally = &mut self.tallies[place];
        match outcome {
            Outcome::Good => tally.good += 1,
            Outcome::Bad => tally.bad += 1,
            Outcome::Void => tally.void += 1,
        }
        self.void_in_a_row = if outcome == Outcome::Void { self.void_in_a_row + 1 } else { 0 };
    }

    fn measured(&self, rate: f64) -> u32 {
        self.tallies.iter().find(|tally| tally.rate == rate).map_or(0, |tally| tally.good + tally.bad)
    }

    /// The highest good rate without a bad one below, and the lowest bad one. A tie is bad: a rate that breaks its
    /// limits half of the time is not sustained.
    fn ends(&self) -> (Option<f64>, Option<f64>) {
        let judged = self.tallies.iter().filter(|tally| tally.good + tally.bad > 0);
        let bad = judged.clone().find(|tally| tally.bad >= tally.good).map(|tally| tally.rate);
        let good = judged.take_while(|tally| tally.good > tally.bad).last().map(|tally| tally.rate);
        (good, bad)
    }
}

/// To three significant digits, as rates are read and typed.
fn rounded(rate: f64) -> f64 {
    let step = 10_f64.powf(rate.log10().floor() - 2.0);
    (rate / step).round() * step
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::rng::Pcg;

    fn run(search: Search, mut server: impl FnMut(f64) -> Outcome) -> (Found, u32) {
        let mut knee = Knee::new(search);
        loop {
            match knee.next() {
                Next::Measure(rate) => {
                    let outcome = server(rate);
                    knee.report(rate, outcome);
                }
                Next::Found(found) => return (found, knee.taken),
            }
        }
    }

    fn up_to(capacity: f64) -> impl FnMut(f64) -> Outcome {
        move |rate| if rate <= capacity { Outcome::Good } else { Outcome::Bad }
    }

    #[test]
    fn the_interval_holds_the_capacity_and_is_narrow() {
        for capacity in [3.0, 99.0, 100.0, 777.0, 10_383.0, 123_456.0] {
            let (found, steps) = run(Search::default(), up_to(capacity));
            let (good, bad) = (found.last_good.expect("good"), found.first_bad.expect("bad"));
            assert!(good <= capacity && capacity < bad, "{capacity}: {found:?}");
            assert!(found.settled && bad / good <= 1.06, "{capacity}: {found:?}");
            assert!(steps <= 25, "{capacity}: {steps} steps");
        }
    }

    #[test]
    fn the_ends_of_the_range_are_answers_too() {
        let (found, _) = run(Search { most: 5_000.0, ..Search::default() }, |_| Outcome::Good);
        assert_eq!((found.last_good, found.first_bad, found.settled), (Some(5_000.0), None, true));
        let (found, _) = run(Search::default(), |_| Outcome::Bad);
        assert!(found.last_good.is_none() && found.first_bad.is_some_and(|bad| bad < 0.1));
    }

    #[test]
    fn a_lucky_measurement_is_corrected_when_it_is_repeated() {
        let mut luck = vec![Outcome::Good];
        let (found, _) = run(Search::default(), |rate| match rate {
            rate if rate > 1_500.0 => luck.pop().unwrap_or(Outcome::Bad),
            _ => Outcome::Good,
        });
        assert!(found.settled && found.last_good.expect("good") <= 1_500.0, "{found:?}");
    }

    #[test]
    fn an_uncertain_server_still_gets_an_answer_in_bounded_steps() {
        for seed in 0..100 {
            let mut random = Pcg::new(seed);
            let (found, steps) = run(Search::default(), |rate| {
                // From certainly good at 1000 to certainly bad at 2000.
                if random.unit() < (2_000.0 - rate) / 1_000.0 { Outcome::Good } else { Outcome::Bad }
            });
            let good = found.last_good.expect("good");
            assert!((800.0..=2_000.0).contains(&good) && steps <= 60, "seed {seed}: {found:?} after {steps}");
        }
    }

    #[test]
    fn void_measurements_are_repeated_and_then_end_it() {
        let mut voids = 2;
        let (found, _) = run(Search::default(), |rate| {
            if voids > 0 {
                voids -= 1;
                Outcome::Void
            } else {
                up_to(500.0)(rate)
            }
        });
        assert!(found.settled && !found.void);
        let (found, steps) = run(Search::default(), |_| Outcome::Void);
        assert_eq!((found.void, found.settled, found.last_good, steps), (true, false, None, 3));
    }

    #[test]
    fn limits_are_read_and_judged() {
        let slo = Slo::parse("p99.9 < 20ms, errors<0.1%,mean<=1 s").expect("valid");
        assert_eq!(slo.limits[0].below, 20e6);
        let seen = |p: f64, errors| {
            let quantile = move |_: f64| Some(p);
            let texts: Vec<String> = slo
                .broken(&Seen { quantile: &quantile, mean: Some(p), errors, behind: 0.0 })
                .into_iter()
                .map(|limit| limit.text.clone())
                .collect();
            texts
        };
        assert!(seen(19e6, 0.0).is_empty());
        assert_eq!(seen(20e6, 0.001), ["p99.9 < 20ms", "errors<0.1%"]);
        let none = Slo::parse("errors<0%,max<1s").expect("valid");
        let nothing = |_: f64| None;
        assert_eq!(none.broken(&Seen { quantile: &nothing, mean: None, errors: 0.0, behind: 0.0 }).len(), 1);
    }

    #[test]
    fn a_rate_that_the_server_does_not_keep_up_with_is_bad_whatever_the_limits() {
        let slo = Slo::parse("errors<1%").expect("valid");
        let fast = |_: f64| Some(1e6);
        let seen = |behind| Seen { quantile: &fast, mean: Some(1e6), errors: 0.0, behind };
        assert_eq!(slo.outcome(&seen(0.0), false), Outcome::Good);
        assert_eq!(slo.outcome(&seen(0.0), true), Outcome::Good);
        assert_eq!(slo.outcome(&seen(3.1), false), Outcome::Bad);
        assert_eq!(slo.outcome(&seen(3.1), true), Outcome::Void);
        assert!(slo.broken(&seen(3.1)).is_empty());
        // A server that answers 97 requests/s at the most, and loses none.
        let (found, _) = run(Search { from: 50.0, most: 3000.0, ..Search::default() }, |rate| {
            slo.outcome(&seen((rate / 97.0 - 1.0).max(0.0)), false)
        });
        let (good, bad) = (found.last_good.expect("good"), found.first_bad.expect("bad"));
        assert!(found.settled && (90.0..=99.0).contains(&good) && bad <= 104.0, "{found:?}");
    }

    #[test]
    fn mistakes_in_limits_are_named() {
        for (text, part) in
            [("p99", "p99"), ("p100<1s", "p100"), ("speed<3", "speed"), ("p50<3apples", "apples")]
        {
            let message = Slo::parse(text).expect_err("must be refused");
            assert!(message.contains(part), "{message}");
        }
        assert!(Slo::parse(" , ").is_err() && Slo::parse("p50<0ms").is_err());
    }
}
