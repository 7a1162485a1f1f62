//! The part of the diff that `scruple explain` names, of several that touch one function.

use crate::explain::{explain, first};
use crate::programs::has_valgrind;
use crate::repository::Repository;
use crate::support::{Place, at};

/// Source of a program whose function `work` executes these two statements in a loop of 300 rounds.
fn source(one: &str, other: &str) -> String {
    format!(
        "#include <stdlib.h>\n#include <string.h>\nstatic char text[5000], copy[5000];\n\
         static volatile unsigned all, length = 4000;\n\
         __attribute__((noinline)) static unsigned rare(unsigned x) {{\n  \
           for (unsigned i = 0; i < 50; i++) x = x * 7 + (x >> 3);\n  return x;\n}}\n\
         __attribute__((noinline)) void work(void) {{\n  for (unsigned i = 0; i < 300; i++) {{\n    \
             {one}\n    all += 1;\n    all += 2;\n    {other}\n  }}\n}}\n\
         int main(void) {{\n  memset(text, 'a', 4000);\n  work();\n  return rare(all) == 1;\n}}\n"
    )
}

/// Explains the second source against the first. The answer is the named part of the diff in the first row, and whether
/// others are as likely.
fn named(place: &Place, old: &str, new: &str) -> (String, u64) {
    let repository = Repository::new(place, "repo");
    repository.write(".gitignore", "app\n");
    repository.write("app.c", old);
    repository.commit("old");
    repository.write("app.c", new);
    repository.commit("new");
    let build = ["--repo", "repo", "--build", "cc -O1 -fno-builtin -g -o app app.c", "--artifact", "app"];
    let answer = explain(place, &[&build[..], &["HEAD~1", "HEAD", "--", "./app"]].concat());
    assert_eq!(first(&answer).0, "work", "{}", answer.exchange());
    let row = at(&answer.json(), "/explain/counts/0/rows/0").clone();
    let hunk = row["hunk"].as_str().unwrap_or_default().to_owned();
    (hunk, row["other_hunks"].as_u64().expect("a number"))
}

#[test]
fn a_part_of_the_diff_that_calls_a_library_more_often_is_named_before_one_with_more_own_code() {
    if !has_valgrind() {
        return;
    }
    let old = source("all += i * 3;", "if (i % 100 == 0) all += strlen(text);");
    let new = source("all += i * 3 + (i >> 2) * 9 + (i ^ 5);", "if (i % 2 == 0) all += strlen(text);");
    assert_eq!(named(&Place::new(), &old, &new), ("app.c:14".to_owned(), 0));
}

#[test]
fn a_part_of_the_diff_that_calls_an_expensive_function_is_named_before_one_with_more_own_code() {
    if !has_valgrind() {
        return;
    }
    let old = source("all += i * 3;", "all += 4;");
    let new = source("all += i * 3 + (i >> 2) * 9 + (i ^ 5) * i + (i | 3) % 7;", "all += rare(i);");
    assert_eq!(named(&Place::new(), &old, &new), ("app.c:14".to_owned(), 0));
}

#[test]
fn a_part_of_the_diff_that_copies_more_in_each_call_is_named_before_one_with_more_own_code() {
    if !has_valgrind() {
        return;
    }
    let old = source("all += i * 3;", "memcpy(copy, text, length / 50);");
    let new = source("all += i * 3 + (i >> 2) * 9 + (i ^ 5) * i;", "memcpy(copy, text, length);");
    assert_eq!(named(&Place::new(), &old, &new), ("app.c:14".to_owned(), 0));
}

#[test]
fn a_part_of_the_diff_is_named_in_a_function_that_is_no_longer_inlined() {
    if !has_valgrind() {
        return;
    }
    let with = |kind: &str, added: &str| {
        let text = source("all += often(i);", "all += rare(i);");
        let often = format!(
            "static {kind} unsigned often(unsigned x) {{\n  x ^= x >> 2;\n{added}  return x * 5;\n}}\n"
        );
        text.replace(
            "__attribute__((noinline)) void work",
            &format!("{often}__attribute__((noinline)) void work"),
        )
    };
    let old = with("inline __attribute__((always_inline))", "");
    let new = with("__attribute__((noinline))", "  free(malloc(x % 50 + 1));\n");
    let (hunk, _) = named(&Place::new(), &old, &new);
    assert_eq!(hunk, "app.c:11");
}

#[test]
fn a_part_of_the_diff_is_not_named_alone_where_a_constant_may_be_the_cause() {
    if !has_valgrind() {
        return;
    }
    let with = |rounds: u32, one: &str| {
        let text = source(one, "all += 4;").replace("i < 300", "i < ROUNDS");
        format!("#define ROUNDS {rounds}\n{text}")
    };
    let (hunk, others) = named(&Place::new(), &with(300, "all += i * 3;"), &with(900, "all += i * 5;"));
    assert_eq!(others, 1, "{hunk}");
}

#[test]
fn the_definition_of_a_macro_that_a_function_is_made_by_or_uses_is_named() {
    if !has_valgrind() {
        return;
    }
    let header = |rounds: u32, added: &str| {
        format!(
            "#define ROUNDS {rounds}\n#define OTHER {rounds}\n#define SUM(name) \\\n  \
             __attribute__((noinline)) static unsigned name(unsigned x) {{ \\\n    \
             for (unsigned i = 0; i < ROUNDS; i++) \\\n      x = x * 31 + i{added}; \\\n    return x; \\\n  }}\n"
        )
    };
    let program = "#include \"sum.h\"\nSUM(sum)\nint main(void) {\n  unsigned all = 1;\n  \
                   for (int i = 0; i < 2000; i++) all = sum(all);\n  return all == 1;\n}\n";
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.write(".gitignore", "app\n");
    repository.write("sum.h", &header(40, ""));
    repository.write("app.c", program);
    repository.commit("old");
    // The lines of the body are those of the macro, and the constant is used by another macro only.
    for (new, hunk) in [(header(40, " + (x >> 3)"), "sum.h:6"), (header(60, " + (x >> 3)"), "sum.h:1-2")] {
        repository.write("sum.h", &new);
        repository.commit("new");
        let build = ["--repo", "repo", "--build", "cc -O1 -g -o app app.c", "--artifact", "app"];
        let answer = explain(&place, &[&build[..], &["HEAD~1", "HEAD", "--", "./app"]].concat());
        let row = at(&answer.json(), "/explain/counts/0/rows/0").clone();
        assert_eq!([&row["function"], &row["hunk"]], ["sum", hunk], "{}", answer.exchange());
        assert!(!answer.stdout.contains("the source of sum is the same"), "{}", answer.exchange());
    }
}

#[test]
fn revisions_without_a_command_are_told_from_misspelt_programs() {
    let place = Place::new();
    let repository = Repository::new(&place, ".");
    repository.write("app.c", "int main(void) { return 0; }\n");
    repository.commit("old");
    repository.write("app.c", "int main(void) { return 1; }\n");
    repository.commit("new");
    let refused = |words: [&str; 3]| place.run(words).stderr;
    if has_valgrind() {
        assert!(refused(["explain", "HEAD~1", "HEAD"]).contains("`scruple explain HEAD~1 HEAD -- ./app`"));
        assert!(refused(["explain", "HEAD~1", "hed"]).contains("check the spelling"));
        let range = place.run(["explain", "HEAD~1..HEAD", "--", "./app"]);
        assert_eq!(range.code, 2, "{}", range.exchange());
        assert!(
            range.stderr.contains("write two revisions as two words: ‘HEAD~1 HEAD’"),
            "{}",
            range.exchange()
        );
    }
}
