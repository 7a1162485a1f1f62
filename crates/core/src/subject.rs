//! Subjects, and the arms of a comparison.

use crate::harmless_text::plain;
use crate::memory_map::MemoryCourse;
use crate::sample::{Figure, Sample};
use crate::words::words;
use scruple_stats::sorting::SortedMap;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display};

/// A subject: what is weighed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Subject {
    /// A program with its arguments.
    Command {
        /// The words as they are executed; with a shell, the words of the shell.
        argv: Vec<String>,
    },
    /// A function that a bench program declared.
    Case {
        /// The path of the case, with groups divided by `/`.
        name: String,
        /// The bench program and its arguments.
        program: Vec<String>,
        /// The group of the case in reports, if it is not the name up to its last `/`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        group: Option<String>,
        /// The form of the tare of this case.
        #[serde(default)]
        shape: String,
        /// What the time of an iteration covers, where the program declares it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timing: Option<Timing>,
    },
    /// The requests that a server answers under load.
    Request {
        /// The address of the server.
        url: String,
        /// The words of the command of the server, if Scruple started it; else empty.
        #[serde(default)]
        server: Vec<String>,
        /// The requests per second of an open loop; absent where connections send as fast as they are answered.
        #[serde(default)]
        rate: Option<f64>,
        /// The number of connections.
        connections: u32,
    },
}

/// What the time of an iteration covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Timing {
    /// The time from argument to result: every iteration waits for the result of the one before.
    Latency,
    /// The time from one result to the next: no iteration needs the result of the previous one. Bodies that are awaited
    /// follow one after the other; a processor may overlap others.
    Throughput,
}

impl Timing {
    /// The word for this kind of time in the protocol.
    pub fn word(self) -> &'static str {
        match self {
            Timing::Latency => "latency",
            Timing::Throughput => "throughput",
        }
    }
}

impl Subject {
    /// A case without further details.
    pub fn case(name: impl Into<String>, program: Vec<String>) -> Subject {
        Subject::Case { name: name.into(), program, group: None, shape: String::new(), timing: None }
    }

    /// What the time of an iteration of a case covers, where its program declares it.
    pub fn timing(&self) -> Option<Timing> {
        match self {
            Subject::Case { timing, .. } => *timing,
            Subject::Command { .. } | Subject::Request { .. } => None,
        }
    }
}

words! {
    /// Why an arm is there.
    pub enum Role {
        /// The user asked about this subject.
        Subject = "subject",
        /// The overhead of the harness: the launch of an empty program, or an identity body.
        Tare = "tare",
        /// The shell that runs the commands, here running nothing.
        Shell = "shell",
        /// A second copy of the reference, which shows the difference between identical arms.
        Twin = "twin",
        /// A well-known program that is shown with the subjects and never judged.
        Yardstick = "yardstick",
        /// A part of a subject, such as one kind of its requests: limits may name it, but it is not compared.
        Part = "part",
    }
}

/// The value of a parameter. Numbers are distinguished from texts, because growth can be fitted over them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Parameter {
    /// A number.
    Number(f64),
    /// Any other text.
    Text(String),
}

impl Parameter {
    /// Parses a text as a number if it is a finite one, else keeps it as a text.
    pub fn parse(text: &str) -> Parameter {
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Parameter::Number(number),
            _ => Parameter::Text(text.to_owned()),
        }
    }
}

impl Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Parameter::Number(number) => write!(f, "{number}"),
            Parameter::Text(text) => f.write_str(text),
        }
    }
}

/// Returns a name with values that distinguish it: `sort (n=10, kind=merge)`; without values, the name itself.
pub fn with_values<N: Display, V: Display>(name: &str, values: impl IntoIterator<Item = (N, V)>) -> String {
    let values: Vec<String> = values.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    match values.as_slice() {
        [] => name.to_owned(),
        all => format!("{name} ({})", all.join(", ")),
    }
}

