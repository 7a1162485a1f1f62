//! `scruple explain` on programs that notice each other, when they run at the same time or one after the other.

use crate::explain::{build, explain};
use crate::programs::has_valgrind;
use crate::support::{Answer, Place, at};

const HEAD: &str = "#include <dirent.h>\n#include <fcntl.h>\n#include <stdio.h>\n#include <string.h>\n\
                    #include <sys/stat.h>\n#include <unistd.h>\n\
                    __attribute__((noinline)) static void spin(unsigned rounds) {\n\
                      volatile unsigned sum = 0;\n  for (unsigned i = 0; i < rounds; i++) sum += i;\n}\n";

/// Source of a program that works only if it is the only one, and ends with `code` otherwise.
fn locking(code: u32) -> String {
    format!(
        "{HEAD}int main(void) {{\n  if (mkdir(\"lock\", 0700) != 0) return {code};\n  spin(20000000);\n\
           rmdir(\"lock\");\n  return 0;\n}}\n"
    )
}

/// The instructions of A and B.
fn counts(answer: &Answer) -> [f64; 2] {
    let page = answer.json();
    ["a", "b"].map(|side| at(&page, &format!("/explain/counts/0/{side}")).as_f64().expect("a count"))
}

fn remarks(answer: &Answer) -> String {
    at(&answer.json(), "/explain/remarks").to_string()
}

#[test]
fn disturbance_by_the_other_program_is_not_shown_as_a_difference() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    // Long enough to run at the same time also on a busy machine.
    let source = locking(0).replace("20000000", "80000000");
    build(&place, "old", &source);
    build(&place, "new", &source);
    let answer = explain(&place, &["./old", "./new"]);
    let [a, b] = counts(&answer);
    assert_eq!(a, b, "{}", answer.exchange());
    assert!(a > 20_000_000.0, "{}", answer.exchange());
    assert_eq!(at(&answer.json(), "/explain/repeats"), true, "{}", answer.exchange());
    let remarks = remarks(&answer);
    assert!(remarks.contains("makes lock); only launches alone are shown"), "{}", answer.exchange());
    assert!(!remarks.contains("have left"), "{}", answer.exchange());
}

#[test]
fn a_program_that_fails_beside_another_one_is_explained_alone() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    build(&place, "old", &locking(1));
    build(&place, "new", &locking(1).replace("20000000", "25000000"));
    let answer = explain(&place, &["./old", "./new"]);
    let [a, b] = counts(&answer);
    assert!(a > 20_000_000.0, "{}", answer.exchange());
    assert!(b - a >= 5_000_000.0, "{}", answer.exchange());
}

#[test]
fn no_parallel_keeps_programs_apart_that_only_look_at_each_other() {
    if !has_valgrind() {
        return;
    }
    let source = format!(
        "{HEAD}int main(int count, char **words) {{\n  usleep(300000);\n  DIR *all = opendir(\"/proc\");\n\
           char folder[4096], path[300], text[8192];\n  snprintf(folder, sizeof folder, \"%s\", words[0]);\n\
           *strrchr(folder, '/') = 0;\n  int others = -1;\n\
           for (struct dirent *one = readdir(all); one; one = readdir(all)) {{\n\
             snprintf(path, sizeof path, \"/proc/%s/cmdline\", one->d_name);\n\
             FILE *file = fopen(path, \"r\");\n    if (!file) continue;\n\
             size_t length = fread(text, 1, sizeof text - 1, file);\n    fclose(file);\n\
             for (size_t i = 0; i < length; i++) if (!text[i]) text[i] = ' ';\n    text[length] = 0;\n\
             others += strstr(text, \"--tool=calltree\") && strstr(text, folder);\n  }}\n\
           if (others > 0) spin(200000000);\n  return 0;\n}}\n"
    );
    let place = Place::new();
    build(&place, "old", &source);
    build(&place, "new", &source);
    let answer = explain(&place, &["--no-parallel", "--runs", "2", "./old", "./new"]);
    assert!(counts(&answer).iter().all(|count| *count < 200_000_000.0), "{}", answer.exchange());
}

#[test]
fn files_that_do_not_matter_cost_no_run_beyond_those_that_are_needed() {
    if !has_valgrind() {
        return;
    }
    // Each launch appends a byte to `runs`, so that launches can be counted, and has a file of its own for a while.
    let source = format!(
        "{HEAD}int main(int count, char **words) {{\n  char name[9] = \"own-\";\n  memcpy(name + 4, strrchr(words[0], '/') + 1, 4);\n\
           int file = open(name, O_WRONLY | O_CREAT | O_EXCL, 0600);\n\
           if (file < 0 || write(file, name, 1) != 1 || unlink(name)) return 1;\n\
           file = open(\"runs\", O_WRONLY | O_APPEND | O_CREAT, 0600);\n  spin(1000000);\n\
           return write(file, name, 1) != 1;\n}}\n"
    );
    let later = source.replace("1000000", "1500000").replace("  int file", "  usleep(500000);\n  int file");
    let launches = |_| {
        let place = Place::new();
        build(&place, "old", &source);
        build(&place, "new", &later);
        let answer = explain(&place, &["./old", "./new"]);
        assert_eq!(at(&answer.json(), "/explain/repeats"), true, "{}", answer.exchange());
        assert!(!remarks(&answer).contains("only launches alone"), "{}", answer.exchange());
        place.read("runs").len()
    };
    // Each program has a trial run, a call tree, and a total. On a busy machine, both may make their files at the same
    // moment. Then it is unknown which was first, and both orders are tried.
    let least = (0..5).map(launches).find(|launches| *launches == 6);
    assert!(least.is_some(), "never as few launches as are needed");
}

