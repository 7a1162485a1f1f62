//! Tests that live blocks by site equal DHAT's and massif's to the byte.

use crate::harness::{Workshop, skip};
use scruple_code::Symbols;
use scruple_code::allocation_sites::{HeapAmounts, HeapSites, MemoryBlocks};
use scruple_measure::calltree::{CountDetail, Settings};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

const DHAT: [&str; 6] =
    ["-q", "--tool=dhat", "--vgdb=no", "--num-callers=100", "--run-libc-freeres=no", "--run-cxx-freeres=no"];
const MASSIF: [&str; 5] = ["-q", "--tool=massif", "--vgdb=no", "--peak-inaccuracy=0.0", "--threshold=0.0"];

/// The sites of a program's processes, which must succeed.
fn all_sites(workshop: &Workshop, program: &Path, arguments: &[&str]) -> Vec<HeapSites> {
    let session = workshop.session(Settings { counts: CountDetail::Sites, ..Settings::default() });
    let output = workshop.run_in(&session, program, arguments);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    session.read().unwrap().profiles.heap_sites(&mut Symbols::new())
}

fn sites(workshop: &Workshop, program: &Path, arguments: &[&str]) -> HeapSites {
    let mut all = all_sites(workshop, program, arguments);
    assert_eq!(all.len(), 1);
    let sites = all.remove(0);
    assert_eq!(sites.sum(), sites.total);
    assert_eq!(sites.course.points.iter().map(|(_, bytes)| *bytes).max(), Some(sites.total.at_peak.bytes));
    assert!(sites.course.points.len() <= 256 && sites.course.points.is_sorted_by(|a, b| a.0 < b.0));
    sites
}

/// What DHAT counted, in all and by the place of the allocation. It counts a block of no bytes as one of one byte.
fn dhat(
    workshop: &Workshop,
    program: &Path,
    arguments: &[&str],
) -> (HeapAmounts, BTreeMap<String, HeapAmounts>) {
    let file = workshop.path().join("dhat.json");
    let out = format!("--dhat-out-file={}", file.display());
    let mut options = DHAT.to_vec();
    options.push(&out);
    assert!(workshop.valgrind(&options, program, arguments).status.success());
    let profile: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let frames = profile["ftbl"].as_array().unwrap();
    let (mut sum, mut by_place) = (HeapAmounts::default(), BTreeMap::<String, HeapAmounts>::new());
    for point in profile["pps"].as_array().unwrap() {
        let number = |key: &str| point[key].as_u64().unwrap();
        let blocks = |count: &str, bytes: &str| MemoryBlocks { blocks: number(count), bytes: number(bytes) };
        let amounts = HeapAmounts {
            allocated: blocks("tbk", "tb"),
            at_peak: blocks("gbk", "gb"),
            at_end: blocks("ebk", "eb"),
        };
        sum += amounts;
        let stack = point["fs"].as_array().unwrap().iter();
        let mut stack = stack.map(|at| frames[at.as_u64().unwrap() as usize].as_str().unwrap());
        let caller = stack.find(|frame| !frame.contains("/vgpreload_")).unwrap_or_default();
        *by_place.entry(place_in(caller)).or_default() += amounts;
    }
    (sum, by_place)
}

/// The file and line at the end of a frame of valgrind, or nothing.
fn place_in(frame: &str) -> String {
    let place = frame.rsplit_once('(').map_or("", |(_, place)| place.trim_end_matches(')'));
    if place.contains(':') { place.to_owned() } else { String::new() }
}

fn by_place(sites: &HeapSites) -> BTreeMap<String, HeapAmounts> {
    let mut by_place = BTreeMap::<String, HeapAmounts>::new();
    for context in sites.contexts.iter().filter(|context| context.own != HeapAmounts::default()) {
        let frame = &sites.frames[context.frame];
        let name = frame.file.as_deref().and_then(|file| Path::new(file).file_name()?.to_str());
        let place = name.zip(frame.line).map_or(String::new(), |(name, line)| format!("{name}:{line}"));
        *by_place.entry(place).or_default() += context.own;
    }
    by_place
}

