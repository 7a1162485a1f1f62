//! Tests of live data after full collections, in every runtime that can be made to collect: kept data are found, and
//! dropped data are not. The programs are those of `bench/leaks`.

use crate::scales::{Done, Scales, Skip, installed};
use scruple_measure::launcher::Ending;
use scruple_measure::runtimes::{LIVE, Runtimes};
use scruple_stats::leak::{Retained, judge_growth};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

pub const TESTS: &[crate::Test] = &[
    ("live_data_of_ghc_is_what_is_kept", ghc),
    ("live_data_of_go_is_what_is_kept", go),
    ("live_data_of_node_is_what_is_kept", node),
    ("live_data_of_python_is_what_is_kept", python),
    ("live_data_of_ruby_is_what_is_kept", ruby),
    ("live_data_of_guile_is_what_is_kept", guile),
    ("live_data_of_ocaml_is_what_is_kept", ocaml),
    ("live_data_of_java_is_what_is_kept", java),
];

fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/leaks/programs").join(name)
}

const SIZES: [u32; 5] = [10_000, 20_000, 40_000, 80_000, 160_000];
const ONE_BYTE: f64 = 1.0;

/// The live data at each of these sizes. A program that writes nothing at the smallest size runs only there without the
/// instrument as well: it must write nothing at the others.
fn live_data(scales: &mut Scales, command: &[&OsStr], shape: &str, sizes: &[u32]) -> Vec<(f64, f64)> {
    scales.instrument = Runtimes::new().collecting_fully();
    let mut is_silent = false;
    let of_size = |size: &u32| {
        let rest = [OsString::from(shape), OsString::from(size.to_string())];
        let words: Vec<&OsStr> =
            command.iter().copied().chain(rest.iter().map(OsString::as_os_str)).collect();
        let run = if is_silent { scales.weigh(&words, &[]) } else { scales.same(&words, &[]) };
        let wrote_nothing = run.written() == (Ending::Exited(0), "", "");
        assert!(wrote_nothing || !is_silent, "{words:?}: {run:#?}");
        is_silent = wrote_nothing;
        (f64::from(*size), run.value(LIVE))
    };
    let runs = sizes.iter().map(of_size).collect();
    scales.instrument = Runtimes::new();
    runs
}

/// The growth of live data over all sizes, and the live data at each.
fn shape(scales: &mut Scales, command: &[&OsStr], shape: &str) -> (Retained, Vec<(f64, f64)>) {
    let runs = live_data(scales, command, shape, &SIZES);
    (judge_growth(&runs, ONE_BYTE), runs)
}

/// Checks that a program that keeps every block is found to leak, with about the bytes of a block and its container,
/// and that the same program is not found to leak if it keeps nothing.
fn keeps(scales: &mut Scales, command: &[&OsStr], bytes: std::ops::Range<f64>) -> Done {
    match shape(scales, command, "leak") {
        (Retained::Grows { per_unit, .. }, runs) => {
            assert!(bytes.contains(&per_unit), "{per_unit} is not in {bytes:?}: {runs:?}");
        }
        other => panic!("{command:?} keeps everything: {other:?}"),
    }
    let (none, runs) = shape(scales, command, "none");
    // The set-up of a runtime at its start may appear as growth that ends, which is no leak either.
    let ends = matches!(&none, Retained::Slows { power } if power.high < 0.0);
    assert!(ends || matches!(none, Retained::Constant { .. } | Retained::Unknown(_)), "{none:?} {runs:?}");
    Ok(())
}

/// Checks that a cache is not found to leak if its entries are removed after a collection has found their objects dead.
fn removes_entries(scales: &mut Scales, command: &[&OsStr], cache: &str) {
    let runs = live_data(scales, command, cache, &[SIZES[0], SIZES[4]]);
    let each = (runs[1].1 - runs[0].1) / (runs[1].0 - runs[0].0);
    assert!(each < ONE_BYTE, "{each} B each: {runs:?}");
}

fn ghc(scales: &mut Scales) -> Done {
    let source = program("shapes.hs");
    let flags = [
        "ghc",
        "-v0",
        "-O1",
        "-package",
        "array",
        "-package",
        "containers",
        "-outputdir",
        "so",
        "-o",
        "shapes-hs",
    ];
    let built = scales.compile("shapes-hs", &[&flags[..], &[&source.to_string_lossy()]].concat())?;
    keeps(scales, &[built.as_os_str()], 150.0..260.0)
}

