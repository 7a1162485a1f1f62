//! Tests that totals and self counts equal callgrind's, and that totals equal cachegrind's where callgrind omits
//! instructions.

use crate::harness::Workshop;
use scruple_measure::calltree::Profile;
use scruple_measure::load::cost::callgrind;
use std::collections::BTreeMap;
use std::path::Path;

/// The number of instructions that callgrind omits at the end. It counts a block when the next one begins, so it
/// omits the last one (the call of `exit_group`), and each block after which a signal arrives.
const LAST_BLOCK: u64 = 2;

/// The total of cachegrind, run so that it does not translate instructions that are not executed.
fn cachegrind(workshop: &Workshop, program: &Path) -> u64 {
    let file = workshop.path().join("cachegrind");
    let option = format!("--cachegrind-out-file={}", file.display());
    let options = ["-q", "--tool=cachegrind", "--cache-sim=no", "--vex-guest-chase=no", "--vgdb=no", &option];
    assert!(workshop.valgrind(&options, program, &[]).status.success());
    let text = std::fs::read_to_string(file).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("summary:")).unwrap();
    line.trim().parse().unwrap()
}

/// Self counts by name, of the program's own functions and of libc's functions that have a symbol.
fn ours(profile: &Profile) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for (function, totals) in profile.functions() {
        if let Some(name) = &function.name {
            *sums.entry(name.clone()).or_default() += totals.own;
        }
    }
    sums
}

fn check(workshop: &Workshop, program: &Path, arguments: &[&str], names: &[&str]) {
    let tree = workshop.tree(program, arguments);
    let file = workshop.path().join("callgrind");
    let option = format!("--callgrind-out-file={}", file.display());
    let output = workshop.valgrind(&["-q", "--tool=callgrind", "--vgdb=no", &option], program, arguments);
    assert!(output.status.success(), "{output:?}");
    let theirs = callgrind::parse(&String::from_utf8_lossy(&std::fs::read(file).unwrap())).unwrap();
    assert_eq!(tree.total, theirs.total + LAST_BLOCK, "{program:?}");
    let ours = ours(&tree);
    for name in names {
        let their: u64 = theirs
            .functions
            .iter()
            .filter(|(function, _)| function.name == *name)
            .map(|(_, costs)| costs.own)
            .sum();
        assert!(their > 0, "callgrind has no {name}");
        assert_eq!(ours.get(*name), Some(&their), "{name}");
    }
}

#[test]
fn counts_are_those_of_callgrind() {
    let Some(workshop) = Workshop::new() else { return };
    let compile = |name: &str, flags: &[&str]| workshop.compile(name, flags);
    check(&workshop, &compile("known.c", &[]), &[], &["main", "first", "second", "leaf"]);
    check(&workshop, &compile("jumps.c", &[]), &[], &["main", "attempt", "deep", "after", "_setjmp"]);
    let tails = compile("tails.c", &["-foptimize-sibling-calls"]);
    check(&workshop, &tails, &[], &["main", "caller", "forward", "target"]);
    let recursion = compile("recursion.c", &["-fno-optimize-sibling-calls"]);
    check(&workshop, &recursion, &[], &["main", "down", "even", "odd", "branching"]);
    check(&workshop, &compile("heap.c", &[]), &[], &["main", "one", "grows", "malloc", "free", "realloc"]);
}

#[test]
fn totals_are_those_of_cachegrind() {
    let Some(workshop) = Workshop::new() else { return };
    let signals = workshop.compile("signals.c", &[]);
    assert_eq!(workshop.tree(&signals, &[]).total, cachegrind(&workshop, &signals));
    let objects = workshop.compile("objects.cc", &["-std=c++17"]);
    assert_eq!(workshop.tree(&objects, &[]).total, cachegrind(&workshop, &objects));
}

#[test]
fn a_stripped_program_has_the_same_total_and_no_invented_names() {
    let Some(workshop) = Workshop::new() else { return };
    let program = workshop.compile("known.c", &["-s"]);
    check(&workshop, &program, &[], &[]);
    let tree = workshop.tree(&program, &[]);
    let path = program.display().to_string();
    for (function, totals) in tree.functions() {
        if function.object.as_deref() == Some(&path) {
            assert_eq!(function.name, None, "{totals:?}");
        }
    }
}