/// Bytes at the peak by the place of the allocation, as massif has them.
fn massif(workshop: &Workshop, program: &Path) -> BTreeMap<String, u64> {
    let file = workshop.path().join("massif.out");
    let out = format!("--massif-out-file={}", file.display());
    let mut options = MASSIF.to_vec();
    options.push(&out);
    assert!(workshop.valgrind(&options, program, &[]).status.success());
    let text = std::fs::read_to_string(&file).unwrap();
    let tree = text.split_once("heap_tree=peak\n").unwrap().1;
    let tree = tree.lines().take_while(|line| !line.starts_with('#'));
    // The children of the root are the places that allocate.
    let mut by_place = BTreeMap::<String, u64>::new();
    for line in tree.filter(|line| line.starts_with(" n")) {
        let bytes: u64 = line.split(' ').nth(2).unwrap().parse().unwrap();
        *by_place.entry(place_in(line)).or_default() += bytes;
    }
    by_place.retain(|_, bytes| *bytes > 0);
    by_place
}

#[test]
fn each_place_has_the_blocks_and_bytes_that_dhat_gives_it() {
    let Some(workshop) = Workshop::new() else { return };
    let program = workshop.compile("sites.c", &["-g", "-pthread"]);
    let ours = sites(&workshop, &program, &[]);
    let (sum, theirs) = dhat(&workshop, &program, &[]);
    assert_eq!(ours.total, sum);
    let (mut ours, mut theirs) = (by_place(&ours), theirs);
    // DHAT leaves a block that realloc enlarged at the place of the first request.
    for places in [&mut ours, &mut theirs] {
        let moved = places.remove("sites.c:41").unwrap_or_default();
        *places.entry("sites.c:9".to_owned()).or_default() += moved;
        // Allocations of the C library have lines only if its debugging information is installed.
        places.retain(|place, _| place.starts_with("sites.c:"));
    }
    assert_eq!(ours, theirs);
    assert_eq!(theirs.keys().collect::<Vec<_>>(), ["sites.c:15", "sites.c:21", "sites.c:36", "sites.c:9"]);
}

#[test]
fn places_keep_their_blocks_if_there_are_too_many_contexts() {
    let Some(workshop) = Workshop::new() else { return };
    let program = workshop.compile("sites.c", &["-g", "-pthread"]);
    let session = workshop.session(Settings { counts: CountDetail::Sites, ..Settings::default() });
    assert!(workshop.run_with(&session, "--contexts=2", &program).status.success());
    let cut = session.read().unwrap().profiles.heap_sites(&mut Symbols::new()).remove(0);
    assert!(cut.unseen.iter().any(|what| what.contains("too many")), "{:?}", cut.unseen);
    let [cut, whole] = [cut, sites(&workshop, &program, &[])].map(|sites| {
        let mut places = by_place(&sites);
        places.retain(|place, _| place.starts_with("sites.c:"));
        places
    });
    assert_eq!(cut, whole);
}

#[test]
fn a_block_that_realloc_enlarged_is_of_the_place_that_enlarged_it() {
    let Some(workshop) = Workshop::new() else { return };
    let program = workshop.compile("sites.c", &["-g", "-pthread"]);
    let places = by_place(&sites(&workshop, &program, &[]));
    let at_end = |place: &str| places[place].at_end;
    assert_eq!(at_end("sites.c:41"), MemoryBlocks { blocks: 1, bytes: 5000 });
    // Of ten blocks one was freed in the thread, one enlarged, six freed.
    assert_eq!(at_end("sites.c:9"), MemoryBlocks { blocks: 2, bytes: 200 });
    let program = workshop.compile("grown.c", &["-g"]);
    let ours = by_place(&sites(&workshop, &program, &[]));
    let ours: BTreeMap<String, u64> =
        ours.into_iter().map(|(place, own)| (place, own.at_peak.bytes)).collect();
    let ours: BTreeMap<String, u64> = ours.into_iter().filter(|(_, bytes)| *bytes > 0).collect();
    assert_eq!(ours, massif(&workshop, &program));
    assert_eq!(ours.values().sum::<u64>(), 4000 + 120 + 64 * 16);
}

