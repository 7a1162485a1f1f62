//! The scales of charts: positions of values, and the labels of axes.

use scruple_core::unit::{Unit, tick};

/// The height of a label.
const ROOM: f64 = 20.0;
/// The height of a line of text.
const LINE: f64 = 12.0;
/// The most labels of an axis.
const MOST: f64 = 9.0;

/// A vertical axis.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    low: f64,
    high: f64,
    /// Whether equal ratios have equal lengths.
    pub(crate) logarithmic: bool,
    top: f64,
    bottom: f64,
}

impl Axis {
    /// An axis for these values between two heights of the picture; logarithmic where requested and no value is zero.
    ///
    /// It spans at least a tenth of its values, so that small changes look small.
    pub(crate) fn of(
        values: impl Iterator<Item = f64>,
        logarithmic: bool,
        (top, bottom): (f64, f64),
    ) -> Option<Axis> {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|value| value.is_finite()) {
            low = low.min(value);
            high = high.max(value);
        }
        if low > high {
            return None;
        }
        let logarithmic = logarithmic && low > 0.0;
        if logarithmic {
            let missing = (1.1 / (high / low)).max(1.0).sqrt();
            let room = (high / low).powf(0.06) * missing;
            return Some(Axis { low: low / room, high: high * room, logarithmic, top, bottom });
        }
        let missing = (0.1 * low.abs().max(high.abs()) - (high - low)).max(0.0) / 2.0;
        let room = (high - low) * 0.06 + missing;
        let from_zero = low >= 0.0 && low <= high * 0.5;
        let low = if from_zero { 0.0 } else { low - room };
        let high = if high + room > low { high + room } else { low + 1.0 };
        Some(Axis { low, high, logarithmic, top, bottom })
    }

    /// The height of a value in the picture.
    pub(crate) fn y(&self, value: f64) -> f64 {
        let on = |value: f64| if self.logarithmic { value.max(self.low / 10.0).ln() } else { value };
        let place = (on(value) - on(self.low)) / (on(self.high) - on(self.low));
        self.bottom - place.clamp(0.0, 1.0) * (self.bottom - self.top)
    }

    /// The labels with their values; none overlap.
    pub(crate) fn ticks(&self, unit: &Unit) -> Vec<(f64, String)> {
        let mut last = f64::INFINITY;
        let mut ticks = self.round_values(unit);
        ticks.retain(|(value, _)| {
            let fits = last - self.y(*value) >= LINE;
            if fits {
                last = self.y(*value);
            }
            fits
        });
        ticks
    }

    fn round_values(&self, unit: &Unit) -> Vec<(f64, String)> {
        let decades = if self.logarithmic { (self.high / self.low).log10() } else { 0.0 };
        let most = ((self.bottom - self.top) / ROOM).clamp(2.0, MOST);
        if decades < 1.0 {
            let step = round_step(self.high - self.low, most);
            let first = (self.low / step).ceil() as i64;
            let last = (self.high / step).floor() as i64;
            let all = (first..=last).take(20).map(|times| times as f64 * step);
            return all.map(|value| (value, tick(value, step, unit))).collect();
        }
        let digits: &[f64] = if decades * 3.0 <= most { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let every = ((decades / most).ceil() as i32).max(1);
        let powers = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
        powers
            .filter(|power| power % every == 0)
            .flat_map(|power| digits.iter().map(move |digit| digit * 10_f64.powi(power)))
            .filter(|value| (self.low..=self.high).contains(value))
            .map(|value| (value, tick(value, value, unit)))
            .collect()
    }
}

/// A round step of which no more than this many fit into the span.
fn round_step(span: f64, most: f64) -> f64 {
    let power = 10_f64.powf((span / most).log10().floor());
    let fits = |step: &f64| span / step <= most;
    [1.0, 2.0, 5.0].iter().map(|digit| digit * power).find(fits).unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(values: &[f64], logarithmic: bool) -> Vec<String> {
        let axis = Axis::of(values.iter().copied(), logarithmic, (0.0, 100.0)).expect("values");
        axis.ticks(&Unit::Nanoseconds).into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn ticks_are_round_on_every_scale() {
        assert_eq!(ticks(&[17e6, 12.3e9], true), ["100 ms", "1 s", "10 s"]);
        assert_eq!(ticks(&[3e6, 60e6], true), ["5 ms", "10 ms", "20 ms", "50 ms"]);
        assert_eq!(ticks(&[200e6, 201e6], true), ["195 ms", "200 ms", "205 ms", "210 ms"]);
        let near = Axis::of([1.9e6, 11.9e6].into_iter(), true, (0.0, 118.0)).expect("values");
        let near: Vec<String> = near.ticks(&Unit::Nanoseconds).into_iter().map(|(_, text)| text).collect();
        assert_eq!(near, ["2 ms", "4 ms", "6 ms", "8 ms", "10 ms"], "there is no room for 12 ms");
        assert_eq!(ticks(&[17e6, 1.23e9], false), ["0", "500 ms", "1 s"]);
        assert_eq!(ticks(&[5.0, 5.0], false), ["4.8 ns", "4.9 ns", "5 ns", "5.1 ns", "5.2 ns"]);
        assert_eq!(ticks(&[1.0, 1e14], true), ["1 ns", "10 µs", "100 ms", "1000 s"]);
    }

    #[test]
    fn heights_follow_the_scale() {
        let values = [1e6, 1e8];
        let axis = Axis::of(values.into_iter(), true, (0.0, 100.0)).expect("values");
        assert!((axis.y(1e7) - 50.0).abs() < 1e-9);
        assert!(axis.y(1e8) < axis.y(1e6) && axis.y(0.0) == 100.0);
        assert!(!Axis::of([0.0, 4.0].into_iter(), true, (0.0, 1.0)).expect("values").logarithmic);
        assert!(Axis::of([0.0].into_iter(), false, (0.0, 1.0)).expect("values").y(0.0).is_finite());
        assert!(Axis::of([f64::NAN].into_iter(), true, (0.0, 1.0)).is_none());
    }
}
