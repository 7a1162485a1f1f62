//! The page of a search for leaks: the live memory at each size of the work.

use super::page_with;
use crate::inspect::leak::figures;
use crate::inspect::leak_judgement::judge_run;
use crate::inspect::report::leak::{describe, remarks};
use crate::render::page::{Page, Section, Span, harmless_sentence};
use crate::run_report::Report;
use scruple_core::run::Run;
use scruple_core::subject::{Arm, Role};
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
        page.verdict = verdict(run, key);
    }
    page
}

fn verdict(run: &Run, key: &str) -> Vec<Span> {
    let judgement = judge_run(run, key);
    let (tone, word, mut why) = describe(&judgement.verdict);
    for remark in remarks(&judgement, key, None) {
        let _ = write!(why, " {}", super::capital(&remark));
    }
    let what = super::what(key);
    vec![
        Span::plain(format!("{} ", super::capital(&what))),
        Span::new(word, tone),
        Span::plain(harmless_sentence(&format!(": {why}"))),
    ]
}
