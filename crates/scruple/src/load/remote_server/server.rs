//! The process on the node of the servers: starts them, and reads their accounts.

use super::{RemoteRequest, ServerReply};
use crate::farm::same_version::Writer;
use crate::fault::{Code, Fault};
use crate::load::args::LoadArgs;
use crate::load::windows::{ObservedServer, TargetServer, reached_at, sides, started};
use scruple_core::provenance::Provenance;
use scruple_measure::launcher::Ending;
use scruple_measure::load::cost::process_tree::ProcessTree;
use scruple_measure::load::cost::server_process::StartedServer;
use scruple_measure::load::cost::server_windows::ServerWindows;
use serde::Serialize;
use std::io::{BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

/// The servers of a load on this node.
struct Servers {
    sides: Vec<TargetServer>,
    running: Vec<Option<(StartedServer, Option<ServerWindows>)>>,
    observed: ObservedServer,
    interrupted: Arc<AtomicBool>,
    asks: Receiver<RemoteRequest>,
}

/// The requests of the process that loads, from standard input.
pub struct IncomingRequests {
    asks: Receiver<RemoteRequest>,
    ended: Arc<AtomicBool>,
}

impl IncomingRequests {
    /// Starts to read standard input.
    pub fn listen() -> IncomingRequests {
        let (sender, asks) = channel();
        let ended = Arc::new(AtomicBool::new(false));
        let flag = ended.clone();
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines() {
                let ask = line.ok().and_then(|line| serde_json::from_str(&line).ok());
                if ask.is_none_or(|ask: RemoteRequest| sender.send(ask).is_err()) {
                    break;
                }
            }
            flag.store(true, Ordering::Relaxed);
        });
        IncomingRequests { asks, ended }
    }

    /// Whether standard input has ended, because the process that loads has.
    pub fn have_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }
}

/// Says which version of Scruple this is, before anything else can go wrong.
pub fn greet() -> Result<(), Fault> {
    say(&Writer::this())
}

/// Starts the servers of this command line when the process that loads asks for them, and reads their accounts, until
/// that process ends.
pub fn serve(
    args: &LoadArgs,
    node: &str,
    machine: Provenance,
    IncomingRequests { asks, ended }: IncomingRequests,
) -> Result<Code, Fault> {
    let sides = sides(args)?;
    say(&ServerReply::Ready(node.to_owned(), Box::new(machine)))?;
    let running = sides.iter().map(|_| None).collect();
    let observed = ObservedServer::of(args)?;
    let mut servers = Servers { sides, running, observed, interrupted: ended, asks };
    while let Ok(ask) = servers.asks.recv() {
        let answer = servers.answer(&ask).unwrap_or_else(|fault| ServerReply::Failed(fault.message));
        say(&answer)?;
    }
    Ok(Code::Fine)
}

fn say(answer: &impl Serialize) -> Result<(), Fault> {
    let line = serde_json::to_string(answer).map_err(Fault::internal)?;
    let mut out = std::io::stdout().lock();
    let written = writeln!(out, "{line}").and_then(|()| out.flush());
    written.map_err(|error| Fault::internal(format!("the process that loads has ended: {error}")))
}

impl Servers {
    fn answer(&mut self, ask: &RemoteRequest) -> Result<ServerReply, Fault> {
        let side = match ask {
            RemoteRequest::Start(side, host) => return self.start(*side, host),
            RemoteRequest::Handled(_) => return Err(Fault::internal("a number that was not requested")),
            RemoteRequest::Begin(side)
            | RemoteRequest::Mark(side)
            | RemoteRequest::End(side)
            | RemoteRequest::Windows(side)
            | RemoteRequest::Costs(side, _)
            | RemoteRequest::SheetInput(side)
            | RemoteRequest::Status(side) => *side,
        };
        let running = self.running.get_mut(side).and_then(Option::as_mut);
        let (server, watch) = running.map(|(server, watch)| (server, watch)).unzip();
        match ask {
            RemoteRequest::Status(_) => {
                let status = server.and_then(StartedServer::status);
                return Ok(ServerReply::Status(status.map(|status| Ending::from(status).to_string())));
            }
            RemoteRequest::SheetInput(_) => {
                let watch = watch.and_then(Option::take);
                return Ok(ServerReply::SheetInput(watch.map(|watch| Box::new(watch.sheet_input()))));
            }
            _ => {}
        }
        let Some(watch) = watch.and_then(Option::as_mut) else {
            return Err(Fault::internal("the processes of that server are unknown"));
        };
        let (handled, mut more) = (|| how_many(&self.asks), Vec::new);
        match ask {
            RemoteRequest::Begin(_) => watch.begin(&handled, &mut more).map_err(Fault::program)?,
            RemoteRequest::Mark(_) => watch.mark(&handled, &mut more).map_err(Fault::program)?,
            RemoteRequest::Windows(_) => return Ok(ServerReply::Windows(watch.windows())),
            RemoteRequest::Costs(_, first) => return Ok(ServerReply::Costs(watch.costs_from(*first))),
            _ => watch.end(&handled, None, &mut more),
        }
        Ok(ServerReply::Done)
    }

    fn start(&mut self, side: usize, host: &str) -> Result<ServerReply, Fault> {
        let Some(own) = self.sides.get(side) else { return Err(Fault::internal("there is no such server")) };
        // A connection to the address that clients use shows that the server accepts theirs.
        let own = reached_at(own, host)?;
        let Some(server) = started(&own, self.observed.patience, &self.interrupted)? else {
            return Err(Fault::internal("that server has no command"));
        };
        let tree =
            self.observed.cost.then(|| ProcessTree::of(server.pid())).transpose().map_err(Fault::program)?;
        let watch = tree.and_then(|tree| ServerWindows::of(&tree, &mut Vec::new).ok());
        let known = watch.is_some();
        self.running[side] = Some((server, watch));
        Ok(ServerReply::Started(known))
    }
}

/// Asks how many requests have been handled. After the end of the other process, nobody uses the count.
fn how_many(asks: &Receiver<RemoteRequest>) -> u64 {
    match say(&ServerReply::HowMany).ok().and_then(|()| asks.recv().ok()) {
        Some(RemoteRequest::Handled(handled)) => handled,
        _ => 0,
    }
}
