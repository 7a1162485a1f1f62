//! Reports a search for the highest rate on a terminal.

use crate::load::windows::{Loads, RateSearch};
use crate::progress::in_words;
use crate::render::align::{fit, remark, right, wrap};
use crate::render::colours::{BAD, BOLD, GOOD, OPEN};
use crate::run_report::Report;
use anstyle::Style;
use scruple_core::knee::{KneeInterval, RateOutcome, Tally};
use scruple_core::plural::counted;
use scruple_core::unit::{Unit, grouped, quantity, share};
use scruple_measure::load::{Capacity, Ended, Plan, RatePoint, measurement};
use std::fmt::Write as _;
use unicode_width::UnicodeWidthStr;

/// Writes the search for the highest rate: the answer, and the latency at each rate.
pub(super) fn text(report: &Report<'_>, loads: &Loads, sought: &RateSearch, width: usize) -> String {
    let mut out = String::new();
    let steps = sought.found.points.len();
    let head = format!(
        "{} · {}{} · seed {}",
        sought.limits,
        counted_measurements(steps),
        lengths(&loads.plan, &sought.found.points),
        report.run.seed
    );
    let _ = writeln!(out, "{}\n", wrap(&head, width));
    let most =
        sought.found.points.iter().filter_map(|point| point.response.quantile(0.99)).max().unwrap_or(1);
    let groups = neighbours(&sought.found.tallies, MOST_ROWS);
    let rates: Vec<String> = groups.iter().map(|group| rates(group)).collect();
    let widest = rates.iter().map(|rate| rate.width()).max().unwrap_or(0);
    for (group, rate) in groups.iter().zip(&rates) {
        let within = |point: &&RatePoint| group.iter().any(|tally| tally.rate == point.rate);
        let points: Vec<&RatePoint> = sought.found.points.iter().filter(within).collect();
        let mut p99: Vec<u64> = points.iter().filter_map(|point| point.response.quantile(0.99)).collect();
        p99.sort_unstable();
        let p99 = p99.get(p99.len() / 2).copied();
        let bar = p99.map_or(0, |ns| bar(ns, most));
        let p99 = p99.map_or(String::new(), |ns| quantity(ns as f64, &Unit::Nanoseconds));
        let line =
            format!("  {}  p99 {}  {}", right(rate, widest), right(&p99, 8), fit(&"▇".repeat(bar), BAR));
        let (style, words) = outcome(group, &points);
        let _ = writeln!(out, "{line}  {style}{words}{style:#}");
    }
    let _ = writeln!(out, "\n{BOLD}{}{BOLD:#}", wrap(&answer(sought), width));
    for text in remarks(sought, loads.plan.threads.are_well_placed()) {
        out.push_str(&remark(&text, width));
    }
    out
}

/// Says why the search found no more, and what to do about it. `ticked` says that a thread of ordinary priority was
/// observed beside the generator.
fn remarks(sought: &RateSearch, ticked: bool) -> Vec<String> {
    let found = &sought.found.found;
    let mut remarks = Vec::new();
    if let Some(late) = found.late {
        remarks.push(format!(
            "{} more than {} late {} of the measurements that broke a limit or were void, so the server, on the same \
             machine, may have waited for a core as well. More measurements now would not tell more. Search when the \
             machine is less busy: --threads 1@CORE and --priority make the generator punctual, but not the server",
            if ticked { "the generator, or a thread of ordinary priority beside it, was" } else { "the generator was" },
            in_words(sought.found.lateness),
            match ticked {
                true => format!("in {} of the time", share(late)),
                false => format!("with {} of the requests", share(late)),
            }
        ));
    } else if found.void {
        let text = "several measurements in a row were void, because the generator was late: give it a core of its own \
                    (--threads 1@CORE) or a real-time priority (--priority)";
        remarks.push(text.to_owned());
    } else if !found.settled && (found.low.is_some() || found.high.is_some()) {
        let text = "the search ended before the interval was as narrow as --margin asks; it still includes the highest rate";
        remarks.push(text.to_owned());
    }
    let points = &sought.found.points;
    let void = points.iter().filter(|point| point.outcome == RateOutcome::Void).count();
    if cut_off(&sought.found) && void > 0 {
        remarks.push("the measurement was cut short: its figures are those of its beginning".to_owned());
    } else if void > 0 {
        remarks.push(match (void, points.len()) {
            (_, 1) => "the only measurement was void and is ignored".to_owned(),
            (1, all) => format!("1 of {all} measurements was void and is ignored"),
            (_, all) => format!("{void} of {all} measurements were void and are ignored"),
        });
    }
    remarks
}

