//! `scruple explain` on programs whose counts vary from launch to launch.

use crate::explain::{build, explain, first, pair, source, with_rounds};
use crate::programs::has_valgrind;
use crate::support::{Place, at};

/// Source of a program that does the same work in every launch, and beside it a number of rounds that depends on the
/// clock: up to 255 times `each`.
fn random(work: u32, each: u32) -> String {
    format!(
        "#include <time.h>\n\
         __attribute__((noinline)) static unsigned spin(unsigned rounds) {{\n\
           volatile unsigned sum = 0;\n  for (unsigned i = 0; i < rounds; i++) sum += i;\n  return sum;\n}}\n\
         __attribute__((noinline)) static unsigned work(unsigned rounds) {{\n\
           volatile unsigned sum = 0;\n  for (unsigned i = 0; i < rounds; i++) sum += i * 3;\n  return sum;\n}}\n\
         int main(void) {{\n  struct timespec now;\n  clock_gettime(CLOCK_REALTIME, &now);\n\
           unsigned byte = now.tv_nsec / 1000 % 256;\n\
           unsigned all = spin(byte * {each}) + work({work});\n  return all == 1;\n}}\n"
    )
}

#[test]
fn random_bytes_of_the_kernel_are_the_same_in_each_run() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    let source = "#include <stdio.h>\n#include <sys/random.h>\n\
                  int main(void) {\n  FILE *file = fopen(\"/dev/urandom\", \"r\");\n  unsigned byte = 0;\n\
                    getrandom(&byte, 1, 0);\n  volatile unsigned sum = 0;\n\
                    for (int i = 0; i < 1000; i++) {\n    byte += fgetc(file);\n\
                      for (unsigned j = 0; j < byte; j++) sum += j;\n  }\n  return 0;\n}\n";
    build(&place, "app", source);
    let answer = explain(&place, &["./app", "./app"]);
    let counts = at(&answer.json(), "/explain/counts/0").clone();
    assert_eq!(counts["difference"], 0.0, "{}", answer.exchange());
    assert!(counts["a"].as_f64().is_some_and(|total| total > 100_000_000.0), "{}", answer.exchange());
}

/// Explains two programs; the second does `more` more work. Requires that `runs` launches of each were enough and that
/// `main` is named. Returns the answer and the difference of `main`.
fn explain_more_work(place: &Place, more: u32, runs: u64) -> (serde_json::Value, f64) {
    build(place, "old", &random(1_000_000, 1));
    build(place, "new", &random(1_000_000 + more, 1));
    let answer = explain(place, &["./old", "./new"]);
    let page = answer.json();
    assert_eq!(at(&page, "/explain/runs"), runs, "{}", answer.exchange());
    assert_eq!(at(&page, "/explain/repeats"), false, "{}", answer.exchange());
    let (function, kind, delta) = first(&answer);
    assert_eq!((function.as_str(), kind.as_str()), ("main", "own"), "{}", answer.exchange());
    (page, delta)
}

#[test]
fn two_runs_are_enough_if_counts_vary_by_much_less_than_the_programs_differ() {
    if !has_valgrind() {
        return;
    }
    let (page, delta) = explain_more_work(&Place::new(), 300_000, 2);
    assert!((1_000_000.0..2_000_000.0).contains(&delta), "{delta}: {page:#}");
}

#[test]
fn one_run_is_enough_if_the_programs_differ_by_much_more_than_any_function_can_vary() {
    if !has_valgrind() {
        return;
    }
    let (page, delta) = explain_more_work(&Place::new(), 39_000_000, 1);
    assert!(delta > 100_000_000.0, "{delta}: {page:#}");
    let sentences = at(&page, "/explain/sentences").to_string();
    assert!(sentences.contains("one launch of each; the total of another one differs by"), "{sentences}");
    // What differs by chance is less than a function can vary.
    let rows = at(&page, "/explain/counts/0/rows").as_array().expect("rows");
    assert!(rows.iter().all(|row| row["within_spread"] == true || row["function"] == "main"), "{rows:?}");
}

