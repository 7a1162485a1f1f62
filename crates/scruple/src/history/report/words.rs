//! Sentences and short texts that several formats of the page share.

use super::HistoryReport;
use super::event::HistoryEvent;
use crate::render::metric_words::title;
pub(crate) use scruple_core::harmless_text::plain;
use scruple_core::history::{BreakEven, Change, ChangeForm, Series, VersionEffect, VersionState};
use scruple_core::plural;
use scruple_core::unit::{Unit, change, change_between, exact, grouped, quantity, relative_spread};
use scruple_stats::Interval;
use scruple_stats::sorting;

/// Writes a number with a noun: `1 version`, `2 versions`.
pub(crate) fn number(count: usize, one: &str) -> String {
    plural::grouped(count as u64, one)
}

/// Describes the state of a version in a few words.
pub(crate) fn state(page: &HistoryReport<'_>, index: usize) -> String {
    let version = page.version(index);
    match version.state {
        VersionState::Built if page.is_weighed(index) => "weighed".to_owned(),
        VersionState::Built => "built, not weighed".to_owned(),
        VersionState::BuildFailed => "build failed".to_owned(),
        VersionState::CheckFailed => "check failed".to_owned(),
        VersionState::RunFailed => "run failed".to_owned(),
        VersionState::TimedOut => "timed out".to_owned(),
        VersionState::SameBinary => match page.stands_for(index) {
            other if other != index => format!("same binary as {}", short(page, other)),
            _ => "same binary".to_owned(),
        },
        VersionState::Skipped => "skipped".to_owned(),
        VersionState::Queued => "queued".to_owned(),
        VersionState::Building => "building".to_owned(),
    }
}

/// Writes a line with the number of versions in each state.
pub(crate) fn counts(page: &HistoryReport<'_>) -> String {
    let mut kinds: Vec<(String, usize)> = Vec::new();
    for index in 0..page.history.versions.len() {
        let word = match page.version(index).state {
            VersionState::SameBinary => "with the same binary as another".to_owned(),
            _ => state(page, index),
        };
        match kinds.iter_mut().find(|(known, _)| *known == word) {
            Some((_, count)) => *count += 1,
            None => kinds.push((word, 1)),
        }
    }
    // Weighed versions come first; the other states are ordered by their numbers of versions.
    sorting::by_key(&mut kinds, |(word, count)| (word != "weighed", std::cmp::Reverse(*count)));
    let kinds: Vec<String> =
        kinds.iter().map(|(word, count)| format!("{} {word}", grouped(*count as f64))).collect();
    let all = number(page.history.versions.len(), "version");
    let left_out: usize = page.history.versions.iter().map(|version| version.left_out).sum();
    let left_out = match left_out {
        0 => String::new(),
        1 => "; 1 commit between them was left out".to_owned(),
        _ => format!("; {} between them were left out", number(left_out, "commit")),
    };
    if kinds.is_empty() { all } else { format!("{all}: {}{left_out}", kinds.join(", ")) }
}

/// Returns the short id of a version.
pub(crate) fn short(page: &HistoryReport<'_>, index: usize) -> String {
    plain(page.version(index).short())
}

/// Returns the short id of a version with its tags.
pub(crate) fn named(page: &HistoryReport<'_>, index: usize) -> String {
    let tags = &page.version(index).tags;
    match tags.is_empty() {
        true => short(page, index),
        false => format!("{} ({})", short(page, index), plain(&tags.join(", "))),
    }
}

/// Returns how many commits that the selection left out may have caused an event.
pub(crate) fn left_out(page: &HistoryReport<'_>, event: &HistoryEvent<'_>) -> usize {
    event.set.iter().map(|index| page.version(*index).left_out).sum()
}

/// Returns the version that certainly or most likely caused an event. Returns `None` if a commit that was left out, or
/// another version that was not weighed, may have caused it: then readings favour none of them.
pub(crate) fn likeliest(page: &HistoryReport<'_>, event: &HistoryEvent<'_>) -> Option<usize> {
    let others_weighed = event.set.iter().all(|index| *index == event.at || page.is_weighed(*index));
    Some(event.at).filter(|at| others_weighed && page.version(*at).left_out == 0)
}

