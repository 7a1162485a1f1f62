//! Writes the text format of Prometheus, version 0.0.4.

use super::ServerFigures;
use scruple_measure::load::LIVE_BOUNDS;
use std::fmt::Write as _;

/// Writes all reports.
pub(super) fn text(all: &[ServerFigures]) -> String {
    let mut out = String::new();
    let mut family =
        |name: &str, kind: &str, help: &str, write: &mut dyn FnMut(&mut String, &str, &ServerFigures)| {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
            for figures in all {
                write(&mut out, &format!("server=\"{}\"", escaped(&figures.server)), figures);
            }
        };
    let requests = "scruple_load_requests_total";
    family(requests, "counter", "Requests by how they ended.", &mut |out, server, figures| {
        let counts = figures.counts();
        let _ = writeln!(out, "{requests}{{{server},result=\"ok\"}} {}", counts.answered);
        for (class, count) in counts.failures.each() {
            let _ = writeln!(out, "{requests}{{{server},result=\"{}\"}} {count}", class.name());
        }
    });
    let name = "scruple_load_response_seconds";
    family(name, "histogram", "From when a request was due to its answer.", &mut |out, server, figures| {
        let counts = figures.counts();
        let mut sum = 0;
        for (bound, count) in LIVE_BOUNDS.iter().zip(counts.response) {
            sum += count;
            let _ = writeln!(out, "{name}_bucket{{{server},le=\"{}\"}} {sum}", *bound as f64 / 1e9);
        }
        let all: u64 = counts.response.iter().sum();
        let _ = writeln!(out, "{name}_bucket{{{server},le=\"+Inf\"}} {all}");
        let _ = writeln!(out, "{name}_sum{{{server}}} {}", counts.sum as f64 / 1e9);
        let _ = writeln!(out, "{name}_count{{{server}}} {all}");
    });
    let name = "scruple_load_backlog";
    family(name, "gauge", "Requests that wait for a free connection.", &mut |out, server, figures| {
        let _ = writeln!(out, "{name}{{{server}}} {}", figures.backlog);
    });
    out
}

/// Escapes the value of a label.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use scruple_measure::load::{Failure, LoadProgress};

    #[test]
    fn buckets_add_up_and_names_cannot_break_out() {
        let mut seen = LoadProgress { backlog: 7, ..LoadProgress::default() };
        (seen.record.answered, seen.record.sum) = (3, 2_500_000);
        (seen.record.response[0], seen.record.response[LIVE_BOUNDS.len()]) = (2, 1);
        seen.record.failures.record(Failure::TimedOut, 4);
        let mut figures = ServerFigures { server: "a\"}\n1 \\".to_owned(), ..ServerFigures::default() };
        figures.update(&seen);
        let text = text(&[figures]);
        let server = "server=\"a\\\"}\\n1 \\\\\"";
        for line in [
            format!("scruple_load_requests_total{{{server},result=\"ok\"}} 3"),
            format!("scruple_load_requests_total{{{server},result=\"timed-out\"}} 4"),
            format!("scruple_load_response_seconds_bucket{{{server},le=\"0.0001\"}} 2"),
            format!("scruple_load_response_seconds_bucket{{{server},le=\"60\"}} 2"),
            format!("scruple_load_response_seconds_bucket{{{server},le=\"+Inf\"}} 3"),
            format!("scruple_load_response_seconds_sum{{{server}}} 0.0025"),
            format!("scruple_load_backlog{{{server}}} 7"),
        ] {
            assert!(text.lines().any(|other| other == line), "{line} is not in\n{text}");
        }
    }
}
