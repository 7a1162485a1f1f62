//! Functions with several names.

use super::*;
use crate::explain::Function;

/// A tree with these functions of the program, each with all its names, the main one first.
fn tree(functions: &[&[&str]]) -> Tree {
    let function = |names: &&[&str]| Function {
        module: "program".to_owned(),
        name: names[0].to_owned(),
        aliases: names[1..].iter().map(|name| (*name).to_owned()).collect(),
        ..Function::default()
    };
    Tree { functions: functions.iter().map(function).collect(), ..Tree::default() }
}

/// The name of a key, its other name, and its functions of both trees.
type Found = (String, Option<String>, Vec<usize>, Vec<usize>);

/// The keys that have functions.
fn keys(first: &[&[&str]], second: &[&[&str]]) -> Vec<Found> {
    let code = CodeComparison { same: &|_, _| None, likeness: &|_, _| 0.0, are_two: &|_, _| false };
    let matched = Matched::of(&tree(first), &tree(second), &code);
    for (side, keys_of) in [&matched.of_first, &matched.of_second].into_iter().enumerate() {
        for (function, key) in keys_of.iter().enumerate() {
            let key = &matched.keys[*key];
            assert!([&key.first, &key.second][side].contains(&function), "{key:?}");
        }
    }
    let keys = matched.keys.into_iter().filter(|key| !key.first.is_empty() || !key.second.is_empty());
    keys.map(|key| (key.name, key.renamed, key.first, key.second)).collect()
}

#[test]
fn functions_that_are_one_in_the_other_program_are_one() {
    let named = |name: &str, first: &[usize], second: &[usize]| {
        (name.to_owned(), None, first.to_vec(), second.to_vec())
    };
    let found = keys(&[&["one", "two"], &["parse"]], &[&["two"], &["one"], &["parse"]]);
    assert_eq!(found, [named("one or two", &[0], &[0, 1]), named("parse", &[1], &[2])]);
    let found = keys(&[&["one"], &["two"]], &[&["two", "one"]]);
    assert_eq!(found, [named("one or two", &[0, 1], &[0])]);
    // Which two of three are one differs: a call of the second may be part of either.
    let found = keys(&[&["a", "b"], &["c"]], &[&["a"], &["c", "b"]]);
    assert_eq!(found, [named("a or c", &[0, 1], &[0, 1])]);
    // Instances of a template have one name.
    let found = keys(&[&["add<int>", "add<long>"]], &[&["add<int>"], &["add<long>"]]);
    assert_eq!(found, [named("add", &[0], &[0, 1])]);
    let all: Vec<String> = (0..9).map(|at| format!("f{at}")).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let each: Vec<&[&str]> = all.chunks(1).collect();
    assert_eq!(keys(&[&all], &each)[0].0, "f0, f1 or 7 others");
}

#[test]
fn aliases_that_both_programs_have_change_nothing() {
    // Two functions of other files have the name `help`, and one of them has an alias.
    let functions: [&[&str]; 4] = [&["malloc", "memory"], &["help"], &["help", "other"], &["free"]];
    let found = keys(&functions, &functions);
    assert_eq!(found.len(), 4, "{found:?}");
    assert!(found.iter().all(|key| key.2 == key.3 && key.2.len() == 1 && key.1.is_none()), "{found:?}");
    // Tools choose one of the names.
    let found = keys(&[&["malloc", "memory"]], &[&["memory", "malloc"]]);
    assert_eq!(found, [("malloc".to_owned(), None, vec![0], vec![0])]);
    // One program has a name less, or the name by which the other one is shown.
    let found = keys(&[&["malloc", "memory"]], &[&["memory"]]);
    assert_eq!(found, [("malloc".to_owned(), None, vec![0], vec![0])]);
    let found = keys(&[&["memory"]], &[&["malloc", "memory"]]);
    assert_eq!(found, [("memory".to_owned(), Some("malloc".to_owned()), vec![0], vec![0])]);
}