/// Says which version of the set of an event readings favour, or at which one the change was first seen. Returns `None`
/// where [`culprit`] says this.
pub(crate) fn favoured(page: &HistoryReport<'_>, event: &HistoryEvent<'_>) -> Option<String> {
    match likeliest(page, event) {
        _ if event.set.len() < 2 || left_out(page, event) > 0 => None,
        Some(at) => Some(format!("most likely {}", short(page, at))),
        None => Some(format!("first seen at {}", short(page, event.at))),
    }
}

/// Names the version of an event, or the set that contains it.
pub(crate) fn culprit(page: &HistoryReport<'_>, event: &HistoryEvent<'_>) -> String {
    let left_out = left_out(page, event);
    if left_out > 0 {
        // In changes of other series, the last version with the old level may be a later one.
        let own = event.changes.iter().find(|(_, change)| change.set == event.set);
        let before = own.map_or(event.before, |(_, change)| change.before);
        let commits = number(event.set.len() + left_out, "commit");
        return format!("one of {commits}, {}..{}", short(page, before), short(page, event.last()));
    }
    match event.set.len() {
        0 | 1 => named(page, event.at),
        count => {
            let some: Vec<String> = event.set.iter().take(4).map(|index| short(page, *index)).collect();
            let more = if count > 4 { format!(" and {} more", count - 4) } else { String::new() };
            format!("one of {count}: {}{more}", some.join(", "))
        }
    }
}

/// Describes the kind of an event in addition to its outcome. The text is empty for a step.
pub(crate) fn kind(page: &HistoryReport<'_>, event: &HistoryEvent<'_>) -> Vec<String> {
    let mut kinds = Vec::new();
    if let Some(until) = event.until() {
        kinds.push(match until == event.at {
            true => "a spike of one version".to_owned(),
            false => format!("a spike until {}", short(page, until)),
        });
    }
    if let Some(undone) = event.undoes() {
        let number = page.events.iter().find(|other| other.at == undone).map(|other| other.number);
        let change = number.map_or_else(|| short(page, undone), |number| format!("#{number}"));
        // Only its title shows that a commit reverts another one. Other commits may restore a level as well.
        let revert = format!("Revert \"{}\"", page.version(undone).title);
        kinds.push(match page.version(event.at).title.starts_with(&revert) {
            true => format!("takes back {change}"),
            false => format!("back to the level before {change}"),
        });
    }
    let version = page.version(event.at);
    if version.parents.len() > 1 && event.set == [event.at] {
        let between =
            event.changes.iter().all(|(_, change)| change.better.is_none() && change.from != change.to);
        kinds.push(match version.follows.len() {
            0 | 1 => "a merge, whose branch is not in the range".to_owned(),
            _ if page.diverged_before(event.at) => {
                "a merge: its parents have diverged before the range, so it may only combine their changes"
                    .to_owned()
            }
            _ if between => "the merge itself: more than one parent has, and less than another".to_owned(),
            _ => "the merge itself: no parent of it has this".to_owned(),
        });
    }
    if let Some(reason) = event.accepted() {
        kinds.push(format!("accepted: {}", plain(reason)));
    }
    kinds
}

/// The relative difference below which a percentage with two decimals reads 0.00 %.
const ROUNDS_AWAY: f64 = 0.000_05;

