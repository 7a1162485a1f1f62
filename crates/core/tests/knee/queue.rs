//! Queues that are simulated request by request.

use scruple_core::knee::{LimitCount, Measurement, RateFigures, Slo};
use scruple_stats::Pcg;
use scruple_stats::quantile::sorted;

/// The parameters of a simulated server.
#[derive(Clone, Copy)]
pub struct SimulatedServer {
    pub workers: usize,
    /// The mean service time in seconds.
    pub service: f64,
    /// Whether service times are exponential. Otherwise they are constant.
    pub exponential: bool,
    /// The length of a pause in service and the time between the beginnings of pauses, in seconds.
    pub pause: Option<(f64, f64)>,
    /// The generator has no core for this many seconds on average, this many times in a second.
    pub absence: Option<(f64, f64)>,
}

/// A simulated response, in seconds.
pub struct Response {
    pub time: f64,
    /// How late the generator was with this request.
    late: f64,
    /// How much of the time may be due to the lateness of the generator with this and earlier requests.
    carried: f64,
}

impl SimulatedServer {
    /// The responses of requests with Poisson arrivals.
    pub fn responses(&self, rate: f64, requests: usize, random: &mut Pcg) -> Vec<Response> {
        let exponential = |random: &mut Pcg, mean: f64| -(1.0 - random.unit()).ln() * mean;
        let mut free = vec![0.0_f64; self.workers];
        let mut due = random.unit();
        let (mut absent, mut carried) = ((0.0, 0.0), 0.0_f64);
        let mut responses = Vec::with_capacity(requests);
        for _ in 0..requests {
            due += exponential(random, 1.0 / rate);
            let mut arrived = due;
            if let Some((length, often)) = self.absence {
                while absent.1 <= due {
                    let from = absent.1 + exponential(random, 1.0 / often);
                    absent = (from, from + exponential(random, length));
                }
                arrived = if due < absent.0 { due } else { absent.1 };
            }
            let takes = if self.exponential { exponential(random, self.service) } else { self.service };
            // A request waits for those that were late before it, until the server has been idle.
            let idle = free.iter().all(|done| *done <= arrived);
            carried = if idle { arrived - due } else { carried.max(arrived - due) };
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
            responses.push(Response { time: done - due, late: arrived - due, carried });
        }
        responses
    }

    /// Measures `requests` requests at `rate` requests per second.
    pub fn measure(&self, slo: &Slo, rate: f64, requests: usize, random: &mut Pcg) -> Measurement {
        const PARTS: usize = 40;
        const STRETCHES: usize = 8;
        let found = self.responses(rate, requests, random);
        let span = requests as f64 / rate * 1e9;
        // The fastest response of the first and of the last quarter tell how long requests waited there.
        let quarter = found.len() / 4;
        let shortest = |part: &[Response]| part.iter().map(|r| r.time).fold(f64::INFINITY, f64::min) * 1e9;
        let behind = (shortest(&found[3 * quarter..]) - shortest(&found[..quarter])).max(0.0) / span;
        let timely = |part: &&[Response]| part.iter().all(|r| r.late * 1e9 <= slo.most_lateness());
        let parts: Vec<&[Response]> = found.chunks(requests.div_ceil(PARTS)).filter(timely).collect();
        let times: Vec<f64> = parts.iter().copied().flatten().map(|r| r.time * 1e9).collect();
        let sorted = sorted(&times);
        let quantile =
            |q: f64| sorted.get(((sorted.len() as f64 * q) as usize).min(sorted.len().max(1) - 1)).copied();
        let mean = sorted.iter().sum::<f64>() / sorted.len() as f64;
        let seen = RateFigures { quantile: &quantile, mean: Some(mean), errors: 0.0, behind };
        let counts = slo.limits.iter().map(|limit| {
            let count = |parts: &[&[Response]]| {
                let beyond = |without: fn(&Response) -> f64| {
                    let all = parts.iter().copied().flatten();
                    all.filter(|r| (r.time - without(r)) * 1e9 >= limit.below).count() as f64
                };
                LimitCount {
                    requests: parts.iter().map(|part| part.len()).sum::<usize>() as f64,
                    beyond: beyond(|_| 0.0),
                    least: beyond(|r| r.carried),
                }
            };
            parts.chunks(parts.len().div_ceil(STRETCHES).max(1)).map(count).collect()
        });
        let outcome = slo.outcome(&seen, parts.len() * 4 < PARTS);
        // The server is on another machine, so it does not wait when the generator does.
        Measurement { rate, outcome, kept_up: seen.kept_up(), counts: counts.collect(), late: 0.0 }
    }

    /// The share of requests that take at least `seconds`, from a simulation of `requests` requests.
    pub fn beyond(&self, rate: f64, seconds: f64, requests: usize) -> f64 {
        let responses = self.responses(rate, requests, &mut Pcg::new(77));
        responses.iter().filter(|response| response.time >= seconds).count() as f64 / requests as f64
    }
}
