//! The classes of failed requests.

use scruple_core::unit::grouped;
use scruple_stats::sorting::{self, SortedMap};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// How a request can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Failure {
    /// The server refused the connection.
    Refused,
    /// The connection could not be made for another reason: no route, no descriptor, no answer in time.
    Unconnected,
    /// The TLS handshake failed, or received data could not be decrypted.
    Tls,
    /// The connection was reset.
    Reset,
    /// The connection was closed before a byte of the answer came.
    ClosedEarly,
    /// The connection was closed in the middle of the answer.
    HalfResponse,
    /// The answer is not HTTP.
    Garbage,
    /// No answer came in time.
    TimedOut,
    /// The answer has a bad status.
    BadStatus,
    /// The answer fails a check of the scenario.
    CheckFailed,
    /// The answer lacks a value that the next request needs.
    ValueMissing,
    /// The answer redirects to another server, or too often.
    Redirected,
    /// The request was due, but no connection became free to send it on.
    Unsent,
}

impl Failure {
    /// All classes, in the order of reports.
    pub const ALL: [Failure; 13] = [
        Failure::Refused,
        Failure::Unconnected,
        Failure::Tls,
        Failure::Reset,
        Failure::ClosedEarly,
        Failure::HalfResponse,
        Failure::Garbage,
        Failure::TimedOut,
        Failure::BadStatus,
        Failure::CheckFailed,
        Failure::ValueMissing,
        Failure::Redirected,
        Failure::Unsent,
    ];

    /// Whether there was no connection on which the request could be sent.
    pub(crate) fn is_before_sending(self) -> bool {
        matches!(self, Failure::Refused | Failure::Unconnected | Failure::Tls | Failure::Unsent)
    }

    /// The name of the class in JSON and thresholds.
    pub fn name(self) -> &'static str {
        match self {
            Failure::Refused => "refused",
            Failure::Unconnected => "unconnected",
            Failure::Tls => "tls",
            Failure::Reset => "reset",
            Failure::ClosedEarly => "closed-early",
            Failure::HalfResponse => "half-response",
            Failure::Garbage => "garbage",
            Failure::TimedOut => "timed-out",
            Failure::BadStatus => "bad-status",
            Failure::CheckFailed => "check-failed",
            Failure::ValueMissing => "value-missing",
            Failure::Redirected => "redirected",
            Failure::Unsent => "unsent",
        }
    }

    /// What the class means, as a clause about requests.
    pub fn meaning(self) -> &'static str {
        match self {
            Failure::Refused => "the connection was refused",
            Failure::Unconnected => "the connection could not be made",
            Failure::Tls => "TLS failed",
            Failure::Reset => "the connection or the stream was reset",
            Failure::ClosedEarly => "closed without an answer",
            Failure::HalfResponse => "closed in the middle of an answer",
            Failure::Garbage => "the answer was not valid HTTP, or followed by more",
            Failure::TimedOut => "no answer in time",
            Failure::BadStatus => "an answer with a bad status",
            Failure::CheckFailed => "an answer that failed a check",
            Failure::ValueMissing => "an answer without a value that the next request needs",
            Failure::Redirected => "an answer that redirects to another server, or too often",
            Failure::Unsent => "due, but never sent: no connection was free",
        }
    }
}

/// What is known of a failed request besides its class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failed {
    Status(u16),
    /// The cause, as a clause.
    Cause(Failure, Cow<'static, str>),
    /// What was expected and what came, in words, for each requirement that is not met.
    Check(Vec<(String, String)>),
}

impl Failed {
    /// The class of the failed request.
    pub(crate) fn class(&self) -> Failure {
        match self {
            Failed::Status(_) => Failure::BadStatus,
            Failed::Cause(class, _) => *class,
            Failed::Check(_) => Failure::CheckFailed,
        }
    }
}

/// Failed requests by class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    classes: [u64; Failure::ALL.len()],
    /// The numbers of answers with a bad status, by status.
    statuses: SortedMap<u16, u64>,
    /// The checks that answers failed, by what was expected.
    checks: SortedMap<String, FailedCheck>,
    /// The numbers of requests by cause, where it is known.
    causes: SortedMap<(Failure, String), u64>,
}

/// The largest number of causes, statuses or failed checks that are named.
const NAMED: usize = 5;

/// The largest number of causes that are distinguished: a server may redirect each request to a place of its own.
const CAUSES: usize = 100;

/// The cause of failures that are not distinguished or not named.
const ANOTHER: &str = "another";

/// A check that answers failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailedCheck {
    /// The number of answers that failed it.
    pub count: u64,
    /// The value in the first such answer, in words.
    pub came: String,
}

impl Failures {
    /// The number of failed requests of one class.
    pub fn of(&self, class: Failure) -> u64 {
        self.classes[class as usize]
    }

    /// The number of failed requests that were answered: with a whole answer, but not a good one.
    pub fn of_answers(&self) -> u64 {
        [Failure::BadStatus, Failure::CheckFailed, Failure::ValueMissing, Failure::Redirected]
            .map(|class| self.of(class))
            .iter()
            .sum()
    }

