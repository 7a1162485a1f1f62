//! The content of charts, as data.

use scruple_core::unit::{Unit, share};
use serde::{Deserialize, Serialize};

/// A chart of a page.
#[derive(Debug, Serialize, Deserialize)]
pub struct Chart {
    /// The name by which a user can request the chart.
    pub name: String,
    /// The heading of the chart.
    pub title: String,
    /// An explanation of how to read the chart; empty if the heading is enough.
    pub note: String,
    /// The content of the chart in words and numbers, for readers who cannot see it.
    pub label: String,
    /// The content of the chart.
    pub drawn: Drawn,
}

/// The content of a chart, by its kind.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Drawn {
    /// Rows over one axis.
    Rows(RowChart),
    /// Curves and points over two axes.
    Plot(Plot),
    /// Counts in fields over two axes, shown by shades.
    Heat(Heat),
    /// Boxes above each other, each as wide as its share: a flame graph.
    Flame(Flame),
}

/// The scale of an axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AxisScale {
    /// A linear scale.
    Linear,
    /// A logarithmic scale.
    Log,
    /// A logarithmic scale of ratios, which are written as changes.
    Ratio,
    /// A scale of shares by their distance from 1: 90 %, 99 %, 99.9 %.
    Nines,
}

/// An axis of a chart.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Axis {
    /// The name of the quantity along the axis.
    pub title: String,
    /// The unit of the values.
    pub unit: Unit,
    /// The scale of the axis.
    pub scale: AxisScale,
    /// Whether all values are whole numbers, so that labels are as well.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub whole: bool,
    /// Named places along the axis. Their names replace the labels of round values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<AxisLabel>,
}

/// A place with a name along an axis, such as a version.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct AxisLabel {
    /// The position of the place, as a value of the axis.
    pub at: f64,
    /// The name of the place.
    pub name: String,
    /// A description of the place, in addition to its name.
    pub about: String,
    /// The event at the place, if it has one to mark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<ChartEvent>,
}

/// An event at a place along an axis, such as a change at a version.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ChartEvent {
    /// The sign of the event: a few characters, which tables use as well.
    pub sign: String,
    /// Whether the event is an improvement or a regression.
    pub tone: super::Tone,
    /// The range in which the event may have happened, if its place is not known exactly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<(f64, f64)>,
}

impl Axis {
    /// Creates an axis.
    pub fn new(title: impl Into<String>, unit: Unit, scale: AxisScale) -> Axis {
        Axis { title: title.into(), unit, scale, whole: false, places: Vec::new() }
    }

    /// Creates an axis of numbers that are counted, such as those of blocks: only whole ones have labels.
    pub fn counted(title: impl Into<String>) -> Axis {
        Axis { whole: true, ..Axis::linear(title, Unit::Count) }
    }

    /// Labels only whole numbers if all of these values are.
    pub fn for_values(self, values: impl IntoIterator<Item = f64>) -> Axis {
        Axis {
            whole: self.unit == Unit::Count && values.into_iter().all(|value| value.fract() == 0.0),
            ..self
        }
    }

    /// Creates an axis with a linear scale.
    pub fn linear(title: impl Into<String>, unit: Unit) -> Axis {
        Axis::new(title, unit, AxisScale::Linear)
    }

    /// Creates an axis with a logarithmic scale.
    pub fn log(title: impl Into<String>, unit: Unit) -> Axis {
        Axis::new(title, unit, AxisScale::Log)
    }

    /// Creates an axis of ratios.
    pub fn ratio(title: impl Into<String>) -> Axis {
        Axis::new(title, Unit::Ratio, AxisScale::Ratio)
    }
}

/// A marked range along an axis, with its meaning.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Shade {
    /// The low end of the range.
    pub low: f64,
    /// The high end of the range.
    pub high: f64,
    /// The meaning of the range; may be empty.
    pub text: String,
}

impl Shade {
    /// Returns the range of ratios within the margin, for an axis of ratios.
    pub fn margin(margin: f64) -> Shade {
        let text = format!("margin ±{}", share(margin));
        Shade { low: 1.0 / (1.0 + margin), high: 1.0 + margin, text }
    }
}

/// A chart of rows over one axis, with readings and intervals.
#[derive(Debug, Serialize, Deserialize)]
pub struct RowChart {
    /// The common axis of the rows.
    pub axis: Axis,
    /// A range that is marked in every row.
    pub shade: Option<Shade>,
    /// A value that is marked in every row.
    pub zero: Option<f64>,
    /// The rows from top to bottom.
    pub rows: Vec<ChartRow>,
}

