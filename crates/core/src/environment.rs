//! How the environments of two runs differ, and which metrics can still be compared.
//!
//! Counts of one program are the same on every machine of one architecture, as long as compilers and libraries are the
//! same. Times are not: a time on another machine says nothing about the program.

use crate::evidence::Evidence;
use crate::harmless_text::{plain, shortened};
use crate::judge::Judged;
use crate::metric::{Better, Metric, Quality};
use crate::provenance::Provenance;
use crate::run::Run;
use crate::subject::{Arm, Role, Subject};
use crate::unit::Unit;
use crate::verdict::Comparison;
use scruple_stats::paired::Why;
use scruple_stats::sorting::{self, SortedMap};
use serde::Serialize;

/// An aspect in which environments may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Aspect {
    /// The tool that took the readings.
    Tool,
    /// The instruction set of the processor.
    Architecture,
    /// The processor and its cores.
    Machine,
    /// The kernel, the operating system, the hypervisor, the governor or the memory.
    System,
    /// The compilers of the weighed programs.
    Toolchain,
    /// A shared library, by its content.
    Library,
    /// An environment variable.
    Variable,
    /// The load: how much else ran on the machine.
    Load,
}

/// One difference between two environments.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EnvironmentDifference {
    /// The aspect that differs.
    pub aspect: Aspect,
    /// The name of what differs, as in a sentence: `the kernel`.
    pub name: String,
    /// The value in the reference run; absent where there was none or it was not recorded.
    pub reference: Option<String>,
    /// The value in the other run; absent where there was none or it was not recorded.
    pub run: Option<String>,
}

/// The relation between the environments of two runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Environments {
    /// All differences that were found.
    pub differences: Vec<EnvironmentDifference>,
    /// The command lines that differ between arms of the same name, in the reference and in the other run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<[String; 2]>,
    /// Whether the weighed programs are the same files, byte for byte. What these read or start may differ.
    pub same_programs: bool,
    /// The time from the start of the reference to the start of the other run, in milliseconds.
    pub apart: i64,
}

/// Whether two environments allow a comparison of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparability {
    /// The environments do not affect a difference of the metric.
    Comparable,
    /// The environments may have caused a part of a difference.
    Clouded,
    /// A difference says nothing about the program, for this reason.
    Incomparable(Why),
}

/// Variables that describe the user and the place of work; they do not affect programs.
const PERSONAL: [&str; 5] = ["HOME", "LOGNAME", "PATH", "TMPDIR", "USER"];

/// Two loads differ where their difference per core exceeds this.
const OTHER_LOAD: f64 = 0.5;

impl Environments {
    /// Compares the environments of a reference and another run.
    pub fn of(reference: &Run, run: &Run) -> Environments {
        let (left, right) = (&reference.provenance, &run.provenance);
        let digests = |one: &Provenance| sorting::distinct(one.programs.values().cloned());
        Environments {
            differences: differences(left, right),
            commands: commands(reference, run),
            same_programs: !left.programs.is_empty() && digests(left) == digests(right),
            apart: run.started - reference.started,
        }
    }

    fn has(&self, aspect: Aspect) -> bool {
        self.differences.iter().any(|difference| difference.aspect == aspect)
    }

    /// Whether a metric can be compared across the two environments.
    pub fn comparability(&self, metric: &Metric) -> Comparability {
        let counted = metric.quality <= Quality::Near && metric.unit != Unit::Nanoseconds;
        if self.has(Aspect::Architecture) {
            return Comparability::Incomparable(Why::OtherArchitecture);
        }
        let clouds = |aspects: &[Aspect]| match aspects.iter().any(|aspect| self.has(*aspect)) {
            true => Comparability::Clouded,
            false => Comparability::Comparable,
        };
        match (counted, self.has(Aspect::Machine)) {
            (true, _) => clouds(&[Aspect::Tool, Aspect::Toolchain, Aspect::Library, Aspect::Variable]),
            (false, true) => Comparability::Incomparable(Why::OtherMachine),
            (false, false) if self.differences.is_empty() => Comparability::Comparable,
            (false, false) => Comparability::Clouded,
        }
    }

    /// Replaces every comparison that says nothing about the programs by one without a verdict. The figures stay.
    pub fn withhold(&self, judged: &mut [Judged], declared: impl Fn(&str) -> Metric) {
        for one in judged {
            let metric = declared(&one.metric);
            if let Comparability::Incomparable(why) = self.comparability(&metric) {
                let evidence = &one.comparison.evidence;
                let absent =
                    Evidence::Absent { why, pointing: evidence.effect(), readings: evidence.readings() };
                let lower = metric.better == Better::Lower;
                one.comparison = Comparison::of(absent, lower, one.comparison.margin);
            }
        }
    }

