//! Plans: how a server is loaded.

use super::request::Request;
use super::request_sink::Listeners;
use super::scenario::Scenario;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// A load: what is sent, how fast, for how long.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The kinds of requests; at least one.
    pub requests: Vec<Request>,
    /// How the next request is chosen.
    pub order: Order,
    /// What users do, where they do more than send single requests.
    pub scenario: Option<Arc<Scenario>>,
    /// When requests are sent.
    pub pace: Pace,
    /// Connections that are opened before the clock starts, over all threads.
    pub connections: u32,
    /// The most connections that may be opened when a request is due and none is free; no more than `connections` means
    /// that none are added. Only for an open loop.
    pub grow_to: u32,
    /// Requests in flight at a time on one HTTP/2 connection.
    pub streams: u32,
    /// Whether a connection carries more than one request.
    pub keep_alive: bool,
    /// Generator threads.
    pub threads: u32,
    /// How long requests are sent, without the warm-up.
    pub duration: Duration,
    /// Sending stops earlier when this many were sent.
    pub max_requests: Option<u64>,
    /// The time-out of an answer, from the sending; also the time to wait for answers after the last sending.
    pub timeout: Duration,
    /// After this many time-outs the run is aborted with an error; none for no such bound.
    pub most_timeouts: Option<u64>,
    /// The warm-up.
    pub warm_up: WarmUp,
    /// Equal parts of the duration with separate distributions.
    pub parts: u32,
    /// Moments at which [`super::Moment::Mark`] is reported, as shares of the duration, increasing and between 0 and 1.
    pub marks: Vec<f64>,
    /// The generator counts as late where the 99th percentile of its lateness exceeds this. It is fixed beforehand, so
    /// that validity does not depend on the measurements.
    pub lateness: Duration,
    /// The seed of the order of weighted requests and of the gaps of Poisson arrivals.
    pub seed: u64,
    /// Whether the last microseconds before a sending are spent polling.
    pub polling: Polling,
    /// The cores the threads are pinned to, in turn; none for all.
    pub cores: Vec<usize>,
    /// Who receives every single request, if anybody.
    pub each: Option<Listeners>,
    /// Whether responses are counted for observers while the load runs.
    pub live: bool,
    /// Request a real-time priority for the generator's threads; a doubt reports a refusal.
    pub priority: bool,
}

/// How the next request is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// At random by weight.
    #[default]
    Weighted,
    /// In turn, from the first again after the last; each thread separately.
    InTurn,
}

/// A row of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// What it covers.
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
    /// A connection sends its next request when the last has been answered.
    Closed,
    /// Requests are sent at fixed times, whatever the server does; latency counts from those times.
    Open {
        /// Requests per second.
        rate: f64,
        /// The gaps.
        arrivals: Arrivals,
    },
}

/// The gaps between requests of an open loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// All equal.
    #[default]
    Constant,
    /// Exponentially distributed, as from many independent users.
    Poisson,
}

/// What is removed at the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WarmUp {
    /// A start that decays, determined afterwards; less than half.
    #[default]
    Auto,
    /// Nothing.
    Off,
    /// A fixed time before the duration starts.
    For(Duration),
}

/// Whether the generator polls for some microseconds rather than sleep: in an open loop before a sending, which makes
/// it punctual to about a microsecond; in a closed one for the next of several answers, which saves the server from
/// waking it, as long as answers arrive within that time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Polling {
    /// Where there are more cores than generator threads, and in an open loop it takes less than a quarter of a core.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never: sendings are some 20 µs late, the kernel's time to wake a thread.
    Off,
}

/// How often a closed loop polls for answers before it sleeps: about 5 µs. Eight times as long brought a tenth more
/// requests from nginx with 100 connections, and took more processor time than wrk does.
const LOOKS: u32 = 16;

/// How long before a sending the polling starts, in nanoseconds.
pub(crate) const POLLED: u64 = 50_000;

/// The default number of parts.
const PARTS: u32 = 40;

/// The default limit of the generator's lateness at the 99th percentile.
pub const LATE: Duration = Duration::from_millis(5);

impl Plan {
    /// A closed loop of one connection for ten seconds, sending `request`.
    pub fn of(request: Request) -> Plan {
        Plan {
            requests: vec![request],
            order: Order::Weighted,
            scenario: None,
            pace: Pace::Closed,
            connections: 1,
            grow_to: 0,
            streams: 1,
            keep_alive: true,
            threads: 1,
            duration: Duration::from_secs(10),
            max_requests: None,
            timeout: Duration::from_secs(5),
            most_timeouts: None,
            warm_up: WarmUp::Auto,
            parts: PARTS,
            marks: Vec::new(),
            lateness: LATE,
            seed: 1,
            polling: Polling::Auto,
            cores: Vec::new(),
            each: None,
            live: false,
            priority: false,
        }
    }

