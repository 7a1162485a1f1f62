//! Remarks that keep a reader from being misled.

use crate::scripted_readings::{Arm, arm, old_and_new};
use serde_json::json;

/// The remarks of an answer, each as `CODE: TEXT`.
fn remarks(old: Arm, new: Arm) -> Vec<String> {
    let answer = old_and_new(old, new, &["-r", "26", "--json"]);
    let document = answer.json();
    let warnings = document["warnings"].as_array().expect("warnings");
    let text = |value: &serde_json::Value| value.as_str().unwrap_or("").to_owned();
    warnings.iter().map(|warning| format!("{}: {}", text(&warning["code"]), text(&warning["text"]))).collect()
}

fn saying(arm: Arm, words: &'static str) -> Arm {
    arm.each("memory", |_, entry| entry["stdout"] = json!(words))
}

#[test]
fn ordinary_runs_have_none() {
    assert_eq!(remarks(arm(1.0, 1), arm(1.1, 2)), Vec::<String>::new());
}

#[test]
fn outputs_that_differ_between_arms() {
    assert_eq!(
        remarks(saying(arm(1.0, 1), "four"), saying(arm(1.0, 2), "five")),
        ["outputs-differ: ‘new’ prints something other than ‘old’: are they doing the same work?"]
    );
}

#[test]
fn an_output_that_differs_from_itself_says_nothing_about_the_other_arm() {
    let varying = arm(1.0, 1)
        .launches("memory", 3)
        .each("memory", |launch, entry| entry["stdout"] = json!(format!("run {launch}")));
    assert_eq!(
        remarks(varying, saying(arm(1.0, 2), "five")),
        ["output-varies: ‘old’ does not print the same each time"]
    );
}

#[test]
fn a_share_of_time_spent_waiting_for_a_core() {
    let waiting = arm(1.0, 2).with("timing", "time.wait", |_| 2e6);
    assert_eq!(
        remarks(arm(1.0, 1), waiting),
        [
            "waiting: the machine is busy: ‘new’ spent 39 % of its wall time waiting for a core, so trust cpu time more"
        ]
    );
}

#[test]
fn a_share_of_time_that_several_processes_may_have_waited_for_a_core() {
    let several = |pressure: f64, cpu: f64| {
        let arm = arm(1.0, 2).absent("timing", "time.wait", "other threads or processes ran");
        arm.with("timing", "time.cpu", move |_| cpu).with("timing", "time.contended", move |_| pressure)
    };
    assert_eq!(
        remarks(arm(1.0, 1), several(4e6, 1e6)),
        [
            "waiting: ‘new’ may have waited for a core: while it ran, threads on this machine did for up to 78 % of the \
             time, its own included (the kernel does not keep which), so trust cpu time more"
        ]
    );
    // Little pressure says nothing about other programs, and neither does pressure that the program may cause itself.
    assert_eq!(remarks(arm(1.0, 1), several(1e6, 1e6)), Vec::<String>::new());
    assert_eq!(remarks(arm(1.0, 1), several(4e6, 1e9)), Vec::<String>::new());
}

#[test]
fn a_first_run_much_slower_than_the_rest() {
    let slow = || arm(1.0, 2).with("timing", "time.wall", |launch| if launch == 0 { 5e7 } else { 5e6 });
    let waiting = slow().with("timing", "time.wait", |launch| if launch == 0 { 4.5e7 } else { 0.0 });
    let texts = remarks(arm(1.0, 1), waiting);
    assert!(
        !texts.iter().any(|remark| remark.starts_with("cold-start")),
        "a busy core does not mean that files were not in memory: {texts:?}"
    );
    let nothing_read = slow().with("timing", "io.read", |_| 0.0);
    assert!(!remarks(arm(1.0, 1), nothing_read).iter().any(|remark| remark.starts_with("cold-start")));
    let warm = old_and_new(arm(1.0, 1), slow(), &["-w", "3", "-r", "16", "--json"]);
    assert_eq!(warm.json()["warnings"].as_array().map(Vec::len), Some(0), "{}", warm.exchange());
    let cold = slow();
    assert_eq!(
        remarks(arm(1.0, 1), cold),
        [
            "cold-start: the first launch of ‘new’ was much slower than the rest, probably because its files were not in \
             memory yet: -w 3 launches it without measuring first, or -p can clear caches before each launch"
        ]
    );
}

#[test]
fn processes_that_were_left_behind() {
    let leaving = arm(1.0, 2).each("timing", |_, entry| entry["left_behind"] = json!(2));
    assert_eq!(
        remarks(arm(1.0, 1), leaving),
        [
            "left-behind: ‘new’ left processes behind, which Scruple ended: their further cost is not in the figures"
        ]
    );
}

#[test]
fn exit_codes_that_were_ignored() {
    let failing = arm(1.0, 2).each("timing", |_, entry| entry["exit"] = json!(3));
    let answer = old_and_new(arm(1.0, 1), failing, &["-i", "-r", "16", "--json"]);
    let document = answer.json();
    assert_eq!(document["warnings"][0]["code"], "exit-code");
    assert_eq!(document["warnings"][0]["text"], "‘new’ exited with code 3");
}
