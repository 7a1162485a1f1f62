//! Reads the log of collections (`-S`), which has one line per collection, and derives the distribution of pauses.

/// One collection. Sizes are in bytes, times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Collection {
    /// Bytes allocated since the previous collection.
    pub allocated: f64,
    /// Bytes copied by this collection.
    pub copied: f64,
    /// Bytes in use after this collection; exact only if it collected the oldest generation.
    pub live: f64,
    /// The processor time of this collection.
    pub cpu: f64,
    /// How long this collection stopped the program.
    pub pause: f64,
    /// The time of its end, since the program's start.
    pub at: f64,
    /// The oldest generation that this collection collected.
    pub generation: u32,
}

/// The collections of one process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CollectionLog {
    /// The collections.
    pub collections: Vec<Collection>,
}

impl CollectionLog {
    /// The longest pause in seconds; 0 if there are no collections.
    pub fn longest_pause(&self) -> f64 {
        self.collections.iter().map(|collection| collection.pause).fold(0.0, f64::max)
    }

    /// The quantile of the pauses in seconds: the smallest pause that at least this share of the pauses does not
    /// exceed.
    pub fn pause(&self, share: f64) -> Option<f64> {
        let mut pauses: Vec<f64> = self.collections.iter().map(|collection| collection.pause).collect();
        pauses.sort_unstable_by(f64::total_cmp);
        let rank = (share * pauses.len() as f64).ceil().max(1.0) as usize;
        pauses.get(rank.min(pauses.len()).checked_sub(1)?).copied()
    }

    /// The residency over the run: the time and the live bytes after each collection of the oldest generation.
    pub fn residency(&self) -> Vec<(f64, f64)> {
        let oldest = self.collections.iter().map(|collection| collection.generation).max().unwrap_or(0);
        let major = self.collections.iter().filter(|collection| collection.generation == oldest);
        major.map(|collection| (collection.at, collection.live)).collect()
    }
}

/// Reads a log; `None` if the text contains no line of one. Other lines are skipped.
pub fn read(text: &str) -> Option<CollectionLog> {
    let collections: Vec<Collection> = text.lines().filter_map(line).collect();
    (!collections.is_empty()).then_some(CollectionLog { collections })
}

/// Parses a line such as `1838752 1037792 1838592 0.001 0.001 0.002 0.002 0 0 (Gen: 0)`.
fn line(line: &str) -> Option<Collection> {
    let (numbers, generation) = line.split_once("(Gen:")?;
    let generation = generation.trim().trim_end_matches(')').trim().parse().ok()?;
    let numbers: Vec<f64> = numbers.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    match numbers.as_slice() {
        [allocated, copied, live, cpu, pause, _, at, ..] => Some(Collection {
            allocated: *allocated,
            copied: *copied,
            live: *live,
            cpu: *cpu,
            pause: *pause,
            at: *at,
            generation,
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = include_str!("../../../tests/data/runtimes/ghc/S-per-gc.stderr.trimmed.txt");

    #[test]
    fn every_line_is_a_collection() {
        let log = read(LOG).expect("a log");
        assert_eq!(log.collections.len(), 18);
        assert_eq!(
            log.collections[0],
            Collection {
                allocated: 1_838_752.0,
                copied: 1_037_792.0,
                live: 1_838_592.0,
                cpu: 0.001,
                pause: 0.001,
                at: 0.002,
                generation: 0,
            }
        );
        assert_eq!(log.longest_pause(), 0.013);
        assert_eq!(log.pause(0.5), Some(0.001));
        assert_eq!(log.pause(1.0), Some(0.013));
        assert_eq!(log.residency().last(), Some(&(0.400, 44_376.0)));
    }

    #[test]
    fn a_text_without_collections_is_no_log() {
        assert_eq!(read("  Gen  0       172 colls,     0 par\n"), None);
        assert_eq!(CollectionLog::default().pause(0.5), None);
    }
}
