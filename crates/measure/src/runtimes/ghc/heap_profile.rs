//! Reads heap profiles (`.hp`): live bytes by closure type (`-hT`), by cost centre (`-hc`) or by another band, over
//! time.

use scruple_stats::sorting::{self, SortedMap};

/// A heap profile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeapProfile {
    /// The command line, as the program wrote it.
    pub job: String,
    /// The unit of the times: `seconds`, or bytes allocated with `--hp-by-bytes`.
    pub sample_unit: String,
    /// The samples, in order of time.
    pub samples: Vec<HeapSample>,
}

/// The heap at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeapSample {
    /// The time of the sample, in the profile's `sample_unit`.
    pub at: f64,
    /// Live bytes by band: a closure type, a cost-centre stack, a module, …
    pub bands: SortedMap<String, f64>,
}

impl HeapSample {
    /// The sum of live bytes over all bands.
    pub fn total(&self) -> f64 {
        // `sum` of an empty sequence would be a negative zero.
        self.bands.values().fold(0.0, |sum, bytes| sum + bytes)
    }
}

impl HeapProfile {
    /// The sample with the most live bytes.
    pub fn peak(&self) -> Option<&HeapSample> {
        self.samples.iter().max_by(|a, b| a.total().total_cmp(&b.total()))
    }

    /// The bands with their largest sizes in any sample, the largest first.
    pub fn largest(&self) -> Vec<(&str, f64)> {
        let mut most: SortedMap<&str, f64> = SortedMap::new();
        for (band, bytes) in self.samples.iter().flat_map(|sample| &sample.bands) {
            let held = most.entry(band).or_default();
            *held = held.max(*bytes);
        }
        let mut rows: Vec<(&str, f64)> = most.into_iter().collect();
        sorting::by(&mut rows, |a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
        rows
    }

    /// The time and the bytes of one band in each sample; the bytes are 0 if a sample does not have the band.
    pub fn series(&self, band: &str) -> Vec<(f64, f64)> {
        let of = |sample: &HeapSample| (sample.at, sample.bands.get(band).copied().unwrap_or(0.0));
        self.samples.iter().map(of).collect()
    }
}

/// Reads a `.hp` file. A last sample without an end mark is left out: the program was killed while it wrote it.
pub fn read(text: &str) -> Result<HeapProfile, String> {
    let mut profile = HeapProfile::default();
    let mut open: Option<HeapSample> = None;
    for (number, line) in text.lines().enumerate() {
        let wrong = || format!("cannot parse line {} of the heap profile: ‘{line}’", number + 1);
        let quoted = |rest: &str| rest.trim().trim_matches('"').to_owned();
        match line.split_once(' ') {
            Some(("JOB", rest)) => profile.job = quoted(rest),
            Some(("SAMPLE_UNIT", rest)) => profile.sample_unit = quoted(rest),
            Some(("DATE" | "VALUE_UNIT", _)) => {}
            Some(("BEGIN_SAMPLE", at)) => {
                open =
                    Some(HeapSample { at: at.trim().parse().map_err(|_| wrong())?, bands: SortedMap::new() });
            }
            Some(("END_SAMPLE", _)) => profile.samples.extend(open.take()),
            _ => {
                let (band, bytes) = line.rsplit_once('\t').ok_or_else(wrong)?;
                let bytes: f64 = bytes.trim().parse().map_err(|_| wrong())?;
                let sample = open.as_mut().ok_or_else(wrong)?;
                *sample.bands.entry(band.to_owned()).or_default() += bytes;
            }
        }
    }
    Ok(profile)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROFILE: &str = include_str!("../../../tests/data/runtimes/ghc/heap-hT.hp");

    #[test]
    fn moments_and_bands_are_read() {
        let profile = read(PROFILE).expect("a profile");
        assert_eq!((profile.sample_unit.as_str(), profile.samples.len()), ("seconds", 8));
        let peak = profile.peak().expect("a peak");
        assert_eq!(peak.total(), 3_202_632.0);
        assert_eq!(profile.largest()[0], ("main:Main.Cell", 2_400_000.0));
        assert_eq!(profile.largest()[1], ("MUT_ARR_PTRS_DIRTY", 800_808.0));
        assert_eq!(profile.series("main:Main.Cell")[0], (0.0, 0.0));
        assert_eq!(profile.series("main:Main.Cell")[1], (0.002_299, 2_400_000.0));
    }

    #[test]
    fn a_torn_last_moment_is_left_out() {
        let profile = read("JOB \"x\"\nBEGIN_SAMPLE 0.1\nA\t3\nEND_SAMPLE 0.1\nBEGIN_SAMPLE 0.2\nA\t4\n");
        assert_eq!(profile.expect("read").samples.len(), 1);
    }

    #[test]
    fn a_text_that_is_not_a_profile_is_an_error_with_its_line() {
        assert!(read("JOB \"x\"\nnonsense\n").expect_err("an error").contains("line 2"));
    }
}
