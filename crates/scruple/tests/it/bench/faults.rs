//! Bench programs that misbehave: the answer names each one, the exit code is an error, and the other cases keep their
//! results.

use crate::fake::{bench, bench_freely, fake_line};
use crate::support::{Answer, Place, at};
use insta::assert_snapshot;

const GOOD: &str = r#"{"name":"good","cost":5,"bytes":16}"#;

/// A field of a case: its time limit is one second.
const LIMIT: &str = r#","time_limit":1000000000"#;

/// Runs a suite in which a case with the behaviour `does` stands between two good cases.
fn beside(does: &str, options: &[&str]) -> Answer {
    beside_one_with(does, "", options)
}

/// The same, with more fields of the case between.
fn beside_one_with(does: &str, fields: &str, options: &[&str]) -> Answer {
    let bad = format!(r#"{{"name":"bad","cost":5,"does":"{does}"{fields}}}"#);
    let last = r#"{"name":"last","cost":10}"#;
    bench(&Place::new(), &[&["--no-store"], options].concat(), &[GOOD, &bad, last])
}

#[test]
fn output_of_a_program_does_not_disturb_the_protocol() {
    let answer = bench(&Place::new(), &["--no-store"], &["--chatter", GOOD]);
    assert_snapshot!(answer.exchange(), @r"
    exit 0
    --- stdout
    1 case · 3 fresh processes · seed 7

                net      ±      raw     tare  allocated
      good  5.00 ns  0.4 %  7.00 ns  2.00 ns       16 B
    ");
}

#[test]
fn a_case_that_throws_has_failed_with_its_message() {
    assert_snapshot!(beside("throw", &[]).exchange(), @r"
    exit 4
    --- stdout
    3 cases · 3 fresh processes · seed 7 · 1 failed

                 net      ±       raw     tare  allocated
      good   5.00 ns  0.4 %   7.00 ns  2.00 ns       16 B
      bad   failed: ValueError: it threw
      last  10.0  ns  0.2 %  12.0  ns  2.00 ns        0 B

    --- stderr
    error: ‘bad’ failed; the other cases were measured
    ");
}

#[test]
fn documents_and_pages_say_which_cases_failed_and_which_have_no_counterpart() {
    let place = Place::new();
    let (same, old, new) = (GOOD, r#"{"name":"old","cost":5}"#, r#"{"name":"bad","cost":5,"does":"throw"}"#);
    let against = fake_line(&place, &[same, old, r#"{"name":"bad","cost":5}"#]);
    let options = ["--no-store", "--export", "page.md", "--export", "page.html", "--against", &against];
    assert_eq!(bench(&place, &options, &[same, new]).code, 4);
    let (page, document) = (place.read("page.html"), place.read("page.md"));
    let row = |name: &str| {
        let start = format!("| `{name}` |");
        document.lines().find(|line| line.starts_with(&start)).unwrap_or_default().to_owned()
    };
    assert!(
        document.starts_with("| Case | net | wall | cpu | allocated | zoo.visits | Compared |"),
        "{document}"
    );
    assert!(
        row("good @old").contains("| 5.00 ns [") && row("good @old").ends_with("| reference |"),
        "{document}"
    );
    let failed = "| `bad @new` | – | failed: ValueError: it threw | – | – | – |  |";
    assert_eq!(row("bad @new"), failed, "{document}");
    assert!(row("bad @old").ends_with("| reference |"), "{document}");
    assert!(row("old @old").ends_with("| no counterpart |"), "{document}");
    for part in ["3 cases at 2 versions", "1 case failed", "failed: ValueError: it threw"] {
        assert!(page.contains(part), "{part} is not in\n{page}");
    }
}

#[test]
fn a_case_that_is_skipped_is_no_failure() {
    let answer = beside("skip", &[]);
    assert_snapshot!(answer.exchange(), @r"
    exit 0
    --- stdout
    3 cases · 3 fresh processes · seed 7 · 1 skipped

                 net      ±       raw     tare  allocated
      good   5.00 ns  0.4 %   7.00 ns  2.00 ns       16 B
      bad   skipped: no such device
      last  10.0  ns  0.2 %  12.0  ns  2.00 ns        0 B
    ");
    let place = Place::new();
    let bad = r#"{"name":"bad","cost":5,"does":"skip"}"#;
    let options = ["--no-store", "--export", "tests.xml", "--export", "page.html"];
    assert_eq!(bench(&place, &options, &[GOOD, bad, r#"{"name":"last","cost":10}"#]).code, 0);
    let page = place.read("page.html");
    assert!(page.contains("2 cases were measured") && page.contains("1 case skipped"), "{page}");
    let tests = place.read("tests.xml");
    assert!(tests.contains("errors=\"0\" skipped=\"1\""), "{tests}");
    assert!(tests.contains("<skipped message=\"skipped: no such device\"></skipped>"), "{tests}");
}

#[test]
fn cases_of_a_compiler_are_warm_when_they_are_timed_and_fail_alone() {
    let cold = r#"{"name":"cold","cost":5,"cold":12}"#;
    let tired = r#"{"name":"tired","cost":5,"does":"tire"}"#;
    let words = ["--language", "java", cold, tired, r#"{"name":"last","cost":10,"cold":12}"#];
    let answer = bench(&Place::new(), &["--no-store", "--time-only"], &words);
    assert_snapshot!(answer.exchange(), @r"
    exit 4
    --- stdout
    3 cases · 3 fresh processes · seed 7 · 1 failed

                  net      ±       raw     tare
      cold    5.00 ns  0.4 %   7.00 ns  2.00 ns
      tired  failed: ValueError: it threw
      last   10.0  ns  0.2 %  12.0  ns  2.00 ns

    --- stderr
    error: ‘tired’ failed; the other cases were measured
    ");
}

#[test]
fn a_body_of_java_is_called_until_it_is_compiled() {
    let slow = r#"{"name":"slow","cost":7000,"cold_calls":120}"#;
    // On a busy machine, the share of a smaller budget could be too short for these calls.
    let options =
        ["--no-store", "--json", "--time-only", "--processes", "1", "--blocks", "3", "--budget", "60s"];
    let answer = bench_freely(&Place::new(), &options, &["--language", "java", slow]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let time = at(&answer.json(), "/arms/0/metrics/time.wall/estimate").as_f64().expect("a number");
    assert!((6_900.0..7_300.0).contains(&time), "{time}");
}

#[test]
fn a_body_of_java_that_was_not_called_often_enough_is_named() {
    let long = r#"{"name":"long","cost":1000000}"#;
    let within = |budget: &str, language: &str| {
        let options = ["--no-store", "--time-only", "--processes", "1", "--blocks", "3", "--budget", budget];
        bench_freely(&Place::new(), &options, &["--language", language, long])
    };
    let answer = within("150ms", "java");
    let remark = "! ‘long’ was timed before the compiler had seen it often enough";
    assert!(answer.stdout.contains(remark), "{}", answer.exchange());
    for answer in [within("150ms", "c"), within("60s", "java")] {
        assert!(!answer.stdout.contains("often enough"), "{}", answer.exchange());
    }
}

#[test]
fn a_body_that_takes_new_memory_from_the_kernel_is_named() {
    let of = |language: &str, pages: u32| {
        let case = format!(r#"{{"name":"list","cost":100000,"touches":{pages}}}"#);
        let options = ["--no-store", "--time-only", "--processes", "1", "--blocks", "6", "--budget", "60s"];
        bench_freely(&Place::new(), &options, &["--language", language, &case]).unwrapped()
    };
    let remark = "‘list’ was timed while the runtime took new memory from the kernel (";
    assert!(of("java", 60).contains(remark) && of("haskell", 60).contains(remark));
    assert!(!of("java", 0).contains(remark) && !of("c", 60).contains(remark));
}

#[test]
fn a_case_that_fails_only_while_it_is_counted_is_named_with_the_reason() {
    let shuns = r#"{"name":"shuns","cost":5,"bytes":16,"does":"shun","pause":[100000,1000]}"#;
    let answer = bench(&Place::new(), &["--no-store"], &[GOOD, shuns]);
    let remark = "! ‘shuns’ failed while it was counted: ValueError: it threw";
    assert!(answer.stdout.contains(remark), "{}", answer.exchange());
}

#[test]
fn a_case_whose_check_fails_has_failed_with_its_reason() {
    let wrong = r#"{"name":"wrong","cost":5,"checked":true,"does":"wrong"}"#;
    assert_snapshot!(bench(&Place::new(), &["--no-store"], &[GOOD, wrong]).exchange(), @r"
    exit 4
    --- stdout
    2 cases · 3 fresh processes · seed 7 · 1 failed

                 net      ±      raw     tare  allocated
      good   5.00 ns  0.4 %  7.00 ns  2.00 ns       16 B
      wrong  failed: its check failed: 7 is not 8

    --- stderr
    error: ‘wrong’ failed; the other cases were measured
    ");
}

#[test]
fn a_program_that_ends_or_is_ended_fails_in_one_case_and_is_started_again_for_the_others() {
    // Only the bad case has a limit that a busy machine could make the others exceed.
    let failures = [
        ("die", "", "the program was ended by signal 9 (SIGKILL)"),
        ("exit", "", "the program exited with code 3; its error output: first complaint last complaint"),
        ("half", "", "the program exited with code 0, in the middle of a line"),
        ("garble", "", "the answer to ‘block 1:c:1’ is not in the protocol: ‘this is no JSON’"),
        (
            "blame",
            "",
            "the answer to ‘block 1:c:1’ is not in the protocol: it is an error of another case: ValueError: it threw",
        ),
        ("hang", LIMIT, "no answer within 1 s: it was idle (a deadlock, or waiting for something)"),
        ("spin", LIMIT, "no answer within 1 s: it was busy all the time (a livelock, or just slow)"),
    ];
    for (does, more, reason) in failures {
        let answer = beside_one_with(does, more, &[]);
        assert_eq!(answer.code, 4, "{does}: {}", answer.exchange());
        assert_eq!(answer.stderr, "error: ‘bad’ failed; the other cases were measured\n", "{does}");
        let rows = format!(
            "good 5.00 ns 0.4 % 7.00 ns 2.00 ns 16 B bad failed: {reason} last 10.0 ns 0.2 % 12.0 ns 2.00 ns 0 B"
        );
        assert!(answer.unwrapped().ends_with(&rows), "{does}: {}", answer.exchange());
    }
}

#[test]
fn the_error_output_of_another_case_is_not_shown() {
    let throws = r#"{"name":"throws","cost":5,"does":"throw"}"#;
    let exits = r#"{"name":"exits","cost":5,"does":"exit"}"#;
    let answer = bench(&Place::new(), &["--no-store"], &[throws, GOOD, exits]);
    let said =
        "exits failed: the program exited with code 3; its error output: first complaint last complaint";
    assert!(answer.unwrapped().contains(said), "{}", answer.exchange());
}

#[test]
fn a_program_that_cannot_run_is_waited_for_beyond_its_limit() {
    let stops = format!(r#"{{"name":"stops","cost":5,"stops":1.2{LIMIT}}}"#);
    let options = ["--no-store", "--seed", "7", "--processes", "1", "--blocks", "3", "--time-only"];
    let answer = bench_freely(&Place::new(), &options, &[&stops]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
}

#[test]
fn a_queue_whose_threads_all_wait_is_a_deadlock_and_one_whose_threads_spin_a_livelock() {
    let place = Place::new();
    let tests = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk/c/tests");
    let header = format!("-I{tests}/..");
    let source = r#"
#define SCRUPLE_IMPLEMENTATION
#include "scruple.h"
#include "queues.h"
static void between(const char *name, const scruple_queue *q)
{
    scruple_queue_options(scruple_bench_queue(name, q, 2, 2, 64), 0, 500000000);
}
int main(int argc, char **argv)
{
    between("fifo", &fifo);
    between("all wait", &stuck_idle);
    between("spins", &stuck_busy);
    between("loses", &lossy);
    return scruple_main(argc, argv);
}
"#;
    place.compile("queues", source, &[&header, &format!("-I{tests}"), "-pthread"]);
    let words = ["bench", "--no-store", "--processes", "1", "--blocks", "2", "--time-only", "--", "./queues"];
    let answer = place.run(words);
    assert_eq!(answer.code, 4, "{}", answer.exchange());
    let text = |case: &str, words: &str| {
        answer.stdout.lines().any(|line| line.trim().starts_with(case) && line.contains(words))
    };
    assert!(text("all wait", "failed: deadlock: no progress for "), "{}", answer.exchange());
    assert!(text("all wait", " s: 64 put, 0 got, 0.0"), "{}", answer.exchange());
    assert!(text("spins", "failed: livelock: no progress for "), "{}", answer.exchange());
    assert!(text("spins", " s: 64 put, 0 got, "), "{}", answer.exchange());
    assert!(text("loses", "lost, 0 duplicated, 0 invented"), "{}", answer.exchange());
    // Balance and order are columns of the queues' own table.
    let heads = answer.stdout.lines().find(|line| line.contains("balance")).unwrap_or_default();
    assert!(heads.contains("misordered"), "{}", answer.exchange());
    let row = answer.stdout.lines().rfind(|line| line.trim_start().starts_with("fifo")).unwrap_or_default();
    assert!(row.contains(" in, ") && row.contains(" out "), "{}", answer.exchange());
}

#[test]
fn a_case_that_has_gone_on_when_its_stall_is_read_is_no_deadlock() {
    let resumes = r#"{"name":"resumes","cost":5,"resumes":true}"#;
    let answer = bench(&Place::new(), &["--no-store", "--time-only"], &[GOOD, resumes]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
}

/// In the first pass of the first process, the consumer has the lowest priority on a core on which two other processes
/// loop, for two seconds. So it is ready to run, but gets no core for longer than the stall limit.
#[test]
fn a_queue_whose_consumer_gets_no_core_is_waited_for() {
    let place = Place::new();
    let tests = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk/c/tests");
    let source = r#"
#define _GNU_SOURCE
#define SCRUPLE_IMPLEMENTATION
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "scruple.h"
#include "queues.h"
static int consumer, starved;
static void give_to_first_core(void)
{
    cpu_set_t all, first;
    int core = 0;
    sched_getaffinity(0, sizeof all, &all);
    while (!CPU_ISSET(core, &all)) core++;
    CPU_ZERO(&first);
    CPU_SET(core, &first);
    sched_setaffinity(0, sizeof first, &first);
}
static int loop(void)
{
    const int child = fork();
    if (child) return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    give_to_first_core();
    for (;;) __asm__ volatile("" : : : "memory");
}
static int put(void *queue, uint64_t element)
{
    const struct sched_param none = {0};
    int i, loops[2];
    FILE *done;
    if (!starved && !__atomic_load_n(&consumer, __ATOMIC_ACQUIRE)) return 0;
    if (!starved) {
        starved = 1;
        for (i = 0; i < 2; i++) loops[i] = loop();
        sleep(2);
        for (i = 0; i < 2; i++) kill(loops[i], SIGKILL);
        sched_setscheduler(consumer, SCHED_OTHER, &none);
        done = fopen("starved", "w");
        if (done) fclose(done);
    }
    return ring_put(queue, element);
}
static int get(void *queue, uint64_t *element)
{
    const struct sched_param none = {0};
    if (!starved && !consumer) {
        give_to_first_core();
        sched_setscheduler(0, SCHED_IDLE, &none);
        __atomic_store_n(&consumer, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
    }
    return ring_get(queue, element);
}
int main(int argc, char **argv)
{
    static const scruple_queue starving = {ring_new, put, get, NULL, ring_free};
    starved = access("starved", F_OK) == 0;
    scruple_queue_options(scruple_bench_queue("starved", &starving, 1, 1, 64), 0, 300000000);
    return scruple_main(argc, argv);
}
"#;
    place.compile("queue", source, &[&format!("-I{tests}/.."), &format!("-I{tests}"), "-pthread"]);
    let answer = place.run(["bench", "--no-store", "--quick", "--", "./queue"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    assert!(place.path().join("starved").exists(), "{}", answer.exchange());
}

#[test]
fn the_figures_of_the_other_cases_are_those_without_the_bad_one() {
    let figure =
        |answer: Answer, arm: &str| at(&answer.json(), &format!("{arm}/metrics/time.wall/estimate")).clone();
    let alone = bench(&Place::new(), &["--no-store", "--json"], &[GOOD]);
    assert_eq!(figure(beside("die", &["--json"]), "/arms/0").as_f64().map(f64::round), Some(7.0));
    assert_eq!(figure(alone, "/arms/0").as_f64().map(f64::round), Some(7.0));
    assert_eq!(figure(beside("die", &["--json"]), "/arms/4").as_f64().map(f64::round), Some(12.0));
}

#[test]
fn a_newer_version_of_the_protocol_is_refused() {
    let answer = bench(&Place::new(), &["--no-store"], &["--version", "9", GOOD]);
    assert_snapshot!(answer.exchange(), @r"
    exit 4
    --- stderr
    error: cannot bench ‘/usr/bin/python3’: the answer to ‘hello 1’ is not in the protocol: it speaks only version 9 of the protocol, which is newer than this Scruple
    ");
}

#[test]
fn a_program_that_is_no_bench_program_is_refused() {
    let place = Place::new();
    let answer = place.run(["bench", "--no-store", "--", "true"]);
    assert_snapshot!(answer.exchange(), @r"
    exit 4
    --- stderr
    error: cannot bench ‘/usr/bin/true’: the program exited with code 0; a bench program declares its cases through one of the SDKs, and answers requests
    ");
    let answer = place.run(["bench", "--no-store", "--", "./nothing-of-that-name"]);
    assert_eq!(answer.code, 2, "{}", answer.exchange());
}

#[test]
fn a_program_that_never_answers_is_waited_for_as_long_as_the_time_limit_says() {
    let answer =
        Place::new().run(["bench", "--no-store", "--time-limit", "500ms", "--", "sleep", "infinity"]);
    assert_snapshot!(answer.exchange(), @r"
    exit 4
    --- stderr
    error: cannot bench ‘/usr/bin/sleep’: no answer within 0.5 s: it was idle (a deadlock, or waiting for something); a bench program answers requests, by one of the SDKs; one that starts slowly needs a larger --time-limit
    ");
}

#[test]
fn a_case_that_is_stopped_is_not_called_idle() {
    let alone =
        bench(&Place::new(), &["--no-store", "--time-limit", "300ms"], &[r#"{"name":"bad","does":"stop"}"#]);
    assert_eq!(alone.code, 4, "{}", alone.exchange());
    assert!(alone.stdout.contains("no answer within 3 s: a thread was stopped, or "), "{}", alone.exchange());
    assert_eq!(alone.stderr, "error: ‘bad’ failed\n");
}

#[test]
fn a_program_without_cases_has_nothing_to_weigh() {
    assert_snapshot!(bench(&Place::new(), &["--no-store"], &[]).exchange(), @r"
    exit 2
    --- stderr
    error: the program declares no cases
    ");
}

#[test]
fn a_limit_that_cannot_be_read_is_a_remark() {
    let odd = r#"{"name":"odd","cost":5,"budgets":{"time.wall":{"max":"soon"}}}"#;
    assert_snapshot!(bench(&Place::new(), &["--no-store", "--check"], &[odd]).exchange(), @r"
    exit 0
    --- stdout
    1 case · 3 fresh processes · seed 7

               net      ±      raw     tare  allocated
      odd  5.00 ns  0.4 %  7.00 ns  2.00 ns        0 B

    ! the limit of ‘odd’ for time.wall cannot be read: ‘soon’ is not a quantity: a number and a unit are
      expected, such as ‘20 ms’
    ");
}

#[test]
fn readings_that_the_hosts_own_clock_refutes_are_refused() {
    for (does, why) in [
        ("swift", "which is impossible: the answer came after"),
        ("endless-cpu", "of processor time, which is impossible"),
        ("still", "its clock stands still"),
    ] {
        let answer = beside(does, &["--no-check"]);
        assert_eq!(answer.code, 4, "{does}: {}", answer.stdout);
        assert!(answer.stdout.contains(why), "{does}: {}", answer.stdout);
        assert!(answer.stdout.contains("  last "), "{does}: {}", answer.stdout);
    }
}

#[test]
fn iterations_outside_the_timed_part_are_refused_after_a_short_search() {
    let outside = r#"{"name":"outside","cost":5,"making":0.03,"does":"outside"}"#;
    let answer = bench(&Place::new(), &["--no-store"], &[GOOD, outside]);
    assert_eq!(answer.code, 4, "{}", answer.exchange());
    let reason = "it says that 10000 iterations took 600.0ns, but they took ";
    assert!(answer.unwrapped().contains(reason), "{}", answer.exchange());
    assert!(answer.unwrapped().contains("ms outside the timed part"), "{}", answer.exchange());
    // A late answer is no error if its lateness is the same for one iteration, or if it is the first.
    let shared = r#"{"name":"late","cost":5,"shares":0.3}"#;
    assert_eq!(bench(&Place::new(), &["--no-store"], &[GOOD, shared]).code, 0);
}
