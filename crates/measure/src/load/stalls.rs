//! Detects stalls: times without any answer although requests were due.

use serde::{Deserialize, Serialize};

/// A stall, with times in nanoseconds since the start; negative in a warm-up before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stall {
    /// When the last answer before the stall came, or the first waiting request was due, whichever is later.
    pub from: i64,
    /// When the next answer came, or the last waiting request was given up.
    pub to: i64,
    /// The number of requests that waited at its end.
    pub requests: u64,
}

/// The length in nanoseconds below which stalls are not distinguished from ordinary slowness.
const SHORTEST: u64 = 5_000_000;

/// A stall must also be at least this many times as long as the usual time between answers.
const ORDINARY: u64 = 20;

/// The smallest number of requests that a stall affects: one or two do not show that the server stood still.
const FEWEST: u64 = 3;

/// A time without answers as one thread saw it, in nanoseconds on the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnswerGap {
    /// When the last answer before it came.
    from: u64,
    /// Since when a request was due and nothing was answered.
    due: u64,
    to: u64,
    waiting: u64,
}

/// When the generator read something, and when that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// When it was read.
    pub(crate) now: u64,
    /// The earliest time at which it can have arrived.
    pub(crate) earliest: u64,
    /// The latest time at which it can have arrived.
    pub(crate) latest: u64,
}

impl Arrival {
    /// Something that was read as it arrived.
    pub(crate) fn at(now: u64) -> Arrival {
        Arrival { now, earliest: now, latest: now }
    }

    /// How late it may have been read.
    pub(crate) fn late(self) -> u64 {
        self.now.saturating_sub(self.earliest)
    }

    /// How much of the time until it arrived may have been the generator's.
    pub(crate) fn uncertain(self) -> u64 {
        self.latest.saturating_sub(self.earliest)
    }
}

/// The state from which one thread detects stalls.
#[derive(Debug, Default)]
pub(crate) struct StallDetector {
    waiting: u64,
    /// The largest number of requests that waited at one time since the last answer.
    most: u64,
    /// Since when a request is due and nothing was answered; `None` if no request waits.
    since: Option<u64>,
    last: u64,
    /// When the latest of the answered requests was due.
    latest_due: u64,
    /// When the generator last polled for answers.
    polled: Option<u64>,
    /// Since when the generator had not polled, because it was busy sending or had no core; `None` if it had.
    unpolled_since: Option<u64>,
    gaps: Vec<AnswerGap>,
    /// The sum of the times from answer to answer while a request was due, and their number.
    pub(crate) between: (u64, u64),
}

impl StallDetector {
    /// Records that a request is due, as noticed at a time. Before that time it could not be answered.
    pub(crate) fn due(&mut self, noticed: u64) {
        self.waiting += 1;
        self.most = self.most.max(self.waiting);
        self.since.get_or_insert(noticed);
    }

    /// Something was read at `now` that arrived at a time, if that is known. Otherwise it may have arrived since the
    /// generator last polled.
    pub(crate) fn reading(&self, now: u64, arrived: Option<u64>) -> Arrival {
        match arrived {
            Some(arrived) => Arrival { now, earliest: arrived, latest: arrived },
            None => {
                let earliest = self.unpolled_since.map_or(now, |unpolled_since| unpolled_since.min(now));
                Arrival { now, earliest, latest: now }
            }
        }
    }

    /// Records that the generator began at `begun` to poll for answers, was to wait until `until`, and returned at
    /// `now`. If it was late, it saw no answers in between.
    pub(crate) fn polled(&mut self, begun: u64, until: u64, now: u64) {
        let before = self.polled.replace(now).unwrap_or(begun);
        self.unpolled_since = if begun > before + SHORTEST / 5 {
            Some(before)
        } else {
            (now > until + SHORTEST / 5).then_some(until)
        };
    }

