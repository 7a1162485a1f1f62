//! Merges the readings of several nodes into one run.

use scruple_core::judge::{POOLED, pooled};
use scruple_core::provenance::{Node, Provenance};
use scruple_core::run::{Run, RunState};
use scruple_core::sample::{BLOCKS_OF_A_PROCESS, Figure, Sample};
use scruple_core::subject::{Arm, LoadCourse};
use scruple_stats::pooled::Pooled;
use scruple_stats::sorting::SortedMap;

/// Merges the runs of units, given in the order of their nodes, into one run with this head. The block numbers of each
/// unit start at another multiple of the number of blocks of a process.
pub fn merged(head: Run, units: impl Iterator<Item = (String, Provenance, Run)>) -> Run {
    let mut whole = Run { state: RunState::Complete, ..head };
    let head_says = whole.warnings.clone();
    let mut loads = UnitLoads::default();
    let mut first: u32 = 0;
    for (node, machine, run) in units {
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
        // Remarks of the head appear once for all nodes.
        for warning in run.warnings.into_iter().filter(|warning| !head_says.contains(warning)) {
            whole.warn(&warning.code, format!("{node}: {}", warning.text));
        }
        for arm in run.arms {
            add(&mut whole, loads.take(arm), &node, first);
        }
        first = first.saturating_add(room);
    }
    loads.put_into(&mut whole);
    whole
}

/// The results of the loads of several units for each arm, other than their windows.
#[derive(Default)]
struct UnitLoads {
    courses: SortedMap<String, Vec<LoadCourse>>,
    /// The pooled figures, by the arm and the key.
    pooled: SortedMap<(String, String), Vec<Sample>>,
}

impl UnitLoads {
    /// Takes the course and the pooled figures out of an arm.
    fn take(&mut self, mut arm: Arm) -> Arm {
        if let Some(course) = arm.course.take() {
            self.courses.entry(arm.name.clone()).or_default().push(course);
        }
        let keys: Vec<String> = arm.figures.keys().filter(|key| key.ends_with(POOLED)).cloned().collect();
        for key in keys {
            if let Some(Figure::Sample(sample)) = arm.figures.remove(&key) {
                self.pooled.entry((arm.name.clone(), key)).or_default().push(sample);
            }
        }
        arm
    }

    /// Adds what the units say together.
    fn put_into(self, whole: &mut Run) {
        for arm in &mut whole.arms {
            arm.course = self.courses.get(&arm.name).map(|courses| LoadCourse::join_courses(courses.clone()));
        }
        for ((name, key), samples) in self.pooled {
            let Some(arm) = whole.arms.iter_mut().find(|arm| arm.name == name) else { continue };
            if let Some(sample) = pool_samples(samples) {
                arm.figures.insert(key, Figure::Sample(sample));
            }
        }
    }
}

/// Returns the pooled figure of several units.
fn pool_samples(mut samples: Vec<Sample>) -> Option<Sample> {
    if samples.len() < 2 {
        return samples.pop();
    }
    let figures: Option<Vec<Pooled>> = samples.iter().map(pooled::figure).collect();
    let figure = pooled::of_nodes(&figures?)?;
    let readings: Vec<f64> =
        [Some(figure.value), Some(figure.low), figure.high].into_iter().flatten().collect();
    let blocks = (0..readings.len() as u32).collect();
    Some(Sample { readings, blocks, source: pooled::OF_NODES.to_owned(), ..samples.pop()? })
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

#[cfg(test)]
mod tests {
    use super::*;
    use scruple_core::metric::{Pass, Quality, metric};
    use scruple_core::run::Terms;
    use scruple_core::sample::Reading;
    use scruple_core::subject::{Role, Subject};

    /// The readings of a node: requested bytes, or why it could not read them, in each of some blocks.
    fn node(name: &str, bytes: &[(u32, Result<f64, &str>)], quality: Quality) -> (String, Provenance, Run) {
        let command = Subject::Command { argv: vec!["app".to_owned()] };
        let mut arm = Arm::new("app".to_owned(), command, Role::Subject);
        let metric = metric("malloc.bytes").expect("a metric");
        for (block, value) in bytes {
            let read = Reading::of(metric, 0.0, "a test").with_quality(quality);
            let reading = Reading { value: value.map_err(str::to_owned), ..read };
            crate::store::add_readings(&mut arm, [reading], Pass::Counting, *block);
        }
        let mut run = crate::new_run::empty_run(Some(1), None, Terms::default(), &[]);
        run.arms.push(arm);
        (name.to_owned(), Provenance::default(), run)
    }

    fn joined(nodes: Vec<(String, Provenance, Run)>) -> Run {
        merged(crate::new_run::empty_run(Some(1), None, Terms::default(), &[]), nodes.into_iter())
    }

    #[test]
    fn blocks_of_nodes_are_apart_and_the_least_exact_quality_counts() {
        let last = BLOCKS_OF_A_PROCESS;
        let run = joined(vec![
            node("a", &[(0, Ok(5.0)), (last, Ok(6.0))], Quality::Exact),
            node("b", &[(0, Ok(7.0)), (1, Ok(8.0))], Quality::Near),
            node("c", &[(0, Ok(9.0))], Quality::Exact),
        ]);
        let sample = run.arms[0].sample("malloc.bytes").expect("readings");
        assert_eq!(sample.readings, [5.0, 6.0, 7.0, 8.0, 9.0]);
        assert_eq!(sample.blocks, [0, last, 2 * last, 2 * last + 1, 3 * last]);
        assert_eq!(sample.quality, Quality::Near);
        let nodes: Vec<&str> = run.provenance.nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(nodes, ["a", "b", "c"]);
    }

    #[test]
    fn what_one_node_could_not_read_is_said_wherever_it_stands() {
        let (read, not_read) = (
            || node("a", &[(0, Ok(5.0))], Quality::Exact),
            || node("b", &[(0, Err("static program"))], Quality::Exact),
        );
        for nodes in [vec![read(), not_read()], vec![not_read(), read()]] {
            let run = joined(nodes);
            assert_eq!(run.arms[0].sample("malloc.bytes").map(|sample| sample.readings.len()), Some(1));
            let texts: Vec<&str> = run.warnings.iter().map(|warning| warning.text.as_str()).collect();
            assert!(texts.len() == 1 && texts[0].contains("static program"), "{texts:?}");
        }
        let run = joined(vec![not_read(), not_read()]);
        assert_eq!(run.arms[0].absent("malloc.bytes"), Some("static program"));
    }
    #[test]
    fn what_the_head_says_is_not_said_again_for_each_node() {
        let mut head = crate::new_run::empty_run(Some(1), None, Terms::default(), &[]);
        head.warn("limits", "not checked");
        let (mut one, mut other) = (node("a", &[], Quality::Exact), node("b", &[], Quality::Exact));
        one.2.warn("limits", "not checked");
        other.2.warn("limits", "not readable");
        let run = merged(head, [one, other].into_iter());
        let texts: Vec<&str> = run.warnings.iter().map(|warning| warning.text.as_str()).collect();
        assert_eq!(texts, ["not checked", "b: not readable"]);
    }
}
