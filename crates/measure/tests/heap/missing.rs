//! Tests that allocations which were not counted are never shown as 0.

use std::process::Command;

use scruple_measure::heap::{HeapError, HeapSession, LiveBytes};

use crate::harness::Workshop;

#[test]
fn a_program_started_with_another_environment_is_not_zero() {
    let workshop = Workshop::new();
    let session = HeapSession::start(workshop.path(), LiveBytes::Usable).unwrap();
    assert!(matches!(session.read(), Err(HeapError::NotLoaded)));
    Command::new(workshop.c("nothing.c", &[])).env_clear().status().unwrap();
    assert!(matches!(session.read(), Err(HeapError::NotLoaded)));
}

#[test]
fn a_static_program_started_by_a_counted_one_is_named() {
    let workshop = Workshop::new();
    let program = workshop.c("nothing.c", &["-static"]);
    for script in ["X; true", "exec X", "X & wait", "(X)"] {
        let script = script.replace('X', program.to_str().unwrap());
        let counted = workshop.count(LiveBytes::Off, Command::new("/bin/sh").args(["-c", &script]));
        let [unseen] = counted.totals.unseen.as_slice() else { panic!("{script}: {:?}", counted.totals) };
        assert_eq!(unseen.path, program.to_str().unwrap());
        assert!(!counted.totals.is_complete());
    }
}

#[test]
fn posix_spawn_is_seen_too() {
    let workshop = Workshop::new();
    let still = workshop.c("nothing.c", &["-static"]);
    let script = format!("import os\nos.waitpid(os.posix_spawn('{0}', ['{0}'], {{}}), 0)", still.display());
    if crate::harness::found("python3").is_none() {
        return;
    }
    let counted = workshop.count(LiveBytes::Off, Command::new("python3").args(["-c", &script]));
    assert!(counted.totals.unseen.iter().any(|unseen| unseen.path == still.to_str().unwrap()));
}

#[test]
fn a_child_that_cannot_make_a_record_leaves_no_peak_and_names_what_it_starts() {
    let workshop = Workshop::new();
    let program = workshop.c("without_record.c", &[]);
    let alone = workshop.count(LiveBytes::Usable, &mut Command::new(&program)).totals;
    assert_eq!((alone.refused, alone.counts().allocations, alone.counts().bytes), (1, 2, 1_001_000));
    assert!(alone.is_complete());
    assert!(alone.largest_peak().is_none() && alone.tree.is_none(), "the child's peak was not recorded");
    let still = workshop.c("nothing.c", &["-static"]);
    let starts = workshop.count(LiveBytes::Usable, Command::new(&program).arg(&still)).totals;
    let [unseen] = starts.unseen.as_slice() else { panic!("{starts:?}") };
    assert_eq!(unseen.path, still.to_str().unwrap());
}

#[test]
fn a_limit_on_the_size_of_files_does_not_end_the_program() {
    let workshop = Workshop::new();
    let program = workshop.c("without_record.c", &[]);
    let script = format!("ulimit -f 0; {}", program.display());
    for peak in [LiveBytes::Off, LiveBytes::Usable, LiveBytes::Requested] {
        let counted = workshop.count(peak, Command::new("/bin/sh").args(["-c", &script]));
        assert!(counted.output.status.success(), "{:?}", counted.output);
        assert!(
            counted.totals.counts().bytes >= 1_001_000 && counted.totals.refused > 0,
            "{:?}",
            counted.totals
        );
    }
}

#[test]
fn a_malloc_of_the_programs_own_is_noticed_at_run_time() {
    let workshop = Workshop::new();
    let totals = workshop.count_plain(LiveBytes::Off, &workshop.c("own_malloc.c", &["-fno-builtin"]));
    assert!(totals.processes[0].foreign_malloc);
    assert!(!totals.is_complete());
}

#[test]
fn the_address_of_malloc_alone_is_no_malloc_of_its_own() {
    let workshop = Workshop::new();
    let totals = workshop.count_plain(LiveBytes::Off, &workshop.c("address.c", &["-no-pie", "-fno-pie"]));
    assert_eq!(totals.counts().allocations, 1);
    assert!(totals.is_complete(), "{totals:?}");
}

#[test]
fn a_library_that_binds_past_the_counter_is_brought_back() {
    let workshop = Workshop::new();
    let folder = workshop.path().join("lib");
    std::fs::create_dir(&folder).unwrap();
    let plugin = workshop.c("plugin.c", &["-shared", "-fPIC"]);
    std::fs::rename(plugin, folder.join("libscruple_test_plugin.so")).unwrap();
    let search = format!("-Wl,-rpath,{}", folder.display());
    let program = workshop.c("opener.c", &[&search]);
    let with = workshop.count_plain(LiveBytes::Off, &program);
    let plain = workshop.count_plain(LiveBytes::Usable, &program);
    assert_eq!(with.counts().bytes, plain.counts().bytes);
    assert!(with.counts().bytes >= 4321, "{with:?}");
    assert!(with.processes[0].counts.allocations > 1);
}
