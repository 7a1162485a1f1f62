//! Loads real servers, on this machine or others.

use super::{Loader, Side, Turn};
use crate::fault::{Code, Fault};
use scruple_measure::load::cost::sheet::{Sheet, Watch};
use scruple_measure::load::cost::start::{Server, ServerError};
use scruple_measure::load::cost::tree::Tree;
use scruple_measure::load::listener::{listening_on_port, listening_on_socket};
use scruple_measure::load::{
    self, Address, LoadError, Moment, Order, Plan, Request, Session, Target, WarmUp, run,
};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The servers of a run. Those that were started here are ended when the value is dropped.
pub struct Engine {
    servers: Vec<Running>,
    interrupted: Arc<AtomicBool>,
}

struct Running {
    side: Side,
    /// The started server. The field is needed because dropping it ends the server.
    started: Option<Server>,
    watch: Option<Watch>,
    /// The connections, which stay open from the first turn on.
    session: Option<Session>,
    loaded: bool,
}

/// Which processes are read.
#[derive(Clone, Copy, Debug)]
pub struct Looking {
    /// Whether any processes are read.
    pub cost: bool,
    /// The id of the process of a server that was not started here.
    pub pid: Option<i32>,
    /// How long a server may take to accept connections.
    pub patience: Duration,
}

impl Engine {
    /// Starts servers if necessary, and finds the processes of the others.
    ///
    /// # Errors
    /// A server does not start, or a named process does not exist.
    pub fn start(sides: &[Side], looking: Looking, interrupted: Arc<AtomicBool>) -> Result<Engine, Fault> {
        let mut servers = Vec::new();
        let subjects = sides.iter().filter(|side| side.yardstick.is_none()).count();
        for (index, side) in sides.iter().enumerate() {
            if let Some(nginx) = &side.yardstick {
                let bytes = answer(&sides[subjects - 1], &interrupted)?;
                nginx
                    .answer_with(bytes)
                    .map_err(|error| Fault::usage(format!("nginx cannot be set up: {error}")))?;
            }
            let started = start(side, looking.patience, &interrupted)?;
            let pid = looking.pid.filter(|_| index + 1 == subjects);
            let tree = match (looking.cost, &started, pid) {
                (false, ..) => None,
                (true, Some(server), _) => Some(Tree::of(server.pid()).map_err(Fault::program)?),
                (true, None, Some(pid)) => Some(Tree::of(pid).map_err(Fault::usage)?),
                // A listener that this user may not inspect is not an error.
                (true, None, None) => listener(&side.target).and_then(|pid| Tree::of(pid).ok()),
            };
            let watch = tree.and_then(|tree| Watch::of(&tree, &mut Vec::new).ok());
            servers.push(Running { side: side.clone(), started, watch, session: None, loaded: false });
        }
        Ok(Engine { servers, interrupted })
    }

    /// Whether the processes of any server are known.
    pub fn knows_a_server(&self) -> bool {
        self.servers.iter().any(|server| server.watch.is_some())
    }
}

/// Returns the length of a server's answers in bytes: the mean over its requests, each of which is sent once.
fn answer(side: &Side, interrupted: &AtomicBool) -> Result<u64, Fault> {
    let plan = Plan {
        requests: side.requests.clone(),
        order: Order::InTurn,
        connections: 1,
        max_requests: Some(side.requests.len() as u64),
        warm_up: WarmUp::Off,
        ..Plan::of(Request::get("/"))
    };
    let load = run(&side.target, &plan, interrupted, &mut |_| {});
    let load = load.map_err(|error| Fault::program(format!("cannot load ‘{}’: {error}", side.name)))?;
    match load.answered {
        0 => Err(Fault::program(format!(
            "‘{}’ answered none of its requests, so that no yardstick can be made to its measure",
            side.name
        ))),
        answered => Ok(load.bytes / answered),
    }
}