    /// Records that the server has reacted to a request.
    pub(crate) fn answer(&mut self, read: Arrival) {
        let Arrival { now, earliest, .. } = read;
        self.note(earliest);
        self.between.0 += earliest.saturating_sub(self.since.unwrap_or(now));
        self.between.1 += 1;
        self.waiting = self.waiting.saturating_sub(1);
        self.most = self.waiting;
        self.last = now;
        self.since = (self.waiting > 0).then_some(now);
    }

    /// Records that the request that has been answered was due at a time.
    pub(crate) fn overtook(&mut self, due: u64) {
        self.latest_due = self.latest_due.max(due);
    }

    /// Records that a request that was due at a time is given up, which does not count as an answer. If later requests
    /// were answered before it, it does not show that the server stood still.
    pub(crate) fn give_up(&mut self, now: u64, due: u64) {
        if due < self.latest_due {
            self.most = self.most.saturating_sub(1);
        }
        if self.waiting <= 1 {
            self.note(self.reading(now, None).earliest);
            (self.since, self.last, self.most) = (None, now, 0);
        }
        self.waiting = self.waiting.saturating_sub(1);
    }

    fn note(&mut self, to: u64) {
        if let Some(due) = self.since
            && to.saturating_sub(self.last) >= SHORTEST
        {
            self.gaps.push(AnswerGap { from: self.last, due, to, waiting: self.most });
        }
    }
}

