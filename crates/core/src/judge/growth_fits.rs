//! How metrics grow with numeric parameters.

use crate::metric::Quality;
use crate::sample::Sample;
use crate::subject::{Arm, Parameter, Subject, with_values};
use crate::unit::Unit;
use scruple_stats::growth::{self, Growth};
use serde::Serialize;
use std::collections::HashMap;

/// The distance in bytes up to which a counted cost still lies on a curve, for instance because of rounding by the
/// allocator.
const CONSTANT_NOISE: f64 = 64.0;

/// The fewest values of a parameter over which a growth can be fitted.
const LEAST_VALUES: usize = 3;

/// The growth of one metric with one numeric parameter.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GrowthFit {
    /// The key of the metric.
    pub metric: String,
    /// The unit of the metric.
    #[serde(skip)]
    pub unit: Unit,
    /// The name of the parameter.
    pub parameter: String,
    /// What the fitted arms have in common, where there are several families; else empty.
    pub family: String,
    /// The fitted growth.
    #[serde(rename = "fit")]
    pub growth: Growth,
}

/// Fits growth over every numeric parameter with at least three values, for the metrics of `keys`. `sample_of` returns
/// the readings of an arm that count.
pub fn fits(
    arms: &[&Arm],
    keys: &[String],
    level: f64,
    sample_of: impl Fn(&Arm, &str) -> Option<Sample>,
) -> Vec<GrowthFit> {
    let mut found = Vec::new();
    for parameter in numeric_parameters(arms) {
        let families = families(arms, &parameter);
        for members in &families {
            // The only family of a run that has nothing else needs no name.
            let family = match members.len() < arms.len() {
                true => family_name(members, &parameter),
                false => String::new(),
            };
            for key in keys {
                if let Some(growth) = fit(members, key, level, &sample_of) {
                    let (metric, parameter, family) = (key.clone(), parameter.clone(), family.clone());
                    let sample = members.iter().find_map(|(_, arm)| arm.sample(key));
                    let unit = sample.map_or(Unit::Count, |sample| sample.unit.clone());
                    found.push(GrowthFit { metric, unit, parameter, family, growth });
                }
            }
        }
    }
    found
}

type Family<'a> = Vec<(f64, &'a Arm)>;

/// Groups the arms that differ only in this numeric parameter. Returns what the names of each group have in common,
/// and its arms with their values of the parameter.
pub fn families_by<'a>(arms: &[&'a Arm], parameter: &str) -> Vec<(String, Vec<(f64, &'a Arm)>)> {
    let named = |members: Family<'a>| (family_name(&members, parameter), members);
    families(arms, parameter).into_iter().map(named).collect()
}

/// Groups arms that differ only in this parameter.
///
/// Every command of a scan takes every value once, so an arm with a value that a family has already belongs to the next
/// command. Names cannot distinguish commands, since by default they contain the values.
fn families<'a>(arms: &[&'a Arm], parameter: &str) -> Vec<Family<'a>> {
    let mut families: Vec<Family<'a>> = Vec::new();
    // There may be a hundred thousand arms, so the next family for a value is looked up instead of searched for.
    let mut places: HashMap<(String, usize), usize> = HashMap::new();
    let mut taken: HashMap<(String, u64), usize> = HashMap::new();
    for arm in arms {
        let Some(Parameter::Number(n)) = arm.params.get(parameter) else { continue };
        let alike = likeness(arm, parameter);
        let times = taken.entry((alike.clone(), (n + 0.0).to_bits())).or_default();
        let place = *places.entry((alike, *times)).or_insert_with(|| {
            families.push(Vec::new());
            families.len() - 1
        });
        *times += 1;
        families[place].push((*n, arm));
    }
    families
}

/// A text that is equal for arms that differ only in this parameter. The names of cases of bench programs show already
/// what belongs together.
fn likeness(arm: &Arm, parameter: &str) -> String {
    let others: Vec<_> = arm.params.iter().filter(|(name, _)| *name != parameter).collect();
    let stem = match &arm.subject {
        Subject::Case { name, .. } => stem(name),
        Subject::Command { .. } | Subject::Request { .. } => "",
    };
    format!("{others:?} {:?} {stem:?}", arm.version)
}

/// The number at the end of the name of a case, as in `integers count 10`: suites without parameters vary this size.
pub fn trailing_number(name: &str) -> Option<f64> {
    let last = &name[stem(name).len()..];
    last.trim_start_matches([' ', '/']).parse().ok()
}

/// The name of a case without a number at its end.
fn stem(name: &str) -> &str {
    match name.rsplit_once([' ', '/']) {
        Some((stem, last)) if last.bytes().all(|byte| byte.is_ascii_digit()) && !last.is_empty() => stem,
        _ => name,
    }
}

/// The numeric parameters over which growth can be fitted: those with enough values. A program may declare any number of
/// parameters, and grouping the arms by one takes as long as reading all of them.
fn numeric_parameters(arms: &[&Arm]) -> Vec<String> {
    let numbers = arms.iter().flat_map(|arm| &arm.params).filter_map(|(name, value)| match value {
        Parameter::Number(number) => Some((name.as_str(), (number + 0.0).to_bits())),
        Parameter::Text(_) => None,
    });
    let mut values: Vec<(&str, u64)> = numbers.collect();
    values.sort_unstable();
    values.dedup();
    let of_names = values.chunk_by(|(one, _), (other, _)| one == other);
    of_names.filter(|of_name| of_name.len() >= LEAST_VALUES).map(|of_name| of_name[0].0.to_owned()).collect()
}

