//! Writes the explanation as a page: what differs, the functions that it comes from, and a flame graph of increases
//! and decreases.

use super::{remarks, row_words, terminal, words};
use crate::explain::closures::ClosureDifference;
use crate::explain::findings::{Findings, shown_parts};
use crate::explain::gathered_launches::GatheredLaunches;
use crate::new_run::command_line;
use crate::render::chart;
use crate::render::flame_graph::{self, FlameBox};
use crate::render::page::{
    Cell, Chart, ColumnHeading, Drawn, Flame, Fold, Page, Section, SectionPart, Span, Stacked, Table, Tone,
    harmless_name, harmless_sentence, html,
};
use crate::run_page::{self, capital};
use crate::secrets::without_secrets;
use scruple_core::explain::{
    ContextDifference, DifferencePart, Explanation, FunctionDifference, differences,
};
use scruple_core::unit::share;

/// The number of columns of preformatted text.
const WIDTH: usize = 120;

/// The smallest share of all differences that a box of the flame graph represents.
const LEAST: f64 = 0.002;

/// Writes the page as HTML, with this many functions for each count.
pub fn text(found: &Findings, rows: usize, gathered: &GatheredLaunches) -> String {
    let of_script = in_script(found, gathered).map(|(script, gathered)| contexts(script, gathered));
    html::text(&of(found, rows, &contexts(found, gathered), &of_script.unwrap_or_default()))
}

/// Draws the flame graph as a separate picture: that of the script, if there is one.
pub fn picture(found: &Findings, gathered: &GatheredLaunches) -> String {
    let (found, gathered) = in_script(found, gathered).unwrap_or((found, gathered));
    chart::picture(flame(found, &contexts(found, gathered)).iter())
}

fn in_script<'a>(
    found: &'a Findings,
    gathered: &'a GatheredLaunches,
) -> Option<(&'a Findings, &'a GatheredLaunches)> {
    found.script.as_deref().zip(gathered.script.as_deref())
}

fn contexts(found: &Findings, gathered: &GatheredLaunches) -> Vec<ContextDifference> {
    let [first, second] = gathered.sides.each_ref().map(|runs| &runs[0].tree);
    differences(first, second, found.main().count)
}

fn of(
    found: &Findings,
    rows: usize,
    contexts: &[ContextDifference],
    contexts_of_script: &[ContextDifference],
) -> Page {
    let names = found.names.each_ref().map(|one| harmless_name(one));
    let mut lines = words::answer(found).into_iter();
    let script_first = found.originates_in_script();
    let own = if script_first { "Functions of the interpreter" } else { "Functions" };
    let own = Section { title: own.to_owned(), ..functions(found, found.main(), rows, Vec::new()) };
    let of_script = found.script.iter().map(|script| {
        let lines = if script_first { Vec::new() } else { words::answer(script) };
        let lines = lines.iter().map(|line| SectionPart::Words(harmless_sentence(line))).collect();
        let title = "Functions of the script".to_owned();
        Section { title, ..functions(script, script.main(), rows, lines) }
    });
    let mut sections: Vec<Section> = of_script.collect();
    sections.insert(if script_first { sections.len() } else { 0 }, own);
    sections.extend(found.explanations[1..].iter().map(|explanation| {
        let lines = Some(words::total_difference(found, explanation))
            .into_iter()
            .chain(words::cause(found, explanation));
        let lines = lines.map(|line| SectionPart::Words(harmless_sentence(&line))).collect();
        let title = capital(&harmless_name(found.word(explanation.count)));
        Section { title, ..functions(found, explanation, rows, lines) }
    }));
    sections.extend(closures(found, rows));
    sections.extend(code(found));
    let flames = |title: &str, chart| Section {
        title: title.to_owned(),
        folded: None,
        parts: vec![SectionPart::Chart(chart)],
    };
    let title = "Increases and decreases";
    let own = flame(found, contexts).map(|chart| flames(title, chart));
    let chart = found.script.as_ref().and_then(|script| flame(script, contexts_of_script));
    let of_script = chart.map(|chart| flames(&format!("{title} in the script"), chart));
    sections.extend(if script_first { [of_script, own] } else { [own, of_script] }.into_iter().flatten());
    sections.extend(again());
    sections.retain(|section| !section.parts.is_empty());
    Page {
        title: format!("{} → {}", names[0], names[1]),
        kind: vec!["Explanation".to_owned(), format!("A: {}", names[0]), format!("B: {}", names[1])],
        verdict: vec![Span::new(
            harmless_sentence(&lines.next().unwrap_or_default()),
            tone(found.main().delta()),
        )],
        notes: lines
            .chain(remarks::notes(found))
            .chain(remarks::counted(found))
            .map(|line| harmless_sentence(&line))
            .collect(),
        warnings: remarks::remarks(found).iter().map(|remark| harmless_sentence(remark)).collect(),
        sections,
    }
}

fn tone(delta: f64) -> Tone {
    match delta.round() {
        0.0 => Tone::Same,
        more if more > 0.0 => Tone::Worse,
        _ => Tone::Better,
    }
}

