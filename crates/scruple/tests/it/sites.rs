//! `scruple inspect memory -- COMMAND` and the sites of `scruple inspect leak`: programs whose sites are known.

use crate::pages::all_is_well;
use crate::programs::{has_valgrind, pprof, python};
use crate::support::{Answer, Place, at};
use insta::assert_snapshot;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// Leaks a record of 100 bytes for each unit of work, keeps one table, and has a buffer in use while it works.
const PROGRAM: &str = r#"
#include <stdlib.h>
#include <string.h>
static void *last, *volatile table;
__attribute__((noinline)) static void *record(int i) {
    char *made = malloc(100);
    return memset(made, i, 100);
}
__attribute__((noinline)) static void scratch(int i) {
    char *buffer = malloc(50000);
    free(memset(buffer, i, 50000));
}
int main(int count, char **words) {
    int units = count > 1 ? atoi(words[1]) : 10;
    table = calloc(8, 8);
    for (int i = 0; i < units; i++) {
        last = record(i);
        scratch(i);
    }
    return count > 2;
}
"#;

fn compiled(flags: &[&str]) -> Place {
    let place = Place::new();
    place.write("app.c", PROGRAM);
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-g", "-fno-builtin", "-o", "app", "app.c"]).args(flags).current_dir(place.path());
    assert!(compiler.status().expect("a compiler").success());
    place
}

fn memory(place: &Place, words: &[&str]) -> Answer {
    let answer = place.run([&["inspect", "memory"], words].concat());
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    answer
}

