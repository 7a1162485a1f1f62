//! Process trees, which are measured and ended as a whole.

use crate::programs::BURN;
use crate::support::{Place, at};

/// A C program that forks a child. The child works until it has used as many milliseconds of a core as the first
/// argument says and notifies the parent. The second argument says whether the parent waits for the child (`wait`), or the
/// child stays alive in its own session (`stay`).
const PARENT: &str = r#"
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int ends[2];
    char done;
    if (pipe(ends)) return 1;
    if (fork() == 0) {
        long used = 0, wanted = atol(argv[1]);
        for (struct timespec now; used < wanted; used = now.tv_sec * 1000 + now.tv_nsec / 1000000)
            clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
        if (write(ends[1], "x", 1) != 1) return 1;
        if (!strcmp(argv[2], "stay")) { setsid(); for (;;) pause(); }
        return 0;
    }
    if (read(ends[0], &done, 1) != 1) return 1;
    if (!strcmp(argv[2], "wait")) wait(0);
    return 0;
}
"#;

#[test]
fn the_cpu_of_children_counts_whether_they_were_waited_for_or_not() {
    let place = Place::new();
    place.compile("parent", PARENT, &[]);
    let words = ["./parent 50 wait", "./parent 50 leave", "./parent 50 stay"];
    let answer = place.run(["run", "--no-store", "--json", "--time-only", "-r", "5"].iter().chain(&words));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let run = answer.json();
    for (arm, word) in words.iter().enumerate() {
        let cpu = at(&run, &format!("/arms/{arm}/metrics/time.cpu/estimate")).as_f64().unwrap_or(0.0);
        // The rest, beyond the child's own time, is the start of two processes.
        assert!((49e6..70e6).contains(&cpu), "{word}: {cpu}");
    }
    let warned = run["warnings"].as_array().expect("warnings");
    let left: Vec<&str> = warned
        .iter()
        .filter(|warning| warning["code"] == "left-behind")
        .filter_map(|warning| warning["text"].as_str())
        .collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(left[0].starts_with("‘./parent 50 stay’ left processes behind"), "{left:?}");
    place.assert_no_processes();
}

/// A C program that leaves eight children, which need 25 ms each of one core together.
const CROWD: &str = r#"
#define _GNU_SOURCE
#include <sched.h>
#include <time.h>
#include <unistd.h>
int main(void) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    if (sched_setaffinity(0, sizeof one, &one)) return 1;
    for (int i = 0; i < 8; i++)
        if (fork() == 0) {
            struct timespec now = {0, 0};
            while (now.tv_sec == 0 && now.tv_nsec < 25000000) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
            return 0;
        }
    return 0;
}
"#;

#[test]
fn processes_that_wait_for_a_core_are_not_ended_for_that() {
    let place = Place::new();
    place.compile("crowd", CROWD, &[]);
    let answer = place.run(["run", "--no-store", "--json", "--time-only", "-r", "1", "./crowd"]);
    let run = answer.json();
    let cpu = at(&run, "/arms/0/metrics/time.cpu/readings/0").as_f64().unwrap_or(0.0);
    assert!(cpu > 199e6, "{}", answer.exchange());
    assert!(!answer.stdout.contains("left-behind"), "{}", answer.exchange());
}

#[test]
fn a_part_of_a_pipeline_that_is_not_found_is_reported() {
    let place = Place::new();
    let remark =
        "a part of ‘no-such-program | cat’ exited with code 127, as if a command in it was not found";
    for (command, is_missing) in [("no-such-program | cat", true), ("false | cat", false)] {
        let answer = place.run(["run", "--no-store", "--json", "-r", "2", command]);
        assert_eq!(answer.code, 0, "{}", answer.exchange());
        assert_eq!(answer.stdout.contains(remark), is_missing, "{}", answer.exchange());
    }
}

