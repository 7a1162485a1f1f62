//! The places of a series, and the earlier place that each place is compared with.

/// One or more trees of places. A place that follows several others, as a merge does, is compared with only one of
/// them: the one that it equals, if there is one.
#[derive(Clone, Debug, Default)]
pub(super) struct Forest {
    /// For each place, the places that it directly follows, the first parent's first.
    before: Vec<Vec<usize>>,
    compared: Vec<Option<usize>>,
    order: Vec<usize>,
}

impl Forest {
    /// Compares every place with the first of the places that it follows.
    pub fn new(before: Vec<Vec<usize>>) -> Forest {
        let compared = before.iter().map(|before| before.first().copied()).collect();
        let mut forest = Forest { before, compared, order: Vec::new() };
        forest.sort();
        forest
    }

    /// A forest of one line of `count` places.
    pub fn line(count: usize) -> Forest {
        Forest::new((0..count).map(|place| place.checked_sub(1).into_iter().collect()).collect())
    }

    pub fn len(&self) -> usize {
        self.before.len()
    }

    /// The places that `place` directly follows.
    pub fn before(&self, place: usize) -> &[usize] {
        &self.before[place]
    }

    /// The place that `place` is compared with.
    pub fn compared(&self, place: usize) -> Option<usize> {
        self.compared[place]
    }

    /// All places, each after the place that it is compared with.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// Compares `place` with `to`, which must be one of the places that it follows.
    pub fn attach(&mut self, place: usize, to: usize) {
        self.compared[place] = Some(to);
        self.sort();
    }

    fn sort(&mut self) {
        let mut after: Vec<Vec<usize>> = vec![Vec::new(); self.len()];
        let mut order: Vec<usize> = Vec::with_capacity(self.len());
        for (place, compared) in self.compared.iter().enumerate() {
            match compared {
                Some(compared) => after[*compared].push(place),
                None => order.push(place),
            }
        }
        let mut next = 0;
        while let Some(place) = order.get(next) {
            order.extend_from_slice(&after[*place]);
            next += 1;
        }
        self.order = order;
    }

    /// Splits the forest: each place of `cuts` is separated from the place that it is compared with. Returns the number
    /// of the part of each place, and the number of parts.
    pub fn parts(&self, cuts: &[usize]) -> (Vec<usize>, usize) {
        let mut cut = vec![false; self.len()];
        cuts.iter().for_each(|place| cut[*place] = true);
        let (mut parts, mut count) = (vec![0; self.len()], 0);
        for &place in &self.order {
            parts[place] = match self.compared[place] {
                Some(compared) if !cut[place] => parts[compared],
                _ => {
                    count += 1;
                    count - 1
                }
            };
        }
        (parts, count)
    }

    /// The places from a root to `place`, each compared with the one before it.
    pub fn line_to(&self, place: usize) -> Vec<usize> {
        let mut line = vec![place];
        while let Some(compared) = line.last().and_then(|last| self.compared[*last]) {
            line.push(compared);
        }
        line.reverse();
        line
    }
}
