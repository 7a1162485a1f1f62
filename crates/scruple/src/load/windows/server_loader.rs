//! Loads real servers, on this machine or others.

use super::accounts::ServerAccounts;
use super::{Loader, TargetServer, Turn};
use crate::cli::values;
use crate::fault::{Code, Fault};
use crate::load::args::LoadArgs;
use crate::load::remote_server::{RemoteAccounts, RemoteServer};
use scruple_measure::launcher::Ending;
use scruple_measure::load::cost::process_tree::ProcessTree;
use scruple_measure::load::cost::server_process::{ServerError, StartedServer};
use scruple_measure::load::cost::server_windows::ServerWindows;
use scruple_measure::load::cost::sheet::Sheet;
use scruple_measure::load::listener::listening_at;
use scruple_measure::load::{
    self, Address, Ended, LoadError, Plan, Request, RequestOrder, Session, Target, TurnEvent, WarmUp, run,
};
use std::cell::RefCell;
use std::net::ToSocketAddrs;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The servers of a run. Those that were started here are ended when the value is dropped.
pub struct ServerLoader {
    servers: Vec<RunningServer>,
    /// The process on the node of the servers, if that is a different one.
    link: Option<Rc<RefCell<RemoteServer>>>,
    interrupted: Arc<AtomicBool>,
}

struct RunningServer {
    side: TargetServer,
    /// The started server. The field is needed because dropping it ends the server.
    started: Option<StartedServer>,
    accounts: Option<Box<dyn ServerAccounts>>,
    /// The connections, which stay open from the first turn on.
    session: Option<Session>,
    loaded: bool,
}

/// Which processes of a server are observed.
#[derive(Clone, Copy, Debug)]
pub struct ObservedServer {
    /// Whether any processes are read.
    pub cost: bool,
    /// The id of the process of a server that was not started here.
    pub pid: Option<i32>,
    /// How long a server may take to accept connections.
    pub patience: Duration,
}

impl ObservedServer {
    /// Returns what the command line asks for.
    pub fn of(args: &LoadArgs) -> Result<ObservedServer, Fault> {
        Ok(ObservedServer {
            cost: !args.cost.no_cost,
            pid: args.cost.pid,
            patience: values::duration(&args.cost.patience)?,
        })
    }
}

/// Returns a server whose clients reach it at another host, with the same port.
///
/// # Errors
/// The host is not known, or the server listens on a Unix socket.
pub fn reached_at(side: &TargetServer, host: &str) -> Result<TargetServer, Fault> {
    let mut addresses = Vec::new();
    for address in &side.target.addresses {
        let Address::Tcp(address) = address else {
            return Err(Fault::usage(format!("‘{}’ is a socket, which other nodes cannot reach", side.url)));
        };
        let found = (host, address.port()).to_socket_addrs().map_err(|error| {
            Fault::usage(format!("the node of the servers, ‘{host}’, is not known: {error}"))
        })?;
        addresses.extend(found.map(Address::Tcp));
    }
    Ok(TargetServer { target: Target { addresses, ..side.target.clone() }, ..side.clone() })
}

impl ServerLoader {
    /// Has the servers started on another node, and reads their accounts there.
    ///
    /// # Errors
    /// A server does not start, or cannot be reached from here.
    pub fn on_other_node(
        sides: &[TargetServer],
        observed: ObservedServer,
        link: RemoteServer,
        interrupted: Arc<AtomicBool>,
    ) -> Result<ServerLoader, Fault> {
        let link = Rc::new(RefCell::new(link));
        let mut servers = Vec::new();
        for (index, side) in sides.iter().enumerate() {
            let side = reached_at(side, link.borrow().address())?;
            let known = link.borrow_mut().start_server(index)?;
            let distant = || Box::new(RemoteAccounts::new(link.clone(), index)) as Box<dyn ServerAccounts>;
            let accounts = (known && observed.cost).then(distant);
            servers.push(RunningServer { side, started: None, accounts, session: None, loaded: false });
        }
        Ok(ServerLoader { servers, link: Some(link), interrupted })
    }