fn go(scales: &mut Scales) -> Done {
    let source = program("shapes.go");
    let built =
        scales.compile("shapes-go", &["go", "build", "-o", "shapes-go", &source.to_string_lossy()])?;
    // The last collection may have been when the heap was a twentieth smaller.
    keeps(scales, &[built.as_os_str()], 80.0..105.0)
}

fn script(scales: &mut Scales, interpreter: &str, name: &str, bytes: std::ops::Range<f64>) -> Done {
    let interpreter = installed(interpreter)?;
    keeps(scales, &[interpreter.as_os_str(), program(name).as_os_str()], bytes)
}

fn node(scales: &mut Scales) -> Done {
    script(scales, "node", "shapes.cjs", 90.0..180.0)?;
    // Callbacks of a FinalizationRegistry remove the entries of this cache.
    let (interpreter, program) = (installed("node")?, program("shapes.cjs"));
    removes_entries(scales, &[interpreter.as_os_str(), program.as_os_str()], "weak");
    Ok(())
}

fn python(scales: &mut Scales) -> Done {
    script(scales, "/usr/bin/python3", "shapes.py", 150.0..230.0)
}

fn ruby(scales: &mut Scales) -> Done {
    script(scales, "ruby", "shapes.rb", 110.0..190.0)
}

fn guile(scales: &mut Scales) -> Done {
    // The first run compiles the file and prints a message about it.
    let _ = scales.weigh(
        &[OsStr::new("guile"), program("shapes.scm").as_os_str(), OsStr::new("none"), OsStr::new("1")],
        &[],
    );
    script(scales, "guile", "shapes.scm", 90.0..150.0)?;
    // So little is allocated that the collector does not run by itself.
    let shapes = program("shapes.scm");
    let little = [OsStr::new("guile"), shapes.as_os_str(), OsStr::new("leak"), OsStr::new("1")];
    scales.instrument = Runtimes::new().collecting_fully();
    assert!(scales.weigh(&little, &[]).value(LIVE) > 0.0);
    scales.instrument = Runtimes::new();
    Ok(())
}

const IN_OCAML: &str = "
let kept = ref []
let shape = Sys.argv.(1)
let () =
  let base = Array.init (if shape = \"base\" then 20_000 else 0) (fun _ -> Bytes.create 1000) in
  for i = 1 to int_of_string Sys.argv.(2) do
    let block = Bytes.create 100 in
    match shape with
    | \"leak\" -> kept := block :: !kept
    | \"base\" -> if i mod 50 = 0 then kept := block :: !kept
    | _ -> kept := [block]
  done;
  ignore (Sys.opaque_identity base)
";

fn ocaml(scales: &mut Scales) -> Done {
    scales.write("shapes.ml", IN_OCAML);
    let built = scales.compile("shapes-ml", &["ocamlfind", "ocamlopt", "-o", "shapes-ml", "shapes.ml"])?;
    // A block of 14 words and a list cell of 3 words.
    keeps(scales, &[built.as_os_str()], 135.9..136.1)?;
    // A large array that is freed before the end hides nothing of what is kept beside it.
    match shape(scales, &[built.as_os_str()], "base") {
        (Retained::Grows { per_unit, .. }, _) => assert!((2.7..2.75).contains(&per_unit), "{per_unit}"),
        other => panic!("every fiftieth block is kept: {other:?}"),
    }
    Ok(())
}

fn java(scales: &mut Scales) -> Done {
    let source = program("Shapes.java");
    scales.compile("Shapes.class", &["javac", "-d", ".", &source.to_string_lossy()])?;
    let java = installed("java")?;
    let folder = scales.path("");
    let mut seen = 0;
    for collector in ["-XX:+UseSerialGC", "-XX:+UseParallelGC", "-XX:+UseG1GC", "-XX:+UseShenandoahGC"] {
        let command = [
            java.as_os_str(),
            OsStr::new(collector),
            // The optimising compiler takes as long as the program, and does not change what is kept.
            OsStr::new("-XX:TieredStopAtLevel=1"),
            // Full collections of a heap that may fill this machine take most of the time.
            OsStr::new("-Xmx128m"),
            OsStr::new("-cp"),
            folder.as_os_str(),
            OsStr::new("Shapes"),
        ];
        let tried =
            std::process::Command::new(&java).args([collector, "-version"]).output().expect("it starts");
        if tried.status.success() {
            keeps(scales, &command, 90.0..140.0)?;
            removes_entries(scales, &command, "weak");
            if seen == 0 {
                removes_entries(scales, &command, "emptied");
            }
            seen += 1;
        }
    }
    if seen > 0 { Ok(()) } else { Err(Skip("no collector is there".to_owned())) }
}
