//! Writes the verdict as a sentence that a person can quote.

use super::Report;
use super::advice::advice;
use crate::render::metric_words::measure;
use crate::render::node_spread;
use scruple_core::evidence::{Evidence, Replicate};
use scruple_core::judge::limits::{Checked, Kept};
use scruple_core::judge::{self, Judged};
use scruple_core::metric::metric;
use scruple_core::subject::{Arm, Role};
use scruple_core::unit::{Unit, change_bounds, quantity, relative_spread, share};
use scruple_core::verdict::{Comparison, Direction, Verdict, WIDEST_MARGIN};
use scruple_stats::nodes::CLASS;
use scruple_stats::tare;

/// Writes one sentence for each arm that was compared.
pub(crate) fn verdicts(report: &Report<'_>) -> Vec<String> {
    let headlines = judge::headlines(&report.judged, &report.shown);
    report
        .run
        .arms_of(Role::Subject)
        .filter_map(|arm| Some((arm, *headlines.get(arm.name.as_str())?)))
        .map(|(arm, judged)| sentence(report, arm, judged))
        .collect()
}

fn sentence(report: &Report<'_>, arm: &Arm, judged: &Judged) -> String {
    let comparison = &judged.comparison;
    let (a, b) = (&arm.name, &judged.reference);
    let what = measure(&judged.metric);
    let sure = certainty(report, judged);
    let margin = share(comparison.margin);
    let statement = match comparison.verdict {
        Verdict::Same if comparison.evidence.difference().is_some() => {
            format!("‘{a}’ and ‘{b}’ take exactly the same {what}")
        }
        Verdict::Different if comparison.evidence.difference().is_some() => exact_difference(judged, what),
        Verdict::Different if comparison.evidence.effect().is_none() => {
            format!("‘{a}’ takes some {what}, where ‘{b}’ takes none")
        }
        Verdict::Different => format!("‘{a}’ {} ‘{b}’{}", difference(judged, what), sure),
        Verdict::Same => format!("‘{a}’ and ‘{b}’ take the same {what}, within {margin}{sure}"),
        Verdict::Small => format!(
            "‘{a}’ takes {} {what} than ‘{b}’, but the difference may be below {margin}{sure}",
            if effect_of(comparison) > 1.0 { "more" } else { less(&judged.metric) }
        ),
        Verdict::CantTell => unknown(report, judged, what),
    };
    let over_nodes = agreement(report, judged).unwrap_or_default();
    format!("{statement}{}.{over_nodes}", why_processor_time(report, arm, judged))
}

/// Describes how far the nodes of a farm agree about a comparison, if several nodes have measured it.
fn agreement(report: &Report<'_>, judged: &Judged) -> Option<String> {
    let at = report.judged.iter().position(|one| std::ptr::eq(one, judged))?;
    let found = report.over_nodes.get(&at)?;
    let joined = found.joined.as_ref().ok()?;
    let few = match joined.of_class {
        true => String::new(),
        false => format!("; a verdict for their class needs {CLASS} nodes"),
    };
    Some(format!(" The nodes differ {}{few}.", node_spread::differ(joined, &found.names)))
}

/// Returns the ratio of a comparison, or NaN if its evidence has none.
fn effect_of(comparison: &Comparison) -> f64 {
    comparison.evidence.effect().unwrap_or(f64::NAN)
}

