//! Doubts: reasons not to trust figures.

use serde::{Deserialize, Serialize};

/// A reason not to trust the figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doubt {
    /// A stable code.
    pub code: String,
    /// Whether it makes the figures void, rather than only calling for a remark.
    pub voids: bool,
    /// A sentence that says what was observed and what may help.
    pub text: String,
}

impl Doubt {
    pub(crate) fn new(code: &str, voids: bool, text: String) -> Doubt {
        Doubt { code: code.to_owned(), voids, text }
    }

    /// The system did not grant the requested priority.
    pub(crate) fn priority_refused() -> Doubt {
        let text =
            "the system does not allow a real-time priority here, so other programs can delay the generator";
        Doubt::new("priority-refused", false, text.to_owned())
    }

    /// All rows of data that is used once were used.
    pub(crate) fn used_up() -> Doubt {
        let text = "the data that are taken once were used up, and no session began from then on: give more rows, or \
                    take them in turn";
        Doubt::new("data-used-up", false, text.to_owned())
    }

    /// A limit of `[abort]` was exceeded.
    pub(crate) fn aborted(what: &str) -> Doubt {
        Doubt::new("aborted", false, format!("the load was given up before its end, because {what}"))
    }
}
