//! Makes the arms of a history comparable: at one size of the work, or per unit of the work.

use crate::metric::Pass;
use crate::run::Run;
use crate::sample::{Figure, Sample};
use crate::subject::{Arm, Parameter, Role, Subject, with_values};
use crate::unit::Unit;
use scruple_stats::sorting::{self, SortedMap};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Figures of a launch that do not grow in proportion to the work: peaks, maxima, and what is left at the end.
const LEVELS: [&str; 8] = [
    "malloc.live",
    "malloc.peak",
    "malloc.tree_peak",
    "malloc.requested_live",
    "malloc.requested_peak",
    "gc.pause_max",
    "heap.live_max",
    "heap.peak",
];

/// The separator in the source of a slope, between the source of the readings and the parameter.
pub const SLOPE: &str = ", slope over ";

/// The subjects of the run of a history, renamed so that figures of the same name can be compared.
///
/// Where a version was weighed at two sizes of the work (a parameter in which two otherwise equal arms differ), the
/// figures are per unit of the work: the difference of both arms divided by the difference of the sizes, block by
/// block. Costs that are the same for every size cancel, so versions weighed at other sizes can be compared as long as
/// costs are proportional. Blocks in which the smaller size took longer are left out if they are less than a quarter.
/// The name of such an arm ends in `per` and the parameter. Figures that do not add up, such as peaks, are those of the
/// larger size, and the cost of the build has the name of the subject alone.
///
/// Other arms of one subject with different parameters do different work, so these parameters become part of the name.
pub fn comparable(run: &Run) -> Vec<Cow<'_, Arm>> {
    let mut twos: SortedMap<(&str, Option<&str>), Vec<&Arm>> = SortedMap::new();
    for arm in run.arms_of(Role::Subject) {
        twos.entry((&arm.name, arm.version.as_deref())).or_default().push(arm);
    }
    let mut arms: Vec<Cow<'_, Arm>> = Vec::new();
    for arm in run.arms_of(Role::Subject) {
        let alike = &twos[&(arm.name.as_str(), arm.version.as_deref())];
        match alike.as_slice() {
            [larger, smaller] => {
                let Some(size) = size(larger, smaller) else {
                    arms.push(Cow::Borrowed(arm));
                    continue;
                };
                if std::ptr::eq(*larger, arm) {
                    arms.extend(divided(larger, smaller, &size).into_iter().map(Cow::Owned));
                }
            }
            _ => arms.push(Cow::Borrowed(arm)),
        }
    }
    let mut named = name_by_parameters(arms);
    add_yardstick_ratios(run, &mut named);
    named
}

/// The times that are divided by those of a yardstick, and the keys of the ratios.
const RATIOS: [(&str, &str); 2] = [("time.wall", "yardstick.wall"), ("time.cpu", "yardstick.cpu")];

