//! Tests with golden files of the real tools: which figures they contain, and what happens if they are truncated.
//!
//! All files under `tests/data/import` were written by the tools themselves: hyperfine 1.15, criterion 1.5.13,
//! criterion.rs 0.8, tasty-bench 0.3.4, weigh 0.0.16, Go 1.26, pytest-benchmark 5.3, google-benchmark 1.7 and
//! JMH 1.37. Only names of the host, its kernel and the project's folder were replaced.

use super::*;
use scruple_core::metric::{Pass, Quality};
use scruple_core::sample::{BLOCKS_OF_A_PROCESS, Sample};
use scruple_core::unit::Unit;

const GOLDEN: [(&str, Format); 16] = [
    ("hyperfine/params.json", Format::Hyperfine),
    ("hyperfine/shell.json", Format::Hyperfine),
    ("criterion/report.json", Format::Criterion),
    ("criterion/without-rts-statistics.json", Format::Criterion),
    ("criterion/summary.csv", Format::Criterion),
    ("tasty-bench/plain.csv", Format::TastyBench),
    ("weigh/all-columns.txt", Format::Weigh),
    ("weigh/default.txt", Format::Weigh),
    ("weigh/markdown.md", Format::Weigh),
    ("go/bench.txt", Format::Go),
    ("go/test2json.json", Format::Go),
    ("pytest-benchmark/report.json", Format::PytestBenchmark),
    ("google-benchmark/repetitions.json", Format::GoogleBenchmark),
    ("jmh/modes.json", Format::Jmh),
    ("criterion-rs/sum/fold/10/new/sample.json", Format::CriterionRs),
    ("critcmp.json", Format::CriterionRs),
];

fn golden(name: &str) -> String {
    let path = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/import").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn imported(name: &str) -> Imported {
    let text = golden(name);
    let format = recognise(&text).expect("recognised");
    read(format, &text).expect("readable")
}

fn names(imported: &Imported) -> Vec<&str> {
    imported.arms.iter().map(|arm| arm.name.as_str()).collect()
}

fn sample<'a>(imported: &'a Imported, name: &str, key: &str) -> &'a Sample {
    let arm = imported.arms.iter().find(|arm| arm.name == name).unwrap_or_else(|| panic!("no arm ‘{name}’"));
    arm.sample(key).unwrap_or_else(|| panic!("‘{name}’ has no {key}"))
}

fn number(value: f64) -> Parameter {
    Parameter::Number(value)
}

fn text(value: &str) -> Parameter {
    Parameter::Text(value.to_owned())
}

#[test]
fn every_golden_file_is_recognised() {
    for (name, format) in GOLDEN {
        assert_eq!(recognise(&golden(name)), Some(format), "{name}");
    }
    for other in ["", "{}", "[]", "hello", "{\"a\": [1, 2]}", "a,b\n1,2\n", "#!/bin/sh\necho Benchmark\n"] {
        assert_eq!(recognise(other), None, "{other:?}");
    }
}

#[test]
fn a_file_cut_anywhere_is_an_error_or_whole_readings_but_never_a_panic() {
    for (name, format) in GOLDEN {
        let whole = golden(name);
        let all = read(format, &whole).expect("readable");
        for cut in (0..whole.len()).step_by(97).filter(|cut| whole.is_char_boundary(*cut)) {
            let _ = recognise(&whole[..cut]);
            // A text format may end after any line. The part that is read must then be the beginning of the whole.
            let Ok(part) = read(format, &whole[..cut]) else { continue };
            assert!(
                !name.ends_with(".json") || format == Format::Go,
                "{name} cut at {cut} was taken for whole"
            );
            for arm in &part.arms {
                let full = all.arms.iter().find(|other| other.name == arm.name);
                let full = full.unwrap_or_else(|| panic!("{name} cut at {cut} has a new arm ‘{}’", arm.name));
                for (key, figure) in &arm.figures {
                    let (Some(part), Some(full)) = (arm.sample(key), full.sample(key)) else {
                        panic!("{name} cut at {cut}: {key} of ‘{}’ is {figure:?}", arm.name);
                    };
                    assert!(full.readings.starts_with(&part.readings), "{name} cut at {cut}: {key}");
                }
            }
        }
    }
}

