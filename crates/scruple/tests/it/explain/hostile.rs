//! Programs that mislead: names that steer terminals, files that change, constants that linking assigns.

use super::{adds_up, build, explain, first, source};
use crate::programs::has_valgrind;
use crate::support::{Place, at};
use std::process::Command;

/// A name with the length of `NAME` that colours what follows, begins a line of its own, and overwrites it.
const NAME: &str = "hash_with_a_long_name_that_is_replaced_by_a_hostile_one";
const HOSTILE: &[u8] = b"x\x1b[31m\r\n  +9,999  100 %  changed  main\x07\xff";

/// Compiles a program whose function has the hostile name.
fn build_hostile(place: &Place, name: &str, rounds: u32) {
    let call = format!("all += {NAME}(text, 5);");
    build(place, name, &source(rounds, &call, NAME));
    let mut program = std::fs::read(place.file(name)).expect("the program");
    assert!(HOSTILE.len() < NAME.len());
    let mut symbol = [b'z'; NAME.len()];
    symbol[..HOSTILE.len()].copy_from_slice(HOSTILE);
    // The table of symbols has the name, and debugging information.
    let is_name = |at: &usize| program[*at..].starts_with(NAME.as_bytes());
    let places: Vec<usize> = (0..program.len()).filter(is_name).collect();
    assert!(!places.is_empty());
    for at in places {
        program[at..at + NAME.len()].copy_from_slice(&symbol);
    }
    std::fs::write(place.file(name), program).expect("the program is writable");
}

#[test]
fn names_of_functions_do_not_steer_the_terminal() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    build_hostile(&place, "old", 20);
    build_hostile(&place, "new", 22);
    let words = ["explain", "--no-time", "--export", "x.md", "--export", "x.html", "./old", "./new"];
    let answer = place.finish(place.command(words).env("CLICOLOR_FORCE", "1"));
    let page = std::fs::read_to_string(place.file("x.md")).expect("the page");
    let shown = "x\u{fffd}[31m\u{fffd}\u{fffd}  +9,999";
    assert!(answer.stdout.contains(&format!("It comes from {shown}")), "{}", answer.exchange());
    assert!(
        !answer.stdout.lines().any(|line| line.trim_start().starts_with("+9,999")),
        "{}",
        answer.exchange()
    );
    assert!(!answer.stdout.contains(['\r', '\u{7}']) && !answer.stdout.contains("\u{1b}[31m"));
    assert!(page.contains("  +9,999") && !page.contains(['\r', '\u{1b}', '\u{7}']), "{page}");
}

#[test]
fn a_program_that_is_replaced_while_it_is_counted_is_refused() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    let replaces = "#include <stdio.h>\n#include <stdlib.h>\n\
        int main(int count, char **words) {\n\
          volatile unsigned work = 0;\n  for (unsigned i = 0; i < ROUNDS; i++) work += i;\n\
          return system(\"cp /bin/true copy && mv copy ./old\") != 0;\n}\n";
    build(&place, "old", &replaces.replace("ROUNDS", "1000"));
    build(&place, "new", &source(20, "all += hash(text, 5);", "hash"));
    let answer = place.run(["explain", "--no-time", "./old", "./new"]);
    assert_ne!(answer.code, 0, "{}", answer.exchange());
    assert!(answer.stderr.contains("/old’ changed while it was counted"), "{}", answer.exchange());
    for words in [["inspect", "calls"], ["inspect", "memory"]] {
        build(&place, "old", &replaces.replace("ROUNDS", "1000"));
        let answer = place.run(words.iter().chain(&["--", "./old"]));
        assert_ne!(answer.code, 0, "{}", answer.exchange());
        assert!(answer.stderr.contains("/old’ changed while it was counted"), "{}", answer.exchange());
    }
    build(&place, "old", &replaces.replace("ROUNDS", "1000"));
    let run = place.run(["run", "-r", "4", "--json", "./old", "./new"]);
    let warnings = at(&run.json(), "/warnings").to_string();
    assert!(warnings.contains("program-changed") && warnings.contains("/old’ changed"), "{}", run.exchange());
    assert!(!warnings.contains("/new’ changed"), "{}", run.exchange());
}

