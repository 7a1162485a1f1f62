//! Tests with programs that allocate a known number of bytes: the difference between two sizes is exact, or nearly
//! so.

use crate::promise::haskell;
use crate::scales::{Done, ScaleRun, Scales, installed, source};
use crate::words;
use scruple_core::metric::Quality;
use scruple_measure::launcher::Ending;
use scruple_measure::runtimes::Runtime;
use std::ffi::OsStr;

pub const TESTS: &[crate::Test] = &[
    ("ghc_counts_24_bytes_a_cell", ghc),
    ("ghc_stripped_and_threaded_agree", ghc_builds),
    ("ghc_times_are_not_rounded_to_milliseconds", ghc_times),
    ("ghc_without_options_is_read_from_memory", ghc_without_options),
    ("ghc_logs_every_collection", ghc_log),
    ("runtimes_say_when_they_collect", pauses),
    ("a_runtime_that_does_not_say_when_it_collects_is_named", no_pauses),
    ("python_counts_calls", python),
    ("guile_counts_16_bytes_a_pair", guile),
    ("node_counts_40_bytes_a_cell", node),
    ("java_counts_24_bytes_a_cell", java),
    ("java_collections_are_those_of_its_log", java_collections),
    ("java_collections_that_the_questions_cause_are_not_counted", java_own_collections),
    ("ghc_collections_of_the_nonmoving_collector_are_counted", ghc_nonmoving),
    ("go_counts_16_bytes_a_cell", go),
    ("go_stripped_counts_as_unstripped", go_stripped),
    ("ocaml_counts_24_bytes_a_block", ocaml),
    ("ruby_counts_objects", ruby),
    ("php_counts_40_bytes_an_object", php),
    ("racket_counts_16_bytes_a_pair", racket),
    ("sbcl_counts_16_bytes_a_cons", sbcl),
    ("lua_counts_cycles", lua),
    ("r_keeps_its_most", r),
    ("perl_is_recognised", perl),
];

/// Both sizes have the same number of digits, because reading a number allocates, too.
const SMALL: f64 = 100_000.0;
const LARGE: f64 = 900_000.0;

/// The cost of one step: the difference between two sizes, divided by the difference in steps.
fn step(scales: &mut Scales, command: &[&OsStr], key: &str) -> (f64, ScaleRun) {
    let [small, large] = [SMALL, LARGE].map(|n| {
        let n = format!("{n}");
        let words: Vec<&OsStr> = command.iter().copied().chain([OsStr::new(&n)]).collect();
        scales.same(&words, &[])
    });
    ((large.value(key) - small.value(key)) / (LARGE - SMALL), large)
}

fn close(value: f64, truth: f64, relative: f64) {
    assert!((value / truth - 1.0).abs() <= relative, "{value} is not {truth} within {relative}");
}

fn build_ghc(scales: &Scales, name: &str, flags: &[&str]) -> Result<std::path::PathBuf, crate::scales::Skip> {
    let main = source("alloc.hs");
    let out = format!("{name}-objects");
    let mut command = vec!["ghc", "-v0", "-O1", "-outputdir", &out, "-o", name];
    command.extend(flags);
    let main = main.to_string_lossy();
    command.push(&main);
    scales.compile(name, &command)
}

fn ghc(scales: &mut Scales) -> Done {
    let program = build_ghc(scales, "hs", &[])?;
    let (bytes, run) = step(scales, words![program], "alloc.bytes");
    // Reading a number with other digits makes the program itself allocate 16 bytes more.
    close(bytes, 24.0, 1e-6);
    assert_eq!(run.reading("alloc.bytes").quality, Quality::Exact);
    assert_eq!(run.value("gc.count"), run.value("gc.minor") + run.value("gc.major"));
    for key in ["gc.time", "gc.pause_max", "heap.live_max", "heap.peak", "ghc.copied"] {
        assert!(run.value(key) > 0.0, "{key}");
    }
    assert!(run.absent("alloc.objects").contains("-ticky"));
    Ok(())
}

