//! How far the nodes of a farm agree about a change that several of them measured.

use crate::render::node_spread::differ;
use scruple_core::history::{ByNodes, History, Series, find_changes};
use scruple_core::metric::metric;
use scruple_core::unit::change_between;
use scruple_stats::nodes::{CLASS, JoinedEffect, PAIRS};

/// The largest number of changes for which a sentence is written.
const MOST: usize = 6;

/// Writes a sentence for each change of a noisy metric that more than one node measured.
pub fn sentences(history: &History) -> Vec<String> {
    let nodes = &history.run.provenance.nodes;
    if nodes.len() < 2 {
        return Vec::new();
    }
    let judgement = find_changes(history);
    let noisy = |series: &'_ Series| !series.exact && !series.shifting;
    let changes = judgement.series.iter().filter(|one| noisy(one));
    let mut sentences: Vec<String> =
        changes.flat_map(|series| series.by_nodes.iter().map(|one| sentence(history, series, one))).collect();
    let more = sentences.len().saturating_sub(MOST);
    sentences.truncate(MOST);
    if more > 0 {
        sentences.push(format!("{more} more changes are not shown by node"));
    }
    sentences
}

fn sentence(history: &History, series: &Series, one: &ByNodes) -> String {
    let found = &one.found;
    let title = metric(&series.metric).map_or(series.metric.as_str(), |metric| &*metric.title);
    let head = format!("{title} of ‘{}’ at {}", series.subject, history.versions[one.at].short());
    match &found.joined {
        Ok(joined) => {
            format!("{head}: {}", text(joined, &found.names, &history.run.provenance.machine_class))
        }
        Err(why) => format!(
            "{head}: all readings together show a difference, but there is no verdict over {} nodes: {why} of one of them",
            found.names.len()
        ),
    }
}

fn text(joined: &JoinedEffect, names: &[String], class: &str) -> String {
    let interval = joined.effect.interval;
    let effect = change_between(joined.effect.ratio, interval.low, interval.high);
    let apart = format!("nodes differ {}", differ(joined, names));
    let counted: Vec<&str> = joined.counted.iter().map(|place| names[*place].as_str()).collect();
    let these = match names.len() - counted.len() {
        0 => counted.join(", "),
        others => format!("{}; {others} more took fewer than {PAIRS} rounds", counted.join(", ")),
    };
    match joined.of_class {
        true if interval.contains(1.0) => format!(
            "{effect} over {} nodes of the class {class}, which do not agree: no verdict for the class ({apart})",
            names.len()
        ),
        true => format!("{effect} over {} nodes of the class {class} ({apart})", names.len()),
        false if interval.contains(1.0) => {
            format!("{effect} on these nodes ({these}), which is not a verdict ({apart})")
        }
        false => format!(
            "{effect} on these nodes ({these}), and no verdict for their class, which takes {CLASS} ({apart})"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scruple_stats::nodes::joined;

    #[test]
    fn four_nodes_speak_for_their_class_and_fewer_for_themselves() {
        let node = |shift: f64| -> Vec<f64> { (0..12).map(|i| shift + 0.0001 * f64::from(i)).collect() };
        let all: Vec<Vec<f64>> = [0.010, 0.012, 0.014, 0.030].map(node).to_vec();
        let names: Vec<String> = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
        let sentences = |n: usize| text(&joined(&all[..n], 0.95).expect("nodes"), &names[..n], "m1");
        assert_eq!(
            sentences(4),
            "+1.72 % [+0.25, +3.21] over 4 nodes of the class m1 (nodes differ by ±0.9 %, from +1.06 % on a to +3.10 % on d; \
             I² 100 %)"
        );
        let few = vec![all[0].clone(), all[1][..7].to_vec()];
        let few = text(&joined(&few, 0.95).expect("a node"), &names[..2], "m1");
        assert!(few.contains("on these nodes (a; 1 more took fewer than 8 rounds), and no verdict"), "{few}");
        assert!(
            sentences(3).contains("on these nodes (a, b, c), and no verdict for their class, which takes 4")
        );
        let apart: Vec<Vec<f64>> = [-0.03, 0.02, -0.01, 0.03].map(node).to_vec();
        let apart = text(&joined(&apart, 0.95).expect("nodes"), &names, "m1");
        assert!(apart.contains("which do not agree: no verdict for the class"), "{apart}");
    }
}
