use crate::explain::{
    CodeComparison, Context, Count, Explanation, Function, Matched, OwnCost, PartKind, Tree, explain,
};

/// A tree of lines: the context of the caller, the function and its file, calls, and own instructions.
pub fn tree(lines: &[(usize, &str, &str, u64, u64)]) -> Tree {
    let mut tree = Tree { folds_by_call: true, ..Tree::default() };
    for (at, (parent, name, module, calls, own)) in lines.iter().enumerate() {
        let (name, module) = ((*name).to_owned(), (*module).to_owned());
        tree.functions.push(Function { name, module, ..Function::default() });
        let cost = OwnCost { instructions: *own, ..OwnCost::default() };
        let parent = (at > 0).then_some(*parent);
        tree.contexts.push(Context { parent, function: at, calls: *calls, recursive: 0, cost });
    }
    tree
}

/// Explains two trees in which the code of `changed` differs.
pub fn explained(first: &Tree, second: &Tree, changed: &str) -> Explanation {
    let same = |old: &[usize], _: &[usize]| Some(old.iter().all(|one| first.functions[*one].name != changed));
    let code = CodeComparison { same: &same, likeness: &|_, _| 0.0, are_two: &|_, _| false };
    let matched = Matched::of(first, second, &code);
    explain(first, second, &matched, &code, &[Count::Instructions]).remove(0)
}

/// A program in which `parse` calls an allocator in this file, which consolidates the heap `consolidations` times.
fn allocating(library: &str, requests: u64, consolidations: u64) -> Tree {
    tree(&[
        (0, "", "", 1, 0),
        (0, "parse", "program", 1, 1_000),
        (1, "malloc", library, requests, 10 * requests),
        (2, "_int_malloc", library, requests, 50 * requests),
        (3, "malloc_consolidate", library, consolidations, 700 * consolidations),
        (4, "memset", library, consolidations, 5 * consolidations),
    ])
}

#[test]
fn what_the_allocator_does_inside_is_a_part_of_the_function_that_is_called() {
    let library = "libc.so";
    let found = explained(&allocating(library, 100, 1), &allocating(library, 100, 2), "parse");
    let row = &found.rows[0];
    let parts: Vec<_> = row.parts.iter().map(|part| (part.kind, part.site.as_deref(), part.delta)).collect();
    assert_eq!((found.rows.len(), row.name.as_str()), (1, "parse"), "{found:#?}");
    assert_eq!(parts, [(PartKind::Own, Some("malloc"), 705.0)], "{found:#?}");
    // More requests are calls of the entry, each with all that it costs.
    let found = explained(&allocating(library, 100, 1), &allocating(library, 200, 2), "parse");
    let part = &found.rows[0].parts[0];
    assert_eq!(
        (part.kind, part.callee.as_deref(), part.calls),
        (PartKind::Calls, Some("malloc"), (100, 200))
    );
    assert_eq!((part.delta, found.rows[0].parts.len()), (6_705.0, 1), "{found:#?}");
    // The row of the entry itself has its calls and all of its cost.
    let found = explained(&allocating(library, 100, 1), &allocating(library, 100, 2), "malloc");
    let row = &found.rows[0];
    assert_eq!((row.name.as_str(), row.calls, row.own), ("malloc", (100, 100), (6_705, 7_410)), "{found:#?}");
}

#[test]
fn a_change_inside_of_the_allocator_is_one_of_the_function_that_is_called() {
    let mut dearer = allocating("libc.so", 100, 1);
    dearer.contexts[3].cost.instructions += 1_000;
    let found = explained(&allocating("libc.so", 100, 1), &dearer, "_int_malloc");
    let row = &found.rows[0];
    assert_eq!((row.name.as_str(), row.same_code, row.delta), ("malloc", Some(false), 1_000.0), "{found:#?}");
}

#[test]
fn the_inside_of_another_allocator_is_code_like_any_other() {
    let library = "libjemalloc.so";
    let found = explained(&allocating(library, 100, 1), &allocating(library, 100, 2), "parse");
    let sites: Vec<_> = found.rows[0].parts.iter().map(|part| part.site.as_deref()).collect();
    assert_eq!(sites, [Some("_int_malloc")], "{found:#?}");
}
