//! The panel of one metric of a few arms: the differences, every reading, the distributions, the order of measuring,
//! and the differences by block.

use super::matrix::verdict_in_words;
use super::{COLOURS, what};
use crate::render::chart::thin;
use crate::render::metric_words::{effect_text, verdict_words};
use crate::render::page::chart::slug;
use crate::render::page::{
    Axis, Cell, Chart, ChartPoint, ChartRow, ColumnHeading, Dot, Drawn, Fold, Layer, LayerShape, Plot,
    RowChart, SectionPart, Shade, Span, Table, Tone, harmless_name, tone,
};
use crate::run_report::{Report, tare_of};
use scruple_core::evidence::Evidence;
use scruple_core::judge::{Judged, pooled, undisturbed_blocks};
use scruple_core::sample::Sample;
use scruple_core::subject::Arm;
use scruple_core::unit::{Unit, change, quantity};
use std::collections::BTreeSet;

/// The largest number of rows in a table of readings. CSV contains all of them.
const MOST_READINGS: usize = 400;

/// An arm with its readings of the metric.
struct PanelArm<'a> {
    /// The index of the arm, which determines its colour.
    place: usize,
    arm: &'a Arm,
    sample: &'a Sample,
    /// The blocks whose readings are used; `None` if all are used.
    counted: Option<BTreeSet<u32>>,
}

impl PanelArm<'_> {
    fn name(&self) -> String {
        harmless_name(&self.arm.name)
    }

    fn is_left_out(&self, block: u32) -> bool {
        self.counted.as_ref().is_some_and(|counted| !counted.contains(&block))
    }
}

/// Makes the parts of the panel.
pub fn parts(report: &Report<'_>, key: &str, arms: &[&Arm]) -> Vec<SectionPart> {
    let sides: Vec<PanelArm<'_>> = arms
        .iter()
        .enumerate()
        .filter_map(|(place, arm)| {
            let sample = arm.sample(key).filter(|sample| !sample.readings.is_empty())?;
            let counted = tare_of(report.run, arm)
                .map(|tare| undisturbed_blocks::counted(sample, tare).blocks.into_iter().collect());
            Some(PanelArm { place, arm, sample, counted })
        })
        .collect();
    if sides.is_empty() {
        return Vec::new();
    }
    let judged: Vec<(usize, &Judged)> =
        sides.iter().filter_map(|side| Some((side.place, report.judged_of(&side.arm.name, key)?))).collect();
    let mut parts: Vec<SectionPart> = differences(key, &judged).map(SectionPart::Chart).into_iter().collect();
    parts.push(SectionPart::Chart(strips(report, key, &sides)));
    let several = sides.iter().any(|side| side.sample.readings.len() > 2);
    if several && sides.len() <= COLOURS {
        let chart = format!("{}-distribution", what(key));
        let title = "Share of readings at or below".to_owned();
        let all: Vec<&PanelArm<'_>> = sides.iter().collect();
        let distribution = distribution(report, key, &sides, &all, (slug(&chart), title));
        parts.push(SectionPart::Charts(vec![distribution, course(key, &sides)]));
    } else if several {
        let note = "Share of readings at or below each value: each beside the reference, on one scale.";
        parts.push(SectionPart::Note(note.to_owned()));
        parts.push(SectionPart::Charts(distributions(report, key, &sides)));
    }
    let pairs = in_blocks(report, key, &sides, &judged);
    if !pairs.is_empty() {
        let note = "Block by block: each against the reference measured beside it. Grey: the margin. Coloured: the interval.";
        parts.push(SectionPart::Note(note.to_owned()));
        parts.push(SectionPart::Charts(pairs));
    }
    parts.push(SectionPart::Fold(readings(key, &sides)));
    parts
}