#[test]
fn any_format_takes_any_text_without_a_panic() {
    for (_, format) in GOLDEN {
        for (name, _) in GOLDEN {
            let _ = read(format, &golden(name));
        }
        for hostile in [
            "",
            "[",
            "null",
            "[[[[[[",
            "{\"results\":[]}",
            "{\"results\":[{\"command\":\"\",\"times\":[-1]}]}",
            "{\"results\":[{\"command\":\"x\",\"times\":[1e300]}]}",
            "{\"benchmarks\":[{\"name\":\"/\",\"real_time\":1,\"cpu_time\":1,\"iterations\":0}]}",
            "[\"criterion\",\"1\",[{\"reportName\":\"x\",\"reportKeys\":[\"iters\"],\"reportMeasured\":[[0]]}]]",
            "{\"iters\":[0],\"times\":[1]}",
            "Name,Mean\n\"",
            "BenchmarkX 1 2\nBenchmarkX NaN inf ns/op\n",
            "Case  GCs\n 1\n",
        ] {
            assert!(read(format, hostile).is_err(), "{format:?}: {hostile}");
        }
        let deep = "[".repeat(100_000);
        assert!(read(format, &deep).is_err());
    }
}

#[test]
fn hyperfine_gives_every_run_and_estimated_processor_times() {
    let imported = imported("hyperfine/params.json");
    assert_eq!(names(&imported), ["sleep 0.001", "sleep 0.002"]);
    assert_eq!(imported.provenance.machine_class, "hyperfine/unknown");
    let arm = &imported.arms[0];
    assert_eq!(arm.params["n"], number(0.001));
    assert_eq!(arm.subject, Subject::Command { argv: vec!["sleep".into(), "0.001".into()] });
    let wall = sample(&imported, "sleep 0.001", "time.wall");
    assert_eq!(
        (wall.quality, wall.unit.clone(), wall.pass),
        (Quality::Noisy, Unit::Nanoseconds, Pass::Timing)
    );
    assert_eq!(wall.readings[0], 0.0030569810000000003 * 1e9);
    assert_eq!(wall.blocks, [0, 1, 2, 3, 4, 5]);
    // The commands ran one after the other, so their runs share no block.
    assert_eq!(sample(&imported, "sleep 0.002", "time.wall").blocks, [6, 7, 8, 9, 10, 11]);
    let user = sample(&imported, "sleep 0.001", "time.user");
    assert_eq!(
        (user.quality, user.readings.as_slice()),
        (Quality::Estimated, &[0.0006979999999999999 * 1e9][..])
    );
    assert_eq!(user.source, "hyperfine, mean of all runs");
    assert!(arm.sample("memory.peak").is_none() && arm.sample("time.cpu").is_none());
}

#[test]
fn hyperfine_is_doubted_where_it_wrote_zeros_or_programs_failed() {
    let imported = imported("hyperfine/shell.json");
    let codes: Vec<&str> = imported.warnings.iter().map(|warning| warning.code.as_str()).collect();
    assert_eq!(codes, ["exit-code", "below-resolution", "not-side-by-side"]);
    assert!(imported.warnings[1].text.starts_with("‘false’ has 4 readings of exactly 0"));
}