/// Writes a ratio, with its interval if there is one.
pub(crate) fn effect(ratio: f64, interval: Option<Interval>, difference: f64, unit: &Unit) -> String {
    let nothing = |ratio: f64| (ratio - 1.0).abs() < ROUNDS_AWAY;
    match interval {
        Some(interval) if [ratio, interval.low, interval.high].into_iter().all(nothing) => {
            "less than 0.01 %".to_owned()
        }
        Some(interval) if !ratio.is_finite() => {
            let sign = |value: f64| if value > 0.0 { "+" } else { "" };
            let text = |value: f64| format!("{}{}", sign(value), quantity(value, unit));
            format!("{} [{}, {}]", text(difference), text(interval.low), text(interval.high))
        }
        Some(interval) => change_between(ratio, interval.low, interval.high),
        None if difference == 0.0 => "±0".to_owned(),
        // A difference that would round to 0 % is written in the unit of the series instead.
        None if !ratio.is_finite() || (ratio - 1.0).abs() < 0.0005 => {
            let sign = if difference > 0.0 { "+" } else { "" };
            format!("{sign}{}", exact(difference, unit))
        }
        None => change(ratio),
    }
}

/// Writes the change of a series.
pub(crate) fn change_text(series: &Series, change: &Change) -> String {
    effect(change.ratio, change.interval, change.to - change.from, &series.unit)
}

/// Writes the values of a series at two versions, and the change between them. Where levels were compared, these are the
/// levels: single values would not fit the change.
pub(crate) fn overall_change(series: &Series, whole: &VersionEffect) -> Option<(String, String, String)> {
    let value = |index: usize| series.points.iter().find(|point| point.version == index).map(|p| p.value);
    let (from, to) = match whole.levels {
        Some([from, to]) => (from, to),
        None => (value(whole.from)?, value(whole.to)?),
    };
    let change = effect(whole.ratio, whole.interval, to - from, &series.unit);
    Some((quantity(from, &series.unit), quantity(to, &series.unit), change))
}

/// Says why the last version of a series is not compared with the first.
pub(crate) fn not_compared(series: &Series) -> &str {
    let of_points = match series.points.len() {
        0 | 1 => "fewer than two versions were weighed",
        _ => "no version before the last one was weighed on its line of first parents",
    };
    series.cannot.as_deref().unwrap_or(of_points)
}

/// Whether a ratio is an improvement. Returns `None` if the ratio is 1.
pub(crate) fn is_better(series: &Series, ratio: f64) -> Option<bool> {
    use scruple_core::metric::Better;
    (ratio != 1.0).then(|| (ratio < 1.0) == (series.better == Better::Lower))
}

/// Returns the word for a direction that fits the metric.
pub(crate) fn direction(series: &Series, ratio: f64) -> &'static str {
    match (series.metric.starts_with("time."), ratio > 1.0) {
        _ if ratio == 1.0 => "same",
        (true, true) => "slower",
        (true, false) => "faster",
        (false, true) => "more",
        (false, false) => "less",
    }
}

/// Returns a word for the change over the whole range, and whether it is an improvement.
pub(crate) fn verdict(series: &Series, whole: &VersionEffect) -> (&'static str, Option<bool>) {
    let away = |interval: Interval| [interval.low, interval.high].map(|end| (end - 1.0).abs());
    let nothing = whole.interval.is_some_and(|i| away(i).into_iter().all(|away| away < ROUNDS_AWAY));
    match (whole.surely, is_better(series, whole.ratio)) {
        _ if nothing => ("same", None),
        _ if whole.same_artefacts => ("same binary", None),
        (true, better) => (direction(series, whole.ratio), better),
        (false, None) if series.exact => ("same", None),
        (false, _) if series.shifting => ("counts shifted", None),
        (false, _) if series.cannot.as_ref().is_some_and(|why| why.contains("too few")) => {
            ("too few readings", None)
        }
        (false, _) if series.cannot.is_some() => ("can't tell", None),
        (false, _) if series.slow_drift.is_some() => ("slow drift", None),
        (false, _) => ("no sure change", None),
    }
}

/// Names a series by its subject and metric.
pub(crate) fn series(series: &Series) -> String {
    format!("{} {}", plain(&series.subject), plain(&title(&series.metric)))
}

/// Says in a sentence whether a change of the build's cost pays off.
pub(crate) fn break_even(page: &HistoryReport<'_>, one: &BreakEven) -> String {
    pays_off(one, &short(page, one.from), &short(page, one.to))
}