#[test]
fn the_sites_that_hold_the_peak_come_first_and_add_up_to_it() {
    if !has_valgrind() {
        return;
    }
    let place = compiled(&[]);
    let text = memory(&place, &["--", "./app"]).stdout;
    // How many instructions are executed depends on the C library.
    let (sites, course) = text.split_once("\nIn use over ").expect("a course");
    assert!(course.contains('█') && course.contains("Every allocation was counted"), "{course}");
    assert_snapshot!(sites, @r"
    Memory of ‘./app’ by allocation site
    At most 51.1 kB in 12 blocks were in use at one time; 98 % of it from scratch (app.c:10).

    at the peak   share  blocks  at the end  allocated  site
       50.0  kB    98 %       1     0    B   500    kB  scratch (app.c:10)
                             ← main (app.c:18)
        1.00 kB   2.0 %      10     1.00 kB    1.00 kB  record (app.c:6)
                             ← main (app.c:17)
       64    B    0.1 %       1    64    B    64    B   main (app.c:15)
       51.1  kB   100 %      12     1.06 kB  501    kB  all

    At the end 1.06 kB in 11 blocks were not freed:
       1.00 kB in 10 blocks  record (app.c:6) ← main (app.c:17)
      64    B in 1 block     main (app.c:15)
    ");
    let page = memory(&place, &["--json", "--", "./app"]).json();
    let process = at(&page, "/processes/0");
    assert_eq!(at(process, "/at_peak"), &json!({"blocks": 12, "bytes": 51_064}), "{page:#}");
    assert_eq!(at(process, "/at_end"), &json!({"blocks": 11, "bytes": 1064}), "{page:#}");
    assert_eq!(at(process, "/allocated"), &json!({"blocks": 21, "bytes": 501_064}), "{page:#}");
    let sites = at(process, "/sites").as_array().expect("sites");
    let sum = |figure: &str| sites.iter().filter_map(|site| at(site, figure).as_u64()).sum::<u64>();
    assert_eq!((sum("/at_peak/bytes"), sum("/at_end/bytes")), (51_064, 1064), "{page:#}");
    let places: Vec<(&str, u64)> = sites
        .iter()
        .map(|site| (site["function"].as_str().expect("a name"), site["line"].as_u64().expect("a line")))
        .collect();
    assert_eq!(places, [("scratch", 10), ("record", 6), ("main", 15)], "{page:#}");
    assert_eq!(
        (&sites[1]["callers"][0]["function"], &sites[1]["callers"][0]["line"]),
        (&json!("main"), &json!(17))
    );
    let points = at(process, "/course/points").as_array().expect("points");
    assert!(points.len() <= 256 && points.iter().any(|point| point[1] == 51_064), "{page:#}");
}

#[test]
fn other_tools_read_the_bytes_of_each_context() {
    if !has_valgrind() {
        return;
    }
    let place = compiled(&[]);
    let files = [
        "x.svg",
        "x.html",
        "x.md",
        "x.pb.gz",
        "x.collapsed",
        "x.speedscope.json",
        "x.firefox.json",
        "x.json",
    ];
    let exports: Vec<&str> = files.iter().flat_map(|file| ["--export", file]).collect();
    memory(&place, &[&exports[..], &["--", "./app"]].concat());
    let collapsed = place.read("x.collapsed");
    let counts = collapsed.lines().map(|line| line.rsplit_once(' ').expect("a count").1.parse::<u64>());
    assert_eq!(counts.map(|count| count.expect("a number")).sum::<u64>(), 51_064, "{collapsed}");
    assert!(collapsed.lines().any(|line| line.ends_with(";main;scratch 50000")), "{collapsed}");
    let speedscope: Value = serde_json::from_str(&place.read("x.speedscope.json")).expect("JSON");
    let shown = speedscope["activeProfileIndex"].as_u64().expect("a profile") as usize;
    let ends: Vec<u64> = speedscope["profiles"]
        .as_array()
        .expect("profiles")
        .iter()
        .map(|profile| profile["endValue"].as_u64().expect("an end"))
        .collect();
    assert_eq!((ends.clone(), ends[shown]), (vec![21, 501_064, 12, 51_064, 11, 1064], 51_064));
    assert!(place.read("x.svg").contains("scratch (app.c:10): 50.0 kB"), "{}", place.read("x.svg"));
    assert!(place.read("x.md").contains("| scratch (app.c:10) | 50.0 kB | 98 % |"), "{}", place.read("x.md"));
    all_is_well(&[place.file("x.html")]);
    let page = place.read("x.html");
    for title in ["What was in use at the peak", "In use over the course of the program"] {
        let headings = page.matches(&format!(">{title}</h")).count();
        assert_eq!(headings, 1, "the title ‘{title}’ stands once");
    }
    // The reader of profiles finds what was written, too.
    let again = place.run(["inspect", "calls", "--json", "--from", "x.pb.gz"]).json();
    assert_eq!(at(&again, "/total/bytes"), 501_064, "{again:#}");
    let Some(top) = pprof(&place, &["-top", "-lines", "-unit=B", "x.pb.gz"]) else { return };
    assert!(top.contains("Type: inuse_space") && top.contains("app.c:10"), "{top}");
    assert!(top.lines().any(|line| line.trim_start().starts_with("50000B 97.92%")), "{top}");
}

#[test]
fn the_site_that_leaks_is_named_with_its_bytes_for_each_unit_of_work() {
    if !has_valgrind() {
        return;
    }
    let place = compiled(&[]);
    let words = ["inspect", "leak", "--sizes", "20,40,80,160,320", "--store", "l.db"];
    let answer = place.run([&words[..], &["--json", "--", "./app", "{size}"]].concat());
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let page = answer.json();
    let sites = at(&page, "/sites");
    assert_eq!(
        at(sites, "/sizes"),
        &json!([
            {"n": 20.0, "blocks": 21, "bytes": 2064},
            {"n": 320.0, "blocks": 321, "bytes": 32_064},
        ])
    );
    // The table, which does not grow, is not a site of the leak.
    assert_eq!(at(sites, "/sites").as_array().map(Vec::len), Some(1), "{sites:#}");
    let first = at(sites, "/sites/0");
    assert_eq!(
        (&first["function"], &first["line"], &first["callers"]),
        (&json!("record"), &json!(6), &json!(["main (app.c:17)"]))
    );
    assert_eq!(
        (&first["bytes_per_unit"], &first["blocks_per_unit"]),
        (&json!(100.0), &json!(1.0)),
        "{sites:#}"
    );
    assert_eq!(at(sites, "/bytes_per_unit"), &json!(100.0));
    let text = place.run([&words[..], &["--", "./app", "{size}"]].concat()).stdout;
    assert!(text.contains("  100 B       1  record (app.c:6) ← main (app.c:17)"), "{text}");
    place.run(["report", "--store", "l.db", "--export", "leak.html"]);
    assert!(place.read("leak.html").contains("record (app.c:6) ← main (app.c:17)"));
    let never = place.run([&words[..], &["--sites", "never", "--", "./app", "{size}"]].concat()).stdout;
    assert!(never.contains("grows with the work") && !never.contains("record"), "{never}");
}

#[test]
fn where_sites_cannot_be_found_the_reason_is_reported() {
    if !has_valgrind() {
        return;
    }
    let place = compiled(&["-static", "-s"]);
    let message = |place: &Place, words: &[&str], code: i32| {
        let answer = place.run([&["inspect", "memory"], words].concat());
        assert_eq!(answer.code, code, "{}", answer.exchange());
        answer.stderr
    };
    assert!(message(&place, &["--", "./app"], 3).contains("linked statically and has no symbols"));
    assert!(message(&place, &[], 2).contains("give a command"));
    assert!(message(&place, &["--", "./nothing"], 2).contains("there is no file"));
    let place = compiled(&[]);
    let failed = message(&place, &["--", "./app", "1", "fails"], 4);
    assert!(failed.contains("exited with code 1; -i shows its sites regardless"), "{failed}");
    assert!(memory(&place, &["-i", "--", "./app", "1", "fails"]).stdout.contains("record (app.c:6)"));
    let none = place.command(["inspect", "memory", "--", "./app"]).env("PATH", place.path()).output();
    let none = none.expect("it runs");
    assert_eq!(none.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&none.stderr).contains("install the package ‘valgrind’"));
    // A leak has its sites without valgrind, too, where all allocations are recorded.
    let words = ["inspect", "leak", "--sizes", "20,40,80,160,320", "--no-store", "--", "./app", "{size}"];
    let answer = place.finish(place.command(words).env("PATH", place.path()));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let text = answer.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("every allocation was counted without valgrind"), "{}", answer.exchange());
    let lines: Vec<&str> =
        answer.stdout.lines().skip_while(|line| !line.ends_with("  site")).skip(1).collect();
    assert!(lines[0].contains("100 B       1  record (app.c:6)"), "{}", answer.exchange());
    assert!(lines[1].contains("100 B       1  all"), "{}", answer.exchange());
}

