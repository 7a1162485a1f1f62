//! Constructed trees with a known difference.

use super::*;

mod files;
mod ranking;

/// Makes a tree from lines of parent, function, calls and own cost.
fn tree(lines: &[(usize, &str, u64, u64)]) -> Tree {
    let mut tree = Tree::default();
    let mut function = |name: &str| {
        let one = Function {
            module: if name.is_empty() { String::new() } else { "program".to_owned() },
            name: name.to_owned(),
            shown: name.to_owned(),
            library: name.starts_with("std"),
            trampoline: name.starts_with("StgRun"),
            ..Function::default()
        };
        let known = tree.functions.iter().position(|other| *other == one);
        known.unwrap_or_else(|| {
            tree.functions.push(one);
            tree.functions.len() - 1
        })
    };
    let root = function("");
    let mut contexts = vec![Context { function: root, calls: 1, ..Context::default() }];
    for (parent, name, calls, own) in lines {
        contexts.push(Context {
            parent: Some(*parent),
            function: function(name),
            calls: *calls,
            recursive: 0,
            cost: OwnCost { instructions: *own, ..OwnCost::default() },
        });
    }
    tree.contexts = contexts;
    tree
}

/// The function with this name.
fn named<'a>(tree: &'a mut Tree, name: &str) -> &'a mut Function {
    tree.functions.iter_mut().find(|function| function.name == name).expect("a function")
}

/// Explains two trees in which all functions except `changed` have the same code.
fn explained(first: &Tree, second: &Tree, changed: &[&str]) -> Explanation {
    let same = |old: &[usize], new: &[usize]| {
        let both = !old.is_empty() && !new.is_empty();
        Some(both && new.iter().all(|one| !changed.contains(&second.functions[*one].name.as_str())))
    };
    let likeness = |a: usize, b: usize| {
        let costs = |tree: &Tree, function: usize| -> u64 {
            tree.contexts.iter().filter(|c| c.function == function).map(|c| c.cost.instructions).sum()
        };
        if costs(first, a) == costs(second, b) { 1.0 } else { 0.0 }
    };
    let are_two = |a: usize, b: usize| first.functions[a].name == second.functions[b].name;
    let code = CodeComparison { same: &same, likeness: &likeness, are_two: &are_two };
    let matched = Matched::of(first, second, &code);
    let explanation = explain(first, second, &matched, &code, &[Count::Instructions]).remove(0);
    let sum: f64 = explanation.rows.iter().map(|row| row.delta).sum();
    assert!((sum - explanation.delta()).abs() < 1e-6, "{sum} is not the whole of {explanation:#?}");
    explanation
}

fn differences(found: &Explanation) -> Vec<(&str, f64)> {
    found.rows.iter().map(|row| (row.name.as_str(), row.delta)).collect()
}

const MAIN: &[(usize, &str, u64, u64)] =
    &[(0, "main", 1, 10), (1, "parse", 100, 1_000), (2, "hash", 500, 5_000), (1, "print", 1, 70)];

#[test]
fn the_same_trees_have_no_rows() {
    let one = tree(MAIN);
    assert_eq!(explained(&one, &one, &[]).rows, []);
}

#[test]
fn a_dearer_function_is_the_origin_and_its_callers_are_not() {
    let mut lines = MAIN.to_vec();
    lines[2].3 = 6_000;
    let found = explained(&tree(MAIN), &tree(&lines), &["hash"]);
    assert_eq!(found.rows.len(), 1);
    let row = &found.rows[0];
    assert_eq!((row.name.as_str(), row.delta, row.calls), ("hash", 1_000.0, (500, 500)));
    assert_eq!((row.parts.len(), row.parts[0].kind), (1, PartKind::Own));
}

