//! `scruple explain` on two programs. One of them does a part of the work in a thread, in a child process or in another
//! function.

use crate::explain::{adds_up, build, explain};
use crate::programs::has_valgrind;
use crate::support::{Answer, Place, at};
use std::process::Command;

/// Source of a program whose function `share` executes these statements, which call `task`.
fn source(statements: &str) -> String {
    format!(
        "#include <pthread.h>\n#include <sys/wait.h>\n#include <unistd.h>\n\
         __attribute__((noinline)) static void *task(void *volatile of) {{\n  \
           for (volatile int i = 0; i < 50000; i++) {{ }}\n  return of;\n}}\n\
         __attribute__((noinline)) static int share(void) {{\n  pthread_t thread;\n  {statements}\n  return 0;\n}}\n\
         int main(void) {{\n  for (volatile int i = 0; i < 90000; i++) {{ }}\n  return share();\n}}\n"
    )
}

const BY_ITSELF: &str = "(void)thread; task(0);";
const IN_A_THREAD: &str = "if (pthread_create(&thread, 0, task, 0)) return 1; pthread_join(thread, 0);";
const IN_A_CHILD: &str = "(void)thread; if (fork() == 0) { task(0); _exit(0); } wait(0);";

fn compared(place: &Place, old: &str, new: &str) -> Answer {
    build(place, "old", &source(old));
    build(place, "new", &source(new));
    let answer = explain(place, &["./old", "./new"]);
    adds_up(&answer);
    answer
}

/// The largest difference of a row, and the function of the first one.
fn largest_and_first(answer: &Answer) -> (f64, String) {
    let page = answer.json();
    let rows = at(&page, "/explain/counts/0/rows").as_array().expect("rows");
    let differences = rows.iter().map(|row| row["difference"].as_f64().expect("a number").abs());
    (differences.fold(0.0, f64::max), rows[0]["function"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn work_that_moves_into_a_thread_or_a_child_still_counts_for_the_function_that_asks_for_it() {
    if !has_valgrind() {
        return;
    }
    // The task takes more than 200,000 instructions, and no row may have these.
    for new in [IN_A_THREAD, IN_A_CHILD] {
        let answer = compared(&Place::new(), BY_ITSELF, new);
        let (largest, first) = largest_and_first(&answer);
        assert!(largest < 50_000.0 && first == "share", "{}", answer.exchange());
    }
}

#[test]
fn a_second_thread_or_child_is_attributed_to_the_function_that_starts_it() {
    if !has_valgrind() {
        return;
    }
    for once in [IN_A_THREAD, IN_A_CHILD] {
        let answer = compared(&Place::new(), once, &format!("{once}\n  {once}"));
        let (largest, first) = largest_and_first(&answer);
        assert!(largest > 200_000.0 && first == "share", "{}", answer.exchange());
    }
}

#[test]
fn a_function_that_both_programs_have_is_not_the_other_one_under_a_new_name() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    // Each program contains both functions, and executes one of them.
    let function = |name: &str, rounds: u32| {
        format!(
            "__attribute__((noinline)) unsigned {name}(unsigned x) {{\n\
               for (int i = 0; i < {rounds}; i++) x = x * 31 + 7;\n  return x;\n}}\n"
        )
    };
    let both = "(turn++ & 1 ? slow : quick)";
    for (program, called) in [("old", "quick"), ("new", "slow"), ("some", both)] {
        let text = format!(
            "unsigned turn;\n{}{}__attribute__((noinline)) unsigned lookup(unsigned x) {{ return {called}(x) & 7; }}\n\
             int main(void) {{\n  unsigned sum = 1;\n\
               for (int i = 0; i < 2000; i++) sum += lookup(sum);\n  return sum == 7;\n}}\n",
            function("quick", 20),
            function("slow", 40)
        );
        build(&place, program, &text);
        let file = format!("{program}.calls");
        let kept = place.run(["inspect", "calls", "--export", &file, "--", &format!("./{program}")]);
        assert_eq!(kept.code, 0, "{}", kept.exchange());
    }
    for pair in [["./old", "./new"], ["old.calls", "new.calls"]] {
        let answer = explain(&place, &pair);
        adds_up(&answer);
        let row = at(&answer.json(), "/explain/counts/0/rows/0").clone();
        assert_eq!((&row["function"], &row["code"]), (&"lookup".into(), &"changed".into()), "{row}");
    }
    // Some calls of one take the place of as many of the other. Neither compiler has merged them.
    let page = explain(&place, &["./old", "./some"]).json();
    assert_eq!(at(&page, "/explain/counts/0/rows/0/parts/0/kind"), "new", "{page:#}");
    assert!(!page.to_string().contains("may have merged"), "{page:#}");
}

#[test]
fn static_functions_of_one_name_are_the_same_in_any_order_and_wherever_they_are_executed() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    for (module, factor) in [("one", 31), ("two", 37)] {
        let text = format!(
            "__attribute__((noinline)) static unsigned helper(unsigned x, int n) {{\n\
               for (int i = 0; i < n; i++) x = x * {factor} + i;\n  return x ^ {factor};\n}}\n\
             unsigned {module}(unsigned x, int n) {{ return n ? helper(x, n) + 1 : x; }}\n"
        );
        place.write(&format!("{module}.c"), text);
    }
    let main = "#include <stdlib.h>\nunsigned one(unsigned, int), two(unsigned, int);\n\
                int main(int count, char **words) {\n  unsigned sum = count;\n\
                  for (int i = 0; i < 3000; i++) sum = two(one(sum, atoi(words[1])), atoi(words[2]));\n\
                  return sum == 7;\n}\n";
    place.write("main.c", main);
    for (program, files) in [("old", ["one.c", "two.c"]), ("new", ["two.c", "one.c"])] {
        let compiled = Command::new("cc")
            .args(["-O1", "-g", "-o", program, "main.c"])
            .args(files)
            .current_dir(place.path())
            .status();
        assert!(compiled.is_ok_and(|status| status.success()), "a compiler");
    }
    for pair in [["./old 30 40", "./new 30 50"], ["./old 0 40", "./new 30 40"], ["./old 0 40", "./new 50 0"]]
    {
        let answer = explain(&place, &pair);
        adds_up(&answer);
        let page = answer.json();
        assert_eq!(at(&page, "/explain/counts/0/rows/0/code"), "same", "{page:#}");
        assert_eq!(at(&page, "/explain/functions_changed"), 0, "{page:#}");
    }
    // A kept profile has nothing of the function that was not executed.
    for (program, first) in [("old", "0"), ("new", "30")] {
        let (file, program) = (format!("{program}.calls"), format!("./{program}"));
        let kept = place.run(["inspect", "calls", "--export", &file, "--", &program, first, "40"]);
        assert_eq!(kept.code, 0, "{}", kept.exchange());
    }
    let page = explain(&place, &["old.calls", "new.calls"]).json();
    assert_eq!(at(&page, "/explain/functions_changed"), 0, "{page:#}");
}

#[test]
fn a_program_is_the_same_one_where_a_wrapper_executes_it() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    let text = source(BY_ITSELF).replace("i < 50000", "i < (getenv(\"MORE\") ? 90000 : 50000)");
    for name in ["app", "later"] {
        build(&place, name, &format!("#include <stdlib.h>\n{text}"));
    }
    let both = ["env LESS=1 ./app", "env MORE=1 ./later"];
    for pair in [["./app", "env MORE=1 ./later"], ["env MORE=1 ./app", "./app"], both] {
        let answer = explain(&place, &pair);
        let page = answer.json();
        let rows = at(&page, "/explain/counts/0/rows").as_array().expect("rows");
        let row = rows.iter().find(|row| row["function"] == "task").expect("a row of the function");
        assert_eq!((&row["file"], &row["code"]), (&"program".into(), &"same".into()), "{page:#}");
        assert_eq!(at(&page, "/explain/functions_changed"), 0, "{page:#}");
    }
}