fn ghc_builds(scales: &mut Scales) -> Done {
    let plain = build_ghc(scales, "hs", &[])?;
    let stripped =
        scales.compile("hs-stripped", &["strip", "-o", "hs-stripped", &plain.to_string_lossy()])?;
    let threaded = build_ghc(scales, "hs-threaded", &["-threaded", "-rtsopts"])?;
    let plain = scales.same(words![plain, "500000"], &[]);
    let stripped = scales.same(words![stripped, "500000"], &[]);
    let threaded = scales.same(words![threaded, "500000", "+RTS", "-N2"], &[]);
    assert_eq!(plain.value("alloc.bytes"), stripped.value("alloc.bytes"));
    assert_eq!(plain.value("gc.major"), stripped.value("gc.major"));
    close(threaded.value("alloc.bytes"), plain.value("alloc.bytes"), 0.02);
    Ok(())
}

fn ghc_without_options(scales: &mut Scales) -> Done {
    let plain = build_ghc(scales, "hs", &[])?;
    let plain = scales.same(words![plain, "500000"], &[]);
    for options in ["none", "ignore", "ignoreAll"] {
        let name = format!("hs-{options}");
        let closed = build_ghc(scales, &name, &[&format!("-rtsopts={options}")])?;
        let run = scales.same(words![closed, "500000"], &[]);
        assert_eq!(run.value("alloc.bytes"), plain.value("alloc.bytes"), "{options}");
        assert_eq!(run.value("gc.major"), plain.value("gc.major"), "{options}");
        if options != "ignore" {
            assert!(run.absent("gc.time").contains("-rtsopts=some for times"), "{}", run.absent("gc.time"));
        }
        let name = format!("hs-{options}-stripped");
        let stripped = scales.compile(&name, &["strip", "-o", &name, &closed.to_string_lossy()])?;
        let run = scales.same(words![stripped, "500000"], &[]);
        match options {
            "none" => assert!(run.absent("alloc.bytes").contains("-rtsopts=some")),
            "ignoreAll" => {
                assert!(run.absent("alloc.bytes").contains("-rtsopts=ignoreAll"));
                let wrapped = scales.weigh(words!["env", "-i", stripped, "500000"], &[]);
                assert_eq!(wrapped.absent("alloc.bytes"), run.absent("alloc.bytes"));
            }
            _ => assert_eq!(run.value("alloc.bytes"), plain.value("alloc.bytes")),
        }
    }
    Ok(())
}

/// The expected values come from the report that the user requests.
fn ghc_nonmoving(scales: &mut Scales) -> Done {
    let program = build_ghc(scales, "hs", &[])?;
    let oracle = scales.weigh(words![program, "2000000"], &[("GHCRTS", "--nonmoving-gc -s")]).stderr;
    let count = |generation: &str| {
        let line =
            oracle.lines().find(|line| line.trim_start().starts_with(generation) && line.contains("colls"));
        line.and_then(|line| line.split_whitespace().nth(2)?.parse::<f64>().ok()).expect("a count")
    };
    let run = scales.same(words![program, "2000000"], &[("GHCRTS", "--nonmoving-gc")]);
    assert_eq!((run.value("gc.minor"), run.value("gc.major")), (count("Gen  0"), count("Gen  1")));
    assert!(run.value("gc.major") > 0.0);
    Ok(())
}

fn ghc_log(scales: &mut Scales) -> Done {
    let program = build_ghc(scales, "hs", &[])?;
    scales.instrument = scruple_measure::runtimes::Runtimes::new().logging_collections();
    let run = scales.same(words![program, "2000000"], &[]);
    let log = scales.instrument.logs()[0].1.clone();
    scales.instrument = scruple_measure::runtimes::Runtimes::new();
    assert_eq!(log.collections.len() as f64, run.value("gc.count"));
    let allocated: f64 = log.collections.iter().map(|collection| collection.allocated).sum();
    close(allocated, run.value("alloc.bytes"), 0.02);
    let (longest, reported) = (log.longest_pause() * 1e9, run.value("gc.pause_max"));
    // The log has a resolution of a millisecond. If all pauses are below it, the summary's finer figure is used.
    match longest > 0.0 {
        true => assert_eq!(longest, reported),
        false => assert!(reported < 1e6, "{reported} ns"),
    }
    Ok(())
}

