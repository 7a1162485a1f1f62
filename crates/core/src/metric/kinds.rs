//! The closed sets that describe a metric: its direction, its pass, its quality.

use crate::words::words;

words! {
    /// The direction of a metric that is an improvement.
    pub enum Better {
        /// Less is better: times, bytes, counts.
        Lower = "lower",
        /// More is better: throughput.
        Higher = "higher",
    }
}

words! {
    /// The pass that reads a metric: a part of a run in which no other instrument disturbs that metric.
    pub enum Pass {
        /// The program runs untouched; clocks and the kernel's accounting are read.
        Timing = "timing",
        /// The program is stopped at its exit, so that its peak memory can be read; its output is checked here too.
        Memory = "memory",
        /// The allocation counter and the runtime's own counters are attached.
        Counting = "counting",
        /// Nothing is launched: the cost of building the program is recorded.
        Build = "build",
    }
}

words! {
    /// The quality of a figure, from best to worst. Absence is not a quality: an absent figure has a reason.
    pub enum Quality {
        /// Counted: the same program in the same circumstances gives the same number.
        Exact = "exact",
        /// Counted with a small error, or not quite the same each time.
        Near = "near",
        /// Measured, and different each time, so that only the distribution means something.
        Noisy = "noisy",
        /// Extrapolated from a sample of events.
        Sampled = "sampled",
        /// Computed from other figures under an assumption.
        Estimated = "estimated",
    }
}

impl Quality {
    /// The mark of the quality beside a figure in tables; empty for the qualities that a reader expects.
    pub fn mark(self) -> &'static str {
        match self {
            Quality::Exact | Quality::Noisy => "",
            Quality::Near => "≈",
            Quality::Sampled => "~",
            Quality::Estimated => "?",
        }
    }
}