    /// The number of failed requests.
    pub fn total(&self) -> u64 {
        self.classes.iter().sum()
    }

    /// The bad statuses that occurred, each with its number of answers.
    pub fn statuses(&self) -> &SortedMap<u16, u64> {
        &self.statuses
    }

    /// The checks that answers failed, by what was expected in words. An answer may fail several.
    pub fn checks(&self) -> &SortedMap<String, FailedCheck> {
        &self.checks
    }

    /// The numbers of requests by class and cause, where the cause is known.
    pub fn causes(&self) -> &SortedMap<(Failure, String), u64> {
        &self.causes
    }

    /// Says what a class means, and what is known of these requests: the most frequent statuses, checks and causes.
    pub fn describe(&self, class: Failure) -> String {
        let check = |(expected, check): (&String, &FailedCheck)| {
            (format!("expected {expected}, got {}", check.came), check.count)
        };
        let mut details: Vec<(String, u64)> = match class {
            Failure::BadStatus => self.statuses.iter().map(|(s, count)| (s.to_string(), *count)).collect(),
            Failure::CheckFailed => self.checks.iter().map(check).collect(),
            _ => {
                let own = self.causes.iter().filter(|((of, _), _)| *of == class);
                own.map(|((_, cause), count)| (cause.clone(), *count)).collect()
            }
        };
        // Causes that were not distinguished come last.
        sorting::by_key(&mut details, |(detail, count)| (detail == ANOTHER, std::cmp::Reverse(*count)));
        let are_named = details.iter().take_while(|(detail, _)| detail != ANOTHER).count().min(NAMED);
        let named = match details.as_slice() {
            [] => return class.meaning().to_owned(),
            [(detail, count)] if *count == self.of(class) => detail.clone(),
            several => {
                let times =
                    |(detail, count): &(String, u64)| format!("{} × {detail}", grouped(*count as f64));
                let mut named: Vec<String> = several.iter().take(are_named).map(times).collect();
                let others: u64 = several.iter().skip(are_named).map(|(_, count)| count).sum();
                named.extend((others > 0).then(|| format!("{} × {ANOTHER}", grouped(others as f64))));
                named.join("; ")
            }
        };
        format!("{}: {named}", class.meaning())
    }

    /// The classes that occurred, each with its number of requests.
    pub fn each(&self) -> impl Iterator<Item = (Failure, u64)> + '_ {
        Failure::ALL.into_iter().map(|class| (class, self.of(class))).filter(|(_, count)| *count > 0)
    }

    /// Adds the counts of other requests.
    pub fn add(&mut self, other: &Failures) {
        self.classes.iter_mut().zip(other.classes).for_each(|(sum, more)| *sum += more);
        other.statuses.iter().for_each(|(status, more)| *self.statuses.entry(*status).or_default() += more);
        other.checks.iter().for_each(|(expected, more)| self.add_check(expected, more.count, &more.came));
        other.causes.iter().for_each(|(cause, more)| self.add_cause(cause.clone(), *more));
    }

    fn add_cause(&mut self, cause: (Failure, String), count: u64) {
        let is_named = self.causes.len() < CAUSES || self.causes.contains_key(&cause);
        let key = if is_named { cause } else { (cause.0, ANOTHER.to_owned()) };
        *self.causes.entry(key).or_default() += count;
    }

    fn add_check(&mut self, expected: &str, count: u64, came: &str) {
        match self.checks.get_mut(expected) {
            Some(check) => check.count += count,
            None => {
                self.checks.insert(expected.to_owned(), FailedCheck { count, came: came.to_owned() });
            }
        }
    }

    /// Adds `requests` failed requests of one class.
    pub fn record(&mut self, class: Failure, requests: u64) {
        self.classes[class as usize] += requests;
    }

    /// Counts a failed request; `wrong` is what is known besides its class.
    pub(super) fn count(&mut self, class: Failure, wrong: Option<&Failed>) {
        self.record(class, 1);
        match wrong {
            Some(Failed::Status(status)) => *self.statuses.entry(*status).or_default() += 1,
            Some(Failed::Check(unmet)) => {
                unmet.iter().for_each(|(expected, came)| self.add_check(expected, 1, came));
            }
            Some(Failed::Cause(class, cause)) => {
                self.add_cause((*class, cause.clone().into_owned()), 1);
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_that_differ_for_each_request_are_counted_together() {
        let mut failures = Failures::default();
        for number in 0..300 {
            let cause = if number % 3 == 0 { "no Location".to_owned() } else { format!("to {number}") };
            failures.count(Failure::Redirected, Some(&Failed::Cause(Failure::Redirected, cause.into())));
        }
        assert_eq!(failures.causes().len(), CAUSES + 1);
        let said = failures.describe(Failure::Redirected);
        assert!(
            said.contains(": 100 × no Location; 1 × to 1; ") && said.ends_with("; 196 × another"),
            "{said}"
        );
    }
}
