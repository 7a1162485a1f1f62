//! The chart of a range: panels over one axis of versions, with numbered guides at changes and marks for failures.

use super::event::{Event, Outcome};
use super::panel;
use super::panel::Frame;
use super::svg_text::{self, label};
use super::{Page, words};
use crate::history::args::ChartForm;
use crate::show::svg::{cut, picture};
use maud::PreEscaped;
use scruple_core::history::State;
use scruple_core::unit::quantity;
use std::fmt::Write as _;

/// How the chart is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Equal lengths are equal differences, rather than equal ratios.
    pub linear: bool,
    /// One panel for each subject, with allocations, memory and time on three axes, rather than one for each metric.
    pub combined: bool,
}

impl Options {
    /// The options that these words of the command line choose.
    pub fn of(forms: &[ChartForm]) -> Options {
        Options { linear: forms.contains(&ChartForm::Linear), combined: forms.contains(&ChartForm::Combined) }
    }
}

/// Colours and strokes, for light and dark.
const STYLE: &str = "<style>\n\
    .scruple{--good:#00805a;--bad:#c8370a;--mild:#7a7a7a;--c1:#0067ad;--c2:#b5560c;--c3:#00805a}\n\
    @media(prefers-color-scheme:dark){.scruple{--good:#3ecf9a;--bad:#ff7a52;--mild:#9a9a9a;--c1:#62b6f5;--c2:#f0a04b;--c3:#3ecf9a}}\n\
    .scruple .good{--hue:var(--good)}.scruple .bad{--hue:var(--bad)}.scruple .mild{--hue:var(--mild)}\n\
    .scruple .c1{--hue:var(--c1)}.scruple .c2{--hue:var(--c2)}.scruple .c3{--hue:var(--c3)}\n\
    .scruple .band{fill:var(--hue);opacity:.22}.scruple .median{fill:none;stroke:var(--hue);stroke-width:1.2}\n\
    .scruple .least{fill:none;stroke:var(--hue);stroke-width:1;stroke-dasharray:1 3}\n\
    .scruple .level{fill:none;stroke:var(--ink);stroke-width:1.6;opacity:.75}\n\
    .scruple .dots{fill:none;stroke:var(--hue);stroke-width:2.6;stroke-linecap:round;opacity:.45}\n\
    .scruple .mark{fill:var(--hue)}.scruple .copy{fill:var(--paper);stroke:var(--hue);stroke-width:1.2}\n\
    .scruple .guide{stroke:var(--hue);stroke-width:1;stroke-dasharray:4 3;opacity:.5}\n\
    .scruple .turn{stroke:var(--hue);stroke-width:2;opacity:.9}.scruple .set{fill:var(--hue);opacity:.13}\n\
    .scruple .badge{fill:var(--hue)}.scruple text.count{fill:var(--paper);font-weight:bold;text-anchor:middle}\n\
    .scruple .state{fill:none;stroke:var(--hue);stroke-width:1.6}.scruple text.hue{fill:var(--hue)}\n\
    .scruple .name{font-weight:bold}.scruple .told{text-anchor:end}.scruple text.faint{fill:var(--mild)}\n\
    .scruple text.head,.scruple text.name,.scruple text.told{paint-order:stroke;stroke:var(--paper);stroke-width:3px}\n\
    .scruple .frame{fill:none;stroke:var(--faint)}\n\
    .scruple .at{fill:transparent}.scruple .at:hover{fill:var(--ink);fill-opacity:.12}\n\
    </style>\n";

/// The height of a panel, of the combined one, and the room above each for its head.
const PANEL: f64 = 118.0;
const COMBINED: f64 = 380.0;
const HEAD: f64 = 26.0;
const LEFT: f64 = 84.0;

/// The most values in the tooltip of a version; the first series are those of the first subject.
const TOLD: usize = 16;

/// The positions of the versions along the axis.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Columns {
    count: usize,
    pub(crate) left: f64,
    pub(crate) right: f64,
}

impl Columns {
    /// The width of a version's column.
    pub(crate) fn step(&self) -> f64 {
        (self.right - self.left) / self.count.max(1) as f64
    }

    /// The middle of a version's column.
    pub(crate) fn x(&self, index: usize) -> f64 {
        self.left + (index as f64 + 0.5) * self.step()
    }

    /// The left edge of a version's column, which is the right one of its predecessor.
    pub(crate) fn edge(&self, index: usize) -> f64 {
        self.left + index as f64 * self.step()
    }
}