#[test]
fn hyperfine_without_times_gives_one_estimated_reading_and_memory_is_an_upper_bound() {
    // hyperfine 1.19 writes the memory. This text has the same form, but hyperfine did not write it.
    let text = r#"{"results":[{"command":"a","mean":0.5},
        {"command":"b","times":[1,2],"memory_usage_byte":[4096,8192],"exit_codes":[0,null]}]}"#;
    let imported = read(Format::Hyperfine, text).expect("readable");
    let a = sample(&imported, "a", "time.wall");
    assert_eq!(
        (a.quality, a.source.as_str(), a.readings.as_slice()),
        (Quality::Estimated, "hyperfine, mean", &[5e8][..])
    );
    let memory = sample(&imported, "b", "memory.peak");
    assert_eq!((memory.quality, memory.readings.as_slice()), (Quality::Estimated, &[4096.0, 8192.0][..]));
    assert_eq!(sample(&imported, "b", "time.wall").blocks, [1, 2]);
}

#[test]
fn criterion_gives_every_batch_and_the_counters_of_the_largest() {
    let imported = imported("criterion/report.json");
    assert_eq!(names(&imported), ["fib/9", "sum, \"quoted\""]);
    assert_eq!(imported.provenance.tool.as_deref(), Some("criterion 1.5.13.0"));
    let wall = sample(&imported, "fib/9", "time.wall");
    assert_eq!(wall.readings.len(), 169);
    assert_eq!(wall.readings[0], 1.8399996406515129e-06 * 1e9 / 1.0);
    assert_eq!(wall.readings[168], 0.050001192999843624 * 1e9 / 29576.0);
    assert_eq!(sample(&imported, "fib/9", "time.cpu").readings[168], 0.017963536000000002 * 1e9 / 29576.0);
    assert_eq!(sample(&imported, "fib/9", "batch.iterations").readings[168], 29576.0);
    let allocated = sample(&imported, "fib/9", "alloc.bytes");
    assert_eq!(
        (allocated.quality, allocated.readings.as_slice()),
        (Quality::Near, &[42591632.0 / 29576.0][..])
    );
    assert_eq!(sample(&imported, "fib/9", "gc.count").readings, [40.0 / 29576.0]);
}

#[test]
fn criterion_without_statistics_of_the_runtime_has_no_counters() {
    let imported = imported("criterion/without-rts-statistics.json");
    let arm = &imported.arms[0];
    assert_eq!(sample(&imported, "fib/9", "time.wall").readings.len(), 173);
    assert!(["alloc.bytes", "gc.count", "gc.time"].iter().all(|key| !arm.figures.contains_key(*key)));
}

#[test]
fn the_summary_of_criterion_gives_one_estimated_reading() {
    let imported = imported("criterion/summary.csv");
    assert_eq!(names(&imported), ["fib/9", "sum, \"quoted\""]);
    let wall = sample(&imported, "sum, \"quoted\"", "time.wall");
    assert_eq!((wall.quality, wall.source.as_str()), (Quality::Estimated, "criterion, mean"));
    assert_eq!(wall.readings, [4.054339768904794e-6 * 1e9]);
}

fn folder(path: &str) -> criterion_rs::CriterionFolder {
    criterion_rs::CriterionFolder {
        place: path.to_owned(),
        benchmark: Some(golden(&format!("criterion-rs/{path}/benchmark.json"))),
        sample: Some(golden(&format!("criterion-rs/{path}/sample.json"))),
        estimates: Some(golden(&format!("criterion-rs/{path}/estimates.json"))),
    }
}

#[test]
fn criterion_rs_gives_every_batch_with_the_value_as_parameter() {
    let folders = [folder("plain/new"), folder("sum/fold/10/new"), folder("sum/fold/1000/new")];
    let imported = criterion_rs::read(&folders).expect("readable");
    assert_eq!(names(&imported), ["plain", "sum/fold (value=10)", "sum/fold (value=1000)"]);
    let wall = sample(&imported, "sum/fold (value=1000)", "time.wall");
    assert_eq!((wall.readings.len(), wall.readings[0]), (10, 211859.0 / 315.0));
    assert_eq!(sample(&imported, "sum/fold (value=1000)", "batch.iterations").readings[9], 3150.0);
    assert_eq!(sample(&imported, "sum/fold (value=1000)", "work.bytes").readings, [8000.0]);
    assert_eq!(imported.arms[1].params["value"], number(10.0));
}