#[test]
fn a_killed_program_has_no_sites_and_a_go_program_no_malloc() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    place.write("killed.sh", "sh -c 'kill -9 $PPID'; sleep 10\n");
    let killed = place.run(["inspect", "memory", "--", "sh", "killed.sh"]);
    assert_eq!(killed.code, 4, "{}", killed.exchange());
    assert!(
        killed.stderr.contains("was ended by signal 9 (SIGKILL); its counts are lost"),
        "{}",
        killed.exchange()
    );
    place.write("hello.go", "package main\nfunc main() { println(len(make([]byte, 1<<20))) }\n");
    let built =
        Command::new("go").args(["build", "-o", "hello", "hello.go"]).current_dir(place.path()).status();
    if !built.is_ok_and(|status| status.success()) {
        return crate::programs::skip("go is not installed");
    }
    let go = place.run(["inspect", "memory", "--", "./hello"]);
    assert_eq!(go.code, 3, "{}", go.exchange());
    assert!(go.stderr.contains("runtime ‘go’, which does not use malloc"), "{}", go.exchange());
    assert!(Path::new(&place.file("hello")).exists());
}

#[test]
fn sampled_shares_have_ranges_that_hold_the_true_ones_beside_exact_totals() {
    let place = compiled(&[]);
    let mut misses = 0;
    for seed in 1..=10 {
        let seed = format!("--seed={seed}");
        let words = ["--sites=sampled", "--sample-every=2000", &seed, "--json", "--", "./app", "1000"];
        let page = memory(&place, &words).json();
        assert_eq!(
            (&page["counting"], &page["sampled_bytes"]),
            (&json!("sampled"), &json!(2000)),
            "{page:#}"
        );
        let process = at(&page, "/processes/0");
        assert_eq!(at(process, "/at_peak/bytes"), &json!(150_064), "{page:#}");
        assert_eq!(at(process, "/at_end"), &json!({"blocks": 1001, "bytes": 100_064}), "{page:#}");
        assert_eq!(at(process, "/allocated"), &json!({"blocks": 2001, "bytes": 50_100_064}), "{page:#}");
        let sites = at(process, "/sites").as_array().expect("sites");
        let record = sites.iter().find(|site| site["function"] == "record").expect("the record");
        assert_eq!((&record["line"], &record["callers"][0]["line"]), (&json!(6), &json!(17)), "{page:#}");
        let range: Vec<f64> = serde_json::from_value(record["share_at_peak"].clone()).expect("two numbers");
        assert!(range[1] - range[0] < 0.3, "{page:#}");
        let truth = 100_000.0 / 150_064.0;
        misses += u32::from(truth < range[0] || range[1] < truth);
    }
    // Ten ranges of 95 % miss more than four with a probability of 10⁻⁴, for all seeds that there are.
    assert!(misses <= 4, "{misses}");
    let text = memory(&place, &["--sites=sampled", "--sample-every=2000", "--", "./app", "1000"]).stdout;
    assert!(text.contains("–") && text.contains("record (app.c:6)"), "{text}");
    assert!(text.contains("The samples are those of --seed=1."), "{text}");
}

