//! Sentences on what is still open: sets of possible versions, modes, slow drifts, and series without conclusions.

use super::HistoryReport;
use super::event::HistoryEvent;
use super::words::{direction, left_out, plain, series};
use crate::run_report::few_readings::gives_runs;
use scruple_core::history::{Series, Version, VersionState};
use scruple_core::unit::{quantity, share};
use scruple_stats::changepoint::{FEW_VALUES, StepSize};

/// The most changes of unknown commits that have a sentence each.
const SENTENCES: usize = 3;

/// A change whose commit is not known.
struct UnknownCommit {
    /// The number of the event.
    number: usize,
    /// From how many it comes, in words.
    set: String,
    /// Why it is not known which.
    why: String,
    /// Whether a bisection finds it.
    is_found_by_bisect: bool,
}

/// Returns what is unknown about the commit of an event; `None` if the commit is known.
fn unknown_commit(page: &HistoryReport<'_>, event: &HistoryEvent<'_>) -> Option<UnknownCommit> {
    let left_out = left_out(page, event);
    let all = event.set.len() + left_out;
    // The figures of a version with the same artefacts are known.
    let unknown =
        |index: usize| !page.is_weighed(index) && page.version(index).state != VersionState::SameBinary;
    let unweighed = event.set.iter().filter(|index| unknown(**index)).count();
    let were = |count: usize| if count == 1 { "was" } else { "were" };
    let why = match (unweighed, left_out) {
        (0, 0) => "more runs of them would tell which".to_owned(),
        (_, 0) => format!("{unweighed} of them {} not weighed", were(unweighed)),
        (0, _) => format!("{left_out} of them {} left out", were(left_out)),
        _ => format!("{unweighed} of them {} not weighed, {left_out} left out", were(unweighed)),
    };
    let skipped = |index: &usize| page.version(*index).state == VersionState::Skipped;
    let is_found_by_bisect = left_out > 0 || event.set.iter().any(skipped);
    let set = format!("{all} {}", if left_out > 0 { "commits" } else { "versions" });
    (all > 1).then_some(UnknownCommit { number: event.number, set, why, is_found_by_bisect })
}

/// Names the changes whose commit is not known, and says how to find it. If there are many, one sentence covers them
/// all.
fn unknown_commits(page: &HistoryReport<'_>) -> Vec<String> {
    let unknown: Vec<UnknownCommit> =
        page.events.iter().filter_map(|event| unknown_commit(page, event)).collect();
    let found = |one: &&UnknownCommit| one.is_found_by_bisect;
    let together = unknown.iter().filter(found).count() > SENTENCES;
    let each = unknown.iter().filter(|one| !(together && one.is_found_by_bisect)).map(|one| {
        let closer = match one.is_found_by_bisect {
            true => format!(": `{}` looks closer", bisect(page)),
            false => String::new(),
        };
        format!("#{} comes from one of {}; {}{closer}.", one.number, one.set, one.why)
    });
    let mut sentences: Vec<String> = each.collect();
    if together {
        let sets =
            unknown.iter().filter(found).map(|one| format!("#{} comes from one of {}", one.number, one.set));
        sentences.push(format!(
            "{}; not all of these were weighed: `{}` looks closer.",
            sets.collect::<Vec<_>>().join(", "),
            bisect(page)
        ));
    }
    sentences
}

/// Returns the command that examines this history more closely. The options come from its command line, because a store
/// does not know its own path.
fn bisect(page: &HistoryReport<'_>) -> String {
    let argv = page.history.run.argv.iter().map(String::as_str).take_while(|word| *word != "--");
    let argv: Vec<&str> = argv.collect();
    let mut words = vec!["scruple", "history", "bisect"];
    for option in ["--repo", "--store"] {
        match argv.iter().position(|word| *word == option) {
            Some(place) => words.extend(argv.iter().skip(place).take(2)),
            None => words.extend(argv.iter().filter(|word| word.starts_with(&format!("{option}=")))),
        }
    }
    plain(&shell_words::join(words))
}

/// Says that the cost surely changed over the range by more than the margin, although no version could be named, and
/// what may name it.
fn unlocated(page: &HistoryReport<'_>, one: &Series, given: bool) -> Option<String> {
    let whole = one.whole.as_ref().filter(|whole| whole.surely && !whole.same_artefacts)?;
    let explained = !one.changes.is_empty() || one.modes.is_some() || one.slow_drift.is_some();
    let size = whole.ratio - 1.0;
    if one.exact || explained || one.cannot.is_some() || !(size.abs() > page.margin() && size.is_finite()) {
        return None;
    }
    let change = format!("{} by {}", direction(one, whole.ratio), share(size.abs()));
    let missed = match one.detectable.filter(|step| *step > size.abs()) {
        Some(step) => format!(": steps below {} may be missed here", share(step)),
        None => String::new(),
    };
    let option = if gives_runs(&page.history.run.argv) { "--rounds instead of -r" } else { "--rounds" };
    let advice = match given {
        true => String::new(),
        false => {
            let versions = &page.history.versions;
            let is_left = |one: &Version| one.left_out > 0 || matches!(one.state, VersionState::Skipped);
            let verb = match versions.iter().any(is_left) {
                true => bisect(page),
                false => "scruple history extend".to_owned(),
            };
            format!(" More versions (`{verb}`) or more launches ({option}) may name it.")
        }
    };
    Some(format!("{}: {change} over the range, but no version is named{missed}.{advice}", series(one)))
}