#[test]
fn a_batch_without_iterations_is_named() {
    let why = |text: &str| read(recognise(text).expect("recognised"), text).expect_err("wrong").to_string();
    let text = r#"{"sampling_mode": "Flat", "iters": [1.0, 0.0], "times": [5.0, 6.0]}"#;
    assert_eq!(why(text), "‘benchmark’: batch 2 of 2 has no iterations");
    let empty = text.replace("[1.0, 0.0]", "[]").replace("[5.0, 6.0]", "[]");
    assert_eq!(why(&empty), "‘benchmark’: it has no batches");
    assert_eq!(
        why(&text.replace("[1.0, 0.0]", "[1.0]")),
        "‘benchmark’: it has iterations of 1 batches and times of 2"
    );
}

#[test]
fn criterion_rs_without_its_sample_gives_the_slope() {
    let only = criterion_rs::CriterionFolder { sample: None, ..folder("plain/new") };
    let imported = criterion_rs::read(&[only]).expect("readable");
    let wall = sample(&imported, "plain", "time.wall");
    assert_eq!((wall.quality, wall.source.as_str()), (Quality::Estimated, "criterion.rs, slope"));
    let none = criterion_rs::CriterionFolder { sample: None, estimates: None, ..folder("plain/new") };
    assert!(criterion_rs::read(&[none]).is_err());
}

#[test]
fn weigh_gives_exact_counts_in_their_groups() {
    let imported = imported("weigh/all-columns.txt");
    assert_eq!(
        names(&imported),
        [
            "integers count 0",
            "integers count 100",
            "integers count 100000",
            "lists/replicate 10",
            "lists/replicate 1000",
            "lists/deep/enum"
        ]
    );
    let allocated = sample(&imported, "integers count 100000", "alloc.bytes");
    assert_eq!((allocated.quality, allocated.readings.as_slice()), (Quality::Exact, &[1_600_000.0][..]));
    assert_eq!(sample(&imported, "integers count 100000", "gc.count").readings, [1.0]);
    assert_eq!(sample(&imported, "lists/replicate 1000", "weigh.live").readings, [24_432.0]);
    assert_eq!(sample(&imported, "lists/deep/enum", "heap.live_max").readings, [1_656.0]);
    assert_eq!(imported.warnings.len(), 1);
    assert_eq!(
        imported.warnings[0].text,
        "weigh’s check of ‘lists/replicate 10’ failed: Allocated bytes exceeds 100: 432"
    );
}

#[test]
fn both_forms_of_weigh_say_the_same() {
    let (plain, markdown) = (imported("weigh/default.txt"), imported("weigh/markdown.md"));
    assert_eq!(names(&plain), ["integers count 0", "integers count 100000", "lists/replicate 1000"]);
    assert_eq!(plain.arms, markdown.arms);
}

#[test]
fn go_gives_every_run_with_sub_benchmarks_as_parameters() {
    let imported = imported("go/bench.txt");
    assert_eq!(
        names(&imported),
        [
            "example.com/words/Join (n=10, sep=comma)",
            "example.com/words/Join (n=10, sep=none)",
            "example.com/words/Join (n=100, sep=comma)",
            "example.com/words/Join (n=100, sep=none)",
            "example.com/words/Copy",
            "example.com/words/more/Count"
        ]
    );
    let join = "example.com/words/Join (n=10, sep=comma)";
    assert_eq!(imported.arms[0].params["n"], number(10.0));
    assert_eq!(imported.arms[0].params["sep"], text("comma"));
    assert_eq!(sample(&imported, join, "time.wall").readings, [176.7, 187.5, 167.8]);
    assert_eq!(sample(&imported, join, "time.wall").blocks, [0, 1, 2]);
    let bytes = sample(&imported, join, "alloc.bytes");
    assert_eq!((bytes.quality, bytes.readings.as_slice()), (Quality::Near, &[64.0, 64.0, 64.0][..]));
    assert_eq!(sample(&imported, join, "alloc.objects").readings, [1.0, 1.0, 1.0]);
    let copy = "example.com/words/Copy";
    assert_eq!(sample(&imported, copy, "work.bytes").readings, [4096.0]);
    assert_eq!(sample(&imported, copy, "go.p99_ns").unit, Unit::Nanoseconds);
    assert_eq!(sample(&imported, copy, "go.frobs_op").unit, Unit::Other("frobs/op".into()));
    assert!(sample(&imported, copy, "go.req_s").unit.is_rate());
    assert_eq!(imported.provenance.environment["GOMAXPROCS"], "2");
    assert_eq!(imported.provenance.cpu, "Intel(R) Xeon(R) Processor @ 2.50GHz");
}

