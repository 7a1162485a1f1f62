//! The content of a chart, as data.

use scruple_core::unit::{Unit, share};
use serde::{Deserialize, Serialize};

/// A chart.
#[derive(Debug, Serialize, Deserialize)]
pub struct Chart {
    /// Its name, for requests.
    pub name: String,
    /// Its heading.
    pub title: String,
    /// How to read it; empty where the heading is enough.
    pub note: String,
    /// Its content in words and numbers, for those who cannot see it.
    pub label: String,
    /// What is drawn.
    pub drawn: Drawn,
}

/// What is drawn.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Drawn {
    /// Rows over one axis.
    Rows(Rows),
    /// Curves and points over two axes.
    Plot(Plot),
    /// How much there is of what, in fields over two axes.
    Heat(Heat),
}

/// The scale of an axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// By their size.
    Linear,
    /// By their logarithm.
    Log,
    /// Ratios by their logarithm, written as changes.
    Ratio,
    /// Shares by their nines: 90 %, 99 %, 99.9 %.
    Nines,
}

/// An axis.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Axis {
    /// What is laid out along it.
    pub title: String,
    /// The unit of the values.
    pub unit: Unit,
    /// How they are laid out.
    pub scale: Scale,
    /// Names of places along it, which stand there instead of round values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<Place>,
}

/// A place along an axis that has a name, such as a version.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Place {
    /// Where it is.
    pub at: f64,
    /// Its name.
    pub name: String,
    /// What is said of it besides its name.
    pub about: String,
    /// What happened there, where it is marked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<Event>,
}

/// Something that happened at a place along an axis.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Event {
    /// A few characters that tables repeat.
    pub sign: String,
    /// Whether it is for the worse.
    pub tone: super::Tone,
    /// From where to where it may have happened, where that is not known better.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<(f64, f64)>,
}

impl Axis {
    /// An axis.
    pub fn new(title: impl Into<String>, unit: Unit, scale: Scale) -> Axis {
        Axis { title: title.into(), unit, scale, places: Vec::new() }
    }

    /// An axis of values by their size.
    pub fn linear(title: impl Into<String>, unit: Unit) -> Axis {
        Axis::new(title, unit, Scale::Linear)
    }

    /// An axis of values by their logarithm.
    pub fn log(title: impl Into<String>, unit: Unit) -> Axis {
        Axis::new(title, unit, Scale::Log)
    }

    /// An axis of ratios.
    pub fn ratio(title: impl Into<String>) -> Axis {
        Axis::new(title, Unit::Ratio, Scale::Ratio)
    }
}

/// A range along an axis that is marked, with what it means.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Shade {
    /// Its low end.
    pub low: f64,
    /// Its high end.
    pub high: f64,
    /// What it means; may be empty.
    pub text: String,
}

impl Shade {
    /// The ratios that do not matter, along an axis of ratios.
    pub fn margin(margin: f64) -> Shade {
        let text = format!("margin ±{}", share(margin));
        Shade { low: 1.0 / (1.0 + margin), high: 1.0 + margin, text }
    }
}

/// Rows over one axis: readings, and intervals.
#[derive(Debug, Serialize, Deserialize)]
pub struct Rows {
    /// The axis.
    pub axis: Axis,
    /// A range that is marked in every row.
    pub shade: Option<Shade>,
    /// A value that is marked in every row.
    pub zero: Option<f64>,
    /// The rows.
    pub rows: Vec<Row>,
}

/// A row: its arm, its readings in order, and the conclusion.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Row {
    /// The position of the arm, which determines its colour and mark.
    pub arm: usize,
    /// The name of the row.
    pub name: String,
    /// The figure beside it.
    pub figure: String,
    /// The interval of the figure, in words.
    pub interval_text: String,
    /// The tone of the conclusion.
    pub tail: super::Span,
    /// The readings, in the order in which they were taken.
    pub dots: Vec<Dot>,
    /// The estimate.
    pub middle: Option<f64>,
    /// Its interval.
    pub interval: Option<(f64, f64)>,
}