    /// Sentences that a reader needs before any figure: which differences there are, and what they mean for these
    /// metrics, by their titles.
    pub fn sentences(&self, metrics: &[Metric]) -> Vec<String> {
        let mut sentences = vec![self.what_differs()];
        sentences.extend(self.other_commands());
        let titles = |wanted: fn(&Comparability) -> bool| -> Vec<&str> {
            let all = metrics.iter().filter(|metric| wanted(&self.comparability(metric)));
            all.map(|metric| metric.title.as_ref()).collect()
        };
        let lost = titles(|comparability| matches!(comparability, Comparability::Incomparable(_)));
        let kept = titles(|comparability| !matches!(comparability, Comparability::Incomparable(_)));
        let clouded = titles(|comparability| *comparability == Comparability::Clouded);
        if !lost.is_empty() {
            let why = match self.has(Aspect::Architecture) {
                true => "programs of different architectures do different work",
                false => "times of different machines cannot be compared",
            };
            sentences.push(format!("Not compared: {}, since {why}.", lost.join(", ")));
            if !kept.is_empty() {
                sentences.push(format!(
                    "Compared: {}, which are counted, and do not depend on the machine while architecture and toolchain are \
                     the same.",
                    kept.join(", ")
                ));
            }
        }
        if !clouded.is_empty() {
            sentences.push(format!("A difference in {} may come from the environments.", clouded.join(", ")));
        }
        if self.same_programs && self.commands.is_empty() {
            sentences.push(
                "Both runs weighed the same program files, byte for byte: a difference comes from what these read or \
                 start, such as a script, or from the machine."
                    .to_owned(),
            );
        }
        sentences
    }

    /// Says which commands differ, since the runs then measured different work under one name.
    fn other_commands(&self) -> Option<String> {
        let ([reference, run], others) = self.commands.split_first()?;
        let more = match others.len() {
            0 => String::new(),
            count => format!(", and {count} more"),
        };
        Some(format!("The commands differ: ‘{reference}’, then ‘{run}’{more}."))
    }

    fn what_differs(&self) -> String {
        let apart = time_apart(self.apart);
        if self.differences.is_empty() {
            return format!("The runs were taken {apart}, in environments without recorded differences.");
        }
        let shown = |value: &Option<String>| {
            value.as_ref().map_or_else(|| "nothing noted".to_owned(), |text| format!("‘{text}’"))
        };
        let one = |difference: &EnvironmentDifference| {
            format!("{} ({}, then {})", difference.name, shown(&difference.reference), shown(&difference.run))
        };
        let all: Vec<String> = self.differences.iter().map(one).collect();
        format!("The runs were taken {apart}, in environments that differ: {}.", all.join(", "))
    }
}

/// Returns the command lines of arms that have the same name in both runs, or are the only ones, where they differ.
fn commands(reference: &Run, run: &Run) -> Vec<[String; 2]> {
    let subjects = |run: &Run| run.arms_of(Role::Subject).count();
    let alone = subjects(reference) == 1 && subjects(run) == 1;
    let mut found: Vec<[String; 2]> = Vec::new();
    for arm in reference.arms_of(Role::Subject) {
        let same = |other: &&Arm| alone || other.name == arm.name;
        let Some(other) = run.arms_of(Role::Subject).find(same) else { continue };
        let both = [arm, other].map(|arm| command_line(&arm.subject));
        let known = both.iter().all(|one| !one.is_empty());
        if known && both[0] != both[1] && !found.contains(&both) {
            found.push(both);
        }
    }
    found
}

fn command_line(subject: &Subject) -> String {
    let words = match subject {
        Subject::Command { argv } => argv,
        Subject::Case { program, .. } => program,
        Subject::Request { server, .. } => server,
    };
    shortened(&plain(&words.join(" ")), LONGEST_COMMAND)
}

/// The most characters of a command line.
const LONGEST_COMMAND: usize = 100;