/// Says in a sentence whether a change of the build's cost pays off between two versions with these names.
pub(crate) fn pays_off(one: &BreakEven, from: &str, to: &str) -> String {
    let amount = |value: f64| {
        let more = if value < 0.0 { "less" } else { "more" };
        format!("{} {more}", quantity(value.abs(), &Unit::Nanoseconds))
    };
    let build = match one.build_surely {
        true => format!("a build takes {}", amount(one.build)),
        false => format!("a build took {}, which may be chance", amount(one.build)),
    };
    let run = match one.run_surely {
        true => format!("a run of it takes {}", amount(one.run)),
        false => "a run of it may take more or less".to_owned(),
    };
    let costs = format!("{}, from {from} to {to}: {build}; {run}", plain(&one.subject));
    let verdict = match one.runs {
        Some(runs) if one.build > 0.0 => {
            format!(": it pays off after {} for each build", number(runs.ceil() as usize, "run"))
        }
        Some(runs) => format!(": it pays off up to {} for each build", number(runs.floor() as usize, "run")),
        None if one.build_surely && one.run_surely => {
            (if one.run > 0.0 { ": worse in both" } else { ": better in both" }).to_owned()
        }
        None => ": can’t tell whether it pays off".to_owned(),
    };
    format!("{costs}{verdict}.")
}

/// Writes a share of a series' values, with non-breaking spaces.
fn figure(one: &Series, value: f64) -> String {
    format!("{} {}", series(one), relative_spread(value).replace(' ', "\u{a0}"))
}

/// Lists the smallest steps that would have been detected, for the series where they are known.
pub(crate) fn detectable(page: &HistoryReport<'_>) -> Vec<String> {
    let known = page.shown.iter().filter(|series| !series.exact);
    known.filter_map(|one| Some(figure(one, one.detectable?))).collect()
}

/// Lists how much versions with the same artefacts differ, for the series that have such versions. This is the spread
/// without any change.
pub(crate) fn same_binary_noise(page: &HistoryReport<'_>) -> Vec<String> {
    let known = page.shown.iter().filter(|series| !series.exact);
    known.filter_map(|one| Some(figure(one, one.same_binary_noise?))).collect()
}

/// Returns the index of each version that could not be built or weighed, with the reason.
pub(crate) fn failed<'p>(page: &'p HistoryReport<'_>) -> impl Iterator<Item = (usize, String)> + 'p {
    let failed = |index: &usize| page.version(*index).state.failed();
    (0..page.history.versions.len()).filter(failed).map(move |index| {
        let why = page.version(index).why.as_deref().map_or(String::new(), |why| format!(": {}", plain(why)));
        (index, format!("{}{why}", state(page, index)))
    })
}