/// Makes the table of the functions that a difference comes from, below these parts.
fn functions(
    found: &Findings,
    explanation: &Explanation,
    most: usize,
    mut parts: Vec<SectionPart>,
) -> Section {
    let shown: Vec<&FunctionDifference> = found.shown_rows(explanation).take(most).collect();
    let delta = explanation.delta();
    let mut rows: Vec<Vec<Cell>> = shown
        .iter()
        .map(|row| {
            let part = if delta.round() == 0.0 { String::new() } else { share(row.delta / delta) };
            vec![
                Cell::text(harmless_name(&row_words::function(row))),
                Cell::toned(row_words::signed(row.delta), tone(row.delta)),
                Cell::text(part),
                Cell::text(row_words::code(row)),
                Cell::sentence(causes(found, explanation, row)),
            ]
        })
        .collect();
    let rest = delta.round() - shown.iter().map(|row| row.delta.round()).sum::<f64>();
    if !rows.is_empty() {
        let sum = |called: &str, value: f64| {
            let mut cells = vec![Cell::text(called), Cell::text(row_words::signed(value))];
            cells.resize(5, Cell::default());
            cells
        };
        rows.extend((rest != 0.0).then(|| sum("all other functions", rest)));
        rows.push(sum("together", delta));
        let mut head = vec![ColumnHeading::text("Function")];
        head.extend(["Difference", "Share"].map(ColumnHeading::number));
        head.extend(["Code", "What differs"].map(ColumnHeading::text));
        let label =
            format!("Functions by their difference in {}", harmless_name(found.word(explanation.count)));
        parts.push(SectionPart::Table(Table { label, head, rows, stacks: true, ..Table::default() }));
    }
    Section { title: "Functions".to_owned(), folded: None, parts }
}

/// Makes the section of the types of closures that differ.
fn closures(found: &Findings, most: usize) -> Option<Section> {
    let row = |one: &ClosureDifference| {
        let [bytes, number] = row_words::closures(one);
        vec![
            Cell::text(harmless_name(&one.name)),
            Cell::toned(bytes, tone(one.bytes.1 - one.bytes.0)),
            Cell::text(number),
        ]
    };
    let rows: Vec<Vec<Cell>> = found.closures.iter().take(most).map(row).collect();
    let head =
        vec![ColumnHeading::text("Type"), ColumnHeading::number("Bytes"), ColumnHeading::number("Number")];
    let label = "Types of closures by their difference in bytes".to_owned();
    let table = Table { label, head, rows, stacks: true, ..Table::default() };
    (!found.closures.is_empty()).then(|| Section {
        title: "Closures in Haskell’s heap".to_owned(),
        folded: None,
        parts: vec![SectionPart::Table(table)],
    })
}

/// Writes what differs within a function, and which change of the source touches it.
fn causes(found: &Findings, explanation: &Explanation, row: &FunctionDifference) -> String {
    let text = |part: &DifferencePart| {
        format!("{}: {}", row_words::signed(part.delta), row_words::clause(row, part))
    };
    let mut texts: Vec<String> = shown_parts(row).iter().map(text).collect();
    let hunk = found.hunk_of(explanation, row);
    texts.extend(hunk.map(|hunk| format!("changed at {}", hunk.places_in_context())));
    harmless_sentence(texts.join("; ").trim())
}

/// Makes the section of lines and machine code, if the user requested them.
fn code(found: &Findings) -> Option<Section> {
    let text = terminal::code(found.code.as_ref()?, WIDTH);
    let plain = anstream::adapter::strip_str(&text).to_string();
    let parts = vec![SectionPart::Fold(Fold {
        summary: "How often each line and instruction was executed".to_owned(),
        parts: vec![SectionPart::Code(plain)],
    })];
    Some(Section { title: "Lines and machine code".to_owned(), folded: None, parts })
}

/// Makes the section with the command that repeats the explanation.
fn again() -> Option<Section> {
    let words: Vec<String> = without_secrets(command_line().skip(1));
    let command = shell_words::join(["scruple"].into_iter().chain(words.iter().map(String::as_str)));
    (!words.is_empty()).then(|| Section {
        title: run_page::AGAIN.to_owned(),
        folded: None,
        parts: vec![SectionPart::Code(run_page::code(&command))],
    })
}

fn flame(found: &Findings, contexts: &[ContextDifference]) -> Option<Chart> {
    let called = |one: &ContextDifference| match one.name.as_str() {
        "" if one.parent.is_none() => row_words::ALL_PROCESSES.to_owned(),
        "" => "code without a name".to_owned(),
        called => harmless_name(called),
    };
    let frames: Vec<FlameBox> = contexts
        .iter()
        .map(|one| FlameBox {
            label: String::new(),
            group: String::new(),
            own: one.gross,
            parent: one.parent,
        })
        .collect();
    let layout = flame_graph::layout(&frames, LEAST);
    let boxes: Vec<Stacked> = layout
        .boxes
        .iter()
        .map(|placed| {
            let one = &contexts[placed.index];
            Stacked {
                from: placed.from,
                wide: placed.wide,
                level: placed.level,
                name: format!("{} ({})", called(one), row_words::signed(one.net)),
                about: format!("{} of all differences", share(placed.wide)),
                tone: tone(one.net),
            }
        })
        .collect();
    let label = boxes.iter().take(12).map(|one| one.name.as_str()).collect::<Vec<_>>().join("; ");
    (!layout.boxes.is_empty()).then(|| Chart {
        name: "contexts".to_owned(),
        title: format!("Differences of {} by calling context", harmless_name(found.word(found.main().count))),
        note: format!(
            "A box is as wide as the differences in it and above it, increases (red) and decreases (green) added up; \
             the number is the increase less the decrease. Callers are below.{}",
            if found.repeats || found.runs < 2 { "" } else { " It shows the first launch of each; the tables show the means of all." }
        ),
        label,
        drawn: Drawn::Flame(Flame { boxes }),
    })
}
