//! Stores the nets of earlier runs of the same program with the times of a run.

use super::bench_side::BenchSide;
use super::cases::{Cases, Weighed};
use super::effort::MANY;
use super::loaded_code::is_compiled;
use super::readings::own;
use super::record::SuiteRecord;
use scruple_core::judge::bench_cases::{net_estimate, tare_of};
use scruple_core::judge::earlier_runs::EARLIER;
use scruple_core::metric::Pass;
use scruple_core::provenance::Provenance;
use scruple_core::subject::{Arm, Role, Subject};
use scruple_core::unit::Unit;
use scruple_stats::sorting::SortedMap;
use std::collections::HashMap;

/// The number of earlier runs that show how much runs of one program differ.
const RUNS: usize = 10;

/// Stores the nets of earlier runs of the same programs on this class of machine with the times of each case. An
/// unreadable store is ignored here, because writing the run reports it. Nothing is read for very many cases.
pub(super) fn add(sides: &[BenchSide], cases: &Cases, record: &mut SuiteRecord) {
    let run = &record.run;
    let unknown = run.provenance.code.is_none() && !sides.iter().all(is_compiled);
    let Some(store) = record.writer.store() else { return };
    if cases.len() > MANY || unknown {
        return;
    }
    let now = conditions(&run.provenance);
    let runs =
        store.newest_runs(&run.provenance.machine_class, |provenance| conditions(provenance) == now, RUNS);
    let mut nets: HashMap<String, Vec<f64>> = HashMap::new();
    for earlier in runs.unwrap_or_default() {
        for arm in earlier.arms_of(Role::Subject) {
            let named = |weighed: &Weighed| is_same(&run.arms[weighed.arm], arm);
            let net = tare_of(&earlier, arm).and_then(|tare| net_estimate(arm, tare, "time.wall"));
            if let (Some(net), true) = (net, cases.weighed.iter().any(named)) {
                nets.entry(arm.name.clone()).or_default().push(net);
            }
        }
    }
    for weighed in cases.weighed.iter().filter(|weighed| weighed.is_open()) {
        let nets = nets.get(record.name(weighed)).map_or(&[][..], Vec::as_slice);
        for (block, net) in (0..).zip(nets) {
            let reading = own(EARLIER, Unit::Nanoseconds, *net);
            record.keep(weighed.tare, Pass::Timing, block, vec![reading]);
        }
    }
}

/// What must be equal in two runs of the same code under the same conditions.
fn conditions(provenance: &Provenance) -> (Option<&str>, [&SortedMap<String, String>; 3]) {
    let Provenance { programs, libraries, environment, code, .. } = provenance;
    (code.as_deref(), [programs, libraries, environment])
}

fn is_same(now: &Arm, then: &Arm) -> bool {
    let words = |arm: &Arm| match &arm.subject {
        Subject::Case { program, .. } => Some(program.clone()),
        Subject::Command { .. } | Subject::Request { .. } => None,
    };
    now.name == then.name && words(now) == words(then)
}