#[test]
fn files_of_earlier_launches_are_named() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    build(
        &place,
        "old",
        &format!(
            "{HEAD}int main(void) {{ return open(\"out\", O_WRONLY | O_CREAT | O_TRUNC, 0600) < 0; }}\n"
        ),
    );
    build(
        &place,
        "new",
        &format!("{HEAD}int main(void) {{ if (access(\"out\", F_OK) == 0) spin(5000000); return 0; }}\n"),
    );
    let answer = explain(&place, &["./old", "./new"]);
    let text =
        "B finds ‘out’, which earlier launches of A or B have left or changed; the counts may depend on that";
    assert!(remarks(&answer).contains(text), "{}", answer.exchange());
    // The other program leaves `out` alone: beside one that writes it, this one could find it.
    build(&place, "other", "int main(void) { return 0; }\n");
    let answer = explain(&place, &["./other", "sh -c 'rm -f out; ./new; touch out'"]);
    assert!(!remarks(&answer).contains("finds"), "{}", answer.exchange());
    let answer = explain(&place, &["sh -c './new; touch out'", "sh -c './new; ./new; touch out'"]);
    assert!(remarks(&answer).contains("A and B find ‘out’, which"), "{}", answer.exchange());
    // A path in an open folder says little without that of the folder.
    let source = "int main(void) { if (faccessat(open(\".\", O_RDONLY), \"out\", F_OK, 0) == 0) spin(5000000); return 0; }\n";
    build(&place, "new-at", &format!("{HEAD}{source}"));
    let answer = explain(&place, &["./old", "./new-at"]);
    assert!(remarks(&answer).contains("B finds ‘[place]/out’"), "{}", answer.exchange());
    // Here the file existed before the first launch, so that all launches find the same.
    place.write("out", "");
    std::thread::sleep(std::time::Duration::from_millis(100));
    let answer = explain(&place, &["./new", "./new"]);
    assert!(!remarks(&answer).contains("finds"), "{}", answer.exchange());
}

#[test]
fn allocations_of_launches_that_vary_are_not_said_to_vary_by_instructions() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    for (name, blocks) in [("old", 10), ("new", 20)] {
        let allocate = format!("for (int i = 0; i < {blocks}; i++) last = malloc(9);");
        let source = format!(
            "void *volatile last;\nint main(void) {{ spin(getpid() % 997 * 1000); {allocate} return 0; }}\n"
        );
        build(&place, name, &format!("{HEAD}{source}"));
    }
    let answer = place.run(["explain", "--no-time", "./old", "./new"]);
    let of_allocations = answer.stdout.split("allocations as A").nth(1).unwrap_or_default();
    let sentence = of_allocations.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(sentence.contains("the total of instructions of"), "{}", answer.exchange());
}

fn does_not_repeat_and_does_not_differ(answer: &Answer) {
    let page = answer.json();
    assert_eq!(at(&page, "/explain/repeats"), false, "{}", answer.exchange());
    let rows = at(&page, "/explain/counts/0/rows").as_array().expect("rows");
    assert!(rows.iter().all(|row| row["within_spread"] == true), "{}", answer.exchange());
}

#[test]
fn a_program_that_works_every_second_time_does_not_differ_from_its_copy() {
    if !has_valgrind() {
        return;
    }
    let source = format!(
        "{HEAD}int main(void) {{\n  if (unlink(\"state\") == 0) return 0;\n  spin(5000000);\n\
           return open(\"state\", O_WRONLY | O_CREAT, 0600) < 0;\n}}\n"
    );
    let place = Place::new();
    build(&place, "old", &source);
    build(&place, "new", &source);
    let answer = explain(&place, &["./old", "./new"]);
    does_not_repeat_and_does_not_differ(&answer);
}

#[test]
fn the_program_that_ends_last_is_not_taken_for_the_one_that_acted_last() {
    if !has_valgrind() {
        return;
    }
    let source = format!(
        "{HEAD}#include <stdlib.h>\nint main(int count, char **words) {{\n  usleep(atoi(words[1]));\n\
           if (unlink(\"state\") == 0) return 0;\n  spin(5000000);\n\
           int file = open(\"state\", O_WRONLY | O_CREAT, 0600);\n  usleep(atoi(words[2]));\n  return file < 0;\n}}\n"
    );
    let place = Place::new();
    build(&place, "app", &source);
    // When both run at the same time, B acts before A, and ends after it.
    let answer = explain(&place, &["./app 700000 000000", "./app 000000 999999"]);
    does_not_repeat_and_does_not_differ(&answer);
}
