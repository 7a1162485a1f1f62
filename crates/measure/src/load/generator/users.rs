//! Users: sessions of several requests, with values that are carried from one request to the next.
//!
//! A user's first request is due when the session starts, and each further one when the previous answer has arrived
//! and the think time is over. Requests of users wait for connections in the same queue as other requests.

use super::super::exchange::Exchange;
use super::super::failure::{Failed, Failure};
use super::super::request::{Request, RequestOrder, excerpt};
use super::super::scenario::answer::KeptAnswer;
use super::super::scenario::{Cookies, Scenario, SessionStep, UserSession};
use super::due_request::DueRequest;
use scruple_stats::rng::Pcg;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::Duration;

mod flow;
mod redirect;

pub(super) use redirect::Server;

/// The users of one thread.
pub(super) struct Users {
    scenario: Arc<Scenario>,
    /// Whether a user whose session has ended starts another one.
    closed: bool,
    users: Vec<User>,
    vacant: Vec<u32>,
    /// When users send their next requests: the time and the index of the user.
    wakes: BinaryHeap<Reverse<(u64, u32)>>,
    random: Pcg,
    turn: usize,
    cumulated: Vec<f64>,
    /// The number of users that are present.
    live: usize,
    /// Whether no more sessions start, because data that may be used only once has run out.
    pub(super) used_up: bool,
    /// The number of sessions in progress at the end.
    pub(super) unfinished: u64,
}

struct User {
    number: u32,
    session: u32,
    step: u32,
    /// The time at which the session's first request was due, and the part of that time.
    began: (u64, u16),
    /// The largest number of nanoseconds of the session that may have been delays of the generator.
    late: u64,
    values: Vec<Option<Vec<u8>>>,
    cookies: Cookies,
    /// The path of the last request, to which cookies and a relative redirect of its answer apply.
    path: String,
    /// The redirect that the user follows: that of the last answer.
    redirect: Option<Redirect>,
    redirects: u32,
}

/// A redirect that is to be followed.
struct Redirect {
    path: String,
    /// Whether the redirected request is a GET without content.
    get: bool,
    /// The time at which the original request was sent.
    sent: u64,
}

impl Users {
    pub(super) fn new(scenario: &Arc<Scenario>, closed: bool, random: Pcg) -> Users {
        let mut sum = 0.0;
        let cumulated = scenario.sessions.iter().map(|session| {
            sum += session.weight;
            sum
        });
        Users {
            closed,
            users: Vec::new(),
            vacant: Vec::new(),
            wakes: BinaryHeap::new(),
            random,
            turn: 0,
            cumulated: cumulated.collect(),
            live: 0,
            used_up: false,
            unfinished: 0,
            scenario: Arc::clone(scenario),
        }
    }

    /// The time at which the next user sends a request.
    pub(super) fn next(&self) -> Option<u64> {
        self.wakes.peek().map(|Reverse((at, _))| *at)
    }

    /// Whether no user is present and none will return; `ended` says that the turn is over.
    pub(super) fn gone(&self, ended: bool) -> bool {
        self.wakes.is_empty() && (self.live == 0 || ended)
    }

    /// Removes all users who are thinking.
    pub(super) fn stop(&mut self) {
        self.unfinished +=
            self.wakes.iter().filter(|Reverse((_, user))| self.users[*user as usize].step > 0).count() as u64;
        self.live -= self.wakes.len();
        self.wakes.clear();
    }

    fn pop(&mut self) -> Option<DueRequest> {
        self.wakes.pop().map(|Reverse((at, user))| DueRequest { at, user, late: 0 })
    }

