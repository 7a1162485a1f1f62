//! `scruple report`: writes a stored run as a page, a picture or a table.

pub mod args;
pub mod environment;
pub mod growth;
pub mod lead;
pub mod leak;
pub mod load;
pub mod many_arms;
pub mod matrix;
pub mod memory;
pub mod panel;
pub mod scaling;
pub mod several;
pub mod verb;

use crate::load::report::page as figures;
use crate::render::json::moment;
use crate::render::metric_words::measure;
use crate::render::page::{
    Cell, ColumnHeading, Fold, Page, Section, SectionPart, Table, Tone, harmless_name, harmless_sentence,
};
use crate::run_report::{Report, sentence as words};
use scruple_core::judge;
use scruple_core::judge::limits::Kept;
use scruple_core::plural::counted;
use scruple_core::run::{Run, RunState, Warning};
use scruple_core::subject::{Arm, Role};
use scruple_core::unit::share;
use scruple_stats::sorting;

/// The title of the section with the command that repeats a run.
pub const AGAIN: &str = "Do it again";

/// The number of arms with distinct colours.
const COLOURS: usize = 5;

/// Makes the page of a run: of commands, of cases, of a comparison of two runs, or of what another tool measured.
pub fn page(report: &Report<'_>) -> Page {
    page_with(report, report.loads.map(figures::sections).unwrap_or_default())
}

/// Makes the page of a run with additional sections, which do not follow from its readings alone.
pub fn page_with(report: &Report<'_>, others: Vec<Section>) -> Page {
    let run = report.run;
    let mut page = Page {
        title: title(run),
        kind: kind(report),
        verdict: lead::of(report),
        notes: notes(report),
        warnings: remarks(run),
        sections: Vec::new(),
    };
    let arms: Vec<&Arm> = run.arms_of(Role::Subject).collect();
    page.sections.extend(environment::differences(report));
    let subjects = Section { title: "Limits".to_owned(), folded: None, parts: limits(report) };
    page.sections.extend(Some(subjects).filter(|section| !section.parts.is_empty()));
    if load::is_one(report) {
        page.sections.push(load::section(report));
    }
    match report.of_cases() || arms.len() > matrix::MOST_ARMS {
        true => page.sections.extend(many_arms::sections(report)),
        false => {
            page.sections.push(match arms.len() > COLOURS {
                true => many_arms::table(report, &arms),
                false => matrix::section(report, &arms),
            });
            page.sections.extend(panels(report, &arms));
        }
    }
    page.sections.extend(scaling::section(report));
    page.sections.extend(growth::section(report));
    page.sections.extend(memory::section(run));
    page.sections.extend(sentences(report));
    page.sections.extend(others);
    page.sections.push(environment::section(run));
    page.sections.extend(environment::again(run));
    page
}

/// Returns the remarks of a run: first those about figures that are lost or doubtful, then advice on the method.
fn remarks(run: &Run) -> Vec<String> {
    let mut remarks: Vec<&Warning> = run.warnings.iter().collect();
    sorting::by_key(&mut remarks, |one| match one.code.as_str() {
        "void" => 0,
        "turns" => 2,
        _ => 1,
    });
    remarks.iter().map(|one| harmless_sentence(&one.text)).collect()
}

/// Returns the title of the document.
pub fn title(run: &Run) -> String {
    let names: Vec<String> = run.arms_of(Role::Subject).take(3).map(|arm| harmless_name(&arm.name)).collect();
    let more = if run.arms_of(Role::Subject).count() > 3 { " …" } else { "" };
    format!("{}{more}", names.join(", "))
}

/// Returns the subject of the page, its time, and its run.
fn kind(report: &Report<'_>) -> Vec<String> {
    let run = report.run;
    // Versions of a subject are not counted as subjects.
    let subject = |arm: &Arm| match arm.name.rsplit_once(" @") {
        Some((subject, _)) if arm.version.is_some() => subject.to_owned(),
        _ => arm.name.clone(),
    };
    let count = sorting::distinct(run.arms_of(Role::Subject).map(subject)).len();
    let what = match () {
        () if report.of_cases() => "case",
        () if report.of_requests() => "server",
        () => "command",
    };
    let arms = run.arms_of(Role::Subject).count();
    let versions = sorting::distinct(run.arms_of(Role::Subject).filter_map(|arm| arm.version.as_ref())).len();
    let versions = if arms > count { format!(" at {versions} versions") } else { String::new() };
    let things = counted(count, what);
    let about = match (&run.provenance.tool, report.side_by_side) {
        (Some(tool), _) => format!("{things}, imported from {}", harmless_name(tool)),
        (None, false) => "Comparison of two runs".to_owned(),
        (None, true) if report.of_requests() => format!("Load of {things}"),
        (None, true) if !report.judged.is_empty() => {
            format!("Comparison of {things}{versions}")
        }
        (None, true) => format!("Measurement of {things}"),
    };
    let mut kind = vec![about];
    kind.extend(of_run(run));
    kind
}

