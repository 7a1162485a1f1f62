//! Tests what a counted program sees of the counter, and that the programs that it starts are counted.

use std::process::Command;

use scruple_measure::heap::LiveBytes;

use crate::harness::{CountedRun, Workshop, found, skip, sums};

const OURS: [&str; 2] = ["LD_PRELOAD=", "SCRUPLE_HEAP="];

fn text(counted: &CountedRun) -> String {
    String::from_utf8(counted.output.stdout.clone()).unwrap()
}

/// Checks that a program with 114 allocations is counted if it is started in this way.
fn assert_follows(workshop: &Workshop, way: &str) {
    let (starter, program) = (workshop.path().join("starter"), workshop.path().join("entry_points"));
    let counted = workshop.count(LiveBytes::Usable, Command::new(starter).arg(way).arg(program));
    let started = counted.totals.processes.iter().find(|process| process.exe.ends_with("/entry_points"));
    assert!(started.is_some_and(|process| process.counts.allocations == 114), "{way}: {:?}", counted.totals);
    assert!(counted.totals.is_complete(), "{way}: {:?}", counted.totals.unseen);
    assert_eq!(text(&counted), "as it was\n", "{way}");
}

#[test]
fn a_program_sees_its_environment_as_it_was() {
    let workshop = Workshop::new();
    let mut env = Command::new("env");
    let plain = env.env("FIRST", "1").output().unwrap().stdout;
    let counted = workshop.count(LiveBytes::Off, &mut env);
    assert_eq!(counted.output.stdout, plain);
    assert!(!OURS.iter().any(|ours| text(&counted).contains(ours)), "{}", text(&counted));
}

#[test]
fn preloads_of_the_user_stay_visible() {
    let workshop = Workshop::new();
    let library = workshop.c("plugin.c", &["-shared", "-fPIC"]);
    let session = scruple_measure::heap::HeapSession::start(workshop.path(), LiveBytes::Off).unwrap();
    let script = "echo $LD_PRELOAD; env | grep -c LD_PRELOAD=";
    let mut shell = Command::new("/bin/sh");
    let output =
        shell.args(["-c", script]).envs(session.environment(Some(library.as_os_str()))).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{}\n1\n", library.display()));
    let totals = session.read().unwrap();
    let grep = totals.processes.iter().find(|process| process.exe.ends_with("/grep"));
    assert!(grep.is_some() && totals.is_complete(), "{totals:?}");
}

#[test]
fn programs_started_in_any_way_are_followed() {
    let workshop = Workshop::new();
    workshop.c("starter.c", &[]);
    workshop.c("entry_points.c", &[]);
    let ways = [
        "execve",
        "execv",
        "execvp",
        "execvpe",
        "execl",
        "execle",
        "execlp",
        "fexecve",
        "posix_spawn",
        "posix_spawnp",
        "system",
        "popen",
        "wordexp",
        "vfork",
    ];
    for way in ways {
        assert_follows(&workshop, way);
    }
}

#[test]
fn a_cleaned_environment_does_not_end_the_counting() {
    let workshop = Workshop::new();
    workshop.c("starter.c", &[]);
    workshop.c("entry_points.c", &[]);
    for way in ["empty", "none", "clearenv"] {
        assert_follows(&workshop, way);
    }
    let counted = workshop.count(LiveBytes::Off, Command::new("env").args(["-i", "/usr/bin/env"]));
    assert_eq!((text(&counted).as_str(), counted.totals.processes.len()), ("", 2));
}

#[test]
fn a_setting_made_while_a_shell_runs_is_kept() {
    let workshop = Workshop::new();
    let program = workshop.c("settings.c", &["-pthread"]);
    let counted = workshop.count_plain(LiveBytes::Off, &program);
    assert!(counted.is_complete(), "{counted:?}");
}

#[test]
fn a_program_that_copies_its_environment_allocates_as_if_it_were_not_counted() {
    let workshop = Workshop::new();
    let count = |name: &str| {
        let folder = workshop.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        let session = scruple_measure::heap::HeapSession::start(&folder, LiveBytes::Off).unwrap();
        let mut shell = Command::new("/bin/bash");
        shell.args(["-c", "x=1"]).env_clear().envs(session.environment(None)).current_dir("/");
        assert!(shell.status().unwrap().success());
        sums(&session.read().unwrap())
    };
    if found("bash").is_some() {
        // The length of the counter's file names makes no difference.
        assert_eq!(count("short"), count("a-much-longer-name-of-a-folder-than-the-other-one-has"));
    } else {
        skip("bash is not installed");
    }
}
