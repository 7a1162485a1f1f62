//! Tests with call trees that are known by construction.

use crate::harness::{Workshop, of, paths};
use scruple_code::Profile;
use scruple_measure::calltree::{CountDetail, Settings};
use std::collections::BTreeMap;

fn one(path: &str, calls: u64) -> (String, u64) {
    (path.to_owned(), calls)
}

#[test]
fn calls_are_counted_by_path() {
    let Some(workshop) = Workshop::new() else { return };
    let tree = workshop.tree(&workshop.compile("known.c", &[]), &[]);
    assert_eq!(paths(&tree, "leaf"), [one("main first second leaf", 15), one("main leaf", 7)]);
    assert_eq!(paths(&tree, "second"), [one("main first second", 15)]);
    assert_eq!(of(&tree, "leaf").calls, 22);
    let main = of(&tree, "main");
    assert_eq!(
        main.inclusive,
        main.own + of(&tree, "first").own + of(&tree, "second").own + of(&tree, "leaf").own
    );
    // Each turn of the loop does the same work, and there are 15 * 10 + 7 * 100 turns.
    let leaf = of(&tree, "leaf");
    assert_eq!(leaf.own, leaf.inclusive);
    assert!(leaf.own > 850 * 3 && leaf.own < 850 * 8, "{leaf:?}");
}

#[test]
fn a_recursive_call_leads_back_to_the_last_such_call_on_the_path() {
    let Some(workshop) = Workshop::new() else { return };
    let program = workshop.compile("recursion.c", &["-fno-optimize-sibling-calls"]);
    let tree = workshop.tree(&program, &[]);
    assert_eq!(paths(&tree, "down"), [one("main down", 1), one("main down down", 1)]);
    assert_eq!(of(&tree, "down").calls, 100_001);
    assert_eq!(paths(&tree, "even"), [one("main even", 1), one("main even odd even", 500)]);
    assert_eq!(paths(&tree, "odd"), [one("main even odd", 1)]);
    assert_eq!((of(&tree, "even").calls, of(&tree, "odd").calls), (501, 500));
    assert_eq!(of(&tree, "branching").calls, 1973);
    let main = of(&tree, "main");
    let parts = ["main", "down", "even", "odd", "branching"].map(|name| of(&tree, name).own);
    assert_eq!(main.inclusive, parts.iter().sum::<u64>());
}

#[test]
fn functions_that_are_left_by_longjmp_are_left() {
    let Some(workshop) = Workshop::new() else { return };
    let tree = workshop.tree(&workshop.compile("jumps.c", &[]), &[]);
    assert_eq!(paths(&tree, "after"), [one("main attempt after", 100)]);
    assert_eq!(paths(&tree, "attempt"), [one("main attempt", 100)]);
    assert_eq!(paths(&tree, "deep"), [one("main attempt deep", 100), one("main attempt deep deep", 100)]);
    assert_eq!(of(&tree, "deep").calls, 2100);
}

#[test]
fn a_function_that_is_jumped_to_is_a_callee() {
    let Some(workshop) = Workshop::new() else { return };
    let program = workshop.compile("tails.c", &["-foptimize-sibling-calls"]);
    let tree = workshop.tree(&program, &[]);
    assert_eq!(paths(&tree, "forward"), [one("main caller forward", 40)]);
    assert_eq!(paths(&tree, "target"), [one("main caller forward target", 40)]);
    assert!(of(&tree, "target").own > 40 * 50 * 3, "the loop is its own");
}

#[test]
fn a_loop_that_is_jumped_into_counts_for_the_function_that_has_it() {
    let Some(workshop) = Workshop::new() else { return };
    let tree = workshop.tree(&workshop.compile("inside.c", &[]), &[]);
    let own = |path: &str| {
        let found = (0..tree.contexts.len()).find(|at| {
            let functions = tree.path(*at);
            let names: Vec<_> =
                functions.iter().flatten().filter_map(|function| function.name.as_deref()).collect();
            names.join(" ").ends_with(path)
        });
        found.map(|at| tree.contexts[at].own)
    };
    // A turn has two instructions, and each call of `loops` one before its loop and one after it.
    assert_eq!(own("main loops"), Some(20 * (1 + 10 * 2 + 1)));
    assert_eq!(own("main jumps loops"), Some(30 * (20 * 2 + 1)));
    assert_eq!(own("main branches loops"), Some(20 * (30 * 2 + 1)));
    assert_eq!(own("main jumps"), Some(30 * 2));
    assert_eq!(own("main branches"), Some(20 * 3 + 20 * 4));
}

#[test]
fn instructions_of_a_stub_count_for_its_caller() {
    let Some(workshop) = Workshop::new() else { return };
    let measured = |flags: &[&str]| {
        let tree = workshop.tree(&workshop.compile("stubs.c", flags), &[]);
        assert_eq!(paths(&tree, "labs"), [one("main labs", 1000)], "{flags:?}");
        (of(&tree, "main").own, of(&tree, "labs").own)
    };
    let direct = measured(&["-fno-plt"]);
    for flags in [["-fplt", "-Wl,-z,now"], ["-fplt", "-Wl,-z,lazy"]] {
        let through = measured(&flags);
        assert_eq!(through.1, direct.1, "{flags:?}");
        // A jump, and on some systems a mark before it; a few more before the function is found.
        assert!(
            (direct.0 + 1000..direct.0 + 2010).contains(&through.0),
            "{flags:?}: {through:?}, {direct:?}"
        );
    }
}

