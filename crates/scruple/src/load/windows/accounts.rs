//! The accounts of a server around windows of load: what its processes have used.

use scruple_measure::load::cost::server_windows::ServerWindows;
use scruple_measure::load::cost::sheet::Sheet;

/// Reads the accounts of a server, on this machine or on another.
pub trait ServerAccounts {
    /// Starts a window. `handled` returns the number of requests of the load that have been handled so far.
    ///
    /// # Errors
    /// The server is gone.
    fn begin(&mut self, handled: &dyn Fn() -> u64) -> Result<(), String>;

    /// Ends a window and starts the next.
    ///
    /// # Errors
    /// The server is gone.
    fn mark(&mut self, handled: &dyn Fn() -> u64) -> Result<(), String>;

    /// Ends a window.
    fn end(&mut self, handled: &dyn Fn() -> u64);

    /// Returns the number of windows so far.
    fn windows(&mut self) -> usize;

    /// Returns the cost of a request in each window from `first` on, by the key of the counter's metric.
    fn costs_from(&mut self, first: usize) -> Vec<Vec<(String, f64)>>;

    /// Returns the sheet of all windows.
    ///
    /// # Errors
    /// Why the accounts are lost, as a clause.
    fn sheet(self: Box<Self>) -> Result<Sheet, String>;
}

impl ServerAccounts for ServerWindows {
    fn begin(&mut self, handled: &dyn Fn() -> u64) -> Result<(), String> {
        ServerWindows::begin(self, handled, &mut Vec::new).map_err(|error| error.to_string())
    }

    fn mark(&mut self, handled: &dyn Fn() -> u64) -> Result<(), String> {
        ServerWindows::mark(self, handled, &mut Vec::new).map_err(|error| error.to_string())
    }

    fn end(&mut self, handled: &dyn Fn() -> u64) {
        ServerWindows::end(self, handled, None, &mut Vec::new);
    }

    fn windows(&mut self) -> usize {
        ServerWindows::windows(self)
    }

    fn costs_from(&mut self, first: usize) -> Vec<Vec<(String, f64)>> {
        ServerWindows::costs_from(self, first)
    }

    fn sheet(self: Box<Self>) -> Result<Sheet, String> {
        Ok(self.finish())
    }
}
