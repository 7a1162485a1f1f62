//! Which metrics decide a gate.

/// Which measured metrics decide a gate. All fields are empty if there is no gate.
#[derive(Clone, Debug, Default)]
pub struct Deciding {
    /// Whether counts decide. They are then read often enough even beyond the budget.
    pub counts: bool,
    /// The keys of the deciding metrics of the timing pass. If there are any, only their verdicts end that pass before
    /// the budget does.
    pub times: Vec<String>,
}

impl Deciding {
    /// Whether counts decide and times do not.
    pub(super) fn only_counts(&self) -> bool {
        self.counts && self.times.is_empty()
    }
}
