//! Constructed call graphs with a known difference.

use crate::explain::{
    CodeComparison, Context, Count, Edge, Explanation, Function, Matched, OwnCost, PartKind, Tree, explain,
};

/// Makes a program from its functions with their own costs, and the numbers of calls between them.
fn program(functions: &[(&str, u64)], calls: &[(&str, &str, u64)]) -> Tree {
    let mut tree = Tree { functions: vec![Function::default()], ..Tree::default() };
    tree.contexts.push(Context { calls: 1, ..Context::default() });
    for (name, instructions) in functions {
        let library = name.starts_with("std");
        let shown = (*name).to_owned();
        tree.functions.push(Function {
            module: "program".into(),
            name: shown,
            library,
            ..Function::default()
        });
        let function = tree.functions.len() - 1;
        let cost = OwnCost { instructions: *instructions, ..OwnCost::default() };
        tree.contexts.push(Context { parent: Some(0), function, calls: 1, recursive: 0, cost });
    }
    let place = |name: &str| tree.functions.iter().position(|one| one.name == name).expect("a function");
    let edge = |(caller, callee, calls): &(&str, &str, u64)| Edge {
        caller: place(caller),
        callee: place(callee),
        calls: *calls,
    };
    tree.edges = calls.iter().map(edge).collect();
    tree
}

/// Explains two programs in which all functions except `changed` have the same code.
fn explained(first: &Tree, second: &Tree, changed: &[&str]) -> Explanation {
    let same = |old: &[usize], new: &[usize]| {
        let name = |one: &[usize], tree: &Tree| one.first().map(|one| tree.functions[*one].name.clone());
        let name = name(new, second).or_else(|| name(old, first)).unwrap_or_default();
        Some(!changed.contains(&name.as_str()))
    };
    let code = CodeComparison { same: &same, likeness: &|_, _| 0.0, are_two: &|_, _| false };
    let matched = Matched::of(first, second, &code);
    let explanation = explain(first, second, &matched, &code, &[Count::Instructions]).remove(0);
    let sum: f64 = explanation.rows.iter().map(|row| row.delta).sum();
    assert!((sum - explanation.delta()).abs() < 1e-6, "{sum} is not the whole of {explanation:#?}");
    explanation
}

fn first_row(explanation: &Explanation) -> (&str, f64, PartKind) {
    let row = &explanation.rows[0];
    (&row.name, row.delta, row.parts[0].kind)
}

const COSTS: &[(&str, u64)] = &[("main", 10), ("parse", 1_000), ("list", 500), ("hash", 6_000)];
const CALLS: &[(&str, &str, u64)] =
    &[("main", "parse", 100), ("main", "list", 50), ("parse", "hash", 500), ("list", "hash", 100)];

#[test]
fn dearer_code_stands_at_its_function() {
    let dearer = program(&[("main", 10), ("parse", 1_000), ("list", 500), ("hash", 6_600)], CALLS);
    let explanation = explained(&program(COSTS, CALLS), &dearer, &["hash"]);
    assert_eq!(first_row(&explanation), ("hash", 600.0, PartKind::Own));
    assert_eq!(explanation.rows.len(), 1);
}

#[test]
fn more_calls_stand_at_the_caller_that_makes_them() {
    let more = program(
        &[("main", 10), ("parse", 1_000), ("list", 500), ("hash", 16_000)],
        &[("main", "parse", 100), ("main", "list", 50), ("parse", "hash", 1_500), ("list", "hash", 100)],
    );
    let explanation = explained(&program(COSTS, CALLS), &more, &["parse"]);
    assert_eq!(first_row(&explanation), ("parse", 10_000.0, PartKind::Calls));
    assert_eq!(explanation.rows.len(), 1);
}

#[test]
fn a_new_callee_stands_at_its_caller_with_all_that_it_calls() {
    let new = program(
        &[("main", 10), ("parse", 1_000), ("list", 500), ("hash", 6_500), ("copy", 70)],
        &[
            ("main", "parse", 100),
            ("main", "list", 50),
            ("parse", "hash", 500),
            ("list", "hash", 100),
            ("parse", "copy", 10),
            ("copy", "hash", 50),
        ],
    );
    let explanation = explained(&program(COSTS, CALLS), &new, &["parse"]);
    assert_eq!(first_row(&explanation), ("parse", 570.0, PartKind::New));
    assert_eq!(explanation.rows.len(), 1);
    let gone = explained(&new, &program(COSTS, CALLS), &["parse"]);
    assert_eq!(first_row(&gone), ("parse", -570.0, PartKind::Gone));
}

#[test]
fn a_function_that_is_called_twice_as_often_no_longer_makes_twice_as_many_calls() {
    let without = program(
        &[("main", 10), ("parse", 2_000), ("list", 500), ("hash", 1_000)],
        &[("main", "parse", 200), ("main", "list", 50), ("list", "hash", 100)],
    );
    let explanation = explained(&program(COSTS, CALLS), &without, &["main", "parse"]);
    let rows: Vec<(&str, f64)> = explanation.rows.iter().map(|row| (row.name.as_str(), row.delta)).collect();
    assert_eq!(rows, [("parse", -10_000.0), ("main", 6_000.0)]);
}

#[test]
fn equal_code_passes_its_difference_to_callers_whose_code_differs() {
    let other = program(&[("main", 10), ("parse", 1_000), ("list", 500), ("hash", 12_000)], CALLS);
    let explanation = explained(&program(COSTS, CALLS), &other, &["parse", "list"]);
    let rows: Vec<(&str, f64)> = explanation.rows.iter().map(|row| (row.name.as_str(), row.delta)).collect();
    assert_eq!(rows, [("parse", 5_000.0), ("list", 1_000.0)]);
    assert_eq!(explanation.rows[0].parts[0].site.as_deref(), Some("hash"));
    let nowhere = explained(&program(COSTS, CALLS), &other, &[]);
    assert_eq!((nowhere.rows[0].name.as_str(), nowhere.rows[0].same_code), ("hash", Some(true)));
}

#[test]
fn recursion_counts_as_calls_and_parts_still_add_up() {
    let of = |depth: u64, own: u64| {
        program(
            &[("main", 10), ("even", own * depth), ("odd", own * depth)],
            &[("main", "even", 1), ("even", "odd", depth), ("odd", "even", depth - 1)],
        )
    };
    let explanation = explained(&of(100, 3), &of(1_000, 3), &["main"]);
    assert_eq!(explanation.delta(), 5_400.0);
    let dearer = explained(&of(100, 3), &of(100, 4), &["even", "odd"]);
    assert_eq!(dearer.rows.iter().map(|row| row.delta).collect::<Vec<_>>(), [100.0, 100.0]);
}

#[test]
fn library_code_compiled_into_the_program_counts_for_its_caller() {
    let of = |own: u64| {
        program(
            &[("main", 10), ("parse", 50), ("std::map", own)],
            &[("main", "parse", 5), ("parse", "std::map", 10)],
        )
    };
    let explanation = explained(&of(100), &of(300), &["std::map"]);
    assert_eq!((explanation.rows[0].name.as_str(), explanation.rows[0].delta), ("parse", 200.0));
}