fn time_apart(milliseconds: i64) -> String {
    let seconds = milliseconds.unsigned_abs() / 1000;
    let (count, unit) = match seconds {
        0..120 => (seconds, "second"),
        120..7_200 => (seconds / 60, "minute"),
        7_200..172_800 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{} apart", crate::plural::counted(count, unit))
}

/// The differences between two environments.
pub fn differences(left: &Provenance, right: &Provenance) -> Vec<EnvironmentDifference> {
    let mut found = Vec::new();
    let mut add = |aspect, name: &str, reference: Option<String>, run: Option<String>| {
        if reference != run {
            found.push(EnvironmentDifference { aspect, name: name.to_owned(), reference, run });
        }
    };
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let tool = |one: &Provenance| Some(one.tool.clone().unwrap_or_else(|| "scruple".to_owned()));
    add(Aspect::Tool, "the tool", tool(left), tool(right));
    let (of_left, of_right) = (left.architecture(), right.architecture());
    if of_left.is_some() && of_right.is_some() {
        add(Aspect::Architecture, "the architecture", text_of(of_left), text_of(of_right));
    }
    let machine = |one: &Provenance| match &one.tool {
        Some(_) if one.machine_class.ends_with("/unknown") => None,
        _ => text(&one.machine_class),
    };
    add(Aspect::Machine, "the machine", machine(left), machine(right));
    add(Aspect::System, "the hypervisor", left.virtualized.clone(), right.virtualized.clone());
    let memory = |one: &Provenance| {
        // Memory is rounded, since the part that the kernel reserves changes from boot to boot.
        (one.memory > 0).then(|| format!("{} GiB", (one.memory as f64 / f64::from(1 << 30)).round()))
    };
    add(Aspect::System, "memory", memory(left), memory(right));
    add(Aspect::System, "the operating system", text(&left.os), text(&right.os));
    add(Aspect::System, "the kernel", text(&left.kernel), text(&right.kernel));
    add(Aspect::System, "the governor", left.governor.clone(), right.governor.clone());
    // A program without a note of its compiler gives no information about it.
    if !left.toolchains.is_empty() && !right.toolchains.is_empty() {
        let compilers = |one: &Provenance| {
            Some(sorting::distinct(one.toolchains.values().map(String::as_str)).join("; "))
        };
        add(Aspect::Toolchain, "the toolchain", compilers(left), compilers(right));
    }
    for (name, one, other) in joined(&left.libraries, &right.libraries) {
        // A library that only one of two programs uses belongs to the program.
        if one.is_some() && other.is_some() {
            add(Aspect::Library, &format!("the library {name}"), one, other);
        }
    }
    for (name, one, other) in joined(&left.environment, &right.environment) {
        if !PERSONAL.contains(&name) {
            add(Aspect::Variable, &format!("the variable {name}"), one, other);
        }
    }
    let cores = f64::from(left.cores.max(1).min(right.cores.max(1)));
    // Other tools do not record how much else ran.
    let noted = left.tool.is_none() && right.tool.is_none();
    if noted && (left.load - right.load).abs() > OTHER_LOAD * cores {
        let load = |one: &Provenance| Some(format!("{:.1}", one.load));
        add(Aspect::Load, "the load", load(left), load(right));
    }
    found
}

fn text_of(text: Option<&str>) -> Option<String> {
    text.map(str::to_owned)
}

type Joined<'a> = (&'a str, Option<String>, Option<String>);

