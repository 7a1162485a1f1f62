//! When users arrive, send requests, and leave.

use super::super::super::failure::Failure;
use super::super::super::http2;
use super::super::super::pace::{Schedule, Shape, Share};
use super::super::super::plan::{Arrivals, Pace};
use super::super::super::record::{Exchange, NOBODY};
use super::super::super::request::Request;
use super::super::super::scenario::answer::Answer;
use super::super::super::scenario::{arrivals, level};
use super::super::super::stalls::Reading;
use super::super::{Due, Generator};
use super::Users;
use scruple_core::stats::rng::Pcg;
use std::cmp::Reverse;

impl Generator {
    /// Takes what is due now: the request of a user whose think time is over, or of a new user.
    pub(in super::super) fn due_of_users(&mut self, now: u64) -> Option<Due> {
        loop {
            let users = self.users.as_mut()?;
            if self.time.is_used_up() || users.used_up {
                if let Some(schedule) = &mut self.schedule {
                    schedule.stop();
                }
                if self.time.is_used_up() {
                    users.stop();
                    return None;
                }
            }
            let scheduled = self.schedule.as_ref().and_then(|s| s.next()).filter(|due| *due <= now);
            let woken = users.next().filter(|due| *due <= now);
            let (Some(at), false) =
                (scheduled, woken.is_some_and(|woken| scheduled.is_none_or(|due| woken <= due)))
            else {
                woken?;
                return users.pop();
            };
            let schedule = self.schedule.as_mut()?;
            let number = schedule.number();
            schedule.advance();
            if let Some(user) = users.arrive(number) {
                return Some(Due { at, user, late: 0 });
            }
        }
    }

    /// The number of sessions in progress at the end.
    pub(crate) fn unfinished(&self) -> u64 {
        self.users.as_ref().map_or(0, |users| users.unfinished)
    }

    /// Whether data that may be used only once has run out.
    pub(crate) fn used_up(&self) -> bool {
        self.users.as_ref().is_some_and(|users| users.used_up)
    }

    /// Prepares the users for a turn that starts at `start`.
    pub(in super::super) fn set_users(&mut self, start: u64) {
        let Some(scenario) = &self.plan.scenario else { return };
        let (thread, threads) = (self.thread, self.plan.threads);
        let own = |(index, _): &(usize, (u64, u32))| *index as u32 % threads == thread;
        let listed = |all: &[(u64, u32)]| {
            Shape::Listed(all.iter().copied().enumerate().filter(own).map(|(_, due)| due).collect())
        };
        let mut share = Share {
            rate: 1.0,
            arrivals: Arrivals::Constant,
            thread,
            threads,
            seed: self.plan.seed,
            start,
            end: self.time.end,
            limit: u64::MAX,
            shape: Shape::Constant,
        };
        match (self.plan.pace, scenario.stages.as_slice()) {
            _ if !scenario.recorded.is_empty() => {
                let numbered: Vec<(u64, u32)> =
                    (0..).zip(&scenario.recorded).map(|(n, (at, _))| (*at, n)).collect();
                share.shape = listed(&numbered);
            }
            (Pace::Closed, []) => {
                share.shape = listed(&(0..self.plan.connections).map(|user| (0, user)).collect::<Vec<_>>());
            }
            (Pace::Closed, stages) => share.shape = listed(&arrivals(stages)),
            (Pace::Open { arrivals, .. }, stages) if !stages.is_empty() => {
                (share.arrivals, share.shape) = (arrivals, Shape::Stages(stages.to_vec()));
            }
            (Pace::Open { rate, arrivals }, _) => {
                (share.rate, share.arrivals) = (rate, arrivals);
                share.start = start.saturating_sub(self.plan.warm_up_before());
            }
        }
        let closed = self.plan.pace == Pace::Closed && scenario.recorded.is_empty();
        // This stream is distinct from those of the schedules and of the choice of requests.
        let random = Pcg::with_stream(self.plan.seed, 2 << 32 | u64::from(thread));
        self.users = Some(Users::new(scenario, closed, random));
        self.schedule = Some(Schedule::new(share));
    }

    /// Notes the start of a session if this is its first request.
    pub(in super::super) fn note_beginning(&mut self, due: Due, part: u16) {
        if let Some(users) = &mut self.users {
            let user = &mut users.users[due.user as usize];
            if user.step == 0 && user.hop.is_none() {
                user.began = (due.at, part);
            }
        }
    }

