//! Instruction counts, which are taken only on request.

use crate::programs::has_valgrind;
use crate::repository::Repository;
use crate::support::Place;

#[test]
fn instructions_are_counted_where_they_are_named_and_nowhere_else() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    let words = ["run", "--no-store", "-r", "18", "--metrics"];
    let asked = place.run(words.iter().chain(&["instructions", "seq 1000", "seq 1000", "seq 9000"]));
    let rows: Vec<&str> = asked.stdout.lines().collect();
    let head = rows
        .iter()
        .position(|row| row.trim() == "instructions")
        .unwrap_or_else(|| panic!("{}", asked.stdout));
    assert!(rows[head + 1].contains("seq 1000") && rows[head + 2].contains("±0"), "{}", asked.stdout);
    assert!(rows[head + 3].contains("seq 9000") && rows[head + 3].contains("more"), "{}", asked.stdout);
    let all = place.run(words.iter().chain(&["all", "seq 10"]));
    assert!(!all.stdout.lines().any(|row| row.trim() == "instructions"), "{}", all.stdout);
}

#[test]
fn a_limit_on_instructions_has_them_counted() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    let words = ["run", "--no-store", "-m", "2", "-M", "2", "--budget", "1s", "seq 1000", "--limit"];
    let kept = place.run(words.iter().chain(&["instructions<100000000"]));
    assert_eq!(kept.code, 0, "{}{}", kept.stdout, kept.stderr);
    let exceeded = place.run(words.iter().chain(&["instructions<1000"]));
    assert_eq!(exceeded.code, 1, "{}{}", exceeded.stdout, exceeded.stderr);
}

#[test]
fn doctor_says_by_what_instructions_are_counted() {
    let place = Place::new();
    let with = place.run(["doctor", "--quick"]).stdout;
    let line = with.lines().find(|line| line.trim_start().starts_with("instructions")).expect("a line");
    if has_valgrind() {
        assert!(line.contains("the call tree") || line.contains("the processor"), "{line}");
    }
    let mut bare = place.command(["doctor", "--quick"]);
    let without = place.finish(bare.env("PATH", place.path())).stdout;
    let line = without.lines().find(|line| line.trim_start().starts_with("instructions")).expect("a line");
    assert!(line.contains("valgrind is not installed") || line.contains("the processor"), "{line}");
    for (tool, counted) in [("perf", "samples"), ("strace", "syscalls"), ("callgrind", "instructions")] {
        let line = without.lines().find(|line| line.trim_start().starts_with(tool)).expect("a line");
        assert!(line.contains("is not installed"), "{line}");
        assert!(line.contains(&format!("`load --with {counted}`")), "{line}");
        // The advised option is accepted.
        let tried = place.run(["load", "--no-store", "--with", counted, "http://127.0.0.1:1/"]);
        assert!(!tried.stderr.contains("invalid value"), "{}", tried.exchange());
    }
    assert!(without.lines().any(|line| line.trim_start().starts_with("counters")), "{without}");
}

/// Compiles a bench program in C with one case, whose iteration makes `additions` additions.
pub fn bench_program(place: &Place, name: &str, additions: u32) {
    let header = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk/c/scruple.h");
    let source = format!(
        "#define SCRUPLE_IMPLEMENTATION\n#include \"{header}\"\n\
         static inline uint32_t add(uint32_t from) {{\n  volatile uint32_t sum = from;\n\
         for (int i = 0; i < {additions}; i++) sum += 3;\n  return sum;\n}}\n\
         SCRUPLE_BODY(add_up, uint32_t, from, uint32_t, add(from))\n\
         int main(int argc, char **argv) {{\n  static uint32_t one = 1;\n\
         scruple_data(SCRUPLE_BENCH(\"work/add\", add_up), &one);\n\
         return scruple_main(argc, argv);\n}}\n"
    );
    place.write(&format!("{name}.c"), source);
    let mut compiler = std::process::Command::new("cc");
    let built = compiler
        .args(["-O1", "-o", name, &format!("{name}.c"), "-pthread"])
        .current_dir(place.path())
        .status();
    assert!(built.is_ok_and(|status| status.success()), "cc");
}

#[test]
fn instructions_of_an_iteration_are_those_of_its_work_without_the_start_and_the_tare() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    bench_program(&place, "few", 100);
    bench_program(&place, "many", 300);
    let words = ["bench", "--no-store", "--quick", "--json", "--metrics", "instructions"];
    let answer = place.run(words.iter().chain(&["--against", "./few", "--", "./many"]));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let page = answer.json();
    let arms = page["arms"].as_array().expect("arms");
    let metric = |name: &str, key: &str| {
        let arm = arms.iter().find(|arm| arm["name"] == name);
        let metric = &arm.unwrap_or_else(|| panic!("no {name} in {}", answer.exchange()))["metrics"][key];
        (metric["estimate"].as_f64().unwrap_or(f64::NAN), metric["quality"].as_str().unwrap_or("").to_owned())
    };
    let (few, many) = (metric("work/add @old", "instructions"), metric("work/add @new", "instructions"));
    assert_eq!((few.1.as_str(), many.1.as_str()), ("exact", "exact"), "{few:?} {many:?}");
    // An addition takes a load, an add and a store, and the loop adds two or three instructions.
    let each = (many.0 - few.0) / 200.0;
    assert!(each.fract() == 0.0 && (3.0..=7.0).contains(&each), "{few:?} {many:?}");
    assert!((few.0 - 100.0 * each).abs() < 20.0, "the start is not in it: {few:?}");
    let (fixed, _) = metric("work/add @old", "instructions.intercept");
    assert!(fixed > 50_000.0, "the start is a loader's and a reader's: {fixed}");
    let unasked = place.run(["bench", "--no-store", "--quick", "--json", "--", "./few"]);
    assert!(!unasked.stdout.contains("\"instructions\""), "{}", unasked.exchange());
}

#[test]
fn a_history_counts_instructions_of_versions_that_were_counted_without_them() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    for (title, steps) in [("first", 20_000), ("same", 20_000), ("more", 20_001)] {
        repository.commit_program(title, steps, 10, "");
    }
    let without = place.history(&["--rounds", "1"]);
    assert_eq!(without.code, 0, "{}", without.exchange());
    let with = place.history(&["--rounds", "1", "--metrics", "instructions", "--json"]);
    assert_eq!(with.code, 0, "{}", with.exchange());
    let page = with.json();
    let series = page["series"].as_array().expect("series");
    let one = series.iter().find(|one| one["metric"] == "instructions").expect("a series of instructions");
    let changes = one["changes"].as_array().expect("changes");
    assert_eq!(changes.len(), 1, "{one:#}");
    assert_eq!(changes[0]["at"], 2, "{one:#}");
    let more = changes[0]["to"].as_f64().expect("a level") - changes[0]["from"].as_f64().expect("a level");
    assert!((1.0..=10.0).contains(&more), "one step more is a handful of instructions: {one:#}");
}
