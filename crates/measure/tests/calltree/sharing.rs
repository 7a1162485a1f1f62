//! Tests how a process may disturb another program, and whether it finds files of earlier launches.

use crate::harness::Workshop;
use scruple_code::{Profile, SeenEffect};
use scruple_measure::calltree::Settings;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The effects of a program that gets this word. The first of several launches began at `first`.
fn reported(workshop: &Workshop, word: &str, first: SystemTime) -> Profile {
    let session = workshop.session(Settings { first_began: Some(first), ..Settings::default() });
    let output = workshop.run_in(&session, &workshop.path().join("shares"), &[word]);
    assert!(output.status.success(), "{word}: {output:?}");
    session.read().unwrap().profiles.processes.remove(0)
}

#[test]
fn effects_that_another_program_may_notice_are_recorded() {
    let Some(workshop) = Workshop::new() else { return };
    workshop.compile("shares.c", &[]);
    let first = SystemTime::now();
    for (word, effect) in [
        ("reads", None),
        ("device", None),
        ("itself", None),
        ("unnamed", None),
        ("fails", None),
        ("bad", None),
        ("lists", None),
        ("private-key", None),
        ("creates", Some("writes new")),
        ("empties", Some("writes new")),
        ("appends", Some("writes new")),
        ("renames", Some("moves or removes new")),
        ("removes", Some("moves or removes old")),
        ("makes", Some("makes folder")),
        ("makes-again", None),
        ("locks", Some("locks a file")),
        ("key", Some("uses what a key of System V names")),
        ("binds", Some("has a socket with an address")),
    ] {
        let found = reported(&workshop, word, first).effect;
        assert_eq!(found.as_ref().map(|effect| effect.what.as_str()), effect, "{word}");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as u64;
        let began = first.duration_since(UNIX_EPOCH).unwrap().as_micros() as u64;
        assert!(
            found.is_none_or(|effect| began <= effect.between[0]
                && effect.between.is_sorted()
                && effect.between[1] <= now),
            "{word}"
        );
    }
}

#[test]
fn the_order_of_effects_that_may_overlap_is_unknown() {
    let effect = |between| SeenEffect { between, what: String::new() };
    assert_eq!(effect([1, 3]).is_before(&effect([4, 4])), Some(true));
    assert_eq!(effect([4, 4]).is_before(&effect([1, 3])), Some(false));
    assert_eq!(effect([1, 3]).is_before(&effect([3, 5])), None);
    assert_eq!(effect([1, 9]).is_before(&effect([3, 5])), None);
}

#[test]
fn files_that_changed_since_the_first_run_began_are_noted_when_they_are_found() {
    let Some(workshop) = Workshop::new() else { return };
    workshop.compile("shares.c", &[]);
    // Times of files lag behind the clock by a tick.
    std::thread::sleep(Duration::from_millis(20));
    let first = SystemTime::now();
    // A program names a file relative to an open folder; only the whole path says which file it is.
    let below = workshop.path().join("new").display().to_string();
    for (word, leftover) in [
        ("reads", None),
        ("creates", None),
        ("looks", Some("new")),
        ("looks-below", Some(below.as_str())),
        ("creates", Some("new")),
        ("appends", Some("new")),
        // It does not matter what was in a file that is emptied or removed, and a folder changes whenever something in
        // it does.
        ("empties", None),
        ("lists", None),
        ("renames", Some("new")),
        ("removes", None),
        ("makes", None),
        ("makes-again", Some("folder")),
    ] {
        assert_eq!(reported(&workshop, word, first).leftover.as_deref(), leftover, "{word}");
    }
    // If the first launch begins later, no file counts as left by an earlier one.
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(reported(&workshop, "makes-again", SystemTime::now()).leftover, None);
}