fn unit(sides: &[PanelArm<'_>]) -> Unit {
    sides.first().map_or(Unit::Count, |side| side.sample.unit.clone())
}

/// The axis of the readings of some arms.
fn axis(key: &str, sides: &[PanelArm<'_>]) -> Axis {
    Axis::linear(what(key), unit(sides))
        .for_values(sides.iter().flat_map(|side| side.sample.readings.iter().copied()))
}

/// Draws the differences with their intervals and the margin, from which a reader can decide.
pub fn differences(key: &str, judged: &[(usize, &Judged)]) -> Option<Chart> {
    let known = |judged: &Judged| matches!(judged.comparison.evidence, Evidence::Interval { .. });
    let shown: Vec<&(usize, &Judged)> = judged.iter().filter(|(_, judged)| known(judged)).collect();
    let first = shown.first()?.1;
    let margin = shown.iter().map(|(_, judged)| judged.comparison.margin).fold(0.0, f64::max);
    let rows: Vec<ChartRow> = shown.iter().map(|(place, judged)| difference(*place, judged)).collect();
    let label: Vec<String> = shown
        .iter()
        .map(|(_, judged)| format!("{} {}", harmless_name(&judged.arm), effect_text(key, &judged.comparison)))
        .collect();
    let common = shown.iter().all(|(_, judged)| judged.reference == first.reference);
    let title_text = match common {
        true => format!("Difference from ‘{}’", harmless_name(&first.reference)),
        false => "Differences".to_owned(),
    };
    Some(Chart {
        name: slug(&format!("{}-differences", what(key))),
        title: title_text,
        note: String::new(),
        label: format!("{}: {}", what(key), label.join("; ")),
        drawn: Drawn::Rows(RowChart {
            axis: Axis::ratio(what(key)),
            shade: Some(Shade::margin(margin)),
            zero: Some(1.0),
            rows,
        }),
    })
}

/// Returns the row of one difference.
pub fn difference(place: usize, judged: &Judged) -> ChartRow {
    let comparison = &judged.comparison;
    let effect = effect_text(&judged.metric, comparison);
    let (figure, interval_text) = match effect.split_once(" [") {
        Some((figure, interval)) => (figure.to_owned(), format!("[{interval}")),
        None => (effect, String::new()),
    };
    let sign = crate::render::page::sign(comparison);
    ChartRow {
        arm: place,
        name: harmless_name(&judged.arm),
        figure,
        interval_text,
        tail: Span::new(format!("{sign} {}", verdict_words(&judged.metric, comparison)), tone(comparison)),
        dots: Vec::new(),
        middle: comparison.evidence.effect(),
        interval: comparison.interval().map(|interval| (interval.low, interval.high)),
    }
}

/// Draws every reading as a dot, from the first at the top to the last at the bottom. Drift and bimodality appear as
/// shapes.
fn strips(report: &Report<'_>, key: &str, sides: &[PanelArm<'_>]) -> Chart {
    let unit = unit(sides);
    let value = |value: f64| quantity(value, &unit);
    let mut apart = 0;
    let rows: Vec<ChartRow> = sides
        .iter()
        .map(|side| {
            let estimate = report.estimate(side.arm, key);
            let each = side.sample.blocks.iter().zip(&side.sample.readings);
            let dots: Vec<Dot> = each
                .map(|(block, value)| Dot { block: *block, value: *value, apart: side.is_left_out(*block) })
                .collect();
            apart += dots.iter().filter(|dot| dot.apart).count();
            let interval = estimate.as_ref().and_then(|estimate| estimate.interval);
            ChartRow {
                arm: side.place,
                name: side.name(),
                figure: estimate.as_ref().map_or(String::new(), |estimate| value(estimate.value)),
                interval_text: interval
                    .map_or(String::new(), |i| format!("[{}, {}]", value(i.low), value(i.high))),
                tail: report.judged_of(&side.arm.name, key).map_or(Span::default(), verdict_in_words),
                dots,
                middle: estimate.map(|estimate| estimate.value),
                interval: interval.map(|interval| (interval.low, interval.high)),
            }
        })
        .collect();
    let label: Vec<String> = rows
        .iter()
        .map(|row| format!("{}: {} readings, {} {}", row.name, row.dots.len(), row.figure, row.interval_text))
        .collect();
    let thinned = rows.iter().any(|row| thin::is_long(row.dots.len()));
    let pooled = sides.iter().any(|side| pooled::of(side.arm, key).is_some());
    let figure = if pooled { "the figure of all requests together" } else { "the median" };
    let mut note = format!(
        "A dot is a reading, the first at the top, the last at the bottom; below them {figure} and its interval."
    );
    if apart > 0 {
        note.push_str(" Hollow: taken while the machine disturbed the program; shown, but not counted.");
    }
    Chart {
        name: slug(&format!("{}-readings", what(key))),
        title: if thinned { "Readings" } else { "Every reading" }.to_owned(),
        note,
        label: label.join("; "),
        drawn: Drawn::Rows(RowChart { axis: axis(key, sides), shade: None, zero: None, rows }),
    }
}

/// Draws a distribution for each arm, beside that of its reference if it has one: too many curves in one chart cannot
/// be distinguished.
fn distributions(report: &Report<'_>, key: &str, sides: &[PanelArm<'_>]) -> Vec<Chart> {
    let chart = |side: &PanelArm<'_>| {
        let reference = report.judged_of(&side.arm.name, key).map(|judged| judged.reference.as_str());
        let references = || report.judged.iter().filter(|judged| judged.metric == key);
        if reference.is_none() && references().any(|judged| judged.reference == side.arm.name) {
            return None;
        }
        let reference = sides.iter().find(|other| Some(other.arm.name.as_str()) == reference);
        let pair: Vec<&PanelArm<'_>> =
            reference.into_iter().chain(sides.iter().filter(|one| one.place == side.place)).collect();
        let chart = slug(&format!("{}-distribution-{}", what(key), side.name()));
        let mut chart = distribution(report, key, sides, &pair, (chart, side.name()));
        if let Drawn::Plot(plot) = &mut chart.drawn {
            plot.small = true;
        }
        Some(chart)
    };
    sides.iter().filter_map(chart).collect()
}

