//! One generator thread: an event loop that sends requests when they are due, and reads the answers.
//!
//! It allocates no memory per request, makes one system call to send and one to receive, and records its own
//! lateness, so that delays of the generator are not attributed to the server.

mod choice;
mod connections;
mod due_request;
mod events;
mod live;
mod poll_or_sleep;
mod queue;
mod sending;
mod turn_time;
mod unanswered;
mod users;

use super::clock;
use super::connection::ConnectionState;
use super::exchange::{Exchange, NO_USER};
use super::failure::Failure;
use super::http2::FinishedRequest;
use super::plan::{POLLED, Pace, Plan};
use super::receive_times::ArrivalClock;
use super::request_sink::RequestSink;
use super::result::{ConnectionOutcomes, Ended};
use super::send_times::{RateCourse, SendSchedule, Share};
use super::shared::{LiveFigures, LoadShared};
use super::stalls::Arrival;
use super::thread_record::Recorder;
use choice::Choice;
use connections::Connections;
use due_request::DueRequest;
use poll_or_sleep::PollOrSleep;
use queue::Queue;
use std::io;
use std::sync::Arc;
use turn_time::TurnTime;
use users::Users;

/// The time in nanoseconds without any open connection after which the server counts as gone.
const GONE: u64 = 2_000_000_000;

/// The number of sends of an open loop after which answers are read, even if more requests are due.
const BURST: usize = 64;

/// The longest time in nanoseconds that a thread waits for events at once.
const LONGEST_SLEEP: u64 = 50_000_000;

/// The interval in nanoseconds at which the figures for the live line are published.
const PUBLISHED: u64 = 200_000_000;

pub(crate) struct Generator {
    shared: Arc<LoadShared>,
    plan: Arc<Plan>,
    pub(crate) thread: u32,
    connections: Connections,
    queue: Queue,
    schedule: Option<SendSchedule>,
    users: Option<Users>,
    choice: Choice,
    pub(crate) recorder: Recorder,
    /// Passes each request on to the receiver, if there is one.
    sink: Option<RequestSink>,
    time: TurnTime,
    in_flight: usize,
    /// The greatest lateness of a request since none was in flight.
    carried: u64,
    /// Whether more requests timed out than the plan allows.
    pub(crate) gave_up: bool,
    memory: ReusedBuffers,
    arrivals: ArrivalClock,
    /// Of the bytes that are being handled.
    reading: Arrival,
    polling: PollOrSleep,
}

/// Buffers that are reused.
struct ReusedBuffers {
    received: Vec<u8>,
    /// The received bytes after decryption.
    plain: Vec<u8>,
    done: Vec<FinishedRequest>,
}

impl Generator {
    pub(crate) fn new(shared: &Arc<LoadShared>, plan: &Arc<Plan>, thread: u32) -> io::Result<Generator> {
        Ok(Generator {
            connections: Connections::new(plan, thread)?,
            queue: Queue::default(),
            schedule: None,
            users: None,
            choice: Choice::of(plan, thread),
            recorder: Recorder::empty(),
            sink: None,
            time: TurnTime::of(plan, thread),
            in_flight: 0,
            carried: 0,
            gave_up: false,
            memory: ReusedBuffers { received: vec![0; 64 * 1024], plain: Vec::new(), done: Vec::new() },
            arrivals: ArrivalClock::new(),
            reading: Arrival::at(clock::now()),
            polling: PollOrSleep::new(plan.polls_before_sleep(shared.cores)),
            shared: Arc::clone(shared),
            plan: Arc::clone(plan),
            thread,
        })
    }

    /// Prepares a turn. Connections stay open.
    pub(crate) fn begin(&mut self, plan: &Arc<Plan>) {
        (self.time, self.choice) = (TurnTime::of(plan, self.thread), Choice::of(plan, self.thread));
        self.recorder = Recorder::new(plan);
        self.sink = plan.each.as_ref().map(RequestSink::of);
        (self.schedule, self.gave_up) = (None, false);
        self.queue.begin();
        self.connections.begin();
        self.plan = Arc::clone(plan);
    }

    /// Takes the records of the turn.
    pub(crate) fn take_recorder(&mut self) -> Recorder {
        std::mem::replace(&mut self.recorder, Recorder::empty())
    }

    /// The largest number of requests that waited for a connection at one time.
    pub(crate) fn longest_queue(&self) -> u64 {
        self.queue.most
    }

    /// How the turn's requests went by connection.
    pub(crate) fn outcomes(&self) -> ConnectionOutcomes {
        self.connections.outcomes()
    }

    /// The number of sessions in progress at the end.
    pub(crate) fn unfinished(&self) -> u64 {
        self.users.as_ref().map_or(0, |users| users.unfinished)
    }

    /// Whether data that may be used only once has run out.
    pub(crate) fn used_up(&self) -> bool {
        self.users.as_ref().is_some_and(|users| users.used_up)
    }