/// Draws the chart.
pub(crate) fn svg(page: &Page<'_>, options: Options) -> String {
    let count = page.history.versions.len();
    let width = (240.0 + 5.0 * count as f64).clamp(1000.0, 1400.0);
    let margin = if options.combined { 150.0 } else { 24.0 };
    let columns = Columns { count, left: LEFT, right: width - margin };
    let frames = panel::frames(page, options);
    let title = format!("{}  {}", words::plain(&page.history.repository), words::plain(&page.history.range));
    if frames.is_empty() || count == 0 {
        let nothing = label("", (10.0, 48.0), "Nothing was weighed.");
        return picture(1000, 70, &title, &PreEscaped(nothing));
    }
    let (badges, rows) = badges(page, &columns);
    let mut top = 34.0 + 20.0 * rows as f64;
    let height = if options.combined { COMBINED } else { PANEL };
    let tops: Vec<f64> = frames
        .iter()
        .map(|_| {
            let here = top + HEAD;
            top = here + height;
            here
        })
        .collect();
    let bottom = top;
    let mut out = STYLE.to_owned();
    for event in &page.events {
        guide(page, event, &columns, (tops[0], bottom), &mut out);
    }
    for (frame, top) in frames.iter().zip(&tops) {
        panel::draw(page, frame, &columns, (*top, *top + height), &mut out);
    }
    out.push_str(&badges);
    states(page, &columns, bottom + 12.0, &mut out);
    names(page, &columns, bottom + 28.0, &mut out);
    legend(options, bottom + 142.0, &mut out);
    columns_to_point_at(page, &columns, &frames, (tops[0], bottom + 20.0), &mut out);
    picture(width as usize, (bottom + 182.0) as usize, &title, &PreEscaped(out))
}

