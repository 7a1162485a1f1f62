//! The first line of a page: the verdicts in one sentence.

use super::matrix::effect_alone;
use super::{capital, what};
use crate::render::metric_words::verdict_words;
use crate::render::page::{Span, Tone, harmless_name, harmless_sentence, tone};
use crate::run_report::{Report, sentence as words};
use scruple_core::judge::{self, Judged};
use scruple_core::plural;
use scruple_core::subject::{Arm, Role, tells_skip};
use scruple_core::unit::{change, quantity};
use scruple_core::verdict::Verdict;
use scruple_stats::sorting;

/// The largest number of verdicts that are listed. More are only counted.
const MOST: usize = 4;

/// Returns the quoted verdict of each arm, in the order of the arms.
fn quoted<'a>(report: &'a Report<'_>) -> Vec<&'a Judged> {
    let headlines = judge::headlines(&report.judged, &report.shown);
    report.run.arms_of(Role::Subject).filter_map(|arm| headlines.get(arm.name.as_str()).copied()).collect()
}

/// Writes the first line.
pub fn of(report: &Report<'_>) -> Vec<Span> {
    if let Some(mut spans) = super::load::lead(report) {
        spans.push(Span::plain("."));
        return spans;
    }
    let quoted = quoted(report);
    let mut spans: Vec<Span> = super::load::void(report).into_iter().collect();
    spans.extend(growth(report, &quoted));
    spans.extend(match quoted.as_slice() {
        [] => alone(report),
        [one] => {
            let sentences = words::verdicts(report).pop().unwrap_or_default();
            vec![Span::new(harmless_sentence(sentences.trim_end_matches('.')), tone(&one.comparison))]
        }
        few if few.len() <= MOST => one_by_one(few),
        many => counted(many),
    });
    spans.extend(other_worse_metrics(report, &quoted));
    spans.extend(super::load::response_times(report, &quoted));
    spans.extend(without_times(report));
    spans.push(Span::plain("."));
    spans
}

/// Writes details of each arm that the first line omits.
pub fn detail(report: &Report<'_>) -> Vec<String> {
    let sentences = words::verdicts(report);
    match sentences.len() {
        0 | 1 => Vec::new(),
        few if few <= MOST => sentences.iter().map(|one| harmless_sentence(one)).collect(),
        _ => Vec::new(),
    }
}

/// Says how many cases have failed and how many were skipped.
fn without_times(report: &Report<'_>) -> Vec<Span> {
    let reasons: Vec<&str> =
        report.run.arms_of(Role::Subject).filter_map(|arm| arm.absent("time.wall")).collect();
    let skipped = reasons.iter().filter(|why| tells_skip(why)).count();
    let parts = [(reasons.len() - skipped, "failed", Tone::Worse), (skipped, "skipped", Tone::Open)];
    let parts = parts.into_iter().filter(|(number, ..)| report.of_cases() && *number > 0);
    parts
        .flat_map(|(number, word, tone)| {
            [Span::plain("; "), Span::new(format!("{} {word}", plural::counted(number, "case")), tone)]
        })
        .collect()
}

/// Writes the costs of the arms of a run without comparisons.
fn alone(report: &Report<'_>) -> Vec<Span> {
    let arms: Vec<&Arm> = report.run.arms_of(Role::Subject).collect();
    let [arm] = arms.as_slice() else {
        let range = range(report, &arms).unwrap_or_default();
        let measured = arms.iter().filter(|arm| arm.ended().is_none()).count();
        let were = if measured == 1 { "was" } else { "were" };
        return vec![Span::plain(format!(
            "{} {were} measured{range}, and not compared",
            count(measured, report)
        ))];
    };
    if let Some(of_load) = super::load::without_course(report, arm) {
        return vec![of_load];
    }
    let key = report.shown.iter().find(|key| arm.sample(key).is_some());
    let Some((key, sample)) = key.and_then(|key| Some((key, arm.sample(key)?))) else {
        return vec![Span::plain(format!("Nothing could be read of ‘{}’", harmless_name(&arm.name)))];
    };
    let Some(estimate) = report.estimate(arm, key) else { return Vec::new() };
    let value = |value: f64| quantity(value, &sample.unit);
    let interval = estimate
        .interval
        .map_or(String::new(), |interval| format!(" [{}, {}]", value(interval.low), value(interval.high)));
    vec![Span::plain(format!(
        "‘{}’ takes {}{interval} of {}",
        harmless_name(&arm.name),
        value(estimate.value),
        what(key)
    ))]
}

