//! Plans, which say how a server is loaded.

use super::request::{Request, RequestOrder};
use super::request_sink::RequestReceiver;
use super::scenario::Scenario;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// A plan: what is sent, how fast, and for how long.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The kinds of requests. There must be at least one.
    pub requests: Vec<Request>,
    /// How the next request is chosen.
    pub order: RequestOrder,
    /// The scenario of users, if they send more than single requests.
    pub scenario: Option<Arc<Scenario>>,
    /// When requests are sent.
    pub pace: Pace,
    /// The number of connections that are opened before the clock starts, over all threads.
    pub connections: u32,
    /// The largest number of connections. If it exceeds `connections`, connections are added when a request is due
    /// and none is free. It applies only to an open loop.
    pub grow_to: u32,
    /// The number of requests in flight at a time on one HTTP/2 connection.
    pub streams: u32,
    /// Whether a connection carries more than one request.
    pub keep_alive: bool,
    /// The threads of the generator.
    pub threads: GeneratorThreads,
    /// How long requests are sent, without the warm-up.
    pub duration: Duration,
    /// The number of requests after which sending stops, if that is before the duration's end.
    pub max_requests: Option<u64>,
    /// The time-out of an answer, from its request's sending. It is also how long answers are awaited after the last
    /// sending.
    pub timeout: Duration,
    /// The number of time-outs after which the run is aborted with an error; `None` for no limit.
    pub most_timeouts: Option<u64>,
    /// What counts as warm-up.
    pub warm_up: WarmUp,
    /// The number of equal parts of the duration, each with distributions of its own.
    pub parts: u32,
    /// The times at which [`super::Moment::Mark`] is reported, as increasing shares of the duration between 0 and 1.
    pub marks: Vec<f64>,
    /// The limit of the generator's lateness. If the 99th percentile is beyond it, the bounds of responses allow for
    /// requests that waited for others; if the median is, the run is void. The limit is fixed beforehand, so that the
    /// validity of a run does not depend on what was measured.
    pub lateness: Duration,
    /// The seed of the choice of weighted requests and of the gaps of Poisson arrivals.
    pub seed: u64,
    /// The receiver of every single request, if there is one.
    pub each: Option<RequestReceiver>,
    /// Whether responses are counted for observers while the load runs.
    pub live: bool,
}

/// The threads of the generator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratorThreads {
    /// The number of threads.
    pub count: u32,
    /// Whether they poll during the last microseconds before a sending.
    pub polling: Polling,
    /// The cores to which they are pinned in turn; empty for all cores.
    pub cores: Vec<usize>,
    /// Whether they request a real-time priority. A refusal is reported as a doubt.
    pub priority: bool,
}

impl GeneratorThreads {
    /// This many threads, on all cores.
    pub fn of(count: u32) -> GeneratorThreads {
        GeneratorThreads { count, polling: Polling::Auto, cores: Vec::new(), priority: false }
    }

    /// Whether they have a real-time priority or cores of their own. Their lateness then does not show how long other
    /// programs wait for a core.
    pub fn are_well_placed(&self) -> bool {
        self.priority || !self.cores.is_empty()
    }
}

/// A row of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedRow {
    /// The name of the row.
    pub name: String,
    /// What the row covers.
    pub of: RowOf,
}

/// What a row of a report covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowOf {
    /// A kind of request.
    Request,
    /// The requests of a group.
    Group,
    /// Whole sessions, from when their first request is due to their last answer.
    Session,
}

/// When requests are sent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// A connection sends its next request when the previous one was answered.
    Closed,
    /// Requests are sent at fixed times, whatever the server does. Latencies count from those times.
    Open {
        /// Requests per second.
        rate: f64,
        /// The distribution of the gaps between requests.
        arrivals: Arrivals,
    },
}

/// The gaps between requests of an open loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// All gaps are equal.
    #[default]
    Constant,
    /// Gaps are exponentially distributed, as with many independent users.
    Poisson,
}

/// The beginning of a load that does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WarmUp {
    /// The warm-up is determined afterwards, as a decay of service times; it is less than half of the load.
    #[default]
    Auto,
    /// There is no warm-up.
    Off,
    /// The warm-up is a fixed time before the duration starts.
    For(Duration),
}