    /// Starts servers if necessary, and finds the processes of the others.
    ///
    /// # Errors
    /// A server does not start, or a named process does not exist.
    pub fn start(
        sides: &[TargetServer],
        observed: ObservedServer,
        interrupted: Arc<AtomicBool>,
    ) -> Result<ServerLoader, Fault> {
        let mut servers = Vec::new();
        let subjects = sides.iter().filter(|side| side.yardstick.is_none()).count();
        for (index, side) in sides.iter().enumerate() {
            if let Some(nginx) = &side.yardstick {
                let bytes = answer(&sides[subjects - 1], &interrupted)?;
                nginx
                    .answer_with(bytes)
                    .map_err(|error| Fault::usage(format!("nginx cannot be set up: {error}")))?;
            }
            let started = start(side, observed.patience, &interrupted)?;
            let pid = observed.pid.filter(|_| index + 1 == subjects);
            let tree = match (observed.cost, &started, pid) {
                (false, ..) => None,
                (true, Some(server), _) => Some(ProcessTree::of(server.pid()).map_err(Fault::program)?),
                (true, None, Some(pid)) => Some(ProcessTree::of(pid).map_err(Fault::usage)?),
                // A listener that this user may not inspect is not an error.
                (true, None, None) => listening_at(&side.target).and_then(|pid| ProcessTree::of(pid).ok()),
            };
            let watch = |tree: ProcessTree| ServerWindows::of(&tree, &mut Vec::new).ok();
            let gone_on = || watch(ProcessTree::of(started.as_ref()?.pid()).ok()?);
            // The first process may have put the server into the background meanwhile.
            let watch = tree.and_then(|tree| watch(tree).or_else(gone_on));
            let accounts = watch.map(|watch| Box::new(watch) as Box<dyn ServerAccounts>);
            servers.push(RunningServer {
                side: side.clone(),
                started,
                accounts,
                session: None,
                loaded: false,
            });
        }
        Ok(ServerLoader { servers, link: None, interrupted })
    }

    /// Whether the processes of any server are known.
    pub fn knows_a_server(&self) -> bool {
        self.servers.iter().any(|server| server.accounts.is_some())
    }
}

/// Returns the length of a server's answers in bytes: the mean over its requests, each of which is sent once.
fn answer(side: &TargetServer, interrupted: &AtomicBool) -> Result<u64, Fault> {
    let plan = Plan {
        requests: side.requests.clone(),
        order: RequestOrder::InTurn,
        connections: 1,
        max_requests: Some(side.requests.len() as u64),
        warm_up: WarmUp::Off,
        ..Plan::of(Request::get("/"))
    };
    let load = run(&side.target, &plan, interrupted, &mut |_| {});
    let load = load.map_err(|error| Fault::program(format!("cannot load ‘{}’: {error}", side.name)))?;
    match load.counts.answered {
        0 => Err(Fault::program(format!(
            "‘{}’ answered none of its requests, so no yardstick can be set up for comparison",
            side.name
        ))),
        answered => Ok(load.counts.bytes / answered),
    }
}

/// Starts a server if necessary.
///
/// # Errors
/// The server does not accept requests, or the user interrupts the wait for it.
pub fn start(
    side: &TargetServer,
    patience: Duration,
    interrupted: &AtomicBool,
) -> Result<Option<StartedServer>, Fault> {
    let Some(command) = &side.command else { return Ok(None) };
    let server = command.start(&side.target, patience, interrupted);
    server.map(Some).map_err(|error| match error {
        ServerError::Interrupted => {
            Fault { code: Code::Interrupted, message: format!("{error}; nothing was measured") }
        }
        ServerError::NoProgram(_) => Fault::usage(format!("there is no server to load: {error}")),
        error => Fault::program(format!("there is no server to load: {error}")),
    })
}

