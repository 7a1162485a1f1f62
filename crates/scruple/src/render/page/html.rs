//! A page for browsers: one self-contained file without scripts. The markup library escapes every text.

use super::typeset::typeset;
use super::{Cell, ColumnHeading, Fold, Page, Section, SectionPart, Span, Table, Tone};
use crate::render::chart::rows::tone;
use crate::render::chart::{self, MOST_TOOLTIPS, frame, thin};
use crate::render::colours::STYLE_SHEET;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use std::hash::{DefaultHasher, Hash, Hasher};

/// The content security policy: a page may use nothing but its own style, whatever texts it contains.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/// Writes the page as HTML.
pub(crate) fn text(page: &Page) -> String {
    let tooltips = page.charts().iter().map(|one| chart::marks(one)).sum::<usize>() <= MOST_TOOLTIPS;
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width,initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                link rel="icon" href="data:,";
                title { (page.title) }
                style { (PreEscaped(STYLE_SHEET)) }
            }
            body {
                svg.definitions width="0" height="0" aria-hidden="true" { (frame::definitions()) }
                header {
                    p.kind { @for (index, part) in page.kind.iter().enumerate() { @if index > 0 { " · " } (part) } }
                    h1 { @for span in &page.verdict { (words(span)) } }
                    @for note in &page.notes { p.note { (typeset(note)) } }
                    (warnings(&page.warnings))
                }
                main { @for section in &page.sections { (section_of(section, tooltips)) } }
                footer { "Scruple " (env!("CARGO_PKG_VERSION")) " · This page fetches nothing and runs no script." }
            }
        }
    };
    markup.into_string() + "\n"
}

/// The largest number of remarks that are not folded.
const OPEN_WARNINGS: usize = 3;

/// Writes the remarks. If there are many, the first ones are shown, and the others are folded.
fn warnings(all: &[String]) -> Markup {
    // A fold for one remark would take as much room as the remark.
    let open = if all.len() > OPEN_WARNINGS + 1 { OPEN_WARNINGS } else { all.len() };
    let (open, folded) = all.split_at(open);
    let each = |texts: &[String]| html! { @for text in texts { p.warn { b { "! " } (typeset(text)) } } };
    html! {
        (each(open))
        @if !folded.is_empty() { details.warnings { summary { (folded.len()) " more remarks" } (each(folded)) } }
    }
}

fn words(span: &Span) -> Markup {
    match span.tone {
        Tone::Plain => html! { (typeset(&span.text)) },
        other => html! { span class=(tone(other)) { (typeset(&span.text)) } },
    }
}

fn section_of(section: &Section, tooltips: bool) -> Markup {
    html! {
        section {
            @if !section.title.is_empty() { h2 { (section.title) } }
            @match &section.folded {
                Some(summary) => details { summary { (typeset(summary)) } @for part in &section.parts { (part_of(part, tooltips)) } },
                None => @for part in &section.parts { (part_of(part, tooltips)) },
            }
        }
    }
}

fn part_of(part: &SectionPart, tooltips: bool) -> Markup {
    html! {
        @match part {
            SectionPart::Words(text) => p { (typeset(text)) },
            SectionPart::Note(text) => p.note { (typeset(text)) },
            SectionPart::List(lines) => ul { @for line in lines { li { (typeset(line)) } } },
            SectionPart::Code(text) => pre tabindex="0" { (text) },
            SectionPart::Table(table) => (table_of(table)),
            SectionPart::Chart(one) => (chart_of(one, tooltips)),
            SectionPart::Charts(charts) => div.beside.few[charts.len() <= 2] { @for one in charts { (chart_of(one, tooltips)) } },
            SectionPart::Fold(Fold { summary, parts }) => details {
                summary { (typeset(summary)) }
                @for part in parts { (part_of(part, tooltips)) }
            },
        }
    }
}

fn chart_of(one: &super::Chart, tooltips: bool) -> Markup {
    html! {
        figure {
            figcaption {
                h3 { (one.title) }
                @if !one.note.is_empty() { p.note { (typeset(&one.note)) } }
                @if let Some(note) = thin::note(one) { p.note { (typeset(&note)) } }
                (legend(one))
            }
            (chart::draw(one, tooltips))
        }
    }
}

/// Writes the legend of marks and lines, if a chart has several.
fn legend(one: &super::Chart) -> Markup {
    let super::Drawn::Plot(plot) = &one.drawn else { return html! {} };
    let named = chart::plot::legend(plot);
    html! {
        @if !named.is_empty() {
            ul.legend {
                @for (sign, layer) in named {
                    li { (sign) @if layer.code { code { (layer.name) } } @else { (layer.name) } }
                }
            }
        }
    }
}

/// Writes the controls that choose an order of the rows. The style sheet moves the rows: `:has` finds the chosen order,
/// and each row has its place in every order as variables.
fn orders(table: &Table) -> Markup {
    // The names of the controls differ between tables. The hash distinguishes labels that differ in punctuation only.
    let mut hasher = DefaultHasher::new();
    table.label.hash(&mut hasher);
    let group = format!("{}-{:x}", super::chart::slug(&table.label), hasher.finish() & 0xffff_ffff);
    html! {
        @if table.orders.len() > 1 {
            fieldset.orders {
                legend { "Sort by" }
                @for (place, order) in table.orders.iter().enumerate() {
                    label { input type="radio" name=(group) value=(place) checked[place == 0]; (order.name) }
                }
            }
        }
    }
}

/// Returns the place of a row in each order, as variables for the style sheet.
fn places(table: &Table, row: usize) -> Option<String> {
    let each = table.orders.iter().enumerate();
    let places =
        each.map(|(number, order)| format!("--o{number}:{}", order.places.get(row).copied().unwrap_or(row)));
    (table.orders.len() > 1).then(|| places.collect::<Vec<_>>().join(";"))
}

