//! Tests that the allocations in the call tree equal memcheck's.

use crate::harness::{Workshop, of};
use scruple_measure::calltree::HeapCounts;
use std::path::Path;

/// The totals of memcheck. Memory that the C and C++ libraries keep is not freed at the end, since that would count
/// as frees.
fn memcheck(workshop: &Workshop, program: &Path) -> HeapCounts {
    let options =
        ["--tool=memcheck", "--vgdb=no", "--run-libc-freeres=no", "--run-cxx-freeres=no", "--leak-check=no"];
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
fn without_an_allocator_there_are_no_counts_rather_than_none_allocated() {
    let Some(workshop) = Workshop::new() else { return };
    let program = workshop.compile("heap.c", &["-static", "-s"]);
    let profiles = workshop.trees(&program, &[]);
    assert_eq!(profiles.heap(), None);
    let dynamic = workshop.trees(&workshop.compile("heap.c", &[]), &[]);
    assert!(dynamic.heap().is_some_and(|heap| heap.allocations > 20));
}
