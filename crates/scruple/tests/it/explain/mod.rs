//! `scruple explain` on programs whose difference is known.

mod aliases;
mod fallback;
mod goroutines;
mod haskell;
mod hostile;
mod hunks;
mod memory;
mod moved_work;
mod recursion;
mod script_servers;
mod scripts;
mod side_by_side;
mod sources;
mod stripped;
mod variation;

use crate::pages;
use crate::programs::has_valgrind;
use crate::repository::Repository;
use crate::support::{Answer, Place, at};
use std::process::Command;

/// Source of a program whose function `function` hashes a text in `rounds` rounds. The statements `calls` in `parse`
/// call it; `main` also runs a loop that stays the same.
pub fn source(rounds: u32, calls: &str, function: &str) -> String {
    format!(
        "#include <stdio.h>\n#include <stdlib.h>\n\
         __attribute__((noinline)) static unsigned {function}(const char *text, unsigned length) {{\n\
           unsigned hash = 2166136261u;\n\
           for (unsigned round = 0; round < {rounds}; round++)\n\
             for (unsigned i = 0; i < length; i++) {{ hash ^= (unsigned char)text[i]; hash *= 16777619u; }}\n\
           __asm__ volatile(\"\" : \"+r\"(hash));\n  return hash;\n}}\n\
         __attribute__((noinline)) static unsigned parse(const char *text) {{\n\
           unsigned all = 0;\n  {calls}\n  return all & 1;\n}}\n\
         int main(void) {{\n  unsigned all = 0;\n  volatile unsigned other = 0;\n\
           for (int i = 0; i < 2000; i++) all += parse(\"hello\");\n\
           for (unsigned i = 0; i < 100000; i++) other += i;\n  return all > 5000;\n}}\n"
    )
}

pub fn build(place: &Place, name: &str, text: &str) {
    place.write(&format!("{name}.c"), text);
    let words = ["-O1", "-g", "-o", name, &format!("{name}.c")];
    let status = Command::new("cc").args(words).current_dir(place.path()).status();
    assert!(status.is_ok_and(|status| status.success()), "cc");
}

pub fn explain(place: &Place, words: &[&str]) -> Answer {
    let answer = place.run(["explain", "--json", "--no-time"].iter().chain(words));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    answer
}

/// The first row for instructions: the function, the kind of its first cause, and its difference.
pub fn first(answer: &Answer) -> (String, String, f64) {
    let page = answer.json();
    let row = at(&page, "/explain/counts/0/rows/0");
    let text = |path: &str| at(row, path).as_str().unwrap_or_default().to_owned();
    (text("/function"), text("/parts/0/kind"), at(row, "/difference").as_f64().expect("a number"))
}

/// The number of instructions that B executes beyond A.
pub fn difference(answer: &Answer) -> f64 {
    at(&answer.json(), "/explain/counts/0/difference").as_f64().expect("a number")
}

/// Compiles both sources, as `old` and `new`.
pub fn pair(place: &Place, old: &str, new: &str) {
    build(place, "old", old);
    build(place, "new", new);
}

pub fn adds_up(answer: &Answer) {
    for count in at(&answer.json(), "/explain/counts").as_array().expect("counts") {
        let rows = count["rows"].as_array().expect("rows");
        let sum: f64 = rows.iter().filter_map(|row| row["difference"].as_f64()).sum();
        let whole = count["difference"].as_f64().expect("a number");
        assert!((sum - whole).abs() < 0.01, "{sum} is not {whole}: {}", answer.exchange());
    }
}

#[test]
fn the_function_whose_cost_grew_is_named_first_and_the_parts_add_up() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    pair(&place, &source(20, "all += hash(text, 5);", "hash"), &source(22, "all += hash(text, 5);", "hash"));
    let answer = explain(&place, &["./old", "./new"]);
    adds_up(&answer);
    let (function, kind, delta) = first(&answer);
    assert_eq!((function.as_str(), kind.as_str()), ("hash", "own"), "{}", answer.exchange());
    let whole = difference(&answer);
    assert!(delta >= 2000.0 * 2.0 * 5.0 * 3.0 && (delta - whole).abs() < 100.0, "{delta} of {whole}");
    assert_eq!(at(&answer.json(), "/explain/repeats"), true);
    let text = place.run(["explain", "--no-time", "./old", "./new"]);
    assert!(text.stdout.contains("It comes from hash: own code"), "{}", text.exchange());
}

