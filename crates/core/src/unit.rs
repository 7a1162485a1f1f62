//! Units, and the only code that formats numbers with units and parses them.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The unit of the readings of a metric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Unit {
    /// Durations; readings are in nanoseconds.
    Nanoseconds,
    /// Sizes; readings are in bytes.
    Bytes,
    /// Counts of things.
    Count,
    /// Dimensionless ratios.
    Ratio,
    /// Any other unit, with the name that the bench program or the user gave it.
    Other(Cow<'static, str>),
}

impl From<String> for Unit {
    fn from(name: String) -> Unit {
        match name.as_str() {
            "ns" => Unit::Nanoseconds,
            "bytes" => Unit::Bytes,
            "count" => Unit::Count,
            "ratio" => Unit::Ratio,
            _ => Unit::Other(name.into()),
        }
    }
}

impl From<Unit> for String {
    fn from(unit: Unit) -> String {
        unit.name().to_owned()
    }
}

/// Names of units of time, as they stand in the denominator of a rate.
const TIMES: &[&str] =
    &["ns", "us", "µs", "ms", "s", "sec", "second", "seconds", "min", "minute", "h", "hour", "d", "day"];

impl Unit {
    /// The name of the unit in JSON and SQL.
    pub fn name(&self) -> &str {
        match self {
            Unit::Nanoseconds => "ns",
            Unit::Bytes => "bytes",
            Unit::Count => "count",
            Unit::Ratio => "ratio",
            Unit::Other(name) => name,
        }
    }

    /// Whether the unit counts something per time, so that more is better.
    pub fn is_rate(&self) -> bool {
        let per_time = |name: &str| {
            let of = name.rsplit_once('/').or_else(|| name.rsplit_once(" per "));
            of.is_some_and(|(_, time)| TIMES.contains(&time.trim()))
        };
        matches!(self, Unit::Other(name) if per_time(name))
    }

