//! Compares the sites of all allocations with those of valgrind's DHAT, line by line.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use scruple_code::allocation_sites::{HeapAmounts, MemoryBlocks};
use scruple_measure::heap::SiteSampling;

use crate::harness::{Workshop, found};
use crate::sites::sites_of;

/// What each line of the source file allocated by itself or through other files' functions.
type ByLine = BTreeMap<u32, HeapAmounts>;

fn of_dhat(workshop: &Workshop, program: &Path, source: &str) -> ByLine {
    let output = workshop.path().join("dhat");
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["-q", "--tool=dhat", "--num-callers=100"]);
    valgrind.arg(format!("--dhat-out-file={}", output.display()));
    assert!(valgrind.arg(program).status().unwrap().success());
    let text = std::fs::read_to_string(&output).unwrap();
    let profile: serde_json::Value = serde_json::from_str(&text).unwrap();
    let table = profile["ftbl"].as_array().unwrap();
    let line_of = |frame: &serde_json::Value| {
        let text = table[frame.as_u64().unwrap() as usize].as_str().unwrap();
        text.strip_suffix(')')?.rsplit_once(&format!("({source}:"))?.1.parse::<u32>().ok()
    };
    let mut lines = ByLine::new();
    for point in profile["pps"].as_array().unwrap() {
        let Some(line) = point["fs"].as_array().unwrap().iter().find_map(line_of) else { continue };
        let of = |bytes: &str, blocks: &str| MemoryBlocks {
            blocks: point[blocks].as_u64().unwrap(),
            bytes: point[bytes].as_u64().unwrap(),
        };
        let sum =
            HeapAmounts { allocated: of("tb", "tbk"), at_peak: of("gb", "gbk"), at_end: of("eb", "ebk") };
        *lines.entry(line).or_default() += sum;
    }
    lines
}

fn of_scruple(workshop: &Workshop, program: &Path, source: &str) -> ByLine {
    let (all, _) = sites_of(workshop, SiteSampling::EVERY, &mut Command::new(program));
    let sites = &all[0];
    let mut lines = ByLine::new();
    for (at, context) in sites.contexts.iter().enumerate() {
        let line = sites.path(at).into_iter().rev().find_map(|context| {
            let frame = &sites.frames[sites.contexts[context].frame];
            frame.file.as_deref().filter(|file| Path::new(file).ends_with(source)).and(frame.line)
        });
        if let Some(line) = line.filter(|_| context.own != HeapAmounts::default()) {
            *lines.entry(line).or_default() += context.own;
        }
    }
    lines
}

#[test]
fn every_line_has_what_dhat_attributes_to_it() {
    if found("valgrind").is_none() {
        return;
    }
    let workshop = Workshop::new();
    for (compiler, source, flags) in [
        ("cc", "planted.c", &["-g"][..]),
        ("cc", "planted.c", &["-g", "-O2", "-fomit-frame-pointer"]),
        ("c++", "containers.cc", &["-g", "-std=c++17"]),
        ("c++", "containers.cc", &["-g", "-std=c++17", "-O2"]),
        ("rustc", "boxes.rs", &["-g"]),
        ("rustc", "boxes.rs", &["-g", "-O"]),
    ] {
        if found(compiler).is_none() {
            continue;
        }
        let program = workshop.compile(compiler, source, flags);
        let (ours, dhat) = (of_scruple(&workshop, &program, source), of_dhat(&workshop, &program, source));
        assert!(ours.len() >= 2, "{source}: {ours:?}");
        assert_eq!(ours, dhat, "{source} {flags:?}");
    }
}