#[test]
fn rows_that_cancel_out_have_no_share_of_what_is_left() {
    let costs = |parse: u64, print: u64| [(0, "main", 1, 10), (1, "parse", 1, parse), (1, "print", 1, print)];
    let changed = ["parse", "print"];
    let found = explained(&tree(&costs(5_000, 5_000)), &tree(&costs(6_000, 4_100)), &changed);
    assert_eq!((found.delta(), found.gross(), found.share_of(&found.rows[0])), (100.0, 1_900.0, None));
    let found = explained(&tree(&costs(5_000, 5_000)), &tree(&costs(6_000, 4_500)), &changed);
    assert_eq!((found.delta(), found.share_of(&found.rows[0])), (500.0, Some(2.0)));
}

#[test]
fn the_caller_that_calls_more_often_is_the_origin() {
    let lines =
        [(0, "main", 1, 10), (1, "parse", 100, 1_003), (2, "hash", 1_500, 15_000), (1, "print", 1, 70)];
    let found = explained(&tree(MAIN), &tree(&lines), &["parse"]);
    assert_eq!(found.rows.len(), 1, "{found:#?}");
    let row = &found.rows[0];
    assert_eq!((row.name.as_str(), row.delta), ("parse", 10_003.0));
    let part = &row.parts[0];
    assert_eq!((part.kind, part.callee.as_deref(), part.delta), (PartKind::Calls, Some("hash"), 10_000.0));
    assert_eq!(part.calls, (500, 1_500));
}

#[test]
fn the_cost_of_an_unchanged_function_is_attributed_to_its_changed_caller() {
    let mut lines = MAIN.to_vec();
    lines[2].3 = 6_000;
    let found = explained(&tree(MAIN), &tree(&lines), &["main"]);
    let row = &found.rows[0];
    assert_eq!((row.name.as_str(), row.delta), ("main", 1_000.0));
    assert_eq!(row.parts[0].site.as_deref(), Some("hash"));
    // Where nothing changed, the part stays where it appears.
    let found = explained(&tree(MAIN), &tree(&lines), &[]);
    assert_eq!((found.rows[0].name.as_str(), found.rows[0].same_code), ("hash", Some(true)));
}

#[test]
fn a_function_that_was_inlined_costs_nothing_and_shows_in_one_row() {
    let lines = [(0, "main", 1, 10), (1, "parse", 100, 5_900), (1, "print", 1, 70)];
    let found = explained(&tree(MAIN), &tree(&lines), &["parse"]);
    assert_eq!(found.rows.len(), 1, "{found:#?}");
    let row = &found.rows[0];
    assert_eq!((row.name.as_str(), row.delta), ("parse", -100.0));
    let parts: Vec<(PartKind, f64)> = row.parts.iter().map(|part| (part.kind, part.delta)).collect();
    assert_eq!(parts, [(PartKind::Gone, -5_000.0), (PartKind::Own, 4_900.0)]);
    // They are reported as one: own code instead of calls of `hash`.
    let parts = row.reported();
    let one = (parts[0].kind, parts[0].callee.as_deref(), parts[0].instead_of.as_deref(), parts[0].delta);
    assert_eq!((parts.len(), one), (1, (PartKind::Replaced, None, Some("hash"), -100.0)));
}

#[test]
fn a_call_on_a_path_that_only_one_program_has_is_no_new_call() {
    // `twice` calls `hash` in both programs, but below `parse` only in the second one.
    let below = |extra: bool| {
        let mut lines = vec![(0, "main", 1, 10), (1, "twice", 1, 5), (2, "hash", 4, 40), (1, "parse", 1, 9)];
        lines.push((4, "twice", 1, 5));
        if extra {
            lines.push((5, "hash", 6, 60));
        }
        tree(&lines)
    };
    let found = explained(&below(false), &below(true), &["twice"]);
    let part = &found.rows[0].parts[0];
    assert_eq!((found.rows[0].name.as_str(), part.kind, part.calls), ("twice", PartKind::Calls, (4, 10)));
}

