//! Divides what a server consumed by the requests that it served: fixed + each × requests.
//!
//! The costs of windows of different lengths are regressed on their requests, so that one-time costs (making
//! connections, filling caches) belong to the fixed part and not to the requests. Source: ordinary least squares with
//! Student's t; two windows give a line but no interval.

use scruple_stats::{Interval, normal, ols};
use serde::{Deserialize, Serialize};

/// The cost of requests in one metric.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PerRequest {
    /// The cost of one more request, in the unit of the metric.
    pub each: Bounds,
    /// The cost of a window itself, in the unit of the metric.
    pub fixed: Bounds,
    /// The share of the variance of the costs that the line explains.
    pub r_squared: f64,
    /// The number of windows.
    pub windows: usize,
}

/// A value with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    /// The value.
    pub value: f64,
    /// The interval at the requested level; absent where there are too few readings.
    pub interval: Option<Interval>,
}

impl PerRequest {
    /// The most that a request costs, if the cost is below resolution: the windows with more requests cost no more
    /// than the others, so the fit gives no positive cost, but its interval does.
    pub fn below_resolution(&self) -> Option<f64> {
        self.each.interval.map(|interval| interval.high).filter(|high| self.each.value <= 0.0 && *high > 0.0)
    }
}

impl Bounds {
    /// Multiplies both the value and the interval by `factor`.
    pub fn times(self, factor: f64) -> Bounds {
        let scaled = |Interval { low, high, level }| {
            let (a, b) = (low * factor, high * factor);
            Interval { low: a.min(b), high: a.max(b), level }
        };
        Bounds { value: self.value * factor, interval: self.interval.map(scaled) }
    }

    /// Raises the value and both ends of the interval to `least` where they are below it, in the unit of the value.
    pub fn at_least(self, least: f64) -> Bounds {
        let raised =
            |Interval { low, high, level }| Interval { low: low.max(least), high: high.max(least), level };
        Bounds { value: self.value.max(least), interval: self.interval.map(raised) }
    }

    /// Lowers the value and the ends of the interval to those of a figure that contains this one.
    ///
    /// ```
    /// use scruple_core::per_request::Bounds;
    /// use scruple_stats::Interval;
    ///
    /// let of = |value, low, high| Bounds { value, interval: Some(Interval { low, high, level: 0.95 }) };
    /// assert_eq!(of(15.0, 12.0, 18.0).at_most(of(13.0, 11.0, 14.0)), of(13.0, 12.0, 14.0));
    /// ```
    pub fn at_most(self, whole: Bounds) -> Bounds {
        let most = whole.interval.map_or(f64::INFINITY, |interval| interval.high);
        let lowered =
            |Interval { low, high, level }| Interval { low: low.min(most), high: high.min(most), level };
        Bounds { value: self.value.min(whole.value), interval: self.interval.map(lowered) }
    }

    /// Widens the interval of a part of `whole` to what is known of its `share` (from 0 to 1) where this many observed
    /// instants decide which part they belong to: Wilson's interval of a share (1927).
    pub fn divided_by_ticks(self, whole: Bounds, share: f64, ticks: f64) -> Bounds {
        let Some((own, all)) = self.interval.zip(whole.interval).filter(|_| share.is_finite()) else {
            return self;
        };
        let z = normal::quantile(0.5 + own.level / 2.0);
        let middle = share + z * z / (2.0 * ticks);
        let half = z * (share * (1.0 - share) / ticks + z * z / (4.0 * ticks * ticks)).sqrt();
        let end = |end: f64| (end / (1.0 + z * z / ticks)).clamp(0.0, 1.0);
        let (low, high) = (all.low * end(middle - half), all.high * end(middle + half));
        Bounds { interval: Some(Interval { low: own.low.min(low), high: own.high.max(high), ..own }), ..self }
    }

    /// Whether the interval excludes zero.
    pub fn is_certain(self) -> bool {
        self.interval.is_some_and(|interval| interval.low > 0.0 || interval.high < 0.0)
    }
}

