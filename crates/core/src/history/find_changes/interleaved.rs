//! The cost of versions that were weighed in turns, without the fluctuations of the machine.
//!
//! The logarithm of a reading is the sum of the cost of its version, an effect of its block, and noise. Costs and block
//! effects are fitted in alternation (Tukey, "Exploratory Data Analysis" (1977), two-way fits). Huber's estimate is
//! used instead of the median, since it loses a twentieth of the information instead of a third (Huber, "Robust
//! Estimation of a Location Parameter" (1964)).

use scruple_stats::sorting::SortedMap;

use scruple_stats::quantile::median;

/// The tuning constant of Huber's estimate: a residual beyond this many standard deviations has no more influence than
/// one at this distance.
const REACH: f64 = 1.345;

/// The weight, in readings, of the common variance when the variance of a single version is estimated.
const SHRINK: f64 = 10.0;

/// The logarithms of the readings of one version, by block.
pub(super) type Cells = SortedMap<u32, f64>;

/// The fitted cost of each version, with the effects of blocks removed.
pub(super) struct InterleavedFit {
    /// The centre of each version, as a logarithm.
    pub centres: Vec<f64>,
    /// The variance of each centre.
    pub variances: Vec<f64>,
    /// The effect of each block on the logarithms; 0 for blocks that hold a single version.
    pub blocks: SortedMap<u32, f64>,
    /// The degrees of freedom of the variances.
    pub freedom: f64,
}

/// Fits versions and blocks. `floor` is the smallest possible standard deviation of a single logarithm.
///
/// `None` where the versions were not weighed in turns: fewer than four in five have two readings in blocks that also
/// hold another version, or the blocks do not connect all versions.
pub(super) fn fit(versions: &[Cells], floor: f64) -> Option<InterleavedFit> {
    let sizes = sizes(versions);
    let shared = |cells: &Cells| cells.keys().filter(|block| sizes[block] > 1).count();
    let well = versions.iter().filter(|cells| shared(cells) >= 2).count();
    if versions.len() < 2 || well * 5 < versions.len() * 4 || !linked(versions) {
        return None;
    }
    let mut centres: Vec<f64> = versions.iter().map(centre_of).collect();
    let table = CellTable::of(versions, &sizes);
    let mut effects = vec![0.0; sizes.len()];
    let mut scale = f64::INFINITY;
    let mut values = Vec::new();
    for _ in 0..40 {
        table.refit_blocks(&centres, scale, &mut effects);
        scale = table.spread(&centres, &effects).max(floor);
        let mut moved: f64 = 0.0;
        for (cells, centre) in table.versions.iter().zip(&mut centres) {
            values.clear();
            values.extend(cells.iter().map(|(block, value)| value - effects[*block]));
            let next = huber(&values, *centre, scale);
            moved = moved.max((next - *centre).abs());
            *centre = next;
        }
        if moved < 1e-4 * scale {
            break;
        }
    }
    table.refit_blocks(&centres, scale, &mut effects);
    let blocks: SortedMap<u32, f64> = SortedMap::from_iter(sizes.keys().copied().zip(effects));
    let (variances, freedom) = variances(versions, &centres, &blocks, &sizes, scale, floor);
    Some(InterleavedFit { centres, variances, blocks, freedom })
}

/// The cells of all versions with blocks numbered consecutively, for speed, since the fit visits them many times.
struct CellTable {
    versions: Vec<Vec<(usize, f64)>>,
    /// The number of versions in each block.
    sizes: Vec<usize>,
}

impl CellTable {
    fn of(versions: &[Cells], sizes: &SortedMap<u32, usize>) -> CellTable {
        let places: SortedMap<u32, usize> =
            SortedMap::from_iter(sizes.keys().enumerate().map(|(place, block)| (*block, place)));
        let row = |cells: &Cells| cells.iter().map(|(block, value)| (places[block], *value)).collect();
        CellTable { versions: versions.iter().map(row).collect(), sizes: sizes.values().copied().collect() }
    }

    /// Fits the effect of each block as the centre of its residuals. The effects have median 0, so that versions keep
    /// their level.
    fn refit_blocks(&self, centres: &[f64], scale: f64, effects: &mut [f64]) {
        let mut residuals: Vec<Vec<f64>> = vec![Vec::new(); self.sizes.len()];
        for (cells, centre) in self.versions.iter().zip(centres) {
            for (block, value) in cells.iter().filter(|(block, _)| self.sizes[*block] > 1) {
                residuals[*block].push(value - centre);
            }
        }
        // The first fit uses medians, since the scale is not known yet. Later fits use Huber's estimate, which is more
        // efficient. Also, the median of two or three residuals makes one of them zero, which would underestimate the
        // noise.
        let centre = |r: &[f64]| if scale.is_finite() { huber(r, median(r), scale) } else { median(r) };
        let of_blocks: Vec<(usize, f64)> = residuals
            .iter()
            .enumerate()
            .filter(|(_, residuals)| !residuals.is_empty())
            .map(|(block, residuals)| (block, centre(residuals)))
            .collect();
        let common = median(&of_blocks.iter().map(|effect| effect.1).collect::<Vec<f64>>());
        for (block, effect) in of_blocks {
            effects[block] = effect - common;
        }
    }

