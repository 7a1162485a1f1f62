//! Goroutines: each has a stack of its own.

use crate::harness::{Workshop, of, paths};
use scruple_code::Profile;
use std::path::Path;

/// The contexts of a function of the program, sorted: the program's own functions on the path, and the number of calls.
fn own_paths(tree: &Profile, name: &str) -> Vec<(String, u64)> {
    let own = |(path, calls): (String, u64)| {
        let words = path.split(' ').filter_map(|word| word.strip_prefix("main."));
        (words.collect::<Vec<_>>().join(" "), calls)
    };
    let mut all: Vec<_> = paths(tree, &format!("main.{name}")).into_iter().map(own).collect();
    all.sort();
    all
}

fn check(tree: &Profile) {
    let one = |path: &str, calls: u64| (path.to_owned(), calls);
    assert_eq!(own_paths(tree, "score"), [one("main pool worker score", 300)]);
    assert_eq!(own_paths(tree, "worker"), [one("main pool worker", 3)]);
    let descends = [one("main grow deep descend", 5), one("main grow deep descend descend", 5)];
    assert_eq!(own_paths(tree, "descend"), descends);
    assert_eq!(of(tree, "main.descend").calls, 5 * 201);
    assert_eq!(own_paths(tree, "attempt"), [one("main panics attempts attempt", 50)]);
    assert_eq!(
        own_paths(tree, "leave"),
        [one("main ends quits leave", 20), one("main ends quits leave leave", 20)]
    );
    assert_eq!(own_paths(tree, "one"), [one("main many one", 1000)]);
    assert_eq!(own_paths(tree, "add"), [one("main many one add", 1000)]);
    let leaves = [
        one("main grow deep descend descend leaf", 995),
        one("main grow deep descend leaf", 5),
        one("main many one add leaf", 1000),
        one("main pulls sequence leaf", 40),
    ];
    assert_eq!(own_paths(tree, "leaf"), leaves);
    let after = [
        one("main panics attempts after", 50),
        one("main pool collect after", 300),
        one("main pulls after", 40),
    ];
    assert_eq!(own_paths(tree, "after"), after);
    // Chance decides below which function a timer fires.
    assert_eq!(own_paths(tree, "timed"), [one("timed", 1)]);
    assert_eq!(own_paths(tree, "fired"), [one("fired", 1)]);
    // What is executed on a thread's own stack belongs to the goroutine that needs it.
    let copies = paths(tree, "runtime.copystack");
    assert!(copies.iter().any(|(path, _)| path.contains("main.grow main.deep main.descend")), "{copies:?}");
}

#[test]
fn goroutines_are_called_by_the_functions_that_start_them() {
    let Some(workshop) = Workshop::new() else { return };
    let Some(program) = workshop.compile_go(Path::new("goroutine_tree.go"), 23, &[]) else { return };
    check(&workshop.tree(&program, &[]));
}

#[test]
fn goroutines_of_a_stripped_program_have_the_same_tree() {
    let Some(workshop) = Workshop::new() else { return };
    let Some(program) = workshop.compile_go(Path::new("goroutine_tree.go"), 23, &["-ldflags=-s -w"]) else {
        return;
    };
    check(&workshop.tree(&program, &[]));
}
