//! The order in which each block visits the arms: drawn from a seed, and rotated so that each arm is in each position
//! equally often.

use scruple_stats::rng::Pcg;

/// The order of visits of an interleaved measurement; the same seed gives the same order on every machine.
#[derive(Clone, Debug)]
pub struct VisitOrder {
    arms: usize,
    seed: u64,
}

impl VisitOrder {
    /// Makes a plan over this number of arms.
    pub fn new(arms: usize, seed: u64) -> VisitOrder {
        VisitOrder { arms, seed }
    }

    /// The arms in the order in which this block visits them.
    ///
    /// Blocks form groups of as many blocks as there are arms. Each group draws one random permutation and rotates it
    /// by one place per block, so that within a group every arm has every place once (a cyclic Latin square).
    ///
    /// ```
    /// use scruple_core::visit_order::VisitOrder;
    ///
    /// let plan = VisitOrder::new(3, 42);
    /// // In three blocks each arm stands once in each place.
    /// for place in 0..3 {
    ///     let mut arms: Vec<usize> = (0..3).map(|block| plan.order(block)[place]).collect();
    ///     arms.sort();
    ///     assert_eq!(arms, [0, 1, 2]);
    /// }
    /// ```
    pub fn order(&self, block: u32) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.arms).collect();
        if self.arms > 1 {
            let group = u64::from(block) / self.arms as u64;
            Pcg::with_stream(self.seed, group).shuffle(&mut order);
            order.rotate_left((u64::from(block) % self.arms as u64) as usize);
        }
        order
    }

    /// The number of bytes by which the environment of launches in this block is padded. All arms of a block share it,
    /// and it differs from block to block, because costs depend on stack addresses, which the padding moves.
    pub fn padding(&self, block: u32) -> usize {
        Pcg::with_stream(self.seed ^ 0x5ca1_ab1e, u64::from(block)).below(4096) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_arm_stands_once_in_every_place_of_a_group() {
        for arms in 1..6 {
            let plan = VisitOrder::new(arms, 7);
            for place in 0..arms {
                let mut seen: Vec<usize> = (0..arms as u32).map(|block| plan.order(block)[place]).collect();
                seen.sort_unstable();
                assert_eq!(seen, (0..arms).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn the_order_depends_on_the_seed_and_is_repeatable() {
        let orders = |seed| (0..40).map(|block| VisitOrder::new(4, seed).order(block)).collect::<Vec<_>>();
        assert_eq!(orders(1), orders(1));
        assert_ne!(orders(1), orders(2));
    }
}
