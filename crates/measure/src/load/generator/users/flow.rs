//! When users arrive, think, and leave.

use super::super::super::failure::Failure;
use super::super::super::plan::{Arrivals, Pace, Plan};
use super::super::super::scenario::{arrivals, level};
use super::super::super::send_times::{RateCourse, SendSchedule, Share};
use super::super::super::thread_record::Recorder;
use super::super::DueRequest;
use super::super::turn_time::TurnTime;
use super::Users;
use scruple_stats::rng::Pcg;
use std::cmp::Reverse;

impl Users {
    /// Creates the users of a turn that starts at `start` and ends at `end`, and the schedule of their arrivals; `None`
    /// if the plan has no scenario.
    pub(in super::super) fn of_turn(
        plan: &Plan,
        thread: u32,
        (start, end): (u64, u64),
    ) -> Option<(Users, SendSchedule)> {
        let scenario = plan.scenario.as_ref()?;
        let threads = plan.threads.count;
        let own = |(index, _): &(usize, (u64, u32))| *index as u32 % threads == thread;
        let listed = |all: &[(u64, u32)]| {
            RateCourse::Listed(all.iter().copied().enumerate().filter(own).map(|(_, due)| due).collect())
        };
        let mut share = Share {
            rate: 1.0,
            arrivals: Arrivals::Constant,
            thread,
            threads,
            seed: plan.seed,
            start,
            end,
            limit: u64::MAX,
            shape: RateCourse::Constant,
        };
        match (plan.pace, scenario.stages.as_slice()) {
            _ if !scenario.recorded.is_empty() => {
                let numbered: Vec<(u64, u32)> =
                    (0..).zip(&scenario.recorded).map(|(n, (at, _))| (*at, n)).collect();
                share.shape = listed(&numbered);
            }
            (Pace::Closed, []) => {
                share.shape = listed(&(0..plan.connections).map(|user| (0, user)).collect::<Vec<_>>());
            }
            (Pace::Closed, stages) => share.shape = listed(&arrivals(stages)),
            (Pace::Open { arrivals, .. }, stages) if !stages.is_empty() => {
                (share.arrivals, share.shape) = (arrivals, RateCourse::Stages(stages.to_vec()));
            }
            (Pace::Open { rate, arrivals }, _) => {
                (share.rate, share.arrivals) = (rate, arrivals);
                share.start = start.saturating_sub(plan.warm_up_before());
            }
        }
        let closed = plan.pace == Pace::Closed && scenario.recorded.is_empty();
        // This stream is distinct from those of the schedules and of the choice of requests.
        let random = Pcg::with_stream(plan.seed, 2 << 32 | u64::from(thread));
        Some((Users::new(scenario, closed, random), SendSchedule::new(share)))
    }

    /// Takes what is due now: the request of a user whose think time is over, or of a new user.
    pub(in super::super) fn due(
        &mut self,
        schedule: &mut Option<SendSchedule>,
        time: &TurnTime,
        now: u64,
    ) -> Option<DueRequest> {
        loop {
            if time.is_used_up() || self.used_up {
                if let Some(schedule) = schedule {
                    schedule.stop();
                }
                if time.is_used_up() {
                    self.stop();
                    return None;
                }
            }
            let scheduled = schedule.as_ref().and_then(|s| s.next()).filter(|due| *due <= now);
            let woken = self.next().filter(|due| *due <= now);
            let (Some(at), false) =
                (scheduled, woken.is_some_and(|woken| scheduled.is_none_or(|due| woken <= due)))
            else {
                woken?;
                return self.pop();
            };
            let schedule = schedule.as_mut()?;
            let number = schedule.number();
            schedule.advance();
            if let Some(user) = self.arrive(number) {
                return Some(DueRequest { at, user, late: 0 });
            }
        }
    }

    /// Notes the start of a session if this is its first request.
    pub(in super::super) fn note_beginning(&mut self, due: DueRequest, part: u16) {
        let user = &mut self.users[due.user as usize];
        if user.step == 0 && user.redirect.is_none() {
            user.began = (due.at, part);
        }
    }

    /// Notes that up to this much of a user's session, in nanoseconds, were delays of the generator.
    pub(in super::super) fn note_lateness(&mut self, index: u32, late: u64) {
        self.users[index as usize].late += late;
    }

    /// Continues the user's session: after the think time the next request is due.
    pub(in super::super) fn go_on(&mut self, index: u32, now: u64, time: &TurnTime, recorder: &mut Recorder) {
        let steps = self.session(index).steps.len() as u32;
        if self.users[index as usize].step + 1 == steps {
            return self.end_session(index, (now, Ok(())), time, recorder);
        }
        let at = now + self.think(index);
        self.users[index as usize].step += 1;
        if !time.is_over(at) {
            self.wakes.push(Reverse((at, index)));
        } else {
            self.unfinished += 1;
            self.leave(index);
        }
    }

    /// Ends the session of a user, who then starts another one or leaves.
    pub(in super::super) fn end_session(
        &mut self,
        user: u32,
        (now, outcome): (u64, Result<(), Failure>),
        time: &TurnTime,
        recorder: &mut Recorder,
    ) {
        let session = self.users[user as usize].session;
        if self.session(user).steps.len() > 1 {
            let user = &self.users[user as usize];
            recorder.session(session, user.began, (now, user.late), outcome);
        }
        let number = f64::from(self.users[user as usize].number);
        let stages = &self.scenario.stages;
        let wanted = stages.is_empty() || level(stages, now.saturating_sub(time.start)) > number;
        let at = now + self.think(user);
        let over = time.is_over(at) || self.used_up;
        if self.closed && wanted && !over && self.begin(user) {
            self.wakes.push(Reverse((at, user)));
        } else {
            self.leave(user);
        }
    }
}