/// Adds to each arm its times divided by those of the yardstick of the same version in the same blocks.
fn add_yardstick_ratios(run: &Run, arms: &mut [Cow<'_, Arm>]) {
    let yardsticks: SortedMap<Option<&str>, &Arm> =
        SortedMap::from_iter(run.arms_of(Role::Yardstick).map(|arm| (arm.version.as_deref(), arm)));
    if yardsticks.is_empty() {
        return;
    }
    for arm in arms {
        let Some(yardstick) = yardsticks.get(&arm.version.as_deref()).copied() else { continue };
        for (time, ratio) in RATIOS {
            let (Some(own), Some(theirs)) = (arm.sample(time), yardstick.sample(time)) else { continue };
            // A yardstick is a launch, which neither a unit of the work nor an iteration of a case can be compared
            // with.
            if own.source.contains(SLOPE) || !matches!(arm.subject, Subject::Command { .. }) {
                continue;
            }
            let divided = divided_by(own, theirs, &yardstick.name);
            if !divided.readings.is_empty() {
                arm.to_mut().figures.insert(ratio.to_owned(), Figure::Sample(divided));
            }
        }
    }
}

/// The readings of `own` divided by those of `theirs`, in the blocks that both have.
fn divided_by(own: &Sample, theirs: &Sample, name: &str) -> Sample {
    let by: SortedMap<u32, f64> =
        SortedMap::from_iter(theirs.blocks.iter().copied().zip(theirs.readings.iter().copied()));
    let both = own.blocks.iter().zip(&own.readings);
    let both = both.filter_map(|(block, own)| {
        let by = by.get(block).copied().filter(|by| *by > 0.0)?;
        Some((*block, own / by))
    });
    let (blocks, readings) = both.unzip();
    let (unit, source) = (Unit::Ratio, format!("{}, divided by that of {name}", own.source));
    Sample { unit, source, quality: own.quality.max(theirs.quality), blocks, readings, pass: own.pass }
}

/// The name of the only parameter in which two arms differ, if it is a number in both and larger in the first.
fn size(larger: &Arm, smaller: &Arm) -> Option<String> {
    let differs = |name: &&String| larger.params.get(*name) != smaller.params.get(*name);
    let names = sorting::distinct(larger.params.keys().chain(smaller.params.keys()).filter(differs));
    let [name] = names[..] else { return None };
    match (larger.params.get(name), smaller.params.get(name)) {
        (Some(Parameter::Number(more)), Some(Parameter::Number(less))) if more > less => Some(name.clone()),
        _ => None,
    }
}

/// Makes up to three arms from two sizes: figures per unit of the work, figures of the larger size, and the cost of the
/// build.
fn divided(larger: &Arm, smaller: &Arm, size: &str) -> Vec<Arm> {
    let number = |arm: &Arm| match arm.params.get(size) {
        Some(Parameter::Number(number)) => *number,
        _ => f64::NAN,
    };
    let by = number(larger) - number(smaller);
    let with = |name: String, figures: SortedMap<String, Figure>| Arm { name, figures, ..larger.clone() };
    let (mut each, mut whole, mut build) = (SortedMap::new(), SortedMap::new(), SortedMap::new());
    for (key, figure) in &larger.figures {
        match figure {
            Figure::Sample(sample) if sample.pass == Pass::Build => {
                build.insert(key.clone(), figure.clone());
            }
            Figure::Sample(sample) if adds_up(key, sample) => {
                if let Some(less) = smaller.sample(key) {
                    each.insert(key.clone(), Figure::Sample(slope(sample, less, by, size)));
                }
            }
            _ => {
                whole.insert(key.clone(), figure.clone());
            }
        }
    }
    let mut each = with(format!("{} per {size}", larger.name), each);
    each.params.remove(size);
    let whole = with(format!("{} ({size}={})", larger.name, number(larger)), whole);
    let mut build = with(larger.name.clone(), build);
    build.params.remove(size);
    [each, whole, build].into_iter().filter(|arm| !arm.figures.is_empty()).collect()
}

fn adds_up(key: &str, sample: &Sample) -> bool {
    matches!(sample.pass, Pass::Timing | Pass::Counting)
        && sample.unit != Unit::Ratio
        && !LEVELS.contains(&key)
}

/// The slope of a cost over the size of the work, block by block.
fn slope(larger: &Sample, smaller: &Sample, by: f64, size: &str) -> Sample {
    let less: SortedMap<u32, f64> =
        SortedMap::from_iter(smaller.blocks.iter().copied().zip(smaller.readings.iter().copied()));
    let both = larger.blocks.iter().zip(&larger.readings);
    let both = both.filter_map(|(block, more)| Some((*block, (more - less.get(block)?) / by)));
    let (mut both, impossible): (Vec<_>, Vec<_>) = both.partition(|(_, slope)| *slope >= 0.0);
    // In a block with a negative slope the smaller size was disturbed, so the block is left out. If a quarter or more
    // of the blocks are like this, all of them are kept, which shows that there is no usable slope.
    if impossible.len() * 4 >= larger.readings.len() {
        both.extend(impossible);
        sorting::by_key(&mut both, |(block, _)| *block);
    }
    let (blocks, readings) = both.into_iter().unzip();
    Sample {
        quality: larger.quality.max(smaller.quality),
        source: format!("{}{SLOPE}{size}", larger.source),
        blocks,
        readings,
        ..larger.clone()
    }
}

/// Gives distinct names to arms of one name that do different work. The cost of the build keeps its name.
fn name_by_parameters(arms: Vec<Cow<'_, Arm>>) -> Vec<Cow<'_, Arm>> {
    let mut values: SortedMap<(String, String), BTreeSet<String>> = SortedMap::new();
    for arm in &arms {
        for (name, value) in &arm.params {
            values.entry((arm.name.clone(), name.clone())).or_default().insert(value.to_string());
        }
    }
    let mut named = Vec::new();
    for arm in arms {
        let varies = |name: &str| values[&(arm.name.clone(), name.to_owned())].len() > 1;
        let name = with_values(&arm.name, arm.params.iter().filter(|(name, _)| varies(name)));
        if name == arm.name {
            named.push(arm);
            continue;
        }
        let (build, own): (SortedMap<_, _>, SortedMap<_, _>) =
            arm.figures.clone().into_iter().partition(
                |(_, figure)| matches!(figure, Figure::Sample(sample) if sample.pass == Pass::Build),
            );
        named.push(Cow::Owned(Arm { name, figures: own, ..arm.as_ref().clone() }));
        if !build.is_empty() {
            named.push(Cow::Owned(Arm { figures: build, ..arm.into_owned() }));
        }
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::metric;
    use crate::sample::Reading;

    fn arm(version: &str, size: f64, key: &str, readings: &[f64]) -> Arm {
        let mut arm = Arm::new("work", Subject::Command { argv: Vec::new() }, Role::Subject);
        (arm.version, arm.params) =
            (Some(version.to_owned()), [("n".to_owned(), Parameter::Number(size))].into());
        let declared = metric(key).expect("a metric");
        let mut sample = Sample::empty(&Reading::of(declared, 0.0, "clock"), declared.pass);
        sample.readings = readings.to_vec();
        sample.blocks = (0..readings.len() as u32).collect();
        arm.figures.insert(key.to_owned(), Figure::Sample(sample));
        arm
    }

    fn run(arms: Vec<Arm>) -> Run {
        Run::of(arms)
    }

    fn names(arms: &[Cow<'_, Arm>]) -> Vec<String> {
        arms.iter().map(|arm| arm.name.clone()).collect()
    }

    #[test]
    fn costs_that_two_sizes_have_in_common_cancel() {
        let run = run(vec![
            arm("a", 1000.0, "time.wall", &[3500.0, 3400.0]),
            arm("a", 100.0, "time.wall", &[800.0, 700.0]),
            arm("b", 10.0, "time.wall", &[530.0, 540.0]),
            arm("b", 1.0, "time.wall", &[503.0, 504.0]),
        ]);
        let arms = comparable(&run);
        assert_eq!(names(&arms), ["work per n", "work per n"]);
        let readings = |place: usize| arms[place].sample("time.wall").map(|sample| sample.readings.clone());
        assert_eq!(readings(0), Some(vec![3.0, 3.0]));
        assert_eq!(readings(1), Some(vec![3.0, 4.0]));
    }

    #[test]
    fn a_disturbed_block_is_left_out_and_many_are_not() {
        let slopes = |less: &[f64]| {
            let run = run(vec![arm("a", 10.0, "time.wall", &[95.0; 5]), arm("a", 1.0, "time.wall", less)]);
            comparable(&run)[0]
                .sample("time.wall")
                .map(|sample| (sample.blocks.clone(), sample.readings.clone()))
        };
        assert_eq!(slopes(&[5.0, 500.0, 5.0, 5.0, 5.0]), Some((vec![0, 2, 3, 4], vec![10.0; 4])));
        assert_eq!(slopes(&[5.0, 500.0, 500.0, 5.0, 5.0]).map(|(blocks, _)| blocks.len()), Some(5));
    }

    #[test]
    fn highest_levels_stay_with_their_size_and_other_work_has_another_name() {
        let peaks = run(vec![arm("a", 10.0, "memory.peak", &[7.0]), arm("a", 1.0, "memory.peak", &[7.0])]);
        assert_eq!(names(&comparable(&peaks)), ["work (n=10)"]);
        let others = run(vec![arm("a", 10.0, "time.wall", &[7.0]), arm("b", 20.0, "time.wall", &[7.0])]);
        assert_eq!(names(&comparable(&others)), ["work (n=10)", "work (n=20)"]);
        let alike = run(vec![arm("a", 10.0, "time.wall", &[7.0]), arm("b", 10.0, "time.wall", &[7.0])]);
        assert_eq!(names(&comparable(&alike)), ["work", "work"]);
    }
}