/// The course of a load, besides the readings of windows: how much was answered when, and how fast.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadCourse {
    /// The number of requests that were due.
    pub due: u64,
    /// The number of good answers.
    pub answered: u64,
    /// The number of failed requests.
    pub failed: u64,
    /// The number of windows, and how many of them are void because the generator was late.
    pub windows: (u64, u64),
    /// The number of good answers per second. If the generator was late, this is the most that it can have been.
    pub rate: f64,
    /// The least that the rate can have been, where that is noticeably less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_rate: Option<f64>,
    /// The requests per second that were due, where the server did not keep up with them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered: Option<f64>,
    /// The distribution of responses, from due to answered: pairs of nanoseconds and count, ascending.
    pub response: Vec<(u64, u64)>,
    /// The parts of the load, in their order.
    pub slices: Vec<LoadSlice>,
    /// The beginning and the end of each stall of the server, in nanoseconds of measured time.
    pub stalls: Vec<(i64, i64)>,
    /// The result of a search for the highest rate, as a sentence; absent where there was no search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

impl LoadCourse {
    /// The courses of loads that several nodes generated, one after the other, each against a separate server. The
    /// rate is the mean rate of a server.
    pub fn join_courses(courses: Vec<LoadCourse>) -> LoadCourse {
        let mean = |rate: fn(&LoadCourse) -> f64| {
            courses.iter().map(rate).sum::<f64>() / courses.len().max(1) as f64
        };
        let rate = mean(|course| course.rate);
        let is_uncertain = courses.iter().any(|course| course.least_rate.is_some());
        let least_rate = is_uncertain.then(|| mean(|course| course.least_rate.unwrap_or(course.rate)));
        let mut whole = LoadCourse { rate, least_rate, ..LoadCourse::default() };
        let mut responses: SortedMap<u64, u64> = SortedMap::new();
        for course in courses {
            let shift = whole.slices.last().map_or(0, |slice| slice.to);
            whole.due += course.due;
            whole.answered += course.answered;
            whole.failed += course.failed;
            whole.windows = (whole.windows.0 + course.windows.0, whole.windows.1 + course.windows.1);
            whole.offered = whole.offered.or(course.offered);
            course.response.iter().for_each(|(time, count)| *responses.entry(*time).or_default() += count);
            whole.stalls.extend(course.stalls.iter().map(|(from, to)| (from + shift, to + shift)));
            let shifted =
                |slice: LoadSlice| LoadSlice { from: slice.from + shift, to: slice.to + shift, ..slice };
            whole.slices.extend(course.slices.into_iter().map(shifted));
            whole.answer = whole.answer.or(course.answer);
        }
        whole.response = responses.into_iter().collect();
        whole
    }
}

/// A part of the course of a load; times are in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadSlice {
    /// The beginning of the part, in measured time.
    pub from: i64,
    /// The end of the part, in measured time.
    pub to: i64,
    /// The number of good answers to requests that were due in this part.
    pub answered: u64,
    /// The number of failed requests that were due in this part.
    pub failed: u64,
    /// The median response; absent where nothing was answered.
    pub p50: Option<u64>,
    /// The 99th percentile of the responses; absent where nothing was answered.
    pub p99: Option<u64>,
    /// The number of responses in each class of length, ascending. Class `n` holds the responses from
    /// [`LoadSlice::least`] of `n` to below that of `n + 1`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<(i32, u64)>,
    /// The number of failed requests, by the name of the kind of failure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<(String, u64)>,
}

impl LoadSlice {
    /// The number of classes of length for each doubling of the length.
    const IN_A_DOUBLING: f64 = 4.0;

    /// The class of a response, which is given in nanoseconds.
    pub fn class(response: u64) -> i32 {
        // A response on the edge of two classes belongs to the upper one, whatever the last digit of the logarithm.
        ((response.max(1) as f64).log2() * LoadSlice::IN_A_DOUBLING + 1e-9).floor() as i32
    }

    /// The shortest response of a class, in nanoseconds.
    pub fn least(class: i32) -> f64 {
        (f64::from(class) / LoadSlice::IN_A_DOUBLING).exp2()
    }
}

impl LoadCourse {
    /// The response that a share of the answers (0 to 1) does not exceed, in nanoseconds; `None` without answers.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let all: u64 = self.response.iter().map(|(_, count)| count).sum();
        let wanted = (share.clamp(0.0, 1.0) * all as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        self.response.iter().find_map(|(value, count)| {
            seen += count;
            (seen >= wanted).then_some(*value)
        })
    }
}