#[test]
fn signal_handlers_have_a_tree_of_their_own_and_disturb_none() {
    let Some(workshop) = Workshop::new() else { return };
    let tree = workshop.tree(&workshop.compile("signals.c", &[]), &[]);
    assert_eq!(paths(&tree, "after"), [one("main interrupted after", 50), one("main left after", 50)]);
    let handlers = [one("(signal) jumps in_handler", 50), one("(signal) returns in_handler", 50)];
    assert_eq!(paths(&tree, "in_handler"), handlers);
    assert_eq!(paths(&tree, "interrupted"), [one("main interrupted", 50)]);
    assert_eq!(paths(&tree, "left"), [one("main left", 50)]);
}

#[test]
fn handlers_of_faults_see_the_instruction_that_failed() {
    let Some(workshop) = Workshop::new() else { return };
    // The tree is only there if the program ended well.
    let tree = workshop.tree(&workshop.compile("faults.c", &[]), &[]);
    assert_eq!(paths(&tree, "skips"), [one("(signal) handle skips", 50)]);
    assert_eq!(of(&tree, "load").calls, 100);
}

#[test]
fn stacks_continue_where_they_were_left() {
    let Some(workshop) = Workshop::new() else { return };
    let tree = workshop.tree(&workshop.compile("fibres.c", &[]), &[]);
    let work = [
        one("main after leaves on_stack deep_part work", 10),
        one("main after work", 10),
        one("main deeper on_stack deep_part work", 10),
        one("main deeper work", 10),
        one("main one resume swapcontext first_routine first_part work", 100),
        one("main one work", 100),
        one("main other resume swapcontext second_routine second_part work", 50),
        one("main other work", 100),
    ];
    assert_eq!(paths(&tree, "work"), work);
    // Ten coroutines begin on one stack, one after the other.
    assert_eq!(
        paths(&tree, "short_part"),
        [one("main last resume swapcontext short_routine short_part", 10)]
    );
}

#[test]
fn threads_are_called_where_they_are_started_and_share_a_tree() {
    let Some(workshop) = Workshop::new() else { return };
    let tree = workshop.tree(&workshop.compile("threads.c", &["-pthread"]), &[]);
    let work = paths(&tree, "work");
    assert_eq!(work.len(), 1, "{work:?}");
    assert!(work[0].0.starts_with("main pthread_create"), "{work:?}");
    assert!(work[0].0.ends_with("start work") && work[0].1 == 4000, "{work:?}");
    assert_eq!(of(&tree, "step").calls, 40_000);
    // All calls cost the same, whichever thread makes them.
    assert_eq!(of(&tree, "step").own % 40_000, 0);
}

#[test]
fn a_program_may_have_more_threads_than_valgrind_usually_allows() {
    let Some(workshop) = Workshop::new() else { return };
    let tree = workshop.tree(&workshop.compile("at_once.c", &["-pthread"]), &[]);
    assert_eq!(of(&tree, "work").calls, 800);
}

#[test]
fn many_contexts_are_kept_apart() {
    let Some(workshop) = Workshop::new() else { return };
    let program = workshop.compile("many.c", &["-fno-optimize-sibling-calls"]);
    let session = workshop.session(Settings::default());
    // Recursion is no longer folded by call beyond a quarter of these.
    assert!(workshop.run_with(&session, "--contexts=400000", &program).status.success());
    let tree = session.read().unwrap().profiles.processes.remove(0);
    assert_eq!((tree.cut, tree.folds_by_call, of(&tree, "end").calls), (0, false, 1 << 16));
    let ends = tree.contexts.iter().filter(|context| {
        context.function.is_some_and(|at| tree.functions[at].name.as_deref() == Some("end"))
    });
    assert_eq!(ends.map(|context| context.calls).collect::<Vec<_>>(), vec![1; 1 << 16]);
    assert!(tree.contexts.len() > 250_000, "{}", tree.contexts.len());
}

#[test]
fn functions_keep_their_costs_if_there_are_too_many_contexts() {
    let Some(workshop) = Workshop::new() else { return };
    let program = workshop.compile("many.c", &["-fno-optimize-sibling-calls", "-DFIRST=level12"]);
    let session = workshop.session(Settings::default());
    assert!(workshop.run_with(&session, "--contexts=1000", &program).status.success());
    let cut = session.read().unwrap().profiles.processes.remove(0);
    let whole = workshop.tree(&program, &[]);
    assert!(cut.cut > 0 && cut.contexts.len() < 2000, "{} {}", cut.cut, cut.contexts.len());
    assert!(whole.folds_by_call && !cut.folds_by_call);
    assert_eq!(cut.total, whole.total);
    let of_program = |profile: &Profile| -> BTreeMap<String, (u64, u64)> {
        let all = profile.functions().into_iter();
        let named = all.filter_map(|(function, sums)| Some((function.name.clone()?, (sums.calls, sums.own))));
        named.filter(|(name, _)| ["a", "b", "level"].iter().any(|begin| is_numbered(name, begin))).collect()
    };
    let (cut, whole) = (of_program(&cut), of_program(&whole));
    assert_eq!(cut.len(), 3 * 12);
    assert_eq!(cut, whole);
}

fn is_numbered(name: &str, begin: &str) -> bool {
    name.strip_prefix(begin).is_some_and(|number| number.parse::<u32>().is_ok())
}

#[test]
fn the_total_alone_is_the_same_total() {
    let Some(workshop) = Workshop::new() else { return };
    let program = workshop.compile("known.c", &[]);
    let tree = workshop.tree(&program, &[]);
    let session = workshop.session(Settings { counts: CountDetail::Total, ..Settings::default() });
    assert!(workshop.run_in(&session, &program, &[]).status.success());
    let counted = session.read().unwrap();
    assert_eq!(counted.total, tree.total);
    assert!(counted.profiles.processes[0].total_only && counted.profiles.processes[0].contexts.is_empty());
}