    /// Adds a user; `None` if data has run out.
    fn arrive(&mut self, number: u32) -> Option<u32> {
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.users.push(User {
                number,
                session: 0,
                step: 0,
                began: (0, 0),
                late: 0,
                values: vec![None; self.scenario.slots],
                cookies: Cookies::default(),
                path: String::new(),
                redirect: None,
                redirects: 0,
            });
            self.users.len() as u32 - 1
        });
        self.users[index as usize].number = number;
        self.live += 1;
        if self.begin(index) {
            return Some(index);
        }
        self.leave(index);
        None
    }

    fn leave(&mut self, index: u32) {
        self.live -= 1;
        self.vacant.push(index);
    }

    /// Starts a session; false if data has run out.
    fn begin(&mut self, index: u32) -> bool {
        let user = &mut self.users[index as usize];
        user.session = match (self.scenario.recorded.get(user.number as usize), self.scenario.order) {
            (Some((_, session)), _) => *session,
            (None, RequestOrder::InTurn) => {
                self.turn += 1;
                ((self.turn - 1) % self.cumulated.len()) as u32
            }
            (None, RequestOrder::Weighted) if self.cumulated.len() == 1 => 0,
            (None, RequestOrder::Weighted) => {
                let drawn = self.random.unit() * self.cumulated[self.cumulated.len() - 1];
                self.cumulated.partition_point(|sum| *sum <= drawn).min(self.cumulated.len() - 1) as u32
            }
        };
        (user.step, user.redirects, user.redirect) = (0, 0, None);
        (user.began.0, user.late) = (0, 0);
        user.cookies.clear();
        user.values.iter_mut().for_each(|value| *value = None);
        for source in &self.scenario.sessions[user.session as usize].sources {
            let rows = &self.scenario.data[*source];
            let Some(row) = rows.next(&mut self.random) else {
                self.used_up = true;
                return false;
            };
            for (slot, value) in row.iter().enumerate() {
                user.values[rows.slot + slot] = Some(value.clone());
            }
        }
        true
    }

    fn session(&self, index: u32) -> &UserSession {
        &self.scenario.sessions[self.users[index as usize].session as usize]
    }

    fn step(&self, index: u32) -> &SessionStep {
        &self.session(index).steps[self.users[index as usize].step as usize]
    }

    /// The index of the plan's request that a user sends next.
    pub(super) fn request(&self, index: u32) -> u32 {
        self.step(index).request
    }

    /// The time at which the request was sent that a redirect continues; `None` if there is no redirect.
    pub(super) fn sent_before(&self, index: u32) -> Option<u64> {
        self.users.get(index as usize)?.redirect.as_ref().map(|redirect| redirect.sent)
    }

    /// The request as this user sends it; `None` if it does not differ from the plan's.
    pub(super) fn composed(&mut self, index: u32, base: &Request, encrypted: bool) -> Option<Request> {
        let scenario = Arc::clone(&self.scenario);
        let user = &mut self.users[index as usize];
        let step = &scenario.sessions[user.session as usize].steps[user.step as usize];
        let redirect = user.redirect.as_ref();
        let filled = step.template.as_ref().map(|template| template.filled(base, &user.values));
        let filled = match (redirect, filled) {
            (None, filled) => filled,
            (Some(redirect), filled) => {
                let mut request =
                    Request { path: redirect.path.clone(), ..filled.unwrap_or_else(|| base.clone()) };
                if redirect.get {
                    request.method = if request.method == "HEAD" { "HEAD" } else { "GET" }.to_owned();
                    request.body.clear();
                    let of_content = |name: &str| name.to_ascii_lowercase().starts_with("content-");
                    request.headers.retain(|(name, _)| !of_content(name));
                }
                Some(request)
            }
        };
        user.path.clear();
        user.path.push_str(&filled.as_ref().unwrap_or(base).path);
        if !scenario.cookies {
            return filled;
        }
        let Some(cookies) = user.cookies.header(user.path.as_bytes(), encrypted) else { return filled };
        let mut request = filled.unwrap_or_else(|| base.clone());
        let cookies = String::from_utf8_lossy(&cookies);
        // There is one line at most (RFC 6265, section 5.4): several servers read only one of two, or join them wrongly.
        match request.headers.iter_mut().find(|(name, _)| name.eq_ignore_ascii_case("cookie")) {
            Some((_, own)) => *own = format!("{own}; {cookies}"),
            None => request.headers.push(("Cookie".to_owned(), cookies.into_owned())),
        }
        Some(request)
    }

    /// Processes an answer to the request with this name: keeps cookies and values, and follows redirects. Returns the
    /// outcome of the request; `None` if a redirect continues it.
    pub(super) fn process_answer(
        &mut self,
        exchange: &Exchange,
        answer: KeptAnswer<'_>,
        outcome: Result<(), Failed>,
        server: Server<'_>,
        request: &str,
    ) -> Option<Result<(), Failed>> {
        let scenario = Arc::clone(&self.scenario);
        let user = &mut self.users[exchange.user as usize];
        if scenario.cookies {
            for cookie in answer.head.each("set-cookie") {
                user.cookies.set(cookie, user.path.as_bytes());
            }
        }
        if scenario.redirects > 0 && matches!(answer.status, 301 | 302 | 303 | 307 | 308) {
            let place = answer.head.header("location");
            user.redirects += 1;
            let path = place.and_then(|place| server.path(place, &user.path));
            let Some(path) = path.filter(|_| user.redirects <= scenario.redirects) else {
                // The query is left out, because it may differ for each request.
                let named =
                    place.map(|place| excerpt(place.split(|byte| *byte == b'?').next().unwrap_or(place)));
                let to = named.map_or("no Location".to_owned(), |place| format!("the Location {place}"));
                return Some(Err(failed(Failure::Redirected, request, answer.status, &to)));
            };
            let get = matches!(answer.status, 301..=303);
            user.redirect = Some(Redirect { path, get, sent: exchange.sent });
            return None;
        }
        (user.redirects, user.redirect) = (0, None);
        let step = &scenario.sessions[user.session as usize].steps[user.step as usize];
        if outcome.is_ok() {
            for capture in &step.captures {
                match capture.from.find(&answer) {
                    Some(value) => user.values[capture.slot] = Some(value),
                    None => {
                        let lacks = format!("no {}", capture.from.named());
                        return Some(Err(failed(Failure::ValueMissing, request, answer.status, &lacks)));
                    }
                }
            }
        }
        Some(outcome)
    }

    fn think(&mut self, index: u32) -> u64 {
        let (least, most) = self.step(index).think;
        let spread = (most - least).as_nanos() as f64;
        let drawn = if most > least { self.random.unit() * spread } else { 0.0 };
        (least + Duration::from_nanos(drawn as u64)).as_nanos() as u64
    }
}

/// The cause of failure of a request whose answer contains something wrong, or lacks something.
fn failed(class: Failure, request: &str, status: u16, has: &str) -> Failed {
    let request = excerpt(request.as_bytes());
    Failed::Cause(class, format!("{request} was answered with status {status} and {has}").into())
}
