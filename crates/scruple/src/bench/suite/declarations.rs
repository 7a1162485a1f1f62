//! Reads what a bench program declares before it is measured.

use super::answers;
use super::bench_side::BenchSide;
use super::cases::full_name;
use super::own_time::OwnTime;
use scruple_core::protocol::{BenchRequest, Case, Hello, Reply};
use scruple_measure::bench::{BenchError, BenchProgram, garbled};
use std::collections::HashSet;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// The description that a program gave of itself.
pub(super) struct Introduction {
    pub(super) hello: Hello,
    /// How long the first answer took.
    pub(super) starting: Duration,
    /// The same without the time in which the program had no core.
    pub(super) undisturbed: Duration,
    /// Whether `take` has received every case.
    pub(super) complete: bool,
    /// The process, which has run no case yet; `None` if the rest of its list was not wanted and takes longer to read
    /// than another start.
    pub(super) program: Option<BenchProgram>,
}

/// The processes that listed their cases, one for each side. They become the first that are timed, since a start may
/// take longer than all batches in the process. Those that are not needed are asked to end.
#[derive(Default)]
pub(super) struct Introduced(pub(super) Vec<Option<BenchProgram>>);

impl Introduced {
    /// Takes the process of a side, if it is still kept.
    pub(super) fn take(&mut self, side: usize) -> Option<BenchProgram> {
        self.0.get_mut(side).and_then(Option::take)
    }
}

impl Drop for Introduced {
    fn drop(&mut self) {
        self.0.drain(..).flatten().for_each(BenchProgram::finish);
    }
}

/// Asks a program for its description and its cases, in a process whose environment is padded by this many bytes. `limit`
/// is the time for each answer. `take` receives each case, and returns whether it wants more. If it does not, the rest of
/// the list is not read.
pub(super) fn introduce(
    side: &BenchSide,
    padding: usize,
    limit: Duration,
    interrupted: &AtomicBool,
    mut take: impl FnMut(Case) -> bool,
) -> Result<Introduction, BenchError> {
    let time = OwnTime::start(None);
    let mut program = BenchProgram::start(&side.start(padding, None, false))?;
    let hello = match program.ask(&BenchRequest::Hello, limit, interrupted)? {
        Reply::Hello(hello) if hello.scruple == scruple_core::protocol::VERSION => hello,
        Reply::Hello(hello) => {
            let version = hello.scruple;
            let why =
                format!("it speaks only version {version} of the protocol, which is newer than this Scruple");
            return Err(garbled(&BenchRequest::Hello.line(), why));
        }
        other => return Err(answers::unexpected(&BenchRequest::Hello.line(), &other)),
    };
    let start = time.so_far(Some(&program));
    let (mut names, mut listed, mut duplicate) = (HashSet::new(), 0, None);
    let mut complete = true;
    let mut reply = program.ask(&BenchRequest::Cases, limit, interrupted)?;
    loop {
        match reply {
            Reply::Case { case } if case.id as usize == listed => {
                let case = answers::harmless(*case);
                listed += 1;
                if let Some(why) = answers::fault_in_case(&case) {
                    return Err(garbled("cases", why));
                }
                if !names.insert(full_name(&case)) {
                    duplicate.get_or_insert(full_name(&case));
                }
                if !take(case) {
                    complete = false;
                    break;
                }
            }
            Reply::Case { case } => {
                let why = format!("it listed case {} where case {listed} was expected", case.id);
                return Err(garbled("cases", why));
            }
            Reply::End { count, .. } if count == listed => break,
            Reply::End { count, .. } => {
                let why = format!("it says that it listed {count} cases, and listed {listed}");
                return Err(garbled("cases", why));
            }
            other => return Err(answers::unexpected("cases", &other)),
        }
        reply = program.next_reply("cases", limit, interrupted)?;
    }
    if let Some(name) = duplicate {
        return Err(garbled("cases", format!("two cases are called ‘{name}’")));
    }
    let usable = complete || skip_the_rest(&mut program, start.elapsed, interrupted);
    let (starting, undisturbed) = (start.elapsed, start.own());
    Ok(Introduction { hello, starting, undisturbed, complete, program: usable.then_some(program) })
}

/// Reads a list to its end without looking at the cases. Returns false if that would take longer than `starting`, the
/// time of another start: the process is then of no use.
fn skip_the_rest(program: &mut BenchProgram, starting: Duration, interrupted: &AtomicBool) -> bool {
    let began = Instant::now();
    while let Some(left) = starting.checked_sub(began.elapsed()) {
        match program.next_reply("cases", left, interrupted) {
            Ok(Reply::Case { .. }) => {}
            Ok(Reply::End { .. }) => return true,
            Ok(_) | Err(_) => return false,
        }
    }
    false
}