/// Checks that pauses are between the beginning and the end of the run, on the monotonic clock that the load
/// generator uses.
fn pauses(scales: &mut Scales) -> Done {
    let mut programs: Vec<Vec<std::ffi::OsString>> = Vec::new();
    let words = |words: &[&OsStr]| words.iter().map(std::ffi::OsString::from).collect();
    if let Ok(program) = build_ghc(scales, "hs", &[]) {
        programs.push(words(words![program]));
    }
    let cycles =
        "import sys\nfor i in range(int(sys.argv[1]) // 100):\n    a = []\n    a.append(a)\nprint(i)\n";
    let cycles = scales.write("cycles.py", cycles);
    // Node informs an observer only when its event loop turns, as a server's does.
    let turning = "let a;\nfor (let i = 0; i < +process.argv[2]; i++) a = { i };\nsetTimeout(() => console.log(a.i), 50);\n";
    let turning = scales.write("turning.cjs", turning);
    let files = [("guile", source("alloc.scm")), ("node", turning), ("/usr/bin/python3", cycles)];
    for (name, file) in files {
        if installed(name).is_ok() {
            programs.push(words(words![name, file]));
        }
    }
    let main = source("Alloc.java");
    if scales.compile("Alloc.class", &["javac", "-d", ".", &main.to_string_lossy()]).is_ok() {
        programs.push(words(words!["java", "-Xmx16m", "-cp", ".", "Alloc"]));
    }
    for program in programs {
        scales.instrument = scruple_measure::runtimes::Runtimes::new().logging_collections();
        let mut command: Vec<&OsStr> = program.iter().map(|word| word.as_os_str()).collect();
        command.push(OsStr::new("3000000"));
        let before = now();
        let run = scales.weigh(&command, &[]);
        let after = now();
        let (runtime, pauses) = (scales.instrument.reports()[0].runtime, scales.instrument.pauses());
        let pauses = pauses.expect("pauses").to_vec();
        scales.instrument = scruple_measure::runtimes::Runtimes::new();
        assert!(
            !pauses.is_empty() && pauses.len() as f64 <= run.value("gc.count"),
            "{runtime:?}: {pauses:?}"
        );
        for (from, to) in &pauses {
            assert!(
                before < *from && from <= to && *to < after,
                "{runtime:?}: {from} to {to}, {before} to {after}"
            );
        }
        let sum: f64 = pauses.iter().map(|(from, to)| (to - from) as f64).sum();
        // The tolerance is a millisecond for each pause if the runtime's log has no more digits.
        let digits = if runtime == Runtime::Ghc { 1e6 * pauses.len() as f64 } else { 1e3 };
        let apart = (sum - run.value("gc.time")).abs();
        // Node's observer and its profiler do not measure from and to the same points.
        assert!(
            runtime == Runtime::Node || apart <= digits + 0.05 * sum,
            "{runtime:?}: {sum} of {}",
            run.value("gc.time")
        );
    }
    Ok(())
}

fn no_pauses(scales: &mut Scales) -> Done {
    installed("ruby")?;
    scales.instrument = scruple_measure::runtimes::Runtimes::new().logging_collections();
    let _ = scales.weigh(words!["ruby", source("alloc.rb"), "900000"], &[]);
    let pauses = scales.instrument.pauses().map(<[_]>::to_vec);
    scales.instrument = scruple_measure::runtimes::Runtimes::new();
    assert_eq!(pauses, Err("the runtime (ruby) does not say when it collects".to_owned()));
    Ok(())
}

#[allow(unsafe_code)]
fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills in plain data.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn python(scales: &mut Scales) -> Done {
    for name in ["/usr/bin/python3", "python3"] {
        let python = installed(name)?;
        let (objects, run) = step(scales, words![python, source("alloc.py")], "alloc.objects");
        // The object, the loop's number, and the remainder, unless it is one of the 257 small integers that are
        // preallocated.
        assert_eq!(objects, 2.0 + 0.9743);
        assert_eq!(run.reading("alloc.objects").quality, Quality::Exact);
        assert!(run.value("alloc.bytes") > 16.0 * LARGE);
        assert!(run.value("gc.count") >= 1.0);
    }
    Ok(())
}