fn joined<'a>(
    left: &'a SortedMap<String, String>,
    right: &'a SortedMap<String, String>,
) -> impl Iterator<Item = Joined<'a>> {
    let names = sorting::distinct(left.keys().chain(right.keys()).map(String::as_str));
    names.into_iter().map(|name| (name, left.get(name).cloned(), right.get(name).cloned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::metric;

    fn provenance(class: &str, kernel: &str) -> Provenance {
        Provenance {
            machine_class: class.to_owned(),
            kernel: kernel.to_owned(),
            cores: 2,
            ..Provenance::default()
        }
    }

    fn between(left: Provenance, right: Provenance) -> Environments {
        let differences = differences(&left, &right);
        Environments { differences, apart: 200_000_000, ..Environments::default() }
    }

    fn comparability(environments: &Environments, key: &str) -> Comparability {
        environments.comparability(metric(key).expect("a metric"))
    }

    #[test]
    fn counts_stay_comparable_across_machines_and_times_do_not() {
        let apart = between(provenance("epyc/2/x86_64", "6.1"), provenance("xeon/8/x86_64", "6.1"));
        assert_eq!(comparability(&apart, "malloc.bytes"), Comparability::Comparable);
        assert_eq!(comparability(&apart, "instructions"), Comparability::Comparable);
        for key in ["time.wall", "time.cpu", "memory.peak", "gc.time", "load.p99"] {
            assert_eq!(comparability(&apart, key), Comparability::Incomparable(Why::OtherMachine), "{key}");
        }
    }

    #[test]
    fn nothing_is_compared_across_architectures() {
        let apart = between(provenance("epyc/2/x86_64", "6.1"), provenance("m1/2/aarch64", "6.1"));
        for key in ["malloc.bytes", "time.wall"] {
            assert_eq!(
                comparability(&apart, key),
                Comparability::Incomparable(Why::OtherArchitecture),
                "{key}"
            );
        }
    }

    #[test]
    fn another_toolchain_clouds_counts_and_another_kernel_only_times() {
        let with = |compiler: &str| Provenance {
            toolchains: SortedMap::from([("a".to_owned(), compiler.to_owned())]),
            ..provenance("epyc/2/x86_64", "6.1")
        };
        let compilers = between(with("GCC 12"), with("GCC 13"));
        assert_eq!(comparability(&compilers, "malloc.bytes"), Comparability::Clouded);
        let kernels = between(provenance("epyc/2/x86_64", "6.1"), provenance("epyc/2/x86_64", "6.5"));
        assert_eq!(comparability(&kernels, "malloc.bytes"), Comparability::Comparable);
        assert_eq!(comparability(&kernels, "time.cpu"), Comparability::Clouded);
    }

    #[test]
    fn counts_of_a_tool_that_does_not_name_its_machine_are_compared() {
        let mut here = provenance("epyc/2/x86_64", "6.1");
        here.load = 12.0;
        let tool = Some("weigh".to_owned());
        let theirs = Provenance { machine_class: "weigh/unknown".to_owned(), tool, ..Provenance::default() };
        let apart = between(here, theirs);
        assert_eq!(comparability(&apart, "alloc.bytes"), Comparability::Clouded);
        assert_eq!(comparability(&apart, "time.wall"), Comparability::Incomparable(Why::OtherMachine));
        let machine = apart.differences.iter().find(|one| one.aspect == Aspect::Machine).expect("it differs");
        assert_eq!(machine.run, None);
        assert!(apart.differences.iter().all(|one| one.aspect != Aspect::Load), "{:?}", apart.differences);
    }

    #[test]
    fn the_same_program_with_other_arguments_is_other_work() {
        let of = |command: &str, started| {
            let argv = command.split(' ').map(str::to_owned).collect();
            let arm = Arm::new("words", Subject::Command { argv }, Role::Subject);
            let programs = SortedMap::from([("/usr/bin/sort".to_owned(), "c359".to_owned())]);
            Run {
                id: command.to_owned(),
                started,
                provenance: Provenance { programs, ..Provenance::default() },
                ..Run::of(vec![arm])
            }
        };
        let text = |left: &Run, right: &Run| Environments::of(left, right).sentences(&[]).join(" ");
        let plain = of("sort words.txt", 0);
        let again = text(&plain, &of("sort words.txt", 1));
        // The file of an interpreter says nothing about its script.
        assert!(
            again.contains("comes from what these read or start, such as a script")
                && !again.contains("commands"),
            "{again}"
        );
        let unique = text(&plain, &of("sort -u words.txt", 1));
        assert!(
            unique.contains("The commands differ: ‘sort words.txt’, then ‘sort -u words.txt’."),
            "{unique}"
        );
        assert!(!unique.contains("not the program’s"), "{unique}");
    }

    #[test]
    fn a_load_and_a_variable_are_differences_and_a_home_is_none() {
        let mut busy = provenance("epyc/2/x86_64", "6.1");
        busy.load = 12.0;
        busy.environment.insert("MALLOC_ARENA_MAX".to_owned(), "1".to_owned());
        busy.environment.insert("HOME".to_owned(), "/home/someone".to_owned());
        let apart = between(provenance("epyc/2/x86_64", "6.1"), busy);
        let names: Vec<&str> = apart.differences.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["the variable MALLOC_ARENA_MAX", "the load"]);
        let text = apart.sentences(&[metric("time.wall").expect("a metric").clone()]);
        assert_eq!(
            text,
            [
                "The runs were taken 2 days apart, in environments that differ: the variable MALLOC_ARENA_MAX (nothing noted, then ‘1’), the load (‘0.0’, then ‘12.0’).",
                "A difference in wall may come from the environments."
            ]
        );
    }
}