#[test]
fn blocks_at_the_peak_are_not_zero_where_nothing_was_sampled() {
    let place = compiled(&[]);
    let words = ["--sites=sampled", "--sample-every=1000000000", "--", "./app", "1000"];
    let text = memory(&place, &words).stdout;
    let all = text.lines().find(|line| line.ends_with("  all")).expect("the row of all sites");
    let cells: Vec<&str> = all.split_whitespace().collect();
    assert_eq!(cells[..5], ["150", "kB", "100", "%", "–"], "{text}");
}

#[test]
fn no_sampled_site_holds_more_than_the_whole_program() {
    let place = compiled(&[]);
    let mut held = 0;
    for seed in 1..=20 {
        let seed = format!("--seed={seed}");
        let words = ["--sites=sampled", "--sample-every=500000", &seed, "--json", "--", "./app", "1000"];
        let page = memory(&place, &words).json();
        let process = at(&page, "/processes/0");
        let number = |value: &Value| value.as_u64().expect("a number");
        for figure in
            ["/at_peak/bytes", "/at_end/bytes", "/at_end/blocks", "/allocated/bytes", "/allocated/blocks"]
        {
            let sites = at(process, "/sites").as_array().expect("sites");
            let of_sites: u64 = sites.iter().map(|site| number(at(site, figure))).sum();
            assert!(of_sites <= number(at(process, figure)), "{figure}: {page:#}");
            held += u64::from(figure == "/at_peak/bytes" && of_sites > 0);
        }
    }
    assert!(held > 0, "no site held anything at the peak");
    // Records are too small to be sampled at this distance.
    let text = memory(&place, &["--sites=sampled", "--sample-every=50000000", "--", "./app", "1000"]).stdout;
    assert!(text.contains("At most 150 kB were in use at one time"), "{text}");
    assert!(
        text.contains("At the end 100 kB in 1,001 blocks were not freed; none of them was sampled."),
        "{text}"
    );
}

#[test]
fn a_static_program_is_not_sampled_and_the_reason_is_reported() {
    let place = compiled(&["-static"]);
    let answer = place.run(["inspect", "memory", "--sites=sampled", "--", "./app"]);
    assert_eq!(answer.code, 2, "{}", answer.exchange());
    assert!(answer.stderr.contains("static"), "{}", answer.exchange());
    assert!(answer.stderr.contains("--sites=exact"), "{}", answer.exchange());
}

#[test]
fn the_heap_of_a_runtime_is_named_also_if_another_program_executes_it() {
    let Some(python) = python().filter(|_| has_valgrind()) else { return };
    let place = Place::new();
    let wrapped = ["--", "timeout", "100", python, "-S", "-c", "pass"];
    for words in [&wrapped[..], &["--", "sh", "-c", &format!("{python} -S -c pass; true")]] {
        let answer = memory(&place, words);
        let message = "most objects of a program of the runtime ‘python’ are in that runtime’s own heap";
        let text = answer.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(message), "{}", answer.exchange());
    }
}

#[test]
fn what_a_forked_process_had_from_its_parent_is_named_beside_its_sampled_sites() {
    let place = Place::new();
    let program = "#include <stdlib.h>\n#include <sys/wait.h>\n#include <unistd.h>\nvoid *volatile kept;\n\
                   int main(void) {\n kept = malloc(3000);\n\
                   if (fork() == 0) { kept = malloc(500); _exit(0); }\n wait(NULL);\n}\n";
    place.write("forks.c", program);
    let compiled =
        Command::new("cc").args(["-g", "-o", "forks", "forks.c"]).current_dir(place.path()).status();
    assert!(compiled.expect("a compiler").success());
    let words = ["--sites=sampled", "--sample-every=1", "--", "./forks"];
    let text = memory(&place, &words).stdout;
    let said = "The sites of 3.00 kB, which the process inherited from its parent, are not known.";
    assert!(text.contains(said), "{text}");
    let page = memory(&place, &[&["--json"], &words[..]].concat()).json();
    assert_eq!(at(&page, "/processes/0/at_peak/bytes"), &json!(3500), "{page:#}");
    assert_eq!(at(&page, "/processes/0/inherited/bytes"), &json!(3000), "{page:#}");
}
