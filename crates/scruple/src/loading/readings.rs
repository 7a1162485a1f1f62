//! The readings of one window.

use super::Window;
use scruple_core::metric::metric;
use scruple_core::sample::Reading;
use scruple_measure::load::Latencies;

/// What stands as the source of latencies.
const SOURCE: &str = "load generator";

/// What stands as the source of costs.
const ACCOUNTS: &str = "proc";

/// Everything that one window tells. A latency of which there is none is absent; a rate of nothing is 0.
pub(super) fn of(window: &Window) -> Vec<Reading> {
    let load = &window.load;
    let at = |latencies: &Latencies, q: f64| latencies.quantile(q).map(|ns| ns as f64);
    let open = load.lag.count() > 0;
    let figures = [
        ("load.p50", at(&load.response, 0.5)),
        ("load.p90", at(&load.response, 0.9)),
        ("load.p99", at(&load.response, 0.99)),
        ("load.p999", at(&load.response, 0.999)),
        ("load.max", load.response.max().map(|ns| ns as f64)),
        ("load.mean", load.response.mean()),
        ("load.service.p50", at(&load.service, 0.5)),
        ("load.service.p99", at(&load.service, 0.99)),
        ("load.rate", Some(load.rate())),
        ("load.errors", Some(load.failed_share())),
    ];
    let latencies = figures.into_iter().filter_map(|(key, value)| {
        let metric = metric(key)?;
        Some(match value {
            Some(value) => Reading::of(metric, value, SOURCE),
            None => Reading::absent(metric, "no request was answered"),
        })
    });
    let lag = metric("load.lag.p99").filter(|_| open);
    let lag = lag.and_then(|metric| Some(Reading::of(metric, at(&load.lag, 0.99)?, SOURCE)));
    latencies.chain(lag).chain(of_the_server(window)).collect()
}

/// What a window tells of the server's own accounts.
pub(super) fn of_the_server(window: &Window) -> Vec<Reading> {
    costs(&window.costs, ACCOUNTS).collect()
}

/// Costs by the keys of counters, as readings of the metrics that divide them by the requests.
pub(super) fn costs<'a>(costs: &'a [(String, f64)], source: &'a str) -> impl Iterator<Item = Reading> + 'a {
    costs.iter().filter_map(move |(key, value)| {
        let key = format!("request.{}", key.strip_prefix("time.").unwrap_or(key));
        Some(Reading::of(metric(&key)?, *value, source))
    })
}
