//! Functions in files with other names.

use super::*;

#[test]
fn files_in_another_folder_are_the_same_files() {
    let tree_in = |folder: &str, norm: u64| {
        let mut tree = tree(&[(0, "main", 1, 10), (1, "count", 100, 1_000), (2, "norm", 500, norm)]);
        for function in &mut tree.functions {
            function.module = match function.name.as_str() {
                "count" => format!("module {folder}/lib/index.js"),
                "norm" => format!("module {folder}/text/index.js"),
                _ => "module main.js".to_owned(),
            };
        }
        tree
    };
    let found = explained(&tree_in("old", 5_000), &tree_in("new", 6_000), &["norm"]);
    let row = &found.rows[0];
    assert_eq!(
        (row.name.as_str(), row.module.as_str(), row.only_in, row.renamed.as_deref()),
        ("norm", "module old/text/index.js", None, None),
        "{found:#?}"
    );
    assert_eq!(found.rows.len(), 1, "{found:#?}");
}

#[test]
fn files_with_other_names_are_versions_of_one_if_they_have_the_same_functions() {
    let in_file = |file: &str, hash: u64| {
        let mut lines = MAIN.to_vec();
        lines[2].3 = hash;
        let mut tree = tree(&lines);
        tree.functions
            .iter_mut()
            .filter(|one| !one.name.is_empty())
            .for_each(|one| one.module = file.to_owned());
        // The root of the tree is the process that runs the file.
        tree.functions[0].name = file.to_owned();
        tree
    };
    let found = explained(&in_file("old", 5_000), &in_file("new", 5_500), &["hash"]);
    assert_eq!(found.rows.len(), 1, "{found:#?}");
    assert_eq!((found.rows[0].name.as_str(), found.rows[0].delta), ("hash", 500.0));
    let mut another = in_file("new", 5_500);
    for (function, name) in another.functions.iter_mut().skip(1).zip(["main", "read", "sort", "write"]) {
        function.name = name.to_owned();
    }
    let apart = explained(&in_file("old", 5_000), &another, &["hash"]);
    assert!(apart.rows.iter().all(|row| row.name != "hash"), "{apart:#?}");
}

#[test]
fn a_function_may_move_from_the_program_into_a_library() {
    let with_hash_in = |file: &str, own_of_parse: u64| {
        let mut lines = MAIN.to_vec();
        lines[1].3 = own_of_parse;
        let mut tree = tree(&lines);
        named(&mut tree, "hash").module = file.to_owned();
        tree
    };
    let found = explained(&with_hash_in("program", 1_000), &with_hash_in("libhash.so", 1_500), &["parse"]);
    assert_eq!(differences(&found), [("parse", 500.0)]);
    let [part] = found.rows[0].parts.as_slice() else { panic!("{found:#?}") };
    assert_eq!((part.kind, part.delta), (PartKind::Own, 500.0));
}
