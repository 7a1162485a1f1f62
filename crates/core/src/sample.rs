//! Readings, and the samples that they form.

use crate::evidence::REPEATED;
use crate::metric::{Metric, Pass, Quality};
use crate::unit::Unit;
use serde::{Deserialize, Serialize};

/// One number that an instrument read, or the reason why there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// The key of the metric.
    pub key: String,
    /// The unit of the number.
    pub unit: Unit,
    /// The quality of the number.
    pub quality: Quality,
    /// The instrument that read it.
    pub source: String,
    /// The number in its unit, or why it is absent. An absent number is never shown as zero.
    pub value: Result<f64, String>,
}

impl Reading {
    /// A reading of a declared metric, with the quality from the table.
    pub fn of(metric: &Metric, value: f64, source: &str) -> Reading {
        Reading {
            key: metric.key.clone().into_owned(),
            unit: metric.unit.clone(),
            quality: metric.quality,
            source: source.to_owned(),
            value: Ok(value),
        }
    }

    /// The same reading with another quality than that in the table.
    pub fn with_quality(mut self, quality: Quality) -> Reading {
        self.quality = quality;
        self
    }

    /// A declared metric that could not be read, with the reason.
    pub fn absent(metric: &Metric, why: impl Into<String>) -> Reading {
        Reading {
            key: metric.key.clone().into_owned(),
            unit: metric.unit.clone(),
            quality: metric.quality,
            source: String::new(),
            value: Err(why.into()),
        }
    }
}

/// The readings of one metric of one arm, in the order in which they were taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The unit of the readings.
    pub unit: Unit,
    /// The pass that took the readings.
    pub pass: Pass,
    /// The worst quality that the instrument stated for any of the readings; see [`Sample::worth`].
    pub quality: Quality,
    /// The instrument that took the readings.
    pub source: String,
    /// The readings, in the order in which they were taken.
    pub readings: Vec<f64>,
    /// The block of each reading: readings of two arms with the same block were taken side by side.
    pub blocks: Vec<u32>,
}

/// The number of block numbers reserved for each fresh process of a bench program: its blocks are numbered from a
/// multiple of this.
pub const BLOCKS_OF_A_PROCESS: u32 = 1_000_000;

/// The number of block numbers reserved for each turn of a server under load: its windows are numbered from a multiple
/// of this.
pub const BLOCKS_OF_A_TURN: u32 = 10_000;

/// The number of block numbers reserved for each visit of a version in a history, in which counts are taken several
/// times. Later visits show what changed although the version did not.
pub const BLOCKS_OF_A_VISIT: u32 = 10_000;

impl Sample {
    /// The count of each visit; `None` where the readings of one visit disagree.
    pub fn visits(&self) -> Option<Vec<f64>> {
        let mut visits: Vec<(u32, f64)> = Vec::new();
        for (block, reading) in self.blocks.iter().zip(&self.readings) {
            let visit = block / BLOCKS_OF_A_VISIT;
            match visits.last() {
                Some((last, counted)) if *last == visit && counted != reading => return None,
                Some((last, _)) if *last == visit => {}
                _ => visits.push((visit, *reading)),
            }
        }
        Some(visits.into_iter().map(|(_, counted)| counted).collect())
    }

    /// The readings of each process, in order; a single group for anything but a bench program.
    pub fn by_process(&self) -> Vec<Vec<f64>> {
        self.by_group(BLOCKS_OF_A_PROCESS)
    }

    /// The readings of each turn of a load, in order.
    pub fn by_turn(&self) -> Vec<Vec<f64>> {
        self.by_group(BLOCKS_OF_A_TURN)
    }

    /// The readings of each group of blocks whose numbers lie between the same two multiples of `blocks_of_a_group`.
    fn by_group(&self, blocks_of_a_group: u32) -> Vec<Vec<f64>> {
        let mut groups: Vec<(u32, Vec<f64>)> = Vec::new();
        for (block, reading) in self.blocks.iter().zip(&self.readings) {
            let group = block / blocks_of_a_group;
            match groups.last_mut() {
                Some((last, readings)) if *last == group => readings.push(*reading),
                _ => groups.push((group, vec![*reading])),
            }
        }
        groups.into_iter().map(|(_, group)| group).collect()
    }

    /// A sample without readings, with the unit, quality and instrument of `reading`.
    pub fn empty(reading: &Reading, pass: Pass) -> Sample {
        Sample {
            unit: reading.unit.clone(),
            pass,
            quality: reading.quality,
            source: reading.source.clone(),
            readings: Vec::new(),
            blocks: Vec::new(),
        }
    }