/// A row of a chart: an arm, its readings in order, and the conclusion.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct ChartRow {
    /// The index of the arm, which determines the colour and the mark.
    pub arm: usize,
    /// The name of the row.
    pub name: String,
    /// The figure beside the row.
    pub figure: String,
    /// The interval of the figure, as text.
    pub interval_text: String,
    /// The text of the conclusion, with its tone.
    pub tail: super::Span,
    /// The readings, in the order in which they were taken.
    pub dots: Vec<Dot>,
    /// The estimate, if there is one.
    pub middle: Option<f64>,
    /// The interval of the estimate, if there is one.
    pub interval: Option<(f64, f64)>,
}

/// A reading in a row.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Dot {
    /// The block in which the reading was taken, or its index.
    pub block: u32,
    /// The value of the reading.
    pub value: f64,
    /// Whether the reading is shown but not used.
    pub apart: bool,
}

/// A chart of curves and points over two axes.
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
    /// The layers, from the back to the front.
    pub layers: Vec<Layer>,
    /// Whether the plot is one of several small ones.
    pub small: bool,
}

/// A heat map. A field is darker if more was counted in it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Heat {
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The fields whose count is not zero.
    pub fields: Vec<Field>,
}

/// A field of a heat map.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Field {
    /// The ends of the field along the horizontal axis.
    pub across: (f64, f64),
    /// The ends of the field along the vertical axis.
    pub up: (f64, f64),
    /// The count in the field.
    pub count: f64,
}

/// A flame graph: each box is drawn on that of its caller.
#[derive(Debug, Serialize, Deserialize)]
pub struct Flame {
    /// The boxes, callers before what they call.
    pub boxes: Vec<Stacked>,
}

/// A box of a flame graph.
#[derive(Debug, Serialize, Deserialize)]
pub struct Stacked {
    /// The left end of the box, as a share of the whole width.
    pub from: f64,
    /// The width of the box, as a share of the whole width.
    pub wide: f64,
    /// The number of boxes below the box.
    pub level: usize,
    /// The name of the box.
    pub name: String,
    /// A description of the box, in addition to its name.
    pub about: String,
    /// Whether the box stands for an increase or a decrease.
    pub tone: super::Tone,
}

impl Heat {
    /// The number of shades of fields, which are numbered from 1.
    pub const SHADES: usize = 6;

    /// Returns the largest count of a field, at least 1.
    pub fn most(&self) -> f64 {
        self.fields.iter().map(|field| field.count).fold(1.0, f64::max)
    }

    /// Returns the shade of a count. Shades are logarithmic, so that a count of one is visible beside thousands.
    pub fn shade(&self, count: f64) -> usize {
        let share = count.max(0.0).ln_1p() / self.most().ln_1p();
        ((share * Heat::SHADES as f64).ceil() as usize).clamp(1, Heat::SHADES)
    }

    /// Returns the range of all fields along both axes.
    pub fn ends(&self) -> ((f64, f64), (f64, f64)) {
        let none = (f64::INFINITY, f64::NEG_INFINITY);
        let wider = |(low, high): (f64, f64), (from, to): (f64, f64)| (low.min(from), high.max(to));
        self.fields
            .iter()
            .fold((none, none), |(across, up), field| (wider(across, field.across), wider(up, field.up)))
    }
}

/// The form in which a layer is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LayerShape {
    /// Separate points.
    Points,
    /// Many small points.
    Spots,
    /// Points without a height, drawn below the plot.
    Below,
    /// Points connected by a thin line.
    Course,
    /// A line.
    Line,
    /// A line with steps.
    Steps,
    /// The area between the values and their low ends.
    Area,
}

/// A layer of a plot, with the points of one arm.
#[derive(Debug, Serialize, Deserialize)]
pub struct Layer {
    /// The index of the arm, which determines the colour, the mark and the dash pattern.
    pub arm: usize,
    /// The name of the layer in the legend.
    pub name: String,
    /// Whether the name is code, such as a command.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub code: bool,
    /// The form in which the layer is drawn.
    pub shape: LayerShape,
    /// The points, in pieces that are not connected with each other.
    pub pieces: Vec<Vec<ChartPoint>>,
}

/// A point of a plot.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct ChartPoint {
    /// The position of the point along the horizontal axis.
    pub x: f64,
    /// The position of the point along the vertical axis.
    pub y: f64,
    /// The low end of the area at this point, if the layer is an area.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Whether the point is shown but not used.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub apart: bool,
}

impl ChartPoint {
    /// Creates a point that is used.
    pub fn at(x: f64, y: f64) -> ChartPoint {
        ChartPoint { x, y, low: None, apart: false }
    }
}

/// Returns the name by which a user can request a chart: lower-case letters, digits and hyphens.
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