    /// Sends a user's request, which may differ from the plan's.
    pub(in super::super) fn start_of_user(&mut self, index: usize, due: Due, now: u64, part: u16) {
        let Some(users) = &mut self.users else { return };
        let request = users.request(due.user);
        let mut exchange = Exchange { carried: self.carried, ..due.exchange(request, part, now) };
        match users.sent_before(due.user) {
            Some(sent) => exchange.sent = sent,
            None => self.recorder.sent(&exchange),
        }
        let base = &self.plan.requests[request as usize];
        let sent = match users.composed(due.user, base, self.shared.tls.is_some()) {
            None => self.send_prepared(index, exchange),
            Some(request) => self.send_composed(index, &request, exchange),
        };
        self.sent(index, exchange, now, sent);
    }

    fn send_composed(&mut self, index: usize, request: &Request, exchange: Exchange) -> Result<(), Failure> {
        let target = &self.shared.target;
        let connection = &mut self.connections.list[index];
        match &mut connection.http2 {
            None => {
                connection.exchange = Some(exchange);
                connection.send(
                    &request.http1(&target.host, self.plan.keep_alive),
                    index,
                    &self.connections.poller,
                )
            }
            Some(http2) => {
                let encoded = http2::encode(request, target).map_err(|_| Failure::Garbage)?;
                http2.start(&encoded, exchange)?;
                connection.send_frames(index, &self.connections.poller)
            }
        }
    }

    /// Handles an answer.
    pub(in super::super) fn answered(
        &mut self,
        exchange: &Exchange,
        read: Reading,
        part: Option<u16>,
        answer: Answer<'_>,
        outcome: Result<u64, Failure>,
    ) {
        let outcome = match &mut self.users {
            Some(users) if exchange.user != NOBODY => {
                match users.look(exchange, answer, outcome, &self.shared.target.host) {
                    Some(outcome) => outcome,
                    None => {
                        let late = exchange.late + read.uncertain();
                        self.queue.push_first(Due { at: exchange.intended, user: exchange.user, late });
                        return;
                    }
                }
            }
            _ => outcome,
        };
        if let Some(users) = self.users.as_mut().filter(|_| exchange.user != NOBODY) {
            users.users[exchange.user as usize].late += exchange.carried.max(exchange.late) + read.late();
        }
        match outcome {
            Ok(bytes) => {
                self.recorder.answered(exchange, read, part, bytes);
                self.tell(exchange, read.latest.max(exchange.sent), Some(answer.status), outcome);
                self.go_on(exchange, read.now);
            }
            Err(class) => self.failed_with(exchange, read.now, Some(answer.status), class),
        }
    }

    /// Records a failed request, whose session ends.
    pub(in super::super) fn failed(&mut self, exchange: &Exchange, now: u64, class: Failure) {
        self.failed_with(exchange, now, None, class);
    }

    fn failed_with(&mut self, exchange: &Exchange, now: u64, status: Option<u16>, class: Failure) {
        self.recorder.failed(exchange, now, class, status);
        self.tell(exchange, now, status, Err(class));
        if exchange.user != NOBODY {
            self.end_session(exchange.user, now, Err(class));
        }
    }

    /// Continues the user's session: after the think time the next request is due.
    fn go_on(&mut self, exchange: &Exchange, now: u64) {
        let Some(users) = self.users.as_mut().filter(|_| exchange.user != NOBODY) else { return };
        let steps = users.session(exchange.user).steps.len() as u32;
        if users.users[exchange.user as usize].step + 1 == steps {
            return self.end_session(exchange.user, now, Ok(()));
        }
        let at = now + users.think(exchange.user);
        users.users[exchange.user as usize].step += 1;
        if !self.time.is_over(at) {
            users.wakes.push(Reverse((at, exchange.user)));
        } else {
            users.unfinished += 1;
            users.leave(exchange.user);
        }
    }

    fn end_session(&mut self, user: u32, now: u64, outcome: Result<(), Failure>) {
        let Some(users) = &mut self.users else { return };
        let session = users.users[user as usize].session;
        if users.session(user).steps.len() > 1 {
            let user = &users.users[user as usize];
            self.recorder.session(session, user.began, (now, user.late), outcome);
        }
        let number = f64::from(users.users[user as usize].number);
        let stages = &users.scenario.stages;
        let wanted = stages.is_empty() || level(stages, now.saturating_sub(self.time.start)) > number;
        let at = now + users.think(user);
        let over = self.time.is_over(at) || users.used_up;
        if users.closed && wanted && !over && users.begin(user) {
            users.wakes.push(Reverse((at, user)));
        } else {
            users.leave(user);
        }
    }
}
