//! Draws how metrics grow with parameters.

use super::COLOURS;
use super::what;
use crate::render::page::chart::slug;
use crate::render::page::{
    Axis, AxisScale, Chart, ChartPoint, Drawn, Layer, LayerShape, Plot, Section, SectionPart, harmless_name,
    harmless_sentence,
};
use crate::run_report::Report;
use crate::run_report::scaling::THREADS;
use crate::run_report::sentence::form_in;
use scruple_core::judge::GrowthFit;
use scruple_core::subject::{Arm, Parameter, Role};
use scruple_core::unit::Unit;
use scruple_stats::growth::GrowthForm;
use scruple_stats::sorting;

/// The number of points through which a fitted curve is drawn.
const STEPS: usize = 60;

/// Makes a section with a chart for each metric that grows with a parameter.
pub fn section(report: &Report<'_>) -> Option<Section> {
    let mut keys: Vec<(&str, &str)> =
        report.fits.iter().map(|fit| (fit.metric.as_str(), fit.parameter.as_str())).collect();
    keys.dedup();
    // How time shrinks with threads is in the section on scaling.
    keys.retain(|key| *key != ("time.wall", THREADS));
    let charts: Vec<Chart> =
        keys.iter().filter_map(|(key, parameter)| chart(report, key, parameter)).collect();
    let section = |charts| Section {
        title: "Growth".to_owned(),
        folded: None,
        parts: vec![SectionPart::Charts(charts)],
    };
    (!charts.is_empty()).then(|| section(charts))
}

fn chart(report: &Report<'_>, key: &str, parameter: &str) -> Option<Chart> {
    let fits: Vec<&GrowthFit> =
        report.fits.iter().filter(|fit| fit.metric == key && fit.parameter == parameter).collect();
    let size = |arm: &Arm| match arm.params.get(parameter) {
        Some(Parameter::Number(number)) => Some(*number),
        _ => scruple_core::judge::trailing_number(&arm.name).filter(|_| arm.params.is_empty()),
    };
    let mut measured: Vec<(Option<&str>, ChartPoint)> = report
        .run
        .arms_of(Role::Subject)
        .filter_map(|arm| {
            let point = ChartPoint::at(size(arm)?, report.estimate(arm, key)?.value);
            Some((arm.version.as_deref(), point))
        })
        .collect();
    sorting::by(&mut measured, |(_, one), (_, other)| one.x.total_cmp(&other.x));
    let points: Vec<ChartPoint> = measured.iter().map(|(_, point)| *point).collect();
    let unit = report.run.arms_of(Role::Subject).find_map(|arm| arm.sample(key))?.unit.clone();
    let (first, last) = (points.first()?.x, points.last()?.x);
    // A metric that never changes needs no chart; the table of all metrics contains it.
    if points.len() < 3 || points.iter().all(|point| point.y == points[0].y) {
        return None;
    }
    let wide = first > 0.0 && last / first >= 8.0;
    let (least, most) = points
        .iter()
        .fold((f64::INFINITY, 0.0_f64), |(low, high), point| (low.min(point.y), high.max(point.y)));
    let tall = least > 0.0 && most / least >= 8.0;
    let at =
        |share: f64| if wide { first * (last / first).powf(share) } else { first + (last - first) * share };
    let mut versions: Vec<Option<&str>> = Vec::new();
    for arm in report.run.arms_of(Role::Subject) {
        let version = arm.version.as_deref();
        if !versions.contains(&version) && measured.iter().any(|(of, _)| *of == version) {
            versions.push(version);
        }
    }
    let mut layers: Vec<Layer> = versions
        .iter()
        .enumerate()
        .map(|(place, version)| Layer {
            arm: place,
            name: version
                .map_or("measured".to_owned(), |version| format!("measured @{}", harmless_name(version))),
            code: false,
            shape: LayerShape::Points,
            pieces: vec![measured.iter().filter(|(of, _)| of == version).map(|(_, point)| *point).collect()],
        })
        .collect();
    let sizes: Vec<f64> = (0..=STEPS).map(|step| at(step as f64 / STEPS as f64)).collect();
    let curves = fits.iter().filter(|fit| fit.growth.form.has_curve()).enumerate();
    layers.extend(curves.map(|(place, fit)| curve(fit, &sizes, (versions.len() + place) % COLOURS)));
    let scale = |wide: bool| if wide { AxisScale::Log } else { AxisScale::Linear };
    let lines = fits.iter().map(|fit| harmless_sentence(&crate::run_report::sentence::growth_line(fit)));
    Some(Chart {
        name: slug(&format!("{}-growth-{parameter}", what(key))),
        title: format!("{} by {}", super::capital(&what(key)), harmless_name(parameter)),
        note: String::new(),
        label: lines.collect::<Vec<_>>().join(" "),
        drawn: Drawn::Plot(Plot {
            x: Axis::new(harmless_name(parameter), Unit::Count, scale(wide))
                .for_values(points.iter().map(|point| point.x)),
            y: Axis::new(what(key), unit, scale(tall)),
            shade: None,
            column: None,
            zero: None,
            layers,
            small: false,
        }),
    })
}

/// The fitted curve at these sizes, in the colour of this place.
fn curve(fit: &GrowthFit, sizes: &[f64], place: usize) -> Layer {
    let points = sizes.iter().filter_map(|n| Some(ChartPoint::at(*n, fit.growth.at(*n)?)));
    let family =
        if fit.family.is_empty() { String::new() } else { format!(" of {}", harmless_name(&fit.family)) };
    Layer {
        arm: place,
        name: match fit.growth.form {
            GrowthForm::Constant => format!("no growth{family}"),
            form => format!("{}{family}", form_in(form, &fit.parameter)),
        },
        code: false,
        shape: LayerShape::Line,
        pieces: vec![points.filter(|point| point.y.is_finite()).collect()],
    }
}
