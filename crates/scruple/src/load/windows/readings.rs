//! Converts the results of windows into readings.

use scruple_core::judge::pooled::readings as pooled_readings;
use scruple_core::metric::{METRICS, Metric, metric};
use scruple_core::sample::Reading;
use scruple_measure::load::cost::user_and_system_time::{KEYS, TICKS_IN_STEP};
use scruple_measure::load::{Latencies, LoadResult, RunPart};
use scruple_stats::pooled::{self, Pooled, RequestBlocks};

/// The source of latencies, as readings name it.
const SOURCE: &str = "load generator";

/// The source of the costs of the server, as readings name it.
const ACCOUNTS: &str = "proc";

/// Returns how many requests were due per second in an open loop; `None` in a closed one.
pub(super) fn due_per_second(load: &LoadResult) -> Option<f64> {
    let (due, span) =
        load.counted().iter().fold((0, 0), |sum, part| (sum.0 + part.counts.due, sum.1 + part.span()));
    (load.times.lag.count() > 0 && span > 0).then(|| due as f64 * 1e9 / span as f64)
}

/// Returns the good answers per second of a window. Requests that are due at even intervals do not divide evenly among
/// windows: if 200 are due in a second, a seventh of the second has 28 or 29. The rate is that of the answers if the
/// window had its exact share. `None` if its share is less than a request, and it has none.
fn rate(window: &RunPart, due_per_second: Option<f64>) -> Option<f64> {
    let (seconds, due) = (window.span().max(1) as f64 / 1e9, window.counts.due as f64);
    let share = due_per_second.map(|rate| rate * seconds).filter(|share| (share - due).abs() < 1.0);
    match share {
        Some(share) => (due > 0.0).then(|| window.arrived as f64 * share / due / seconds),
        None => Some(window.arrived as f64 / seconds),
    }
}

/// Returns all latency readings of one window, of a load in which this many requests were due. A latency without
/// requests is absent.
pub(super) fn of(window: &RunPart, due_per_second: Option<f64>) -> Vec<Reading> {
    let at = |latencies: &Latencies, q: f64| latencies.quantile(q).map(|ns| ns as f64);
    let count = window.times.response.count() as f64;
    let failed = window.counts.failures.total() as f64;
    let all = window.counts.answered as f64 + failed;
    let figures = [
        ("load.p50", at(&window.times.response, 0.5)),
        ("load.p90", at(&window.times.response, 0.9)),
        ("load.p99", at(&window.times.response, 0.99)),
        ("load.p999", at(&window.times.response, 0.999)),
        ("load.max", window.times.response.max().map(|ns| ns as f64)),
        ("load.mean", (count > 0.0).then(|| window.times.response.sum() / count)),
        ("load.service.p50", at(&window.times.service, 0.5)),
        ("load.service.p99", at(&window.times.service, 0.99)),
        ("load.rate", rate(window, due_per_second)),
        ("load.errors", Some(if all > 0.0 { failed / all } else { 0.0 })),
    ];
    let latencies = figures.into_iter().filter_map(|(key, value)| {
        let metric = metric(key)?;
        Some(match value {
            Some(value) => Reading::of(metric, value, SOURCE),
            None => Reading::absent(metric, "no request was answered"),
        })
    });
    let lag = metric("load.lag.p99").zip(at(&window.times.lag, 0.99));
    latencies.chain(lag.map(|(metric, lag)| Reading::of(metric, lag, SOURCE))).collect()
}

/// Returns the readings of one window for a kind of request, for which only response times are known.
pub(super) fn of_a_row(window: &RunPart) -> impl Iterator<Item = Reading> {
    of(window, None).into_iter().filter(|reading| !reading.key.starts_with("load.service."))
}

/// Returns absent readings of all latencies, for a server whose turns are all void.
pub(super) fn of_void_turns() -> Vec<Reading> {
    let latencies = METRICS.iter().filter(|metric| metric.key.starts_with("load."));
    latencies.map(|metric| Reading::absent(metric, "every window is void: the generator was late")).collect()
}

/// Whether a metric is about the time that the server took.
pub(super) fn is_of_service(key: &str) -> bool {
    key.starts_with("load.service.")
}

/// Returns absent readings of the service, for a server in whose turns the generator was always late.
pub(super) fn of_no_service() -> impl Iterator<Item = Reading> {
    let services = METRICS.iter().filter(|metric| is_of_service(&metric.key));
    services.map(|metric| Reading::absent(metric, "the generator was late, and sent requests in groups"))
}

