//! Describes how far the nodes of a farm agree.

use scruple_core::unit::{change, relative_spread};
use scruple_stats::nodes::JoinedEffect;

/// Describes how much the nodes differ, between which extremes, and how much of that is not noise. The text continues
/// ‘nodes differ’.
pub fn differ(joined: &JoinedEffect, names: &[String]) -> String {
    let extreme = |sign: f64| {
        let by = |place: &usize| sign * joined.each[*place];
        let place = (0..names.len()).max_by(|a, b| by(a).total_cmp(&by(b))).unwrap_or(0);
        format!("{} on {}", change(joined.each[place]), names[place])
    };
    let spread = joined.spread.map_or(String::new(), |spread| format!("by ±{}, ", relative_spread(spread)));
    let share = joined.share.map_or(String::new(), |share| format!("; I² {:.0} %", 100.0 * share));
    format!("{spread}from {} to {}{share}", extreme(-1.0), extreme(1.0))
}
