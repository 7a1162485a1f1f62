//! Says which metrics cannot be judged because they were read too few times.

use super::{Report, declared};
use crate::render::metric_words::measure;
use scruple_core::judge;
use scruple_core::metric::Pass;
use scruple_core::verdict::Verdict;
use scruple_stats::paired::Why;
use scruple_stats::sorting::SortedMap;

/// Writes one line for the shown metrics of commands whose verdict is can't tell because the memory or counting pass was
/// short. Without it, a reader would not know why two counts that are far apart are not called different. For the metric of
/// the headline, the sentence of the verdict says so.
pub(crate) fn lines(report: &Report<'_>) -> Vec<String> {
    let of_load = report.run.arms.iter().any(|arm| arm.course.is_some());
    if report.of_cases() || of_load || !report.side_by_side {
        return Vec::new();
    }
    let mut open: SortedMap<(usize, usize), Vec<&str>> = SortedMap::new();
    let headlines = judge::headlines(&report.judged, &report.shown);
    let unsaid = |key: &&String| headlines.values().all(|headline| headline.metric != **key);
    for key in report.shown.iter().filter(unsaid) {
        let few = report.judged.iter().filter(|judged| judged.metric == *key).find_map(|judged| {
            let why = judged.comparison.evidence.why();
            match why.filter(|_| judged.comparison.verdict == Verdict::CantTell)? {
                Why::TooFew { have, need } => Some((need, have)),
                _ => None,
            }
        });
        if let Some(few) = few.filter(|_| matches!(declared(key).pass, Pass::Memory | Pass::Counting)) {
            open.entry(few).or_default().push(measure(key));
        }
    }
    let line = |((need, have), names): ((usize, usize), Vec<&str>)| {
        let why = Why::TooFew { have, need };
        let option = option(&report.run.argv);
        format!("Can’t tell about {}: {why} ({option}).", listed(&names))
    };
    open.into_iter().map(line).collect()
}

/// Returns the option with which a command line takes more launches for memory and counts. The budget does not bound the
/// launches that --runs gives.
pub(super) fn option(argv: &[String]) -> &'static str {
    match gives_runs(argv) {
        true => "a larger -r",
        false => "-r or a larger --budget",
    }
}

/// Whether a command line has the option --runs.
pub(crate) fn gives_runs(argv: &[String]) -> bool {
    let is_runs = |word: &String| word.starts_with("-r") || word == "--runs" || word.starts_with("--runs=");
    argv.iter().take_while(|word| *word != "--").any(is_runs)
}

fn listed(names: &[&str]) -> String {
    match names {
        [all @ .., last] if !all.is_empty() => format!("{} and {last}", all.join(", ")),
        names => names.concat(),
    }
}
