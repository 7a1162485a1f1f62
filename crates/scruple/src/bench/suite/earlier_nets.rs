//! Stores the nets of earlier runs of the same program with the times of a run.

use super::programs::BenchSide;
use super::readings::own;
use super::{Cases, SuiteRecord, timing};
use crate::store::Store;
use scruple_core::judge::bench_cases::{net_estimate, tare_of};
use scruple_core::judge::earlier_runs::EARLIER;
use scruple_core::metric::Pass;
use scruple_core::provenance::Provenance;
use scruple_core::run::Run;
use scruple_core::subject::{Arm, Role, Subject};
use scruple_core::unit::Unit;
use std::collections::HashMap;

/// The number of earlier runs that show how much runs of one program differ.
const RUNS: usize = 10;

/// The nets of earlier runs, in nanoseconds, by the name of the case.
#[derive(Default)]
pub(super) struct EarlierNets(HashMap<String, Vec<f64>>);

impl EarlierNets {
    /// Returns what the store has of the same programs on this class of machine. An unreadable store is ignored here,
    /// because writing the run reports it. Nothing is read for very many cases.
    pub(super) fn read(store: &Store, sides: &[BenchSide], cases: &Cases, run: &Run) -> EarlierNets {
        let mut nets: HashMap<String, Vec<f64>> = HashMap::new();
        if cases.len() > timing::MANY || !sides.iter().all(is_compiled) {
            return EarlierNets(nets);
        }
        let code = |provenance: &Provenance| (provenance.programs.clone(), provenance.libraries.clone());
        let own = code(&run.provenance);
        let runs =
            store.newest_runs(&run.provenance.machine_class, |provenance| code(provenance) == own, RUNS);
        for earlier in runs.unwrap_or_default() {
            for arm in earlier.arms_of(Role::Subject) {
                let named = |weighed: &super::Weighed| is_same(&run.arms[weighed.arm], arm);
                let net = tare_of(&earlier, arm).and_then(|tare| net_estimate(arm, tare, "time.wall"));
                if let (Some(net), true) = (net, cases.weighed.iter().any(named)) {
                    nets.entry(arm.name.clone()).or_default().push(net);
                }
            }
        }
        EarlierNets(nets)
    }

    /// Stores the nets with the times of each case.
    pub(super) fn add_to(&self, cases: &Cases, record: &mut SuiteRecord) {
        for weighed in cases.weighed.iter().filter(|weighed| weighed.is_open()) {
            let nets = self.0.get(record.name(weighed)).map_or(&[][..], Vec::as_slice);
            for (block, net) in (0..).zip(nets) {
                let reading = own(EARLIER, Unit::Nanoseconds, *net);
                record.keep(weighed.tare, Pass::Timing, block, vec![reading]);
            }
        }
    }
}

/// Whether the file of the program holds the code that is timed. Where an interpreter runs it, the file is that of the
/// interpreter, and the code may have changed between two runs.
fn is_compiled(side: &BenchSide) -> bool {
    let language = side.hello.as_ref().map(|hello| hello.language.as_str());
    matches!(language, Some("c" | "c++" | "rust" | "haskell" | "go"))
}

fn is_same(now: &Arm, then: &Arm) -> bool {
    let words = |arm: &Arm| match &arm.subject {
        Subject::Case { program, .. } => Some(program.clone()),
        Subject::Command { .. } | Subject::Request { .. } => None,
    };
    now.name == then.name && words(now) == words(then)
}