#[test]
fn increases_and_decreases_that_cancel_out_are_no_cause_of_what_is_left() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    let text = |parse: u32, print: u32| {
        let function = |name: &str, rounds: u32| {
            format!(
                "__attribute__((noinline)) static void {name}(void) {{\n\
                   for (volatile unsigned i = 0; i < {rounds}; i++);\n}}\n"
            )
        };
        format!(
            "{}{}int main(void) {{ parse(); print(); return 0; }}\n",
            function("parse", parse),
            function("print", print)
        )
    };
    pair(&place, &text(20_000, 20_000), &text(30_000, 10_500));
    let answer = place.run(["explain", "--no-time", "./old", "./new"]);
    let text = answer.stdout.replace('\n', " ");
    assert!(text.contains("cancel out for the most part; first is parse: own code"), "{}", answer.exchange());
    assert!(!text.contains("It comes from") && !text.contains("of the difference"), "{text}");
    let rows = at(&explain(&place, &["./old", "./new"]).json(), "/explain/counts/0/rows").clone();
    assert!(
        rows[0]["difference"].as_f64() > Some(20_000.0) && rows[1]["difference"].as_f64() < Some(-20_000.0),
        "{rows}"
    );
}

#[test]
fn a_caller_that_calls_a_function_more_often_is_named_and_not_the_function() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    let call = "all += hash(text, 5);";
    pair(&place, &source(20, call, "hash"), &source(20, &call.repeat(3), "hash"));
    let answer = explain(&place, &["./old", "./new"]);
    adds_up(&answer);
    let (function, kind, _) = first(&answer);
    assert_eq!((function.as_str(), kind.as_str()), ("parse", "calls"), "{}", answer.exchange());
    assert_eq!(
        at(&answer.json(), "/explain/counts/0/rows/0/parts/0/calls"),
        &serde_json::json!([2000, 6000])
    );
}

#[test]
fn allocations_are_attributed_to_the_code_that_makes_them() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    let call = "all += hash(text, 5);";
    let more = format!("char *volatile copy = malloc(48); copy[0] = 1; {call} free(copy);");
    pair(&place, &source(20, call, "hash"), &source(20, &more, "hash"));
    let answer = explain(&place, &["./old", "./new"]);
    adds_up(&answer);
    assert_eq!(first(&answer).0, "parse", "{}", answer.exchange());
    let page = answer.json();
    assert_eq!(at(&page, "/explain/counts/1/count"), "allocations");
    let row = at(&page, "/explain/counts/1/rows/0");
    assert_eq!((row["function"].as_str(), row["difference"].as_f64()), (Some("parse"), Some(2000.0)));
    assert_eq!(at(&page, "/explain/counts/2/rows/0/difference"), 96_000.0);
    let text = place.run(["explain", "--no-time", "./old", "./new"]).stdout.replace('\n', " ");
    let (_, of_bytes) = text.split_once("bytes allocated than A").expect("bytes");
    assert!(of_bytes.contains("whose instructions repeated in another"), "{text}");
    assert!(of_bytes.contains("It comes from parse: calls malloc"), "{text}");
}

#[test]
fn a_program_beside_its_copy_has_no_rows_and_neither_has_one_that_was_renamed_inside() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    build(&place, "one", &source(20, "all += hash(text, 5);", "hash"));
    build(&place, "two", &source(20, "all += digest(text, 5);", "digest"));
    for other in ["./one", "./two"] {
        let answer = explain(&place, &["./one", other]);
        adds_up(&answer);
        assert_eq!(difference(&answer), 0.0, "{}", answer.exchange());
        let page = answer.json();
        assert_eq!(at(&page, "/explain/counts/0/rows"), &serde_json::json!([]), "{page:#}");
        // A caller of a renamed function has the same code.
        assert_eq!(at(&page, "/explain/functions_changed"), 0, "{page:#}");
    }
    let text = place.run(["explain", "--no-time", "./one", "./two"]);
    assert!(text.stdout.contains("A and B execute the same"), "{}", text.exchange());
}