#[test]
fn go_does_not_miss_the_figures_of_a_benchmark_that_only_runs_others() {
    let text = "pkg: b\n=== RUN   BenchmarkSub\nBenchmarkSub\n=== RUN   BenchmarkSub/n=1\nBenchmarkSub/n=1\n\
        BenchmarkSub/n=1-2 \t 725886 \t 8.631 ns/op\nBenchmarkSubst\n";
    let imported = read(Format::Go, text).expect("a benchmark");
    let remarks: Vec<&str> = imported.warnings.iter().map(|warning| warning.text.as_str()).collect();
    assert_eq!(remarks, ["‘BenchmarkSubst’ is left out: it has no line of results"]);
}

#[test]
fn go_tells_numbers_of_processors_apart() {
    let imported = imported("go/cpus.txt");
    assert_eq!(
        names(&imported),
        ["example.com/words/more/Count (GOMAXPROCS=1)", "example.com/words/more/Count (GOMAXPROCS=2)"]
    );
}

#[test]
fn the_events_of_go_are_put_together() {
    let imported = imported("go/test2json.json");
    assert_eq!(names(&imported), ["example.com/words/Copy"]);
    assert_eq!(sample(&imported, "example.com/words/Copy", "time.wall").readings, [178.0]);
    assert_eq!(imported.started, Some(1_795_200_997_137));
}

#[test]
fn a_line_of_go_that_ends_in_its_unit_is_not_another_unit() {
    assert!(read(Format::Go, "BenchmarkX-2 100 5 ns/o").is_err());
    assert!(read(Format::Go, "BenchmarkX-2 100 5 ns/op 3 allocs/op 7 B").is_err());
    assert!(read(Format::Go, "BenchmarkX-2 100 5 ns/op").is_ok());
}

#[test]
fn a_benchmark_of_go_that_prints_is_put_together_again() {
    let text = "pkg: example.com/a\nBenchmarkLoud-2   \thello\nfrom 3 of them\n    1000\t  23.18 ns/op\t  8 B/op\n\
        BenchmarkNext-2   \t  500\t  7 ns/op\nBenchmarkBad-2  \t--- FAIL: BenchmarkBad-2\n    x_test.go:5: boo\n\
        BenchmarkGlued-2  \tno end of line1000\t  5 ns/op\nPASS\n";
    let imported = read(Format::Go, text).expect("readable");
    assert_eq!(names(&imported), ["example.com/a/Loud", "example.com/a/Next"]);
    let (wall, bytes) = (
        sample(&imported, "example.com/a/Loud", "time.wall"),
        sample(&imported, "example.com/a/Loud", "alloc.bytes"),
    );
    assert_eq!((wall.readings.as_slice(), bytes.readings.as_slice()), (&[23.18][..], &[8.0][..]));
    let texts: Vec<&str> = imported.warnings.iter().map(|warning| warning.text.as_str()).collect();
    assert!(texts.contains(&"‘BenchmarkBad-2’ failed"), "{texts:?}");
    assert!(texts.iter().any(|text| text.starts_with("‘BenchmarkGlued-2’ is left out")), "{texts:?}");
}

