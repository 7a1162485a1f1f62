//! Merges the readings of several nodes into one run.

use scruple_core::provenance::{Node, Provenance};
use scruple_core::run::{Run, State};
use scruple_core::sample::{BLOCKS_OF_A_PROCESS, Figure, Sample};
use scruple_core::subject::Arm;

/// Merges the runs of units, given in the order of their nodes, into one run with this head. The block numbers of each
/// unit start at another multiple of the number of blocks of a process.
pub fn merged(head: Run, told: impl Iterator<Item = (String, Provenance, Run)>) -> Run {
    let mut whole = Run { state: State::Complete, ..head };
    let mut first: u32 = 0;
    for (node, machine, run) in told {
        use_provenance_of_node(&mut whole.provenance, &machine);
        let blocks = run.arms.iter().flat_map(|arm| arm.figures.values()).filter_map(|figure| match figure {
            Figure::Sample(sample) => sample.blocks.iter().max().copied(),
            Figure::Absent { .. } => None,
        });
        let last = blocks.max().unwrap_or(0);
        let room = (last / BLOCKS_OF_A_PROCESS + 1) * BLOCKS_OF_A_PROCESS;
        whole.provenance.took(&node, &machine.machine_class, first, room);
        whole.provenance.programs.extend(run.provenance.programs);
        whole.provenance.toolchains.extend(run.provenance.toolchains);
        whole.provenance.libraries.extend(run.provenance.libraries);
        whole.terms.looks = whole.terms.looks.max(run.terms.looks);
        for warning in run.warnings {
            whole.warn(&warning.code, format!("{node}: {}", warning.text));
        }
        for arm in run.arms {
            add(&mut whole, arm, &node, first);
        }
        first = first.saturating_add(room);
    }
    whole
}

/// Adds the readings of one unit to the corresponding arm. Creates the arm if it is new.
fn add(whole: &mut Run, arm: Arm, node: &str, first: u32) {
    let is_it = |other: &Arm| {
        other.name == arm.name
            && other.version == arm.version
            && other.role == arm.role
            && other.params == arm.params
    };
    let place = whole.arms.iter().position(is_it).unwrap_or_else(|| {
        whole.arms.push(Arm { figures: Default::default(), course: None, memory: None, ..arm.clone() });
        whole.arms.len() - 1
    });
    let mut absent = Vec::new();
    let known = &mut whole.arms[place];
    known.course = known.course.take().or(arm.course);
    known.memory = known.memory.take().or(arm.memory);
    for (key, figure) in arm.figures {
        let here = match figure {
            Figure::Sample(sample) => {
                let blocks = sample.blocks.iter().map(|block| first.saturating_add(*block)).collect();
                Sample { blocks, ..sample }
            }
            Figure::Absent { absent: why } => {
                match known.figures.get(&key) {
                    Some(Figure::Sample(_)) => absent.push(format!("{key} of ‘{}’: {why}", arm.name)),
                    _ => _ = known.figures.insert(key, Figure::Absent { absent: why }),
                }
                continue;
            }
        };
        match known.figures.get_mut(&key) {
            Some(Figure::Sample(there)) => {
                there.readings.extend(here.readings);
                there.blocks.extend(here.blocks);
                there.quality = there.quality.max(here.quality);
            }
            Some(Figure::Absent { absent: why }) => {
                absent.push(format!("{key} of ‘{}’, not on the nodes before it: {why}", arm.name));
                known.figures.insert(key, Figure::Sample(here));
            }
            None => _ = known.figures.insert(key, Figure::Sample(here)),
        }
    }
    for what in absent {
        whole.warn("absent-on-a-node", format!("not every node could read everything; {node}: {what}"));
    }
}

/// Replaces the provenance of the machine that sends the work by that of the first node, which has measured.
pub fn use_provenance_of_node(provenance: &mut Provenance, node: &Provenance) {
    if provenance.nodes.is_empty() {
        *provenance = Provenance {
            environment: provenance.environment.clone(),
            commit: provenance.commit.clone(),
            dirty: provenance.dirty,
            folder: provenance.folder.clone(),
            nodes: Vec::<Node>::new(),
            ..node.clone()
        };
    }
}
