//! Tests that the allocations in the call tree equal memcheck's.

use crate::harness::{Workshop, of, skip};
use scruple_code::HeapCounts;
use std::path::Path;
use std::process::Command;

/// The totals of memcheck. Memory that the C and C++ libraries keep is not freed at the end, since that would count
/// as frees.
fn memcheck(workshop: &Workshop, program: &Path) -> HeapCounts {
    let options = [
        "--tool=memcheck",
        "--vgdb=no",
        "--run-libc-freeres=no",
        "--run-cxx-freeres=no",
        "--leak-check=no",
        "--read-inline-info=no",
        "--undef-value-errors=no",
    ];
    let output = workshop.valgrind(&options, program, &[]);
    let text = String::from_utf8_lossy(&output.stderr).replace(',', "");
    let usage = text.split_once("total heap usage: ").expect(&text).1;
    let numbers: Vec<u64> = usage.split_whitespace().filter_map(|word| word.parse().ok()).take(3).collect();
    HeapCounts { allocations: numbers[0], frees: numbers[1], bytes: numbers[2] }
}

#[test]
fn every_way_to_allocate_counts_as_under_memcheck() {
    let Some(workshop) = Workshop::new() else { return };
    let program = workshop.compile("heap.c", &["-Wno-all"]);
    let tree = workshop.tree(&program, &[]);
    assert_eq!(tree.heap(), memcheck(&workshop, &program));
    // One function allocates 10 blocks of 100 bytes and frees each.
    let malloc = tree.contexts.iter().filter(|context| {
        let caller = context.parent.and_then(|parent| tree.contexts[parent].function);
        caller.is_some_and(|at| tree.functions[at].name.as_deref() == Some("one"))
    });
    let mut sum = HeapCounts::default();
    malloc.for_each(|context| sum += context.heap);
    assert_eq!(sum, HeapCounts { allocations: 10, bytes: 1000, frees: 10 });
}

#[test]
fn operator_new_counts_as_under_memcheck() {
    let Some(workshop) = Workshop::new() else { return };
    let program = workshop.compile("objects.cc", &["-std=c++17"]);
    let tree = workshop.tree(&program, &[]);
    assert_eq!(tree.heap(), memcheck(&workshop, &program));
    assert!(of(&tree, "_Znwm").heap.allocations > 200);
}

#[test]
fn a_haskell_program_has_the_allocations_of_memcheck_and_those_in_its_own_heap() {
    let Some(mut workshop) = Workshop::new() else { return };
    if Command::new("ghc").arg("--version").output().is_err() {
        skip("ghc is not installed");
        return;
    }
    let source = workshop.path().join("digits.hs");
    std::fs::write(&source, "main = print (length (show (product [1 .. 900 :: Integer])))\n").unwrap();
    let program = workshop.path().join("digits");
    let mut build = Command::new("ghc");
    build.args(["-v0", "-O1", "-with-rtsopts=-V0", "-o"]).arg(&program).arg(&source);
    assert!(build.status().unwrap().success());
    workshop.address_space = Some(8 << 20);
    let tree = workshop.tree(&program, &[]);
    let (mut own, mut requested) = (HeapCounts::default(), HeapCounts::default());
    for context in &tree.contexts {
        let name = context.function.and_then(|at| tree.functions[at].name.as_deref());
        let is_own = matches!(name, Some("allocateMightFail" | "allocatePinned"));
        *if is_own { &mut own } else { &mut requested } += context.heap;
    }
    assert!(own.allocations > 2, "{own:?}");
    assert_eq!(requested, memcheck(&workshop, &program));
}

#[test]
fn without_an_allocator_allocations_are_absent_and_not_zero() {
    let Some(workshop) = Workshop::new() else { return };
    let program = workshop.compile("heap.c", &["-static", "-s"]);
    let profiles = workshop.trees(&program, &[]);
    assert_eq!(profiles.heap(), None);
    let dynamic = workshop.trees(&workshop.compile("heap.c", &[]), &[]);
    assert!(dynamic.heap().is_some_and(|heap| heap.allocations > 20));
}