#[test]
fn pytest_gives_every_round_and_the_clock_decides_the_metric() {
    let imported = imported("pytest-benchmark/report.json");
    assert_eq!(
        names(&imported),
        [
            "test_words.py/test_join (n=10, sep=,)",
            "test_words.py/test_join (n=100, sep=,)",
            "test_words.py/test_join (n=10, sep=)",
            "test_words.py/test_join (n=100, sep=)",
            "test_words.py/TestGroup/test_plain",
            "test_words.py/test_cpu"
        ]
    );
    let wall = sample(&imported, "test_words.py/test_join (n=10, sep=,)", "time.wall");
    assert_eq!((wall.readings.len(), wall.readings[0]), (7, 6.166999810375274e-07 * 1e9));
    let cpu = sample(&imported, "test_words.py/test_cpu", "time.cpu");
    assert_eq!((cpu.readings.len(), cpu.readings[0]), (4, 3.4296700000002735e-07 * 1e9));
    assert!(imported.arms[5].sample("time.wall").is_none());
    let provenance = &imported.provenance;
    assert_eq!(provenance.tool.as_deref(), Some("pytest-benchmark 5.3.1"));
    assert_eq!(provenance.machine_class, "pytest-benchmark/Intel(R)-Xeon(R)-Processor-@-2.50GHz");
    assert_eq!(
        (provenance.environment["host"].as_str(), provenance.environment["python"].as_str()),
        ("host", "3.11.7")
    );
    assert_eq!(provenance.commit.as_deref(), Some("7112331b1a541935908a5e696e67ce2f50d828b4"));
    assert_eq!(imported.started, Some(1_795_201_593_995));
}

#[test]
fn pytest_without_its_data_gives_the_median() {
    let imported = imported("pytest-benchmark/summary-only.json");
    let wall = sample(&imported, "test_words.py/TestGroup/test_plain", "time.wall");
    assert_eq!(
        (wall.quality, wall.source.as_str()),
        (Quality::Estimated, "pytest-benchmark, median of rounds")
    );
    assert_eq!(wall.readings, [3.498000296531245e-07 * 1e9]);
}

#[test]
fn google_gives_every_repetition_and_what_failed_is_absent() {
    let imported = imported("google-benchmark/repetitions.json");
    assert_eq!(
        names(&imported),
        [
            "BM_Copy (n=64)",
            "BM_Copy (n=512)",
            "BM_Copy (n=4096)",
            "BM_Two (n1=2, x=1)",
            "BM_Threads (threads=2)",
            "BM_Fails"
        ]
    );
    let name = "BM_Copy (n=64)";
    assert_eq!(
        sample(&imported, name, "time.wall").readings,
        [11.422027282618787, 2.972907009320944, 15.506631238891002]
    );
    assert_eq!(sample(&imported, name, "time.cpu").readings[0], 3.1043634676365572);
    assert_eq!(sample(&imported, name, "batch.iterations").readings, [961208.0; 3]);
    let bytes = sample(&imported, name, "work.bytes");
    assert_eq!((bytes.quality, bytes.readings.as_slice()), (Quality::Near, &[64.0][..]));
    assert_eq!(sample(&imported, name, "google.frobs").readings, [3.0; 3]);
    assert_eq!(sample(&imported, "BM_Two (n1=2, x=1)", "work.items").readings, [2.0]);
    let threads = sample(&imported, "BM_Threads (threads=2)", "time.wall");
    assert_eq!(threads.readings[0], 0.0001705351922023559 * 1e3);
    assert_eq!(imported.arms[5].absent("time.wall"), Some("no such device"));
    assert_eq!(imported.started, Some(1_795_201_000_000));
    assert_eq!((imported.provenance.cores, imported.provenance.load), (2, 6.52979));
    assert_eq!(imported.provenance.environment["host"], "host");
    assert_eq!(imported.warnings[0].code, "debug-library");
}

