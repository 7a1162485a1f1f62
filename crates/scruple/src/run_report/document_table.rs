//! Tables for documents in Markdown, AsciiDoc and Org.

use super::{Report, few_readings, net, sentence, tare_of, unlike_medians};
use crate::render::markup::{Markup, code, in_markup, prose};
use crate::render::metric_words::{effect_text, title, verdict_words};
use scruple_core::judge::headline;
use scruple_core::metric::Quality;
use scruple_core::subject::Arm;
use scruple_core::unit::{Unit, exact, quantity};
use scruple_stats::tare::Net;

/// Writes the shown metrics as a table with a row for each arm, and the verdicts below it.
pub fn text(report: &Report<'_>, markup: Markup) -> String {
    let mut head = vec![if report.of_cases() { "Case" } else { "Command" }.to_owned()];
    let with_net = report.rows().any(|arm| tare_of(report.run, arm).is_some());
    head.extend(with_net.then(|| "net".to_owned()));
    head.extend(report.shown.iter().map(|key| prose(&title(key), markup)));
    head.extend((!report.judged.is_empty()).then(|| "Compared".to_owned()));
    let rows: Vec<Vec<String>> = report.rows().map(|arm| row(report, arm, with_net, markup)).collect();
    let mut out: String = report.preface().iter().map(|line| prose(line, markup) + "\n\n").collect();
    out += &table(&head, &rows, markup);
    let mut sentences = sentence::verdicts(report);
    sentences.extend(few_readings::lines(report));
    sentences.extend(unlike_medians::lines(report));
    sentences.extend(report.checked.iter().map(sentence::limit));
    sentences.extend(report.run.warnings.iter().map(|warning| warning.text.clone()));
    if !sentences.is_empty() {
        out.push('\n');
        let sentences: Vec<String> = sentences.iter().map(|one| in_markup(one, markup)).collect();
        out.push_str(&sentences.join("\n\n"));
        out.push('\n');
    }
    out
}

fn row(report: &Report<'_>, arm: &Arm, with_net: bool, markup: Markup) -> Vec<String> {
    let mut cells = vec![code(&arm.name, markup)];
    cells.extend(with_net.then(|| net_text(net::of(report, arm).as_ref())));
    for key in &report.shown {
        let Some((sample, estimate)) = arm.sample(key).zip(report.estimate(arm, key)) else {
            let why = arm.ended().filter(|_| key == "time.wall");
            cells.push(why.map_or_else(|| "–".to_owned(), |why| in_markup(&why, markup)));
            continue;
        };
        let counted = sample.quality <= Quality::Near && estimate.interval.is_none();
        let value = match estimate.interval {
            Some(interval) => format!(
                "{} [{}, {}]",
                quantity(estimate.value, &sample.unit),
                quantity(interval.low, &sample.unit),
                quantity(interval.high, &sample.unit)
            ),
            None if counted => exact(estimate.value, &sample.unit),
            None => quantity(estimate.value, &sample.unit),
        };
        cells.push(format!("{}{value}", prose(sample.worth().mark(), markup)));
    }
    if report.judged.is_empty() {
        return cells;
    }
    cells.push(match headline(&report.judged, &report.shown, &arm.name) {
        Some(judged) => format!(
            "{} {} ({})",
            effect_text(&judged.metric, &judged.comparison),
            verdict_words(&judged.metric, &judged.comparison),
            title(&judged.metric)
        ),
        None => report.uncompared(arm).to_owned(),
    });
    cells
}

/// Writes the time of a case without that of the harness.
fn net_text(net: Option<&Net>) -> String {
    let time = |value: f64| quantity(value, &Unit::Nanoseconds);
    match net {
        None => "–".to_owned(),
        Some(Net { below_resolution: Some(limit), .. }) => format!("< {}", time(*limit)),
        Some(one) if one.unknown => format!("can’t tell {}", net::range(one)),
        Some(one) => format!("{} {}", time(one.estimate), net::range(one)),
    }
}

fn table(head: &[String], rows: &[Vec<String>], markup: Markup) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    match markup {
        Markup::Markdown => {
            let rule = format!("|:---|{}:---|\n", "---:|".repeat(head.len().saturating_sub(2)));
            let body: String = rows.iter().map(|row| line(row)).collect();
            format!("{}{rule}{body}", line(head))
        }
        Markup::Org => {
            let rule = format!("|{}-|\n", vec!["--"; head.len()].join("+"));
            let body: String = rows.iter().map(|row| line(row)).collect();
            format!("{}{rule}{body}", line(head))
        }
        Markup::AsciiDoc => {
            let cells = |row: &[String]| row.iter().map(|cell| format!("| {cell}\n")).collect::<String>();
            let body: Vec<String> = rows.iter().map(|row| cells(row)).collect();
            let columns = format!("<,{}<", ">,".repeat(head.len().saturating_sub(2)));
            format!(
                "[cols=\"{columns}\", options=\"header\"]\n|===\n{}\n{}|===\n",
                cells(head),
                body.join("\n")
            )
        }
    }
}
