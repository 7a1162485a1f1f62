//! Declares metrics of servers and of their requests.

use super::{Better, Metric, Pass, Quality};
use crate::unit::Unit;

impl Metric {
    /// Declares a figure of a server under load: noisy, and read while no instrument is attached.
    pub(super) const fn load(
        key: &'static str,
        unit: Unit,
        title: &'static str,
        help: &'static str,
    ) -> Metric {
        Metric::built_in(key, unit, Quality::Noisy, Pass::Timing, title, help)
    }

    /// Declares the cost of one request to a server, where the kernel itself only estimates it.
    pub(super) const fn estimated(
        key: &'static str,
        unit: Unit,
        title: &'static str,
        help: &'static str,
    ) -> Metric {
        Metric::built_in(key, unit, Quality::Estimated, Pass::Timing, title, help)
    }

    /// Declares the cost of one request to a server, read by a separate instrument.
    pub(super) const fn counted(
        key: &'static str,
        unit: Unit,
        title: &'static str,
        help: &'static str,
    ) -> Metric {
        Metric::built_in(key, unit, Quality::Near, Pass::Counting, title, help)
    }

    /// The same metric, for which higher is better.
    pub(super) const fn more_is_better(mut self) -> Metric {
        self.better = Better::Higher;
        self
    }
}