    fn scales(&self) -> &'static [(f64, &'static str)] {
        match self {
            Unit::Nanoseconds => &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"), (1e-3, "ps")],
            Unit::Bytes => &[(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")],
            Unit::Count => &[(1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")],
            Unit::Ratio | Unit::Other(_) => &[(1.0, "")],
        }
    }

    /// The scale for a value of this magnitude. The scaled value is between 1 and 1000 where possible, even after it is
    /// rounded to three digits.
    pub fn scale(&self, magnitude: f64) -> Scale {
        let scales = self.scales();
        let (divisor, symbol) =
            scales.iter().copied().find(|(divisor, _)| magnitude.abs() >= 0.9995 * divisor).unwrap_or(
                if magnitude == 0.0 {
                    *scales.iter().find(|(divisor, _)| *divisor == 1.0).unwrap_or(&scales[0])
                } else {
                    scales[scales.len() - 1]
                },
            );
        let symbol = match self {
            Unit::Other(name) => name.clone(),
            _ => symbol.into(),
        };
        Scale { divisor, symbol }
    }

    /// The symbol after whole numbers of this unit.
    pub fn whole_symbol(&self) -> &str {
        match self {
            Unit::Nanoseconds => "ns",
            Unit::Bytes => "B",
            Unit::Count | Unit::Ratio => "",
            Unit::Other(name) => name,
        }
    }
}

/// A unit with a prefix: its divisor and its symbol.
#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    /// The divisor of readings.
    pub divisor: f64,
    /// The symbol, which may be empty.
    pub symbol: Cow<'static, str>,
}

impl Scale {
    /// The number of decimals for a value with an uncertainty of ± `half_width`: two significant digits of the
    /// uncertainty, or three significant digits of the value where the uncertainty is unknown or zero.
    pub fn decimals(&self, value: f64, half_width: Option<f64>) -> usize {
        let value = (value / self.divisor).abs();
        let from_value = 2 - order(value);
        let digits = match half_width.map(|h| (h / self.divisor).abs()).filter(|h| *h > 0.0) {
            Some(h) => (1 - order(h)).min(from_value + 2),
            None => from_value,
        };
        digits.clamp(0, 6) as usize
    }

    /// The number alone, with this number of decimals.
    pub fn number(&self, value: f64, decimals: usize) -> String {
        digits(value / self.divisor, decimals)
    }

    /// The number with this number of decimals, followed by the symbol.
    pub fn text(&self, value: f64, decimals: usize) -> String {
        with_symbol(&self.number(value, decimals), &self.symbol)
    }
}

/// A number with this number of decimals, or with an exponent where it has more digits than a reading can have.
fn digits(value: f64, decimals: usize) -> String {
    if value.abs() < 1e15 { format!("{value:.decimals$}") } else { format!("{value:.2e}") }
}

fn order(value: f64) -> i32 {
    if value > 0.0 && value.is_finite() { value.log10().floor() as i32 } else { 0 }
}

fn with_symbol(number: &str, symbol: &str) -> String {
    if symbol.is_empty() { number.to_owned() } else { format!("{number} {symbol}") }
}

/// A value without an interval as text, to three significant digits.
///
/// ```
/// use scruple_core::unit::{Unit, quantity};
///
/// assert_eq!(quantity(1_234_567.0, &Unit::Nanoseconds), "1.23 ms");
/// assert_eq!(quantity(4096.0, &Unit::Bytes), "4.10 kB");
/// ```
pub fn quantity(value: f64, unit: &Unit) -> String {
    if !value.is_finite() {
        return "not a number".to_owned();
    }
    let scale = unit.scale(value);
    let whole = scale.divisor == 1.0 && value.fract() == 0.0;
    let decimals = if whole { 0 } else { scale.decimals(value, None) };
    // A value that is not zero must not be shown as zero.
    if value != 0.0 && (value / scale.divisor).abs() < 0.5 * 10_f64.powi(-(decimals as i32)) {
        return with_symbol(&format!("{:.1e}", value / scale.divisor), &scale.symbol);
    }
    scale.text(value, decimals)
}

/// A round value on an axis as text, with just enough digits to distinguish it from the next one, `step` away. A step
/// is 1, 2 or 5 times a power of ten.
pub fn tick(value: f64, step: f64, unit: &Unit) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let scale = unit.scale(value * (1.0 + 1e-9));
    let decimals = (-order((step / scale.divisor).abs() * (1.0 + 1e-9))).clamp(0, 9) as usize;
    let number = scale.number(value, decimals);
    let number = match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.'),
        false => &number,
    };
    with_symbol(number, &scale.symbol)
}

/// An exact value as text: every digit, in groups of three.
pub fn exact(value: f64, unit: &Unit) -> String {
    if value.fract() != 0.0 || value.abs() >= 1e15 {
        return quantity(value, unit);
    }
    with_symbol(&grouped(value), unit.whole_symbol())
}

/// A whole number as text, in groups of three digits.
pub fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 { format!("-{text}") } else { text }
}

/// A ratio as a change: `1.02` is shown as `+2.00 %`; twofold or more, or less than half, as a multiple such as `2.41
/// ×`.
///
/// ```
/// use scruple_core::unit::change;
///
/// assert_eq!(change(1.02), "+2.00 %");
/// assert_eq!(change(2.41), "2.41 ×");
/// ```
pub fn change(ratio: f64) -> String {
    if (0.5..2.0).contains(&ratio) {
        let percent = (ratio - 1.0) * 100.0;
        let decimals = if percent.abs() < 10.0 { 2 } else { 1 };
        format!("{} %", signed(percent, decimals))
    } else {
        times(ratio)
    }
}

/// A number with its sign. One that rounds to zero has none: neither `+0.00` nor `-0.00` would be true.
fn signed(value: f64, decimals: usize) -> String {
    let text = format!("{value:+.decimals$}");
    match text.trim_start_matches(['+', '-']) {
        zero if zero.bytes().all(|byte| matches!(byte, b'0' | b'.')) => zero.to_owned(),
        _ => text,
    }
}

