//! The content of a page as data, without pixels or markup. The submodules write it as HTML, Markdown, CSV, JSON,
//! pictures and text for a terminal.

pub mod chart;
pub mod csv;
pub mod html;
pub mod json;
pub mod markdown;
pub mod terminal;
pub mod typeset;

pub use chart::{
    Axis, AxisLabel, AxisScale, Chart, ChartEvent, ChartPoint, ChartRow, Dot, Drawn, Field, Flame, Heat,
    Layer, LayerShape, Plot, RowChart, Shade, Stacked,
};

use super::export::Formats;
use scruple_core::harmless_text::{plain, without_middle};
use scruple_core::verdict::{Comparison, Direction, Verdict};
use scruple_stats::sorting;
use serde::{Deserialize, Serialize};

/// The formats of a page, by the endings of their file names.
pub const FORMATS: Formats<fn(&Page) -> String, 5> = [
    ("html", html::text),
    ("htm", html::text),
    ("md", markdown::text),
    ("csv", csv::text),
    ("json", json::text),
];

/// A page that reports a result.
#[derive(Debug, Default, Serialize)]
pub struct Page {
    /// The title of the document.
    pub title: String,
    /// The subject, the time and the run, as separate texts.
    pub kind: Vec<String>,
    /// The verdict, as one sentence with tones.
    pub verdict: Vec<Span>,
    /// Statements that a reader must know.
    pub notes: Vec<String>,
    /// The remarks of the run.
    pub warnings: Vec<String>,
    /// The sections of the page.
    pub sections: Vec<Section>,
}

/// A section: a part of a page under a heading.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Section {
    /// The heading of the section.
    pub title: String,
    /// The summary text, if the section is folded.
    pub folded: Option<String>,
    /// The content of the section.
    pub parts: Vec<SectionPart>,
}

/// A piece of a section.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::large_enum_variant, reason = "a page has few of them, and they live for one page")]
pub enum SectionPart {
    /// A paragraph.
    Words(String),
    /// An explanatory paragraph, in a softer colour.
    Note(String),
    /// A list of sentences.
    List(Vec<String>),
    /// Preformatted text.
    Code(String),
    /// A table.
    Table(Table),
    /// A chart with the whole width of the page.
    Chart(Chart),
    /// Charts beside each other, as far as the width allows.
    Charts(Vec<Chart>),
    /// Parts that are folded.
    Fold(Fold),
}

/// Parts that are shown on demand.
#[derive(Debug, Serialize, Deserialize)]
pub struct Fold {
    /// The summary text of the fold.
    pub summary: String,
    /// The content of the fold.
    pub parts: Vec<SectionPart>,
}

/// The meaning that a colour adds to a text. Words or signs repeat the meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tone {
    /// The text is neutral.
    #[default]
    Plain,
    /// The text is about a change for the worse.
    Worse,
    /// The text is about a change for the better.
    Better,
    /// The text says that there is no change.
    Same,
    /// The text says that there is no decision.
    Open,
}

/// A text with its tone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// The text.
    pub text: String,
    /// The tone of the text.
    pub tone: Tone,
}

impl Span {
    /// Creates a text with this tone.
    pub fn new(text: impl Into<String>, tone: Tone) -> Span {
        Span { text: text.into(), tone }
    }

    /// Creates a text without a tone.
    pub fn plain(text: impl Into<String>) -> Span {
        Span::new(text, Tone::Plain)
    }
}

/// A table. The first cell of a row is the heading of the row.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Table {
    /// A description of the table, for readers who cannot see it.
    pub label: String,
    /// The headings of the columns.
    pub head: Vec<ColumnHeading>,
    /// The rows, each with a cell for every column.
    pub rows: Vec<Vec<Cell>>,
    /// Whether narrow screens show each row as a list, with the headings of the columns beside the cells.
    pub stacks: bool,
    /// The orders in which readers may sort the rows. The rows are given in the first one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub orders: Vec<SortOrder>,
}

/// An order in which the rows of a table may be sorted.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct SortOrder {
    /// The name of the order.
    pub name: String,
    /// The place of each row in the order.
    pub places: Vec<usize>,
}

impl SortOrder {
    /// Creates the order in which the rows are given.
    pub fn given(name: impl Into<String>, rows: usize) -> SortOrder {
        SortOrder { name: name.into(), places: (0..rows).collect() }
    }

    /// Creates an ascending order by a key.
    pub fn by<K>(
        name: impl Into<String>,
        keys: &[K],
        compare: impl Fn(&K, &K) -> std::cmp::Ordering,
    ) -> SortOrder {
        let mut order: Vec<usize> = (0..keys.len()).collect();
        sorting::by(&mut order, |one, other| compare(&keys[*one], &keys[*other]));
        let mut places = vec![0; keys.len()];
        for (place, row) in order.into_iter().enumerate() {
            places[row] = place;
        }
        SortOrder { name: name.into(), places }
    }

    /// Creates a descending order by a number. Rows without a number come last.
    pub fn greatest(name: impl Into<String>, keys: &[Option<f64>]) -> SortOrder {
        let number = |key: &Option<f64>| key.unwrap_or(f64::NEG_INFINITY);
        SortOrder::by(name, keys, |one, other| number(other).total_cmp(&number(one)))
    }
}

