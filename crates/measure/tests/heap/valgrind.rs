//! Tests that the counts of ordinary programs equal valgrind's to the call and the byte.
//!
//! Both runs have the same arguments, addresses (`setarch -R`) and environment: the counter hides its variables, and
//! the program gets valgrind's, whose libraries do nothing without it. valgrind would free what the C and C++
//! libraries still hold when a program ends, which an option turns off. Other options turn off what it does beside
//! counting.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use scruple_measure::heap::{HeapSession, LiveBytes, Process, Totals};

use crate::harness::{Workshop, found, skip};

const BOTH: [&str; 4] = [
    "--child-silent-after-fork=yes",
    "--run-libc-freeres=no",
    "--run-cxx-freeres=no",
    "--read-inline-info=no",
];
const MEMCHECK: [&str; 4] =
    ["--leak-check=no", "--undef-value-errors=no", "--keep-stacktraces=none", "--num-callers=1"];
const DHAT: [&str; 3] = ["--tool=dhat", "--dhat-out-file=/dev/null", "--num-callers=1"];

type HeapSums = (u64, u64, u64);

/// Known reasons for which the counts may differ.
#[derive(Clone, Copy, PartialEq)]
enum Rule {
    Same,
    /// The dynamic linker's table for each new thread has one more entry of 16 bytes, for the counter's thread-local
    /// data.
    Threads,
    /// gcc's collector keeps a table of 4096 pointers for each 4 GiB region in which it has memory. With valgrind's
    /// placement of mappings there are more regions: two for 28 MB.
    Regions,
    /// CPython converts addresses to integers (json does so for every object it visits). These take 4 bytes less for
    /// the low addresses of valgrind.
    Integers,
}

/// Held during each run, so that runs of valgrind, which are slow enough, do not compete.
static TURN: Mutex<()> = Mutex::new(());

struct Scale {
    workshop: Workshop,
    /// The empty folder in which programs run: CPython reads the names of all files in it.
    empty: PathBuf,
    valgrind: PathBuf,
    /// The variables that valgrind sets in the program's environment.
    sets: Vec<(String, String)>,
}

impl Scale {
    fn new() -> Option<Scale> {
        let valgrind = found("valgrind")?;
        found("setarch")?;
        let shown = Command::new(&valgrind).args(["-q", "/usr/bin/env"]).env_clear().output().unwrap();
        let shown = String::from_utf8(shown.stdout).unwrap();
        let sets = shown.lines().filter_map(|line| line.split_once('='));
        let sets = sets.filter(|(name, _)| !matches!(*name, "PWD" | "_" | "SHLVL"));
        let sets = sets.map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let workshop = Workshop::new();
        let empty = workshop.path().join("empty");
        std::fs::create_dir(&empty).unwrap();
        Some(Scale { workshop, empty, valgrind, sets })
    }