/// A ratio as a change in per cent, however large: `-46.17%`. A change that is not zero is never shown as zero.
pub fn percent(ratio: f64) -> String {
    if !ratio.is_finite() {
        return "from 0".to_owned();
    }
    let percent = (ratio - 1.0) * 100.0;
    // Both changes near 0 and changes near -100 % need more digits.
    let near = percent.abs().min((100.0 + percent).abs());
    let decimals = if near > 0.0 { (1 - order(near)).clamp(2, 6) as usize } else { 2 };
    format!("{}%", signed(percent, decimals))
}

/// A ratio as a multiple: `2.41 ×`.
pub fn times(ratio: f64) -> String {
    let decimals = (2 - order(ratio)).clamp(0, 4) as usize;
    format!("{} ×", digits(ratio, decimals))
}

/// A ratio with its interval, all three in one form: as changes in per cent where all are between half and twice, else
/// as multiples.
pub fn change_between(ratio: f64, low: f64, high: f64) -> String {
    if ![ratio, low, high].iter().all(|one| (0.5..2.0).contains(one)) {
        return times_between(ratio, low, high);
    }
    let decimals = if (ratio - 1.0).abs() < 0.1 { 2 } else { 1 };
    let percent = |ratio: f64| signed((ratio - 1.0) * 100.0, decimals);
    format!("{} % [{}, {}]", percent(ratio), percent(low), percent(high))
}

/// The ends of a range in one form, by the rule of [`change_between`].
pub fn change_bounds(low: f64, high: f64) -> (String, String) {
    match (0.5..2.0).contains(&low) && (0.5..2.0).contains(&high) {
        true => (change(low), change(high)),
        false => (times(low), times(high)),
    }
}

/// A multiple with its interval, with enough digits to distinguish the bounds: `0.00140 × [0.00138, 0.00142]`.
fn times_between(ratio: f64, low: f64, high: f64) -> String {
    let decimals =
        (1 - order(high - low)).min(3 - order(ratio)).max(2 - order(ratio).max(0)).clamp(0, 9) as usize;
    let [ratio, low, high] = [ratio, low, high].map(|one| digits(one, decimals));
    format!("{ratio} × [{low}, {high}]")
}

/// How uncertain or how noisy a value is, as a share of the value: `1.2 %`. Above 1000 %, nothing is known of the
/// value, and the number is left out: `> 1000 %`.
pub fn relative_spread(ratio: f64) -> String {
    if ratio > 10.0 { "> 1000 %".to_owned() } else { share(ratio) }
}