/// Whether the generator polls for some microseconds instead of sleeping. An open loop polls before a sending, which
/// makes it punctual to about a microsecond. A closed loop polls for the next of several answers, which saves the
/// server from waking it, as long as answers arrive within that time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Polling {
    /// Poll if there are more cores than generator threads; in an open loop also only if it takes at most a quarter
    /// of a core.
    #[default]
    Auto,
    /// Always poll.
    On,
    /// Never poll. Sendings are then some 20 µs late, the kernel's time to wake a thread.
    Off,
}

/// How often a closed loop polls for answers before it sleeps: about 5 µs. Eight times as many polls brought a tenth
/// more requests from nginx with 100 connections, but took more processor time than wrk does.
const POLLS: u32 = 16;

/// How long before a sending polling starts, in nanoseconds.
pub(crate) const POLLED: u64 = 50_000;

/// The default number of parts.
const PARTS: u32 = 40;

/// The default limit of the generator's lateness.
pub const LATE: Duration = Duration::from_millis(5);

impl Plan {
    /// The same plan over at most this many connections, but at least one for each thread.
    pub fn over(&self, connections: u32) -> Plan {
        match connections < self.connections {
            true => Plan { connections: connections.max(self.threads.count), grow_to: 0, ..self.clone() },
            false => self.clone(),
        }
    }

    /// A plan that sends `request` in a closed loop on one connection for ten seconds.
    pub fn of(request: Request) -> Plan {
        Plan {
            requests: vec![request],
            order: RequestOrder::Weighted,
            scenario: None,
            pace: Pace::Closed,
            connections: 1,
            grow_to: 0,
            streams: 1,
            keep_alive: true,
            threads: GeneratorThreads::of(1),
            duration: Duration::from_secs(10),
            max_requests: None,
            timeout: Duration::from_secs(5),
            most_timeouts: None,
            warm_up: WarmUp::Auto,
            parts: PARTS,
            marks: Vec::new(),
            lateness: LATE,
            seed: 1,
            each: None,
            live: false,
        }
    }

    /// Checks whether the plan can be carried out.
    ///
    /// # Errors
    /// Says what is wrong with the plan, as a sentence.
    pub fn validate(&self) -> Result<(), String> {
        if self.requests.is_empty() {
            return Err("there is nothing to send: at least one request is needed".to_owned());
        }
        self.requests.iter().try_for_each(Request::validate)?;
        if self.connections == 0 || self.threads.count == 0 || self.streams == 0 {
            return Err("at least one connection, one thread and one stream are needed".to_owned());
        }
        if self.threads.count > self.connections {
            return Err(format!(
                "{} threads cannot share {} connections: each needs one of its own",
                self.threads.count, self.connections
            ));
        }
        if self.duration.is_zero() || self.duration > Duration::from_secs(86_400) {
            return Err("the duration must be more than 0 and at most a day".to_owned());
        }
        if self.timeout.is_zero() || self.timeout > Duration::from_secs(3600) {
            return Err("the time-out must be more than 0 and at most an hour".to_owned());
        }
        if self.parts == 0 || self.parts > 10_000 {
            return Err("the duration can be divided into 1 to 10,000 parts".to_owned());
        }
        match self.pace {
            Pace::Open { rate, .. } if !(rate > 0.0 && rate <= 1e7) => {
                Err("the rate must be more than 0 and at most ten million requests per second".to_owned())
            }
            _ if self.max_requests == Some(0) => Err("at least one request must be allowed".to_owned()),
            _ => Ok(()),
        }
    }

    /// The rate of an open loop in requests per second; `None` for a closed loop.
    pub fn rate(&self) -> Option<f64> {
        match self.pace {
            Pace::Closed => None,
            Pace::Open { rate, .. } => Some(rate),
        }
    }

    /// Whether the gaps between due requests are all equal.
    pub fn has_even_gaps(&self) -> bool {
        matches!(self.pace, Pace::Open { arrivals: Arrivals::Constant, .. })
    }