/// Returns the word for the form of a change; it is empty for a step.
pub(crate) fn form(change: &Change) -> &'static str {
    match change.form {
        ChangeForm::Step => "",
        ChangeForm::Spike => "spike",
        ChangeForm::Revert => "revert",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::report::ExplainedChange;
    use crate::history::report::fixture::{JudgedHistory, bare, rich, unread};
    use crate::history::report::open_questions;

    #[test]
    fn every_kind_of_bargain_has_its_sentence() {
        let made = unread(bare(2));
        let page = HistoryReport::of(&made.history, &made.judgement);
        let sentence_of = |build: f64, run: f64, runs: Option<f64>| {
            // In this test, values differ surely if they are not equal.
            let (build_surely, run_surely) = (build != 0.0, run != 0.0);
            let subject = "parse".to_owned();
            let one = BreakEven { subject, from: 0, to: 1, build, run, build_surely, run_surely, runs };
            let text = break_even(&page, &one);
            text.split_once(": ").map(|(_, rest)| rest.to_owned()).expect("a sentence")
        };
        assert_eq!(
            sentence_of(3e9, -0.12e9, Some(25.0)),
            "a build takes 3.00 s more; a run of it takes 120 ms less: it pays off after 25 runs for each build."
        );
        assert!(sentence_of(-3e9, 0.12e9, Some(25.4)).ends_with("it pays off up to 25 runs for each build."));
        assert!(sentence_of(-3e9, -1.0, None).ends_with(": better in both."));
        assert!(sentence_of(3e9, 1.0, None).ends_with(": worse in both."));
        let unsure = |build_surely: bool, run_surely: bool| {
            let (build, run, subject) = (3e9, -0.12e9, "parse".to_owned());
            break_even(
                &page,
                &BreakEven { subject, from: 0, to: 1, build, run, build_surely, run_surely, runs: None },
            )
        };
        assert!(unsure(false, true).contains("a build took 3.00 s more, which may be chance; a run of it"));
        assert!(unsure(false, true).ends_with("takes 120 ms less: can’t tell whether it pays off."));
        assert!(unsure(true, false).contains("a run of it may take more or less: can’t tell"));
    }

    #[test]
    fn open_questions_are_listed() {
        let mut made = rich();
        made.judgement.series[4].modes = Some([5.1e6, 5.6e6]);
        made.judgement.series[5].cannot = Some("no version could be weighed twice".to_owned());
        let page = HistoryReport::of(&made.history, &made.judgement);
        assert_eq!(
            open_questions::sentences(&page),
            [
                "#6 comes from one of 4 versions; 2 of them were not weighed: `scruple history bisect` looks closer.",
                "parse wall goes back and forth between 5.10 ms and 5.60 ms: no change is named.",
                "parse allocated: can’t tell, because no version could be weighed twice.",
            ]
        );
    }

    #[test]
    fn an_explanation_says_which_versions_it_calls_a_and_b() {
        let made = rich();
        let mut page = HistoryReport::of(&made.history, &made.judgement);
        let at = made.history.versions[page.shown_events()[0].at].commit.clone();
        let sides = format!("From 0123456789 (A) to {} (B): B is slower than A.", &at[..10]);
        let (before, sentences) = ("0123456789abcdef".to_owned(), vec!["B is slower than A.".to_owned()]);
        page.explained = vec![ExplainedChange { before, at, sentences, ..ExplainedChange::default() }];
        assert!(page.html().contains(&sides), "{}", page.html());
        assert!(page.markdown().contains(&sides), "{}", page.markdown());
    }

    #[test]
    fn the_reason_why_the_ends_are_not_compared_counts_the_weighed_versions() {
        let mut made = rich();
        let series = &mut made.judgement.series[0];
        (series.whole, series.cannot) = (None, None);
        assert!(series.points.len() > 1);
        let terminal = |made: &JudgedHistory| HistoryReport::of(&made.history, &made.judgement).terminal(200);
        assert!(
            terminal(&made)
                .contains("no version before the last one was weighed on its line of first parents")
        );
        made.judgement.series[0].points.truncate(1);
        assert!(terminal(&made).contains("fewer than two versions were weighed"));
    }

    #[test]
    fn a_change_that_a_version_without_readings_may_have_caused_is_attributed_to_no_version() {
        let made = rich();
        let page = HistoryReport::of(&made.history, &made.judgement);
        let event = page.events.iter().find(|event| event.number == 6).expect("one of 4 versions");
        assert_eq!(likeliest(&page, event), None);
        assert_eq!(favoured(&page, event), Some(format!("first seen at {}", short(&page, event.at))));
    }

    #[test]
    fn a_change_that_a_left_out_commit_may_have_caused_is_attributed_to_no_version() {
        let mut made = rich();
        made.history.versions[13].left_out = 9;
        made.history.run.argv =
            ["scruple", "history", "--every", "10", "--repo", "a b", "--", "x", "--store"]
                .map(str::to_owned)
                .to_vec();
        let page = HistoryReport::of(&made.history, &made.judgement);
        let event = page.events.iter().find(|event| event.at == 13).expect("the event");
        assert_eq!(
            (culprit(&page, event), likeliest(&page, event)),
            (format!("one of 10 commits, {}..{}", short(&page, event.before), short(&page, 13)), None)
        );
        assert_eq!(
            open_questions::sentences(&page)[0],
            "#2 comes from one of 10 commits; 9 of them were left out: `scruple history bisect --repo 'a b'` looks closer."
        );
        assert!(counts(&page).ends_with("; 9 commits between them were left out"), "{}", counts(&page));
        let title = plain(&page.version(13).title);
        let text = page.terminal(100);
        assert!(text.contains("one of 10 commits") && !text.contains(&title), "{text}");
        let json: serde_json::Value = serde_json::from_str(&page.json()).expect("JSON");
        assert_eq!(json["events"][event.number - 1]["left_out"], 9);
        assert_eq!(json["history"]["versions"][13]["left_out"], 9);
    }

    #[test]
    fn more_is_better_where_the_metric_says_so() {
        let mut series = rich().judgement.series.remove(1);
        assert_eq!((is_better(&series, 0.5), direction(&series, 0.5)), (Some(true), "faster"));
        series.better = scruple_core::metric::Better::Higher;
        series.metric = "requests.rate".to_owned();
        assert_eq!((is_better(&series, 0.5), direction(&series, 0.5)), (Some(false), "less"));
        assert_eq!((is_better(&series, 1.0), direction(&series, 1.0)), (None, "same"));
    }

    #[test]
    fn no_change_and_no_sure_change_have_different_words() {
        let series = rich().judgement.series;
        let interval = Some(Interval { low: 0.8, high: 1.1, level: 0.95 });
        let whole = |ratio, surely| VersionEffect {
            from: 0,
            to: 34,
            ratio,
            interval,
            surely,
            levels: None,
            same_artefacts: false,
        };
        assert_eq!(verdict(&series[3], &whole(1.0, false)), ("same", None));
        assert_eq!(verdict(&series[1], &whole(1.0, false)), ("no sure change", None));
        assert_eq!(verdict(&series[1], &whole(0.9, false)), ("no sure change", None));
        assert_eq!(verdict(&series[1], &whole(0.9, true)), ("faster", Some(true)));
        let same = VersionEffect { same_artefacts: true, ..whole(0.9, false) };
        assert_eq!(verdict(&series[1], &same), ("same binary", None));
        let few = VersionEffect { interval: None, ..whole(0.9, false) };
        let mut unsure = series[1].clone();
        assert_eq!(verdict(&unsure, &few), ("no sure change", None));
        unsure.cannot = Some("3 readings of a version beside others are too few".to_owned());
        assert_eq!(verdict(&unsure, &few), ("too few readings", None));
        unsure.cannot = Some("many readings are zero".to_owned());
        assert_eq!(verdict(&unsure, &few), ("can't tell", None));
        let counted = Series { shifting: true, exact: false, cannot: None, ..series[3].clone() };
        assert_eq!(verdict(&counted, &few), ("counts shifted", None));
        // A change below the last written digit is not shown.
        let tiny = Interval { low: 0.999_97, high: 0.999_99, level: 0.95 };
        let tiny = VersionEffect { interval: Some(tiny), ..whole(0.999_98, true) };
        assert_eq!(verdict(&series[1], &tiny), ("same", None));
        assert_eq!(effect(tiny.ratio, tiny.interval, -1.0, &series[1].unit), "less than 0.01 %");
    }

    #[test]
    fn an_effect_shows_what_would_round_away() {
        let bytes = Unit::Bytes;
        assert_eq!(effect(1.000_01, None, 32.0, &bytes), "+32 B");
        assert_eq!(effect(1.2, None, 200.0, &bytes), "+20.0 %");
        assert_eq!(effect(f64::INFINITY, None, 4096.0, &bytes), "+4,096 B");
        assert_eq!(effect(1.0, None, 0.0, &bytes), "±0");
        let interval = Some(Interval { low: 1.1, high: 1.3, level: 0.95 });
        assert_eq!(effect(1.2, interval, 200.0, &bytes), "+20.0 % [+10.0, +30.0]");
    }

    #[test]
    fn nothing_of_others_steers() {
        assert_eq!(plain("a\u{1b}[31m\tb\u{202e}c\u{2066}"), "a\u{fffd}[31m\u{fffd}b\u{fffd}c\u{fffd}");
    }
}