impl Loader for ServerLoader {
    fn turn(
        &mut self,
        arm: usize,
        plan: &Plan,
        progress: &mut dyn FnMut(&load::LoadProgress),
    ) -> Result<Turn, Fault> {
        let server = &mut self.servers[arm];
        let plan = Plan { requests: server.side.requests.clone(), ..plan.clone() };
        let turn = server.turn(&plan, &self.interrupted, progress);
        let known = server.loaded || server.started.is_some();
        let mut ended = || {
            let there = || self.link.as_ref().and_then(|link| link.borrow_mut().status(arm));
            status(&mut server.started).or_else(there)
        };
        let turn = match turn {
            Ok(turn) if turn.load.ended == Ended::ServerGone => Turn { ended: ended(), ..turn },
            Ok(turn) => turn,
            Err(error) => return Err(fault(&error, &server.side.name, ended(), known)),
        };
        server.loaded = true;
        // Without the accounts of a turn, the cost of its requests is unknown.
        self.link.iter().try_for_each(|link| link.borrow().check())?;
        Ok(turn)
    }

    fn sheets(&mut self) -> Vec<Option<Result<Sheet, String>>> {
        // The accounts are read before the connections are closed, because threads that end with their connection would
        // be missing.
        let sheets =
            self.servers.iter_mut().map(|server| server.accounts.take().map(|accounts| accounts.sheet()));
        let sheets = sheets.collect();
        self.servers.iter_mut().for_each(|server| server.session = None);
        sheets
    }
}

impl RunningServer {
    fn turn(
        &mut self,
        plan: &Plan,
        interrupted: &AtomicBool,
        progress: &mut dyn FnMut(&load::LoadProgress),
    ) -> Result<Turn, LoadError> {
        let session = match &mut self.session {
            Some(session) => session,
            None => self.session.insert(Session::new(&self.side.target, plan)?),
        };
        let Some(accounts) = &mut self.accounts else {
            let mut on_event = |moment: TurnEvent<'_>| {
                if let TurnEvent::Progress(seen) = moment {
                    progress(seen);
                }
            };
            let load = session.turn(plan, interrupted, &mut on_event)?;
            return Ok(Turn { load, costs: Vec::new(), ended: None });
        };
        let first = accounts.windows();
        // A plan without marks has one window, from the first request to the last answer.
        let inner = plan.marks.len();
        let mut gone = None;
        if inner == 0 {
            accounts.begin(&|| 0).map_err(LoadError::Plan)?;
        }
        let mut on_event = |moment: TurnEvent<'_>| match moment {
            TurnEvent::Progress(seen) => progress(seen),
            TurnEvent::Mark(0, handled) => gone = accounts.begin(&|| handled.now()).err(),
            TurnEvent::Mark(index, handled) if index <= inner => {
                gone = accounts.mark(&|| handled.now()).err();
            }
            TurnEvent::Mark(_, handled) => accounts.end(&|| handled.now()),
        };
        let load = session.turn(plan, interrupted, &mut on_event)?;
        if inner == 0 {
            accounts.end(&|| load.generator.reached);
        }
        // A server that is gone is visible in the results of the load.
        drop(gone);
        Ok(Turn { load, costs: accounts.costs_from(first), ended: None })
    }
}

/// Says how the process of a started server has ended; `None` while it runs.
pub fn status(started: &mut Option<StartedServer>) -> Option<String> {
    started.as_mut().and_then(StartedServer::status).map(|status| Ending::from(status).to_string())
}

/// Creates the error for the user. A server that was `known` before, because Scruple started or loaded it, has failed;
/// any other server is not available. `ended` says how the server's process has ended, if it has.
pub fn fault(error: &LoadError, name: &str, ended: Option<String>, known: bool) -> Fault {
    let message = match ended {
        Some(ending) => format!("the server ‘{name}’ {ending} while it was loaded: {error}"),
        None => format!("cannot load ‘{name}’: {error}"),
    };
    let code = match error {
        LoadError::Interrupted => Code::Interrupted,
        LoadError::System(_) => Code::Internal,
        _ if known => Code::ProgramFailed,
        _ => Code::Usage,
    };
    Fault { code, message }
}

/// Says that a server was gone at the end of a turn. `ended` says how its process ended, if that is known.
pub fn gone(name: &str, ended: Option<&str>) -> String {
    match ended {
        Some(ending) => format!(
            "the server ‘{name}’ {ending} while it was loaded; to see its output, start it yourself, and load it \
             without a command after ‘--’"
        ),
        None => format!(
            "the server ‘{name}’ accepted no more connections while it was loaded; its own log may say why"
        ),
    }
}
