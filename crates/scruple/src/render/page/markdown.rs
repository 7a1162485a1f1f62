//! A page in Markdown: the verdict, the tables, and the content of each chart in words.

use super::{Cell, Chart, Page, Section, SectionPart, Table};
use crate::render::markup::{self, Markup, escaped};
use std::fmt::Write as _;

/// Writes the page in Markdown.
pub(crate) fn text(page: &Page) -> String {
    let mut out = format!("### {}\n\n", escaped(&page.sentence()));
    for note in &page.notes {
        let _ = writeln!(out, "{}\n", escaped(note));
    }
    for warning in &page.warnings {
        let _ = writeln!(out, "> **!** {}\n", escaped(warning));
    }
    for section in &page.sections {
        section_of(section, &mut out);
    }
    let _ = writeln!(out, "{}", escaped(&page.kind.join(" · ")));
    out
}

fn section_of(section: &Section, out: &mut String) {
    if !section.title.is_empty() {
        let _ = writeln!(out, "#### {}\n", escaped(&section.title));
    }
    let Some(summary) = &section.folded else { return parts(&section.parts, out) };
    folded(summary, &section.parts, out);
}

fn folded(summary: &str, inner: &[SectionPart], out: &mut String) {
    let _ = writeln!(out, "<details><summary>{}</summary>\n", escaped(summary));
    parts(inner, out);
    out.push_str("</details>\n\n");
}

fn parts(parts: &[SectionPart], out: &mut String) {
    for part in parts {
        match part {
            SectionPart::Words(text) | SectionPart::Note(text) => {
                let _ = writeln!(out, "{}\n", escaped(text));
            }
            SectionPart::List(lines) => {
                for line in lines {
                    let _ = writeln!(out, " - {}", escaped(line));
                }
                out.push('\n');
            }
            SectionPart::Code(text) => code(text, out),
            SectionPart::Table(table) => table_of(table, out),
            SectionPart::Chart(chart) => chart_of(chart, out),
            SectionPart::Charts(charts) => charts.iter().for_each(|chart| chart_of(chart, out)),
            SectionPart::Fold(fold) => folded(&fold.summary, &fold.parts, out),
        }
    }
}

fn chart_of(chart: &Chart, out: &mut String) {
    let _ = writeln!(out, "**{}**: {}\n", escaped(&chart.title), escaped(&chart.label));
}

/// Writes a code block whose fence is longer than any sequence of backticks in the text.
fn code(text: &str, out: &mut String) {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let _ = writeln!(out, "{fence}\n{}\n{fence}\n", text.trim_end());
}

fn table_of(table: &Table, out: &mut String) {
    let written = |text: &str, is_code: bool| match is_code {
        true => markup::code(text, Markup::Markdown),
        false => escaped(text),
    };
    let heads: Vec<String> = table.head.iter().map(|head| written(&head.text, head.arm.is_some())).collect();
    let rules: Vec<&str> = table.head.iter().map(|head| if head.number { "--:" } else { "---" }).collect();
    let _ = writeln!(out, "| {} |\n|{}|", heads.join(" | "), rules.join("|"));
    for row in &table.rows {
        let text = |cell: &Cell| written(&cell.text, cell.code);
        let cells: Vec<String> = row
            .iter()
            .map(|cell| match &cell.tail {
                Some(tail) if !tail.text.is_empty() => format!("{} {}", text(cell), escaped(&tail.text)),
                _ => text(cell),
            })
            .collect();
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_name_is_markup() {
        assert_eq!(escaped("<b>|`a`|@x\n#1"), "&lt;b&gt;\\|\\`a\\`\\|@&#8203;x #&#8203;1");
        let mut out = String::new();
        code("a\n````\nb", &mut out);
        assert!(out.starts_with("`````\na") && out.ends_with("\n`````\n\n"), "{out}");
    }
}