    /// The readings in the blocks that both samples have, pairwise and in order.
    pub fn paired(&self, other: &Sample) -> (Vec<f64>, Vec<f64>) {
        let mut pairs = (Vec::new(), Vec::new());
        let mut theirs = other.blocks.iter().zip(&other.readings).peekable();
        for (block, reading) in self.blocks.iter().zip(&self.readings) {
            while theirs.peek().is_some_and(|(b, _)| *b < block) {
                theirs.next();
            }
            if let Some((b, value)) = theirs.peek()
                && *b == block
            {
                pairs.0.push(*reading);
                pairs.1.push(**value);
                theirs.next();
            }
        }
        pairs
    }

    /// Whether all readings are equal.
    pub fn repeats(&self) -> bool {
        self.readings.windows(2).all(|pair| pair[0] == pair[1])
    }

    /// The quality of the readings. Counts that disagree are not exact, and neither is a single count, whatever the
    /// instrument stated.
    pub fn worth(&self) -> Quality {
        let once = self.pass == Pass::Counting && self.readings.len() < REPEATED;
        match self.quality {
            Quality::Exact if once || !self.repeats() => Quality::Near,
            promised => promised,
        }
    }
}

/// What is known about one metric of one arm: its sample, or why there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Figure {
    /// The readings of the metric.
    Sample(Sample),
    /// The metric has no readings.
    Absent {
        /// The reason, as a clause for readers.
        absent: String,
    },
}

impl Figure {
    /// Adds a reading taken in `block`. A number replaces a reason; a reason never replaces numbers.
    pub fn add(figure: &mut Option<Figure>, reading: Reading, pass: Pass, block: u32) {
        match (&reading.value, &mut *figure) {
            (Ok(value), Some(Figure::Sample(sample))) => {
                sample.readings.push(*value);
                sample.blocks.push(block);
                sample.quality = sample.quality.max(reading.quality);
            }
            (Ok(value), _) => {
                let mut sample = Sample::empty(&reading, pass);
                sample.readings.push(*value);
                sample.blocks.push(block);
                *figure = Some(Figure::Sample(sample));
            }
            (Err(why), None) => *figure = Some(Figure::Absent { absent: why.clone() }),
            (Err(_), Some(_)) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::metric;

    fn sample(blocks: &[u32]) -> Sample {
        let cpu = metric("time.cpu").expect("declared");
        let mut figure = None;
        for block in blocks {
            Figure::add(
                &mut figure,
                Reading::of(cpu, f64::from(*block) * 10.0, "test"),
                Pass::Timing,
                *block,
            );
        }
        match figure {
            Some(Figure::Sample(sample)) => sample,
            _ => panic!("no sample"),
        }
    }

    #[test]
    fn only_blocks_that_both_arms_have_are_paired() {
        let (left, right) = sample(&[0, 1, 3, 4]).paired(&sample(&[1, 2, 3, 5]));
        assert_eq!(left, [10.0, 30.0]);
        assert_eq!(right, [10.0, 30.0]);
    }

    #[test]
    fn counts_that_differ_among_themselves_are_not_called_exact() {
        let mallocs = metric("malloc.count").expect("declared");
        let worth = |readings: &[f64]| {
            let mut figure = None;
            for (block, reading) in (0..).zip(readings) {
                Figure::add(&mut figure, Reading::of(mallocs, *reading, "test"), Pass::Counting, block);
            }
            match figure {
                Some(Figure::Sample(sample)) => sample.worth(),
                _ => panic!("no sample"),
            }
        };
        assert_eq!([worth(&[5.0, 5.0]), worth(&[5.0, 5.0, 6.0])], [Quality::Exact, Quality::Near]);
        assert_eq!(worth(&[5.0]), Quality::Near, "a single count has not repeated");
        assert_eq!(sample(&[1, 1]).worth(), Quality::Noisy);
    }

    #[test]
    fn a_reason_never_displaces_numbers() {
        let cpu = metric("time.cpu").expect("declared");
        let mut figure = None;
        Figure::add(&mut figure, Reading::absent(cpu, "no clock"), Pass::Timing, 0);
        Figure::add(&mut figure, Reading::of(cpu, 1.0, "test"), Pass::Timing, 1);
        Figure::add(&mut figure, Reading::absent(cpu, "no clock"), Pass::Timing, 2);
        assert!(matches!(figure, Some(Figure::Sample(sample)) if sample.blocks == [1]));
    }
}