/// Returns the time and the id of a run.
pub fn of_run(run: &Run) -> Vec<String> {
    let mut parts = vec![moment(run.started), format!("run {}", harmless_name(&run.id))];
    parts.extend(run.label.as_ref().map(|label| format!("‘{}’", harmless_name(label))));
    if run.state != RunState::Complete {
        parts.push(format!("{}: these are the readings taken so far", run.state.word()));
    }
    parts
}

/// Returns the statements that a reader must know.
fn notes(report: &Report<'_>) -> Vec<String> {
    let terms = &report.run.terms;
    let several = report.run.arms_of(Role::Subject).count() > 1;
    let blocks =
        report.run.arms_of(Role::Subject).filter_map(|arm| arm.sample("time.wall")).map(|s| s.readings.len());
    let mut first = Vec::new();
    if let Some(blocks) = blocks.min().filter(|_| report.run.provenance.tool.is_none() && !report.of_cases())
    {
        first.push(match (several, report.side_by_side) {
            (true, true) => {
                format!("{}, interleaved: every block runs each command once.", counted(blocks, "block"))
            }
            _ => format!("{}.", counted(blocks, "launch")),
        });
    }
    if !report.judged.is_empty() {
        first.push(format!(
            "Intervals hold together at {}; differences within ±{} do not matter here.",
            share(terms.level),
            share(terms.margin)
        ));
    }
    let mut notes: Vec<String> = Some(first.join(" ")).filter(|note| !note.is_empty()).into_iter().collect();
    notes.extend(lead::detail(report));
    notes
}

/// Returns the panels of the metrics whose readings vary. The panel of the quoted metric is first and not folded.
fn panels(report: &Report<'_>, arms: &[&Arm]) -> Vec<Section> {
    let quoted = judge::headlines(&report.judged, &report.shown);
    let first = arms.iter().find_map(|arm| quoted.get(arm.name.as_str())).map(|judged| judged.metric.clone());
    let varies =
        |key: &&String| arms.iter().filter_map(|arm| arm.sample(key)).any(|sample| !sample.repeats());
    let mut keys: Vec<&String> = report.shown.iter().filter(varies).collect();
    sorting::by_key(&mut keys, |key| Some(*key) != first.as_ref());
    let Some((first, others)) = keys.split_first() else { return Vec::new() };
    let mut sections = vec![Section {
        title: capital(&what(first)),
        folded: None,
        parts: panel::parts(report, first, arms),
    }];
    let folds = others.iter().map(|key| {
        let summary = format!("{}: differences, distributions, readings", capital(&what(key)));
        SectionPart::Fold(Fold { summary, parts: panel::parts(report, key, arms) })
    });
    let parts: Vec<SectionPart> = folds.collect();
    if !parts.is_empty() {
        sections.push(Section { title: "Other metrics".to_owned(), folded: None, parts });
    }
    sections
}

/// Capitalizes the first letter of a text.
pub fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

/// Makes the table of limits and their outcomes.
fn limits(report: &Report<'_>) -> Vec<SectionPart> {
    if report.checked.is_empty() {
        return Vec::new();
    }
    let rows = report.checked.iter().map(|checked| {
        let (word, tone) = match checked.kept {
            Kept::Yes => ("kept", Tone::Better),
            Kept::No => ("exceeded", Tone::Worse),
            Kept::CantTell => ("can’t tell", Tone::Open),
        };
        vec![
            Cell::text(harmless_sentence(&checked.limit)),
            Cell::code(harmless_name(&checked.arm)),
            Cell::toned(word, tone),
            Cell::text(harmless_sentence(&checked.found)),
        ]
    });
    vec![SectionPart::Table(Table {
        label: "Limits and whether they were kept".to_owned(),
        head: ["Limit", "Arm", "Result", "Found"].map(ColumnHeading::text).into(),
        rows: rows.collect(),
        ..Table::default()
    })]
}

/// Makes the section with the ranking, the tare and the other sentences of the report.
fn sentences(report: &Report<'_>) -> Option<Section> {
    let mut lines: Vec<String> = crate::run_report::few_readings::lines(report);
    lines.extend(crate::run_report::unlike_medians::lines(report));
    lines.extend(crate::run_report::ranking::line(report));
    lines.extend(words::growth_lines(report));
    // The tare of a case is a loop, whose cost is in the table of cases.
    if !report.of_cases() {
        let tare: Vec<String> = words::tare_lines(report).iter().map(|line| capital(line.trim())).collect();
        lines.extend(Some(tare.join(" ")).filter(|line| !line.is_empty()));
    }
    let lines: Vec<String> = lines.iter().map(|line| harmless_sentence(line)).collect();
    let section = || Section {
        title: "In words".to_owned(),
        folded: None,
        parts: vec![SectionPart::List(lines.clone())],
    };
    (!lines.is_empty()).then(section)
}

/// Makes a command from outside harmless: one line of limited length, which can be pasted.
pub fn code(text: &str) -> String {
    const LONGEST: usize = 8000;
    let text = scruple_core::harmless_text::plain(text);
    match text.chars().count() > LONGEST {
        true => text.chars().take(LONGEST).chain(['…']).collect(),
        false => text,
    }
}

/// Returns the name of a metric. It is made harmless, because a measured program may define it.
pub fn what(key: &str) -> String {
    harmless_name(measure(key))
}