/// Writes a number of measurements.
pub(super) fn counted_measurements(count: usize) -> String {
    counted(count, "measurement")
}

/// Says how long the measurements were planned to be: at low rates, longer than the plan.
fn lengths(plan: &Plan, points: &[RatePoint]) -> String {
    let planned = || points.iter().map(|point| measurement(plan, point.rate));
    match planned().min().zip(planned().max()) {
        Some((shortest, longest)) if in_words(shortest) != in_words(longest) => {
            format!(" of {} to {}", in_words(shortest), in_words(longest))
        }
        Some((only, _)) => format!(" of {}", in_words(only)),
        None => String::new(),
    }
}

/// The largest number of rows of the table. Neighbouring rates share a row if there are more.
const MOST_ROWS: usize = 12;

/// Divides rates, in increasing order, into at most `most` groups of neighbours. Those that are relatively closest come
/// together.
fn neighbours(tallies: &[Tally], most: usize) -> Vec<&[Tally]> {
    let mut groups: Vec<&[Tally]> = tallies.chunks(1).collect();
    while groups.len() > most.max(1) {
        let width = |pair: &[&[Tally]]| pair[1][pair[1].len() - 1].rate / pair[0][0].rate;
        let widths = groups.windows(2).map(width).enumerate();
        let Some((closest, _)) = widths.min_by(|left, right| left.1.total_cmp(&right.1)) else { break };
        let start: usize = groups[..closest].iter().map(|group| group.len()).sum();
        let joined = groups[closest].len() + groups[closest + 1].len();
        groups.splice(closest..closest + 2, [&tallies[start..start + joined]]);
    }
    groups
}

/// The rates of a group, as a range.
fn rates(group: &[Tally]) -> String {
    let ends = [group.first(), group.last()].map(|tally| tally.map_or(String::new(), |t| grouped(t.rate)));
    match ends[0] == ends[1] {
        true => format!("{}/s", ends[0]),
        false => format!("{}–{}/s", ends[0], ends[1]),
    }
}

/// Says how many of the measurements at these rates kept the limits, and why others did not.
fn outcome(group: &[Tally], points: &[&RatePoint]) -> (Style, String) {
    let sum = |of: fn(&Tally) -> u32| group.iter().map(of).sum::<u32>();
    let (good, bad, void) = (sum(|tally| tally.good), sum(|tally| tally.bad), sum(|tally| tally.void));
    let style = match (good > 0, bad > 0) {
        (true, false) => GOOD,
        (false, true) => BAD,
        _ => OPEN,
    };
    let mut words = Vec::new();
    if good + bad > 0 {
        words.push(format!("kept {good} of {}", good + bad));
    }
    if bad > 0 {
        words.push(broken(points));
    }
    if void > 0 {
        words.push(format!("{void} void"));
    }
    words.retain(|word| !word.is_empty());
    (style, words.join("; "))
}

/// The width of a bar, in columns.
const BAR: usize = 24;

/// Returns the length of a bar. It is logarithmic from 10 µs on, because latencies span decades.
fn bar(ns: u64, most: u64) -> usize {
    let decades = |ns: u64| (ns as f64 / 10_000.0).max(1.0).log10();
    let whole = decades(most).max(0.1);
    (decades(ns) / whole * BAR as f64).round() as usize
}

