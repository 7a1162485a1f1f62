//! The outbox: runs for a store on a server are first written to a local file, and copied to the server when they have
//! ended. Therefore no outage of the server affects a measurement, and runs that the server could not accept wait in
//! the file.

use super::copy::Copied;
use super::{Store, StoreError};
use crate::address::{ServerUrl, StoreAddress};
use crate::digest::digest;
use crate::paths;
use crate::render::output;
use scruple_core::run::RunState;

impl Store {
    /// Opens the store for new runs. For a server this is a local file, and the server is asked whether it will accept
    /// the runs. A server that does not answer is not an error.
    ///
    /// # Errors
    /// The file cannot be written, or the server answers and refuses.
    pub fn open_for_runs(address: &StoreAddress) -> Result<Store, StoreError> {
        let StoreAddress::Server(url) = address else { return Store::open(address) };
        let writable = |server: Store| server.check_rights().map(|()| server);
        let server = match Store::open(address).and_then(writable) {
            Ok(server) => Some(server),
            Err(error @ StoreError::Unreachable { .. }) => {
                output::warn(&format!("{error}. Runs are kept on this machine until that is done"));
                None
            }
            Err(error) => return Err(error),
        };
        let mut store = Store::open(&outbox_of(url)?)?;
        store.server = Some(url.clone());
        if let Some(server) = server {
            for run in store.list(usize::MAX)?.iter().filter(|run| run.state != RunState::Running) {
                store.hand_over_to(&server, &run.id);
            }
        }
        Ok(store)
    }

    /// Checks that this user may add runs, without adding one.
    fn check_rights(&self) -> Result<(), StoreError> {
        let asked = self.database.execute("INSERT INTO run SELECT * FROM run WHERE 1 = 0", &[]);
        asked.map(drop).map_err(|failure| self.error(failure))
    }

    /// Copies a run that has ended to the server, if there is one.
    pub(super) fn hand_over(&self, id: &str) {
        let Some(url) = &self.server else { return };
        match Store::open(&StoreAddress::Server(url.clone())) {
            Ok(server) => self.hand_over_to(&server, id),
            Err(error) => self.warn_that_run_waits(id, &error),
        }
    }

    fn hand_over_to(&self, server: &Store, id: &str) {
        match self.copy_to(server, id, true) {
            Ok(Copied::UnderWay) => {}
            Ok(_) => {
                // If the removal fails, the run is found on the server the next time, and removed then.
                let _ = self.remove(&[id.to_owned()]);
            }
            // Another process with this file has put the run there meanwhile.
            Err(_) if self.has(id).is_ok_and(|here| !here) => {}
            Err(error) => self.warn_that_run_waits(id, &error),
        }
    }

    /// Says that a run stays in this file, and why.
    fn warn_that_run_waits(&self, id: &str, error: &StoreError) {
        let why = match error {
            StoreError::Unreachable { .. } => "the server does not answer".to_owned(),
            _ => error.to_string(),
        };
        output::warn(&format!(
            "the run {id} is kept in ‘{}’: {why}. The next run with this store puts it there{}",
            self.address,
            self.server.as_ref().map_or_else(String::new, |url| {
                format!(", and so does `{}`", copy_command(&self.address, &StoreAddress::Server(url.clone())))
            })
        ));
    }

    /// Returns where a run of this store is now, or `None` if it waits for the server, which was reported at that time.
    pub(super) fn address_of_run(&self, id: &str) -> Option<StoreAddress> {
        match &self.server {
            Some(url) => self.has(id).is_ok_and(|here| !here).then(|| StoreAddress::Server(url.clone())),
            None => Some(self.address.clone()),
        }
    }

    /// Asks the server for a run, if this is a file of waiting runs. Returns `None` if the server does not have the
    /// run.
    pub(super) fn on_server<T>(
        &self,
        ask: impl FnOnce(&Store) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        match self.server_of_waiting_runs().map(|server| ask(&server)) {
            None | Some(Err(StoreError::NoSuchRun { .. })) => Ok(None),
            Some(answer) => answer.map(Some),
        }
    }

    /// Returns the store on the server, if this is a file of waiting runs and the server answers.
    pub(super) fn server_of_waiting_runs(&self) -> Option<Store> {
        let url = self.server.as_ref()?;
        Store::open_existing(&StoreAddress::Server(url.clone())).ok()
    }
}

/// Returns the address of the file in which runs wait for this server.
fn outbox_of(url: &ServerUrl) -> Result<StoreAddress, StoreError> {
    let name = digest(&url.to_string());
    match paths::data_file(&format!("waiting-{}.db", &name[..12])) {
        Ok(path) => Ok(StoreAddress::File(path)),
        Err(fault) => Err(StoreError::Other { path: url.to_string(), message: fault.message }),
    }
}

/// Returns the command that copies the runs that wait in a file to their server.
pub(super) fn copy_command(file: &StoreAddress, server: &StoreAddress) -> String {
    shell_words::join(["scruple", "store", "copy", &file.to_string(), &server.to_string()])
}

/// Returns the file of runs that wait for this store, and their number, or `None` if none wait.
pub fn waiting(address: &StoreAddress) -> Option<(StoreAddress, usize)> {
    let StoreAddress::Server(url) = address else { return None };
    let file = outbox_of(url).ok()?;
    let runs = Store::open_existing(&file).ok()?.list(usize::MAX).ok()?;
    (!runs.is_empty()).then_some((file, runs.len()))
}