    fn command(&self, wrapper: &[&str], words: &[&str]) -> Command {
        let mut command = Command::new("setarch");
        command.arg("-R").args(wrapper).args(words).env_clear().stdin(Stdio::null());
        command
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.workshop.path())
            .env("LC_ALL", "C");
        command
            .env("PYTHONMALLOC", "malloc")
            .env("PYTHONHASHSEED", "0")
            .env("PERL_HASH_SEED", "0")
            .env("VALGRIND", "1");
        // Debian's valgrind is a shell script, and the shell sets this.
        command.current_dir(&self.empty).env("PWD", &self.empty);
        command
    }

    /// Runs the program under the counter.
    fn ours(&self, peak: LiveBytes, words: &[&str]) -> Totals {
        let session = HeapSession::start(self.workshop.path(), peak).unwrap();
        let preload = self.sets.iter().find(|(name, _)| name == "LD_PRELOAD");
        let mut command = self.command(&[], words);
        command.envs(self.sets.iter().map(|(name, value)| (name, value)));
        command.envs(session.environment(preload.map(|(_, value)| OsStr::new(value))));
        command.output().unwrap();
        session.read().unwrap()
    }

    fn valgrind(&self, options: &[&str], words: &[&str]) -> String {
        let valgrind = self.valgrind.to_str().unwrap();
        let wrapper: Vec<&str> = [valgrind].iter().chain(&BOTH).chain(options).copied().collect();
        let mut command = self.command(&wrapper, words);
        String::from_utf8_lossy(&command.output().unwrap().stderr).into_owned()
    }

    /// Checks that both counts of one program agree, apart from differences that `Rule` permits.
    fn check(&self, words: &[&str], rule: Rule) {
        let _turn = TURN.lock();
        let totals = self.ours(LiveBytes::Usable, words);
        let text = self.valgrind(&MEMCHECK, words);
        let usage = text.lines().find_map(|line| line.split_once("total heap usage: ")).expect(&text).1;
        let numbers: Vec<u64> = numbers(usage);
        let theirs = (numbers[0], numbers[2], numbers[1]);
        let counts = target(&totals).counts;
        let ours = (counts.allocations, counts.bytes, counts.frees);
        eprintln!(
            "{:<28} {:>9} {:>11} {:>9}   {}",
            name(words),
            ours.0,
            ours.1,
            ours.2,
            verdict(ours, theirs)
        );
        match rule {
            Rule::Same => assert_eq!(ours, theirs, "{words:?}"),
            Rule::Regions => {
                let more = theirs.0.wrapping_sub(ours.0);
                assert!(more <= 2, "{words:?}");
                assert_eq!((theirs.1.wrapping_sub(ours.1), theirs.2), (more * 4096 * 8, ours.2), "{words:?}");
            }
            Rule::Integers => {
                let more = ours.1.wrapping_sub(theirs.1);
                assert_eq!((ours.0, ours.2), (theirs.0, theirs.2), "{words:?}");
                assert!(more < theirs.1 / 200, "{words:?}");
            }
            Rule::Threads => {
                let more = ours.1.wrapping_sub(theirs.1);
                assert!(
                    (ours.0, ours.2) == (theirs.0, theirs.2) && more.is_multiple_of(16) && more <= 64 * 16,
                    "{words:?}"
                );
            }
        }
    }
}

/// The record of the program that `setarch` executed.
fn target(totals: &Totals) -> &Process {
    totals.processes.iter().find(|process| !process.exe.ends_with("/setarch")).unwrap()
}

fn name<'a>(words: &[&'a str]) -> &'a str {
    words[0].rsplit('/').next().unwrap_or(words[0])
}

fn verdict(ours: HeapSums, theirs: HeapSums) -> String {
    if ours == theirs { "same".into() } else { format!("valgrind: {} {} {}", theirs.0, theirs.1, theirs.2) }
}

/// The numbers in valgrind's line "1,335 allocs, 213 frees, 740,854 bytes allocated".
fn numbers(text: &str) -> Vec<u64> {
    text.replace(',', "").split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

fn output_of(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_string())
}

#[test]
fn real_programs_count_as_under_memcheck() {
    let Some(scale) = Scale::new() else { return };
    let text = scale.workshop.path().join("text");
    let lines: String = (0..3000).map(|i| format!("{} line {i} {}\n", i * 7919 % 3001, i % 17)).collect();
    std::fs::write(&text, lines).unwrap();
    let text = text.to_str().unwrap();
    let repository = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let query = "create table t(a,b); with recursive c(x) as (select 1 union all select x+1 from c where x<2000) \
                 insert into t select x, x*x from c; select count(*), sum(b) from t group by a%10;";
    let programs: [&[&str]; 15] = [
        &["/usr/bin/git", "-C", repository, "log", "--stat", "-n", "20"],
        &["/usr/bin/sort", text],
        &["/bin/grep", "-n", "line 1.*7$", text],
        &["/usr/bin/xz", "-0kc", text],
        &["/usr/bin/sqlite3", ":memory:", query],
        &["/usr/bin/perl", "-e", "my %h; $h{$_}=[$_] for 1..3000; print scalar keys %h"],
        &["/usr/bin/perl", "-e", "$ENV{A} = 1; system('true'); print `echo $ENV{A}`, keys %ENV"],
        &["/usr/bin/mawk", "{n[$3]++} END{for(k in n) print k,n[k]}", text],
        &["/usr/bin/jq", "-n", "[range(3000)|{a:.}]|length"],
        &["/bin/sed", "s/line/row/g", text],
        &["/bin/tar", "cf", "-", text],
        &["/bin/bash", "-c", "for i in {1..500}; do x[i]=$i; done; echo ${#x[@]}"],
        &["/bin/ls", "-l", "/usr/bin"],
        &["/usr/bin/find", "/usr/include", "-name", "c*"],
        &["/usr/bin/diff", text, "/etc/passwd"],
    ];
    let mut checked = 0;
    for words in programs {
        if Path::new(words[0]).exists() {
            scale.check(words, Rule::Same);
            checked += 1;
        } else {
            skip(&format!("{} is not installed", words[0]));
        }
    }
    if Path::new("/usr/bin/zstd").exists() {
        scale.check(&["/usr/bin/zstd", "-qc", text], Rule::Threads);
    }
    assert!(checked >= 4, "this machine has hardly any of these programs");
}

