//! Costs of real programs: counts are exact, times only ordered.

use crate::programs::{BURN, NOTHING, skip};
use crate::support::{Answer, Place, at};
use insta::assert_snapshot;
use serde_json::Value;
use std::process::Command;

/// Weighs commands in JSON, without a store.
fn weigh(place: &Place, words: &[&str]) -> Value {
    let answer = place.run(["run", "--no-store", "--json"].iter().chain(words));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    answer.json()
}

/// The metric `key` of the arm at the position `arm`.
fn metric<'a>(run: &'a Value, arm: usize, key: &str) -> &'a Value {
    &run["arms"][arm]["metrics"][key]
}

fn estimate(run: &Value, arm: usize, key: &str) -> f64 {
    let metric = metric(run, arm, key);
    metric["estimate"].as_f64().unwrap_or_else(|| panic!("{key} of {arm}: {metric}"))
}

#[test]
fn three_times_the_steps_take_about_three_times_the_cpu() {
    let place = Place::new();
    place.compile("burn", BURN, &[]);
    let run = weigh(&place, &["-r", "7", "--time-only", "./burn 10000000", "./burn 30000000"]);
    let ratio = estimate(&run, 1, "time.cpu") / estimate(&run, 0, "time.cpu");
    assert!((1.8..5.0).contains(&ratio), "{ratio}");
    for arm in 0..2 {
        let cpu = estimate(&run, arm, "time.user") + estimate(&run, arm, "time.sys");
        let wall = estimate(&run, arm, "time.wall");
        assert!(cpu <= wall * 1.1, "one thread cannot use more than all of the time: {cpu} of {wall}");
    }
}

#[test]
fn sleeping_takes_wall_time_and_hardly_any_cpu() {
    let run = weigh(&Place::new(), &["-r", "6", "--time-only", "sleep 0.05"]);
    assert!(estimate(&run, 0, "time.wall") >= 50e6);
    assert!(estimate(&run, 0, "time.cpu") < 25e6);
    assert!(estimate(&run, 0, "switches.voluntary") >= 1.0);
}

/// Checks the peak memory in bytes of three arms: one that allocates nothing, one of 100 MB, and one that allocates
/// nothing.
fn assert_peaks(run: &Value) {
    let peak = |arm| estimate(run, arm, "memory.peak");
    let (before, big, after) = (peak(0), peak(1), peak(2));
    assert!(before < 4e6, "nothing took {before}");
    assert!((after - before).abs() < 1_048_576.0, "nothing took {before}, and {after} after the big one");
    let beyond = big - before - 100e6;
    assert!(beyond.abs() < 1_048_576.0, "100 MB took {big}, {beyond} beyond what nothing takes");
}

const PEAKS: [&str; 5] = ["-r", "2", "./burn 0", "./burn 0 100000000", "./burn 0 0"];

#[test]
fn peak_memory_is_right_before_and_after_a_big_program() {
    let place = Place::new();
    place.compile("burn", BURN, &[]);
    assert_peaks(&weigh(&place, &PEAKS));
}

#[test]
fn peak_memory_is_right_below_a_parent_that_holds_200_megabytes() {
    let place = Place::new();
    place.compile("burn", BURN, &[]);
    place.compile(
        "fat",
        r#"
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv) {
    char *held = malloc(200000000);
    memset(held, 1, 200000000);
    int status;
    pid_t pid = fork();
    if (pid == 0) { execv(argv[1], argv + 1); _exit(127); }
    waitpid(pid, &status, 0);
    return held[argc] == 1 ? WEXITSTATUS(status) : 1;
}
"#,
        &[],
    );
    let scruple = place.command(["run", "--no-store", "--json"].iter().chain(&PEAKS));
    let mut fat = Command::new(place.file("fat"));
    fat.arg(scruple.get_program()).args(scruple.get_args()).current_dir(place.path());
    for (name, value) in scruple.get_envs() {
        if let Some(value) = value {
            fat.env(name, value);
        }
    }
    let answer = Answer::of(fat.output().expect("fat runs"), place.path());
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    assert_peaks(&answer.json());
}

#[test]
fn peak_memory_is_that_of_every_program_that_a_process_was() {
    let place = Place::new();
    place.compile("burn", BURN, &[]);
    let holds = |run: &str| {
        format!(
            "#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\nchar *held;\nint main(void) {{ held = \
             malloc(90 << 20); memset(held, 1, 90 << 20); {run} return 127; }}\n"
        )
    };
    place.compile("becomes", &holds("execl(\"./burn\", \"burn\", (char *)0);"), &[]);
    place.compile("thrice", &holds("execl(\"./becomes\", \"becomes\", (char *)0);"), &[]);
    place.shell_script("below", "./becomes; ./burn");
    let run = weigh(&place, &["-r", "2", "./burn", "./becomes", "./thrice", "./below", "./burn 0"]);
    let peak = |arm| estimate(&run, arm, "memory.peak");
    for arm in 1..4 {
        let beyond = peak(arm) - peak(0) - f64::from(90 << 20);
        assert!(beyond.abs() < 1_048_576.0, "{arm}: {} beyond what is known", beyond);
    }
    assert!((peak(4) - peak(0)).abs() < 1_048_576.0 && peak(0) < 4e6, "{} {}", peak(0), peak(4));
}