    /// The figures of this thread that others see while the load runs.
    fn live(&self) -> &LiveFigures {
        &self.shared.live[self.thread as usize]
    }

    /// The reason of the first failed TLS handshake of the turn.
    pub(crate) fn take_tls_trouble(&mut self) -> Option<String> {
        self.connections.tls_trouble.take()
    }

    /// Opens the connections. Returns the number of open ones when all are open, or when the time-out has passed.
    pub(crate) fn open(&mut self) -> Result<usize, Failure> {
        let deadline = clock::now() + self.plan.timeout.as_nanos() as u64;
        // The server may have closed connections since the last turn.
        while self.turn_once(0).map_err(|_| Failure::Unconnected)? > 0 {}
        let mut begun = 0;
        while self.connections.open < self.connections.list.len() && !self.shared.stopped() {
            while begun < self.connections.list.len() && self.connections.may_open() {
                if self.connections.list[begun].link == ConnectionState::Down {
                    self.connect(begun);
                }
                begun += 1;
            }
            let now = clock::now();
            if self.connections.all_failed() && self.connections.last_failure == Some(Failure::Tls) {
                break;
            }
            // The time-out may have passed while this thread waited for a core, so events that have arrived still
            // count.
            let late = now >= deadline;
            self.retry(now);
            let wait = if late { 0 } else { self.connections.next_retry(now + 10_000_000) - now };
            if self.turn_once(wait).map_err(|_| Failure::Unconnected)? == 0 && late {
                break;
            }
        }
        let handshaking =
            self.connections.list.iter().any(|connection| connection.link == ConnectionState::Handshaking);
        match self.connections.open {
            0 if handshaking => Err(Failure::Tls),
            0 => Err(self.connections.last_failure.unwrap_or(Failure::Unconnected)),
            up => Ok(up),
        }
    }

    /// Sends and receives until all due requests were sent and answered, or the run has to end early.
    pub(crate) fn run(&mut self, start: u64) -> Ended {
        self.set_clock(start);
        self.recorder.idle_failures = Default::default();
        (self.recorder.reconnects, self.recorder.closings) = (0, 0);
        let polls = self.plan.polls_before_sending(self.shared.cores);
        let timeout = self.plan.timeout.as_nanos() as u64;
        let sweep_every = (timeout / 10).clamp(1_000_000, 100_000_000);
        let mut sweep_at = start;
        let mut publish_at = start;
        if self.schedule.is_none() {
            while clock::now() < start.saturating_sub(self.plan.warm_up_before()) {
                std::hint::spin_loop();
            }
        }
        for index in 0..self.connections.list.len() {
            self.ready(index, clock::now(), 0);
        }
        loop {
            let now = self.send_due();
            self.live().publish_counts(&self.recorder);
            if self.finished(now) {
                return Ended::Planned;
            }
            if self.shared.stopped() {
                return Ended::Interrupted;
            }
            if self.connections.open == 0
                && now.saturating_sub(self.connections.none_open_since) > GONE.min(timeout)
            {
                return Ended::ServerGone;
            }
            // A generator that was kept from its core reads what has arrived before it gives up on anything.
            let ends = self.done_sending(now) && now > self.time.last_due.saturating_add(timeout);
            if (ends || now >= sweep_at) && self.await_events(0).is_err() {
                return Ended::ServerGone;
            }
            if ends {
                return Ended::Planned;
            }
            if now >= sweep_at {
                sweep_at = now + sweep_every;
                self.give_up_on(now, timeout);
                self.gave_up = self.plan.most_timeouts.is_some_and(|most| self.recorder.timeouts() >= most);
                if self.gave_up {
                    self.shared.stop();
                    return Ended::Interrupted;
                }
            }
            if now >= publish_at {
                publish_at = now + PUBLISHED;
                self.arrivals.adjust();
                self.live().publish_record(&self.recorder, false);
                self.live().publish(&self.recorder, self.time.part(now), self.queue.len());
            }
            self.retry(now);
            let mut until = self.connections.next_retry(sweep_at.min(publish_at));
            if self.schedule.is_none() && now < self.time.end {
                until = until.min(self.time.end);
            }
            let mut wait = until.saturating_sub(now);
            if let Some(due) = self.next_due() {
                let early = if polls { POLLED } else { 0 };
                wait = wait.min(due.saturating_sub(now).saturating_sub(early));
            }
            if self.await_events(wait).is_err() {
                return Ended::ServerGone;
            }
        }
    }