#[test]
fn calls_by_others_are_not_those_of_the_function_that_calls_more_often() {
    let lines = |by_parse: u64| {
        tree(&[
            (0, "main", 1, 10),
            (1, "parse", 1, 100),
            (2, "hash", by_parse, 10 * by_parse),
            (1, "print", 1, 70),
            (4, "hash", 10_000, 100_000),
        ])
    };
    let found = explained(&lines(500), &lines(1_500), &["parse"]);
    let part = &found.rows[0].parts[0];
    assert_eq!((found.rows[0].name.as_str(), part.kind), ("parse", PartKind::Calls));
    assert_eq!((part.calls, part.delta), ((500, 1_500), 10_000.0));
}

#[test]
fn a_function_that_is_called_twice_as_often_no_longer_makes_twice_as_many_calls() {
    let lines = [(0, "main", 1, 10), (1, "parse", 200, 2_000), (1, "print", 1, 70)];
    let found = explained(&tree(MAIN), &tree(&lines), &["main", "parse"]);
    assert_eq!(differences(&found), [("parse", -10_000.0), ("main", 6_000.0)]);
}

#[test]
fn library_code_compiled_into_the_program_counts_for_its_caller() {
    let of = |own: u64| tree(&[(0, "main", 1, 10), (1, "parse", 5, 50), (2, "std::map", 10, own)]);
    let found = explained(&of(100), &of(300), &["std::map"]);
    assert_eq!(differences(&found), [("parse", 200.0)]);
    // Between them may be a function of a shared library, whose code is the same in both.
    let of = |own: u64| {
        let mut tree = tree(&[(0, "main", 1, 10), (1, "start", 1, 5), (2, "std::run", 1, own)]);
        named(&mut tree, "start").module = "libstdc++.so".to_owned();
        tree
    };
    let found = explained(&of(100), &of(300), &["std::run"]);
    assert_eq!(differences(&found), [("main", 200.0)]);
    // Who calls it is not known.
    let old = [MAIN, &[(0, "StgRun", 1, 0)]].concat();
    let new = [&old[..], &[(5, "std::eq", 900, 9_000), (1, "find", 1, 600)]].concat();
    let found = explained(&tree(&old), &tree(&new), &["main"]);
    let rows: Vec<_> = found.rows.iter().map(|row| (row.name.as_str(), row.same_code)).collect();
    assert_eq!(rows, [("main", Some(false)), ("std::eq", Some(true))]);
}

#[test]
fn code_that_cannot_be_compared_is_not_called_equal() {
    let mut lines = MAIN.to_vec();
    lines[2].3 = 6_000;
    let (first, second) = (tree(MAIN), tree(&lines));
    let code = CodeComparison { same: &|_, _| None, likeness: &|_, _| 0.0, are_two: &|_, _| false };
    let matched = Matched::of(&first, &second, &code);
    let found = explain(&first, &second, &matched, &code, &[Count::Instructions]).remove(0);
    let rows: Vec<_> = found.rows.iter().map(|row| (row.name.as_str(), row.delta, row.same_code)).collect();
    assert_eq!(rows, [("hash", 1_000.0, None)]);
}

#[test]
fn a_call_that_replaced_another_is_reported_together_with_it() {
    let first = [(0, "main", 1, 10), (1, "parse", 100, 1_000), (2, "print", 500, 50_000)];
    let second = [(0, "main", 1, 10), (1, "parse", 100, 1_300), (2, "printed", 500, 50_900)];
    let found = explained(&tree(&first), &tree(&second), &["parse", "print", "printed"]);
    let row = &found.rows[0];
    assert_eq!((row.name.as_str(), row.delta), ("parse", 1_200.0), "{found:#?}");
    let parts: Vec<_> = row.reported().into_iter().map(|part| (part.kind, part.callee, part.delta)).collect();
    let replaced = (PartKind::Replaced, Some("printed".to_owned()), 900.0);
    assert_eq!(parts, [replaced, (PartKind::Own, None, 300.0)], "{row:#?}");
    // So is one that costs far more, if there are as many calls.
    let second = [(0, "main", 1, 10), (1, "parse", 100, 1_000), (2, "printed", 500, 90_000)];
    let found = explained(&tree(&first), &tree(&second), &["parse", "print", "printed"]);
    let parts = found.rows[0].reported();
    assert_eq!((parts.len(), parts[0].kind, parts[0].delta), (1, PartKind::Replaced, 40_000.0), "{found:#?}");
    // With another number of calls it is no replacement.
    let second = [(0, "main", 1, 10), (1, "parse", 100, 1_000), (2, "printed", 700, 90_000)];
    let found = explained(&tree(&first), &tree(&second), &["parse", "print", "printed"]);
    assert_eq!(found.rows[0].reported()[0].kind, PartKind::New, "{found:#?}");
}

