//! Doubts: the reasons not to trust the figures of a load.

use serde::{Deserialize, Serialize};

/// A reason not to trust the figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doubt {
    /// A stable code for programs.
    pub code: String,
    /// Whether the doubt makes the figures void; otherwise it is only shown as a remark.
    pub voids: bool,
    /// A sentence that says what was observed and what may help.
    pub text: String,
}

impl Doubt {
    pub(crate) fn new(code: &str, voids: bool, text: String) -> Doubt {
        Doubt { code: code.to_owned(), voids, text }
    }

    /// The doubt that the system did not grant the requested priority.
    pub(crate) fn priority_refused() -> Doubt {
        let text =
            "the system does not allow a real-time priority here, so other programs can delay the generator";
        Doubt::new("priority-refused", false, text.to_owned())
    }

    /// The doubt that all rows of data that may be used only once were used.
    pub(crate) fn used_up() -> Doubt {
        let text = "all rows of data that may be used only once were used, and no session began after that: give more \
                    rows, or use them in turn";
        Doubt::new("data-used-up", false, text.to_owned())
    }

    /// The doubt that a limit of `[abort]` was exceeded.
    pub(crate) fn aborted(what: &str) -> Doubt {
        Doubt::new("aborted", false, format!("the load was stopped before its end, because {what}"))
    }
}
