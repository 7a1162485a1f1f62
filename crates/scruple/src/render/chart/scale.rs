//! Maps values to positions along an axis, and chooses round labels.

use crate::render::page::{Axis, AxisScale};
use scruple_core::unit::{Unit, share, tick};
use scruple_stats::sorting;

/// The largest number of labels beside an axis.
const MOST: f64 = 8.0;

/// The smallest distance between labels above each other, in pixels: the height of a text and a gap.
const LABEL_HEIGHT: f64 = 18.0;

/// An axis with the range that a chart shows of it.
pub(crate) struct Ruler<'a> {
    axis: &'a Axis,
    low: f64,
    high: f64,
    /// The lowest value, without the room below it.
    least: f64,
}

/// A round value that is labelled beside an axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    /// The position of the tick, from 0 to 1.
    pub place: f64,
    /// The label of the tick.
    pub text: String,
    /// Whether narrow screens omit the label.
    pub minor: bool,
}

impl Tick {
    /// Returns where the label and a gap beside it begin and end below a chart that is this many pixels wide.
    fn span(&self, width: f64) -> (f64, f64) {
        let (at, long) = (self.place * width, label_width(&self.text));
        let left = match anchor(self.place) {
            "start" => 0.0,
            "end" => long,
            _ => long / 2.0,
        };
        (at - left, at - left + long)
    }

    /// Whether the label has a gap to each of these others below a chart that is this many pixels wide.
    fn is_apart_from(&self, others: &[Tick], width: f64) -> bool {
        let (left, right) = self.span(width);
        others.iter().map(|other| other.span(width)).all(|(from, to)| right <= from || to <= left)
    }
}