#[test]
fn fewer_calls_and_dearer_ones_are_two_parts() {
    let first = [(0, "main", 1, 10), (1, "parse", 100, 1_000), (2, "grow", 100, 10_000)];
    let second = [(0, "main", 1, 10), (1, "parse", 100, 1_000), (2, "grow", 50, 11_000)];
    let reported = |first: &[(usize, &str, u64, u64)], second: &[(usize, &str, u64, u64)]| -> Vec<_> {
        let found = explained(&tree(first), &tree(second), &["parse"]);
        found.rows[0].reported().into_iter().map(|part| (part.kind, part.site, part.delta)).collect()
    };
    let (own, calls) = ((PartKind::Own, Some("grow".to_owned())), (PartKind::Calls, None));
    // Fewer calls alone would cost less.
    assert_eq!(reported(&first, &second), [(own.0, own.1.clone(), 6_000.0), (calls.0, None, -5_000.0)]);
    // More calls alone would cost more.
    assert_eq!(reported(&second, &first), [(own.0, own.1, -12_000.0), (calls.0, calls.1, 11_000.0)]);
}

#[test]
fn further_calls_that_cost_less_than_the_mean_count_with_their_own_cost() {
    let first = [(0, "main", 1, 10), (1, "parse", 100, 1_000), (2, "grow", 10, 50), (3, "copy", 10, 100_000)];
    let second =
        [(0, "main", 1, 10), (1, "parse", 100, 900), (2, "grow", 110, 550), (3, "copy", 10, 100_000)];
    let found = explained(&tree(&first), &tree(&second), &["parse"]);
    let row = &found.rows[0];
    assert_eq!((row.name.as_str(), row.delta), ("parse", 400.0), "{found:#?}");
    let parts: Vec<_> = row.reported().into_iter().map(|part| (part.kind, part.callee, part.delta)).collect();
    let calls = (PartKind::Calls, Some("grow".to_owned()), 500.0);
    assert_eq!(parts, [calls, (PartKind::Own, None, -100.0)], "{row:#?}");
    // What is within the function remains a part of its own if it is not the reason why its calls cost less.
    let second =
        [(0, "main", 1, 10), (1, "parse", 100, 1_000), (2, "grow", 10, 50), (3, "copy", 20, 200_000)];
    let found = explained(&tree(&first), &tree(&second), &["parse"]);
    let part = &found.rows[0].reported()[0];
    assert_eq!((part.site.as_deref(), part.delta), (Some("grow"), 100_000.0), "{found:#?}");
}

#[test]
fn a_renamed_function_is_known_by_its_code() {
    let mut lines = MAIN.to_vec();
    lines[2].1 = "digest";
    assert_eq!(explained(&tree(MAIN), &tree(&lines), &[]).rows, []);
    lines[1].3 = 1_100;
    let found = explained(&tree(MAIN), &tree(&lines), &["parse"]);
    assert_eq!(found.rows.len(), 1, "{found:#?}");
    // So is one that costs next to nothing compared with the rest.
    let first = [(0, "main", 1, 20_000_000), (1, "hash", 52, 416)];
    let second = [(0, "main", 1, 20_000_000), (1, "digest", 52, 416)];
    assert_eq!(explained(&tree(&first), &tree(&second), &[]).rows, []);
}

#[test]
fn recursion_is_one_context() {
    let line = |depth: usize| (depth, "walk", 1, 10);
    let deep = |levels: usize| tree(&(0..levels).map(line).collect::<Vec<_>>());
    let found = explained(&deep(10), &deep(100_000), &["walk"]);
    assert_eq!(found.rows.len(), 1, "{:?}", found.rows.len());
    assert_eq!(found.rows[0].delta, 999_900.0);
}