/// Starts a server if necessary.
///
/// # Errors
/// The server does not accept requests, or the user interrupts the wait for it.
pub fn start(side: &Side, patience: Duration, interrupted: &AtomicBool) -> Result<Option<Server>, Fault> {
    let Some(command) = &side.command else { return Ok(None) };
    let server = command.start(&side.target, patience, interrupted);
    server.map(Some).map_err(|error| match error {
        ServerError::Interrupted => {
            Fault { code: Code::Interrupted, message: format!("{error}; nothing was measured") }
        }
        error => Fault::program(format!("there is no server to load: {error}")),
    })
}

/// Returns the id of the process that listens at a local address.
pub fn listener(target: &Target) -> Option<i32> {
    if !target.is_local() {
        return None;
    }
    target.addresses.iter().find_map(|address| match address {
        Address::Tcp(address) => listening_on_port(address.port()).ok(),
        Address::Unix(path) => listening_on_socket(path).ok(),
    })
}

impl Loader for Engine {
    fn turn(
        &mut self,
        arm: usize,
        plan: &Plan,
        progress: &mut dyn FnMut(&load::Progress),
    ) -> Result<Turn, Fault> {
        let server = &mut self.servers[arm];
        let plan = Plan { requests: server.side.requests.clone(), ..plan.clone() };
        let turn = server.turn(&plan, &self.interrupted, progress);
        let turn = turn.map_err(|error| fault(&error, server))?;
        server.loaded = true;
        Ok(turn)
    }

    fn sheets(&mut self) -> Vec<Option<Sheet>> {
        // The accounts are read before the connections are closed, because threads that end with their connection would
        // be missing.
        let sheets = self.servers.iter_mut().map(|server| server.watch.take().map(Watch::finish)).collect();
        self.servers.iter_mut().for_each(|server| server.session = None);
        sheets
    }
}

impl Running {
    fn turn(
        &mut self,
        plan: &Plan,
        interrupted: &AtomicBool,
        progress: &mut dyn FnMut(&load::Progress),
    ) -> Result<Turn, LoadError> {
        let session = match &mut self.session {
            Some(session) => session,
            None => self.session.insert(Session::new(&self.side.target, plan)?),
        };
        let Some(watch) = &mut self.watch else {
            let mut tell = |moment: Moment<'_>| {
                if let Moment::Progress(seen) = moment {
                    progress(seen);
                }
            };
            let load = session.turn(plan, interrupted, &mut tell)?;
            return Ok(Turn { load, costs: Vec::new() });
        };
        let first = watch.windows();
        // A plan without marks has one window, from the first request to the last answer.
        let inner = plan.marks.len();
        let (mut gone, mut more) = (None, Vec::new);
        if inner == 0 {
            watch.begin(&|| 0, &mut more)?;
        }
        let mut tell = |moment: Moment<'_>| match moment {
            Moment::Progress(seen) => progress(seen),
            Moment::Mark(0, handled) => gone = watch.begin(&|| handled.now(), &mut more).err(),
            Moment::Mark(index, handled) if index <= inner => {
                gone = watch.mark(&|| handled.now(), &mut more).err();
            }
            Moment::Mark(_, handled) => watch.end(&|| handled.now(), None, &mut more),
        };
        let load = session.turn(plan, interrupted, &mut tell)?;
        if inner == 0 {
            watch.end(&|| load.generator.requests, None, &mut more);
        }
        // A server that is gone is visible in the results of the load.
        drop(gone);
        Ok(Turn { load, costs: watch.costs_from(first) })
    }
}

/// Creates the error for the user. A started server that ended has failed; any other server is not available.
fn fault(error: &LoadError, server: &mut Running) -> Fault {
    let ended = server.started.as_mut().and_then(Server::status);
    let name = &server.side.name;
    let message = match ended {
        Some(status) => format!("the server ‘{name}’ ended ({status}) while it was loaded: {error}"),
        None => format!("cannot load ‘{name}’: {error}"),
    };
    let code = match error {
        LoadError::Interrupted => Code::Interrupted,
        LoadError::System(_) => Code::Internal,
        _ if server.loaded || server.started.is_some() => Code::ProgramFailed,
        _ => Code::Usage,
    };
    Fault { code, message }
}