/// The name that the cases of a family share, with the parameters and the version that distinguish it from other
/// families.
fn case_family(stem: &str, arm: &Arm, parameter: &str) -> String {
    let others = arm.params.iter().filter(|(name, _)| *name != parameter);
    let mut family = with_values(stem, others);
    if let Some(version) = &arm.version {
        family.push_str(&format!(" @{version}"));
    }
    family
}

/// The words that the names of a family share, with the parameter in place of the words that differ.
fn family_name(members: &[(f64, &Arm)], parameter: &str) -> String {
    if let Subject::Case { name, .. } = &members[0].1.subject {
        return case_family(stem(name), members[0].1, parameter);
    }
    let names: Vec<Vec<&str>> = members.iter().map(|(_, arm)| arm.name.split(' ').collect()).collect();
    if names.iter().any(|name| name.len() != names[0].len()) {
        return members[0].1.name.clone();
    }
    let common = |(place, word): (usize, &&str)| match names.iter().all(|name| name[place] == *word) {
        true => (*word).to_owned(),
        false => format!("{{{parameter}}}"),
    };
    names[0].iter().enumerate().map(common).collect::<Vec<_>>().join(" ")
}

fn fit(
    members: &[(f64, &Arm)],
    key: &str,
    level: f64,
    sample_of: &impl Fn(&Arm, &str) -> Option<Sample>,
) -> Option<Growth> {
    let samples: Vec<(f64, Sample)> =
        members.iter().filter_map(|(n, arm)| Some((*n, sample_of(arm, key)?))).collect();
    let counted = samples.iter().all(|(_, sample)| sample.quality == Quality::Exact && sample.repeats());
    if let Some(points) = whole_points(&samples).filter(|_| counted) {
        return growth::exact(&points).or_else(|_| growth::within(&points, CONSTANT_NOISE)).ok();
    }
    let points: Vec<(f64, f64)> =
        samples.iter().flat_map(|(n, sample)| sample.readings.iter().map(|reading| (*n, *reading))).collect();
    growth::noisy(&points, level).ok()
}

/// The sizes and counts as whole numbers; `None` where some are not whole.
fn whole_points(samples: &[(f64, Sample)]) -> Option<Vec<(u64, u64)>> {
    let whole = |value: f64| (value >= 0.0 && value.fract() == 0.0 && value < 9e15).then_some(value as u64);
    samples.iter().map(|(n, sample)| Some((whole(*n)?, whole(*sample.readings.first()?)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::{Pass, metric};
    use crate::sample::{Figure, Reading};
    use crate::subject::Role;

    fn case(n: f64, processors: f64, version: Option<&str>) -> Arm {
        let subject = Subject::case("Sort", Vec::new());
        let mut arm = Arm::new(format!("Sort (n={n}, GOMAXPROCS={processors})"), subject, Role::Subject);
        arm.version = version.map(str::to_owned);
        arm.params.insert("n".to_owned(), Parameter::Number(n));
        arm.params.insert("GOMAXPROCS".to_owned(), Parameter::Number(processors));
        let wall = metric("time.wall").expect("declared");
        let mut figure = None;
        for block in 0..6 {
            Figure::add(&mut figure, Reading::of(wall, n * processors, "test"), Pass::Timing, block);
        }
        arm.figures.extend(figure.map(|figure| ("time.wall".to_owned(), figure)));
        arm
    }

    #[test]
    fn a_parameter_without_three_values_is_not_looked_at() {
        let arms = [case(10.0, 1.0, None), case(100.0, 2.0, None), case(1000.0, 2.0, None)];
        assert_eq!(numeric_parameters(&arms.iter().collect::<Vec<_>>()), ["n"]);
        assert_eq!(numeric_parameters(&arms[..2].iter().collect::<Vec<_>>()), [""; 0]);
    }

    #[test]
    fn growths_of_one_case_are_distinguished_by_their_other_parameters_and_versions() {
        let named = |arms: &[Arm]| {
            let arms: Vec<&Arm> = arms.iter().collect();
            let found = fits(&arms, &["time.wall".to_owned()], 0.95, |arm, key| arm.sample(key).cloned());
            found.into_iter().map(|fit| fit.family).collect::<Vec<_>>()
        };
        let sizes = [10.0, 100.0, 1000.0];
        let of = |processors: f64, version| sizes.map(|n| case(n, processors, version));
        let both = [of(1.0, None), of(2.0, None)].concat();
        assert_eq!(named(&both), ["Sort (GOMAXPROCS=1)", "Sort (GOMAXPROCS=2)"]);
        assert_eq!(named(&of(1.0, None)), [""]);
        let mut with_another = of(1.0, None).to_vec();
        with_another.push(Arm::new("Parse", Subject::case("Parse", vec!["x".to_owned()]), Role::Subject));
        assert_eq!(named(&with_another), ["Sort (GOMAXPROCS=1)"]);
    }
}