#[test]
fn python_counts_as_under_memcheck() {
    let Some(scale) = Scale::new() else { return };
    let Some(python) = output_of("python3", &["-c", "import sys; print(sys.executable)"]) else { return };
    let work = "import json; print(len(json.dumps([{'a': i} for i in range(5000)])))";
    scale.check(&[&python, "-S", "-c", work], Rule::Integers);
}

#[test]
fn a_compiler_counts_as_under_memcheck() {
    let Some(scale) = Scale::new() else { return };
    let compiler = output_of("gcc", &["-print-prog-name=cc1"]).filter(|path| Path::new(path).is_file());
    let Some(compiler) = compiler else { return skip("gcc is not installed") };
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/heap/programs/peak.c");
    // Debian's headers are in a folder for the architecture, which gcc tells its compiler.
    let architecture = output_of("gcc", &["-print-multiarch"]).filter(|name| !name.is_empty());
    let headers = architecture.map_or_else(Vec::new, |name| vec!["-imultiarch".to_owned(), name]);
    let mut words = vec![compiler.as_str(), "-quiet", "-O0", source, "-o", "/dev/null"];
    words.extend(headers.iter().map(String::as_str));
    scale.check(&words, Rule::Regions);
}

#[test]
fn our_own_programs_count_as_under_memcheck() {
    let Some(scale) = Scale::new() else { return };
    let c = scale.workshop.c("entry_points.c", &[]);
    let cc = scale.workshop.compile("c++", "containers.cc", &["-std=c++17"]);
    let threads = scale.workshop.c("threads.c", &["-pthread"]);
    scale.check(&[c.to_str().unwrap()], Rule::Same);
    scale.check(&[cc.to_str().unwrap()], Rule::Same);
    scale.check(&[threads.to_str().unwrap(), "64", "20", "together"], Rule::Threads);
    if found("rustc").is_some() {
        let rust = scale.workshop.compile("rustc", "boxes.rs", &["-O"]);
        scale.check(&[rust.to_str().unwrap()], Rule::Same);
    }
}

#[test]
fn the_requested_peak_is_that_of_dhat() {
    let Some(scale) = Scale::new() else { return };
    let programs = [
        scale.workshop.c("entry_points.c", &[]),
        scale.workshop.c("peak.c", &[]),
        scale.workshop.compile("c++", "containers.cc", &["-std=c++17"]),
    ];
    let mut commands: Vec<Vec<&str>> = programs.iter().map(|path| vec![path.to_str().unwrap()]).collect();
    commands.push(vec!["/bin/ls", "-l", "/usr/bin"]);
    let repository = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    if Path::new("/usr/bin/git").exists() {
        commands.push(vec!["/usr/bin/git", "-C", repository, "log", "--oneline", "-n", "50"]);
    }
    if Path::new("/usr/bin/mawk").exists() {
        commands.push(vec![
            "/usr/bin/mawk",
            "BEGIN { for (i = 0; i < 3000; i++) a[i] = i \"x\"; print length(a) }",
        ]);
    }
    for words in commands {
        let _turn = TURN.lock();
        let totals = scale.ours(LiveBytes::Requested, &words);
        let text = scale.valgrind(&DHAT, &words);
        let after = |mark: &str| numbers(text.split_once(mark).expect(&text).1)[0];
        let theirs = (after("At t-gmax:"), after("At t-end:"));
        let live = target(&totals).counts.live.unwrap();
        let ours = (live.peak, live.bytes as u64);
        eprintln!("{:<28} peak {:>9}  end {:>9}", name(&words), ours.0, ours.1);
        assert_eq!(ours, theirs, "{words:?}");
    }
}