fn exact_difference(judged: &Judged, what: &str) -> String {
    let evidence = &judged.comparison.evidence;
    let difference = evidence.difference().unwrap_or(0.0);
    let unit = metric(&judged.metric).map_or(Unit::Count, |metric| metric.unit.clone());
    let relative = match evidence.effect() {
        Some(effect) => format!(" ({})", scruple_core::unit::change(effect)),
        None => String::new(),
    };
    // The titles of counts are plurals: mallocs, GCs, instructions.
    let one =
        difference.abs() == 1.0 && metric(&judged.metric).is_some_and(|metric| metric.unit == Unit::Count);
    let titled = what;
    let what = what.strip_suffix('s').filter(|_| one).unwrap_or(what);
    let (arm, reference) = (&judged.arm, &judged.reference);
    if evidence.effect() == Some(0.0) {
        let amount = scruple_core::unit::exact(difference.abs(), &unit);
        return format!("‘{arm}’ takes no {titled}, where ‘{reference}’ takes exactly {amount}");
    }
    format!(
        "‘{}’ takes exactly {}{relative} {} {what} than ‘{}’",
        judged.arm,
        scruple_core::unit::exact(difference.abs(), &unit),
        if difference > 0.0 { "more" } else { less(&judged.metric) },
        judged.reference
    )
}

/// Returns ‘fewer’ for counts, and ‘less’ for all other metrics.
fn less(key: &str) -> &'static str {
    match metric(key) {
        Some(metric) if metric.unit == Unit::Count || key == "load.rate" => "fewer",
        _ => "less",
    }
}

fn difference(judged: &Judged, what: &str) -> String {
    let comparison = &judged.comparison;
    let effect = effect_of(comparison);
    if let Some((times, word)) = multiple(judged) {
        return format!("is {times:.2} times as {word} in {what} as");
    }
    let percent = (effect - 1.0).abs() * 100.0;
    format!("takes {percent:.1} % {} {what} than", if effect < 1.0 { less(&judged.metric) } else { "more" })
}

/// Returns how many times as fast or slow an arm is as its reference, if a multiple is easier to read than a change.
pub(crate) fn multiple(judged: &Judged) -> Option<(f64, &'static str)> {
    let effect = effect_of(&judged.comparison);
    in_times(judged).then(|| match judged.comparison.direction {
        Some(Direction::Better) => (1.0 / effect, "fast"),
        _ => (effect, "slow"),
    })
}

fn certainty(report: &Report<'_>, judged: &Judged) -> String {
    let comparison = &judged.comparison;
    let Some(interval) = comparison.interval() else { return String::new() };
    let (low, high) = match (in_times(judged), comparison.direction) {
        (true, Some(Direction::Better)) => multiples(1.0 / interval.high, 1.0 / interval.low),
        (true, _) => multiples(interval.low, interval.high),
        _ => change_bounds(interval.low, interval.high),
    };
    let of = match comparison.evidence {
        Evidence::Interval { of: Replicate::Process, .. } => "processes".to_owned(),
        Evidence::Interval { of: Replicate::Turn, .. } => "turns".to_owned(),
        Evidence::Interval { of: Replicate::Launch, .. } => "launches".to_owned(),
        Evidence::Interval { of: Replicate::Nodes { of_class: true, .. }, .. } => {
            "nodes of one class".to_owned()
        }
        Evidence::Interval { of: Replicate::Nodes { nodes, .. }, .. } => {
            format!("pairs on these {nodes} nodes")
        }
        // Another tool launched one command after the other, not in blocks.
        _ if report.run.provenance.tool.is_some() => "readings".to_owned(),
        _ => "blocks".to_owned(),
    };
    format!(" ({}: {low} to {high}, {} {of})", level_text(interval.level), comparison.evidence.readings())
}

/// Writes two multiples with enough decimals to distinguish them, at most four.
fn multiples(low: f64, high: f64) -> (String, String) {
    let decimals = if high - low < 0.02 { 4 } else { 2 };
    (format!("{low:.decimals$} ×"), format!("{high:.decimals$} ×"))
}

/// Whether a difference is easier to read as a multiple. That is so for large differences in time.
fn in_times(judged: &Judged) -> bool {
    judged.comparison.verdict == Verdict::Different
        && judged.metric.starts_with("time.")
        && !(1.0 / 1.5..1.5).contains(&effect_of(&judged.comparison))
}

