//! Weighs one small program for each language runtime and writes the table of docs/runtimes.md.
//!
//! `cargo run --release -p scruple-measure --example runtimes -- docs/runtimes.md`
#![allow(clippy::print_stdout)]

use scruple_core::unit::grouped;
use scruple_measure::instrument::Instrument;
use scruple_measure::launcher::Launcher;
use scruple_measure::launcher::{Launch, LaunchOptions};
use scruple_measure::program::Program;
use scruple_measure::runtimes::{ALL, COMMON, Runtimes};
use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

/// A program of one runtime: how it is built and run, and what a step of it allocates.
struct Entry {
    runtime: &'static str,
    source: &'static str,
    /// The command that builds the program; `{}` is the source.
    build: &'static [&'static str],
    /// The command that runs the program; `{}` is the source, and the number of steps follows.
    run: &'static [&'static str],
    version: &'static [&'static str],
    metric: &'static str,
    /// The true value of the metric per step.
    step: f64,
    /// The smaller and the larger number of steps, whose runs are compared.
    steps: (u64, u64),
}

const SMALL: (u64, u64) = (1_000_000, 3_000_000);
const LARGE: (u64, u64) = (1_000_000, 9_000_000);

#[rustfmt::skip]
const ENTRIES: &[Entry] = &[
    Entry { runtime: "GHC", source: "alloc.hs", build: &["ghc", "-v0", "-O1", "-outputdir", "o", "-o", "hs", "{}"],
        run: &["./hs"], version: &["ghc", "--numeric-version"], metric: "alloc.bytes", step: 24.0, steps: LARGE },
    Entry { runtime: "GHC, -rtsopts=none (from memory)", source: "alloc.hs",
        build: &["ghc", "-v0", "-O1", "-rtsopts=none", "-outputdir", "o2", "-o", "hs2", "{}"],
        run: &["./hs2"], version: &["ghc", "--numeric-version"], metric: "alloc.bytes", step: 24.0, steps: LARGE },
    Entry { runtime: "CPython", source: "alloc.py", build: &[], run: &["/usr/bin/python3", "{}"],
        version: &["/usr/bin/python3", "--version"], metric: "alloc.objects", step: 2.9743, steps: SMALL },
    Entry { runtime: "Node.js", source: "alloc.cjs", build: &[], run: &["node", "{}"],
        version: &["node", "--version"], metric: "alloc.bytes", step: 40.0, steps: LARGE },
    Entry { runtime: "JVM (HotSpot)", source: "Alloc.java", build: &["javac", "-d", ".", "{}"], run: &["java", "-cp", ".", "Alloc"],
        version: &["javac", "-version"], metric: "alloc.bytes", step: 24.0, steps: LARGE },
    Entry { runtime: "Go", source: "alloc.go", build: &["go", "build", "-o", "goprog", "{}"], run: &["./goprog"],
        version: &["go", "env", "GOVERSION"], metric: "alloc.bytes", step: 16.0, steps: LARGE },
    Entry { runtime: "Go (objects)", source: "alloc.go", build: &["go", "build", "-o", "goprog", "{}"], run: &["./goprog"],
        version: &["go", "env", "GOVERSION"], metric: "alloc.objects", step: 1.0, steps: LARGE },
    Entry { runtime: "Guile (libgc)", source: "alloc.scm", build: &["guile", "{}", "10"], run: &["guile", "{}"],
        version: &["guile", "-c", "(display (version))"], metric: "alloc.bytes", step: 16.0, steps: LARGE },
    Entry { runtime: "OCaml", source: "alloc.ml", build: &["ocamlopt", "-o", "ml", "{}"], run: &["./ml"],
        version: &["ocamlopt", "-version"], metric: "alloc.bytes", step: 24.0, steps: LARGE },
    Entry { runtime: "Ruby", source: "alloc.rb", build: &[], run: &["ruby", "{}"],
        version: &["ruby", "--version"], metric: "alloc.objects", step: 1.0, steps: SMALL },
    Entry { runtime: "PHP", source: "alloc.php", build: &[], run: &["php", "{}"],
        version: &["php", "-r", "echo PHP_VERSION;"], metric: "alloc.bytes", step: 40.0, steps: SMALL },
    Entry { runtime: "Racket CS", source: "alloc.rkt", build: &[], run: &["racket", "{}"],
        version: &["racket", "--version"], metric: "alloc.bytes", step: 16.0, steps: LARGE },
    Entry { runtime: "SBCL", source: "alloc.lisp", build: &[], run: &["sbcl", "--script", "{}"],
        version: &["sbcl", "--version"], metric: "alloc.bytes", step: 16.0, steps: LARGE },
];