/// The heading of a column.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct ColumnHeading {
    /// The text of the heading.
    pub text: String,
    /// The index of the arm that the column is about, if it is about one. The heading is then the name of the arm.
    pub arm: Option<usize>,
    /// Whether the column holds numbers.
    pub number: bool,
}

impl ColumnHeading {
    /// Creates the heading of a column of texts.
    pub fn text(text: impl Into<String>) -> ColumnHeading {
        ColumnHeading { text: text.into(), arm: None, number: false }
    }

    /// Creates the heading of a column of numbers.
    pub fn number(text: impl Into<String>) -> ColumnHeading {
        ColumnHeading { text: text.into(), arm: None, number: true }
    }
}

/// A cell of a table.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Cell {
    /// The text of the cell.
    pub text: String,
    /// Whether the text is code, such as a command. It is then written as it is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub code: bool,
    /// Whether the text is a sentence of Scruple, in which numbers stay on one line with their units.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sentence: bool,
    /// A remark after the text.
    pub tail: Option<Span>,
    /// The tone of the text.
    pub tone: Tone,
    /// The points of a sparkline in the cell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub course: Vec<(f64, f64)>,
    /// The URL that the text links to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
}

impl Cell {
    /// Creates a cell that contains only a text.
    pub fn text(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), ..Cell::default() }
    }

    /// Creates a cell that contains only code, such as a command.
    pub fn code(text: impl Into<String>) -> Cell {
        Cell { code: true, ..Cell::text(text) }
    }

    /// Creates a cell that contains only a sentence of Scruple.
    pub fn sentence(text: impl Into<String>) -> Cell {
        Cell { sentence: true, ..Cell::text(text) }
    }

    /// Creates a cell with a text of this tone.
    pub fn toned(text: impl Into<String>, tone: Tone) -> Cell {
        Cell { text: text.into(), tone, ..Cell::default() }
    }
}

/// The largest number of characters in a name.
const LONGEST_NAME: usize = 60;

/// The largest number of characters in a word of a sentence, such as a path.
const LONGEST_WORD: usize = 160;

/// The largest number of characters in a sentence.
const LONGEST_SENTENCE: usize = 1200;

/// Makes a name from outside harmless: one line without control characters, shortened.
pub fn harmless_name(text: &str) -> String {
    shortened(text, LONGEST_NAME)
}

/// Makes a sentence with names from outside harmless, like [`harmless_name`].
pub fn harmless_sentence(text: &str) -> String {
    let words = text.split(' ').map(|word| shortened(word, LONGEST_WORD));
    shortened(&words.collect::<Vec<_>>().join(" "), LONGEST_SENTENCE)
}

fn shortened(text: &str, most: usize) -> String {
    without_middle(&plain(text), most)
}

/// Returns the tone of a verdict.
pub fn tone(comparison: &Comparison) -> Tone {
    match (comparison.verdict, comparison.direction) {
        (Verdict::Same, _) => Tone::Same,
        (Verdict::CantTell, _) => Tone::Open,
        (_, Some(Direction::Worse)) => Tone::Worse,
        (_, Some(Direction::Better)) => Tone::Better,
        (_, None) => Tone::Plain,
    }
}

/// Returns the sign of a verdict, which can be read without colour. It is filled if the arms are different and hollow
/// if the difference is small, and points up if the arm has more than the reference.
pub fn sign(comparison: &Comparison) -> &'static str {
    let more = comparison.evidence.effect().is_none_or(|effect| effect > 1.0);
    match (comparison.verdict, more) {
        (Verdict::Same, _) => "=",
        (Verdict::CantTell, _) => "?",
        (Verdict::Different, true) => "▲",
        (Verdict::Different, false) => "▼",
        (Verdict::Small, true) => "△",
        (Verdict::Small, false) => "▽",
    }
}

impl Page {
    /// Returns the charts of the page.
    pub fn charts(&self) -> Vec<&Chart> {
        fn of<'a>(parts: &'a [SectionPart], found: &mut Vec<&'a Chart>) {
            for part in parts {
                match part {
                    SectionPart::Chart(chart) => found.push(chart),
                    SectionPart::Charts(charts) => found.extend(charts),
                    SectionPart::Fold(fold) => of(&fold.parts, found),
                    _ => {}
                }
            }
        }
        let mut found = Vec::new();
        self.sections.iter().for_each(|section| of(&section.parts, &mut found));
        found
    }

    /// Returns the verdict as plain text.
    pub fn sentence(&self) -> String {
        self.verdict.iter().map(|span| span.text.as_str()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_keep_both_ends_and_nothing_in_them_steers() {
        let long = format!("{}\u{202e}{}", "a".repeat(5000), "z".repeat(5000));
        let name = harmless_name(&long);
        assert_eq!(name.chars().count(), LONGEST_NAME);
        assert!(name.starts_with("aaa") && name.ends_with("zzz") && name.contains('…'), "{name}");
        assert_eq!(super::harmless_name("a\u{1b}[2J\nb"), "a\u{fffd}[2J\u{fffd}b");
    }
}