/// Writes the level of an interval. It may be above 95 % because of repeated looks or several comparisons. It is never
/// rounded to certainty.
fn level_text(level: f64) -> String {
    let percent = |decimals: usize| format!("{:.decimals$}", level * 100.0);
    let short = (1..9).map(percent).find(|text| !text.starts_with("100"));
    let text = short.unwrap_or_else(|| percent(9));
    format!("{} % sure", text.trim_end_matches('0').trim_end_matches('.'))
}

fn unknown(report: &Report<'_>, judged: &Judged, what: &str) -> String {
    let (a, b, comparison) = (&judged.arm, &judged.reference, &judged.comparison);
    let evidence = &comparison.evidence;
    let found = match (evidence.interval(), evidence.why()) {
        (Some(_), _) if comparison.margin > WIDEST_MARGIN => wide_margin(report, comparison.margin),
        (Some(interval), _) => {
            let (low, high) = change_bounds(interval.low, interval.high);
            format!("anything from {low} to {high} fits the readings")
        }
        (None, Some(why)) => why.to_string(),
        (None, None) => "the ranges of the readings overlap".to_owned(),
    };
    format!(
        "Can’t tell whether ‘{a}’ takes more or less {what} than ‘{b}’: {found}{}",
        advice(report, comparison, &judged.metric)
    )
}

/// Says why a margin is too wide for a verdict.
fn wide_margin(report: &Report<'_>, margin: f64) -> String {
    let margin = relative_spread(margin);
    match () {
        () if report.side_by_side => format!("identical programs differed by {margin} here"),
        () if report.of_cases() => format!(
            "the core’s clock, and other work on the core, may account for a difference of {margin} between the two runs"
        ),
        () => format!(
            "waiting for a core, and what any launch costs, may account for a difference of {margin} between the two runs"
        ),
    }
}

/// Explains why processor time is quoted instead of wall time.
fn why_processor_time(report: &Report<'_>, arm: &Arm, judged: &Judged) -> String {
    if judged.metric != "time.cpu" || !report.is_shown("time.wall") {
        return String::new();
    }
    let Some(wall) = report.judged_of(&arm.name, "time.wall") else { return String::new() };
    let waited = match wall.waiting {
        waiting if waiting > judge::MOST_WAITING => {
            format!(", since {} of it was waiting for a core", share(waiting))
        }
        _ => String::new(),
    };
    let (wall, cpu) = (&wall.comparison, &judged.comparison);
    match wall.verdict {
        // Wall time may also be undecided because of few readings or different machines, and not because of waiting.
        Verdict::CantTell if wall.evidence.why().is_some() && cpu.evidence.why().is_some() => String::new(),
        Verdict::CantTell if wall.evidence.why().is_some() || waited.is_empty() => {
            "; wall time cannot tell here".to_owned()
        }
        Verdict::CantTell => format!("; wall time cannot tell{waited}"),
        Verdict::Different if wall.direction == cpu.direction => {
            format!("; wall time agrees, but is less precise{waited}")
        }
        _ if !waited.is_empty() => format!("; wall time is less certain{waited}"),
        _ if wall.half_width() > cpu.half_width() => "; wall time is less precise".to_owned(),
        _ => String::new(),
    }
}

