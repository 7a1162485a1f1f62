//! How metrics of servers and of their requests are declared.

use super::{Better, Metric, Pass, Quality};
use crate::unit::Unit;

impl Metric {
    /// A figure of a server under load: noisy, and read while nothing else is attached.
    pub(super) const fn load(
        key: &'static str,
        unit: Unit,
        title: &'static str,
        help: &'static str,
    ) -> Metric {
        Metric::built_in(key, unit, Quality::Noisy, Pass::Timing, title, help)
    }

    /// The cost of one request to a server, where the kernel itself only estimates it.
    pub(super) const fn estimated(
        key: &'static str,
        unit: Unit,
        title: &'static str,
        help: &'static str,
    ) -> Metric {
        Metric::built_in(key, unit, Quality::Estimated, Pass::Timing, title, help)
    }

    /// The cost of one request to a server, read by a separate instrument.
    pub(super) const fn counted(
        key: &'static str,
        unit: Unit,
        title: &'static str,
        help: &'static str,
    ) -> Metric {
        Metric::built_in(key, unit, Quality::Near, Pass::Counting, title, help)
    }

    /// The same metric with the opposite better direction.
    pub(super) const fn more_is_better(mut self) -> Metric {
        self.better = Better::Higher;
        self
    }
}
