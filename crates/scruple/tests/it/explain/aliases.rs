//! `scruple explain` on functions with several names: what linkers fold into one function is like an alias.

use crate::explain::{adds_up, build, difference, explain, first};
use crate::programs::has_valgrind;
use crate::support::{Answer, Place, at};

/// Source of a program that calls `one` and `two`. These loop for the given numbers of rounds; if `two` has none, it is
/// an alias.
fn source(one: u32, two: Option<u32>) -> String {
    let function = |name: &str, rounds: u32| {
        format!(
            "__attribute__((noinline)) unsigned {name}(unsigned x) {{\n\
               for (int i = 0; i < {rounds}; i++) x = x * 31 + 7;\n  return x;\n}}\n"
        )
    };
    let second = match two {
        Some(rounds) => function("two", rounds),
        None => "unsigned two(unsigned x) __attribute__((alias(\"one\")));\n".to_owned(),
    };
    format!(
        "{}{second}__attribute__((noinline)) unsigned parse(unsigned x) {{ return one(x) ^ two(x + 1); }}\n\
         int main(void) {{\n  unsigned sum = 1;\n\
           for (int i = 0; i < 2000; i++) sum += parse(sum);\n  return sum == 7;\n}}\n",
        function("one", one)
    )
}

/// Checks that the functions are compared as one, and that this is said.
fn is_one(answer: &Answer, side: &str) {
    adds_up(answer);
    let (function, kind, delta) = first(answer);
    assert_eq!((function.as_str(), kind.as_str()), ("one or two", "own"), "{}", answer.exchange());
    assert!(
        (delta - difference(answer)).abs() < 100.0 && delta.abs() >= 2000.0 * 40.0,
        "{}",
        answer.exchange()
    );
    let row = at(&answer.json(), "/explain/counts/0/rows/0").clone();
    assert_eq!((&row["code"], &row["calls"]), (&"changed".into(), &serde_json::json!([4000, 4000])), "{row}");
    let remarks = at(&answer.json(), "/explain/remarks").to_string();
    assert!(remarks.contains(&format!("{side} has one function for one or two")), "{remarks}");
}

#[test]
fn functions_that_are_folded_in_one_program_are_compared_as_one() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    build(&place, "folded", &source(20, None));
    build(&place, "dearer", &source(20, Some(60)));
    is_one(&explain(&place, &["./folded", "./dearer"]), "A");
    is_one(&explain(&place, &["./dearer", "./folded"]), "B");
    for program in ["folded", "dearer"] {
        let file = format!("{program}.calls");
        let command = format!("./{program}");
        let kept = place.run(["inspect", "calls", "--export", &file, "--", &command]);
        assert_eq!(kept.code, 0, "{}", kept.exchange());
    }
    is_one(&explain(&place, &["folded.calls", "dearer.calls"]), "A");
    // The code of `parse` is the same, and so is that of both functions.
    build(&place, "apart", &source(20, Some(20)));
    for pair in [["./folded", "./apart"], ["./apart", "./folded"]] {
        let answer = explain(&place, &pair);
        let rows = at(&answer.json(), "/explain/counts/0/rows").clone();
        let shown = rows.as_array().into_iter().flatten().filter(|row| row["shown"] == true);
        assert_eq!(shown.count(), 0, "{}", answer.exchange());
    }
}

#[test]
fn several_groups_of_folded_functions_have_one_remark() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    let source = |rounds: u32, is_apart: bool| {
        let mut functions = String::new();
        let mut calls = String::new();
        for group in 0..5 {
            let loops = |name: &str, rounds: u32| {
                format!(
                    "__attribute__((noinline)) unsigned {name}{group}(unsigned x) {{\n\
                       for (int i = 0; i < {rounds}; i++) x = x * 31 + {group};\n  return x;\n}}\n"
                )
            };
            functions += &loops("one", rounds);
            functions += &match is_apart {
                true => loops("two", rounds + 40),
                false => format!("unsigned two{group}(unsigned x) __attribute__((alias(\"one{group}\")));\n"),
            };
            calls += &format!("sum += one{group}(sum) ^ two{group}(sum + 1);\n");
        }
        let rounds = "for (int i = 0; i < 2000; i++) {\n";
        format!("{functions}int main(void) {{\n  unsigned sum = 1;\n{rounds}{calls}}} return sum == 7;\n}}\n")
    };
    build(&place, "folded", &source(20, false));
    build(&place, "apart", &source(20, true));
    build(&place, "dearer", &source(30, false));
    let listed = |pair: [&str; 2], begin: &str| {
        let answer = explain(&place, &pair);
        let remarks = at(&answer.json(), "/explain/remarks").clone();
        let texts = remarks.as_array().into_iter().flatten().filter_map(|text| text.as_str());
        let found: Vec<&str> = texts.filter(|text| text.contains("one function for")).collect();
        let [one] = found.as_slice() else { panic!("{}", answer.exchange()) };
        assert!(one.starts_with(begin) && one.contains("; and 2 more ("), "{one}");
        assert_eq!(one.matches(" or two").count(), 3, "{one}");
    };
    listed(["./folded", "./apart"], "A has one function for each of: one");
    listed(["./apart", "./folded"], "B has one function for each of: one");
    listed(["./folded", "./dearer"], "A and B have one function for each of: one");
}