/// Says why a rate is not sustained.
fn broken(points: &[&RatePoint]) -> String {
    let mut texts: Vec<&str> = points.iter().flat_map(|point| &point.broken).map(String::as_str).collect();
    texts.sort_unstable();
    texts.dedup();
    let mut reasons = Vec::new();
    if !texts.is_empty() {
        reasons.push(format!("broke {}", texts.join(", ")));
    }
    let mut rates: Vec<f64> =
        points.iter().filter(|point| point.load.behind > 0).map(|point| point.load.rate()).collect();
    rates.sort_unstable_by(f64::total_cmp);
    if let Some(rate) = rates.get(rates.len() / 2) {
        reasons.push(format!("fell behind, {}/s answered", grouped(*rate)));
    }
    reasons.join("; ")
}

/// Whether the search was interrupted in its first measurement.
fn cut_off(found: &Capacity) -> bool {
    let is_part = |point: &RatePoint| point.load.ended == Ended::Interrupted;
    found.interrupted && found.points.iter().all(is_part)
}

/// Writes the result of the search as a sentence.
pub(crate) fn answer(sought: &RateSearch) -> String {
    if cut_off(&sought.found) {
        return "Nothing was found: the search was interrupted in its first measurement.".to_owned();
    }
    // If no limit was broken at a rate, the server did not keep up with it.
    let fell_behind = |rate: f64| {
        let at: Vec<_> = sought.found.points.iter().filter(|point| point.rate == rate).collect();
        !at.is_empty() && at.iter().all(|point| point.broken.is_empty())
    };
    let rates: Vec<f64> = sought.found.tallies.iter().map(|tally| tally.rate).collect();
    let found = &sought.found.found;
    if found.late.is_none() && sought.found.tallies.iter().all(|tally| tally.good + tally.bad == 0) {
        return "Nothing was found: no measurement counts.".to_owned();
    }
    sentence(&sought.limits, found, &rates, found.high.is_some_and(fell_behind))
}

