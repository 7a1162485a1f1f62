//! `scruple explain --metric` of what programs hold in memory: the place that holds more is planted, and all totals are
//! those of Valgrind's DHAT.

use crate::explain::{adds_up, build};
use crate::programs::has_valgrind;
use crate::support::{Answer, Place, at};
use std::process::Command;

/// A program that holds `times` records of `bytes` bytes. Meanwhile, each of `scratches` calls of `scratch` holds
/// 50,000 bytes, one call after the other. The statement `drop` frees the records.
fn source(bytes: u32, times: u32, scratches: u32, drop: &str) -> String {
    format!(
        "#include <stdlib.h>\n\
         __attribute__((noinline)) static char *record(int i) {{\n\
           char *one = malloc({bytes}); one[0] = (char)i; one[1] = 0; return one;\n}}\n\
         __attribute__((noinline)) static void drop(char *one) {{ {drop} }}\n\
         __attribute__((noinline)) static int scratch(void) {{\n\
           char *volatile big = malloc(50000); big[0] = 1; int sum = big[0]; free(big); return sum;\n}}\n\
         __attribute__((noinline)) static int work(void) {{\n\
           char *all[1000]; int sum = 0;\n\
           for (int i = 0; i < {times}; i++) all[i] = record(i);\n\
           for (int i = 0; i < {scratches}; i++) sum += scratch();\n\
           for (int i = 0; i < {times}; i++) {{ sum += all[i][0]; drop(all[i]); }}\n\
           return sum;\n}}\n\
         int main(void) {{ return work() > 1000000; }}\n"
    )
}

const FREE: &str = "free(one);";
/// Code that looks at a record and frees none.
const KEEP: &str = "if (one[1] == 77) free(one);";

fn explained(place: &Place, metric: &str) -> Answer {
    let answer = place.run(["explain", "--json", "--metric", metric, "./old", "./new"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    adds_up(&answer);
    answer
}

/// The first row: the function, its difference, the kind of its first part, and its code.
fn first(answer: &Answer) -> (String, f64, String, String) {
    let row = at(&answer.json(), "/explain/counts/0/rows/0").clone();
    let text = |path: &str| row.pointer(path).and_then(|text| text.as_str()).unwrap_or_default().to_owned();
    (text("/function"), row["difference"].as_f64().expect("a number"), text("/parts/0/kind"), text("/code"))
}

fn totals(answer: &Answer) -> [u64; 2] {
    let page = answer.json();
    ["a", "b"].map(|side| at(&page, &format!("/explain/counts/0/{side}")).as_f64().expect("bytes") as u64)
}

/// The bytes at the peak and at the end of both programs, as DHAT counts them.
fn dhat(place: &Place) -> [[u64; 2]; 2] {
    ["./old", "./new"].map(|program| {
        let options = ["--tool=dhat", "--run-libc-freeres=no", "--run-cxx-freeres=no"];
        let file = format!("--dhat-out-file={}", place.file("dhat").display());
        let command =
            Command::new("valgrind").args(options).args([&file, program]).current_dir(place.path()).output();
        let output = command.expect("valgrind");
        let text = String::from_utf8_lossy(&output.stderr);
        ["At t-gmax:", "At t-end:"].map(|moment| {
            let line = text.lines().find_map(|line| line.split_once(moment));
            let number = line.and_then(|(_, rest)| rest.trim().split(' ').next());
            number.and_then(|number| number.replace(',', "").parse().ok()).expect("bytes")
        })
    })
}

fn build_pair(place: &Place, old: &str, new: &str) {
    build(place, "old", old);
    build(place, "new", new);
}

const PEAK: &str = "malloc.requested_peak";
const LIVE: &str = "malloc.requested_live";

#[test]
fn the_holder_of_larger_blocks_at_the_peak_comes_first() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    build_pair(&place, &source(64, 100, 1, FREE), &source(96, 100, 1, FREE));
    let answer = explained(&place, PEAK);
    assert_eq!(totals(&answer), [56_400, 59_600]);
    assert_eq!(totals(&answer), dhat(&place).map(|[peak, _]| peak));
    let row = first(&answer);
    assert_eq!(row, ("record".to_owned(), 3_200.0, "own".to_owned(), "changed".to_owned()));
    // All requested bytes grow by the same amount, and nothing is left at the end.
    let page = answer.json();
    let counts = at(&page, "/explain/counts").as_array().expect("counts");
    let names: Vec<&str> = counts.iter().filter_map(|one| one["count"].as_str()).collect();
    assert_eq!(names, ["bytes in use at the peak", "bytes allocated"]);
    let text = place.run([
        "explain",
        "--metric",
        PEAK,
        "--export",
        "peak.html",
        "--export",
        "peak.callgrind",
        "./old",
        "./new",
    ]);
    let sentence = "It comes from record: own code, 64 → 96 for each call";
    assert!(text.stdout.contains(sentence), "{}", text.exchange());
    assert!(place.read("peak.html").contains("Differences of bytes in use at the peak by calling context"));
    let callgrind = place.read("peak.callgrind");
    let summary = callgrind.lines().find(|line| line.starts_with("summary:")).expect("a summary");
    assert!(summary.contains(" 56400 59600"), "{summary}");
}

#[test]
fn the_caller_that_requests_more_blocks_comes_first_and_calls_that_free_theirs_explain_nothing() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    // The scratch is made nine times as often, and never more than one of it is held.
    build_pair(&place, &source(64, 100, 1, FREE), &source(64, 300, 9, FREE));
    let answer = explained(&place, PEAK);
    assert_eq!(totals(&answer), [56_400, 69_200]);
    assert_eq!(totals(&answer), dhat(&place).map(|[peak, _]| peak));
    let row = first(&answer);
    assert_eq!(row, ("work".to_owned(), 12_800.0, "calls".to_owned(), "changed".to_owned()));
    let page = answer.json();
    assert_eq!(
        at(&page, "/explain/counts/0/rows").as_array().map(Vec::len),
        Some(1),
        "{}",
        answer.exchange()
    );
    assert_eq!(at(&page, "/explain/counts/0/rows/0/parts/0/calls"), &serde_json::json!([100, 300]));
    // A program beside itself has no row.
    build_pair(&place, &source(64, 100, 1, FREE), &source(64, 100, 1, FREE));
    let answer = explained(&place, PEAK);
    assert_eq!(at(&answer.json(), "/explain/counts/0/rows"), &serde_json::json!([]));
}