#[test]
fn programs_that_vary_by_more_than_they_differ_have_no_row() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    build(&place, "old", &random(1000, 10_000));
    build(&place, "new", &random(1010, 10_000));
    let answer = explain(&place, &["--runs", "6", "./old", "./new"]);
    let page = answer.json();
    // As soon as more runs cannot tell a difference, none follow.
    let runs = at(&page, "/explain/runs").as_u64().expect("a number");
    assert!((2..=6).contains(&runs), "{}", answer.exchange());
    let rows = at(&page, "/explain/counts/0/rows").as_array().expect("rows");
    let counted = rows.iter().filter(|row| row["within_spread"] == false && row["function"] == "spin");
    assert_eq!(counted.count(), 0, "{}", answer.exchange());
}

#[test]
fn variation_of_generated_code_needs_no_explanation() {
    if !has_valgrind() || !cfg!(target_arch = "x86_64") {
        return;
    }
    let place = Place::new();
    // It generates a loop, whose number of rounds depends on the clock.
    let source = "#include <string.h>\n#include <sys/mman.h>\n#include <time.h>\n\
        static const unsigned char loop[] = {0x89, 0xf9, 0xff, 0xc9, 0x75, 0xfc, 0xc3};\n\
        int main(void) {\n\
          void *code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);\n\
          memcpy(code, loop, sizeof loop);\n\
          struct timespec now;\n  clock_gettime(CLOCK_REALTIME, &now);\n\
          ((void (*)(unsigned))code)(10000000 + now.tv_nsec / 1000 % 256 * 1000);\n  return 0;\n}\n";
    build(&place, "app", source);
    let answer = explain(&place, &["./app", "./app"]);
    let sentences = at(&answer.json(), "/explain/sentences").to_string();
    assert!(sentences.contains("No function differs by more than it varies"), "{}", answer.exchange());
    assert!(!sentences.contains("Can’t tell where it comes from"), "{}", answer.exchange());
}

#[test]
fn paths_and_environments_are_not_blamed_where_data_differ() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    // The variable is where the data end, which code that the compiler adds to every program mentions.
    let wide = "long wide[8] __attribute__((aligned(64)));\n";
    pair(&place, &with_rounds(20_000), &(wide.to_owned() + &with_rounds(20_001)));
    let text = place.run(["explain", "--no-time", "./old", "./new"]);
    assert_eq!(text.code, 0, "{}", text.exchange());
    let cause = "lengths cause, but data that the program starts with differ (rounds).";
    assert!(text.unwrapped().contains(cause), "{}", text.exchange());
}

#[test]
fn a_function_with_another_name_is_no_cause_where_the_input_differs() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    for (program, function) in [("one", "hash"), ("two", "digest")] {
        let text = source(20, &format!("all += {function}(text, 5);"), function)
            .replace("int main(void)", "int main(int count, char **words)")
            .replace("i < 2000", "i < 1000 * count");
        build(&place, program, &text);
    }
    let text = place.run(["explain", "--no-time", "./one", "./two more"]);
    let cause = "No function’s code explains it, so the input or the state must differ";
    assert!(text.unwrapped().contains(cause), "{}", text.exchange());
}

#[test]
fn what_only_the_first_launch_prints_is_no_other_output() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    let source = "#include <stdio.h>\n#include <string.h>\n\
                  int main(int count, char **words) {\n  char file[99] = \"ready-\";\n\
                    if (count < 2 || strlen(words[1]) > 50) return 1;\n  strcat(file, words[1]);\n\
                    FILE *known = fopen(file, \"r\");\n\
                    if (!known) fprintf(stderr, \"compiling %s\\n\", fopen(file, \"w\") ? file : \"\");\n\
                    puts(words[2] ? words[2] : \"done\");\n  return 0;\n}\n";
    build(&place, "app", source);
    let said = |other: &str| {
        let answer = explain(&place, &["./app one", other]);
        at(&answer.json(), "/explain/remarks").to_string().contains("print different output")
    };
    assert!(!said("./app two"));
    assert!(said("./app two other"));
}