/// Lists open questions: sets of possible versions, modes, slow drifts, and series without conclusions.
pub(crate) fn sentences(page: &HistoryReport<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(unknown_commits(page));
    for one in &page.shown {
        if let Some([low, high]) = one.modes {
            let (low, high) = (quantity(low, &one.unit), quantity(high, &one.unit));
            lines.push(format!(
                "{} goes back and forth between {low} and {high}: no change is named.",
                series(one)
            ));
        }
    }
    for one in &page.shown {
        let by = match one.slow_drift {
            Some(StepSize::Ratio(ratio)) => share(ratio - 1.0),
            Some(StepSize::Difference(difference)) => quantity(difference, &one.unit),
            None => continue,
        };
        lines.push(format!("{} drifts slowly by {by}; no single version caused this.", series(one)));
    }
    let given = page.history.run.provenance.tool.is_some();
    lines.extend(page.shown.iter().filter_map(|one| unlocated(page, one, given)));
    let few =
        |one: &&&Series| given && !one.exact && !one.changes.is_empty() && one.points.len() < FEW_VALUES;
    for one in page.shown.iter().filter(few) {
        lines.push(format!(
            "{}: in {} values, drift of the machine may look like a change.",
            series(one),
            one.points.len()
        ));
    }
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for one in &page.shown {
        let Some(why) = one.cannot.as_deref() else { continue };
        match reasons.iter_mut().find(|(reason, _)| *reason == why) {
            Some((_, names)) => names.push(series(one)),
            None => reasons.push((why, vec![series(one)])),
        }
    }
    for (why, names) in reasons {
        lines.push(format!("{}: can’t tell, because {}.", names.join(", "), plain(why)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::report::fixture::rich;
    use scruple_core::history::VersionEffect;

    #[test]
    fn a_version_with_the_artefacts_of_another_is_not_called_unweighed() {
        let mut made = rich();
        let said = |made: &crate::history::report::fixture::JudgedHistory| {
            let page = HistoryReport::of(&made.history, &made.judgement);
            let unknown = unknown_commit(&page, &page.events[5]).expect("several versions");
            (page.events[5].set.clone(), format!("{}; {}", unknown.set, unknown.why))
        };
        let (set, line) = said(&made);
        assert!(line.contains("4 versions; 2 of them were not weighed"), "{line}");
        let skipped = |index: &&usize| made.history.versions[**index].state == VersionState::Skipped;
        let skipped = *set.iter().find(skipped).expect("a version that was left out");
        made.history.versions[skipped].state = VersionState::SameBinary;
        let (_, line) = said(&made);
        assert!(line.contains("4 versions; 1 of them was not weighed"), "{line}");
    }

    #[test]
    fn many_changes_of_unknown_commits_have_one_sentence() {
        let made = rich();
        let mut page = HistoryReport::of(&made.history, &made.judgement);
        let set = page.events[5].set.clone();
        page.events[..3].iter_mut().for_each(|event| event.set = set.clone());
        let each = [1, 2, 3, 6].map(|number| format!("#{number} comes from one of 4 versions")).join(", ");
        let expected =
            format!("{each}; not all of these were weighed: `scruple history bisect` looks closer.");
        assert_eq!(sentences(&page)[0], expected);
    }

    #[test]
    fn a_sure_change_of_the_range_without_a_version_says_what_would_name_it() {
        let mut made = rich();
        let place =
            made.judgement.series.iter().position(|one| one.metric == "time.wall" && one.whole.is_some());
        let series = &mut made.judgement.series[place.expect("a noisy series")];
        (series.modes, series.slow_drift, series.cannot) = (None, None, None);
        series.detectable = Some(0.31);
        let whole = series.whole.as_mut().expect("its ends");
        *whole = VersionEffect { ratio: 1.042, surely: true, same_artefacts: false, ..whole.clone() };
        let name = super::series(series);
        let said = |made: &crate::history::report::fixture::JudgedHistory| {
            let page = HistoryReport::of(&made.history, &made.judgement);
            sentences(&page).into_iter().find(|line| line.contains("over the range"))
        };
        let changes = std::mem::take(&mut made.judgement.series[place.unwrap_or(0)].changes);
        let expected = format!(
            "{name}: slower by 4.2 % over the range, but no version is named: steps below 31 % may be missed here. More \
             versions (`scruple history bisect`) or more launches (--rounds) may name it."
        );
        assert_eq!(said(&made), Some(expected.clone()));
        let versions = made.history.versions.clone();
        for version in &mut made.history.versions {
            version.left_out = 0;
            if version.state == VersionState::Skipped {
                version.state = VersionState::BuildFailed;
            }
        }
        assert_eq!(said(&made), Some(expected.replace("bisect", "extend")), "none within the range is left");
        made.history.versions = versions;
        made.judgement.series[place.unwrap_or(0)].changes = changes;
        assert_eq!(said(&made), None, "a named version explains it");
        made.judgement.series[place.unwrap_or(0)].changes.clear();
        made.judgement.series[place.unwrap_or(0)].whole.as_mut().expect("its ends").surely = false;
        assert_eq!(said(&made), None, "nothing is sure");
    }
}