/// Writes the cost of launching an empty program, and the costs net of it if the difference matters, in wall time or
/// processor time, whichever is shown. If both are, it is wall time, unless much of that was waiting for a core: an empty
/// program waits as long as any other.
pub(crate) fn tare_lines(report: &Report<'_>) -> Vec<String> {
    let Some(tare_arm) = report.run.arms_of(Role::Tare).next() else { return Vec::new() };
    let waited = |arm: &Arm| judge::waiting_share(arm).is_some_and(|share| share > judge::MOST_WAITING);
    let keys = match report.run.arms.iter().any(waited) {
        true => ["time.cpu", "time.wall"],
        false => ["time.wall", "time.cpu"],
    };
    let shown = |key: &&str| report.is_shown(key) && tare_arm.sample(key).is_some();
    let Some(key) = keys.into_iter().find(shown) else { return Vec::new() };
    let (Some(estimate), Some(tare_sample)) = (report.estimate(tare_arm, key), tare_arm.sample(key)) else {
        return Vec::new();
    };
    let ns = Unit::Nanoseconds;
    let mut lines = vec![format!(
        "Tare: launching an empty program takes {} of {}; it is part of the figures above.",
        quantity(estimate.value, &ns),
        measure(key)
    )];
    for arm in report.run.arms_of(Role::Subject) {
        let Some(sample) = arm.sample(key) else { continue };
        if report.estimate(arm, key).is_none_or(|raw| estimate.value < 0.02 * raw.value) {
            continue;
        }
        let (raw, tare_readings) = sample.paired(tare_sample);
        if let Ok(net) = tare::net(&raw, &tare_readings, report.run.terms.level) {
            let text = match net.below_resolution {
                Some(resolution) => {
                    format!("takes less than {}, which is below resolution", quantity(resolution, &ns))
                }
                None if net.unknown => format!(
                    "may take anything from {} to {}",
                    quantity(net.interval.low.max(0.0), &ns),
                    quantity(net.interval.high, &ns)
                ),
                None => format!(
                    "takes {} [{}, {}]",
                    quantity(net.estimate, &ns),
                    quantity(net.interval.low, &ns),
                    quantity(net.interval.high, &ns)
                ),
            };
            lines.push(format!("      net of that, ‘{}’ {text}.", arm.name));
        }
    }
    lines
}

/// Writes how metrics grow with parameters.
pub(crate) fn growth_lines(report: &Report<'_>) -> Vec<String> {
    // A count that does not grow is expected; a time that does not grow, or may not, may be notable.
    let notable = |fit: &&judge::GrowthFit| fit.growth.form.is_change() || fit.metric.starts_with("time.");
    report.fits.iter().filter(notable).map(growth_line).collect()
}

/// Writes a form of growth in terms of its parameter.
pub(crate) fn form_in(form: scruple_stats::growth::GrowthForm, parameter: &str) -> String {
    let words: Vec<String> = form
        .to_string()
        .split(' ')
        .map(|word| match word {
            "n^2" => format!("{parameter}²"),
            "n^3" => format!("{parameter}³"),
            "2^n" => format!("2^{parameter}"),
            "n" => parameter.to_owned(),
            other => other.to_owned(),
        })
        .collect();
    words.join(" ")
}

pub(crate) fn growth_line(fit: &judge::GrowthFit) -> String {
    use scruple_stats::growth::GrowthForm;
    let unit = fit.unit.clone();
    let growth = &fit.growth;
    let figure = |value: f64| match growth.exact {
        true => scruple_core::unit::exact(value, &unit),
        false => quantity(value, &unit),
    };
    let title = measure(&fit.metric);
    let of = if fit.family.is_empty() { String::new() } else { format!(" of ‘{}’", fit.family) };
    if growth.form == GrowthForm::Constant {
        return format!("Growth: {title}{of} does not grow with {}.", fit.parameter);
    }
    if growth.form == GrowthForm::Unknown {
        return format!(
            "Growth: can’t tell whether {title}{of} grows with {}: there are too few readings of each value.",
            fit.parameter
        );
    }
    if let (GrowthForm::Other, Some([(first, least), (last, most)])) = (growth.form, growth.ends) {
        let (name, least, most) = (&fit.parameter, quantity(least, &unit), quantity(most, &unit));
        return format!(
            "Growth: {title}{of} goes from {least} at {name} = {first} to {most} at {name} = {last}, and no form of growth fits."
        );
    }
    let form = form_in(growth.form, &fit.parameter);
    let interval = growth.slope_interval.map_or(String::new(), |interval| {
        format!(" [{}, {}]", quantity(interval.low, &unit), quantity(interval.high, &unit))
    });
    let sign = if growth.slope < 0.0 { "−" } else { "+" };
    let curve =
        format!("{} {sign} {}{interval} · {form}", figure(growth.intercept), figure(growth.slope.abs()));
    if let [others @ .., last] = growth.also_possible.as_slice() {
        let direction = if growth.slope < 0.0 { "falls" } else { "grows" };
        let others: Vec<String> = others.iter().map(|form| form_in(*form, &fit.parameter)).collect();
        let last = form_in(*last, &fit.parameter);
        let others = match others.is_empty() {
            true => format!("{last} fits"),
            false => format!("{} and {last} fit", others.join(", ")),
        };
        return format!(
            "Growth: {title}{of} {direction} with {}: {curve} fits best, but {others} these sizes too; more sizes would tell.",
            fit.parameter
        );
    }
    let rough = growth.slope_interval.is_some_and(|slope| slope.low <= 0.0);
    let doubt = if rough { "; so few sizes show only that it grows" } else { "" };
    format!("Growth: {title}{of} is {curve}{}{doubt}.", if growth.exact { ", exactly" } else { "" })
}

