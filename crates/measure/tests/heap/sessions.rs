//! Tests where the library and the data file are kept, and that they are removed.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use scruple_measure::heap::{HeapError, HeapSession, LiveBytes};

use crate::harness::{Workshop, skip};

#[test]
fn the_users_own_preload_stays_behind_ours() {
    let workshop = Workshop::new();
    let session = HeapSession::start(workshop.path(), LiveBytes::Usable).unwrap();
    let preload = |existing: Option<&str>| {
        let environment = session.environment(existing.map(OsStr::new));
        environment[0].1.clone().into_string().unwrap()
    };
    let alone = preload(None);
    assert_eq!(preload(Some("")), alone);
    assert_eq!(preload(Some("/lib/libuser.so")), format!("{alone}:/lib/libuser.so"));
}

#[test]
fn nothing_is_left_behind() {
    let workshop = Workshop::new();
    let session = HeapSession::start(workshop.path(), LiveBytes::Usable).unwrap();
    assert_eq!(workshop.path().read_dir().unwrap().count(), 2);
    drop(session);
    assert_eq!(workshop.path().read_dir().unwrap().count(), 0);
    let nowhere = HeapSession::start(Path::new("/nonexistent/folder"), LiveBytes::Off).unwrap_err();
    assert!(matches!(nowhere, HeapError::Folder { .. }), "{nowhere}");
}

#[test]
fn a_folder_the_loader_cannot_name_is_worked_around() {
    let workshop = Workshop::new();
    let program = workshop.c("entry_points.c", &[]);
    let folder = workshop.path().join("a folder: odd");
    std::fs::create_dir(&folder).unwrap();
    let session = HeapSession::start(&folder, LiveBytes::Usable).unwrap();
    let output = Command::new(&program).envs(session.environment(None)).output().unwrap();
    assert_eq!(output.stderr, b"");
    assert_eq!(session.read().unwrap().counts().allocations, 114);
}

#[test]
fn a_folder_without_execution_is_worked_around() {
    let workshop = Workshop::new();
    let program = workshop.c("entry_points.c", &[]);
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
    let folder = mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (place, options) = (fields.next()?, fields.nth(1)?);
        let noexec = options.split(',').any(|option| option == "noexec");
        (noexec && !place.starts_with("/proc") && !place.starts_with("/sys"))
            .then(|| tempfile::tempdir_in(place).ok())
            .flatten()
    });
    let Some(folder) = folder else { return skip("no writable file system is mounted noexec") };
    let session = HeapSession::start(folder.path(), LiveBytes::Usable).unwrap();
    assert_eq!(folder.path().read_dir().unwrap().count(), 1);
    let output = Command::new(&program).envs(session.environment(None)).output().unwrap();
    assert_eq!(output.stderr, b"");
    assert_eq!(session.read().unwrap().counts().allocations, 114);
}

#[test]
fn a_run_can_be_read_while_it_lasts() {
    let workshop = Workshop::new();
    let session = HeapSession::start(workshop.path(), LiveBytes::Usable).unwrap();
    let mut child = Command::new("/bin/sh")
        .args(["-c", "read line"])
        .stdin(std::process::Stdio::piped())
        .envs(session.environment(None))
        .spawn()
        .unwrap();
    let seen = (0..1000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(5));
        session.read().is_ok_and(|totals| totals.processes[0].pid == child.id() as i32)
    });
    drop(child.stdin.take());
    child.wait().unwrap();
    assert!(seen);
}
