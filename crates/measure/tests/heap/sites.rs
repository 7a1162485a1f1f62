//! Tests where allocations are found to be made: every one, and samples of them.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

use scruple_code::allocation_sites::{HeapAmounts, HeapSites, MemoryBlocks, SiteCounting};
use scruple_measure::heap::{HeapSession, SiteSampling, Totals};

use crate::harness::Workshop;

/// The sites and totals of a command.
pub fn sites_of(
    workshop: &Workshop,
    sampling: SiteSampling,
    command: &mut Command,
) -> (Vec<HeapSites>, Totals) {
    let session = HeapSession::start_with_sites(workshop.path(), sampling).unwrap();
    command.envs(session.environment(None)).output().unwrap();
    let totals = session.read().unwrap();
    (session.read_sites(&totals).unwrap(), totals)
}

/// The sites of a program of one process, every allocation recorded.
fn every(workshop: &Workshop, program: &Path, words: &[&str]) -> HeapSites {
    let (mut all, _) = sites_of(workshop, SiteSampling::EVERY, Command::new(program).args(words));
    assert_eq!(all.len(), 1);
    all.remove(0)
}

/// The names on the path to a context, innermost first.
pub fn names(sites: &HeapSites, context: usize) -> Vec<&str> {
    let path = sites.path(context).into_iter().rev();
    path.map(|context| sites.frames[sites.contexts[context].frame].name.as_str()).collect()
}

/// The contexts that allocate by themselves in the function of this name.
fn contexts_of<'a>(sites: &'a HeapSites, name: &'a str) -> impl Iterator<Item = usize> + 'a {
    let own = |context: &usize| sites.contexts[*context].own.allocated.blocks > 0;
    let named = move |context: &usize| names(sites, *context)[0] == name;
    (0..sites.contexts.len()).filter(own).filter(named)
}

/// The sum of what a function allocates by itself.
fn amounts_of(sites: &HeapSites, name: &str) -> HeapAmounts {
    let mut sum = HeapAmounts::default();
    contexts_of(sites, name).for_each(|context| sum += sites.contexts[context].own);
    sum
}

fn blocks(blocks: u64, bytes: u64) -> MemoryBlocks {
    MemoryBlocks { blocks, bytes }
}

#[test]
fn every_allocation_is_attributed_to_its_function() {
    let workshop = Workshop::new();
    let program = workshop.c("planted.c", &[]);
    let sites = every(&workshop, &program, &[]);
    assert_eq!((sites.counting, sites.unseen.as_slice()), (SiteCounting::Exact, &[][..]));
    assert_eq!(sites.sum(), sites.total);
    let many = HeapAmounts { allocated: blocks(10_000, 500_000), ..HeapAmounts::default() };
    assert_eq!(amounts_of(&sites, "many"), many);
    let kept = blocks(1000, 200_000);
    // The peak is in the last call of `large`, before the last of `kept`.
    let at_peak = blocks(900, 180_000);
    assert_eq!(amounts_of(&sites, "kept"), HeapAmounts { allocated: kept, at_peak, at_end: kept });
    assert_eq!(amounts_of(&sites, "large").allocated, blocks(10, 300_000));
    assert_eq!(amounts_of(&sites, "large").at_peak, blocks(1, 30_000));
    let context = contexts_of(&sites, "kept").next().unwrap();
    assert_eq!(names(&sites, context)[..3], ["kept", "work", "main"]);
    assert!(sites.course.points.windows(2).all(|pair| pair[0].0 <= pair[1].0));
    let highest = sites.course.points.iter().map(|point| point.1).max();
    assert_eq!(highest, Some(sites.total.at_peak.bytes));
}

#[test]
fn nothing_recorded_is_lost_at_exit_without_ceremony_or_by_a_signal() {
    let workshop = Workshop::new();
    let program = workshop.c("planted.c", &[]);
    for end in ["_exit", "kill"] {
        let sites = every(&workshop, &program, &[end]);
        assert_eq!(sites.sum(), sites.total, "{end}");
        assert_eq!(amounts_of(&sites, "kept").at_end, blocks(1000, 200_000), "{end}");
    }
    let status = Command::new(&program).arg("kill").status().unwrap();
    assert_eq!(status.signal(), Some(9));
}