#[test]
fn google_with_aggregates_only_gives_the_median() {
    let imported = imported("google-benchmark/aggregates-only.json");
    assert_eq!(names(&imported), ["BM_Copy (n=64)"]);
    let wall = sample(&imported, "BM_Copy (n=64)", "time.wall");
    assert_eq!(wall.source, "google-benchmark, median of repetitions");
    assert_eq!((wall.quality, wall.readings.as_slice()), (Quality::Estimated, &[3.002713646084841][..]));
}

#[test]
fn jmh_gives_times_in_every_mode_with_a_process_for_each_fork() {
    let imported = imported("jmh/modes.json");
    let (name, forks) = ("org.example.Words/join (n=10, sep=comma)", BLOCKS_OF_A_PROCESS);
    let wall = sample(&imported, name, "time.wall");
    assert_eq!(wall.readings[0], 1.591631276088956 * 1e3);
    assert_eq!(wall.blocks, [0, 1, 2, forks, forks + 1, forks + 2]);
    assert_eq!(wall.by_process().len(), 2);
    let bytes = sample(&imported, name, "alloc.bytes");
    assert_eq!((bytes.quality, bytes.readings[0]), (Quality::Near, 56.137348772492516));
    assert_eq!(sample(&imported, name, "jmh.gc.time").unit, Unit::Nanoseconds);
    assert!(sample(&imported, name, "jmh.gc.alloc.rate").unit.is_rate());
    let many = sample(&imported, "org.example.Words/joinMany (n=10, sep=comma, threads=2)", "time.wall");
    assert_eq!((many.quality, many.readings[0]), (Quality::Estimated, 2.0 * 1e3 / 5.503288669173728));
    let sampled = sample(&imported, "org.example.Words/joinSampled (n=10, sep=comma)", "time.wall");
    assert_eq!((sampled.quality, sampled.readings.len()), (Quality::Sampled, 6));
    assert!((sampled.readings[0] - 12_677_504.0).abs() < 1e-3);
    let once = sample(&imported, "org.example.Words/joinOnce (n=100, sep=comma)", "time.wall");
    assert_eq!((once.quality, once.readings[0]), (Quality::Noisy, 6.769 * 1e3));
    assert!(imported.arms.iter().all(|arm| arm.figures.keys().all(|key| !key.contains("p0"))));
    assert_eq!(imported.provenance.environment["jdk"], "17.0.15");
}

#[test]
fn names_are_unique_and_harmless() {
    let text = r#"{"results":[{"command":"a\u001b[31m","times":[1]},{"command":"x","times":[1]},
        {"command":"x","times":[1]},{"command":"x #2","times":[1]}]}"#;
    let imported = read(Format::Hyperfine, text).expect("readable");
    assert_eq!(names(&imported), ["a\u{fffd}[31m", "x", "x #3", "x #2"]);
}

#[test]
fn errors_say_where_and_what() {
    let cut = read(Format::Hyperfine, "{\"results\":\n[{\"command\": \"x\", ").expect_err("cut");
    assert_eq!(
        cut.to_string(),
        "line 2, column 18: the text ends in the middle, as if the tool was interrupted or the file cut short"
    );
    let negative =
        read(Format::Hyperfine, "{\"results\":[{\"command\":\"x\",\"times\":[-1]}]}").expect_err("negative");
    assert_eq!(negative.to_string(), "‘x’: -1000000000 is not a possible reading of time.wall");
    let empty = read(Format::Hyperfine, "{\"results\":[]}").expect_err("empty");
    assert_eq!(empty.to_string(), "the whole text: it has no benchmarks");
    let unit = read(
        Format::GoogleBenchmark,
        "{\"benchmarks\":[{\"name\":\"b\",\"real_time\":1,\"cpu_time\":1,\"time_unit\":\"weeks\"}]}",
    );
    assert_eq!(unit.expect_err("unit").to_string(), "‘b’: ‘weeks’ is not a unit of time");
}
