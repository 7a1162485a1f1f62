//! One effect from several machines (nodes), each of which has weighed both arms.
//!
//! Machines differ: a change of 2 % on one may be 3 % on the next. An interval from all pairs together does not account
//! for that: where effects differ by 1 % from node to node, it holds the effect on the class of machines in 46 to 87 %
//! of cases instead of 95 %. So a node is a stratum: its own effect is the Hodges–Lehmann centre of its paired log
//! ratios. The effect on the class is the mean of these, with Student's interval over the nodes (IntHout, Ioannidis and
//! Borm, "The Hartung-Knapp-Sidik-Jonkman method for random effects meta-analysis is straightforward and considerably
//! outperforms the standard DerSimonian-Laird method" (2014), with equal weights). There is no preliminary test of
//! whether nodes differ, since that test misses differences that the interval must cover.

use super::Interval;
use super::paired::{self, Effect, Why};
use super::processes;
use super::ranks::{hodges_lehmann, signed_rank_interval};
use super::summary::{mean, sd};

/// With at least this many nodes, a verdict is about the class of machines; with fewer, about these nodes only. With
/// two nodes, the interval for the class is more than ten times as wide as with four.
pub const CLASS: usize = 4;

/// The number of pairs that a node must have to count where there are fewer than [`CLASS`] nodes: not more than runs
/// and histories take before they look at their readings for the first time.
pub const PAIRS: usize = 8;

/// The effect that several nodes show together.
#[derive(Clone, Debug, PartialEq)]
pub struct JoinedEffect {
    /// The joint effect.
    pub effect: Effect,
    /// Whether `effect` is that on the class of machines; else it is that on these nodes only.
    pub of_class: bool,
    /// The places of the nodes that `effect` rests on.
    pub counted: Vec<usize>,
    /// The effect of each node as a ratio, in the order of the nodes.
    pub each: Vec<f64>,
    /// The relative standard deviation of the true effects of the nodes: their observed spread without the noise of
    /// each node. `None` for fewer than two nodes, or where a node has a single pair.
    pub spread: Option<f64>,
    /// The share of the observed variance between nodes that is not noise (I² of Higgins and Thompson, 2002). It grows
    /// with the number of pairs.
    pub share: Option<f64>,
}

/// A joint effect over several nodes, with their names.
#[derive(Clone, Debug, PartialEq)]
pub struct OverNodes {
    /// The names of the nodes, in the order of [`JoinedEffect::each`].
    pub names: Vec<String>,
    /// The joint effect of the nodes, or why it is not known.
    pub joined: Result<JoinedEffect, Why>,
}

/// The places of the nodes that count, by the number of their pairs: all, where they stand for their class; else those
/// with at least [`PAIRS`], since fewer hardly show the noise of a node.
pub fn counted(pairs: &[usize]) -> Vec<usize> {
    let counts = |place: &usize| pairs.len() >= CLASS || pairs[*place] >= PAIRS;
    (0..pairs.len()).filter(counts).collect()
}

/// Joins the effects of nodes. `nodes` holds the log ratio ln(arm/reference) of each block of each node.
///
/// # Errors
/// There is no pair, a ratio is not finite, or there are two or three nodes, each with fewer than [`PAIRS`] pairs.
pub fn joined(nodes: &[Vec<f64>], level: f64) -> Result<JoinedEffect, Why> {
    let nodes: Vec<&Vec<f64>> = nodes.iter().filter(|ratios| !ratios.is_empty()).collect();
    if nodes.iter().any(|ratios| ratios.iter().any(|ratio| !ratio.is_finite())) {
        return Err(Why::NotFinite);
    }
    let centres: Vec<f64> = nodes.iter().map(|ratios| hodges_lehmann(ratios)).collect();
    let pairs: usize = nodes.iter().map(|ratios| ratios.len()).sum();
    let k = nodes.len();
    let lengths: Vec<usize> = nodes.iter().map(|ratios| ratios.len()).collect();
    let counted = if k == 1 { vec![0] } else { counted(&lengths) };
    let effect = match k {
        0 => return Err(Why::TooFew { have: 0, need: paired::blocks_needed(level) }),
        1 => paired::effect_of_log_ratios(nodes[0], level)?,
        2..CLASS => match counted[..] {
            [] => {
                let most = lengths.into_iter().max().unwrap_or(0);
                return Err(Why::TooFew { have: most, need: PAIRS });
            }
            [only] => paired::effect_of_log_ratios(nodes[only], level)?,
            _ => {
                let own: Vec<&Vec<f64>> = counted.iter().map(|place| nodes[*place]).collect();
                on_these(&own, &counted.iter().map(|place| centres[*place]).collect::<Vec<f64>>(), level)?
            }
        },
        _ => {
            let over_nodes = processes::of_logarithms(&centres, level, "mean of nodes, Student over nodes");
            Effect { n: pairs, ..over_nodes.ok_or(Why::TooFew { have: k, need: CLASS })? }
        }
    };
    let (spread, share) = heterogeneity(&nodes, &centres);
    let each = centres.iter().map(|centre| centre.exp()).collect();
    Ok(JoinedEffect { effect, of_class: k >= CLASS, counted, each, spread, share })
}

