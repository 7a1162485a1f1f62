//! The page of several stored runs. Each is compared with the first.

use super::page;
use crate::compare::stored::RunPair;
use crate::fault::Fault;
use crate::render::page::chart::slug;
use crate::render::page::{Fold, Page, Section, SectionPart, Span, harmless_name};
use scruple_core::run::Run;

/// Makes the page of these runs, the reference first. Each is given with the name that the user used for it.
pub fn of(runs: &[(&str, Run)], metrics: &[String]) -> Result<Page, Fault> {
    let ((first, reference), others) = match runs {
        [first, others @ ..] if !others.is_empty() => ((first.0, &first.1), others),
        _ => return Err(Fault::usage("several runs are needed to compare one with another")),
    };
    let mut pages = Vec::new();
    for (other, run) in others {
        let both = RunPair::of((first, other), reference, run)?;
        pages.push((tag(run), page(&both.report(metrics, &[]))));
    }
    match pages.len() {
        1 => Ok(pages.remove(0).1),
        _ => Ok(side_by_side_page(reference, pages)),
    }
}

/// Returns the label of a run, or else its id.
fn tag(run: &Run) -> String {
    harmless_name(run.label.as_ref().unwrap_or(&run.id))
}

fn side_by_side_page(reference: &Run, pages: Vec<(String, Page)>) -> Page {
    let mut all = Page {
        title: format!("{} runs", pages.len() + 1),
        kind: vec![format!("Comparison of {} runs, each with ‘{}’", pages.len() + 1, tag(reference))],
        ..Page::default()
    };
    for (place, (tag, page)) in pages.into_iter().enumerate() {
        if place > 0 {
            all.verdict.push(Span::plain(" "));
        }
        // A sentence about all arms already contains the names of both runs.
        let is_shown =
            page.verdict.first().is_some_and(|span| span.text.starts_with(&format!("‘{tag}’ against ")));
        if !is_shown {
            all.verdict.push(Span::plain(format!("‘{tag}’: ")));
        }
        all.verdict.extend(page.verdict);
        let fresh: Vec<String> =
            page.warnings.into_iter().filter(|one| !all.warnings.contains(one)).collect();
        all.warnings.extend(fresh);
        let mut parts: Vec<SectionPart> = page.notes.into_iter().map(SectionPart::Note).collect();
        parts.extend(page.sections.into_iter().map(|section| folded(&tag, section)));
        let title = format!("‘{tag}’ against ‘{}’", self::tag(reference));
        all.sections.push(Section { title, folded: None, parts });
    }
    all
}

/// Makes the names of the charts and tables of a section unique on a page of several runs.
pub fn unique(tag: &str, mut section: Section) -> Section {
    section.parts.iter_mut().for_each(|part| renamed(tag, part));
    section
}

/// Converts a section into a folded part of another section.
fn folded(tag: &str, section: Section) -> SectionPart {
    let section = unique(tag, section);
    let summary = match section.folded {
        Some(summary) => format!("{}: {summary}", section.title),
        None => section.title,
    };
    SectionPart::Fold(Fold { summary, parts: section.parts })
}

fn renamed(tag: &str, part: &mut SectionPart) {
    match part {
        SectionPart::Chart(chart) => chart.name = slug(&format!("{tag}-{}", chart.name)),
        SectionPart::Charts(charts) => {
            charts.iter_mut().for_each(|chart| chart.name = slug(&format!("{tag}-{}", chart.name)));
        }
        // The labels of tables must be unique on a page.
        SectionPart::Table(table) => table.label = format!("{tag}: {}", table.label),
        SectionPart::Fold(fold) => fold.parts.iter_mut().for_each(|part| renamed(tag, part)),
        _ => {}
    }
}
