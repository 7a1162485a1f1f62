//! Tests of processes, of phases, and of commands that control the counting.

use crate::harness::{Workshop, of, skip, tool_sources};
use scruple_code::{End, Profile};
use scruple_measure::calltree::Settings;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

#[test]
fn children_are_followed_and_nothing_counts_twice() {
    let Some(workshop) = Workshop::new() else { return };
    let known = workshop.compile("known.c", &[]);
    let family = workshop.compile("family.c", &[]);
    let profiles = workshop.trees(&family, &[known.to_str().unwrap()]);
    let with = |name: &str| -> Vec<&Profile> {
        let has = |profile: &&Profile| {
            profile
                .functions()
                .iter()
                .any(|(function, sums)| function.name.as_deref() == Some(name) && sums.own > 0)
        };
        profiles.processes.iter().filter(has).collect()
    };
    // The processes are the parent, the child that worked, and the child that executed another program, before and
    // after that.
    assert_eq!(profiles.processes.len(), 4);
    assert_eq!((with("parent_work").len(), with("child_work").len(), with("leaf").len()), (1, 1, 1));
    let ends: Vec<End> = profiles.processes.iter().map(|profile| profile.end).collect();
    assert_eq!(
        ends.iter().filter(|end| **end == End::Exec).count(),
        1,
        "the attempt that failed left nothing"
    );
    let parent = with("parent_work")[0];
    for child in [with("child_work")[0], with("leaf")[0]] {
        assert_eq!(child.parent, parent.process);
        assert_eq!(
            (child.is_forked, parent.is_forked),
            (child.end == End::Exit && child.words == parent.words, false)
        );
        assert!(child.total < parent.total);
    }
    assert_eq!(of(with("leaf")[0], "leaf"), of(&workshop.tree(&known, &[]), "leaf"));
}

#[test]
fn a_process_that_is_killed_is_reported_as_lost() {
    let Some(workshop) = Workshop::new() else { return };
    let session = workshop.session(Settings::default());
    workshop.run_in(&session, &workshop.compile("killed.c", &[]), &[]);
    let counted = session.read().unwrap();
    let [child] = counted.profiles.processes.as_slice() else { panic!("{counted:?}") };
    assert_eq!(counted.profiles.lost, [child.parent]);
}

#[test]
fn a_program_that_changes_its_root_and_its_user_is_counted_with_its_children() {
    let Some(workshop) = Workshop::new() else { return };
    let session = workshop.session(Settings::default());
    let root = workshop.path().join("root");
    std::fs::create_dir(&root).unwrap();
    let program = workshop.compile("leaves.c", &[]);
    let output = workshop.run_in(&session, &program, &[root.to_str().unwrap()]);
    if output.status.code() == Some(77) {
        skip("this user may change neither its root nor its user");
        return;
    }
    assert!(output.status.success(), "{output:?}");
    let counted = session.read().unwrap();
    assert_eq!(counted.profiles.lost, Vec::<i32>::new());
    let mut work: Vec<u64> = counted.profiles.processes.iter().map(|one| of(one, "work").own).collect();
    work.sort_unstable();
    assert_eq!(work.len(), 2, "{output:?}");
    assert!(work[0] > 1000 && work[1] > 2 * work[0], "{work:?}");
}

#[test]
fn a_process_that_aborts_is_counted() {
    let Some(workshop) = Workshop::new() else { return };
    let session = workshop.session(Settings::default());
    let output = workshop.run_in(&session, &workshop.compile("family.c", &[]), &["/bin/true", "abort"]);
    assert!(!output.status.success());
    let counted = session.read().unwrap();
    assert!(counted.profiles.lost.is_empty());
    assert!(counted.profiles.processes.iter().any(|profile| of_any(profile, "parent_work")));
}

fn of_any(profile: &Profile, name: &str) -> bool {
    profile.functions().iter().any(|(function, sums)| function.name.as_deref() == Some(name) && sums.own > 0)
}

#[test]
fn a_program_can_name_its_parts() {
    let Some(workshop) = Workshop::new() else { return };
    let include = format!("-I{}", tool_sources().display());
    let program = workshop.compile("phases.c", &[&include]);
    let profiles = workshop.trees(&program, &[]);
    assert_eq!(profiles.count(), 1);
    let all = profiles.processes.iter().chain(&profiles.dumps);
    let parts: Vec<(Option<&str>, u64)> =
        all.map(|profile| (profile.label.as_deref(), of(profile, "work").own)).collect();
    let turn = parts[1].1 / 2000;
    let [before, warm, after, dump] = parts.as_slice() else { panic!("{parts:?}") };
    assert_eq!([before.0, warm.0, after.0, dump.0], [None, Some("warm"), Some("hot"), Some("hot")]);
    let expected = [1000, 2000, 4000, 3000];
    for (part, turns) in parts.iter().zip(expected) {
        let few = part.1 - turns * turn;
        assert!(few < 20, "{parts:?}");
    }
    // Without Valgrind the program's commands to the tool have no effect.
    assert!(std::process::Command::new(&program).status().unwrap().success());
}

#[test]
fn a_waiting_program_obeys_commands_from_outside() {
    let Some(workshop) = Workshop::new() else { return };
    let session = workshop.session(Settings { control: true, ..Settings::default() });
    let mut words = session.words();
    words.push(workshop.compile("serves.c", &[]).into());
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).envs(session.environment()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut server = command.spawn().unwrap();
    let (mut input, mut output) = (server.stdin.take().unwrap(), server.stdout.take().unwrap());
    let mut serve = |byte: &[u8; 1]| {
        input.write_all(byte).unwrap();
        output.read_exact(&mut [0]).unwrap();
    };
    let process = server.id() as i32;
    serve(b"9");
    session.order(process, "zero").unwrap();
    serve(b"1");
    session.order(process, "dump one").unwrap();
    serve(b"2");
    session.order(process, "phase three").unwrap();
    serve(b"4");
    assert!(session.order(process, "nonsense").is_err());
    drop(input);
    assert!(server.wait().unwrap().success());
    let counted = session.read().unwrap();
    let parts = counted.profiles.named_parts();
    let parts: Vec<(&str, u64)> =
        parts.map(|(label, profile)| (label, of(profile, "work").own / 1000)).collect();
    let turn = parts.last().unwrap().1;
    // The label of a copy is not that of the part, which contains what was copied as well.
    assert!(turn > 2 && parts == [("three", 4 * turn), ("one", turn)], "{parts:?}");
    assert_eq!(of(&counted.profiles.processes[0], "work").own / 1000, 3 * turn);
}