/// One subject at one version with one set of parameters inside a comparison, with its readings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Arm {
    /// The name shown in tables.
    pub name: String,
    /// The subject.
    pub subject: Subject,
    /// The version: a commit, a tag or a label; absent where there is only one version.
    pub version: Option<String>,
    /// The parameters of this arm.
    pub params: SortedMap<String, Parameter>,
    /// Why the arm is there.
    pub role: Role,
    /// The readings or the reasons of their absence, by the key of the metric.
    pub figures: SortedMap<String, Figure>,
    /// The course of a load; absent for any other subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub course: Option<LoadCourse>,
    /// The memory of the arm over time and its memory map, where they were watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryCourse>,
}

impl Arm {
    /// Makes an arm without readings. Characters of the name that would control a terminal are replaced.
    pub fn new(name: impl Into<String>, subject: Subject, role: Role) -> Arm {
        Arm {
            name: plain(&name.into()),
            subject,
            version: None,
            params: SortedMap::new(),
            role,
            figures: SortedMap::new(),
            course: None,
            memory: None,
        }
    }

    /// The sample of one metric; `None` where the arm has none.
    pub fn sample(&self, key: &str) -> Option<&Sample> {
        match self.figures.get(key) {
            Some(Figure::Sample(sample)) => Some(sample),
            _ => None,
        }
    }

    /// Why a metric is absent; `None` where it is not, or the reason is not known.
    pub fn absent(&self, key: &str) -> Option<&str> {
        match self.figures.get(key) {
            Some(Figure::Absent { absent }) => Some(absent),
            _ => None,
        }
    }

    /// Why a case was skipped or has failed, if it was or has: the reason stands in place of its time.
    pub fn ended(&self) -> Option<String> {
        let why = self.absent("time.wall").filter(|_| matches!(self.subject, Subject::Case { .. }))?;
        Some(if tells_skip(why) { why.to_owned() } else { format!("failed: {why}") })
    }
}

/// The kind of the error by which a case says that it cannot run here.
pub const SKIPPED: &str = "skipped";

/// Whether a case without times was skipped, by the reason that is stored for it.
pub fn tells_skip(reason: &str) -> bool {
    reason.strip_prefix(SKIPPED).is_some_and(|rest| rest.starts_with(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_lies_in_its_class() {
        for response in [1_u64, 2, 3, 4, 1000, 65_536, 1_000_000_007, u64::MAX / 2] {
            let class = LoadSlice::class(response);
            let (low, high) = (LoadSlice::least(class), LoadSlice::least(class + 1));
            let value = response as f64;
            assert!(low <= value * 1.000_001 && value < high, "{response}: {low} {high}");
        }
    }

    #[test]
    fn courses_of_several_nodes_follow_each_other_and_their_counts_add_up() {
        let slice = |from, to| LoadSlice { from, to, ..LoadSlice::default() };
        let one = LoadCourse {
            due: 10,
            answered: 9,
            failed: 1,
            windows: (2, 1),
            rate: 100.0,
            response: vec![(5, 4), (7, 5)],
            slices: vec![slice(0, 50), slice(50, 100)],
            stalls: vec![(10, 20)],
            ..LoadCourse::default()
        };
        let other = LoadCourse { rate: 300.0, response: vec![(6, 1), (7, 8)], ..one.clone() };
        let whole = LoadCourse::join_courses(vec![one.clone(), other]);
        assert_eq!((whole.due, whole.answered, whole.failed, whole.windows), (20, 18, 2, (4, 2)));
        assert_eq!((whole.rate, whole.response), (200.0, vec![(5, 4), (6, 1), (7, 13)]));
        assert_eq!((whole.slices[2].from, whole.slices[3].to, whole.stalls[1]), (100, 200, (110, 120)));
        assert_eq!(LoadCourse::join_courses(vec![one.clone()]), one);
    }

    #[test]
    fn quantiles_of_a_course_are_those_of_its_counts() {
        let course = LoadCourse { response: vec![(10, 50), (20, 49), (30, 1)], ..LoadCourse::default() };
        let quantiles = [0.0, 0.5, 0.51, 0.99, 0.995, 1.0].map(|share| course.quantile(share));
        assert_eq!(quantiles, [10, 10, 20, 20, 30, 30].map(Some));
        assert_eq!(LoadCourse::default().quantile(0.5), None);
    }
}