/// Says which of several arms cost the least and the most.
fn range(report: &Report<'_>, arms: &[&Arm]) -> Option<String> {
    let key = report.shown.first()?;
    let mut known: Vec<(f64, &Arm)> =
        arms.iter().filter_map(|arm| Some((report.estimate(arm, key)?.value, *arm))).collect();
    sorting::by(&mut known, |one, other| one.0.total_cmp(&other.0));
    let ((least, cheapest), (most, dearest)) = (known.first()?, known.last()?);
    let unit = &cheapest.sample(key)?.unit;
    let (least, most) = (quantity(*least, unit), quantity(*most, unit));
    let (cheapest, dearest) = (harmless_name(&cheapest.name), harmless_name(&dearest.name));
    Some(format!(", from {least} (‘{cheapest}’) to {most} (‘{dearest}’) of {}", what(key)))
}

fn count(number: usize, report: &Report<'_>) -> String {
    let what = if report.of_cases() { "case" } else { "command" };
    plural::counted(number, what)
}

/// Writes how the first quoted metric grows with a parameter, if there are too many arms to list them.
fn growth(report: &Report<'_>, quoted: &[&Judged]) -> Vec<Span> {
    let Some(metric) = quoted.first().filter(|_| quoted.len() > MOST).map(|judged| &judged.metric) else {
        return Vec::new();
    };
    let grown = report.fits.iter().filter(|fit| fit.metric == *metric && fit.growth.form.is_change());
    let lines: Vec<String> = grown.map(words::growth_line).collect();
    match lines.as_slice() {
        [line] => {
            let line = line.trim_start_matches("Growth: ");
            vec![Span::plain(format!("{} ", capital(&harmless_sentence(line))))]
        }
        _ => Vec::new(),
    }
}

/// Returns the versions of the arms and of their references, if each arm is compared with another version of itself.
pub fn versions<'a>(few: &[&'a Judged]) -> Option<(&'a str, &'a str)> {
    let pair = |judged: &'a Judged| {
        let (subject, version) = judged.arm.rsplit_once(" @")?;
        let (other, reference) = judged.reference.rsplit_once(" @")?;
        (subject == other && version != reference).then_some((version, reference))
    };
    let first = pair(few.first()?)?;
    few.iter().all(|judged| pair(judged) == Some(first)).then_some(first)
}

/// Writes a clause about arms. Those that need the same of a metric share the clause.
fn clause(together: &[&Judged], named: impl Fn(&str) -> String) -> Span {
    let judged = together[0];
    let (arm, what) = (named(&judged.arm), what(&judged.metric));
    let names: Vec<String> = together.iter().map(|judged| format!("‘{}’", named(&judged.arm))).collect();
    if let [others @ .., last] = names.as_slice()
        && !others.is_empty()
    {
        return Span::new(format!("{} and {last} take the same {what}", others.join(", ")), Tone::Same);
    }
    let comparison = &judged.comparison;
    let text = match comparison.verdict {
        Verdict::Same => format!("‘{arm}’ takes the same {what}"),
        Verdict::CantTell => format!("can’t tell for ‘{arm}’"),
        _ => match words::multiple(judged) {
            Some((times, word)) => format!("‘{arm}’ is {times:.2} times as {word} in {what}"),
            None => format!(
                "‘{arm}’ is {} in {what} ({})",
                verdict_words(&judged.metric, comparison),
                effect_alone(judged)
            ),
        },
    };
    Span::new(text, tone(comparison))
}

fn one_by_one(few: &[&Judged]) -> Vec<Span> {
    let reference = &few[0].reference;
    let versions = versions(few);
    let common = versions.is_some() || few.iter().all(|judged| judged.reference == *reference);
    let mut spans = Vec::new();
    match versions {
        Some((version, reference)) => {
            spans.push(Span::plain(format!(
                "‘{}’ against ‘{}’: ",
                harmless_name(version),
                harmless_name(reference)
            )));
        }
        None if common => spans.push(Span::plain(format!("Against ‘{}’: ", harmless_name(reference)))),
        None => {}
    }
    let named = |arm: &str| match (versions, arm.rsplit_once(" @")) {
        (Some(_), Some((subject, _))) => harmless_name(subject),
        _ => harmless_name(arm),
    };
    let alike = |one: &&Judged, other: &&Judged| {
        let same = |judged: &Judged| judged.comparison.verdict == Verdict::Same;
        common && same(one) && same(other) && one.metric == other.metric
    };
    for (place, together) in few.chunk_by(alike).enumerate() {
        if place > 0 {
            spans.push(Span::plain("; "));
        }
        spans.push(clause(together, named));
        if !common {
            spans.push(Span::plain(format!(" against ‘{}’", harmless_name(&together[0].reference))));
        }
    }
    spans
}

