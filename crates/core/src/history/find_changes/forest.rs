//! The places of a series, and the earlier place that each is compared with.

/// One or several trees. A place that follows several others, as a merge does, is compared with one of them: the one
/// that it equals, where there is one.
#[derive(Clone, Debug, Default)]
pub(super) struct Forest {
    /// For each place, those that it directly follows, the first parent's first.
    before: Vec<Vec<usize>>,
    compared: Vec<Option<usize>>,
    order: Vec<usize>,
}

impl Forest {
    /// Every place compared with the first of those that it follows.
    pub fn new(before: Vec<Vec<usize>>) -> Forest {
        let compared = before.iter().map(|before| before.first().copied()).collect();
        let mut forest = Forest { before, compared, order: Vec::new() };
        forest.sort();
        forest
    }

    /// A line of places.
    pub fn line(count: usize) -> Forest {
        Forest::new((0..count).map(|place| place.checked_sub(1).into_iter().collect()).collect())
    }

    pub fn len(&self) -> usize {
        self.before.len()
    }

    /// The places that one follows.
    pub fn before(&self, place: usize) -> &[usize] {
        &self.before[place]
    }

    /// The place that one is compared with.
    pub fn compared(&self, place: usize) -> Option<usize> {
        self.compared[place]
    }

    /// All places, each behind the one that it is compared with.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// Compares a place with another of those that it follows.
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

    /// The number of the part that each place belongs to, once these places are cut off from those that they are
    /// compared with; and the number of parts.
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

    /// The places from the first to one, each compared with the one before it.
    pub fn line_to(&self, place: usize) -> Vec<usize> {
        let mut line = vec![place];
        while let Some(compared) = line.last().and_then(|last| self.compared[*last]) {
            line.push(compared);
        }
        line.reverse();
        line
    }
}