#[test]
fn a_program_without_names_and_unwinding_tables_is_reported_as_inexplicable() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    pair(&place, &source(20, "all += hash(text, 5);", "hash"), &source(22, "all += hash(text, 5);", "hash"));
    let strip = Command::new("strip")
        .args(["-s", "-R", ".eh_frame", "-R", ".eh_frame_hdr", "old", "new"])
        .current_dir(place.path())
        .status();
    assert!(strip.is_ok_and(|status| status.success()), "strip");
    let text = place.run(["explain", "--no-time", "./old", "./new"]);
    assert_eq!(text.code, 0, "{}", text.exchange());
    assert!(text.stdout.contains("Can’t tell where it comes from"), "{}", text.exchange());
    assert!(!text.stdout.contains("100 %"), "{}", text.exchange());
}

#[test]
fn other_code_of_the_same_source_is_attributed_to_flags() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    let text = source(20, "all += hash(text, 5);", "hash").replace("round < 20", "round < ROUNDS");
    place.compile("old", &text, &["-g", "-DROUNDS=20"]);
    place.compile("new", &text, &["-g", "-DROUNDS=30"]);
    let remark = |answer: &Answer| at(&answer.json(), "/explain/remarks").to_string();
    let flags = explain(&place, &["./old", "./new"]);
    assert_eq!(first(&flags).0, "hash", "{}", flags.exchange());
    assert!(remark(&flags).contains("the source of hash is the same in both"), "{}", flags.exchange());
    let sentence = place.run(["explain", "--no-time", "./old", "./new"]);
    let one_line = sentence.stdout.replace('\n', " ");
    assert!(one_line.contains("its code changed, but not its source file "), "{}", sentence.exchange());
    place.compile("new", &text.replace("ROUNDS", "30"), &["-g"]);
    let other = explain(&place, &["./old", "./new"]);
    assert!(!remark(&other).contains("is the same in both"), "{}", other.exchange());
    // A source newer than its program is not reported as unchanged either.
    place.write("old.c", &text);
    place.write("new.c", &text);
    let newer = explain(&place, &["./old", "./new"]);
    assert!(!remark(&newer).contains("is the same in both"), "{}", newer.exchange());
}

#[test]
fn a_program_without_permission_to_execute_is_not_taken_for_a_profile() {
    let place = Place::new();
    place.write("app", "\x7fELF and more");
    place.write("app.sh", "#!/bin/sh\n");
    place.write("some.calls", "a;b 3\n");
    for (word, kind) in [("./app", "a program or a library"), ("./app.sh", "a script")] {
        let alone = place.run(["explain", word, word]);
        assert_eq!(alone.code, 2, "{}", alone.exchange());
        assert!(!alone.stderr.contains("profile"), "{}", alone.exchange());
        let beside = place.run(["explain", "./some.calls", word]);
        assert_eq!(beside.code, 2, "{}", beside.exchange());
        assert!(beside.stderr.contains(&format!("it is {kind}, not a profile")), "{}", beside.exchange());
    }
    // Root may read every file, so that this part is skipped for root.
    std::fs::set_permissions(place.file("some.calls"), std::os::unix::fs::PermissionsExt::from_mode(0o000))
        .expect("permissions");
    if std::fs::read(place.file("some.calls")).is_err() {
        let shut = place.run(["explain", "./some.calls", "./some.calls"]);
        assert_eq!(shut.code, 2, "{}", shut.exchange());
        assert!(shut.stderr.contains("you may not read it"), "{}", shut.exchange());
    }
}

/// A program whose loop has as many steps as the product of a global variable and the number of its arguments.
fn with_rounds(rounds: u32) -> String {
    format!(
        "unsigned rounds = {rounds};\n\
         __attribute__((noinline)) static unsigned work(unsigned count) {{\n\
           volatile unsigned sum = 0;\n\
           for (unsigned i = 0; i < count; i++) sum += i;\n  return sum;\n}}\n\
         int main(int count, char **words) {{ return work(rounds * count) == 1; }}\n"
    )
}

#[test]
fn where_only_data_of_the_program_differ_they_are_named_and_the_input_is_not_blamed() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    pair(&place, &with_rounds(20_000), &with_rounds(30_000));
    let text = place.run(["explain", "--no-time", "./old", "./new"]);
    assert_eq!(text.code, 0, "{}", text.exchange());
    let unwrapped = text.unwrapped();
    assert!(
        unwrapped.contains("Can’t tell where it comes from; it shows first in work"),
        "{}",
        text.exchange()
    );
    assert!(unwrapped.contains("data that the program starts with differ (rounds)."), "{}", text.exchange());
    assert!(!unwrapped.contains("No function’s code"), "{}", text.exchange());
}