fn guile(scales: &mut Scales) -> Done {
    installed("guile")?;
    // The first run compiles the file, which costs more than running it.
    let _ = scales.weigh(words!["guile", source("alloc.scm"), "10"], &[]);
    let (bytes, run) = step(scales, words!["guile", source("alloc.scm")], "alloc.bytes");
    close(bytes, 16.0, 0.001);
    assert!(run.value("gc.count") > 1.0 && run.value("gc.time") > 0.0 && run.value("heap.peak") > 1e6);
    Ok(())
}

fn node(scales: &mut Scales) -> Done {
    installed("node")?;
    let (bytes, run) = step(scales, words!["node", source("alloc.cjs")], "alloc.bytes");
    close(bytes, 40.0, 0.01);
    assert!(run.value("gc.minor") > 1.0 && run.value("gc.pause_max") > 0.0);
    Ok(())
}

fn java(scales: &mut Scales) -> Done {
    let main = source("Alloc.java");
    scales.compile("Alloc.class", &["javac", "-d", ".", &main.to_string_lossy()])?;
    let (bytes, run) = step(scales, words!["java", "-cp", ".", "Alloc"], "alloc.bytes");
    close(bytes, 24.0, 0.001);
    assert!(run.value("heap.peak") > 1e6);
    let picked = scales.same(words!["java", "-cp", ".", "Alloc", "10"], &[("JAVA_TOOL_OPTIONS", "-Xmx64m")]);
    assert!(picked.stderr.contains("-Xmx64m") && picked.value("alloc.bytes") > 0.0);
    Ok(())
}

fn build_go(scales: &Scales, name: &str, flags: &[&str]) -> Result<std::path::PathBuf, crate::scales::Skip> {
    let main = source("alloc.go");
    let main = main.to_string_lossy();
    let mut command = vec!["go", "build", "-o", name];
    command.extend(flags);
    command.push(&main);
    scales.compile(name, &command)
}

/// The expected values come from the virtual machine's log. Only collections have numbers of their own in it; stops
/// and phases within them do not.
fn java_collections(scales: &mut Scales) -> Done {
    let source = source("Alloc.java");
    scales.compile("Alloc.class", &["javac", "-d", ".", &source.to_string_lossy()])?;
    let folder = scales.path("");
    for collector in ["UseSerialGC", "UseParallelGC", "UseG1GC", "UseZGC", "UseShenandoahGC"] {
        let log = scales.path(&format!("{collector}.log"));
        let (wanted, logged) = (format!("-XX:+{collector}"), format!("-Xlog:gc:file={}", log.display()));
        // ZGC of Java 17 hangs where a thread of the JVM still waits for memory at the end, so its heap is never
        // filled.
        let megabytes = if collector == "UseZGC" { 600 } else { 256 };
        let heap = format!("-Xmx{megabytes}m");
        let command = |steps| -> Vec<std::ffi::OsString> {
            let folder = folder.to_string_lossy();
            ["java", &heap, &wanted, &logged, "-cp", &folder, "Alloc", steps].map(Into::into).to_vec()
        };
        let words = command("20000000");
        let run = scales.weigh(&words.iter().map(|word| word.as_os_str()).collect::<Vec<_>>(), &[]);
        if run.ending != Ending::Exited(0) {
            continue; // not in every build of the machine
        }
        let text = std::fs::read_to_string(&log).expect("a log");
        let number = |line: &str| line.split_once("GC(")?.1.split_once(')')?.0.parse::<u64>().ok();
        // A collection that runs while the machine ends has a number in the log, but is not counted.
        let all = text.lines().filter_map(number).max().map_or(0.0, |last| last as f64 + 1.0);
        let counted = run.value("gc.count");
        assert!((all - 1.0..=all).contains(&counted), "{collector}: {counted} of {all}\n{text}");
        assert_eq!(counted, run.value("gc.minor") + run.value("gc.major"), "{collector}");
        let most = f64::from(megabytes) * 1.06e6;
        assert!((1e6..most).contains(&run.value("heap.peak")), "{collector}: {}", run.value("heap.peak"));
        match ["UseZGC", "UseShenandoahGC"].contains(&collector) {
            true => assert!(run.absent("heap.live_max").contains("while the program runs"), "{collector}"),
            false => assert!(run.value("heap.live_max") < run.value("heap.peak"), "{collector}"),
        }
        let words = command("1000");
        let run = scales.weigh(&words.iter().map(|word| word.as_os_str()).collect::<Vec<_>>(), &[]);
        assert_eq!(run.value("gc.count"), 0.0, "{collector}");
        assert!(run.absent("heap.live_max").contains("no collection"), "{}", run.absent("heap.live_max"));
    }
    Ok(())
}