#[test]
fn samples_give_the_shares_of_planted_functions_within_their_intervals() {
    let workshop = Workshop::new();
    let program = workshop.c("planted.c", &[]);
    let mut misses = 0;
    for seed in 1..=20 {
        let sampling = SiteSampling { mean: 4096, seed };
        let mut command = Command::new(&program);
        let (all, totals) = sites_of(&workshop, sampling, command.args(["return", "40"]));
        let sites = &all[0];
        assert_eq!(sites.total.allocated, blocks(44_040, 4_000_000));
        assert_eq!(totals.counts().bytes, 4_000_000);
        for (name, truth) in [("many", 0.5), ("large", 0.3), ("kept", 0.2)] {
            let belongs = |context: usize| names(sites, context)[0] == name;
            let share = sites.share(|one| one.allocated, belongs, 0.95).unwrap();
            misses += u32::from(!share.contains(truth));
            assert!(share.high - share.low < 0.12, "{name}: {share:?}");
        }
        // The probability that one of these is wrong with a right program is below 10⁻⁶.
        let live = amounts_of(sites, "kept").at_end.bytes as f64;
        assert!((live / 800_000.0 - 1.0).abs() < 0.36, "{live}");
    }
    // 60 intervals of 95 % miss 3 on average, and more than 12 with a probability of 10⁻⁵.
    assert!(misses <= 12, "{misses}");
}

#[test]
fn one_seed_gives_the_same_samples_in_two_runs() {
    let workshop = Workshop::new();
    let program = workshop.c("planted.c", &[]);
    let sample = |seed| {
        let sampling = SiteSampling { mean: 10_000, seed };
        sites_of(&workshop, sampling, &mut Command::new(&program)).0[0].sum()
    };
    assert_eq!(sample(7), sample(7));
    assert_ne!(sample(7).allocated, sample(8).allocated);
}

#[test]
fn all_functions_of_a_recursion_are_found_without_frame_pointers() {
    let workshop = Workshop::new();
    for flags in [&["-O2", "-g", "-fomit-frame-pointer"][..], &["-O2"], &["-O0"], &["-O1"]] {
        let program = workshop.c("deep.c", flags);
        let sites = every(&workshop, &program, &["100"]);
        let context = contexts_of(&sites, "leaf").next().unwrap();
        let names = names(&sites, context);
        let expected: Vec<&str> =
            (1..=100).map(|level| if level % 2 == 1 { "even" } else { "odd" }).collect();
        assert_eq!(names[1..101], expected, "{flags:?}");
        assert_eq!(names[101], "main", "{flags:?}");
        assert_eq!(sites.unseen, [""; 0], "{flags:?}");
    }
}

#[test]
fn a_stack_that_is_too_deep_is_marked_as_cut() {
    let workshop = Workshop::new();
    let program = workshop.c("deep.c", &["-O1"]);
    let sites = every(&workshop, &program, &["20000"]);
    let context = contexts_of(&sites, "leaf").next().unwrap();
    let names = names(&sites, context);
    assert!(names.len() > 200 && names[1] == "even" && names[2] == "odd", "{}", names.len());
    let outermost = names.last().unwrap();
    assert!(outermost.starts_with("(callers unknown: the stack is longer"), "{outermost}");
    assert!(
        sites.unseen.iter().any(|phrase| phrase.contains("of 1 recorded allocation")),
        "{:?}",
        sites.unseen
    );
}

