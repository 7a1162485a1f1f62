//! Tests that programs whose allocations cannot be counted are recognised beforehand.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

use scruple_measure::heap::{Unmeasurable, measurable};

use crate::harness::{Workshop, copy, found, skip};

fn script(workshop: &Workshop, text: &str) -> std::path::PathBuf {
    let path = workshop.path().join("script");
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn ordinary_programs_and_scripts_are_measurable() {
    let workshop = Workshop::new();
    measurable(Path::new("/bin/sh")).unwrap();
    measurable(&workshop.c("nothing.c", &[])).unwrap();
    measurable(&workshop.c("nothing.c", &["-no-pie"])).unwrap();
    measurable(&script(&workshop, "#!/bin/sh -e\ntrue\n")).unwrap();
    measurable(&script(&workshop, "#!/usr/bin/env -S LANG=C sh -e\ntrue\n")).unwrap();
}

#[test]
fn static_programs_are_not() {
    let workshop = Workshop::new();
    for flags in [["-static"], ["-static-pie"]] {
        let answer = measurable(&workshop.c("nothing.c", &flags)).unwrap_err();
        assert!(matches!(answer, Unmeasurable::Static(_)), "{answer}");
    }
    let program = workshop.c("nothing.c", &["-static"]);
    let answer = measurable(&script(&workshop, &format!("#!{}\n", program.display()))).unwrap_err();
    assert!(matches!(answer, Unmeasurable::Static(_)), "{answer}");
    if found("musl-gcc").is_some() {
        let program = workshop.compile("musl-gcc", "nothing.c", &["-static"]);
        assert!(matches!(measurable(&program), Err(Unmeasurable::Static(_))));
        measurable(&workshop.compile("musl-gcc", "nothing.c", &[])).unwrap();
    }
}

#[test]
fn go_programs_are_named_as_such() {
    let Some(go) = found("go") else { return };
    let answer = measurable(&go).unwrap_err();
    assert!(matches!(answer, Unmeasurable::Go(_)), "{answer}");
}

#[test]
fn a_program_that_only_knows_the_messages_of_allocators_is_measurable() {
    let workshop = Workshop::new();
    measurable(&workshop.c("names_allocators.c", &["-s"])).unwrap();
}

#[test]
fn an_allocator_of_its_own_is_found_by_its_symbol() {
    let workshop = Workshop::new();
    for flags in [&["-fno-builtin"][..], &["-fno-builtin", "-s"]] {
        let answer = measurable(&workshop.c("own_malloc.c", flags)).unwrap_err();
        assert!(
            matches!(&answer, Unmeasurable::OwnAllocator { symbol, .. } if symbol == "malloc"),
            "{answer}"
        );
    }
}

#[test]
fn privileged_programs_are_not() {
    let workshop = Workshop::new();
    let program = workshop.c("nothing.c", &[]);
    if chown(&program, Some(65534), Some(65534)).is_err() {
        return skip("only root can make a program of another user");
    }
    for bit in [0o4755, 0o2755] {
        fs::set_permissions(&program, fs::Permissions::from_mode(bit)).unwrap();
        let answer = measurable(&program).unwrap_err();
        assert!(matches!(answer, Unmeasurable::Privileged(_)), "{answer}");
    }
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    measurable(&program).unwrap();
}

#[test]
fn other_machines_and_other_files_are_distinguished() {
    let workshop = Workshop::new();
    let mut bytes = fs::read(workshop.c("nothing.c", &[])).unwrap();
    let odd = workshop.path().join("odd");
    bytes[4] = 1;
    fs::write(&odd, &bytes).unwrap();
    assert!(matches!(measurable(&odd), Err(Unmeasurable::OtherMachine(_))));
    bytes[4] = 2;
    bytes[18..20].copy_from_slice(&243u16.to_ne_bytes());
    fs::write(&odd, &bytes).unwrap();
    assert!(matches!(measurable(&odd), Err(Unmeasurable::OtherMachine(_))));
    for text in ["", "echo no interpreter\n", "#!\n", "\x7fELF"] {
        fs::write(&odd, text).unwrap();
        assert!(matches!(measurable(&odd), Err(Unmeasurable::NotElf(_))), "{text:?}");
    }
    let loop_of_scripts = script(&workshop, &format!("#!{}\n", workshop.path().join("script").display()));
    assert!(matches!(measurable(&loop_of_scripts), Err(Unmeasurable::NotElf(_))));
    for unreadable in ["/nonexistent", "/"] {
        assert!(matches!(measurable(Path::new(unreadable)), Err(Unmeasurable::Unreadable { .. })));
    }
}

#[test]
fn a_truncated_or_scrambled_program_is_an_answer_not_a_crash() {
    let workshop = Workshop::new();
    let program = workshop.c("nothing.c", &[]);
    let bytes = fs::read(&program).unwrap();
    let odd = workshop.path().join("odd");
    for end in (0..bytes.len()).step_by(97) {
        fs::write(&odd, &bytes[..end]).unwrap();
        let _ = measurable(&odd);
    }
    for at in (16..bytes.len()).step_by(13) {
        let mut scrambled = bytes.clone();
        scrambled[at] ^= 0xff;
        fs::write(&odd, &scrambled).unwrap();
        let _ = measurable(&odd);
    }
}

#[test]
fn another_loader_is_named() {
    let workshop = Workshop::new();
    let loader = "-Wl,--dynamic-linker=/system/bin/linker64";
    let answer = measurable(&workshop.c("nothing.c", &[loader])).unwrap_err();
    assert!(
        matches!(&answer, Unmeasurable::Loader { loader, .. } if loader == "/system/bin/linker64"),
        "{answer}"
    );
}

#[test]
fn a_copy_of_an_ordinary_program_runs() {
    let workshop = Workshop::new();
    let copied = copy(&workshop.c("nothing.c", &[]), workshop.path().join("copied"));
    measurable(&copied).unwrap();
    assert!(Command::new(copied).status().unwrap().success());
}