    /// The common standard deviation of the residuals: the robust one, or the plain one where more than half of the
    /// residuals are nearly zero.
    fn spread(&self, centres: &[f64], effects: &[f64]) -> f64 {
        let of = |(cells, centre): (&Vec<(usize, f64)>, &f64)| -> Vec<f64> {
            cells.iter().map(|(block, value)| (value - effects[*block] - centre).abs()).collect()
        };
        let away: Vec<f64> = self.versions.iter().zip(centres).flat_map(of).collect();
        let robust = 1.4826 * median(&away);
        let squares = away.iter().map(|r| r * r).sum::<f64>() / away.len() as f64;
        if robust > 1e-3 * squares.sqrt() { robust } else { squares.sqrt() }
    }
}

/// The number of versions in each block.
fn sizes(versions: &[Cells]) -> SortedMap<u32, usize> {
    let mut sizes = SortedMap::new();
    for block in versions.iter().flat_map(SortedMap::keys) {
        *sizes.entry(*block).or_insert(0) += 1;
    }
    sizes
}

/// Whether shared blocks connect every version with every other.
fn linked(versions: &[Cells]) -> bool {
    let mut reached = vec![false; versions.len()];
    let mut blocks: SortedMap<u32, bool> = SortedMap::new();
    let mut open = vec![0];
    reached[0] = true;
    while let Some(next) = open.pop() {
        for block in versions[next].keys() {
            if blocks.insert(*block, true).is_none() {
                for (i, cells) in versions.iter().enumerate() {
                    if !reached[i] && cells.contains_key(block) {
                        reached[i] = true;
                        open.push(i);
                    }
                }
            }
        }
    }
    reached.into_iter().all(|reached| reached)
}

fn centre_of(cells: &Cells) -> f64 {
    median(&cells.values().copied().collect::<Vec<f64>>())
}

/// Huber's estimate of the centre of `values`, for a known scale.
pub(super) fn huber(values: &[f64], start: f64, scale: f64) -> f64 {
    let mut centre = start;
    for _ in 0..30 {
        let pull = |value: &f64| (value - centre).clamp(-REACH * scale, REACH * scale);
        let inside = values.iter().filter(|v| (**v - centre).abs() < REACH * scale).count().max(1);
        let step = values.iter().map(pull).sum::<f64>() / inside as f64;
        centre += step.clamp(-scale, scale);
        if step.abs() < 1e-6 * scale {
            break;
        }
    }
    centre
}

/// The variance of each centre, and the degrees of freedom of these variances.
fn variances(
    versions: &[Cells],
    centres: &[f64],
    blocks: &SortedMap<u32, f64>,
    sizes: &SortedMap<u32, usize>,
    scale: f64,
    floor: f64,
) -> (Vec<f64>, f64) {
    // The variance of Huber's estimate from a single value is E ψ² / (E ψ′)².
    let sums = |cells: &Cells, centre: f64| {
        cells.iter().fold((0.0, 0.0), |(squares, inside), (block, value)| {
            let r = value - blocks[block] - centre;
            let within = if r.abs() < REACH * scale { 1.0 } else { 0.0 };
            (squares + r.clamp(-REACH * scale, REACH * scale).powi(2), inside + within)
        })
    };
    let each: Vec<(f64, f64)> = versions.iter().zip(centres).map(|(cells, c)| sums(cells, *c)).collect();
    let count: f64 = versions.iter().map(|cells| cells.len() as f64).sum();
    let shared = sizes.values().filter(|size| **size > 1).count() as f64;
    let freedom = (count - versions.len() as f64 - shared + 1.0).max(1.0);
    let single = |squares: f64, inside: f64, n: f64| squares / n / (inside / n).max(0.5).powi(2);
    let all = each.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let pooled = single(all.0, all.1, count) * count / freedom;
    let lost = count / freedom;
    let all_seen = versions.len() as f64;
    let variance = |(cells, (squares, inside)): (&Cells, &(f64, f64))| {
        let n = cells.len() as f64;
        let own = single(*squares, *inside, n) * lost;
        let value = ((SHRINK * pooled + n * own) / (SHRINK + n)).max(floor * floor);
        // The effect of a block with few versions is itself uncertain, which matters in comparisons with versions that
        // are not in the block.
        let of_block = |block: &u32| {
            let size = sizes[block] as f64;
            if size > 1.0 { 1.0 + (1.0 - size / all_seen) / size } else { 2.0 }
        };
        value * cells.keys().map(of_block).sum::<f64>() / (n * n)
    };
    (versions.iter().zip(&each).map(variance).collect(), freedom)
}