#[test]
fn callers_of_a_function_without_unwinding_entries_are_marked_as_unknown() {
    let workshop = Workshop::new();
    let flags = ["-shared", "-fPIC", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"];
    let library = workshop.c("bare.c", &[&flags[..], &["-Wl,-soname,bare"]].concat());
    let program = workshop.c("calls_bare.c", &[library.to_str().unwrap()]);
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", workshop.path());
    let (all, _) = sites_of(&workshop, SiteSampling::EVERY, &mut command);
    let context = contexts_of(&all[0], "inner").next().unwrap();
    let names = names(&all[0], context);
    assert_eq!(names, ["inner", "bare", "(callers unknown: code without unwinding entries)"]);
}

#[test]
fn allocations_of_signal_handlers_have_the_interrupted_functions_as_callers() {
    let workshop = Workshop::new();
    let program = workshop.c("handler.c", &[]);
    let sites = every(&workshop, &program, &[]);
    let of = |handler: &str| {
        let context = contexts_of(&sites, "allocate").find(|context| names(&sites, *context)[1] == handler);
        names(&sites, context.unwrap())
    };
    let same = of("on_same_stack");
    assert!(same.contains(&"interrupted") && same.contains(&"main"), "{same:?}");
    let other = of("on_other_stack");
    assert!(other.last().unwrap().starts_with("(callers unknown: another stack"), "{other:?}");
}

#[test]
fn threads_have_their_own_stacks() {
    let workshop = Workshop::new();
    let program = workshop.c("threads.c", &["-pthread"]);
    for words in [&["8", "1000"][..], &["8", "1000", "together"]] {
        let sites = every(&workshop, &program, words);
        let work = amounts_of(&sites, "work");
        assert_eq!((work.allocated, work.at_end), (blocks(8000, 800_000), blocks(8, 800)));
        assert_eq!(sites.sum().allocated, sites.total.allocated);
        let context = contexts_of(&sites, "work").next().unwrap();
        assert!(names(&sites, context).contains(&"start_thread"), "{:?}", names(&sites, context));
    }
}

#[test]
fn forked_processes_have_sites_of_their_own() {
    let workshop = Workshop::new();
    let program = workshop.c("forks.c", &[]);
    for kind in ["fork", "_Fork", "clone"] {
        let (all, totals) = sites_of(&workshop, SiteSampling::EVERY, Command::new(&program).arg(kind));
        let sums: Vec<MemoryBlocks> = all.iter().map(|sites| amounts_of(sites, "take").allocated).collect();
        assert_eq!(sums, [blocks(10, 10_000), blocks(3, 150), blocks(2, 140)], "{kind}");
        for (sites, process) in all.iter().zip(&totals.processes) {
            assert_eq!(sites.process, process.pid);
        }
        // With the blocks that each has from its parent.
        let live = [blocks(10, 10_000), blocks(13, 10_150), blocks(15, 10_290)];
        assert_eq!(all.iter().map(|sites| sites.total.at_end).collect::<Vec<_>>(), live, "{kind}");
        assert_eq!(all.iter().map(|sites| sites.total.at_peak).collect::<Vec<_>>(), live, "{kind}");
    }
    // A child of vfork runs in its parent's memory.
    let (all, _) = sites_of(&workshop, SiteSampling::EVERY, Command::new(&program).arg("vfork"));
    assert_eq!(amounts_of(&all[0], "take").allocated, blocks(15, 10_250));
    assert_eq!(all[0].unseen, [""; 0]);
}

#[test]
fn libraries_that_are_loaded_and_unloaded_are_distinguished() {
    let workshop = Workshop::new();
    let build = |name: &str| {
        let output = workshop.path().join(format!("lib{name}.so"));
        let define = format!("-DNAME={name}");
        workshop.compile_as(&output, "cc", "calling_plugin.c", &["-shared", "-fPIC", &define])
    };
    let (first, other) = (build("first_"), build("other_"));
    let program = workshop.c("plugins.c", &["-ldl"]);
    let sites = every(&workshop, &program, &[first.to_str().unwrap(), other.to_str().unwrap()]);
    for (name, sum) in [("first_", blocks(20, 6000)), ("other_", blocks(20, 10_000))] {
        assert_eq!(amounts_of(&sites, name).allocated, sum);
        let context = contexts_of(&sites, name).next().unwrap();
        assert_eq!(names(&sites, context)[1..4], ["allocate", "use", "main"]);
    }
    assert_eq!(sites.sum(), sites.total);
}

#[test]
fn every_entry_point_is_recorded() {
    let workshop = Workshop::new();
    let program = workshop.c("entry_points.c", &[]);
    for end in ["return", "_exit", "kill"] {
        let sites = every(&workshop, &program, &[end]);
        assert_eq!(sites.sum(), sites.total, "{end}");
        assert_eq!(sites.unseen, [""; 0]);
    }
}

#[test]
fn a_file_that_was_changed_since_is_not_read() {
    let workshop = Workshop::new();
    let program = workshop.c("planted.c", &[]);
    let session = HeapSession::start_with_sites(workshop.path(), SiteSampling::EVERY).unwrap();
    assert!(Command::new(&program).envs(session.environment(None)).status().unwrap().success());
    std::fs::remove_file(&program).unwrap();
    workshop.c("deep.c", &[]);
    std::fs::rename(workshop.path().join("deep"), &program).unwrap();
    let sites = session.read_sites(&session.read().unwrap()).unwrap().remove(0);
    assert_eq!(sites.sum(), sites.total);
    assert!(
        sites.unseen.iter().any(|phrase| phrase.contains("a file that was changed since")),
        "{:?}",
        sites.unseen
    );
    assert!(!sites.frames.iter().any(|frame| frame.name == "leaf" || frame.name == "odd"));
}

#[test]
fn children_that_are_forked_while_threads_are_recorded_are_recorded_as_well() {
    let workshop = Workshop::new();
    let program = workshop.c("forking_threads.c", &["-pthread"]);
    let session =
        HeapSession::start_with_sites(workshop.path(), SiteSampling { mean: 500, seed: 3 }).unwrap();
    assert!(Command::new(&program).envs(session.environment(None)).status().unwrap().success());
    let totals = session.read().unwrap();
    let sites = session.read_sites(&totals).unwrap();
    assert_eq!(sites.len(), 201);
    // At least one block of a child is chosen with probability 1 - exp(-2), which makes 173 of 200, give or take 5.
    let with: usize =
        sites[1..].iter().filter(|sites| contexts_of(sites, "in_child").next().is_some()).count();
    assert!((140..=195).contains(&with), "{with}");
}