/// Writes why figures are absent, given their names and reasons: one line for all that have the same reason.
pub(crate) fn absences<'a>(absent: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for (name, reason) in absent {
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(name),
            None => reasons.push((reason, vec![name])),
        }
    }
    let line = |(reason, names): (&str, Vec<&str>)| format!("{}: absent, because {reason}", names.join(", "));
    reasons.into_iter().map(line).collect()
}

/// Whether a limit was kept, in a word or two.
pub fn kept(checked: &Checked) -> &'static str {
    match checked.kept {
        Kept::Yes => "kept",
        Kept::No => "EXCEEDED",
        Kept::CantTell => "can’t tell",
    }
}

/// Whether a limit was kept, by which arm, and with what figure.
pub fn limit(checked: &Checked) -> String {
    let Checked { limit, arm, found, .. } = checked;
    let word = kept(checked);
    match checked.kept {
        Kept::CantTell => format!("Limit {limit}: {word} for ‘{arm}’: {found}"),
        Kept::Yes | Kept::No => format!("Limit {limit}: {word} by ‘{arm}’, which has {found}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_growth_that_is_not_known_is_not_stated_as_one() {
        use scruple_core::unit::Unit;
        use scruple_stats::growth::{Growth, GrowthForm};
        let growth = |also_possible| Growth {
            form: GrowthForm::Linearithmic,
            intercept: 24.0,
            slope: 4.0,
            slope_interval: None,
            lower: Vec::new(),
            exact: true,
            also_possible,
            residual: 0.0,
            ends: None,
        };
        let line = |also_possible| {
            growth_line(&judge::GrowthFit {
                metric: "malloc.bytes".to_owned(),
                unit: Unit::Bytes,
                parameter: "n".to_owned(),
                family: String::new(),
                growth: growth(also_possible),
            })
        };
        assert_eq!(line(vec![]), "Growth: malloc bytes is 24 B + 4 B · n log n, exactly.");
        assert_eq!(
            line(vec![GrowthForm::Exponential]),
            "Growth: malloc bytes grows with n: 24 B + 4 B · n log n fits best, but 2^n fits these sizes too; more sizes would tell."
        );
        assert_eq!(
            line(vec![GrowthForm::Quadratic, GrowthForm::Linear, GrowthForm::Exponential]),
            "Growth: malloc bytes grows with n: 24 B + 4 B · n log n fits best, but n², n and 2^n fit these sizes too; more sizes would tell."
        );
    }

    #[test]
    fn no_level_is_called_certain() {
        let texts = [0.95, 0.976, 0.9995, 0.99995, 0.999_999_4].map(level_text);
        assert_eq!(
            texts,
            ["95 % sure", "97.6 % sure", "99.95 % sure", "99.995 % sure", "99.9999 % sure"]
                .map(str::to_owned)
        );
    }
}