/// The stalls that all threads saw at the same time, in order of time.
pub(crate) fn stalls(threads: &[&StallDetector], start: u64) -> Vec<Stall> {
    let (time, answers) = threads.iter().fold((0, 0), |sum, t| (sum.0 + t.between.0, sum.1 + t.between.1));
    let ordinary = time / u64::max(answers, 1) / threads.len().max(1) as u64;
    let shortest = SHORTEST.max(ordinary.saturating_mul(ORDINARY).min(time / 4));
    let mut found: Vec<AnswerGap> = match threads.first() {
        Some(first) => first.gaps.clone(),
        None => Vec::new(),
    };
    for other in threads.iter().skip(1).filter(|thread| thread.between.1 > 0) {
        let mut both = Vec::new();
        for mine in &found {
            let after = other.gaps.partition_point(|theirs| theirs.to <= mine.from);
            for theirs in other.gaps[after..].iter().take_while(|theirs| theirs.from < mine.to) {
                both.push(AnswerGap {
                    from: mine.from.max(theirs.from),
                    due: mine.due.min(theirs.due),
                    to: mine.to.min(theirs.to),
                    waiting: mine.waiting + theirs.waiting,
                });
            }
        }
        found = both;
    }
    let long = |gap: &AnswerGap| gap.to.saturating_sub(gap.due.max(gap.from)) >= shortest;
    found.retain(|gap| gap.waiting >= FEWEST && long(gap));
    let relative = |time: u64| time as i64 - start as i64;
    let stall = |gap: &AnswerGap| Stall {
        from: relative(gap.due.max(gap.from)),
        to: relative(gap.to),
        requests: gap.waiting,
    };
    found.iter().map(stall).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A detector that has recorded requests, each given by the times of being due and answered in milliseconds.
    fn detector(requests: &[(u64, u64)]) -> StallDetector {
        let mut events: Vec<(u64, bool)> =
            requests.iter().flat_map(|(due, done)| [(*due, true), (*done, false)]).collect();
        events.sort_unstable_by_key(|(at, due)| (*at, !due));
        let mut stall_detector = StallDetector::default();
        for (at, due) in events {
            if due { stall_detector.due(at * MS) } else { stall_detector.answer(Arrival::at(at * MS)) }
        }
        stall_detector
    }

    fn shown(threads: &[&StallDetector]) -> Vec<(i64, i64, u64)> {
        let ms = MS as i64;
        stalls(threads, 0).iter().map(|stall| (stall.from / ms, stall.to / ms, stall.requests)).collect()
    }

    #[test]
    fn a_stall_is_a_time_without_answers_however_slow_the_rest_is() {
        // One request each 10 ms, answered after 3 ms; but nothing is answered from 1000 to 2000 ms.
        let stalled = |due: u64| if (997..2000).contains(&due) { 2000 + (due - 997) / 100 } else { due + 3 };
        let requests: Vec<(u64, u64)> = (0..500).map(|i| (i * 10, stalled(i * 10))).collect();
        let found = shown(&[&detector(&requests)]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!((993..=1000).contains(&found[0].0) && found[0].1 == 2000 && found[0].2 >= 99, "{found:?}");
        // Half of the requests take 200 ms. This is slowness and no stall.
        let slow: Vec<(u64, u64)> =
            (0..500).map(|i| (i * 10, i * 10 + if i % 2 == 0 { 200 } else { 3 })).collect();
        assert_eq!(shown(&[&detector(&slow)]), []);
        // No request is due for a long time.
        assert_eq!(shown(&[&detector(&[(0, 1), (5_000, 5_001), (5_002, 5_003)])]), []);
    }

    #[test]
    fn while_the_generator_does_not_look_there_is_no_stall() {
        let waiting = |looks: &[(u64, u64, u64)]| {
            let mut stall_detector = detector(&(0..50).map(|i| (i, i + 1)).collect::<Vec<_>>());
            (0..9).for_each(|_| stall_detector.due(60 * MS));
            looks
                .iter()
                .for_each(|(begun, until, now)| stall_detector.polled(begun * MS, until * MS, now * MS));
            (0..9).for_each(|_| stall_detector.answer(stall_detector.reading(160 * MS, None)));
            shown(&[&stall_detector]).len()
        };
        assert_eq!(waiting(&[(60, 160, 61), (61, 161, 160)]), 1, "it polled all the time");
        assert_eq!(waiting(&[(60, 160, 61), (159, 200, 160)]), 0, "it was busy sending");
        assert_eq!(waiting(&[(60, 160, 61), (61, 62, 160)]), 0, "it was kept from its core");
    }

    #[test]
    fn while_another_thread_is_answered_there_is_no_stall() {
        let stalled: Vec<(u64, u64)> = (0..100).map(|i| (i * 10, (i * 10 + 1).max(800))).collect();
        let even: Vec<(u64, u64)> = (0..100).map(|i| (i * 10, i * 10 + 1)).collect();
        assert_eq!(shown(&[&detector(&stalled)]), [(0, 800, 81)]);
        assert_eq!(shown(&[&detector(&stalled), &detector(&even)]), []);
        let both = shown(&[&detector(&stalled), &detector(&stalled)]);
        assert_eq!((both.len(), both[0].1, both[0].2), (1, 800, 162));
    }

    #[test]
    fn an_unanswered_request_is_a_stall_until_it_is_given_up() {
        let mut stall_detector = detector(&(0..50).map(|i| (i * 10, i * 10 + 1)).collect::<Vec<_>>());
        (0..5).for_each(|i| stall_detector.due((500 + i) * MS));
        (0..5).for_each(|_| stall_detector.give_up(1500 * MS, 500 * MS));
        let found = stalls(&[&stall_detector], 0);
        let to = 1500 * MS as i64;
        assert_eq!(found, [Stall { from: 500 * MS as i64, to, requests: 5 }]);
        // Two requests hang while others are answered, and one at the end.
        let mut hanging = StallDetector::default();
        (0..2).for_each(|_| hanging.due(0));
        for at in 0..50 {
            hanging.due(at * 10 * MS);
            hanging.overtook(at * 10 * MS);
            hanging.answer(Arrival::at((at * 10 + 1) * MS));
        }
        hanging.due(500 * MS);
        (0..2).for_each(|_| hanging.give_up(1000 * MS, 0));
        hanging.give_up(1500 * MS, 500 * MS);
        assert_eq!(stalls(&[&hanging], 0), []);
    }
}