    /// Checks whether it can be carried out.
    ///
    /// # Errors
    /// What is wrong with it, as a sentence.
    pub fn validate(&self) -> Result<(), String> {
        if self.requests.is_empty() {
            return Err("there is nothing to send: at least one request is needed".to_owned());
        }
        self.requests.iter().try_for_each(Request::validate)?;
        if self.connections == 0 || self.threads == 0 || self.streams == 0 {
            return Err("at least one connection, one thread and one stream are needed".to_owned());
        }
        if self.threads > self.connections {
            return Err(format!(
                "{} threads cannot share {} connections: each needs one of its own",
                self.threads, self.connections
            ));
        }
        if self.duration.is_zero() || self.duration > Duration::from_secs(86_400) {
            return Err("the duration must be more than nothing and at most a day".to_owned());
        }
        if self.timeout.is_zero() || self.timeout > Duration::from_secs(3600) {
            return Err("the time-out must be more than nothing and at most an hour".to_owned());
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

    /// Requests per second of an open loop.
    pub fn rate(&self) -> Option<f64> {
        match self.pace {
            Pace::Closed => None,
            Pace::Open { rate, .. } => Some(rate),
        }
    }

    /// Whether requests are due at fixed times: in an open loop, and for users who think.
    pub fn by_clock(&self) -> bool {
        self.rate().is_some() || self.scenario.is_some()
    }

    /// The rows of reports besides the whole: kinds of requests, in the order of the plan, then groups of them, then
    /// sessions.
    pub fn rows(&self) -> Vec<Row> {
        let row = |name: &str, of: RowOf| Row { name: name.to_owned(), of };
        let mut rows: Vec<Row> = self.requests.iter().map(|r| row(&r.name, RowOf::Request)).collect();
        for group in self.requests.iter().filter_map(|request| request.group.as_deref()) {
            if !rows.iter().any(|row| row.of == RowOf::Group && row.name == group) {
                rows.push(row(group, RowOf::Group));
            }
        }
        let sessions = self.scenario.iter().flat_map(|scenario| scenario.named());
        rows.extend(sessions.map(|session| row(&session.name, RowOf::Session)));
        rows
    }

    /// How long requests are due, in nanoseconds: less than the duration where the most requests are due before its
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

    /// The time before the duration in which requests are already sent, in nanoseconds.
    pub(crate) fn warm_up_before(&self) -> u64 {
        match self.warm_up {
            WarmUp::For(time) => time.as_nanos() as u64,
            WarmUp::Auto | WarmUp::Off => 0,
        }
    }

    /// How often the threads of a closed loop poll for answers before they sleep, on a machine with this many cores.
    pub(crate) fn looks(&self, cores: usize) -> u32 {
        match (self.polling, self.pace) {
            (Polling::Off, _) | (_, Pace::Open { .. }) => 0,
            (Polling::Auto, Pace::Closed) if cores <= self.threads as usize => 0,
            (Polling::On | Polling::Auto, Pace::Closed) => LOOKS,
        }
    }

    /// Whether threads poll before sendings, on a machine with this many cores.
    pub(crate) fn polls(&self, cores: usize) -> bool {
        match (self.polling, self.pace) {
            (Polling::Off, _) | (_, Pace::Closed) => false,
            (Polling::On, _) => true,
            (Polling::Auto, Pace::Open { rate, .. }) => {
                let share = rate / f64::from(self.threads) * POLLED as f64 / 1e9;
                share <= 0.25 && cores > self.threads as usize
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
        assert!(Plan { threads: 2, ..good.clone() }.validate().is_err());
        assert!(Plan { duration: Duration::ZERO, ..good.clone() }.validate().is_err());
        assert!(Plan { requests: Vec::new(), ..good }.validate().is_err());
    }

    #[test]
    fn polling_is_for_moderate_rates_and_spare_cores() {
        let good = Plan::of(Request::get("/"));
        let open = |rate| Plan { pace: Pace::Open { rate, arrivals: Arrivals::Constant }, ..good.clone() };
        assert!(
            open(2000.0).polls(2) && !open(2000.0).polls(1) && !open(20_000.0).polls(2) && !good.polls(8)
        );
    }
}