#[test]
fn a_path_has_the_line_of_each_call() {
    let Some(workshop) = Workshop::new() else { return };
    let program = workshop.compile("sites.c", &["-g", "-pthread"]);
    let sites = sites(&workshop, &program, &[]);
    let lines = |at: usize| {
        let frames = sites.path(at).into_iter().map(|at| &sites.frames[sites.contexts[at].frame]);
        let known =
            frames.filter(|frame| frame.file.as_deref().is_some_and(|file| file.ends_with("sites.c")));
        known.map(|frame| (frame.name.clone(), frame.line.unwrap_or_default())).collect::<Vec<_>>()
    };
    let own = sites.contexts.iter().enumerate().filter(|(_, context)| context.own.allocated.blocks > 0);
    let mut paths: BTreeMap<Vec<(String, u32)>, u64> =
        own.map(|(at, context)| (lines(at), context.own.allocated.bytes)).collect();
    let mut bytes = |path: &[(&str, u32)]| {
        let path: Vec<(String, u32)> = path.iter().map(|(name, line)| ((*name).to_owned(), *line)).collect();
        paths.remove(&path).unwrap_or_else(|| panic!("{path:?} is not in {paths:?}"))
    };
    assert_eq!(bytes(&[("main", 27), ("make", 9)]), 1000);
    assert_eq!(bytes(&[("main", 29), ("make", 9)]), 200_000);
    assert_eq!(bytes(&[("main", 30), ("make", 9)]), 2000);
    assert_eq!(bytes(&[("main", 39), ("in_thread", 21)]), 70);
    assert_eq!(bytes(&[("main", 34), ("deep", 15)]), 15);
}

#[test]
fn totals_of_programs_are_those_of_dhat() {
    let Some(workshop) = Workshop::new() else { return };
    let heap_programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/heap/programs");
    let mut commands: Vec<(std::path::PathBuf, Vec<&str>)> = vec![
        (workshop.compile("objects.cc", &["-std=c++17"]), vec![]),
        (workshop.compile(heap_programs.join("containers.cc").to_str().unwrap(), &["-std=c++17"]), vec![]),
        ("/bin/ls".into(), vec!["-l", "/usr/bin"]),
    ];
    let rust = workshop.path().join("boxes");
    let built = std::process::Command::new("rustc")
        .args(["-O", "-o"])
        .args([rust.as_path(), &heap_programs.join("boxes.rs")])
        .status();
    match built {
        Ok(status) if status.success() => commands.push((rust, vec![])),
        _ => skip("rustc is not installed"),
    }
    let others: [(&str, &[&str]); 3] = [
        ("/usr/bin/sqlite3", &[":memory:", "create table t(a); insert into t values(1); select * from t;"]),
        (
            "/usr/bin/git",
            &["-C", concat!(env!("CARGO_MANIFEST_DIR"), "/../.."), "log", "--oneline", "-n", "20"],
        ),
        ("/usr/bin/mawk", &["BEGIN { for (i = 0; i < 300; i++) a[i] = i \"x\"; print length(a) }"]),
    ];
    for (program, arguments) in others {
        match Path::new(program).exists() {
            true => commands.push((program.into(), arguments.to_vec())),
            false => skip(&format!("{program} is not installed")),
        }
    }
    for (program, arguments) in commands {
        let ours = sites(&workshop, &program, &arguments).total;
        let (theirs, _) = dhat(&workshop, &program, &arguments);
        eprintln!("{:<16} {ours:?}", program.file_name().unwrap_or_default().display());
        let without_empty =
            |amounts: HeapAmounts| (amounts.at_peak, amounts.at_end, amounts.allocated.blocks);
        assert_eq!(without_empty(ours), without_empty(theirs), "{program:?}");
    }
}

#[test]
fn a_forked_process_begins_with_its_parents_blocks() {
    let Some(workshop) = Workshop::new() else { return };
    let program = workshop.compile("forked.c", &["-g"]);
    let all = all_sites(&workshop, &program, &[]);
    let bytes = |blocks: MemoryBlocks| blocks.bytes;
    let mut processes: Vec<_> = all
        .iter()
        .map(|sites| {
            let total = sites.total;
            (bytes(sites.inherited), bytes(total.allocated), bytes(total.at_peak), bytes(total.at_end))
        })
        .collect();
    processes.sort_unstable();
    // The parent; the child, which frees the parent's block after it has allocated its own; and the program that
    // another child executes. That child has nothing of its own.
    assert_eq!(processes, [(0, 33, 33, 33), (0, 1020, 1000, 20), (1000, 57, 1050, 57)]);
}

#[test]
fn allocations_of_a_static_program_have_sites() {
    let Some(workshop) = Workshop::new() else { return };
    let program = workshop.compile("sites.c", &["-g", "-static", "-pthread"]);
    let places = by_place(&sites(&workshop, &program, &[]));
    assert_eq!(places["sites.c:41"].at_end, MemoryBlocks { blocks: 1, bytes: 5000 });
    assert_eq!(places["sites.c:9"].at_peak, MemoryBlocks { blocks: 12, bytes: 102_000 });
    // Without symbols it is unknown which of its functions is malloc.
    let stripped = workshop.compile("sites.c", &["-static", "-s", "-pthread"]);
    assert_eq!(all_sites(&workshop, &stripped, &[]), []);
}