#[test]
fn a_function_that_moves_into_a_shared_library_is_the_same_one() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    let mix = "unsigned mix(unsigned hash) {\n  for (int i = 0; i < 50; i++) hash = hash * 31 + (hash >> 7) + i;\n  \
               return hash;\n}\n";
    let main = |times: u32| {
        format!(
            "int main(void) {{\n  unsigned all = 1;\n  for (int i = 0; i < {times}; i++) all = mix(all);\n  \
                 return all == 9;\n}}\n"
        )
    };
    place.write("mix.c", mix);
    build(&place, "old", &format!("__attribute__((noinline)) {mix}{}", main(1_000)));
    place.write("new.c", format!("unsigned mix(unsigned hash);\n{}", main(2_000)));
    for words in ["-O1 -g -fPIC -shared -o libmix.so mix.c", "-O1 -g -o new new.c ./libmix.so"] {
        let status = Command::new("cc").args(words.split(' ')).current_dir(place.path()).status();
        assert!(status.is_ok_and(|status| status.success()), "cc {words}");
    }
    let answer = explain(&place, &["./old", "./new"]);
    let page = answer.json();
    let part = at(&page, "/explain/counts/0/rows/0/parts/0");
    assert_eq!((&part["callee"], &part["calls"]), (&"mix".into(), &vec![1_000, 2_000].into()), "{page:#}");
}

#[test]
fn a_preloaded_function_is_code_that_differs() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    place.write("mix.c", "int mix(int k) { return k * 3; }\n");
    place.write("other.c", "int mix(int k) { for (volatile int i = 0; i < 50; i++) k += i; return k; }\n");
    let app = "int mix(int);\nint main(void) { int t = 1; for (int i = 0; i < 9000; i++) t += mix(i); return t == 9; }\n";
    place.write("app.c", app);
    for words in [
        "-fPIC -shared -o libmix.so mix.c",
        "-fPIC -shared -o libother.so other.c",
        "-o app app.c ./libmix.so",
    ] {
        let status = Command::new("cc").args(words.split(' ')).current_dir(place.path()).status();
        assert!(status.is_ok_and(|status| status.success()), "cc {words}");
    }
    let answer = explain(&place, &["./app", "env LD_PRELOAD=./libother.so ./app"]);
    adds_up(&answer);
    let page = answer.json();
    let cause = at(&page, "/explain/sentences/1").as_str().expect("a sentence");
    for part in [
        "Can’t tell where it comes from; it shows first in main",
        "calls mix [libother.so] instead of mix [libmix.so]",
        "the code of others is not the same (mix [libother.so])",
    ] {
        assert!(cause.contains(part), "{cause}");
    }
}
