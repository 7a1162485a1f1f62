//! Parses values that several commands take on the command line: durations, ages, margins, labels.

use crate::fault::Fault;
use scruple_core::harmless_text::{plain, steers};
use scruple_core::unit::{Unit, parse_quantity};
use std::time::Duration;

/// Parses a duration such as `60s`, `1.5 min` or `200ms`. A number without a unit means seconds.
pub fn duration(text: &str) -> Result<Duration, Fault> {
    let with_unit = match text.trim().parse::<f64>() {
        Ok(_) => format!("{}s", text.trim()),
        Err(_) => text.to_owned(),
    };
    match parse_quantity(&with_unit, &Unit::Nanoseconds) {
        Ok(ns) if ns > 0.0 && ns < 1e18 => Ok(Duration::from_nanos(ns as u64)),
        _ => Err(Fault::usage(format!(
            "‘{text}’ is not a duration: give one of more than zero in ns, us, ms, s, min or h, such as 60s or 1.5min"
        ))),
    }
}

/// Writes a margin as [`margin`] reads it.
pub fn percent(margin: f64) -> String {
    format!("{}%", margin * 100.0)
}

/// The help of an option for a margin that has this default.
pub fn margin_help(default: f64) -> String {
    format!("Treat differences within this margin as the same (default: {})", percent(default))
}

/// Parses a margin such as `2%` or `0.02`.
pub fn margin(text: &str) -> Result<f64, Fault> {
    match parse_quantity(text, &Unit::Ratio) {
        Ok(margin) if margin > 0.0 && margin < 1.0 => Ok(margin),
        _ => Err(Fault::usage(format!(
            "‘{text}’ is not a margin: give a share between 0 and 100 %, such as 2%"
        ))),
    }
}

/// Parses an age such as `30d`, `12h` or `10min`. Zero is allowed, such as `0d`. A number such as `30` without a unit
/// is an error.
pub fn age(text: &str) -> Result<Duration, Fault> {
    let days = text.trim().strip_suffix('d').and_then(|days| days.trim().parse::<u32>().ok());
    if let Some(days) = days {
        return Ok(Duration::from_secs(24 * 3600) * days);
    }
    match parse_quantity(text, &Unit::Nanoseconds) {
        Ok(ns) if (0.0..1e18).contains(&ns) => Ok(Duration::from_nanos(ns as u64)),
        _ => Err(Fault::usage(format!("‘{text}’ is not an age: give one such as 30d, 12h or 10min"))),
    }
}

/// Checks that a label can identify a run, and that a list can show it.
pub fn label(label: Option<&str>) -> Result<(), Fault> {
    let Some(label) = label else { return Ok(()) };
    let why = match label {
        "" => "is empty",
        _ if label == "last" || label.starts_with("last~") => "means the newest run",
        _ if label.chars().any(steers) => "has a line end or another character that controls a terminal",
        _ => return Ok(()),
    };
    Err(Fault::usage(format!("the label ‘{}’ {why}: give another --label", plain(label))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_units() {
        assert_eq!(age("30d").ok(), Some(Duration::from_secs(30 * 86400)));
        assert_eq!(age("12h").ok(), Some(Duration::from_secs(12 * 3600)));
        assert_eq!(age("0d").ok(), Some(Duration::ZERO));
        assert!(age("30").is_err() && age("-1d").is_err() && age("soon").is_err());
    }
}
