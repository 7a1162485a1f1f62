//! The form that readings have in the journal of a run under way.

use scruple_core::metric::Quality;
use scruple_core::sample::Reading;
use scruple_core::unit::Unit;
use serde::{Deserialize, Serialize};

/// A reading in the journal. Its keys are short, because a run may have a million readings.
#[derive(Serialize, Deserialize)]
pub struct JournalEntry {
    k: String,
    u: Unit,
    q: Quality,
    s: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    v: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

impl From<&Reading> for JournalEntry {
    fn from(reading: &Reading) -> JournalEntry {
        JournalEntry {
            k: reading.key.clone(),
            u: reading.unit.clone(),
            q: reading.quality,
            s: reading.source.clone(),
            v: reading.value.as_ref().ok().copied(),
            why: reading.value.as_ref().err().cloned(),
        }
    }
}

impl From<JournalEntry> for Reading {
    fn from(line: JournalEntry) -> Reading {
        let value = line.v.ok_or_else(|| line.why.unwrap_or_default());
        Reading { key: line.k, unit: line.u, quality: line.q, source: line.s, value }
    }
}