#[test]
fn code_that_only_has_the_addresses_of_other_data_is_the_same() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    // Without position-independent code, an instruction of `begin` has two addresses: that of the variable, and the
    // constant that it gets.
    let text = |data: u32, rounds: u32| {
        format!(
            "static volatile char before[{data}] = {{1}};\n\
             static int places[100];\nstatic int *volatile here = places;\n\
             __attribute__((noinline)) static void begin(void) {{ here = places; }}\n\
             __attribute__((noinline)) static void step(unsigned many) {{\n\
               for (unsigned i = 0; i < many; i++) begin();\n}}\n\
             __attribute__((noinline)) static void work(void) {{\n\
               volatile unsigned work = 0;\n  for (unsigned i = 0; i < {rounds}; i++) work += i;\n}}\n\
             int main(int count, char **words) {{ work(); step(100000 * count + before[0]); return 0; }}\n"
        )
    };
    for (name, source) in [("old", text(64, 1000)), ("new", text(4096, 1100))] {
        place.write(&format!("{name}.c"), &source);
        let file = format!("{name}.c");
        let words = ["-O1", "-g", "-no-pie", "-fno-pie", "-o", name, &file];
        let status = Command::new("cc").args(words).current_dir(place.path()).status();
        assert!(status.is_ok_and(|status| status.success()), "cc");
    }
    let listing = Command::new("objdump").args(["-d", "old"]).current_dir(place.path()).output();
    let listing = String::from_utf8(listing.expect("objdump").stdout).expect("text");
    // On other processors no instruction has both.
    if cfg!(target_arch = "x86_64") {
        let has_both = |line: &str| line.contains("movq   $0x") && line.contains("(%rip)");
        assert!(listing.lines().any(has_both), "{listing}");
    }
    let answer = explain(&place, &["./old", "./new"]);
    adds_up(&answer);
    assert_eq!(first(&answer).0, "work", "{}", answer.exchange());
    let changed = at(&answer.json(), "/explain/counts/0/rows").to_string();
    assert!(!changed.contains("begin"), "{changed}");
}

#[test]
fn a_copy_under_a_longer_name_executes_the_same() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    // What strlen executes depends on the alignment of the text, and the text is on the stack.
    let text = "#include <string.h>\n\
        int main(int count, char **words) {\n\
          char line[300];\n  memset(line, 'x', sizeof line);\n  volatile unsigned long all = 0;\n\
          for (int i = 0; i < 20000; i++) { line[50 + i % 200] = 0; all += strlen(line); line[50 + i % 200] = 'x'; }\n\
          return all == 1;\n}\n";
    build(&place, "a", text);
    for more in [2, 4, 8, 12, 40] {
        let longer = format!("a{}", "b".repeat(more));
        std::fs::copy(place.file("a"), place.file(&longer)).expect("a copy");
        let answer = explain(&place, &["./a", &format!("./{longer}")]);
        let rows = at(&answer.json(), "/explain/counts/0/rows").as_array().expect("rows").clone();
        assert!(rows.iter().all(|row| row["shown"] == false), "{}", answer.exchange());
    }
    let answer = explain(&place, &["./a", "./a some further words"]);
    let difference = at(&answer.json(), "/explain/counts/0/difference").as_f64().expect("a number");
    assert!(difference.abs() < 1000.0, "{}", answer.exchange());
}

#[test]
fn profiles_of_other_tools_do_not_say_that_code_is_the_same_because_a_file_was_replaced() {
    let place = Place::new();
    // Both profiles name this file, which may have been compiled in between.
    place.write("app", "code");
    let app = place.file("app");
    let samples = |function: &str, number: usize| {
        format!("app 7 1.5: 1 cycles: \n\t 11b3 {function}+0x1a ({})\n\n", app.display()).repeat(number)
    };
    place.write("old.txt", &(samples("hash", 1000) + &samples("print", 500)));
    place.write("new.txt", &(samples("hash", 3000) + &samples("print", 500)));
    let answer = place.run(["explain", "old.txt", "new.txt"]);
    let text = answer.stdout.replace('\n', " ");
    assert!(
        text.contains("It shows first in hash") && text.contains("can’t tell whether its code changed"),
        "{text}"
    );
}