/// The residuals of all pairs about the centre of their node. Each node has the same weight, however many pairs it has.
/// The factor `wider` corrects for the centres having been fitted to the same pairs.
pub fn aligned(nodes: &[&Vec<f64>], centres: &[f64]) -> Vec<f64> {
    let pairs: usize = nodes.iter().map(|ratios| ratios.len()).sum();
    let wider = (pairs as f64 / (pairs - nodes.len()) as f64).sqrt();
    let left = nodes.iter().zip(centres).flat_map(|(ratios, own)| {
        let weight = wider * pairs as f64 / (nodes.len() * ratios.len()) as f64;
        ratios.iter().map(move |ratio| weight * (ratio - own))
    });
    left.collect()
}

/// The effect on these nodes only. The residuals about the centre of each node show how well the mean of the centres is
/// known.
fn on_these(nodes: &[&Vec<f64>], centres: &[f64], level: f64) -> Result<Effect, Why> {
    let pairs = nodes.iter().map(|ratios| ratios.len()).sum();
    let centre = mean(centres);
    let around = signed_rank_interval(&aligned(nodes, centres), level)
        .ok_or(Why::TooFew { have: pairs, need: PAIRS })?;
    let interval = Interval { low: centre + around.low, high: centre + around.high, level };
    Ok(Effect {
        ratio: centre.exp(),
        interval: interval.map(f64::exp),
        n: pairs,
        method: "mean of these nodes, signed ranks of what is left in each",
    })
}

/// The standard deviation between nodes beyond noise, and the share of the variance that it accounts for: the moment
/// estimates of DerSimonian and Laird (1986), with equal weights of nodes.
fn heterogeneity(nodes: &[&Vec<f64>], centres: &[f64]) -> (Option<f64>, Option<f64>) {
    let Some(seen) = sd(centres).map(|sd| sd * sd) else { return (None, None) };
    let within: Vec<f64> =
        nodes.iter().filter_map(|ratios| Some(sd(ratios)?.powi(2) / ratios.len() as f64)).collect();
    if within.len() < nodes.len() {
        return (None, None);
    }
    let beyond = (seen - mean(&within)).max(0.0);
    (Some(beyond.sqrt()), Some(if seen > 0.0 { beyond / seen } else { 0.0 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_nodes_have_the_interval_of_student_over_their_centres() {
        // Centres 1, 2, 3, 4 (per mille): t with three degrees of freedom is 3.182446.
        let nodes: Vec<Vec<f64>> =
            [0.001, 0.002, 0.003, 0.004].iter().map(|centre| vec![*centre; 3]).collect();
        let found = joined(&nodes, 0.95).expect("four nodes");
        let half = 3.182_446 * (5.0_f64 / 3.0).sqrt() * 0.001 / 2.0;
        assert!(found.of_class);
        assert!((found.effect.ratio.ln() - 0.0025).abs() < 1e-12);
        assert!((found.effect.interval.high.ln() - 0.0025 - half).abs() < 1e-8, "{found:?}");
        // The readings of each node are equal, so none of the spread is noise.
        assert!((found.spread.expect("known") - (5.0_f64 / 3.0).sqrt() * 0.001).abs() < 1e-12);
        assert_eq!(found.share, Some(1.0));
    }

    #[test]
    fn fewer_nodes_are_no_class_and_need_pairs() {
        let node = |shift: f64, n: usize| -> Vec<f64> { (0..n).map(|i| shift + 0.001 * i as f64).collect() };
        let two = joined(&[node(0.0, 12), node(0.5, 12)], 0.95).expect("enough pairs");
        assert!(!two.of_class && two.effect.interval.high < 1.30, "their difference is not in it: {two:?}");
        assert_eq!(
            joined(&[node(0.0, 6), node(0.5, 7)], 0.95).map_err(|why| why.to_string()),
            Err("7 readings are too few; at least 8 are needed".to_owned())
        );
        let one = joined(&[node(0.0, 7), node(0.5, 12)], 0.95).expect("one node has enough pairs");
        let alone = joined(&[node(0.5, 12)], 0.95).expect("one node");
        assert_eq!((one.effect, one.counted, one.each.len()), (alone.effect, vec![1], 2));
        assert_eq!(joined(&[node(0.0, 7), node(0.5, 8), node(0.1, 20)], 0.95).expect("two").counted, [1, 2]);
        assert!(!joined(&[node(0.0, 20)], 0.95).expect("one").of_class);
        assert!(joined(&[], 0.95).is_err());
        assert_eq!(joined(&[vec![f64::NAN]], 0.95), Err(Why::NotFinite));
    }
}