#[test]
fn processes_that_outlive_their_program_are_ended() {
    let place = Place::new();
    place
        .shell_script("daemons", "for i in 1 2 3; do setsid sleep 1000 & done; (trap '' TERM; sleep 1000) &");
    let answer = place.run(["run", "--no-store", "-r", "1", "./daemons"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    assert!(answer.stdout.contains("processes behind, which Scruple ended"), "{}", answer.exchange());
    assert_eq!(place.processes(), Vec::<String>::new());
}

#[test]
fn time_on_a_core_is_that_of_the_whole_tree_and_waiting_is_not_reported_for_a_part() {
    let place = Place::new();
    place.compile("burn", BURN, &[]);
    place.compile("parent", PARENT, &[]);
    place.compile("thread", THREAD, &["-pthread"]);
    let words = ["./burn 5000000", "./parent 20 wait", "./parent 20 leave", "./thread"];
    let answer = place.run(["run", "--no-store", "--json", "--time-only", "-r", "3"].iter().chain(&words));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let run = answer.json();
    for (arm, word) in words.iter().enumerate() {
        let readings = |key: &str| -> Vec<f64> {
            let all = run.pointer(&format!("/arms/{arm}/metrics/{key}/readings"));
            let all = all.and_then(|all| all.as_array()).into_iter().flatten();
            all.filter_map(|reading| reading.as_f64()).collect()
        };
        let (cpu, on_core) = (readings("time.cpu"), readings("time.oncpu"));
        assert_eq!((cpu.len(), on_core.len()), (3, 3), "{word}");
        for (cpu, on_core) in cpu.iter().zip(&on_core) {
            assert!((cpu - on_core).abs() < 10e3 + cpu / 100.0, "{word}: {cpu} {on_core}");
        }
        let wait = at(&run, &format!("/arms/{arm}/metrics/time.wait"));
        match arm {
            0 => assert_eq!(readings("time.wait").len(), 3),
            _ => assert!(
                at(wait, "/absent").as_str().is_some_and(|why| why.starts_with("other threads")),
                "{wait}"
            ),
        }
    }
}

/// A C program with a second thread that works beside the first one.
const THREAD: &str = r#"
#include <pthread.h>
static void *work(void *unused) {
    volatile unsigned long sink = 0;
    for (unsigned long i = 5000000; i > 0; i--) sink += i;
    return unused;
}
int main(void) {
    pthread_t thread;
    return pthread_create(&thread, 0, work, 0) || pthread_join(thread, 0);
}
"#;

/// A C program whose child allocates 90 MiB before the parent ends. The child then ends by itself, or with `stay` must
/// be killed.
const HOLDER: &str = r#"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int ends[2];
    char done;
    pid_t parent = getpid();
    if (pipe(ends)) return 1;
    if (fork() == 0) {
        char *volatile held = malloc(90 << 20);
        memset(held, 1, 90 << 20);
        signal(SIGTERM, SIG_IGN);
        if (write(ends[1], "x", 1) != 1) return 1;
        while (!strcmp(argv[1], "stay") || getppid() == parent) usleep(1000);
        return 0;
    }
    return read(ends[0], &done, 1) != 1;
}
"#;

#[test]
fn peak_memory_is_that_of_the_whole_tree_whoever_ends_first() {
    let place = Place::new();
    place.compile("holder", HOLDER, &[]);
    for how in ["go", "stay"] {
        let answer = place
            .run(["run", "--no-store", "--json", "-r", "4"].iter().chain(&[&*format!("./holder {how}")]));
        assert_eq!(answer.code, 0, "{}", answer.exchange());
        let run = answer.json();
        let peak = at(&run, "/arms/0/metrics/memory.peak/estimate").as_f64().unwrap_or(0.0);
        assert!((94e6..100e6).contains(&peak), "{how}: {peak}");
        place.assert_no_processes();
    }
}

#[test]
fn a_time_limit_ends_the_whole_tree() {
    let place = Place::new();
    place.shell_script("forest", "sleep 1000 & (sleep 1000 & sleep 1000) & sleep 1000");
    for words in [vec![], vec!["--time-only"], vec!["-i"]] {
        let all = ["run", "--no-store", "--time-limit", "100ms", "./forest"];
        let answer = place.run(all.iter().chain(&words));
        assert_eq!(answer.code, 4, "{}", answer.exchange());
        assert!(
            answer.stderr.starts_with("error: ‘./forest’ exceeded its time limit and was ended in the "),
            "{}",
            answer.stderr
        );
        assert_eq!(place.processes(), Vec::<String>::new());
    }
}

#[test]
fn a_program_that_refuses_to_end_is_killed() {
    let place = Place::new();
    place.shell_script("stubborn", "trap '' TERM INT HUP; while :; do sleep 1000; done");
    let answer = place.run(["run", "--no-store", "--time-limit", "50ms", "./stubborn"]);
    assert_eq!(answer.code, 4, "{}", answer.exchange());
    assert_eq!(place.processes(), Vec::<String>::new());
}

#[test]
fn a_process_is_asked_to_end_once() {
    let place = Place::new();
    let waits = "trap 'echo asked >> asked' TERM; while :; do sleep 0.01; done";
    place.shell_script("waits", waits);
    place.shell_script("leaves", &format!("({waits}) &"));
    // On a busy machine a process may be killed before it has written.
    let asked = |words: &[&str]| {
        (0..20).any(|_| {
            let _ = std::fs::remove_file(place.file("asked"));
            place.run([&["run", "--no-store", "--time-only", "-r", "1"], words].concat());
            let text = std::fs::read_to_string(place.file("asked")).unwrap_or_default();
            assert!(["", "asked\n"].contains(&text.as_str()), "{words:?}: {text}");
            !text.is_empty()
        })
    };
    assert!(asked(&["./leaves"]) && asked(&["--time-limit", "100ms", "./waits"]));
}

#[test]
fn a_program_within_its_time_limit_is_left_alone() {
    let answer = Place::new().run(["run", "--no-store", "-r", "3", "--time-limit", "5 min", "true"]);
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""));
}