/// A ratio as a share: `41 %`.
pub fn share(ratio: f64) -> String {
    let percent = ratio * 100.0;
    if percent.abs() < 10.0 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

/// Parses `4MB`, `3.5 ms`, `1_000` or `12` as a number of the base unit (bytes, nanoseconds, or plain). Binary prefixes
/// (`KiB`, `MiB`, `GiB`) are accepted for bytes.
///
/// ```
/// use scruple_core::unit::{Unit, parse_quantity};
///
/// assert_eq!(parse_quantity("3.5 ms", &Unit::Nanoseconds), Ok(3_500_000.0));
/// assert_eq!(parse_quantity("4KiB", &Unit::Bytes), Ok(4096.0));
/// assert!(parse_quantity("3.5", &Unit::Nanoseconds).is_err(), "a duration needs a unit");
/// ```
///
/// # Errors
///
/// A sentence says why the text is not a quantity of this unit.
pub fn parse_quantity(text: &str, unit: &Unit) -> Result<f64, String> {
    let text = text.trim();
    let split = text.find(|c: char| !(c.is_ascii_digit() || "+-._eE".contains(c))).unwrap_or(text.len());
    let (number, symbol) = text.split_at(split);
    let number: f64 = number.replace('_', "").parse().map_err(|_| {
        format!("‘{text}’ is not a quantity: a number and a unit are expected, such as ‘{}’", example(unit))
    })?;
    let symbol = symbol.trim();
    let factor = match unit {
        Unit::Nanoseconds => match symbol {
            "" => return Err(format!("‘{text}’ has no unit: write for instance ‘{text}s’ or ‘{text}ms’")),
            "ns" => Some(1.0),
            "us" | "µs" | "μs" => Some(1e3),
            "ms" => Some(1e6),
            "s" => Some(1e9),
            "min" | "m" => Some(60e9),
            "h" => Some(3600e9),
            _ => None,
        },
        Unit::Bytes => match symbol {
            "" | "B" | "bytes" => Some(1.0),
            "kB" | "KB" | "k" | "K" => Some(1e3),
            "MB" | "M" => Some(1e6),
            "GB" | "G" => Some(1e9),
            "KiB" => Some(1024.0),
            "MiB" => Some(1024.0 * 1024.0),
            "GiB" => Some(1024.0 * 1024.0 * 1024.0),
            _ => None,
        },
        Unit::Count => match symbol {
            "" => Some(1.0),
            "k" | "K" => Some(1e3),
            "M" => Some(1e6),
            "G" => Some(1e9),
            _ => None,
        },
        Unit::Ratio => match symbol {
            "" | "×" | "x" => Some(1.0),
            "%" => Some(0.01),
            _ => None,
        },
        Unit::Other(name) => (symbol.is_empty() || symbol == name).then_some(1.0),
    };
    match factor {
        Some(factor) if number.is_finite() => Ok(number * factor),
        Some(_) => Err(format!("‘{text}’ is out of range")),
        None => Err(format!(
            "‘{symbol}’ is not a unit of {}: write for instance ‘{}’",
            measured(unit),
            example(unit)
        )),
    }
}

/// What is given in a unit.
fn measured(unit: &Unit) -> &str {
    match unit {
        Unit::Nanoseconds => "time",
        Unit::Bytes => "bytes",
        Unit::Count => "a count, which has none",
        Unit::Ratio => "a ratio",
        Unit::Other(name) => name,
    }
}

fn example(unit: &Unit) -> &'static str {
    match unit {
        Unit::Nanoseconds => "20 ms",
        Unit::Bytes => "4 MB",
        Unit::Ratio => "2 %",
        Unit::Count | Unit::Other(_) => "1000",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_known_by_their_unit() {
        let rate = |name: &str| Unit::from(name.to_owned()).is_rate();
        assert!(["ops/s", "MB/s", "req/sec", "ops/ms", "requests per second"].into_iter().all(rate));
        assert!(!["ns/op", "ns", "count", "%", "s", "bytes per request"].into_iter().any(rate));
    }

    #[test]
    fn quantities_choose_their_prefix() {
        let shown: Vec<String> = [0.5, 12.0, 1234.0, 5_100_000.0, 2.5e9]
            .iter()
            .map(|v| quantity(*v, &Unit::Nanoseconds))
            .collect();
        assert_eq!(shown, ["500 ps", "12 ns", "1.23 µs", "5.10 ms", "2.50 s"]);
        assert_eq!(quantity(0.0, &Unit::Bytes), "0 B");
        assert_eq!(quantity(f64::NAN, &Unit::Bytes), "not a number");
    }

    #[test]
    fn figures_with_more_digits_than_a_reading_has_are_short() {
        assert_eq!(quantity(1e308, &Unit::Nanoseconds), "1.00e299 s");
        assert_eq!((exact(1e300, &Unit::Bytes), times(1e300)), ("1.00e291 GB".into(), "1.00e300 ×".into()));
        assert_eq!(change_between(1e20, 1e19, f64::INFINITY), "1.00e20 × [1.00e19, inf]");
    }

    #[test]
    fn exact_figures_keep_every_digit() {
        assert_eq!(exact(13_303_419.0, &Unit::Bytes), "13,303,419 B");
        assert_eq!(exact(-1.0, &Unit::Count), "-1");
        assert_eq!(exact(999.0, &Unit::Count), "999");
    }

    #[test]
    fn digits_follow_the_uncertainty() {
        let ms = Unit::Nanoseconds.scale(5.1e6);
        assert_eq!(ms.text(5.123_456e6, ms.decimals(5.123_456e6, Some(12_000.0))), "5.123 ms");
        assert_eq!(ms.text(5.123_456e6, ms.decimals(5.123_456e6, Some(1.2e6))), "5.1 ms");
    }

    #[test]
    fn changes_read_as_percent_or_as_multiples() {
        assert_eq!(change(1.02), "+2.00 %");
        assert_eq!(change(0.85), "-15.0 %");
        assert_eq!(change(1.0), "0.00 %");
        assert_eq!(change(0.999_99), "0.00 %", "no sign that the digits do not have");
        assert_eq!(change(1.000_01), "0.00 %");
        assert_eq!(change_between(0.999_99, 0.99, 1.000_01), "0.00 % [-1.00, 0.00]");
        assert_eq!(change(2.412), "2.41 ×");
        assert_eq!(change(0.0412), "0.0412 ×");
        assert_eq!(times_between(0.001_398, 0.001_382, 0.001_415), "0.001398 × [0.001382, 0.001415]");
        assert_eq!(times_between(0.250_12, 0.249_82, 0.250_43), "0.2501 × [0.2498, 0.2504]");
        assert_eq!(times_between(0.31, 0.2, 0.42), "0.31 × [0.20, 0.42]");
        assert_eq!(times_between(30.02, 29.13, 31.21), "30.0 × [29.1, 31.2]");
    }

    #[test]
    fn a_ratio_and_its_bounds_have_one_form() {
        assert_eq!(change_between(1.021, 1.018, 1.0243), "+2.10 % [+1.80, +2.43]");
        assert_eq!(change_between(1.821, 1.51, 2.19), "1.82 × [1.51, 2.19]");
        assert_eq!(change_bounds(0.95, 1.05), ("-5.00 %".to_owned(), "+5.00 %".to_owned()));
        assert_eq!(change_bounds(0.25, 1.05), ("0.250 ×".to_owned(), "1.05 ×".to_owned()));
    }

    #[test]
    fn ticks_have_no_more_digits_than_they_need() {
        assert_eq!(tick(1e9, 1e9, &Unit::Nanoseconds), "1 s");
        assert_eq!(tick(1.5e9, 0.5e9, &Unit::Nanoseconds), "1.5 s");
        assert_eq!(tick(2e6, 0.5e6, &Unit::Bytes), "2 MB");
        assert_eq!(tick(200_200.0, 200.0, &Unit::Count), "200.2 k");
        assert_eq!(tick(-20.0, 10.0, &Unit::Ratio), "-20");
        assert_eq!(tick(0.0, 1.0, &Unit::Bytes), "0");
    }

    #[test]
    fn a_hopeless_width_is_a_bound() {
        assert_eq!(relative_spread(0.012), "1.2 %");
        assert_eq!(relative_spread(10.0), "1000 %");
        assert_eq!(relative_spread(12_024.16), "> 1000 %");
        assert_eq!(relative_spread(f64::INFINITY), "> 1000 %");
    }

    #[test]
    fn percents_do_not_round_away() {
        assert_eq!(percent(0.5383), "-46.17%");
        assert_eq!(percent(3.5), "+250.00%");
        assert_eq!(percent(1.0), "0.00%");
        assert_eq!(percent(0.000_003), "-99.99970%");
        assert_eq!(percent(1.000_01), "+0.0010%");
        assert_eq!(percent(0.0), "-100.00%");
        assert_eq!(percent(f64::INFINITY), "from 0");
    }

    #[test]
    fn quantities_are_read_back() {
        assert_eq!(parse_quantity("4MB", &Unit::Bytes), Ok(4e6));
        assert_eq!(parse_quantity("1 KiB", &Unit::Bytes), Ok(1024.0));
        assert_eq!(parse_quantity("3.5 ms", &Unit::Nanoseconds), Ok(3.5e6));
        assert_eq!(parse_quantity("1_000", &Unit::Count), Ok(1000.0));
        assert!(parse_quantity("four", &Unit::Bytes).is_err());
        assert!(parse_quantity("4 MB", &Unit::Nanoseconds).is_err());
    }
}