#[test]
fn one_program_with_other_arguments_is_explained_by_its_input() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    build(&place, "app", &with_rounds(20_000));
    let text = place.run(["explain", "--no-time", "./app", "./app more"]);
    assert_eq!(text.code, 0, "{}", text.exchange());
    let unwrapped = text.unwrapped();
    assert!(
        unwrapped.contains("so the input or the state must differ; it shows first in work"),
        "{}",
        text.exchange()
    );
}

#[test]
fn revisions_are_built_and_the_change_in_the_source_is_named() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.write(".gitignore", "app\n");
    repository.write("app.c", &source(20, "all += hash(text, 5);", "hash"));
    repository.commit("old");
    repository.write("app.c", &source(23, "all += hash(text, 5);", "hash"));
    repository.write("other.txt", "nothing of hash\n");
    repository.commit("new");
    let words = [
        "--repo",
        "repo",
        "--build",
        "cc -O1 -g -o app app.c",
        "--artifact",
        "app",
        "HEAD~1",
        "HEAD",
        "--",
        "./app",
    ];
    let answer = explain(&place, &words);
    assert_eq!(first(&answer).0, "hash", "{}", answer.exchange());
    assert_eq!(at(&answer.json(), "/explain/counts/0/rows/0/hunk"), "app.c:5", "{}", answer.exchange());
    let words: Vec<&str> = ["explain", "--no-time", "--export", "page.html", "--export", "md:-"]
        .into_iter()
        .chain(words)
        .collect();
    let text = place.run(&words);
    assert!(text.stdout.contains("| changed | hash |"), "{}", text.exchange());
    assert!(text.stderr.contains("the change at app.c:5 touches it"), "{}", text.exchange());
    // The folder of builds has the sources of one revision only, which must not pass for those of both.
    assert!(!text.stderr.contains("is the same in both"), "{}", text.exchange());
    let page = place.read("page.html");
    assert!(page.contains("hash (+") && page.contains("<svg") && page.ends_with("</html>\n"), "{page}");
    assert!(
        page.contains("more instructions than A</span>") || page.contains("more instructions than A:"),
        "{page}"
    );
    pages::all_is_well(&[place.file("page.html")]);
}

#[test]
fn the_change_in_a_function_that_is_inlined_in_one_revision_is_named_at_its_callers() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    let source = |attribute: &str, term: &str| {
        format!(
            "static volatile unsigned all;\n__attribute__(({attribute}))\nstatic inline unsigned mix(unsigned x) {{\n  \
               return x {term};\n}}\n__attribute__((noinline)) void caller(void) {{\n  \
               for (unsigned i = 0; i < 100000; i++) all += mix(i);\n}}\nint main(void) {{ caller(); return 0; }}\n"
        )
    };
    repository.write(".gitignore", "app\n");
    repository.write("app.c", &source("always_inline", "/ 7 * 3 / 5"));
    repository.commit("old");
    repository.write("app.c", &source("noinline", "* 2"));
    repository.commit("new");
    let build = ["--repo", "repo", "--build", "cc -O1 -g -o app app.c", "--artifact", "app"];
    let answer = explain(&place, &[&build[..], &["HEAD~1", "HEAD", "--", "./app"]].concat());
    assert_eq!(first(&answer).0, "caller", "{}", answer.exchange());
    let hunk = at(&answer.json(), "/explain/counts/0/rows/0/hunk").clone();
    assert!(hunk == "app.c:2" || hunk == "app.c:4", "{}", answer.exchange());
}

#[test]
fn without_valgrind_the_error_says_what_to_install_and_what_can_be_used_instead() {
    let place = Place::new();
    let mut bare = place.command(["explain", "/bin/true", "/bin/true"]);
    let answer = place.finish(bare.env("PATH", place.path()));
    assert_eq!(answer.code, 2, "{}", answer.exchange());
    assert!(answer.stderr.contains("valgrind is not installed: install"), "{}", answer.exchange());
    assert!(answer.stderr.contains("scruple compare"), "{}", answer.exchange());
}

