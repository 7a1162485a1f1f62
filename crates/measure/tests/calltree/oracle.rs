//! Tests that totals and self counts equal callgrind's, and that totals equal cachegrind's where callgrind omits
//! instructions.

use crate::harness::{Workshop, of, skip};
use scruple_code::{InstructionRun, Profile, ProfileFunction};
use scruple_measure::callgrind;
use scruple_measure::calltree::Settings;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

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

/// Calls and own instructions of the program's functions by address. Functions whose code is not known have none.
fn by_address(profile: &Profile, program: &Path) -> BTreeMap<u64, (u64, u64)> {
    let path = program.display().to_string();
    let functions = profile.functions();
    let own = functions.iter().filter(|(function, _)| function.object.as_deref() == Some(&path));
    own.map(|(function, totals)| (function.offset, (totals.calls, totals.own))).collect()
}

#[test]
fn functions_of_a_stripped_program_have_the_counts_of_the_unstripped_one() {
    let Some(workshop) = Workshop::new() else { return };
    let sources = [
        ("tails.c", "-foptimize-sibling-calls"),
        ("recursion.c", "-fno-optimize-sibling-calls"),
        ("objects.cc", "-std=c++17"),
        ("jumps.c", "-static"),
    ];
    for (source, flag) in sources {
        let program = workshop.compile(source, &[flag]);
        let named = workshop.tree(&program, &[]);
        assert!(Command::new("strip").arg(&program).status().unwrap().success());
        let stripped = workshop.tree(&program, &[]);
        let path = program.display().to_string();
        let own = |function: &&ProfileFunction| function.object.as_deref() == Some(&path);
        let names =
            ["main", "caller", "forward", "target", "down", "even", "odd", "attempt", "deep", "after"];
        let ours = by_address(&stripped, &program);
        let mut found = 0;
        for (address, counts) in by_address(&named, &program) {
            let known = named.functions.iter().filter(own).find(|one| one.offset == address);
            let name = known.and_then(|one| one.name.as_deref()).unwrap_or_default();
            if names.contains(&name) || name.starts_with("_Z") {
                assert_eq!(ours.get(&address), Some(&counts), "{name} of {source}");
                found += 1;
            }
        }
        assert!(found >= 3, "{found} functions of {source}");
    }
}

#[test]
fn functions_of_a_stripped_go_program_have_their_names() {
    let Some(workshop) = Workshop::new() else { return };
    let source = workshop.path().join("stripped.go");
    let text = "package main\n\n//go:noinline\nfunc score(n int) int { s := 0; for i := 0; i < n; i++ { s += i ^ n }; \
                return s }\n\nfunc main() { t := 0; for i := 0; i < 300; i++ { t += score(40) }; if t == 1 { panic(t) } }\n";
    std::fs::write(&source, text).unwrap();
    let Some(program) = workshop.compile_go(&source, 18, &["-ldflags=-s -w"]) else { return };
    let tree = workshop.tree(&program, &[]);
    let score = of(&tree, "main.score");
    assert_eq!((score.calls, score.inclusive), (300, score.own));
    assert!(score.own > 300 * 40 * 3, "{score:?}");
    assert!(of(&tree, "main.main").inclusive > score.own);
}

#[test]
fn a_stripped_program_without_unwinding_tables_has_no_invented_functions() {
    let Some(workshop) = Workshop::new() else { return };
    let without = ["-s", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"];
    let program = workshop.compile("known.c", &without);
    check(&workshop, &program, &[], &[]);
    let tree = workshop.tree(&program, &[]);
    let path = program.display().to_string();
    let own = |run: &&InstructionRun| run.object.as_deref() == Some(&path);
    let unknown = tree.runs.iter().filter(own).filter(|run| run.function.is_none());
    assert!(unknown.map(|run| run.count).sum::<u64>() > 0);
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

/// The tool lets the processor execute these instructions in place of the core's emulation.
#[test]
#[cfg(target_arch = "x86_64")]
fn instructions_that_are_not_emulated_have_the_results_of_the_processor() {
    let Some(workshop) = Workshop::new() else { return };
    if !std::arch::is_x86_feature_detected!("aes") {
        skip("the processor has no AES instructions");
        return;
    }
    let program = workshop.compile("processor.c", &[]);
    let session = workshop.session(Settings::default());
    let under_the_tool = workshop.run_in(&session, &program, &[]);
    let alone = Command::new(&program).output().unwrap();
    assert!(alone.status.success() && alone.stdout.len() == 77, "{alone:?}");
    assert_eq!(under_the_tool.stdout, alone.stdout);
    assert_eq!(session.read().unwrap().profiles.processes[0].total, cachegrind(&workshop, &program));
}
