//! Queues that are simulated request by request.

use scruple_core::knee::{Count, Measurement, Seen, Slo};
use scruple_core::stats::Pcg;

/// The parameters of a simulated server.
#[derive(Clone, Copy)]
pub struct Server {
    pub workers: usize,
    /// The mean service time in seconds.
    pub service: f64,
    /// Whether service times are exponential. Otherwise they are constant.
    pub exponential: bool,
    /// The length of a pause in service and the time between the beginnings of pauses, in seconds.
    pub pause: Option<(f64, f64)>,
}

impl Server {
    /// The response times in seconds of requests with Poisson arrivals.
    pub fn responses(&self, rate: f64, requests: usize, random: &mut Pcg) -> Vec<f64> {
        let exponential = |random: &mut Pcg, mean: f64| -(1.0 - random.unit()).ln() * mean;
        let mut free = vec![0.0_f64; self.workers];
        let mut arrived = random.unit();
        let mut responses = Vec::with_capacity(requests);
        for _ in 0..requests {
            arrived += exponential(random, 1.0 / rate);
            let takes = if self.exponential { exponential(random, self.service) } else { self.service };
            let first = free.iter_mut().min_by(|a, b| a.total_cmp(b)).expect("a worker");
            let mut done = first.max(arrived) + takes;
            if let Some((length, every)) = self.pause {
                // Pauses that overlap with the service delay its end.
                let began = done - takes;
                let into = began % every;
                if into < length {
                    done += length - into;
                }
                done += length * ((done / every).floor() - (began / every).floor());
            }
            *first = done;
            responses.push(done - arrived);
        }
        responses
    }

    /// Measures `requests` requests at `rate` requests per second.
    pub fn measure(&self, slo: &Slo, rate: f64, requests: usize, random: &mut Pcg) -> Measurement {
        const STRETCHES: usize = 8;
        let responses: Vec<f64> =
            self.responses(rate, requests, random).iter().map(|seconds| seconds * 1e9).collect();
        let mut sorted = responses.clone();
        sorted.sort_by(f64::total_cmp);
        let quantile =
            |q: f64| sorted.get(((sorted.len() as f64 * q) as usize).min(sorted.len() - 1)).copied();
        let span = requests as f64 / rate * 1e9;
        // The fastest response of the first and of the last quarter tell how long requests waited there.
        let quarter = responses.len() / 4;
        let least = |part: &[f64]| part.iter().copied().fold(f64::INFINITY, f64::min);
        let behind = (least(&responses[3 * quarter..]) - least(&responses[..quarter])).max(0.0) / span;
        let mean = responses.iter().sum::<f64>() / responses.len() as f64;
        let seen = Seen { quantile: &quantile, mean: Some(mean), errors: 0.0, behind };
        let counts = slo.limits.iter().map(|limit| {
            let parts = responses.chunks(requests.div_ceil(STRETCHES));
            let count = |part: &[f64]| Count {
                requests: part.len() as f64,
                beyond: part.iter().filter(|response| **response >= limit.below).count() as f64,
            };
            parts.map(count).collect()
        });
        let outcome = slo.outcome(&seen, false);
        Measurement { rate, outcome, kept_up: seen.kept_up(), counts: counts.collect() }
    }

    /// The share of requests that take at least `seconds`, from a simulation of `requests` requests.
    pub fn beyond(&self, rate: f64, seconds: f64, requests: usize) -> f64 {
        let responses = self.responses(rate, requests, &mut Pcg::new(77));
        responses.iter().filter(|response| **response >= seconds).count() as f64 / requests as f64
    }
}