/// Returns readings of all windows of some turns together, with which limits are compared and servers too. A window in
/// which the server stalled has the weight of all its requests. The service is that of the windows `timely`.
pub(super) fn pooled(parts: &[&RunPart], timely: &[&RunPart], level: f64) -> Vec<(String, Vec<Reading>)> {
    let responses: Vec<&Latencies> = parts.iter().map(|part| &part.times.response).collect();
    let least: Vec<Latencies> = parts.iter().map(|part| part.least()).collect();
    let least: Vec<&Latencies> = least.iter().collect();
    let failures: Vec<(u64, u64)> = parts
        .iter()
        .map(|part| (part.counts.failures.total(), part.counts.answered + part.counts.failures.total()))
        .collect();
    let blocks =
        |of: &[&Latencies]| RequestBlocks::of(&of.iter().map(|block| block.each()).collect::<Vec<_>>());
    let services = blocks(&timely.iter().map(|part| &part.times.service).collect::<Vec<_>>());
    let (recorded, undelayed) = (blocks(&responses), (least != responses).then(|| blocks(&least)));
    // Responses may contain a delay of the generator: the lower end of an interval is that of the responses without it.
    let lowered = |found: Pooled, least: Option<Pooled>| {
        let least = least.unwrap_or(found);
        Pooled { low: least.low.min(found.low), least: least.value.min(found.value), ..found }
    };
    let bounded = |of: &dyn Fn(&[&Latencies]) -> Option<Pooled>| Some(lowered(of(&responses)?, of(&least)));
    let quantile = |q: f64| {
        let undelayed = undelayed.as_ref().and_then(|blocks| blocks.quantile(q, level));
        Some(lowered(recorded.quantile(q, level)?, undelayed))
    };
    let longest = bounded(&|blocks| {
        // The longest response time of this load is known exactly.
        let value = blocks.iter().filter_map(|block| block.max()).max()? as f64;
        Some(Pooled { value, low: value, high: Some(value), least: value })
    });
    let mean = bounded(&|blocks| {
        let sums: Vec<_> = blocks.iter().map(|block| (block.sum(), block.count())).collect();
        pooled::mean(&sums, level)
    });
    let figures = [
        ("load.p50", quantile(0.5)),
        ("load.p90", quantile(0.9)),
        ("load.p99", quantile(0.99)),
        ("load.p999", quantile(0.999)),
        ("load.max", longest),
        ("load.mean", mean),
        ("load.service.p50", services.quantile(0.5, level)),
        ("load.service.p99", services.quantile(0.99, level)),
        ("load.errors", pooled::share(&failures, level)),
    ];
    let readings = |(key, found): (&str, Option<Pooled>)| {
        let (metric, found) = metric(key).zip(found)?;
        let of = |(key, values): (String, Vec<f64>)| {
            let one = |value| Reading { key: key.clone(), ..Reading::of(metric, value, SOURCE) };
            (key.clone(), values.into_iter().map(one).collect::<Vec<_>>())
        };
        Some(pooled_readings(found, key).into_iter().map(of).collect::<Vec<_>>())
    };
    figures.into_iter().filter_map(readings).flatten().collect()
}

/// Returns an absent reading of the processor time, if the accounts of a server have windows but none with requests.
pub(super) fn of_empty_accounts<'a>(each: impl Iterator<Item = &'a Vec<(String, f64)>>) -> Option<Reading> {
    let mut each = each.peekable();
    let are_empty = each.peek().is_some() && each.all(Vec::is_empty);
    let why = "no request was answered between two readings of the server’s accounts: use a longer load";
    metric("request.cpu").filter(|_| are_empty).map(|metric| Reading::absent(metric, why))
}

/// Converts the server's own accounts of a window into readings. If requests were due `in_step` with the ticks by which
/// the kernel divides processor time, user and system time are absent.
pub(super) fn of_the_server(each: &[(String, f64)], in_step: bool) -> Vec<Reading> {
    let reading = |(key, value): &(String, f64)| {
        let metric = request_metric(key)?;
        Some(match in_step && KEYS.contains(&key.as_str()) {
            true => Reading::absent(metric, TICKS_IN_STEP),
            false => Reading::of(metric, *value, ACCOUNTS),
        })
    };
    each.iter().filter_map(reading).collect()
}

/// Converts costs, by the keys of counters, into readings of the corresponding metrics.
pub(crate) fn costs<'a>(costs: &'a [(String, f64)], source: &'a str) -> impl Iterator<Item = Reading> + 'a {
    costs.iter().filter_map(move |(key, value)| Some(Reading::of(request_metric(key)?, *value, source)))
}

/// Returns the metric of the amount that a request adds to a counter.
fn request_metric(counter: &str) -> Option<&'static Metric> {
    metric(&format!("request.{}", counter.strip_prefix("time.").unwrap_or(counter)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use scruple_measure::load::RequestCounts;

    #[test]
    fn windows_have_the_rate_of_even_requests_though_they_do_not_divide_evenly() {
        let window = |due: u64, arrived: u64| {
            let counts = RequestCounts { due, ..RequestCounts::default() };
            RunPart { to: 1_000_000_000 / 7, counts, arrived, ..RunPart::default() }
        };
        for (due, arrived, expected) in [(28, 28, 200.0), (29, 29, 200.0), (28, 14, 100.0), (29, 0, 0.0)] {
            let found = rate(&window(due, arrived), Some(200.0)).expect("a rate");
            assert!((found - expected).abs() < 1e-6, "{due} {arrived}: {found}");
        }
        // Differences of more than a request are those of the load.
        let random = rate(&window(35, 35), Some(200.0)).expect("a rate");
        assert!((random - 245.0).abs() < 1e-3, "{random}");
        assert_eq!((rate(&window(0, 0), Some(2.0)), rate(&window(0, 0), None)), (None, Some(0.0)));
    }
}