/// The class that colours an event.
pub(crate) fn class(event: &Event<'_>) -> &'static str {
    match event.outcome() {
        Outcome::Regression => "bad",
        Outcome::Improvement => "good",
        Outcome::Change => "mild",
    }
}

/// The line where an event starts, and the shade over the versions that may have caused it.
fn guide(page: &Page<'_>, event: &Event<'_>, columns: &Columns, (top, bottom): (f64, f64), out: &mut String) {
    let first = event.set.first().copied().unwrap_or(event.at);
    let (left, right) = (columns.edge(first), columns.edge(event.last() + 1));
    let class = class(event);
    if event.set.len() + words::left_out(page, event) > 1 {
        let _ = writeln!(
            out,
            "<rect class=\"set {class}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
            right - left,
            bottom - top
        );
    }
    // The end of a spike is shown as well.
    for (version, top) in [(Some(event.at), top - HEAD + 4.0), (event.until().map(|until| until + 1), top)] {
        let Some(x) = version.map(|version| columns.edge(version)) else { continue };
        let _ = writeln!(
            out,
            "<line class=\"guide {class}\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{top:.1}\" y2=\"{bottom:.1}\"/>"
        );
    }
}

/// The numbers of the events above the panels, in up to four rows; and the number of rows.
fn badges(page: &Page<'_>, columns: &Columns) -> (String, usize) {
    let mut ends: Vec<f64> = Vec::new();
    let mut out = String::new();
    for event in &page.events {
        let x = columns.edge(event.at);
        let row = ends.iter().position(|end| *end <= x - 10.0).unwrap_or(ends.len());
        if row >= 4 {
            continue;
        }
        if row == ends.len() {
            ends.push(0.0);
        }
        ends[row] = x + 10.0;
        let y = 44.0 + 20.0 * row as f64;
        let _ = writeln!(
            out,
            "<g class=\"{}\"><rect class=\"badge\" x=\"{:.1}\" y=\"{:.1}\" width=\"18\" height=\"16\" rx=\"8\"/>\
             {}</g>",
            class(event),
            x - 9.0,
            y - 8.0,
            label("count", (x, y + 4.0), &event.number.to_string())
        );
    }
    (out, ends.len())
}

/// A mark below the panels for each version that was not weighed itself.
fn states(page: &Page<'_>, columns: &Columns, y: f64, out: &mut String) {
    let kinds: [(&[State], &str, &str, &str); 4] = [
        (&[State::BuildFailed], "bad", "m-3.5 -3.5l7 7m0 -7l-7 7", "build failed"),
        (
            &[State::CheckFailed, State::RunFailed, State::TimedOut],
            "c2",
            "m0 -4l4 4l-4 4l-4 -4z",
            "check or run failed, or timed out",
        ),
        (&[State::SameBinary], "c1", "m-3.5 -1.5h7m0 3h-7", "same binary"),
        (&[State::Skipped, State::Queued, State::Building], "mild", "m-1 0h2", "not weighed"),
    ];
    let mut beside = columns.left;
    for (states, class, mark, word) in kinds {
        let mut path = String::new();
        for (index, version) in page.history.versions.iter().enumerate() {
            if states.contains(&version.state) {
                let _ = write!(path, "M{:.1} {y:.1}{mark}", columns.x(index));
            }
        }
        if path.is_empty() {
            continue;
        }
        let below = y + 110.0;
        let _ = writeln!(
            out,
            "<g class=\"{class}\"><path class=\"state\" d=\"{path}\"/><path class=\"state\" d=\"M{:.1} {below:.1}{mark}\"/>\
             {}</g>",
            beside + 4.0,
            label("", (beside + 14.0, below + 4.0), word)
        );
        beside += 34.0 + 6.7 * word.chars().count() as f64;
    }
}

/// Names of versions below the axis, rotated, as many as fit: those of events first, then tags, then others.
fn names(page: &Page<'_>, columns: &Columns, y: f64, out: &mut String) {
    const ROOM: f64 = 14.0;
    let count = page.history.versions.len();
    let tagged = (0..count).filter(|index| !page.version(*index).tags.is_empty());
    let wanted = page.events.iter().map(|event| event.at).chain([0, count - 1]).chain(tagged).chain(0..count);
    let mut taken = vec![false; ((columns.right - columns.left) / ROOM) as usize + 3];
    let mut chosen = Vec::new();
    for index in wanted {
        let place = ((columns.x(index) - columns.left) / ROOM) as usize + 1;
        let near = chosen.iter().any(|other| (columns.x(*other) - columns.x(index)).abs() < ROOM);
        let around = taken[place - 1..=place + 1].iter().any(|taken| *taken);
        if !(near && around) {
            taken[place] = true;
            chosen.push(index);
        }
    }
    chosen.sort_unstable();
    for index in chosen {
        let version = page.version(index);
        let event = page.events.iter().find(|event| event.at == index);
        let name = version.tags.first().map_or(version.short(), String::as_str);
        let x = columns.x(index);
        let class = event.map_or("told ".to_owned(), |event| format!("told hue name {}", class(event)));
        out.push_str(&svg_text::turned(&class, (x + 3.0, y), &cut(&words::plain(name), 94.0)));
        out.push('\n');
    }
}

/// The legend of the strokes.
fn legend(options: Options, y: f64, out: &mut String) {
    let told: [&str; 2] = match options.combined {
        true => ["least readings of each version", ""],
        false => [
            "line: median · dotted: least reading · shade around it: interval · dots: readings · thick: level",
            "hollow: readings of another version with the same binary",
        ],
    };
    let guides = "number and dashes: a change, by its colour for better or worse; green, red or grey shade: versions that may have brought it";
    for (index, line) in [guides, told[0], told[1]].iter().enumerate() {
        let y = y + 15.0 * index as f64;
        out.push_str(&label("faint", (LEFT, y), line));
        out.push('\n');
    }
}

/// Transparent columns with a tooltip for each version; narrow ones are merged.
fn columns_to_point_at(
    page: &Page<'_>,
    columns: &Columns,
    frames: &[Frame<'_>],
    (top, bottom): (f64, f64),
    out: &mut String,
) {
    let count = page.history.versions.len();
    let together = (3.0 / columns.step()).ceil().max(1.0) as usize;
    for first in (0..count).step_by(together) {
        let last = (first + together).min(count);
        let told: Vec<String> = (first..last).map(|index| about(page, index, frames, last - first)).collect();
        let _ = writeln!(
            out,
            "<rect class=\"at\" x=\"{:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\">{}</rect>",
            columns.edge(first),
            columns.edge(last) - columns.edge(first),
            bottom - top,
            svg_text::tip(&told.join("\n"))
        );
    }
}

/// A version in words: author, state, and its values unless it shares its column with many others.
fn about(page: &Page<'_>, index: usize, frames: &[Frame<'_>], sharing: usize) -> String {
    let version = page.version(index);
    let title: String = words::plain(&version.title).chars().take(90).collect();
    let mut told = format!("{} {title}", words::named(page, index));
    if sharing > 3 {
        return told;
    }
    let _ =
        write!(told, "\n{}, {}", words::plain(&version.author), crate::show::json::timestamp(version.time));
    let state = words::state(page, index);
    if state != "weighed" {
        let why = version.why.as_deref().map_or(String::new(), |why| format!(": {}", words::plain(why)));
        let _ = write!(told, "\n{state}{why}");
    }
    for series in frames.iter().flat_map(|frame| frame.series.iter()).take(TOLD) {
        if let Some(point) = series.points.iter().find(|point| point.version == index) {
            let value = quantity(point.value, &series.unit);
            let interval = point.interval.map_or(String::new(), |interval| {
                let (low, high) =
                    (quantity(interval.low, &series.unit), quantity(interval.high, &series.unit));
                format!(" [{low}, {high}]")
            });
            let _ =
                write!(told, "\n{}: {value}{interval}, n = {}", words::series(series), point.readings.len());
        }
    }
    for event in page.events.iter().filter(|event| event.set.contains(&index)) {
        let word = event.outcome().word().to_lowercase();
        let several = event.set.len() + words::left_out(page, event) > 1;
        let may = if several { "may have brought" } else { "brought" };
        let _ = write!(told, "\n{may} #{}, {word}", event.number);
    }
    told
}
