//! Scenarios: sessions of users who send several requests in sequence, and how many of them there are over time.

pub(super) mod answer;
pub(super) mod capture;
mod cookies;
mod data;
mod placeholders;
mod read;
mod stages;
mod template;

pub use data::{Rows, Take};
pub use read::{Read, scenario};
pub use stages::Stage;

pub(crate) use capture::Capture;
pub(crate) use cookies::Cookies;
pub(crate) use stages::{arrivals, level, time_of};
pub(crate) use template::Template;

use super::plan::Order;
use super::request::Request;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What starts a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// Sessions start at fixed times, however many are in progress.
    Open,
    /// A given number of users is present at a time, and each starts a session when the last has ended.
    Closed,
}

/// What users do, and how many of them there are.
#[derive(Debug)]
pub struct Scenario {
    /// What starts a session, where the file says it; else the plan's pace does.
    pub model: Option<Model>,
    /// How many there are over time; empty where the plan says that.
    pub stages: Vec<Stage>,
    /// The sessions, one of which each user draws.
    pub sessions: Vec<Session>,
    /// How it is drawn.
    pub order: Order,
    /// Files with values.
    pub(crate) data: Vec<Rows>,
    /// The values of a session: captured ones, then the columns of data.
    pub(crate) slots: usize,
    /// How many redirects of a request are followed.
    pub redirects: u32,
    /// Whether users keep cookies.
    pub cookies: bool,
    /// When to abort.
    pub abort: Option<Abort>,
    /// When sessions start and which, in nanoseconds from the start, where they were recorded; else empty.
    pub(crate) recorded: Vec<(u64, u32)>,
}

/// The limits that abort a load.
#[derive(Clone, Debug, PartialEq)]
pub struct Abort {
    /// More than this share of requests fails, from 0 to 1.
    pub errors: Option<f64>,
    /// The 99th percentile of the response is longer than this, in nanoseconds.
    pub p99: Option<u64>,
    /// For this long without interruption.
    pub over: Duration,
}

/// What one user does: requests in their order.
#[derive(Debug)]
pub struct Session {
    /// Its name in reports.
    pub name: String,
    /// How often it is drawn, relative to the others.
    pub weight: f64,
    /// What it sends.
    pub(crate) steps: Vec<Step>,
    /// The sources of data from which it takes a row.
    pub(crate) sources: Vec<usize>,
}

/// One request of a session.
#[derive(Debug)]
pub(crate) struct Step {
    /// Which of the plan's requests it is.
    pub(crate) request: u32,
    /// Its placeholders; none where it is always the same.
    pub(crate) template: Option<Template>,
    /// The values that are taken from its answer.
    pub(crate) captures: Vec<Capture>,
    /// The think time after its answer: least and most.
    pub(crate) think: (Duration, Duration),
}

impl Scenario {
    /// Whether a session has more than one request, so that it has its own row in reports.
    pub fn has_sessions(&self) -> bool {
        self.sessions.iter().any(|session| session.steps.len() > 1)
    }

    /// The names of the sessions that have rows of their own.
    pub(crate) fn named(&self) -> impl Iterator<Item = &Session> {
        self.sessions.iter().filter(|session| session.steps.len() > 1)
    }

    /// The scenario of recorded requests: the times, in nanoseconds from the first, each with its request.
    pub(crate) fn of_recorded(requests: &[Request], recorded: Vec<(u64, u32)>) -> Scenario {
        let session = |(number, request): (u32, &Request)| Session {
            name: request.name.clone(),
            weight: 1.0,
            steps: vec![Step {
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
            order: Order::Weighted,
            data: Vec::new(),
            slots: 0,
            redirects: 0,
            cookies: false,
            abort: None,
            recorded,
        }
    }

    /// How many requests were recorded, where they were.
    pub fn recorded(&self) -> usize {
        self.recorded.len()
    }

    /// The same recording at this multiple of the speed.
    #[must_use]
    pub fn faster(mut self, speed: f64) -> Scenario {
        self.recorded.iter_mut().for_each(|(at, _)| *at = (*at as f64 / speed) as u64);
        self
    }

    /// The total length of its stages or of the recording; none where it has neither.
    pub fn duration(&self) -> Option<Duration> {
        if let Some((last, _)) = self.recorded.last() {
            // The last request is due within it.
            return Some(Duration::from_nanos(last + 1_000_000));
        }
        (!self.stages.is_empty()).then(|| self.stages.iter().map(|stage| stage.duration).sum())
    }

    /// The most users there are at a time by its stages.
    pub fn most_users(&self) -> u32 {
        self.stages.iter().map(|stage| stage.from.max(stage.to).ceil() as u32).max().unwrap_or(0)
    }

    /// Requests of a session: the mean over the sessions as they are drawn.
    pub fn requests_of_a_session(&self) -> f64 {
        let weight = |session: &Session| if self.order == Order::InTurn { 1.0 } else { session.weight };
        let weights: f64 = self.sessions.iter().map(weight).sum();
        self.sessions.iter().map(|s| s.steps.len() as f64 * weight(s)).sum::<f64>() / weights
    }

    /// The same for a pass with an instrument: one user for each connection, without think time.
    #[must_use]
    pub fn hurried(&self) -> Scenario {
        let step = |step: &Step| Step {
            template: step.template.clone(),
            captures: step.captures.clone(),
            think: (Duration::ZERO, Duration::ZERO),
            ..*step
        };
        let session = |session: &Session| Session {
            name: session.name.clone(),
            weight: session.weight,
            steps: session.steps.iter().map(step).collect(),
            sources: session.sources.clone(),
        };
        Scenario {
            model: Some(Model::Closed),
            stages: Vec::new(),
            sessions: self.sessions.iter().map(session).collect(),
            data: self.data.iter().map(Rows::again).collect(),
            abort: None,
            recorded: Vec::new(),
            ..*self
        }
    }
}

impl PartialEq for Scenario {
    /// Two plans have the same scenario where it is the same object.
    fn eq(&self, other: &Scenario) -> bool {
        std::ptr::eq(self, other)
    }
}