/// Fits the costs of windows to their requests. `level` is the confidence level of the intervals, such as 0.95.
///
/// `None` when the windows do not have at least two different numbers of requests, or a number is not finite.
///
/// ```
/// use scruple_core::per_request::fit;
///
/// // Windows of 100, 200 and 300 requests: 50 once, and 7 for each request.
/// let found = fit(&[100.0, 200.0, 300.0], &[750.0, 1450.0, 2150.0], 0.95).expect("three windows");
/// assert!((found.each.value - 7.0).abs() < 1e-9 && (found.fixed.value - 50.0).abs() < 1e-9);
/// ```
pub fn fit(requests: &[f64], costs: &[f64], level: f64) -> Option<PerRequest> {
    fit_by(requests, requests, costs, level)
}

/// Fits the costs of windows to their requests, by what the windows were planned to be: `planned` has their lengths, in
/// any unit. A saturated server handles fewer requests in the same processor time if other work slows it down, and least
/// squares then take most of the cost of requests for that of windows. The planned lengths do not depend on that.
///
/// They are the instrument of the regression: the slope is the covariance of lengths and costs divided by that of lengths
/// and requests. Source: Wald (1940). Where the lengths hardly explain the numbers of requests, it is [`fit`]: the rule is
/// that of Staiger & Stock (1997), F > 10.
///
/// `None` as for [`fit`].
pub fn fit_planned(planned: &[f64], requests: &[f64], costs: &[f64], level: f64) -> Option<PerRequest> {
    let explained = ols::fit(planned, requests).map_or(0.0, |line| line.r_squared);
    let is_strong = explained * (requests.len() as f64 - 2.0) > STRONG * (1.0 - explained);
    fit_by(if is_strong { planned } else { requests }, requests, costs, level)
}

/// The smallest F with which planned lengths explain the numbers of requests well enough.
const STRONG: f64 = 10.0;