/// `rates` are those that were tried, and `fell_behind` says why the rate at the upper end is not sustained.
fn sentence(limits: &str, found: &KneeInterval, rates: &[f64], fell_behind: bool) -> String {
    let rate = |rate: f64| format!("{} requests/s", grouped(rate));
    let broken = match fell_behind {
        true => "The server falls behind".to_owned(),
        false => format!("{limits} is broken"),
    };
    match (found.low, found.high) {
        (low, _) if found.late.is_some() => {
            let kept = match low {
                Some(low) => format!("{limits} is kept at {}", rate(low)),
                None => format!("No rate is known to keep {limits}"),
            };
            format!(
                "{kept}. Whether the server sustains more is not known: the machine was busy, so it may be the limit."
            )
        }
        (Some(low), Some(high)) => format!(
            "The highest rate that keeps {limits} lies between {} and {}{}{}.",
            rate(low),
            rate(high),
            found.estimate.map_or(String::new(), |estimate| format!(", most likely at {}", rate(estimate))),
            if fell_behind { "; above it the server falls behind" } else { "" }
        ),
        (Some(low), None) if rates.iter().any(|other| *other > low) => {
            format!("{limits} is kept up to {}. Whether a higher rate breaks it is uncertain.", rate(low))
        }
        (Some(low), None) => {
            format!("{limits} is kept up to {}, the highest rate that was tried.", rate(low))
        }
        (None, Some(high)) if rates.iter().any(|other| *other < high) => {
            format!("{broken} at {}. Whether a lower rate is sustained is uncertain.", rate(high))
        }
        (None, Some(high)) => format!("{broken} already at {}, the lowest rate that was tried.", rate(high)),
        (None, None) => format!(
            "Whether any of these rates keeps {limits} is uncertain: the measurements have too few requests for that. A \
             longer --duration or --budget gives them more."
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_search_with_many_rates_has_a_short_table() {
        let at = |rate| Tally { rate, good: 1, bad: 1, void: 0 };
        // A search doubles the rate, and then measures around the estimate.
        let mut all: Vec<f64> = vec![100.0, 200.0, 400.0, 800.0];
        all.extend((0..40).map(|step| 600.0 + f64::from(step)));
        all.sort_unstable_by(f64::total_cmp);
        let tallies: Vec<Tally> = all.into_iter().map(at).collect();
        let groups = neighbours(&tallies, 6);
        assert_eq!(groups.concat(), tallies, "every rate is in one group, in order");
        let rows: Vec<String> = groups.iter().map(|group| rates(group)).collect();
        assert_eq!((rows.len(), &rows[..3]), (6, ["100/s", "200/s", "400/s"].map(str::to_owned).as_slice()));
        assert_eq!(rows.last().map(String::as_str), Some("800/s"));
        assert!(rows[3].starts_with("600–") && rows[4].ends_with("–639/s"), "{rows:?}");
        assert_eq!(outcome(groups[0], &[]).1, "kept 1 of 2");
        assert_eq!(neighbours(&tallies[..6], 6).len(), 6, "few rates have a row each");
        let void = Tally { rate: 5.0, good: 0, bad: 0, void: 2 };
        assert_eq!(outcome(&[void], &[]).1, "2 void");
    }

    #[test]
    fn a_single_measurement_is_one() {
        assert_eq!([1, 2].map(counted_measurements), ["1 measurement", "2 measurements"]);
    }

    #[test]
    fn a_late_generator_is_said_with_what_to_do() {
        let found = KneeInterval {
            estimate: None,
            low: None,
            high: None,
            settled: false,
            void: false,
            late: Some(0.157),
        };
        let search = |found| {
            let lateness = Duration::from_millis(5);
            let found =
                Capacity { found, tallies: Vec::new(), points: Vec::new(), interrupted: false, lateness };
            RateSearch { limits: "p99<20ms".to_owned(), found }
        };
        let of = |found, ticked| remarks(&search(found), ticked).join("\n");
        assert!(answer(&search(found)).contains("the machine was busy"));
        let nothing = KneeInterval { late: None, ..found };
        assert_eq!(answer(&search(nothing)), "Nothing was found: no measurement counts.");
        let text = of(found, false);
        assert!(
            text.contains("the generator was more than 5.00 ms late with 16 % of the requests"),
            "{text}"
        );
        assert!(text.contains("Search when the machine is less busy"), "{text}");
        let text = of(found, true);
        assert!(
            text.contains("a thread of ordinary priority beside it, was more than 5.00 ms late in 16 %"),
            "{text}"
        );
        let punctual = KneeInterval { late: None, high: Some(700.0), ..found };
        let text = of(punctual, false);
        assert!(text.contains("--margin") && !text.contains("late"), "{text}");
    }

    #[test]
    fn an_end_of_the_search_is_named_only_if_the_answer_lies_there() {
        let of = |low, high, rates: &[f64]| {
            let found = KneeInterval { estimate: None, low, high, settled: false, void: false, late: None };
            sentence("p99<20ms", &found, rates, false)
        };
        let late = |low| KneeInterval {
            estimate: None,
            low,
            high: None,
            settled: false,
            void: true,
            late: Some(0.04),
        };
        let text = sentence("p99<20ms", &late(Some(667.0)), &[500.0, 624.0, 667.0, 800.0], false);
        assert_eq!(
            text,
            "p99<20ms is kept at 667 requests/s. Whether the server sustains more is not known: the machine was \
             busy, so it may be the limit."
        );
        let text = sentence("p99<20ms", &late(None), &[500.0], false);
        assert!(text.starts_with("No rate is known to keep p99<20ms."), "{text}");
        assert!(of(None, None, &[400.0]).contains("too few requests"));
        assert!(of(None, Some(711.0), &[711.0, 800.0]).contains("711 requests/s, the lowest rate"));
        let text = of(None, Some(711.0), &[100.0, 711.0]);
        assert_eq!(
            text,
            "p99<20ms is broken at 711 requests/s. Whether a lower rate is sustained is uncertain."
        );
        assert!(of(Some(711.0), None, &[100.0, 711.0]).contains("711 requests/s, the highest rate"));
        let text = of(Some(711.0), None, &[711.0, 900.0]);
        assert_eq!(
            text,
            "p99<20ms is kept up to 711 requests/s. Whether a higher rate breaks it is uncertain."
        );
    }
}