/// A tree whose recursive calls lead back to contexts that the same caller has called.
fn by_call(lines: &[(usize, &str, u64, u64)], recursive: &[(usize, usize, u64)]) -> Tree {
    Tree { folds_by_call: true, recursive: recursive.to_vec(), ..tree(lines) }
}

#[test]
fn a_removed_recursive_call_is_attributed_to_the_function_that_made_it() {
    // The outer call of `walk` is expensive; those that `compare` makes are cheap.
    let line = |compare| [(0, "walk", 1, 5_000), (1, "compare", 100, compare), (2, "walk", 100, 700)];
    let (old, new) = (by_call(&line(1_000), &[]), by_call(&line(1_200)[..2], &[]));
    let found = explained(&old, &new, &["compare"]);
    assert_eq!(found.rows.len(), 1, "{found:#?}");
    assert_eq!((found.rows[0].name.as_str(), found.rows[0].delta), ("compare", -500.0));
}

#[test]
fn code_in_a_recursion_is_attributed_to_the_changed_function_through_which_it_calls_itself() {
    let side = |calls: u64| {
        let outer = [(0, "main", 1, 9), (1, "walk", 1, 5), (2, "each", 1, calls * 8)];
        let inner = [(3, "pair", 1, calls), (4, "walk", calls - 1, calls * 2)];
        by_call(&[outer.as_slice(), &inner].concat(), &[(5, 3, calls - 1)])
    };
    let found = explained(&side(10), &side(30), &["pair"]);
    assert_eq!(found.rows.len(), 1, "{found:#?}");
    assert_eq!((found.rows[0].name.as_str(), found.rows[0].delta), ("pair", 220.0));
}

#[test]
fn recursion_can_be_folded_by_function() {
    let lines =
        [(0, "walk", 1, 5), (1, "each", 4, 7), (2, "walk", 4, 3), (3, "leaf", 9, 1), (1, "leaf", 1, 2)];
    let (contexts, recursive) = by_call(&lines, &[(4, 2, 6)]).folded_by_function();
    let shown: Vec<_> =
        contexts.iter().map(|one| (one.parent, one.calls, one.recursive, one.cost.instructions)).collect();
    assert_eq!(shown, [(None, 1, 0, 0), (Some(0), 1, 4, 8), (Some(1), 4, 0, 7), (Some(1), 10, 0, 3)]);
    assert_eq!(recursive, [(2, 1, 4), (3, 2, 6)]);
}

#[test]
fn instances_of_a_template_are_one_row() {
    let lines = |cost| [(0, "main", 1, 10), (1, "Acc<int>::add", 9, cost), (1, "Acc<long>::add", 9, cost)];
    let found = explained(&tree(&lines(90)), &tree(&lines(99)), &["Acc<int>::add", "Acc<long>::add"]);
    assert_eq!(found.rows.len(), 1);
    assert_eq!((found.rows[0].name.as_str(), found.rows[0].delta), ("Acc::add", 18.0));
    let parts: Vec<_> = found.rows[0].parts.iter().map(|part| (part.kind, part.calls, part.delta)).collect();
    assert_eq!(parts, [(PartKind::Own, (18, 18), 18.0)]);
}

#[test]
fn rows_within_what_varies_anyway_stand_last() {
    let with = |main: u64, hash: u64| {
        let mut lines = MAIN.to_vec();
        (lines[0].3, lines[2].3) = (main, hash);
        tree(&lines)
    };
    let (a1, a2) = (with(10, 5_000), with(400, 5_000));
    let (b1, b2) = (with(300, 5_100), with(80, 5_100));
    let pairs = vec![explained(&a1, &b1, &["hash"]), explained(&a2, &b2, &["hash"])];
    let within = [explained(&a1, &a2, &[]), explained(&b1, &b2, &[])];
    let found = mean_with_spread(pairs, &within, 0.0).expect("an explanation");
    let rows: Vec<(&str, bool)> =
        found.rows.iter().map(|row| (row.name.as_str(), row.is_within_spread())).collect();
    assert_eq!(rows, [("hash", false), ("main", true)]);
    let sum: f64 = found.rows.iter().map(|row| row.delta).sum();
    assert!((sum - found.delta()).abs() < 1e-6);
    // The totals vary by 390 in one program, which is more than the difference of 85.
    assert!(found.is_within_spread(), "{}", found.spread);
    assert_eq!(found.share_of(&found.rows[0]), None);
}