/// Writes how many arms are worse, better, the same and undecided, and which is worse by most.
fn counted(many: &[&Judged]) -> Vec<Span> {
    let of = |wanted: Tone| many.iter().filter(|judged| tone(&judged.comparison) == wanted).count();
    let other = of(Tone::Plain);
    let parts = [
        (of(Tone::Worse), Tone::Worse, "worse"),
        (of(Tone::Better), Tone::Better, "better"),
        (of(Tone::Same), Tone::Same, "the same"),
        (other, Tone::Plain, "different"),
        (of(Tone::Open), Tone::Open, "can’t tell"),
    ];
    let first = many[0];
    let reference = match many.iter().all(|judged| judged.reference == first.reference) {
        true => format!(" with ‘{}’", harmless_name(&first.reference)),
        false => String::new(),
    };
    let metric = match many.iter().all(|judged| judged.metric == first.metric) {
        true => format!(" in {}", what(&first.metric)),
        false => String::new(),
    };
    let mut spans = vec![Span::plain(format!("Of {} comparisons{reference}{metric}: ", many.len()))];
    for (count, tone, word) in parts.into_iter().filter(|(count, ..)| *count > 0) {
        if spans.len() > 1 {
            spans.push(Span::plain(", "));
        }
        spans.push(Span::new(format!("{count} {word}"), tone));
        if tone == Tone::Worse {
            spans.extend(worst(many, count));
        }
    }
    spans
}

/// Names the arm that is worse by the largest ratio.
fn worst(many: &[&Judged], count: usize) -> Option<Span> {
    let worse = many.iter().filter(|judged| tone(&judged.comparison) == Tone::Worse);
    let by =
        |judged: &Judged| judged.comparison.evidence.effect().filter(|by| *by > 0.0).map(|by| by.ln().abs());
    let known = worse.filter_map(|judged| Some((by(judged)?, *judged)));
    let (_, most) = known.max_by(|one, other| one.0.total_cmp(&other.0))?;
    let first = if count > 1 { "most: " } else { "" };
    let effect = most.comparison.evidence.effect().map(change)?;
    Some(Span::plain(format!(" ({first}‘{}’, {effect})", harmless_name(&most.arm))))
}

/// Names other metrics that became worse, because the quoted verdict alone would understate the differences.
fn other_worse_metrics(report: &Report<'_>, quoted: &[&Judged]) -> Vec<Span> {
    let calm: Vec<&str> = quoted
        .iter()
        .filter(|judged| tone(&judged.comparison) != Tone::Worse)
        .map(|judged| judged.arm.as_str())
        .collect();
    let worse: Vec<&Judged> = report
        .judged
        .iter()
        .filter(|one| calm.contains(&one.arm.as_str()) && report.shown.contains(&one.metric))
        .filter(|one| {
            tone(&one.comparison) == Tone::Worse && !quoted.iter().any(|quoted| std::ptr::eq(*quoted, *one))
        })
        .collect();
    let joint = if calm.len() < quoted.len() { "; also " } else { "; but " };
    match worse.as_slice() {
        [] => Vec::new(),
        [one] => vec![
            Span::plain(joint),
            Span::new(
                format!(
                    "{} {}: {}",
                    what(&one.metric),
                    verdict_words(&one.metric, &one.comparison),
                    effect_alone(one)
                ),
                Tone::Worse,
            ),
            Span::plain(if quoted.len() > 1 {
                format!(" for ‘{}’", harmless_name(&one.arm))
            } else {
                String::new()
            }),
        ],
        several => {
            let mut metrics: Vec<String> = several.iter().map(|one| what(&one.metric)).collect();
            metrics.dedup();
            metrics.sort_unstable();
            metrics.dedup();
            vec![Span::plain(joint), Span::new(format!("worse in {}", metrics.join(", ")), Tone::Worse)]
        }
    }
}