/// A reading.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Dot {
    /// The block that it was taken in, or its place.
    pub block: u32,
    /// Its value.
    pub value: f64,
    /// Whether it is shown but not used.
    pub apart: bool,
}

/// Curves and points over two axes.
#[derive(Debug, Serialize, Deserialize)]
pub struct Plot {
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// A range of the vertical axis that is marked.
    pub shade: Option<Shade>,
    /// A range of the horizontal axis that is marked.
    pub column: Option<Shade>,
    /// A value of the vertical axis that is marked.
    pub zero: Option<f64>,
    /// What is drawn, from the back to the front.
    pub layers: Vec<Layer>,
    /// Whether it is one of several small ones.
    pub small: bool,
}

/// A heat map: the darker a field, the more was counted in it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Heat {
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The fields in which anything was counted.
    pub fields: Vec<Field>,
}

/// A field of a heat map.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Field {
    /// Its ends along the horizontal axis.
    pub across: (f64, f64),
    /// Its ends along the vertical axis.
    pub up: (f64, f64),
    /// What was counted in it.
    pub count: f64,
}

impl Heat {
    /// The shades of fields: from 1 to this.
    pub const SHADES: usize = 6;

    /// The most that was counted in a field.
    pub fn most(&self) -> f64 {
        self.fields.iter().map(|field| field.count).fold(1.0, f64::max)
    }

    /// The shade of a count, by its logarithm, so that a single one is seen beside thousands.
    pub fn shade(&self, count: f64) -> usize {
        let share = count.max(0.0).ln_1p() / self.most().ln_1p();
        ((share * Heat::SHADES as f64).ceil() as usize).clamp(1, Heat::SHADES)
    }

    /// The ends of all fields along both axes.
    pub fn ends(&self) -> ((f64, f64), (f64, f64)) {
        let none = (f64::INFINITY, f64::NEG_INFINITY);
        let wider = |(low, high): (f64, f64), (from, to): (f64, f64)| (low.min(from), high.max(to));
        self.fields
            .iter()
            .fold((none, none), |(across, up), field| (wider(across, field.across), wider(up, field.up)))
    }
}

/// The form of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shape {
    /// Points by themselves.
    Points,
    /// Small points, of which there are many.
    Spots,
    /// Points below the plot, which have no height.
    Below,
    /// Points, and a thin line through them.
    Course,
    /// A line.
    Line,
    /// A line in steps.
    Steps,
    /// The area between the values and their low ends.
    Area,
}

/// The points of one arm in a plot.
#[derive(Debug, Serialize, Deserialize)]
pub struct Layer {
    /// The position of the arm, which determines its colour, mark and dash.
    pub arm: usize,
    /// Its name.
    pub name: String,
    /// Its form.
    pub shape: Shape,
    /// The points in pieces; between pieces nothing is known.
    pub pieces: Vec<Vec<Point>>,
}

/// A point of a plot.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Point {
    /// Its place along the horizontal axis.
    pub x: f64,
    /// Its value.
    pub y: f64,
    /// The low end of an area.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Whether it is shown but not used.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub apart: bool,
}

impl Point {
    /// A point that is used.
    pub fn at(x: f64, y: f64) -> Point {
        Point { x, y, low: None, apart: false }
    }
}

/// A name that charts are asked for by: lower case letters, digits and hyphens.
pub fn slug(text: &str) -> String {
    let mut slug = String::new();
    for c in text.chars().flat_map(char::to_lowercase) {
        match c {
            c if c.is_ascii_alphanumeric() => slug.push(c),
            _ if !slug.is_empty() && !slug.ends_with('-') => slug.push('-'),
            _ => {}
        }
    }
    slug.trim_end_matches('-').to_owned()
}
