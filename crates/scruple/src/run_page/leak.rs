//! The page of a search for leaks: the live memory at each size of the work.

use super::page_with;
use crate::inspect::args::SMALLEST;
use crate::inspect::leak::{COLLECTIONS, SIZE, figures};
use crate::inspect::report::leak::{PEAK, beside_the_heap, describe};
use crate::render::Report;
use crate::render::page::{Page, Section, Span, harmless_sentence};
use scruple_core::run::Run;
use scruple_core::stats::leak::{
    judge_bounded_growth, judge_collected, judge_growth, judge_outside_malloc, judge_outside_the_heap,
    resident_growth_beyond,
};
use scruple_core::subject::{Arm, Parameter, Role};
use scruple_core::unit::{Unit, parse_quantity};
use scruple_measure::runtimes::{LIVE, LIVE_AT_MOST};
use std::fmt::Write as _;

/// Whether a run is a search for leaks.
pub fn is_one(run: &Run) -> bool {
    run.argv.get(1..3).is_some_and(|words| words == ["inspect", "leak"])
}

/// Makes the page with the sections that were stored with the run. Nothing is compared, because the costs of different
/// sizes are meant to differ.
pub fn of(run: &Run, metrics: &[String], others: Vec<Section>) -> Page {
    let arms: Vec<&Arm> = run.arms_of(Role::Subject).collect();
    let taken = figures().find(|key| arms.iter().any(|arm| arm.sample(key).is_some()));
    let shown: Vec<String> = match metrics {
        [] => taken.iter().map(|key| (*key).to_owned()).collect(),
        named => named.to_vec(),
    };
    let mut page = page_with(&Report::of_pairs(run, &[], &shown, &[], None), others);
    if let Some(about) = page.kind.first_mut() {
        *about = format!("Search for leaks over {} sizes of the work", arms.len());
    }
    if let Some(key) = taken {
        page.verdict = verdict(run, &arms, key);
    }
    page
}

fn verdict(run: &Run, arms: &[&Arm], key: &str) -> Vec<Span> {
    let readings = |key: &str| -> Vec<(f64, f64)> {
        arms.iter()
            .filter_map(|arm| match arm.params.get(SIZE) {
                Some(Parameter::Number(size)) => Some((*size, arm.sample(key)?)),
                _ => None,
            })
            .flat_map(|(size, sample)| sample.readings.iter().map(move |bytes| (size, *bytes)))
            .collect()
    };
    let smallest = parse_quantity(&smallest(run), &Unit::Bytes).unwrap_or(1.0);
    let bytes = readings(key);
    let at_most = readings(LIVE_AT_MOST);
    let judged = match key == LIVE && at_most.len() == bytes.len() {
        true => judge_bounded_growth(&bytes, &at_most, smallest),
        false => judge_growth(&bytes, smallest),
    };
    let outside_malloc =
        |judged| judge_outside_malloc(judged, &readings("memory.peak"), &readings(PEAK), smallest);
    let judged = match key {
        LIVE => outside_malloc(judge_outside_the_heap(judged, &readings("malloc.live"), smallest)),
        "malloc.live" => outside_malloc(judged),
        "memory.peak" if arms.iter().any(|arm| arm.figures.contains_key(COLLECTIONS)) => {
            judge_collected(judged, readings(COLLECTIONS).first().map(|(_, count)| *count))
        }
        _ => judged,
    };
    let (tone, word, mut why) = describe(&judged);
    let resident = if key == LIVE { readings("memory.peak") } else { Vec::new() };
    if let Some(per_unit) = resident_growth_beyond(&judged, &resident, smallest) {
        let _ = write!(why, " {}", super::capital(&beside_the_heap(per_unit)));
    }
    let what = super::what(key);
    vec![
        Span::plain(format!("{} ", super::capital(&what))),
        Span::new(word, tone),
        Span::plain(harmless_sentence(&format!(": {why}"))),
    ]
}

/// Returns the smallest growth that was to be reported, as the user wrote it.
fn smallest(run: &Run) -> String {
    let words = run.argv.iter().take_while(|word| *word != "--");
    let mut words = words.skip_while(|word| !word.starts_with("--smallest"));
    let found = words.next().map(|word| word.split_once('=').map(|(_, value)| value.to_owned()));
    match found {
        Some(Some(value)) => value,
        Some(None) => words.next().cloned().unwrap_or_else(|| SMALLEST.to_owned()),
        None => SMALLEST.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_growth_that_does_not_matter_is_as_it_was_asked_for() {
        let asked = |words: &[&str]| {
            let mut run = crate::new_run::scripted_run(None, None, Default::default());
            run.argv =
                ["scruple", "inspect", "leak"].iter().chain(words).map(|word| (*word).to_owned()).collect();
            assert!(is_one(&run));
            smallest(&run)
        };
        assert_eq!(asked(&["--smallest", "8B", "--", "./app"]), "8B");
        assert_eq!(asked(&["--smallest=2kB", "--", "./app"]), "2kB");
        assert_eq!(asked(&["--", "./app", "--smallest", "8B"]), SMALLEST);
    }
}