    /// Whether requests are due at fixed times: in an open loop, and for users who think.
    pub fn by_clock(&self) -> bool {
        self.rate().is_some() || self.scenario.is_some()
    }

    /// The rows of reports besides the total: kinds of requests in the order of the plan, then groups, then sessions.
    pub fn rows(&self) -> Vec<PlannedRow> {
        let row = |name: &str, of: RowOf| PlannedRow { name: name.to_owned(), of };
        let mut rows: Vec<PlannedRow> = self.requests.iter().map(|r| row(&r.name, RowOf::Request)).collect();
        for group in self.requests.iter().filter_map(|request| request.group.as_deref()) {
            if !rows.iter().any(|row| row.of == RowOf::Group && row.name == group) {
                rows.push(row(group, RowOf::Group));
            }
        }
        let sessions = self.scenario.iter().flat_map(|scenario| scenario.named());
        rows.extend(sessions.map(|session| row(&session.name, RowOf::Session)));
        rows
    }

    /// How long requests are due, in nanoseconds. It is less than the duration if `max_requests` are due before its
    /// end.
    pub fn span(&self) -> u64 {
        let duration = self.duration.as_nanos() as u64;
        match (self.rate(), self.max_requests) {
            (Some(rate), Some(most)) if self.scenario.is_none() => {
                ((most as f64 / rate * 1e9) as u64).clamp(1, duration)
            }
            _ => duration,
        }
    }

    /// The longest time that the load takes, with its warm-up: the server may leave its last requests unanswered.
    pub fn longest(&self) -> Duration {
        Duration::from_nanos(self.warm_up_before() + self.span()) + self.timeout
    }

    /// The time before the duration in which requests are already sent, in nanoseconds.
    pub(crate) fn warm_up_before(&self) -> u64 {
        match self.warm_up {
            WarmUp::For(time) => time.as_nanos() as u64,
            WarmUp::Auto | WarmUp::Off => 0,
        }
    }

    /// The number of polls of a closed loop before it sleeps, on a machine with `cores` cores.
    pub(crate) fn polls_before_sleep(&self, cores: usize) -> u32 {
        match (self.threads.polling, self.pace) {
            (Polling::Off, _) | (_, Pace::Open { .. }) => 0,
            (Polling::Auto, Pace::Closed) if cores <= self.threads.count as usize => 0,
            (Polling::On | Polling::Auto, Pace::Closed) => POLLS,
        }
    }

    /// Whether threads poll before sendings, on a machine with `cores` cores.
    pub(crate) fn polls_before_sending(&self, cores: usize) -> bool {
        match (self.threads.polling, self.pace) {
            (Polling::Off, _) | (_, Pace::Closed) => false,
            (Polling::On, _) => true,
            (Polling::Auto, Pace::Open { rate, .. }) => {
                let share = rate / f64::from(self.threads.count) * POLLED as f64 / 1e9;
                share <= 0.25 && cores > self.threads.count as usize
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_plans_are_refused() {
        let good = Plan::of(Request::get("/"));
        assert_eq!(good.validate(), Ok(()));
        let open = |rate| Plan { pace: Pace::Open { rate, arrivals: Arrivals::Constant }, ..good.clone() };
        assert!(
            open(f64::NAN).validate().is_err()
                && open(0.0).validate().is_err()
                && open(1.0).validate().is_ok()
        );
        assert!(Plan { threads: GeneratorThreads::of(2), ..good.clone() }.validate().is_err());
        assert!(Plan { duration: Duration::ZERO, ..good.clone() }.validate().is_err());
        assert!(Plan { requests: Vec::new(), ..good }.validate().is_err());
    }

    #[test]
    fn polling_is_for_moderate_rates_and_spare_cores() {
        let good = Plan::of(Request::get("/"));
        let open = |rate| Plan { pace: Pace::Open { rate, arrivals: Arrivals::Constant }, ..good.clone() };
        assert!(
            open(2000.0).polls_before_sending(2)
                && !open(2000.0).polls_before_sending(1)
                && !open(20_000.0).polls_before_sending(2)
                && !good.polls_before_sending(8)
        );
    }
}