impl<'a> Ruler<'a> {
    /// Creates a ruler that shows values from `low` to `high`, extended at both ends by the shares of the span in
    /// `room`.
    pub(crate) fn new(axis: &'a Axis, (low, high): (f64, f64), room: (f64, f64)) -> Ruler<'a> {
        let ruler = Ruler { axis, low: 0.0, high: 1.0, least: low };
        let (low, high) = (ruler.transformed(low), ruler.transformed(high));
        let span = match high - low {
            span if span > 0.0 && span.is_finite() => span,
            _ if low.abs() > 0.0 && axis.scale == AxisScale::Linear => low.abs() / 5.0,
            _ => 1.0,
        };
        let (low, high) = if high > low { (low, high) } else { (low - span / 2.0, low + span / 2.0) };
        Ruler { low: low - span * room.0, high: high + span * room.1, ..ruler }
    }

    fn transformed(&self, value: f64) -> f64 {
        match self.axis.scale {
            AxisScale::Log | AxisScale::Ratio => value.max(1e-300).log10(),
            AxisScale::Nines => -(1.0 - value).max(1e-9).log10(),
            AxisScale::Linear => value,
        }
    }

    /// Returns the position of a value. It is between 0 and 1 if the value is in the range.
    pub(crate) fn place(&self, value: f64) -> f64 {
        (self.transformed(value) - self.low) / (self.high - self.low)
    }

    /// Whether a value is in the range.
    pub(crate) fn shows(&self, value: f64) -> bool {
        (-1e-9..=1.0 + 1e-9).contains(&self.place(value))
    }

    /// Returns the value at a position.
    pub(crate) fn value(&self, place: f64) -> f64 {
        let value = self.low + place * (self.high - self.low);
        match self.axis.scale {
            AxisScale::Log | AxisScale::Ratio => 10_f64.powf(value),
            AxisScale::Nines => 1.0 - 10_f64.powf(-value),
            AxisScale::Linear => value,
        }
    }

    /// Returns the round values in the range: at most eight, with different labels.
    pub(crate) fn ticks(&self) -> Vec<Tick> {
        let (low, high) = (self.value(0.0), self.value(1.0));
        let mut ticks = match &self.axis.scale {
            AxisScale::Linear => self.even(low, high, |value, step| self.text(value, step)),
            AxisScale::Log if high / low < 8.0 => self.even(low, high, |value, step| self.text(value, step)),
            AxisScale::Log => self.decades(low, high),
            AxisScale::Ratio => self.changes(low, high),
            AxisScale::Nines => self.nines(high),
        };
        ticks.dedup_by(|one, other| one.text == other.text);
        // A reader needs two labels to read a scale, on a narrow screen too.
        if ticks.iter().filter(|tick| !tick.minor).count() < 2 {
            ticks.iter_mut().for_each(|tick| tick.minor = false);
        }
        ticks
    }

    /// Returns the round values, or the names of places, whose labels fit side by side: all of them into the first number
    /// of pixels, and those that narrow screens show into the second.
    pub(crate) fn ticks_beside(&self, (wide, narrow): (f64, f64)) -> Vec<Tick> {
        let places = self.candidates();
        if places.is_empty() {
            return on_screens(
                self.ticks(),
                [wide, narrow].map(|width| {
                    move |one: &Tick, next: &Tick| one.is_apart_from(std::slice::from_ref(next), width)
                }),
            );
        }
        let (mut ticks, mut rest): (Vec<Tick>, Vec<Tick>) = (Vec::new(), Vec::new());
        for tick in places {
            match tick.is_apart_from(&ticks, narrow) {
                true => ticks.push(tick),
                false => rest.push(Tick { minor: true, ..tick }),
            }
        }
        for tick in rest {
            if tick.is_apart_from(&ticks, wide) {
                ticks.push(tick);
            }
        }
        sorting::by(&mut ticks, |one, other| one.place.total_cmp(&other.place));
        ticks
    }

    /// Returns the round values whose labels fit above each other into this many pixels.
    pub(crate) fn ticks_above_each_other(&self, height: f64) -> Vec<Tick> {
        fitting(self.ticks(), |one, next| (next.place - one.place).abs() * height >= LABEL_HEIGHT)
    }

    /// Returns the names of places in the order of their priority: those with events, then the ends, then others.
    fn candidates(&self) -> Vec<Tick> {
        let places = &self.axis.places;
        let Some(last) = places.len().checked_sub(1) else { return Vec::new() };
        let marked = (0..=last).filter(|index| places[*index].event.is_some());
        // After the ends comes the middle of the range, then the middles of its halves, and so on.
        let others = (1..=4).flat_map(|level| (1..1 << level).map(move |part| part * last / (1 << level)));
        let all = marked.chain([0, last]).chain(others);
        all.map(|index| self.tick(places[index].at, places[index].name.clone(), false)).collect()
    }

    fn tick(&self, value: f64, text: String, minor: bool) -> Tick {
        Tick { place: self.place(value), text, minor }
    }

    fn even(&self, low: f64, high: f64, text: impl Fn(f64, f64) -> String) -> Vec<Tick> {
        let values = even(low, high, MOST, if self.axis.whole { 1.0 } else { 0.0 });
        let step = if values.len() > 1 { values[1] - values[0] } else { high - low };
        // If things are counted, the room below the first has no label.
        let each = values
            .iter()
            .filter(|value| !self.axis.whole || **value >= self.least)
            .enumerate()
            .map(|(index, value)| self.tick(*value, text(*value, step), index % 2 == 1));
        each.collect()
    }

    fn text(&self, value: f64, step: f64) -> String {
        match self.axis.unit {
            Unit::Ratio if step >= 0.01 => format!("{:.0} %", value * 100.0),
            Unit::Ratio => share(value),
            _ => tick(value, step, &self.axis.unit),
        }
    }

    fn decades(&self, low: f64, high: f64) -> Vec<Tick> {
        let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
        let decades = f64::from(last - first).max(1.0);
        let between: &[f64] = if decades <= 3.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let each = (decades / MOST).ceil() as i32;
        let values = (first..=last)
            .filter(|decade| (decade - first) % each == 0)
            .flat_map(|decade| between.iter().map(move |digit| (digit * 10_f64.powi(decade), *digit != 1.0)));
        let shown = values.filter(|(value, _)| self.shows(*value));
        let ticks: Vec<Tick> =
            shown.map(|(value, minor)| self.tick(value, self.text(value, value), minor)).collect();
        match ticks.len() as f64 > MOST {
            true => ticks.into_iter().filter(|tick| !tick.minor).collect(),
            false => ticks,
        }
    }

    /// Returns the round ratios: as percentages if they are near one, and otherwise as multiples.
    fn changes(&self, low: f64, high: f64) -> Vec<Tick> {
        let percent = |ratio: f64| {
            let percent = (ratio - 1.0) * 100.0;
            let text = format!("{percent:+.6}");
            let text = text.trim_end_matches('0').trim_end_matches('.');
            if percent.abs() < 1e-9 { "0".to_owned() } else { format!("{text} %").replace('-', "−") }
        };
        let evenly = || {
            let values = even(low - 1.0, high - 1.0, MOST, 0.0);
            let each = values.iter().enumerate();
            each.map(|(index, value)| self.tick(1.0 + value, percent(1.0 + value), index % 2 == 1)).collect()
        };
        if high / low < 2.5 {
            return evenly();
        }
        let mut values: Vec<(f64, bool)> = Vec::new();
        if high / low < 50.0 {
            values.extend([(0.5, false), (0.75, true), (1.0, false), (1.5, true)]);
        }
        for decade in low.log10().floor() as i32..=high.log10().ceil() as i32 {
            let digits: &[f64] = if high / low < 200.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
            values.extend(digits.iter().map(|digit| (digit * 10_f64.powi(decade), *digit == 5.0)));
        }
        sorting::by(&mut values, |one, other| one.0.total_cmp(&other.0));
        values.dedup_by(|one, other| (one.0 / other.0 - 1.0).abs() < 1e-9);
        let near = |value: f64| (0.49..2.0).contains(&value);
        let text = |value: f64| if near(value) { percent(value) } else { format!("{} ×", rounded(value)) };
        let shown = values.into_iter().filter(|(value, _)| self.shows(*value));
        let ticks: Vec<Tick> = shown.map(|(value, minor)| self.tick(value, text(value), minor)).collect();
        if ticks.len() < 2 { evenly() } else { thinned(ticks) }
    }

    fn nines(&self, high: f64) -> Vec<Tick> {
        let most = (-(1.0 - high).max(1e-9).log10()).round() as usize;
        let text = |nines: usize| match nines {
            0 => "0".to_owned(),
            1 => "90 %".to_owned(),
            2 => "99 %".to_owned(),
            more => format!("99.{} %", "9".repeat(more - 2)),
        };
        let value = |nines: usize| 1.0 - 10_f64.powi(-(nines as i32));
        let all = (0..=most).map(|nines| self.tick(value(nines), text(nines), false));
        all.filter(|tick| tick.place <= 1.0 + 1e-9).collect()
    }
}

/// Returns the round values whose labels are apart on a wide screen; those of them that are not on a narrow one are minor.
fn on_screens<F: Fn(&Tick, &Tick) -> bool>(ticks: Vec<Tick>, [wide, narrow]: [F; 2]) -> Vec<Tick> {
    let mut ticks = fitting(ticks, wide);
    let both: Vec<String> = fitting(ticks.clone(), narrow).into_iter().map(|tick| tick.text).collect();
    ticks.iter_mut().for_each(|tick| tick.minor = !both.contains(&tick.text));
    ticks
}

/// Returns as many of these round values as have labels apart: all of them, or those that are not minor, or every second
/// of these, and so on. A reader takes labels to be at even steps, so none is left out alone.
fn fitting(mut ticks: Vec<Tick>, apart: impl Fn(&Tick, &Tick) -> bool) -> Vec<Tick> {
    let fit = |ticks: &[Tick]| {
        let mut each = ticks.iter().enumerate();
        each.all(|(at, next)| ticks[..at].iter().all(|one| apart(one, next)))
    };
    if !fit(&ticks) {
        ticks.retain(|tick| !tick.minor);
    }
    while !fit(&ticks) {
        let zero = ticks.iter().position(|tick| tick.text == "0").unwrap_or(0);
        let mut place = zero;
        ticks.retain(|_| {
            place += 1;
            place % 2 == 1
        });
    }
    ticks
}

/// Returns an upper bound of the width of a text of 12 pixels height with a gap beside it, in pixels.
fn label_width(text: &str) -> f64 {
    text.chars().count() as f64 * 7.5 + 10.0
}

/// Removes every second tick until there are at most `MOST`.
fn thinned(mut ticks: Vec<Tick>) -> Vec<Tick> {
    while ticks.len() as f64 > MOST {
        let mut place = 0;
        ticks.retain(|tick| {
            place += 1;
            place % 2 == 1 || tick.text == "0"
        });
    }
    ticks
}

/// Writes a number without zeros at the end of its decimals.
fn rounded(value: f64) -> String {
    let text = format!("{value:.9}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Returns at most `most` round values from `low` to `high`, at least `least` apart: multiples of 1, 2 or 5 times a power
/// of ten.
fn even(low: f64, high: f64, most: f64, least: f64) -> Vec<f64> {
    let span = high - low;
    if !(span > 0.0 && span.is_finite()) {
        return vec![low];
    }
    let power = 10_f64.powf((span / most).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0, 20.0].map(|digit| digit * power);
    let step = steps.into_iter().find(|step| span / step <= most - 1.0).unwrap_or(span).max(least);
    let (first, last) = ((low / step - 1e-9).ceil(), (high / step + 1e-9).floor());
    let count = (last - first).max(0.0) as usize;
    (0..=count).map(|index| (first + index as f64) * step).collect()
}

/// Returns the range to show. It contains every value, unless a few distant ones would compress the rest; charts mark
/// these at the edge.
pub(crate) fn window(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
    values.sort_unstable_by(f64::total_cmp);
    let (Some(mut low), Some(mut high)) = (values.first().copied(), values.last().copied()) else {
        return (0.0, 1.0);
    };
    if values.len() >= 20 {
        let at = |share: f64| values[((values.len() - 1) as f64 * share) as usize];
        let (bottom, top) = (at(0.05), at(0.95));
        if high - top > 0.5 * (top - low) {
            high = top + 0.25 * (top - low);
        }
        if bottom - low > 0.5 * (high - bottom) {
            low = bottom - 0.25 * (high - bottom);
        }
    }
    (low, high)
}

/// Returns the anchor of a label that keeps it inside the chart.
pub(crate) fn anchor(place: f64) -> &'static str {
    match place {
        place if place < 0.1 => "start",
        place if place > 0.9 => "end",
        _ => "middle",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(scale: AxisScale) -> Axis {
        Axis::new("", Unit::Nanoseconds, scale)
    }

    #[test]
    fn ticks_lie_in_the_range_are_few_and_tell_apart() {
        let mut seed = 7_u64;
        let mut next = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 11) as f64 / (1_u64 << 53) as f64
        };
        for round in 0..4000 {
            let low = 10_f64.powf(next() * 12.0 - 3.0);
            let high = low * (1.0 + 10_f64.powf(next() * 9.0 - 4.0));
            for scale in [AxisScale::Linear, AxisScale::Log, AxisScale::Ratio] {
                let axis = axis(scale);
                let ruler = Ruler::new(&axis, (low, high), (0.03, 0.03));
                let ticks = ruler.ticks();
                assert!(ticks.len() as f64 <= MOST, "{round}: {axis:?} {low} {high}: {ticks:?}");
                assert!(
                    ticks.iter().all(|tick| (-0.001..=1.001).contains(&tick.place)),
                    "{low} {high}: {ticks:?}"
                );
                let mut texts: Vec<&str> = ticks.iter().map(|tick| tick.text.as_str()).collect();
                texts.dedup();
                assert_eq!(texts.len(), ticks.len(), "{axis:?} {low} {high}: {ticks:?}");
            }
        }
    }

    #[test]
    fn counted_things_have_no_label_below_the_first() {
        let axis = Axis::counted("reading");
        for last in [2.0, 10.0, 40.0, 300.0] {
            let ticks = Ruler::new(&axis, (1.0, last), (0.03, 0.03)).ticks();
            assert!(ticks.len() > 1 && ticks.iter().all(|tick| tick.text != "0"), "{last}: {ticks:?}");
        }
    }

    #[test]
    fn labels_beside_each_other_have_a_gap_on_wide_and_on_narrow_screens() {
        let widths = (480.0, 290.0);
        for tenths in 1..=600 {
            for low in [0.2, 0.83, 1.0, 470.0] {
                for scale in [AxisScale::Linear, AxisScale::Log, AxisScale::Ratio] {
                    let axis = axis(scale);
                    let high = low * (1.0 + f64::from(tenths) / 40.0);
                    let all = Ruler::new(&axis, (low, high), (0.03, 0.03)).ticks_beside(widths);
                    let narrow: Vec<&Tick> = all.iter().filter(|tick| !tick.minor).collect();
                    let touch = |one: &Tick, next: &Tick, width| one.span(width).1 > next.span(width).0;
                    assert!(narrow.len() > 1, "{axis:?} {low} {high}: {all:?}");
                    assert!(!narrow.windows(2).any(|pair| touch(pair[0], pair[1], widths.1)), "{all:?}");
                    assert!(!all.windows(2).any(|pair| touch(&pair[0], &pair[1], widths.0)), "{all:?}");
                }
            }
        }
    }

    #[test]
    fn labels_are_at_even_steps_of_the_value() {
        let widths = (400.0, 290.0);
        for (low, span) in (0..500).flat_map(|step| {
            [(33.0, 0.1), (0.2, 0.05), (812.0, 3.0)].map(|(low, per)| (low, per * f64::from(step + 1)))
        }) {
            for scale in [AxisScale::Linear, AxisScale::Log, AxisScale::Ratio] {
                let axis = axis(scale);
                let high = (low + span).min(low * 2.4);
                let ruler = Ruler::new(&axis, (low, high), (0.13, 0.02));
                let all = ruler.ticks_beside(widths);
                let above = ruler.ticks_above_each_other(70.0);
                let narrow = all.iter().filter(|tick| !tick.minor).cloned().collect();
                for ticks in [all, above, narrow] {
                    let steps: Vec<f64> = ticks
                        .windows(2)
                        .map(|pair| ruler.value(pair[1].place) - ruler.value(pair[0].place))
                        .collect();
                    let even = steps.iter().all(|step| (step / steps[0] - 1.0).abs() < 1e-6);
                    assert!(even, "{axis:?} {low} {high}: {ticks:?}");
                }
            }
        }
    }

    #[test]
    fn labels_above_each_other_do_not_overlap() {
        for tenths in 1..=300 {
            for low in [1.0e6, 1.3e6, 4.4e5] {
                let axis = axis(AxisScale::Log);
                let ruler = Ruler::new(&axis, (low, low * (1.0 + f64::from(tenths) / 10.0)), (0.0, 0.0));
                let ticks = ruler.ticks_above_each_other(130.0);
                let apart = |pair: &[Tick]| (pair[1].place - pair[0].place) * 130.0 >= LABEL_HEIGHT;
                assert!(ticks.len() > 1 && ticks.windows(2).all(apart), "{low} {tenths}: {ticks:?}");
            }
        }
    }

    #[test]
    fn a_place_and_its_value_belong_together() {
        for scale in [AxisScale::Linear, AxisScale::Log, AxisScale::Ratio] {
            let axis = axis(scale);
            let ruler = Ruler::new(&axis, (2.0, 50.0), (0.1, 0.1));
            for value in [2.0, 7.5, 50.0] {
                assert!((ruler.value(ruler.place(value)) - value).abs() < 1e-9, "{axis:?} {value}");
            }
        }
    }

    #[test]
    fn whole_numbers_have_no_labels_between_them() {
        let values = [1.0, 2.0, 3.0];
        for scale in [AxisScale::Linear, AxisScale::Log] {
            let axis = Axis::new("reading", Unit::Count, scale).for_values(values);
            let labels = |axis: &Axis| -> Vec<String> {
                Ruler::new(axis, (1.0, 3.0), (0.03, 0.03)).ticks().into_iter().map(|tick| tick.text).collect()
            };
            assert_eq!(labels(&axis), ["1", "2", "3"]);
            assert!(labels(&axis.for_values([1.0, 2.5])).contains(&"1.5".to_owned()));
        }
    }

    #[test]
    fn a_few_far_values_do_not_squeeze_the_rest() {
        let near = (0..100).map(|i| 10.0 + f64::from(i) / 100.0);
        let (low, high) = window(near.clone().chain([86.0, 90.0]));
        assert!(low == 10.0 && high < 12.0, "{low} {high}");
        assert_eq!(window(near), (10.0, 10.99));
        assert_eq!(window([1.0, 86.0]), (1.0, 86.0));
    }

    #[test]
    fn the_same_value_throughout_has_an_axis_too() {
        for (scale, value) in [(AxisScale::Linear, 5.0), (AxisScale::Linear, 0.0), (AxisScale::Log, 5.0)] {
            let axis = axis(scale);
            let ruler = Ruler::new(&axis, (value, value), (0.05, 0.05));
            assert!((ruler.place(value) - 0.5).abs() < 1e-9, "{value}");
        }
    }
}