#[test]
fn totals_that_varied_in_other_launches_limit_what_is_certain() {
    let (a, b) = (tree(MAIN), {
        let mut lines = MAIN.to_vec();
        lines[2].3 += 50;
        tree(&lines)
    });
    let spread = |of_totals| {
        let found = mean_with_spread(vec![explained(&a, &b, &[])], &[], of_totals).expect("an explanation");
        (found.is_within_spread(), found.rows[0].is_within_spread())
    };
    assert_eq!(spread(0.0), (false, false));
    assert_eq!(spread(20.0), (true, true));
    // The variations of functions in a single pair of launches may have cancelled out in the total.
    assert_eq!(spread(0.01), (false, false));
    assert_eq!(spread(0.02), (false, true));
}

#[test]
fn a_row_that_some_pairs_of_runs_lack_is_zero_in_them() {
    let with = |hash: u64, print: u64| {
        let mut lines = MAIN.to_vec();
        (lines[2].3, lines[3].3) = (hash, print);
        tree(&lines)
    };
    let one = tree(MAIN);
    let pairs = [with(5_000, 170), with(5_090, 170), with(5_090, 170)];
    let pairs = pairs.iter().map(|other| explained(&one, other, &["hash"])).collect();
    // Runs of one program differ by 50 in `main`.
    let within = [explained(&one, &with(5_000, 70), &[]), {
        let mut lines = MAIN.to_vec();
        lines[0].3 = 60;
        explained(&one, &tree(&lines), &[])
    }];
    let found = mean_with_spread(pairs, &within, 0.0).expect("an explanation");
    let sum: f64 = found.rows.iter().map(|row| row.delta).sum();
    assert!((sum - found.delta()).abs() < 1e-6 && (sum - 160.0).abs() < 1e-6, "{found:#?}");
    for row in &found.rows {
        let parts: f64 = row.parts.iter().map(|part| part.delta).sum();
        assert!((parts - row.delta).abs() < 1e-6, "{row:#?}");
    }
    let of = |name: &str| found.rows.iter().find(|row| row.name == name).expect("a row");
    // The pair without the difference is 60 away from the mean, the others 30.
    assert!((of("hash").delta - 60.0).abs() < 1e-6 && (of("hash").spread - 180.0).abs() < 1e-6, "{found:#?}");
    // The code of `print` is the same, so its difference is compared with what the whole program varies by.
    assert!((of("print").delta, of("print").spread) == (100.0, 150.0), "{found:#?}");
    // The first pair lacks the row of `hash`, and other pairs number functions differently.
    assert_eq!(of("hash").functions, (Vec::new(), Vec::new()));
    assert_eq!(of("print").functions.0.len(), 1, "{found:#?}");
}

/// Makes a tree whose costs are bytes in use at the peak.
fn live(lines: &[(usize, &str, u64, u64)]) -> Tree {
    let mut tree = tree(lines);
    for context in &mut tree.contexts {
        context.cost = OwnCost { at_peak: context.cost.instructions, ..OwnCost::default() };
    }
    tree
}

fn live_explained(first: &Tree, second: &Tree, changed: &[&str]) -> Explanation {
    let same = |_: &[usize], new: &[usize]| {
        Some(new.iter().all(|one| !changed.contains(&second.functions[*one].name.as_str())))
    };
    let code = CodeComparison { same: &same, likeness: &|_, _| 0.0, are_two: &|_, _| false };
    let matched = Matched::of(first, second, &code);
    let explanation = explain(first, second, &matched, &code, &[Count::AtPeak]).remove(0);
    let sum: f64 = explanation.rows.iter().map(|row| row.delta).sum();
    assert!((sum - explanation.delta()).abs() < 1e-6, "{sum} is not the whole of {explanation:#?}");
    explanation
}