/// The young generation is so small that the questions at the end fill it in some of the runs, which end with
/// different amounts in it.
fn java_own_collections(scales: &mut Scales) -> Done {
    let source = source("Alloc.java");
    scales.compile("Alloc.class", &["javac", "-d", ".", &source.to_string_lossy()])?;
    for run in 0..8 {
        scales.instrument = scruple_measure::runtimes::Runtimes::new().logging_collections();
        let steps = (100_000 + run * 8_000).to_string();
        let folder = scales.path("");
        let run =
            scales.weigh(words!["java", "-XX:+UseSerialGC", "-Xmn2m", "-cp", folder, "Alloc", steps], &[]);
        let pauses = scales.instrument.pauses().expect("pauses").len();
        scales.instrument = scruple_measure::runtimes::Runtimes::new();
        let values = ["gc.count", "jvm.gc_stops"].map(|key| run.value(key));
        assert!(
            pauses > 0 && values == [pauses as f64; 2],
            "{values:?}, {pauses} pauses after {steps} steps"
        );
    }
    Ok(())
}

fn go(scales: &mut Scales) -> Done {
    for (name, flags) in [("go-plain", &[][..]), ("go-pie", &["-buildmode=pie"][..])] {
        let program = build_go(scales, name, flags)?;
        let (bytes, run) = step(scales, words![program], "alloc.bytes");
        close(bytes, 16.0, 0.001);
        close(run.value("alloc.objects"), LARGE, 0.001);
        assert!(run.value("gc.count") >= 1.0 && run.value("heap.peak") > 1e6);
    }
    Ok(())
}

fn ghc_times(scales: &mut Scales) -> Done {
    let text = "import qualified Data.Map as M\nmain :: IO ()\nmain = print (M.size (M.fromList [(i, i) | i <- [1 .. \
                12000 :: Int]]))\n";
    let program = haskell(scales, "few-collections", text, &["-package", "containers"])?;
    let run = scales.same(words![program], &[]);
    let (time, pause) = (run.value("gc.time"), run.value("gc.pause_max"));
    assert!(time > 0.0 && time % 1e5 != 0.0 && pause > 0.0 && pause <= time, "{pause} of {time}");
    assert_eq!(run.value("gc.count"), 2.0);
    Ok(())
}

fn go_stripped(scales: &mut Scales) -> Done {
    // With one processor a program allocates the same in every run, up to what its runtime does by itself.
    let one = [("GOMAXPROCS", "1")];
    let whole = build_go(scales, "go-plain", &[])?;
    let expected = scales.weigh(words![whole, "1000000"], &one);
    let builds: [(&str, &[&str]); 4] = [
        ("go-stripped", &["-ldflags=-s -w"]),
        ("go-without-dwarf", &["-ldflags=-w"]),
        ("go-stripped-pie", &["-ldflags=-s -w", "-buildmode=pie"]),
        ("go-stripped-trimmed", &["-ldflags=-s -w", "-trimpath"]),
    ];
    for (name, options) in builds {
        let program = build_go(scales, name, options)?;
        let run = scales.weigh(words![program, "1000000"], &one);
        for key in ["alloc.bytes", "alloc.objects"] {
            close(run.value(key), expected.value(key), 0.01);
        }
        assert!(run.value("heap.peak") > 0.0);
    }
    // Without inlining, the runtime is other code than that of the program to compare with.
    let foreign = build_go(scales, "go-stripped-foreign", &["-ldflags=-s -w", "-gcflags=all=-N -l"])?;
    let run = scales.same(words![foreign, "1000000"], &one);
    let why = run.absent("alloc.bytes");
    assert!(why.contains("-ldflags") && why.contains("not that of another program"), "{why}");
    assert!(run.value("gc.count") >= 0.0);
    Ok(())
}