#[test]
fn a_program_that_fails_is_explained_only_where_that_was_asked_for() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    let answer = place.run(["explain", "--no-time", "/bin/false", "/bin/true"]);
    assert_eq!(answer.code, 4, "{}", answer.exchange());
    assert!(answer.stderr.contains("exited with code 1; -i"), "{}", answer.exchange());
    let says = place.run(["explain", "--no-time", "sh -c 'echo no input >&2; exit 3'", "/bin/true"]);
    let end = "-i explains it regardless; its error output:\n    no input\n";
    assert!(says.stderr.ends_with(end), "{}", says.exchange());
    let lone = place.run(["explain", "/bin/true"]);
    assert_eq!(lone.code, 2, "{}", lone.exchange());
}

#[test]
fn every_change_of_a_history_is_explained_where_that_is_asked_for() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.write(".gitignore", "app\n");
    let call = "all += hash(text, 5);";
    let commit = |title: &str, text: &str| {
        repository.write("app.c", text);
        repository.commit(title)
    };
    commit("first", &source(20, call, "hash"));
    commit("same", &source(20, call, "hash"));
    commit("twice", &source(20, &call.repeat(2), "hash"));
    commit("hardly more", &source(20, &call.repeat(2), "hash").replace("100000", "102000"));
    let words = [
        "history",
        "--repo",
        "repo",
        "--build",
        "cc -O1 -g -o app app.c",
        "--artifact",
        "app",
        "--rounds",
        "1",
    ];
    let more = ["--metrics", "instructions", "--explain", "--", "./app"];
    let answer = place.run(words.iter().chain(&more));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let explained =
        answer.stdout.split(" · ‘twice’ · ").nth(1).unwrap_or_else(|| panic!("{}", answer.exchange()));
    assert!(
        explained.contains("It comes from parse: calls hash 2,000 → 4,000 times"),
        "{}",
        answer.exchange()
    );
    assert!(!explained.contains("built earlier"), "{explained}");
    assert!(explained.contains("changed at app.c:") && explained.contains(" (‘"), "{}", answer.exchange());
    assert!(!answer.stdout.contains(" · ‘same’ · "), "{}", answer.exchange());
    assert!(answer.stdout.contains("Not explained: 1 exact change below"), "{}", answer.exchange());
    // The explanation is stored with the versions, and every report of the history shows it.
    let report = ["history", "report", "--repo", "repo", "--export", "page.html", "--json"];
    let page = place.run(report);
    assert_eq!(page.code, 0, "{}", page.exchange());
    let json = page.json();
    let unwrapped = at(&json, "/events/0/explained/0");
    assert_eq!(unwrapped["rows"][0]["function"], "parse", "{unwrapped:#}");
    assert!(place.read("page.html").contains("It comes from parse: calls hash"), "{}", page.exchange());
    let version = |field: &str| {
        format!(
            "{}@{}",
            at(&json, "/run/id").as_str().unwrap_or_default(),
            &unwrapped[field].as_str().unwrap_or_default()[..10]
        )
    };
    // The stored call trees suffice: `explain` builds nothing and needs no program from PATH.
    let mut bare = place.command(["explain", "--json", &version("before"), &version("at")]);
    let kept = place.finish(bare.env("PATH", place.path()));
    assert_eq!(kept.code, 0, "{}", kept.exchange());
    assert_eq!(first(&kept).0, "parse", "{}", kept.exchange());
    let unknown = place.run([
        "explain",
        &version("before"),
        &format!("{}@0123", at(&json, "/run/id").as_str().unwrap_or_default()),
    ]);
    assert_eq!(unknown.code, 2, "{}", unknown.exchange());
    assert!(unknown.stderr.contains("no call tree of the version ‘0123’ is kept"), "{}", unknown.exchange());
}

#[test]
fn a_difference_over_many_similar_functions_is_reported_as_spread() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    let source = |rounds: u32| {
        let functions = (0..8).map(|number| {
            format!(
                "__attribute__((noinline)) static void part{number}(void) {{\n\
                   for (unsigned i = 0; i < {rounds}; i++) __asm__ volatile(\"\" : : \"r\"(i + {number}));\n}}\n"
            )
        });
        let calls = (0..8).map(|number| format!("part{number}();")).collect::<String>();
        format!("{}int main(void) {{ {calls} return 0; }}\n", functions.collect::<String>())
    };
    pair(&place, &source(100_000), &source(110_000));
    let answer = explain(&place, &["./old", "./new"]);
    let sentences = at(&answer.json(), "/explain/sentences").to_string();
    assert!(sentences.contains("It is spread over 8 functions and the largest "), "{sentences}");
    assert!(sentences.contains(" account for half of it; first among them is part"), "{sentences}");
}