#[test]
fn processes_that_end_soon_after_their_program_end_by_themselves() {
    let place = Place::new();
    place.shell_script("soon", "(sleep 0.01; echo over >> over) &");
    // On a busy machine a process may take longer than the time it is granted.
    let ended = (0..20).any(|_| {
        let answer = place.run(["run", "--no-store", "--time-only", "-r", "1", "./soon"]);
        assert_eq!(answer.code, 0, "{}", answer.exchange());
        place.file("over").exists()
    });
    assert!(ended, "all were ended before they could write");
}

/// A C program that allocates 1,000,000 bytes, like each of its three children. They end when all have allocated.
const TOGETHER: &str = r#"
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    int there[2], go[2];
    char word;
    void *volatile block = malloc(1000000);
    if (!block || pipe(there) || pipe(go)) return 1;
    for (int i = 0; i < 3; i++)
        if (fork() == 0) {
            void *volatile own = malloc(1000000);
            if (!own || write(there[1], "x", 1) != 1 || read(go[0], &word, 1) != 1) _exit(1);
            _exit(0);
        }
    for (int i = 0; i < 3; i++)
        if (read(there[0], &word, 1) != 1) return 1;
    if (write(go[1], "xxx", 3) != 3) return 1;
    while (wait(0) > 0) {}
    return 0;
}
"#;

#[test]
fn the_peak_of_a_tree_is_that_of_all_processes_together_and_requests_are_counted_where_asked_for() {
    let place = Place::new();
    place.compile("together", TOGETHER, &[]);
    let run = |words: &[&str]| {
        let answer = place.run(["run", "--no-store", "--json", "-r", "12", "./together"].iter().chain(words));
        assert_eq!(answer.code, 0, "{}", answer.exchange());
        answer.json()
    };
    let figure = |run: &serde_json::Value, key: &str| {
        run.pointer(&format!("/arms/0/metrics/{key}/estimate")).and_then(serde_json::Value::as_f64)
    };
    let asked = run(&["--requested-peak"]);
    // The peak of a child counts its inherited and its own memory. The peak of the tree counts inherited memory once,
    // and each process may have up to 64 KiB that it has not yet added.
    assert_eq!(figure(&asked, "malloc.requested_peak"), Some(2e6));
    let tree = figure(&asked, "malloc.tree_peak").expect("counted");
    assert!((4e6 - 3.0 * 65536.0..4.3e6).contains(&tree), "{tree}");
    let peak = figure(&asked, "malloc.peak").expect("counted");
    assert!((2e6..2.1e6).contains(&peak), "{peak}");
    let named = run(&["--limit", "malloc.requested_peak<2MB"]);
    assert_eq!(figure(&named, "malloc.requested_peak"), Some(2e6));
    assert_eq!(figure(&run(&[]), "malloc.requested_peak"), None);
}