fn ocaml(scales: &mut Scales) -> Done {
    let main = source("alloc.ml");
    std::fs::copy(&main, scales.path("alloc.ml")).expect("copied");
    let native = scales.compile("ml", &["ocamlopt", "-o", "ml", "alloc.ml"])?;
    let bytecode = scales.compile("ml.byte", &["ocamlc", "-o", "ml.byte", "alloc.ml"])?;
    let (bytes, run) = step(scales, words![native], "alloc.bytes");
    assert_eq!(bytes, 24.0);
    assert!(run.value("gc.minor") > 1.0 && run.value("heap.peak") > 0.0);
    assert_eq!(step(scales, words![bytecode], "alloc.bytes").0, 24.0);
    Ok(())
}

fn ruby(scales: &mut Scales) -> Done {
    installed("ruby")?;
    let (objects, run) = step(scales, words!["ruby", source("alloc.rb")], "alloc.objects");
    close(objects, 1.0, 0.001);
    close(run.value("alloc.bytes"), 40.0 * run.value("alloc.objects"), 1e-9);
    assert_eq!(run.value("gc.count"), run.value("gc.minor") + run.value("gc.major"));
    Ok(())
}

fn php(scales: &mut Scales) -> Done {
    installed("php")?;
    let (bytes, run) = step(scales, words!["php", source("alloc.php")], "alloc.bytes");
    assert_eq!(bytes, 40.0);
    assert!(run.value("heap.peak") > 0.0 && run.value("alloc.objects") >= LARGE);
    Ok(())
}

fn racket(scales: &mut Scales) -> Done {
    installed("racket")?;
    let (bytes, run) = step(scales, words!["racket", source("alloc.rkt")], "alloc.bytes");
    close(bytes, 16.0, 0.05);
    assert!(run.value("gc.minor") > 0.0);
    // Racket contains Chez Scheme, which is no second runtime.
    assert_eq!(run.reading("alloc.bytes").source, "racket");
    Ok(())
}

fn sbcl(scales: &mut Scales) -> Done {
    installed("sbcl")?;
    let (bytes, run) = step(scales, words!["sbcl", "--script", source("alloc.lisp")], "alloc.bytes");
    close(bytes, 16.0, 0.05);
    assert!(run.value("gc.count") >= 0.0);
    let file = source("alloc.lisp");
    let behind = scales.same(words!["nice", "sbcl", "--script", file, "1000"], &[]);
    assert_eq!(behind.reading("alloc.bytes").source, "sbcl");
    let child = format!("sbcl --script '{}' 1000; true", file.display());
    let child = scales.same(words!["/bin/sh", "-c", child], &[]);
    assert!(child.absent("alloc.bytes").contains("not a child"), "{}", child.absent("alloc.bytes"));
    Ok(())
}

fn lua(scales: &mut Scales) -> Done {
    installed("lua5.4")?;
    let run = scales.same(words!["lua5.4", source("alloc.lua"), "300000"], &[("LUA_INIT", "print('own')")]);
    assert!(run.value("gc.count") > 3.0);
    assert!(run.stdout.starts_with("own\n"));
    assert!(run.absent("alloc.bytes").contains("malloc.bytes"));
    Ok(())
}

fn r(scales: &mut Scales) -> Done {
    installed("Rscript")?;
    let run = scales.same(words!["Rscript", source("alloc.R"), "200000"], &[]);
    assert!(run.value("gc.count") > 1.0 && run.value("heap.peak") > 1e6);
    Ok(())
}

fn perl(scales: &mut Scales) -> Done {
    installed("perl")?;
    let run = scales.same(words!["perl", "-e", "print 'x' x 1000"], &[]);
    assert!(run.absent("alloc.bytes").contains("malloc.bytes"));
    Ok(())
}
