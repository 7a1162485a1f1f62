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
}
