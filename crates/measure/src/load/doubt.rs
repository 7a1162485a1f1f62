//! What is to be said against figures.

use serde::{Deserialize, Serialize};

/// Something that is to be said against the figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doubt {
    /// A stable word for it.
    pub code: String,
    /// Whether it makes the figures void, rather than only worth a remark.
    pub voids: bool,
    /// A sentence that says what was seen and what may help.
    pub text: String,
}

impl Doubt {
    pub(crate) fn new(code: &str, voids: bool, text: String) -> Doubt {
        Doubt { code: code.to_owned(), voids, text }
    }

    /// The system did not give the priority that was asked for.
    pub(crate) fn priority_refused() -> Doubt {
        let text =
            "the system does not allow a real-time priority here, so other programs can delay the generator";
        Doubt::new("priority-refused", false, text.to_owned())
    }

    /// Rows that are taken once were all taken.
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
