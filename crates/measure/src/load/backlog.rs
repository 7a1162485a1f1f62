//! Detects whether a server keeps up with the rate at which requests are due, from how long requests waited in the
//! course of the window.
//! A server that is too slow has a backlog that never empties and grows, so the later a request is due, the longer it
//! waits. A backlog after a stall empties again, so that times of little waiting occur until the end. The minimum
//! wait over some time distinguishes the two cases, as in Nichols and Jacobson ("Controlling queue delay", 2012).

use super::result::{RequestTimes, RunPart};
use super::stalls::Stall;
use scruple_core::knee::BEHIND;

/// The smallest number of parts from which a window's course is judged.
const FEWEST: usize = 4;

/// The smallest number of waiting requests that is a backlog. Fewer may be in flight by chance.
const QUEUE: f64 = 5.0;

/// How far the answers were behind the requests at the end of a window, in nanoseconds. It is the increase from the
/// quietest part of the first quarter to the quietest part of the last, by median response without the delays of the
/// generator, extrapolated over the window; but at most the time from the end of the window to `last_done`, when the
/// last request was done, on the same scale as the parts. It is 0 if it is too small to be distinguished from ordinary
/// slowness.
pub(super) fn backlog_growth(parts: &[RunPart], last_done: i64) -> u64 {
    let middle = |part: &RunPart| (part.from + part.to) as f64 / 2.0;
    let waits: Vec<(f64, u64)> =
        parts.iter().filter_map(|part| Some((middle(part), part.least().quantile(0.5)?))).collect();
    let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return 0 };
    if waits.len() < FEWEST {
        return 0;
    }
    let quarter = waits.len() / 4;
    let quietest = |part: &[(f64, u64)]| part.iter().copied().min_by_key(|(_, waited)| *waited);
    let (Some(early), Some(late)) = (quietest(&waits[..quarter]), quietest(&waits[waits.len() - quarter..]))
    else {
        return 0;
    };
    let span = (last.to - first.from) as f64;
    let growth = (late.1 as f64 - early.1 as f64) * span / (late.0 - early.0).max(1.0);
    let behind = growth.min((last_done - last.to) as f64);
    let due: u64 = parts.iter().map(|part| part.counts.answered + part.counts.failures.total()).sum();
    let waiting = behind / span * due as f64;
    if behind < span * BEHIND || waiting < QUEUE { 0 } else { behind as u64 }
}

/// For how long, in nanoseconds, the server stalled in one half of the window longer than in the other. A backlog of at
/// most this does not show that the server is too slow: one stall, or a few in a row, may have caused it. Stalls that
/// recur throughout the window are part of the server's speed.
pub(super) fn unusual_stalls(stalls: &[Stall], parts: &[RunPart]) -> u64 {
    let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return 0 };
    let middle = (first.from + last.to) / 2;
    let early = |stall: &Stall| stall.to.min(middle) - stall.from.clamp(first.from, middle);
    let late = |stall: &Stall| stall.to - stall.from.max(middle);
    let sum = |of: &dyn Fn(&Stall) -> i64| stalls.iter().map(|stall| of(stall).max(0)).sum::<i64>();
    sum(&early).abs_diff(sum(&late))
}

/// The largest time by which the answers can have been behind at the end of a window whose backlog grew by `least`.
/// Delays of the generator, which `backlog_growth` leaves out, may hide a backlog: requests that it noticed late were
/// sent together, so that the later ones did not wait longer. They hide no more than the longest delay of a response.
pub(super) fn most_behind(least: u64, times: &RequestTimes, parts: &[RunPart], last_done: i64) -> u64 {
    let without = times.delayed.least_of(&times.response);
    let delay = |q: f64| {
        let [with, without] = [&times.response, &without].map(|all| all.quantile(q).unwrap_or(0));
        with.saturating_sub(without)
    };
    let delays = [0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0].map(delay);
    let longest = delays.into_iter().max().unwrap_or(0);
    let end = parts.last().map_or(last_done, |part| part.to);
    (least + longest).min((last_done - end).max(0) as u64).max(least)
}

#[cfg(test)]
mod tests {
    use super::super::generator_delays::Delayed;
    use super::super::latencies::Latencies;
    use super::super::result::{RequestCounts, RequestTimes};
    use super::*;

    const MS: i64 = 1_000_000;

    /// A part whose requests all waited `waited` nanoseconds.
    fn part(from: i64, to: i64, answered: u64, waited: Option<u64>) -> RunPart {
        let response = Latencies::of(waited.map(|waited| (waited, answered)));
        let counts = RequestCounts { answered, ..RequestCounts::default() };
        RunPart {
            from,
            to,
            counts,
            times: RequestTimes { response, ..RequestTimes::default() },
            ..RunPart::default()
        }
    }