    /// Waits at most `wait` nanoseconds for events and handles them. No connection of a closed loop is free meanwhile.
    fn await_events(&mut self, wait: u64) -> io::Result<()> {
        self.send_gathered();
        // With a single request in flight the server sleeps between requests as well, and polling would last for a
        // whole answer.
        let polls = if self.in_flight > 1 { self.polling.polls() } else { 0 };
        let begun = clock::now();
        if polls > 0 {
            let found = self.connections.poller.poll_without_waiting(polls)?;
            self.polling.learn(found > 0);
            if found > 0 {
                self.recorder.stall_detector.polled(begun, begun, begun);
                self.act_on(found);
                return Ok(());
            }
        }
        let until = begun + wait.min(LONGEST_SLEEP);
        let count = self.connections.poller.wait(wait.min(LONGEST_SLEEP))?;
        self.recorder.stall_detector.polled(begun, until, clock::now());
        self.act_on(count);
        Ok(())
    }

    /// Passes a finished request on to the receiver, if there is one.
    fn record_request(
        &mut self,
        exchange: &Exchange,
        done: u64,
        status: Option<u16>,
        outcome: Result<u64, Failure>,
    ) {
        if let Some(sink) = &mut self.sink {
            sink.record(exchange, done, status, outcome);
        }
    }

    fn set_clock(&mut self, start: u64) {
        self.time.begin(start, &self.plan);
        if let Some(sink) = &mut self.sink {
            sink.begin(start);
        }
        self.connections.none_open_since = start;
        if let Some((users, schedule)) = Users::of_turn(&self.plan, self.thread, (start, self.time.end)) {
            (self.users, self.schedule) = (Some(users), Some(schedule));
            return;
        }
        if let Pace::Open { rate, arrivals } = self.plan.pace {
            let before = self.plan.warm_up_before();
            let begin = start.saturating_sub(before);
            let warm = (before as f64 * rate / 1e9 / f64::from(self.plan.threads.count)).ceil() as u64;
            self.schedule = Some(SendSchedule::new(Share {
                rate,
                arrivals,
                thread: self.thread,
                threads: self.plan.threads.count,
                seed: self.plan.seed,
                start: begin,
                end: self.time.end,
                limit: self.time.limit.saturating_add(warm),
                shape: RateCourse::Constant,
            }));
        } else {
            self.time.end_parts_by_count();
        }
    }

    /// The time at which the next request is due, by the schedule or a user.
    fn next_due(&self) -> Option<u64> {
        let scheduled = self.schedule.as_ref().and_then(SendSchedule::next);
        match &self.users {
            None => scheduled,
            Some(users) => scheduled.into_iter().chain(users.next()).min(),
        }
    }

    /// Takes a request that is due by now.
    fn take_due(&mut self, now: u64) -> Option<DueRequest> {
        if let Some(users) = &mut self.users {
            return users.due(&mut self.schedule, &self.time, now);
        }
        let schedule = self.schedule.as_mut()?;
        let at = schedule.next().filter(|due| *due <= now)?;
        schedule.advance();
        Some(DueRequest { at, user: NO_USER, late: 0 })
    }

    /// Sends the requests that are due by now, by the schedule or for users. Returns the time.
    fn send_due(&mut self) -> u64 {
        for _ in 0..BURST {
            let now = clock::now();
            let Some(mut due) = self.take_due(now) else { return now };
            due.late = now - due.at;
            self.time.last_due = due.at;
            let part = self.time.part(due.at);
            self.recorder.due(part, due.at, now, self.queue.len() as u64);
            if let Some(users) = self.users.as_mut().filter(|_| due.user != NO_USER) {
                self.time.count(part);
                users.note_beginning(due, part);
            }
            match self.queue.take_idle(&mut self.connections.list) {
                Some(index) => {
                    self.start(index, due, now, part);
                    self.offer(index);
                }
                None => {
                    self.queue.push(due);
                    if let Some(index) = self.connections.grow() {
                        self.connect(index);
                    }
                }
            }
        }
        clock::now()
    }

    fn done_sending(&self, now: u64) -> bool {
        match &self.schedule {
            Some(schedule) => {
                let ended = self.time.is_over(now);
                schedule.next().is_none() && self.users.as_ref().is_none_or(|users| users.gone(ended))
            }
            None => self.time.is_over(now),
        }
    }

    fn finished(&self, now: u64) -> bool {
        self.in_flight == 0 && self.queue.is_empty() && self.done_sending(now)
    }

    /// Uses a connection that can take requests: sends the waiting requests on it, and offers it if it is still free.
    fn ready(&mut self, index: usize, now: u64, late: u64) {
        if !self.time.is_under_way() {
            return;
        }
        // A server of HTTP/1.1 may be closing a connection on which it has answered.
        if !self.queue.repeated.is_empty() && !self.connections.list[index].heard {
            self.send_repeated(index, now);
        }
        while self.connections.list[index].is_free() && self.schedule.is_some() {
            let Some(mut due) = self.queue.pop() else { break };
            due.late = (due.late + late).min(now.saturating_sub(due.at));
            self.start(index, due, now, self.time.part(due.at));
        }
        self.offer(index);
    }

    /// Makes an idle connection available to the next request.
    fn offer(&mut self, index: usize) {
        self.queue.offer(index, &mut self.connections.list[index], self.schedule.is_none());
    }
}