#[test]
fn of_an_alias_that_both_programs_have_the_row_has_one_name_and_the_remark_all() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    build(&place, "old", &source(20, None));
    build(&place, "new", &source(22, None));
    let answer = explain(&place, &["./old", "./new"]);
    let (function, kind, _) = first(&answer);
    assert!(["one", "two"].contains(&function.as_str()) && kind == "own", "{}", answer.exchange());
    let remarks = at(&answer.json(), "/explain/remarks").to_string();
    assert!(remarks.contains("A and B have one function for one or two (compilers"), "{remarks}");
    assert!(remarks.contains("a row with one of the names stands for all of them"), "{remarks}");
}

#[test]
fn a_remark_lists_only_functions_that_the_report_names() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    let source = |times: u32| {
        format!(
            "#define LOOP(name, rounds) __attribute__((noinline)) unsigned name(unsigned x) {{ \\\n\
               for (int i = 0; i < rounds; i++) x = x * 31 + rounds; return x; }}\n\
             LOOP(first, 50)\nLOOP(second, 40)\nLOOP(third, 30)\nLOOP(least, 5)\n\
             unsigned alias(unsigned x) __attribute__((alias(\"least\")));\n\
             int main(void) {{\n  unsigned sum = 1;\n  for (int i = 0; i < 1000 * {times}; i++)\n\
               sum += first(sum) ^ second(sum) ^ third(sum) ^ least(sum);\n  return sum == 7;\n}}\n"
        )
    };
    build(&place, "old", &source(2));
    build(&place, "new", &source(3));
    let answer = explain(&place, &["./old", "./new"]);
    let parts = at(&answer.json(), "/explain/counts/0/rows/0/parts").to_string();
    assert!(parts.contains("\"least\"") || parts.contains("\"alias\""), "{}", answer.exchange());
    let remarks = at(&answer.json(), "/explain/remarks").to_string();
    assert!(!remarks.contains("one function for"), "{remarks}");
}

/// `one` and `two` are one function, and `three` another one; or `one` and `three`, with the codes exchanged.
#[test]
fn functions_are_not_the_same_because_another_one_has_their_code() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    let source = |same: &str, other: &str| {
        format!(
            "#define LOOP(name, rounds) __attribute__((noinline)) unsigned name(unsigned x) {{ \\\n\
               for (int i = 0; i < rounds; i++) x = x * 31 + 7; return x; }}\n\
             LOOP(one, 20)\nLOOP({other}, 60)\nunsigned {same}(unsigned x) __attribute__((alias(\"one\")));\n\
             __attribute__((noinline)) unsigned parse(unsigned x) {{\n\
               return one(x) ^ two(x) ^ two(x + 1) ^ three(x + 2); }}\n\
             int main(void) {{\n  unsigned sum = 1;\n\
               for (int i = 0; i < 2000; i++) sum += parse(sum);\n  return sum == 7;\n}}\n"
        )
    };
    build(&place, "old", &source("two", "three"));
    build(&place, "new", &source("three", "two"));
    let answer = explain(&place, &["./old", "./new"]);
    adds_up(&answer);
    let (function, kind, _) = first(&answer);
    assert_eq!((function.as_str(), kind.as_str()), ("one, three or two", "own"), "{}", answer.exchange());
    let row = at(&answer.json(), "/explain/counts/0/rows/0").clone();
    assert_eq!(row["code"], "changed", "{}", answer.exchange());
}