fn table_of(table: &Table) -> Markup {
    // A table that is laid out as a list or a grid needs explicit roles to remain a table for screen readers.
    let sorts = table.orders.len() > 1;
    let with_roles = table.stacks || sorts;
    let across = sorts.then(|| format!("--columns:{}", table.head.len()));
    html! {
        div.sorts[sorts] {
        (orders(table))
        div.scroll tabindex="0" role="region" aria-label=(table.label) {
            table.stacks[table.stacks] role=[with_roles.then_some("table")] style=[across] {
                @if table.head.iter().any(|head| !head.text.is_empty()) {
                    thead role=[with_roles.then_some("rowgroup")] { tr role=[with_roles.then_some("row")] {
                        @for head in &table.head {
                            // An empty heading would be read as one without content.
                            @if head.text.is_empty() { td role=[with_roles.then_some("cell")] {} }
                            @else {
                                th scope="col" role=[with_roles.then_some("columnheader")] class=[head.number.then_some("n")] {
                                    (heading(head))
                                }
                            }
                        }
                    } }
                }
                tbody role=[with_roles.then_some("rowgroup")] { @for (number, row) in table.rows.iter().enumerate() { tr role=[with_roles.then_some("row")] style=[places(table, number)] {
                    @for (place, cell) in row.iter().enumerate() { (cell_of(table, place, cell)) }
                } } }
            }
        }
        }
    }
}

/// Writes the heading of a column. The name of an arm is code, with the sign of the arm before it.
fn heading(head: &ColumnHeading) -> Markup {
    html! {
        @if let Some(arm) = head.arm { (frame::key(arm)) code { (head.text) } }
        @else { (head.text) }
    }
}

/// Whether a text in a column of numbers is so long that it may have several lines: it is not a number but a reason.
fn is_long(text: &str) -> bool {
    text.chars().count() > 32
}

fn cell_of(table: &Table, place: usize, cell: &Cell) -> Markup {
    let head = table.head.get(place);
    let number = head.is_some_and(|head| head.number);
    let with_roles = table.stacks || table.orders.len() > 1;
    // Another text may come from outside, and must remain as it is.
    let value = html! {
        @if cell.code && !cell.text.is_empty() { code { (cell.text) } }
        @else if number || cell.sentence { (typeset(&cell.text)) }
        @else { (cell.text) }
    };
    let text = html! {
        @match &cell.link {
            Some(link) => a href=(link) { (value) },
            None if !table.stacks && cell.tone == Tone::Plain => (value),
            None => span class={ "v " (tone(cell.tone)) } { (value) },
        }
        @if !cell.course.is_empty() { (chart::small::line(&cell.course)) }
        @if let Some(tail) = &cell.tail {
            @let long = if is_long(&tail.text) { " long" } else { "" };
            " " span class={ "e " (tone(tail.tone)) (long) } { (typeset(&tail.text)) }
        }
    };
    html! {
        @if place == 0 {
            th scope="row" role=[with_roles.then_some("rowheader")] class=[number.then_some("n")] { (text) }
        } @else {
            @let empty = cell.text.is_empty() && cell.tail.is_none() && cell.course.is_empty();
            @let class = match (number, empty) {
                (_, true) => Some("none"),
                (true, false) if is_long(&cell.text) => Some("n long"),
                (true, false) => Some("n"),
                _ => None,
            };
            td role=[with_roles.then_some("cell")] class=[class] {
                @if let (true, Some(head)) = (table.stacks, head) {
                    span.who aria-hidden="true" { (heading(head)) }
                }
                (text)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::page::markdown;

    #[test]
    fn commands_in_tables_are_code_and_remain_as_they_are() {
        let cells = vec![Cell::code("cut -f 2 <a | head -5 s"), Cell::code("")];
        let of_arm = ColumnHeading { arm: Some(0), ..ColumnHeading::number("ls | wc") };
        let head = vec![ColumnHeading::text("Command"), of_arm];
        let table = Table { head, rows: vec![cells], ..Table::default() };
        let section = Section { parts: vec![SectionPart::Table(table)], ..Section::default() };
        let page = Page { sections: vec![section], ..Page::default() };
        let html = text(&page);
        assert!(html.contains("<code>cut -f 2 &lt;a | head -5 s</code></th>"), "{html}");
        assert!(html.contains("<code>ls | wc</code></th>") && !html.contains("<code></code>"), "{html}");
        let markdown = markdown::text(&page);
        assert!(!html.contains('\u{a0}'), "{html}");
        assert!(markdown.contains("| Command | `ls \\| wc` |"), "{markdown}");
        assert!(markdown.contains("| `cut -f 2 <a \\| head -5 s` |  |"), "{markdown}");
    }

    #[test]
    fn numbers_in_sentences_of_tables_and_folds_stay_with_their_units() {
        let cells = vec![Cell::text("f 5 s"), Cell::sentence("calls f 50 → 100 times, × 2.00")];
        let table = Table { rows: vec![cells], ..Table::default() };
        let fold = Fold { summary: "Those below 10 ms".to_owned(), parts: Vec::new() };
        let parts = vec![SectionPart::Table(table), SectionPart::Fold(fold)];
        let page = Page { sections: vec![Section { parts, ..Section::default() }], ..Page::default() };
        let html = text(&page);
        for part in ["f 5 s", "100 times, ×\u{a0}2.00", "Those below 10\u{a0}ms"] {
            assert!(html.contains(part), "{part}: {html}");
        }
    }
}