#[test]
fn a_program_of_a_few_pages_is_seen_to_have_a_few_pages() {
    if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        return skip("no machine code for this architecture");
    }
    let place = Place::new();
    place.compile("nothing", NOTHING, &["-static", "-nostdlib", "-fno-stack-protector"]);
    let run = weigh(&place, &["-r", "2", "./nothing"]);
    let peak = estimate(&run, 0, "memory.peak");
    assert!((4096.0..=131_072.0).contains(&peak), "{peak}");
    let absent = at(metric(&run, 0, "malloc.count"), "/absent").as_str().unwrap_or("").to_owned();
    assert!(!absent.is_empty(), "a static program cannot be counted, and zero would be a lie");
}

#[test]
fn each_page_touched_is_a_fault() {
    let place = Place::new();
    place.compile(
        "touch",
        r#"
#include <stdlib.h>
#include <sys/mman.h>
int main(int argc, char **argv) {
    size_t size = 4096 * strtoul(argv[1], 0, 10);
    char *p = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(p, size, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < size; i += 4096) p[i] = argc;
    return 0;
}
"#,
        &[],
    );
    let run = weigh(&place, &["-r", "12", "./touch 1000", "./touch 3000"]);
    for key in ["faults.minor", "memory.faults"] {
        let more = estimate(&run, 1, key) - estimate(&run, 0, key);
        assert!((1950.0..2050.0).contains(&more), "{key}: {more}");
    }
}

#[test]
fn allocations_are_counted_to_the_call_and_the_byte() {
    let place = Place::new();
    place.compile(
        "steps",
        r#"
#include <stdlib.h>
int main(int argc, char **argv) {
    for (long i = strtol(argv[1], 0, 10); i > 0; i--) {
        void *volatile p = malloc(32);
        (void)p;
    }
    return 0;
}
"#,
        &["-fno-builtin-malloc"],
    );
    let words = ["-r", "12", "-P", "n", "100", "300", "-D", "100", "./steps {n}"];
    let run = weigh(&place, &words);
    for arm in 0..3 {
        assert_eq!(estimate(&run, arm, "malloc.count"), 100.0 * (arm as f64 + 1.0));
        assert_eq!(estimate(&run, arm, "malloc.bytes"), 3200.0 * (arm as f64 + 1.0));
        assert_eq!(metric(&run, arm, "malloc.bytes")["quality"], "exact");
    }
    let growth = run["growth"].as_array().expect("growth");
    let bytes = growth.iter().find(|fit| fit["metric"] == "malloc.bytes").expect("a fit");
    assert_eq!((&bytes["fit"]["slope"], &bytes["fit"]["exact"]), (&Value::from(32.0), &Value::from(true)));
}

#[test]
fn the_shell_and_the_launch_itself_are_weighed_as_arms_of_their_own() {
    let run = weigh(&Place::new(), &["-r", "6", "-S", "sh", "true | true"]);
    let arms = run["arms"].as_array().expect("arms");
    let roles: Vec<String> =
        arms.iter().map(|arm| format!("{}: {}", arm["role"], arm["name"]).replace('"', "")).collect();
    assert_snapshot!(roles.join("\n"), @r"
    subject: true | true
    shell: (sh -c '')
    tare: (empty program)
    ");
    assert!(estimate(&run, 2, "time.cpu") < estimate(&run, 1, "time.cpu"), "a shell costs more than nothing");
}

#[test]
fn without_randomised_addresses_the_memory_passes_repeat() {
    if std::fs::read_to_string("/proc/sys/kernel/randomize_va_space").is_ok_and(|text| text.trim() == "0") {
        return skip("addresses are not randomised here in the first place");
    }
    let place = Place::new();
    place.compile(
        "where",
        "#include <stdio.h>\nint main(void) { int here; return printf(\"%p\\n\", (void *)&here) < 0; }",
        &[],
    );
    let codes = |words: &[&str]| {
        let run = weigh(&place, &[&["-r", "12", "./where"], words].concat());
        run["warnings"].as_array().expect("warnings").iter().any(|warning| warning["code"] == "output-varies")
    };
    assert!(codes(&[]), "the stack lies somewhere else each time");
    assert!(!codes(&["--no-aslr"]), "the stack lies in one place");
}

#[test]
fn a_refused_shield_is_reported_and_the_run_continues() {
    let place = Place::new();
    let scruple = place.command(["run", "--no-store", "--shield", "--json", "-r", "3", "true"]);
    let mut without = Command::new("setpriv");
    without.args(["--inh-caps=-sys_nice", "--bounding-set=-sys_nice"]);
    without.arg(scruple.get_program()).args(scruple.get_args()).current_dir(place.path());
    without.env("XDG_CACHE_HOME", place.file("cache"));
    let Ok(output) = without.output() else { return skip("there is no setpriv here") };
    let answer = Answer::of(output, place.path());
    if answer.stderr.contains("setpriv") {
        return skip(&answer.stderr);
    }
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    assert_eq!(
        answer.json()["warnings"][0]["text"],
        "not shielded all the time: the system refused real-time scheduling: Operation not permitted (os error 1)"
    );
}

#[test]
fn pinned_programs_are_copies_that_cost_the_same() {
    let place = Place::new();
    place.compile("burn", BURN, &[]);
    let run = weigh(&place, &["-r", "3", "--pin", "./burn 1000", "./burn 1000 8"]);
    assert_eq!(estimate(&run, 1, "malloc.count"), estimate(&run, 0, "malloc.count") + 1.0);
    assert_eq!(run["arms"][0]["subject"]["argv"][0], "./burn");
    place.assert_no_work_folder();
}