/// Draws the cumulative distribution of some arms: the share of the readings at or below each value. The scale is that
/// of all arms.
fn distribution(
    report: &Report<'_>,
    key: &str,
    all: &[PanelArm<'_>],
    sides: &[&PanelArm<'_>],
    (called, title): (String, String),
) -> Chart {
    let unit = unit(all);
    let (low, high) =
        crate::render::chart::scale::window(all.iter().flat_map(|side| side.sample.readings.iter().copied()));
    let mut beyond = 0;
    let layers = sides.iter().map(|side| {
        let each = side.sample.blocks.iter().zip(&side.sample.readings);
        let mut sorted: Vec<f64> =
            each.filter(|(block, _)| !side.is_left_out(**block)).map(|(_, value)| *value).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let n = sorted.len() as f64;
        let below = sorted.iter().filter(|value| **value < low).count();
        let mut points = vec![ChartPoint::at(low, below as f64 / n)];
        let each = sorted.iter().enumerate().filter(|(_, value)| (low..=high).contains(*value));
        points.extend(each.map(|(place, value)| ChartPoint::at(*value, (place + 1) as f64 / n)));
        points.extend(points.last().map(|last| ChartPoint::at(high, last.y)));
        beyond += sorted.iter().filter(|value| !(low..=high).contains(*value)).count();
        Layer {
            arm: side.place,
            name: side.name(),
            code: true,
            shape: LayerShape::Steps,
            pieces: vec![points],
        }
    });
    let layers: Vec<Layer> = layers.collect();
    let medians: Vec<String> = sides
        .iter()
        .filter_map(|side| {
            let estimate = report.estimate(side.arm, key)?;
            Some(format!(
                "half of the readings of {} are at most {}",
                side.name(),
                quantity(estimate.value, &unit)
            ))
        })
        .collect();
    let note = match beyond {
        0 => String::new(),
        1 => "1 reading is beyond the range that is shown.".to_owned(),
        more => format!("{more} readings are beyond the range that is shown."),
    };
    Chart {
        name: called,
        title,
        note,
        label: medians.join("; "),
        drawn: Drawn::Plot(Plot {
            x: axis(key, all),
            y: Axis::linear("share", Unit::Ratio),
            shade: None,
            column: None,
            zero: Some(0.0),
            layers,
            small: false,
        }),
    }
}

/// Draws the readings in the order in which they were taken.
fn course(key: &str, sides: &[PanelArm<'_>]) -> Chart {
    let unit = unit(sides);
    let layers = sides.iter().map(|side| {
        let each = side.sample.blocks.iter().zip(&side.sample.readings).enumerate();
        // The horizontal axis is the index of the reading, since blocks of bench programs are numbered by process.
        let points = each.map(|(place, (block, value))| ChartPoint {
            apart: side.is_left_out(*block),
            ..ChartPoint::at(place as f64 + 1.0, *value)
        });
        Layer {
            arm: side.place,
            name: side.name(),
            code: true,
            shape: LayerShape::Course,
            pieces: vec![points.collect()],
        }
    });
    let ends: Vec<String> = sides
        .iter()
        .filter_map(|side| {
            let (first, last) = (side.sample.readings.first()?, side.sample.readings.last()?);
            Some(format!("{} from {} to {}", side.name(), quantity(*first, &unit), quantity(*last, &unit)))
        })
        .collect();
    Chart {
        name: slug(&format!("{}-course", what(key))),
        title: "In the order of measuring".to_owned(),
        note: String::new(),
        label: format!("{} over {} readings: {}", what(key), sides[0].sample.readings.len(), ends.join("; ")),
        drawn: Drawn::Plot(Plot {
            x: Axis::counted("reading"),
            y: axis(key, sides),
            shade: None,
            column: None,
            zero: None,
            layers: layers.collect(),
            small: false,
        }),
    }
}

/// Draws the ratio of each arm to its reference, block by block.
fn in_blocks(
    report: &Report<'_>,
    key: &str,
    sides: &[PanelArm<'_>],
    judged: &[(usize, &Judged)],
) -> Vec<Chart> {
    if !report.side_by_side {
        return Vec::new();
    }
    let chart = |(place, judged): &(usize, &Judged)| {
        let side = sides.iter().find(|side| side.place == *place)?;
        let reference = report.run.arms.iter().find(|arm| arm.name == judged.reference)?;
        let interval = judged.comparison.interval()?;
        let theirs = reference.sample(key)?;
        let counted = tare_of(report.run, reference).map(|tare| undisturbed_blocks::counted(theirs, tare));
        let theirs = counted.as_ref().unwrap_or(theirs);
        let ours = tare_of(report.run, side.arm).map(|tare| undisturbed_blocks::counted(side.sample, tare));
        let (left, right) = theirs.paired(ours.as_ref().unwrap_or(side.sample));
        let ratios = left.iter().zip(&right).map(|(left, right)| right / left).enumerate();
        let positive = ratios.filter(|(_, ratio)| ratio.is_finite() && *ratio > 0.0);
        let points: Vec<ChartPoint> =
            positive.map(|(block, ratio)| ChartPoint::at(block as f64 + 1.0, ratio)).collect();
        if points.len() < 3 {
            return None;
        }
        let margin = judged.comparison.margin;
        let band = [1.0, points.len() as f64]
            .map(|x| ChartPoint { low: Some(interval.low), ..ChartPoint::at(x, interval.high) });
        let layers = vec![
            Layer {
                arm: side.place,
                name: String::new(),
                code: false,
                shape: LayerShape::Area,
                pieces: vec![band.to_vec()],
            },
            Layer {
                arm: side.place,
                name: String::new(),
                code: false,
                shape: LayerShape::Points,
                pieces: vec![points],
            },
        ];
        Some(Chart {
            name: slug(&format!("{}-blocks-{}", what(key), side.name())),
            title: format!("{} / {}", side.name(), harmless_name(&reference.name)),
            note: String::new(),
            label: format!(
                "{} against {} in each block: {}, interval {} to {}",
                side.name(),
                harmless_name(&reference.name),
                judged.comparison.evidence.effect().map_or(String::new(), change),
                change(interval.low),
                change(interval.high)
            ),
            drawn: Drawn::Plot(Plot {
                x: Axis::counted("block"),
                y: Axis::ratio(what(key)),
                shade: Some(Shade { text: String::new(), ..Shade::margin(margin) }),
                column: None,
                zero: Some(1.0),
                layers,
                small: true,
            }),
        })
    };
    judged.iter().filter_map(chart).collect()
}

/// Makes a table of the readings, for readers who cannot see the charts or need numbers.
fn readings(key: &str, sides: &[PanelArm<'_>]) -> Fold {
    let unit = unit(sides);
    let mut blocks: BTreeSet<u32> = BTreeSet::new();
    sides.iter().for_each(|side| blocks.extend(&side.sample.blocks));
    let all = blocks.len();
    let mut head = vec![ColumnHeading::number("Block")];
    head.extend(sides.iter().map(|side| ColumnHeading {
        text: side.name(),
        arm: Some(side.place),
        number: true,
    }));
    let cell = |side: &PanelArm<'_>, block: u32| match side.sample.blocks.binary_search(&block) {
        Ok(at) => Cell::toned(
            format!(
                "{}{}",
                quantity(side.sample.readings[at], &unit),
                if side.is_left_out(block) { " (disturbed)" } else { "" }
            ),
            if side.is_left_out(block) { Tone::Open } else { Tone::Plain },
        ),
        Err(_) => Cell::text("–"),
    };
    let rows = blocks.iter().take(MOST_READINGS).enumerate().map(|(place, block)| {
        let mut cells = vec![Cell::text((place + 1).to_string())];
        cells.extend(sides.iter().map(|side| cell(side, *block)));
        cells
    });
    let names: Vec<String> = sides.iter().map(PanelArm::name).collect();
    let summary = format!("Readings of {} as a table", what(key));
    let label = format!("Readings of {} of {}", what(key), names.join(", "));
    let table = Table { label, head, rows: rows.collect(), stacks: false, ..Table::default() };
    let mut parts = vec![SectionPart::Table(table)];
    if all > MOST_READINGS {
        parts.push(SectionPart::Note(format!(
            "The first {MOST_READINGS} of {all} blocks; `scruple store export` writes them all."
        )));
    }
    Fold { summary, parts }
}
