//! Scenarios: sessions of users who send several requests in sequence, and how many users there are over time.

pub(super) mod answer;
pub(super) mod capture;
mod cookies;
mod data;
mod placeholders;
mod read;
mod stages;
mod template;

pub use data::{DataRows, Take};
pub use read::{RequestFileContent, scenario};
pub use stages::Stage;

pub(crate) use capture::Capture;
pub(crate) use cookies::Cookies;
pub(crate) use stages::{arrivals, level, time_of};
pub(crate) use template::RequestTemplate;

use super::request::{Request, RequestOrder};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What starts a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// Sessions start at fixed times, however many are in progress.
    Open,
    /// A given number of users is present at a time, and each starts a session when its last one has ended.
    Closed,
}

/// What users do, and how many of them there are.
#[derive(Debug)]
pub struct Scenario {
    /// What starts a session, if the file says it; else the plan's pace determines it.
    pub model: Option<Model>,
    /// The number of users or the rate over time; empty if the plan determines it.
    pub stages: Vec<Stage>,
    /// The kinds of sessions. Each user draws one for every session.
    pub sessions: Vec<UserSession>,
    /// How a kind of session is chosen.
    pub order: RequestOrder,
    /// The files with values for sessions.
    pub(crate) data: Vec<DataRows>,
    /// The number of values of a session: captured ones, then the columns of data.
    pub(crate) slots: usize,
    /// The largest number of redirects that are followed for one request.
    pub redirects: u32,
    /// Whether users keep cookies.
    pub cookies: bool,
    /// The limits that abort the load, if there are any.
    pub abort: Option<Abort>,
    /// The recorded times at which sessions start, in nanoseconds from the start, each with the index of the session;
    /// else empty.
    pub(crate) recorded: Vec<(u64, u32)>,
}

/// The limits that abort a load.
#[derive(Clone, Debug, PartialEq)]
pub struct Abort {
    /// The load is aborted if more than this share of requests fails, from 0 to 1.
    pub errors: Option<f64>,
    /// The load is aborted if the 99th percentile of the response is above this, in nanoseconds.
    pub p99: Option<u64>,
    /// How long a limit must be exceeded without interruption.
    pub over: Duration,
}

/// A kind of session: the requests that one user sends in sequence.
#[derive(Debug)]
pub struct UserSession {
    /// The name in reports.
    pub name: String,
    /// The weight with which it is drawn, relative to the others.
    pub weight: f64,
    /// The requests in order.
    pub(crate) steps: Vec<SessionStep>,
    /// The indices of the data from which each session takes a row.
    pub(crate) sources: Vec<usize>,
}

/// One request of a session.
#[derive(Debug)]
pub(crate) struct SessionStep {
    /// The index of the request in the plan.
    pub(crate) request: u32,
    /// The request with its placeholders; `None` if it is always the same.
    pub(crate) template: Option<RequestTemplate>,
    /// The values that are taken from the answer.
    pub(crate) captures: Vec<Capture>,
    /// The shortest and the longest think time after the answer.
    pub(crate) think: (Duration, Duration),
}

impl Scenario {
    /// The sessions that have rows of their own.
    pub(crate) fn named(&self) -> impl Iterator<Item = &UserSession> {
        self.sessions.iter().filter(|session| session.steps.len() > 1)
    }

    /// The scenario of recorded requests. `recorded` has the times in nanoseconds from the first one, each with the
    /// index of the request.
    pub(crate) fn of_recorded(requests: &[Request], recorded: Vec<(u64, u32)>) -> Scenario {
        let session = |(number, request): (u32, &Request)| UserSession {
            name: request.name.clone(),
            weight: 1.0,
            steps: vec![SessionStep {
                request: number,
                template: None,
                captures: Vec::new(),
                think: (Duration::ZERO, Duration::ZERO),
            }],
            sources: Vec::new(),
        };
        Scenario {
            model: Some(Model::Open),
            stages: Vec::new(),
            sessions: (0..).zip(requests).map(session).collect(),
            order: RequestOrder::Weighted,
            data: Vec::new(),
            slots: 0,
            redirects: 0,
            cookies: false,
            abort: None,
            recorded,
        }
    }

    /// The number of recorded requests; 0 if the scenario is not a recording.
    pub fn recorded(&self) -> usize {
        self.recorded.len()
    }

    /// The same scenario with the recording played at `speed` times its speed.
    #[must_use]
    pub fn faster(mut self, speed: f64) -> Scenario {
        self.recorded.iter_mut().for_each(|(at, _)| *at = (*at as f64 / speed) as u64);
        self
    }

    /// The total length of the stages or of the recording; `None` if there is neither.
    pub fn duration(&self) -> Option<Duration> {
        if let Some((last, _)) = self.recorded.last() {
            // A millisecond more, so that the last request is due within the duration.
            return Some(Duration::from_nanos(last + 1_000_000));
        }
        (!self.stages.is_empty()).then(|| self.stages.iter().map(|stage| stage.duration).sum())
    }

    /// The largest number of users that the stages have at a time.
    pub fn most_users(&self) -> u32 {
        self.stages.iter().map(|stage| stage.from.max(stage.to).ceil() as u32).max().unwrap_or(0)
    }

    /// A copy for a pass with an instrument: one user for each connection, without think times.
    #[must_use]
    pub fn hurried(&self) -> Scenario {
        let step = |step: &SessionStep| SessionStep {
            template: step.template.clone(),
            captures: step.captures.clone(),
            think: (Duration::ZERO, Duration::ZERO),
            ..*step
        };
        let session = |session: &UserSession| UserSession {
            name: session.name.clone(),
            weight: session.weight,
            steps: session.steps.iter().map(step).collect(),
            sources: session.sources.clone(),
        };
        Scenario {
            model: Some(Model::Closed),
            stages: Vec::new(),
            sessions: self.sessions.iter().map(session).collect(),
            data: self.data.iter().map(DataRows::again).collect(),
            abort: None,
            recorded: Vec::new(),
            ..*self
        }
    }
}

impl PartialEq for Scenario {
    /// Two plans have the same scenario only if it is the same object.
    fn eq(&self, other: &Scenario) -> bool {
        std::ptr::eq(self, other)
    }
}
