//! A server under load: finds the address, and keeps the connections from turn to turn.
//!
//! A turn has one clock and one schedule, from its first request to its last. Its parts, and the marks at which the
//! server's accounts are read, are times on that clock; no thread waits for another at them.

mod load_error;
mod threads;
mod ticks;
mod turn_event;
mod watch;

pub use load_error::LoadError;
pub use turn_event::{Handled, TurnEvent};

use super::failure::Failure;
use super::generator::Generator;
use super::plan::Plan;
use super::result::LoadResult;
use super::shared::{LoadProgress, LoadShared};
use super::socket;
use super::target::{Address, Target};
use super::tls::TlsSetup;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use threads::run_threads;

/// A server with its connections, which are kept from one turn to the next.
pub struct Session {
    shared: Arc<LoadShared>,
    generators: Vec<Generator>,
}

impl Session {
    /// Prepares everything that does not depend on one turn. The first turn opens the connections.
    ///
    /// # Errors
    /// Fails if the plan is impossible, or no address accepts a connection.
    pub fn new(target: &Target, plan: &Plan) -> Result<Session, LoadError> {
        plan.validate().map_err(LoadError::Plan)?;
        let most = plan.connections.max(plan.grow_to);
        let wanted = u64::from(most) + 64;
        socket::allow_descriptors(wanted).map_err(|limit| LoadError::Descriptors {
            connections: most,
            wanted,
            limit,
        })?;
        let tls = target.tls.as_ref().map(|trust| TlsSetup::new(target, trust));
        let tls = tls.transpose().map_err(LoadError::Tls)?;
        let shared =
            Arc::new(LoadShared::new(target, plan, reachable(target)?, tls).map_err(LoadError::Plan)?);
        let plan = Arc::new(plan.clone());
        let generators = (0..plan.threads.count).map(|thread| Generator::new(&shared, &plan, thread));
        Ok(Session { generators: generators.collect::<io::Result<_>>()?, shared })
    }

    /// Carries out a plan from the first request to the last answer. It may differ from the session's plan in its
    /// pace, length, warm-up, parts and seed. The call takes at most the warm-up, the duration and two time-outs: one
    /// for connecting, and one for answers after the last request.
    ///
    /// If `interrupted` becomes true, the turn ends early and the figures so far are returned.
    ///
    /// # Errors
    /// Fails if no connection can be opened, or more answers time out than the plan allows. Everything else that
    /// happens after the first request is counted in the result.
    pub fn turn(
        &mut self,
        plan: &Plan,
        interrupted: &AtomicBool,
        on_event: &mut dyn FnMut(TurnEvent<'_>),
    ) -> Result<LoadResult, LoadError> {
        plan.validate().map_err(LoadError::Plan)?;
        let plan = Arc::new(plan.clone());
        self.shared.begin();
        self.generators.iter_mut().for_each(|generator| generator.begin(&plan));
        run_threads(&self.shared, &plan, &mut self.generators, interrupted, on_event)
    }
}

/// Loads a server with a plan, in a session of one turn.
///
/// If `interrupted` becomes true, the run ends early and the figures so far are returned. `progress` is called about
/// four times a second.
///
/// # Errors
/// Fails as [`Session::new`] and [`Session::turn`] do.
pub fn run(
    target: &Target,
    plan: &Plan,
    interrupted: &AtomicBool,
    progress: &mut dyn FnMut(&LoadProgress),
) -> Result<LoadResult, LoadError> {
    run_watched(target, plan, interrupted, progress, &|| {})
}

/// Like [`run`]; `at_end` is called after everything was answered or given up, before the remaining connections are
/// closed.
///
/// # Errors
/// Fails as [`run`] does.
pub fn run_watched(
    target: &Target,
    plan: &Plan,
    interrupted: &AtomicBool,
    progress: &mut dyn FnMut(&LoadProgress),
    at_end: &(dyn Fn() + Sync),
) -> Result<LoadResult, LoadError> {
    let mut session = Session::new(target, plan)?;
    let mut on_event = |moment: TurnEvent<'_>| {
        if let TurnEvent::Progress(seen) = moment {
            progress(seen);
        }
    };
    let result = session.turn(plan, interrupted, &mut on_event)?;
    at_end();
    Ok(result)
}

fn unreachable(address: &Address, error: &std::io::Error) -> LoadError {
    if let (Address::Unix(path), std::io::ErrorKind::NotFound) = (address, error.kind()) {
        return LoadError::NoSocket { path: path.display().to_string() };
    }
    let class = super::connection::unconnected(error);
    // The class of a refused connection already says everything that the system's error says.
    let system = if class == Failure::Refused { String::new() } else { format!(" ({error})") };
    LoadError::Unreachable {
        address: address.to_string(),
        class,
        detail: format!("{system}; is the server running?"),
    }
}

/// The first address that accepts a connection. With TLS the last address is not tried: a server would report a
/// handshake that has failed, and the first turn finds out as well.
fn reachable(target: &Target) -> Result<Address, LoadError> {
    let mut refused = None;
    for (index, address) in target.addresses.iter().enumerate() {
        if target.tls.is_some() && index + 1 == target.addresses.len() {
            return Ok(address.clone());
        }
        match super::socket::accepts(address, Duration::from_secs(5)) {
            Ok(()) => return Ok(address.clone()),
            Err(error) => {
                refused = Some(unreachable(address, &error));
            }
        }
    }
    Err(refused.unwrap_or_else(|| LoadError::Plan("the target has no address".to_owned())))
}