    /// How far behind a server is, in milliseconds, in a window of one second; `waited` gives the wait in
    /// milliseconds of a request that is due at a given millisecond.
    fn after(waited: impl Fn(f64) -> f64) -> f64 {
        let slice = |index: i64| {
            let (from, to) = (index * 1000 * MS / 32, (index + 1) * 1000 * MS / 32);
            let waited = (waited((from + to) as f64 / 2.0 / MS as f64) * MS as f64) as u64;
            part(from, to, 10, Some(waited))
        };
        let parts: Vec<RunPart> = (0..32).map(slice).collect();
        backlog_growth(&parts, 1000 * MS + (waited(1000.0) * MS as f64) as i64) as f64 / MS as f64
    }

    #[test]
    fn a_backlog_that_grows_is_as_long_as_its_draining() {
        // A quarter of the rate is answered: the answers to one second take four.
        let found = after(|at| 10.0 + 3.0 * at);
        assert!((found / 3000.0 - 1.0).abs() < 0.01, "{found}");
        let found = after(|at| 1.0 + at / 10.0);
        assert!((found / 100.0 - 1.0).abs() < 0.02, "{found}");
    }

    #[test]
    fn stalls_that_are_made_up_for_leave_nothing_behind() {
        for begins in 0..90 {
            let begins = f64::from(begins) * 10.0;
            let stall =
                |at: f64| if (begins..begins + 100.0).contains(&at) { begins + 100.0 - at } else { 0.2 };
            assert_eq!(after(stall), 0.0, "a stall at {begins}");
        }
    }

    #[test]
    fn stalls_that_recur_do_not_excuse_a_backlog_but_single_ones_do() {
        let parts: Vec<RunPart> =
            (0..10).map(|at| part(at * 100 * MS, (at + 1) * 100 * MS, 1, None)).collect();
        let stall = |(from, to): (i64, i64)| Stall { from: from * MS, to: to * MS, requests: 3 };
        let unusual = |stalls: &[(i64, i64)]| {
            let stalls: Vec<Stall> = stalls.iter().copied().map(stall).collect();
            unusual_stalls(&stalls, &parts) as i64 / MS
        };
        assert_eq!(unusual(&[(0, 50), (200, 250), (400, 450), (600, 650), (800, 850)]), 50);
        assert_eq!(unusual(&[(100, 400)]), 300);
        assert_eq!(unusual(&[(900, 1300)]), 400, "a stall may last longer than the window");
        assert_eq!(unusual(&[(450, 550)]), 0);
        assert_eq!(unusual(&[(-300, 50)]), 50, "what was before the window does not count");
    }

    #[test]
    fn answers_that_always_take_long_are_not_behind() {
        assert_eq!(after(|_| 700.0), 0.0);
        assert_eq!(after(|at| 900.0 - at / 2.0), 0.0);
        // Waits differ by chance, and the last ones may be long.
        assert_eq!(after(|at| 5.0 + at % 7.0), 0.0);
    }

    #[test]
    fn delays_of_the_generator_may_hide_a_backlog() {
        // 25 requests were due in 25 ms and noticed at 500 ms; a server of 100/s answers the last at 750 ms.
        let response = Latencies::of((1..=25).map(|i: u64| ((500 + 10 * i - i) * MS as u64, 1)));
        let least = Latencies::of((1..=25).map(|i: u64| (10 * i * MS as u64, 1)));
        let delayed = Delayed::of(response.clone(), least);
        let punctual = RequestTimes { response: response.clone(), ..RequestTimes::default() };
        let times = RequestTimes { response, delayed, ..RequestTimes::default() };
        let parts = [part(0, 25 * MS, 25, None)];
        let most = |least, times: &RequestTimes| most_behind(least, times, &parts, 750 * MS) / MS as u64;
        assert!((450..=550).contains(&most(0, &times)), "{}", most(0, &times));
        assert_eq!(most(400_000_000, &times), 725, "no longer than until the last answer");
        assert_eq!(most(0, &punctual), 0);
    }

    #[test]
    fn requests_given_up_early_are_behind_by_no_more_than_their_wait() {
        // Interrupted at the end of the window: nothing arrived after it.
        let each = |answered| -> Vec<RunPart> {
            let waited = |i: i64| (i < 5).then_some(i as u64 * 100_000_000);
            (0..10).map(|i| part(i * 100 * MS, (i + 1) * 100 * MS, answered, waited(i))).collect()
        };
        let parts = each(10);
        assert_eq!(backlog_growth(&parts, 1000 * MS), 0);
        assert_eq!(backlog_growth(&parts, 1300 * MS), 300_000_000);
        assert_eq!(backlog_growth(&parts[..3], 1300 * MS), 0, "too few parts to tell");
        assert_eq!(backlog_growth(&each(1), 1300 * MS), 0, "three requests are no backlog");
        assert_eq!(backlog_growth(&[], 0), 0);
    }
}