/// Fits the line with this instrument; the requests themselves give least squares.
fn fit_by(instrument: &[f64], requests: &[f64], costs: &[f64], level: f64) -> Option<PerRequest> {
    let line = ols::fit(requests, costs)?;
    let n = requests.len();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / n as f64;
    let (mean_instrument, mean_requests, mean_costs) = (mean(instrument), mean(requests), mean(costs));
    let from_mean = || instrument.iter().map(|one| one - mean_instrument);
    let with_requests: f64 = from_mean().zip(requests).map(|(z, x)| z * (x - mean_requests)).sum();
    let slope = from_mean().zip(costs).map(|(z, y)| z * (y - mean_costs)).sum::<f64>() / with_requests;
    let intercept = mean_costs - slope * mean_requests;
    let variance_factor = from_mean().map(|z| z * z).sum::<f64>() / (with_requests * with_requests);
    let residual: f64 = requests.iter().zip(costs).map(|(x, y)| (y - intercept - slope * x).powi(2)).sum();
    let t = (n >= 3 && level > 0.0 && level < 1.0).then(|| normal::student(level, (n - 2) as f64));
    let bounds = |value: f64, variance_factor: f64| {
        let interval = t.map(|t| {
            let half = t * (residual / (n - 2) as f64 * variance_factor).sqrt();
            Interval { low: value - half, high: value + half, level }
        });
        Bounds { value, interval }
    };
    let fixed = bounds(intercept, 1.0 / n as f64 + mean_requests * mean_requests * variance_factor);
    let each = bounds(slope, variance_factor);
    Some(PerRequest { each, fixed, r_squared: line.r_squared, windows: n })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saturated_server_that_is_slowed_down_now_and_then_has_the_cost_of_its_requests() {
        // It has the whole of a core, and a request takes 30 or 75 µs of it.
        let planned: Vec<f64> = [1.0, 3.0, 2.0, 2.0, 1.0, 3.0].repeat(4);
        let costs: Vec<f64> = planned.iter().map(|length| 1e8 * length).collect();
        let took = |window: usize| if window * window % 5 < 2 { 30e3 } else { 75e3 };
        let requests: Vec<f64> = costs.iter().enumerate().map(|(window, cost)| cost / took(window)).collect();
        let truth = costs.iter().sum::<f64>() / requests.iter().sum::<f64>();
        let of = |found: Option<PerRequest>| found.and_then(|found| found.each.interval).expect("windows");
        let found = of(fit_planned(&planned, &requests, &costs, 0.95));
        assert!(found.low < truth && truth < found.high && found.low > truth / 2.0, "{found:?} {truth}");
        assert!(of(fit(&requests, &costs, 0.95)).high < truth);
    }

    #[test]
    fn lengths_that_do_not_explain_the_requests_change_nothing() {
        let (requests, costs) = ([100.0, 300.0, 200.0, 400.0], [750.0, 2150.0, 1400.0, 2900.0]);
        assert_eq!(fit_planned(&[1.0; 4], &requests, &costs, 0.95), fit(&requests, &costs, 0.95));
        assert_eq!(fit_planned(&[2.0, 1.0, 2.0, 1.5], &requests, &costs, 0.95), fit(&requests, &costs, 0.95));
        assert_eq!(fit_planned(&[1.0, 2.0], &[5.0, 5.0], &[1.0, 2.0], 0.95), None);
    }

    #[test]
    fn nine_ticks_do_not_divide_a_time_that_is_known_exactly() {
        let of = |value: f64| {
            let interval = Interval { low: value * 0.9, high: value * 1.1, level: 0.95 };
            Bounds { value, interval: Some(interval) }
        };
        let found = |part: f64, share: f64, ticks: f64| {
            of(part).divided_by_ticks(of(30_000.0), share, ticks).interval.expect("an interval")
        };
        let few = found(15_000.0, 0.5, 9.0);
        assert!(few.low < 8_000.0 && few.high > 22_000.0, "{few:?}");
        let many = found(15_000.0, 0.5, 90_000.0);
        assert!((13_400.0..13_450.0).contains(&many.low), "{many:?}");
        assert!((16_550.0..16_650.0).contains(&many.high), "{many:?}");
        // Nine ticks, none of which fell into this part, leave up to a third of the time to it.
        let none = found(0.0, 0.0, 9.0);
        assert!(none.low == 0.0 && (9_000.0..11_000.0).contains(&none.high), "{none:?}");
    }

    #[test]
    fn exact_costs_are_found_exactly() {
        let requests = [1000.0, 2000.0, 4000.0, 1000.0];
        let costs = requests.map(|n| 350.0 + 116.25 * n);
        let cost = fit(&requests, &costs, 0.95).expect("a line");
        assert!((cost.each.value - 116.25).abs() < 1e-9 && (cost.fixed.value - 350.0).abs() < 1e-6);
        let interval = cost.each.interval.expect("four windows");
        assert!(interval.high - interval.low < 1e-9 && cost.each.is_certain());
    }

    /// The interval that R gives for `confint(lm(y1 ~ x1, anscombe))`.
    #[test]
    fn intervals_agree_with_r() {
        let x = [10.0, 8.0, 13.0, 9.0, 11.0, 14.0, 6.0, 4.0, 12.0, 7.0, 5.0];
        let y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68];
        let cost = fit(&x, &y, 0.95).expect("a line");
        let close =
            |i: Interval, low: f64, high: f64| (i.low - low).abs() < 1e-6 && (i.high - high).abs() < 1e-6;
        assert!(close(cost.each.interval.expect("eleven"), 0.233_370_136, 0.766_811_682), "{:?}", cost.each);
        assert!(
            close(cost.fixed.interval.expect("eleven"), 0.455_736_900, 5.544_444_918),
            "{:?}",
            cost.fixed
        );
    }

    #[test]
    fn too_little_gives_no_interval_or_nothing() {
        let two = fit(&[1.0, 2.0], &[3.0, 5.0], 0.95).expect("a line");
        assert_eq!((two.each.value, two.each.interval, two.each.is_certain()), (2.0, None, false));
        assert_eq!(fit(&[5.0, 5.0, 5.0], &[1.0, 2.0, 3.0], 0.95), None);
    }
}