#[test]
fn of_blocks_that_are_not_freed_the_function_that_no_longer_frees_them_is_named() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    build_pair(&place, &source(64, 100, 1, FREE), &source(64, 100, 1, KEEP));
    let answer = explained(&place, LIVE);
    assert_eq!(totals(&answer), [0, 6_400]);
    assert_eq!(totals(&answer), dhat(&place).map(|[_, end]| end));
    let (function, difference, _, code) = first(&answer);
    assert_eq!((function.as_str(), difference, code.as_str()), ("record", 6_400.0, "same"));
    let text = at(&answer.json(), "/explain/sentences").to_string();
    assert!(text.contains("frees 100 fewer blocks (-100 in drop; its code changed)"), "{text}");
}

#[test]
fn memory_of_a_rust_program_is_attributed_to_its_own_function() {
    if !has_valgrind() {
        return;
    }
    let source = |factor: u32| {
        format!(
            "use std::hint::black_box;\n\
             #[inline(never)]\nfn table(n: usize) -> Vec<u64> {{\n\
               let mut all = Vec::with_capacity(n * {factor}); all.push(n as u64); all\n}}\n\
             #[inline(never)]\nfn names(n: usize) -> Vec<Box<[u8; 32]>> {{\n\
               (0..n).map(|i| Box::new([i as u8; 32])).collect()\n}}\n\
             fn main() {{\n  let names = names(10); let table = table(1000);\n\
               black_box((&names, &table)); drop(table); black_box(&names);\n}}\n"
        )
    };
    let place = Place::new();
    for (name, factor) in [("old", 1), ("new", 3)] {
        place.write("program.rs", source(factor));
        let compiler = Command::new("rustc")
            .args(["-O", "-g", "-o", name, "program.rs"])
            .current_dir(place.path())
            .status();
        assert!(compiler.is_ok_and(|status| status.success()), "rustc");
    }
    let answer = explained(&place, PEAK);
    let [old, new] = totals(&answer);
    assert_eq!([old, new], dhat(&place).map(|[peak, _]| peak));
    assert_eq!(new - old, 16_000);
    let row = first(&answer);
    assert_eq!(row, ("program::table".to_owned(), 16_000.0, "own".to_owned(), "changed".to_owned()));
}

#[test]
fn live_memory_of_profiles_and_servers_is_reported_as_unknown() {
    let place = Place::new();
    place.write("a.collapsed", "main;work 10\n");
    let answer = place.run(["explain", "--metric", PEAK, "a.collapsed", "a.collapsed"]);
    assert_eq!(answer.code, 2, "{}", answer.exchange());
    assert!(answer.stderr.contains("do not hold it; name two commands"), "{}", answer.exchange());
    if has_valgrind() {
        let answer = place.run(["explain", "--metric", PEAK, "--url", ":1/", "sleep 1", "sleep 1"]);
        assert_eq!(answer.code, 2, "{}", answer.exchange());
        assert!(answer.stderr.contains("but not for servers or kept call trees"), "{}", answer.exchange());
    }
}

#[test]
fn live_memory_of_a_case_is_explained_over_equal_numbers_of_iterations() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    // Names of equal length, because the program's start allocates room for its path.
    for (name, bytes) in [("less", 16), ("more", 40)] {
        let header = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk/c/scruple.h");
        place.write(
            &format!("{name}.c"),
            format!(
                "#define SCRUPLE_IMPLEMENTATION\n#include \"{header}\"\n#include <stdlib.h>\n\
                 __attribute__((noinline)) static uint32_t keep(uint32_t from) {{\n\
                   char *volatile held = malloc({bytes});\n  held[0] = (char)from;\n  return from + held[0];\n}}\n\
                 SCRUPLE_BODY(keeps, uint32_t, from, uint32_t, keep(from))\n\
                 int main(int argc, char **argv) {{\n  static uint32_t one = 1;\n\
                 scruple_data(SCRUPLE_BENCH(\"work/keep\", keeps), &one);\n\
                 return scruple_main(argc, argv);\n}}\n"
            ),
        );
        let mut compiler = Command::new("cc");
        let built = compiler
            .args(["-O1", "-g", "-o", name, &format!("{name}.c"), "-pthread"])
            .current_dir(place.path())
            .status();
        assert!(built.is_ok_and(|status| status.success()), "cc");
    }
    let words = ["explain", "--json", "--metric", LIVE, "--case", "work/keep", "./less", "./more"];
    let answer = place.run(words);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    adds_up(&answer);
    let remark = at(&answer.json(), "/explain/remarks/0").as_str().expect("a remark").to_owned();
    let iterations: u64 = remark.split(' ').nth(2).and_then(|word| word.parse().ok()).expect("a number");
    let [old, new] = totals(&answer);
    assert_eq!(new - old, 24 * iterations, "{}", answer.exchange());
    assert_eq!(first(&answer).0, "keep", "{}", answer.exchange());
}
