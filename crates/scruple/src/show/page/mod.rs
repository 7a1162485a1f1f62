//! The content of a page as data, without pixels or markup. The writers below turn it into HTML, Markdown, CSV, JSON,
//! pictures and text for a terminal.

pub mod chart;
pub mod csv;
pub mod html;
pub mod json;
pub mod markdown;
pub mod terminal;

pub use chart::{
    Axis, Chart, Dot, Drawn, Event, Field, Heat, Layer, Place, Plot, Point, Row, Rows, Scale, Shade, Shape,
};

use super::export::Formats;
use scruple_core::compare::{Comparison, Direction, Verdict};
use scruple_core::harmless_text::plain;
use serde::{Deserialize, Serialize};

/// The formats of a page, by the endings of their files.
pub const FORMATS: Formats<fn(&Page) -> String, 5> = [
    ("html", html::text),
    ("htm", html::text),
    ("md", markdown::text),
    ("csv", csv::text),
    ("json", json::text),
];

/// A result, ready to be written.
#[derive(Debug, Default, Serialize)]
pub struct Page {
    /// The title of the document.
    pub title: String,
    /// The subject, the time, and the run.
    pub kind: Vec<String>,
    /// The verdict, as one sentence.
    pub verdict: Vec<Span>,
    /// What a reader must know.
    pub notes: Vec<String>,
    /// Remarks of the run.
    pub warnings: Vec<String>,
    /// The sections.
    pub sections: Vec<Section>,
}

/// A part of a page under a heading.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Section {
    /// The heading.
    pub title: String,
    /// The text of the fold, where the section is folded.
    pub folded: Option<String>,
    /// What is in it.
    pub parts: Vec<Part>,
}

/// A piece of a section.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::large_enum_variant, reason = "a page has few of them, and they live for one page")]
pub enum Part {
    /// A paragraph.
    Words(String),
    /// A paragraph that explains, in a softer colour.
    Note(String),
    /// Sentences, each a line.
    List(Vec<String>),
    /// Preformatted text.
    Code(String),
    /// A table.
    Table(Table),
    /// A chart over the whole width.
    Chart(Chart),
    /// Charts beside each other, as far as there is room.
    Charts(Vec<Chart>),
    /// Folded parts.
    Fold(Fold),
}

/// Parts that open on demand.
#[derive(Debug, Serialize, Deserialize)]
pub struct Fold {
    /// The text of the fold.
    pub summary: String,
    /// What is in it.
    pub parts: Vec<Part>,
}

/// The meaning that a colour adds to a text; words or signs repeat it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tone {
    /// Neutral.
    #[default]
    Plain,
    /// A change for the worse.
    Worse,
    /// A change for the better.
    Better,
    /// No change.
    Same,
    /// Can't tell.
    Open,
}

/// A text with its tone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// The text.
    pub text: String,
    /// Its tone.
    pub tone: Tone,
}

impl Span {
    /// A text of that tone.
    pub fn new(text: impl Into<String>, tone: Tone) -> Span {
        Span { text: text.into(), tone }
    }

    /// A text without a tone.
    pub fn plain(text: impl Into<String>) -> Span {
        Span::new(text, Tone::Plain)
    }
}

/// A table. The first cell of a row is its heading.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Table {
    /// Its content, for those who cannot see it.
    pub label: String,
    /// The headings of the columns.
    pub head: Vec<Head>,
    /// The rows.
    pub rows: Vec<Vec<Cell>>,
    /// Whether narrow screens show each row as a list, with the headings of the columns beside the cells.
    pub stacks: bool,
    /// What readers may sort the rows by; they stand in the order of the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub orders: Vec<Order>,
}

/// An order in which the rows of a table may stand.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Order {
    /// What it is called.
    pub name: String,
    /// The place of each row in it.
    pub places: Vec<usize>,
}

impl Order {
    /// The order in which rows were given.
    pub fn given(name: impl Into<String>, rows: usize) -> Order {
        Order { name: name.into(), places: (0..rows).collect() }
    }

    /// By a key, ascending.
    pub fn by<K>(
        name: impl Into<String>,
        keys: &[K],
        compare: impl Fn(&K, &K) -> std::cmp::Ordering,
    ) -> Order {
        let mut order: Vec<usize> = (0..keys.len()).collect();
        order.sort_by(|one, other| compare(&keys[*one], &keys[*other]));
        let mut places = vec![0; keys.len()];
        for (place, row) in order.into_iter().enumerate() {
            places[row] = place;
        }
        Order { name: name.into(), places }
    }