struct Scales {
    launcher: Launcher,
    instrument: Runtimes,
    folder: PathBuf,
}

/// One run: the processor time in nanoseconds, and the figure if it was requested.
struct MeasuredRun {
    cpu: f64,
    figure: Option<f64>,
    quality: &'static str,
}

impl Scales {
    fn run(&mut self, words: &[String], metric: Option<&str>) -> Result<MeasuredRun, Box<dyn Error>> {
        let program = Program::find(OsStr::new(&words[0]), &self.folder)?;
        let null = || File::options().read(true).write(true).open("/dev/null").map(Into::into);
        let mut launch = Launch {
            path: program.path.clone(),
            argv: words.iter().map(OsString::from).collect(),
            env: std::env::vars_os().collect(),
            folder: self.folder.clone(),
            stdio: [null()?, null()?, null()?],
            options: LaunchOptions::default(),
        };
        if metric.is_some() {
            self.instrument.decorate(&mut launch)?;
        }
        let outcome = self.launcher.launch(&launch, &AtomicBool::new(false))?;
        drop(launch);
        let mut run = MeasuredRun { cpu: (outcome.user + outcome.system) as f64, figure: None, quality: "" };
        if let Some(metric) = metric {
            let readings = self.instrument.read(&outcome);
            let reading = readings.iter().find(|reading| reading.key == metric).ok_or("no such metric")?;
            run.figure = Some(reading.value.clone()?);
            run.quality = reading.quality.word();
        }
        Ok(run)
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn first_line(words: &[&str]) -> Option<String> {
    let output = Command::new(words[0]).args(&words[1..]).output().ok()?;
    let text = [output.stdout, output.stderr].concat();
    let line = String::from_utf8_lossy(&text).lines().next()?.to_owned();
    let version = line.split_whitespace().map(|word| word.trim_matches(['[', ']', 'v', ','])).find(|word| {
        let word = word.trim_start_matches("go");
        word.contains('.') && word.starts_with(|c: char| c.is_ascii_digit())
    });
    version.map(|version| version.trim_start_matches("go").to_owned())
}

/// The largest relative error of a figure; most errors are much smaller.
const LARGEST_ERROR: f64 = 0.005;

/// The numbers of runs at the larger size: for the table that is written, and to check the figures, whose spread shows
/// from two runs on.
const WRITTEN: u32 = 5;
const CHECKED: u32 = 2;

/// A row of the table; `None` if the runtime is not installed.
fn row(scales: &mut Scales, entry: &Entry, rounds: u32) -> Result<Option<String>, Box<dyn Error>> {
    let Some(version) = first_line(entry.version) else { return Ok(None) };
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/runtimes/programs").join(entry.source);
    let copy = scales.folder.join(entry.source);
    fs::copy(&source, &copy)?;
    let fill = |words: &[&str]| -> Vec<String> {
        words.iter().map(|word| word.replace("{}", &copy.display().to_string())).collect()
    };
    let build = fill(entry.build);
    if let Some((compiler, words)) = build.split_first() {
        let output = Command::new(compiler).args(words).current_dir(&scales.folder).output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
        }
    }
    let command = |steps: u64| {
        let mut words = fill(entry.run);
        words.push(steps.to_string());
        words
    };
    let (few, many) = entry.steps;
    let small = scales.run(&command(few), Some(entry.metric))?.figure.ok_or("no figure")?;
    let mut figures = Vec::new();
    let mut ratios = Vec::new();
    let mut quality = "";
    for _ in 0..rounds {
        let plain = scales.run(&command(many), None)?;
        let weighed = scales.run(&command(many), Some(entry.metric))?;
        ratios.push(weighed.cpu / plain.cpu);
        figures.push(weighed.figure.ok_or("no figure")?);
        quality = weighed.quality;
    }
    let most = figures.iter().copied().fold(0.0, f64::max);
    let least = figures.iter().copied().fold(f64::INFINITY, f64::min);
    let figure = median(figures);
    let truth = entry.step * (many - few) as f64;
    let error = (figure - small) / truth - 1.0;
    let spread = (most - least) / figure;
    if error.abs() > LARGEST_ERROR {
        return Err(format!("{figure} instead of {truth} more than at the smaller size").into());
    }
    Ok(Some(format!(
        "| {} | {version} | `{}` | {quality} | {} | {} | {} | {} | {} | {:.2} |\n",
        entry.runtime,
        entry.metric,
        grouped(figure),
        grouped(truth),
        grouped(figure - small),
        percent(error),
        percent(spread),
        median(ratios),
    )))
}

fn percent(share: f64) -> String {
    match share {
        0.0 => "0".to_owned(),
        share if share.abs() < 5e-7 => "< 0.0001 %".to_owned(),
        share => format!("{:.4} %", share * 100.0),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let launcher = Launcher::start()?;
    let folder = std::env::temp_dir().join(format!("scruple-runtimes-bench-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let mut scales = Scales { launcher, instrument: Runtimes::new(), folder: folder.clone() };
    let head = include_str!("runtimes.head.md");
    let mut text = head.to_owned();
    let mut missing = Vec::new();
    let path = std::env::args().nth(1);
    let rounds = if path.is_some() { WRITTEN } else { CHECKED };
    print!("{}", head.rsplit("\n\n").next().unwrap_or_default());
    for entry in ENTRIES {
        match row(&mut scales, entry, rounds).map_err(|why| format!("{}: {why}", entry.runtime))? {
            Some(row) => {
                print!("{row}");
                text.push_str(&row);
            }
            None => {
                println!("skipped: {} is not installed", entry.runtime);
                missing.push(entry.runtime);
            }
        }
    }
    if !missing.is_empty() {
        writeln!(text, "\nNot on the machine where this table was made: {}.", missing.join(", "))?;
    }
    writeln!(text, "\n## What each runtime reports\n")?;
    writeln!(text, "| | {} |", COMMON.join(" | "))?;
    writeln!(text, "|---|{}", "---|".repeat(COMMON.len()))?;
    for runtime in ALL {
        let cells: Vec<&str> =
            COMMON.iter().map(|key| if runtime.why_not(key).is_none() { "yes" } else { "" }).collect();
        writeln!(text, "| {} | {} |", runtime.word(), cells.join(" | "))?;
    }
    writeln!(text, "\nWhat is left blank, and what to look at instead:\n")?;
    for runtime in ALL {
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for key in COMMON {
            let Some(why) = runtime.why_not(key) else { continue };
            match reasons.iter_mut().find(|(known, _)| *known == why) {
                Some((_, keys)) => keys.push(key),
                None => reasons.push((why, vec![key])),
            }
        }
        for (why, keys) in reasons {
            writeln!(text, "- **{}** `{}`: {why}.", runtime.word(), keys.join("` `"))?;
        }
    }
    fs::remove_dir_all(&folder)?;
    if let Some(path) = path {
        let path = Path::new(&path);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(path, text)?;
    }
    Ok(())
}
