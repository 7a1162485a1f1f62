//! Writes the JSON form of OpenTelemetry's metrics (OTLP 1).

use super::ServerFigures;
use scruple_measure::load::LIVE_BOUNDS;
use serde_json::{Value, json};

/// The protocol's number for counts since the start.
const CUMULATIVE: u8 = 2;

/// Writes all reports. The counts began at `began` and were read at `now`, both in nanoseconds since 1970.
pub(super) fn json(all: &[ServerFigures], began: u128, now: u128) -> String {
    // In this format, 64-bit numbers are strings.
    let times = json!({"startTimeUnixNano": began.to_string(), "timeUnixNano": now.to_string()});
    let point = |attributes: &[(&str, &str)], more: Value| {
        let attribute = |(key, value): &(&str, &str)| json!({"key": key, "value": {"stringValue": value}});
        let attributes: Vec<Value> = attributes.iter().map(attribute).collect();
        let mut point = times.clone();
        point["attributes"] = attributes.into();
        if let (Some(point), Value::Object(more)) = (point.as_object_mut(), more) {
            point.extend(more);
        }
        point
    };
    let (mut requests, mut responses, mut backlogs) = (Vec::new(), Vec::new(), Vec::new());
    for figures in all {
        let (counts, server) = (figures.counts(), ("server", figures.server.as_str()));
        let ended = |result: &str, count: u64| {
            point(&[server, ("result", result)], json!({"asInt": count.to_string()}))
        };
        requests.push(ended("ok", counts.answered));
        requests.extend(counts.failures.each().map(|(class, count)| ended(class.name(), count)));
        let buckets: Vec<String> = counts.response.iter().map(u64::to_string).collect();
        responses.push(point(
            &[server],
            json!({
                "count": counts.response.iter().sum::<u64>().to_string(),
                "sum": counts.sum as f64 / 1e9,
                "bucketCounts": buckets,
                "explicitBounds": LIVE_BOUNDS.map(|bound| bound as f64 / 1e9),
            }),
        ));
        backlogs.push(point(&[server], json!({"asInt": figures.backlog.to_string()})));
    }
    let metrics = json!([
        {"name": "scruple.load.requests", "unit": "{request}", "description": "Requests by how they ended.",
         "sum": {"aggregationTemporality": CUMULATIVE, "isMonotonic": true, "dataPoints": requests}},
        {"name": "scruple.load.response", "unit": "s", "description": "From when a request was due to its answer.",
         "histogram": {"aggregationTemporality": CUMULATIVE, "dataPoints": responses}},
        {"name": "scruple.load.backlog", "unit": "{request}", "description": "Requests that wait for a free connection.",
         "gauge": {"dataPoints": backlogs}},
    ]);
    let scope = json!({"name": "scruple", "version": env!("CARGO_PKG_VERSION")});
    let service = json!({"attributes": [{"key": "service.name", "value": {"stringValue": "scruple"}}]});
    json!({"resourceMetrics": [{"resource": service, "scopeMetrics": [{"scope": scope, "metrics": metrics}]}]})
        .to_string()
}
