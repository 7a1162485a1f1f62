//! The process beside the servers: starts them, and reads their accounts.

use super::{Answer, Ask};
use crate::fault::{Code, Fault};
use crate::load::args::LoadArgs;
use crate::load::windows::{Looking, Side, reached_at, sides, started};
use scruple_core::provenance::Provenance;
use scruple_measure::load::cost::sheet::Watch;
use scruple_measure::load::cost::start::Server;
use scruple_measure::load::cost::tree::Tree;
use std::cell::RefCell;
use std::io::{BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

/// The servers of a load on this node.
struct Servers {
    sides: Vec<Side>,
    running: Vec<Option<(Server, Option<Watch>)>>,
    looking: Looking,
    interrupted: Arc<AtomicBool>,
    asks: Receiver<Ask>,
}

/// Starts the servers of this command line when the process that loads asks for them, and reads their accounts, until
/// that process ends.
pub fn serve(args: &LoadArgs, node: &str, machine: Provenance) -> Result<Code, Fault> {
    let sides = sides(args)?;
    let interrupted = Arc::new(AtomicBool::new(false));
    let (sender, asks) = channel();
    let ended = interrupted.clone();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let ask = line.ok().and_then(|line| serde_json::from_str(&line).ok());
            if ask.is_none_or(|ask: Ask| sender.send(ask).is_err()) {
                break;
            }
        }
        ended.store(true, Ordering::Relaxed);
    });
    say(&Answer::Ready(node.to_owned(), Box::new(machine)))?;
    let running = sides.iter().map(|_| None).collect();
    let looking = Looking::of(args)?;
    let mut servers = Servers { sides, running, looking, interrupted, asks };
    while let Ok(ask) = servers.asks.recv() {
        let answer = servers.answer(&ask).unwrap_or_else(|fault| Answer::Failed(fault.message));
        say(&answer)?;
    }
    Ok(Code::Fine)
}

fn say(answer: &Answer) -> Result<(), Fault> {
    let line = serde_json::to_string(answer).map_err(Fault::internal)?;
    let mut out = std::io::stdout().lock();
    let written = writeln!(out, "{line}").and_then(|()| out.flush());
    written.map_err(|error| Fault::internal(format!("the process that loads has ended: {error}")))
}

impl Servers {
    fn answer(&mut self, ask: &Ask) -> Result<Answer, Fault> {
        let mut more = Vec::new;
        // Both closures need the stream of questions, one after the other.
        let asks = RefCell::new(&self.asks);
        let handled = || how_many(&asks.borrow());
        let watch = |running: &'_ mut Vec<Option<(Server, Option<Watch>)>>, side: usize| {
            let one = running.get_mut(side).and_then(Option::as_mut);
            one.and_then(|(_, watch)| watch.take())
        };
        Ok(match ask {
            Ask::Start(side, host) => return self.start(*side, host),
            Ask::Status(side) => {
                let one = self.running.get_mut(*side).and_then(Option::as_mut);
                Answer::Status(one.and_then(|(server, _)| server.status()).map(|status| status.to_string()))
            }
            Ask::Account(side) => {
                Answer::Account(watch(&mut self.running, *side).map(|watch| Box::new(watch.account())))
            }
            Ask::Handled(_) => return Err(Fault::internal("a number that was not asked for")),
            Ask::Begin(side)
            | Ask::Mark(side)
            | Ask::End(side)
            | Ask::Windows(side)
            | Ask::Costs(side, _) => {
                let Some(mut watched) = watch(&mut self.running, *side) else {
                    return Err(Fault::internal("the processes of that server are not known"));
                };
                let answer = match ask {
                    Ask::Begin(_) => watched.begin(&handled, &mut more).map(|()| Answer::Done),
                    Ask::Mark(_) => watched.mark(&handled, &mut more).map(|()| Answer::Done),
                    Ask::Windows(_) => Ok(Answer::Windows(watched.windows())),
                    Ask::Costs(_, first) => Ok(Answer::Costs(watched.costs_from(*first))),
                    _ => {
                        watched.end(&handled, None, &mut more);
                        Ok(Answer::Done)
                    }
                };
                if let Some(Some((_, place))) = self.running.get_mut(*side) {
                    *place = Some(watched);
                }
                answer.map_err(Fault::program)?
            }
        })
    }

    fn start(&mut self, side: usize, host: &str) -> Result<Answer, Fault> {
        let Some(own) = self.sides.get(side) else { return Err(Fault::internal("there is no such server")) };
        // Where clients reach it shows that it accepts their connections.
        let own = reached_at(own, host)?;
        let Some(server) = started(&own, self.looking.patience, &self.interrupted)? else {
            return Err(Fault::internal("that server has no command"));
        };
        let tree = self.looking.cost.then(|| Tree::of(server.pid())).transpose().map_err(Fault::program)?;
        let watch = tree.and_then(|tree| Watch::of(&tree, &mut Vec::new).ok());
        let known = watch.is_some();
        self.running[side] = Some((server, watch));
        Ok(Answer::Started(known))
    }
}

/// Asks how many requests have been handled. The count after the end of the other process is of no use to anyone.
fn how_many(asks: &Receiver<Ask>) -> u64 {
    match say(&Answer::HowMany).ok().and_then(|()| asks.recv().ok()) {
        Some(Ask::Handled(handled)) => handled,
        _ => 0,
    }
}