    /// By a number, the greatest first; what has none comes last.
    pub fn greatest(name: impl Into<String>, keys: &[Option<f64>]) -> Order {
        let number = |key: &Option<f64>| key.unwrap_or(f64::NEG_INFINITY);
        Order::by(name, keys, |one, other| number(other).total_cmp(&number(one)))
    }
}

/// The heading of a column.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Head {
    /// The text.
    pub text: String,
    /// The position of the arm whose column it is, where it is one's.
    pub arm: Option<usize>,
    /// Whether the column holds numbers.
    pub number: bool,
}

impl Head {
    /// A column of texts.
    pub fn text(text: impl Into<String>) -> Head {
        Head { text: text.into(), arm: None, number: false }
    }

    /// A column of numbers.
    pub fn number(text: impl Into<String>) -> Head {
        Head { text: text.into(), arm: None, number: true }
    }
}

/// A cell of a table.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Cell {
    /// The text.
    pub text: String,
    /// What is said of it.
    pub tail: Option<Span>,
    /// The tone of the text.
    pub tone: Tone,
    /// The course of a series, drawn small.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub course: Vec<(f64, f64)>,
    /// Its link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
}

impl Cell {
    /// A cell with nothing but a text.
    pub fn text(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), ..Cell::default() }
    }

    /// A text of that tone.
    pub fn toned(text: impl Into<String>, tone: Tone) -> Cell {
        Cell { text: text.into(), tone, ..Cell::default() }
    }
}

/// The longest name that a page shows.
const LONGEST_NAME: usize = 60;

/// The longest word in a sentence, such as a path.
const LONGEST_WORD: usize = 160;

/// The longest sentence that a page shows.
const LONGEST_SENTENCE: usize = 1200;

/// A name from outside: one line without control characters, truncated.
pub fn name(text: &str) -> String {
    shortened(text, LONGEST_NAME)
}

/// A sentence with names from outside in it, in the same way.
pub fn sentence(text: &str) -> String {
    let words = text.split(' ').map(|word| shortened(word, LONGEST_WORD));
    shortened(&words.collect::<Vec<_>>().join(" "), LONGEST_SENTENCE)
}

/// The text with its middle left out where it is longer than this many characters: long names often differ at their
/// end.
fn shortened(text: &str, most: usize) -> String {
    let text = plain(text);
    let length = text.chars().count();
    if length <= most {
        return text;
    }
    let end = most / 3;
    let head: String = text.chars().take(most - end - 1).collect();
    let tail: String = text.chars().skip(length - end).collect();
    format!("{head}…{tail}")
}

/// The tone of a verdict.
pub fn tone(comparison: &Comparison) -> Tone {
    match (comparison.verdict, comparison.direction) {
        (Verdict::Same, _) => Tone::Same,
        (Verdict::CantTell, _) => Tone::Open,
        (_, Some(Direction::Worse)) => Tone::Worse,
        (_, Some(Direction::Better)) => Tone::Better,
        (_, None) => Tone::Plain,
    }
}

/// The sign of a verdict, which works without colour: filled where the arms are different, hollow where the difference
/// is small; pointing up where the arm has more.
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
    /// The charts, with their names told apart.
    pub fn charts(&self) -> Vec<&Chart> {
        fn of<'a>(parts: &'a [Part], found: &mut Vec<&'a Chart>) {
            for part in parts {
                match part {
                    Part::Chart(chart) => found.push(chart),
                    Part::Charts(charts) => found.extend(charts),
                    Part::Fold(fold) => of(&fold.parts, found),
                    _ => {}
                }
            }
        }
        let mut found = Vec::new();
        self.sections.iter().for_each(|section| of(&section.parts, &mut found));
        found
    }

    /// The verdict as one text.
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
        let name = name(&long);
        assert_eq!(name.chars().count(), LONGEST_NAME);
        assert!(name.starts_with("aaa") && name.ends_with("zzz") && name.contains('…'), "{name}");
        assert_eq!(super::name("a\u{1b}[2J\nb"), "a\u{fffd}[2J\u{fffd}b");
    }
}
