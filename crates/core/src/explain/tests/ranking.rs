//! The order of rows.

use super::*;

#[test]
fn equal_machine_code_never_stands_before_changed_code_whose_difference_matters() {
    let mut lines = MAIN.to_vec();
    (lines[2].3, lines[3].3) = (6_000, 5_070);
    let found = explained(&tree(MAIN), &tree(&lines), &["hash"]);
    let rows: Vec<_> = found.rows.iter().map(|row| (row.name.as_str(), row.delta, row.same_code)).collect();
    assert_eq!(rows, [("hash", 1_000.0, Some(false)), ("print", 5_000.0, Some(true))]);
    // A change of less than a twentieth of all differences is not the answer.
    lines[2].3 = 5_200;
    let found = explained(&tree(MAIN), &tree(&lines), &["hash"]);
    assert_eq!(found.rows[0].name, "print", "{found:#?}");
}

#[test]
fn a_row_in_the_direction_of_the_difference_stands_first() {
    // The difference is 700: `print` costs 600 less, and several functions with the same code cost more.
    let lines = |[print, one, two, three]: [u64; 4]| {
        let own = [("print", print), ("one", one), ("two", two), ("three", three)];
        let below = own.into_iter().map(|(name, own)| (1, name, 1, own));
        tree(&[(0, "main", 1, 10)].into_iter().chain(below).collect::<Vec<_>>())
    };
    let (old, new) = (lines([1_000; 4]), lines([400, 1_450, 1_440, 1_410]));
    let names = |changed: &[&str]| {
        let found = explained(&old, &new, changed);
        found.rows.into_iter().map(|row| row.name).collect::<Vec<_>>()
    };
    assert_eq!(names(&[]), ["one", "print", "two", "three"]);
    // A function with changed code still comes before others with the same code.
    assert_eq!(names(&["print"]), ["print", "one", "two", "three"]);
    assert_eq!(names(&["print", "three"]), ["three", "print", "one", "two"]);
    let same = lines([400, 1_200, 1_200, 1_200]);
    assert_eq!(explained(&old, &same, &[]).rows[0].name, "print");
}