const HELD: &[(usize, &str, u64, u64)] =
    &[(0, "main", 1, 0), (1, "load", 1, 0), (2, "record", 100, 4_800), (1, "scratch", 10, 1_000)];

#[test]
fn memory_of_additional_calls_is_attributed_to_the_caller() {
    let mut lines = HELD.to_vec();
    (lines[2].2, lines[2].3) = (300, 14_400);
    let found = live_explained(&live(HELD), &live(&lines), &["load", "record"]);
    assert_eq!(found.rows.len(), 1, "{found:#?}");
    let row = &found.rows[0];
    assert_eq!((row.name.as_str(), row.delta, row.parts[0].kind), ("load", 9_600.0, PartKind::Calls));
}

#[test]
fn more_calls_that_hold_no_more_explain_nothing() {
    let mut lines = HELD.to_vec();
    // Called three times as often, and freed each time.
    lines[3].2 = 30;
    assert_eq!(live_explained(&live(HELD), &live(&lines), &["main", "scratch"]).rows, []);
    // Called three times as often, and twice as much is held: calls explain the whole of that, and not more.
    lines[3].3 = 2_000;
    let found = live_explained(&live(HELD), &live(&lines), &["main", "scratch"]);
    let rows: Vec<(&str, f64)> = found.rows.iter().map(|row| (row.name.as_str(), row.delta)).collect();
    assert_eq!(rows, [("main", 1_000.0)]);
}

#[test]
fn memory_of_more_calls_and_of_larger_blocks_belongs_to_the_function() {
    let mut lines = HELD.to_vec();
    // Twice as many calls, each of which holds three times as much.
    (lines[2].2, lines[2].3) = (200, 28_800);
    let found = live_explained(&live(HELD), &live(&lines), &["load", "record"]);
    let rows: Vec<(&str, f64)> = found.rows.iter().map(|row| (row.name.as_str(), row.delta)).collect();
    assert_eq!(rows, [("record", 19_200.0), ("load", 4_800.0)]);
    // Below a caller that is called more often, a function that is called as often for each of its calls adds nothing.
    let twice = [(0, "main", 1, 0), (1, "load", 2, 0), (2, "record", 200, 4_800), (1, "scratch", 10, 1_000)];
    assert_eq!(live_explained(&live(HELD), &live(&twice), &["main", "load", "record"]).rows, []);
}

#[test]
fn a_jump_to_a_part_of_a_function_is_no_call() {
    let with_part = |calls: u64| {
        let part = [(3, "hash.cold", calls, 12 * calls), (5, "throw", calls, 100 * calls)];
        let mut tree = tree(&[MAIN, &part].concat());
        named(&mut tree, "hash.cold").name = "hash".to_owned();
        tree
    };
    let found = explained(&tree(MAIN), &with_part(50), &["hash"]);
    assert_eq!((found.rows[0].name.as_str(), found.rows[0].calls), ("hash", (500, 500)), "{found:#?}");
    let found = explained(&with_part(50), &with_part(150), &["hash"]);
    let called = found.rows[0].parts.iter().map(|part| (part.callee.as_deref(), part.calls, part.delta));
    let expected = [(Some("throw"), (50, 150), 10_000.0), (None, (500, 500), 1_200.0)];
    assert_eq!(called.collect::<Vec<_>>(), expected, "{found:#?}");
    // Methods of a script may have such a name.
    let of = |own: u64| tree(&[(0, "main", 1, 10), (1, "Cache.cold", 20, own)]);
    let found = explained(&of(200), &of(300), &["Cache.cold"]);
    assert_eq!((found.rows[0].name.as_str(), found.rows[0].calls), ("Cache.cold", (20, 20)), "{found:#?}");
}
