//! Tests of counting a command's instructions, and of removing sources of variation.

use crate::harness::{Workshop, cache, skip};
use scruple_measure::instructions::{Hardware, HardwareEvent, Instructions, steady};
use scruple_measure::instrument::Instrument;
use scruple_measure::launcher::{Ending, Launch, LaunchOptions, LaunchResult};
use scruple_measure::program::Program;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Command;

fn launch(path: &Path, arguments: &[&str], env: &[(&str, &str)]) -> Launch {
    let null = || OwnedFd::from(File::options().read(true).write(true).open("/dev/null").unwrap());
    Launch {
        path: path.to_owned(),
        argv: std::iter::once("short").chain(arguments.iter().copied()).map(Into::into).collect(),
        env: env.iter().map(|(name, value)| (name.into(), value.into())).collect(),
        folder: std::env::temp_dir(),
        stdio: [null(), null(), null()],
        options: LaunchOptions::default(),
    }
}

fn count(
    workshop: &Workshop,
    program: &Path,
    arguments: &[&str],
    env: &[(&str, &str)],
) -> Result<f64, String> {
    let mut instrument = Instructions::new(std::process::id() as i32, workshop.path(), &cache());
    instrument.available(&Program { path: program.to_owned() })?;
    let mut launch = launch(program, arguments, env);
    instrument.decorate(&mut launch)?;
    let mut command = Command::new(&launch.path);
    command.args(&launch.argv[1..]).env_clear().envs(launch.env.iter().map(|(name, value)| (name, value)));
    assert!(command.current_dir(&launch.folder).output().unwrap().status.success(), "{command:?}");
    let readings = instrument.read(&LaunchResult::ended(Ending::Exited(0)));
    let keys: Vec<&str> = readings.iter().map(|reading| reading.key.as_str()).collect();
    assert_eq!(keys, instrument.metrics(), "each is there, if only as absent");
    let reading = readings.into_iter().next().unwrap();
    assert!(!reading.source.is_empty());
    reading.value
}

#[test]
fn python_with_its_random_hashes_counts_the_same_twice() {
    let Some(workshop) = Workshop::new() else { return };
    let python = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().unwrap();
    let python = String::from_utf8(python.stdout).unwrap();
    let words = ["-S", "-c", "print(len({str(i) for i in range(2000)}))"];
    let first = count(&workshop, Path::new(python.trim()), &words, &[("PATH", "/usr/bin:/bin")]).unwrap();
    let again = count(&workshop, Path::new(python.trim()), &words, &[("PATH", "/usr/bin:/bin")]).unwrap();
    assert!(first > 1e6);
    assert_eq!(first, again);
}

#[test]
fn counts_of_goroutines_that_allocate_vary_little() {
    let Some(workshop) = Workshop::new() else { return };
    let Some(program) = workshop.compile_go(Path::new("goroutines.go"), 18, &[]) else { return };
    let count = || count(&workshop, &program, &[], &[("PATH", "/usr/bin:/bin")]).unwrap();
    let counts = [count(), count(), count(), count()];
    let (least, most) =
        (counts.iter().copied().fold(f64::MAX, f64::min), counts.iter().copied().fold(0.0, f64::max));
    assert!(most - least < 0.01 * least, "{counts:?}");
}

#[test]
fn v8_compiles_and_collects_at_the_same_places_in_each_launch() {
    let Some(workshop) = Workshop::new() else { return };
    let node = Command::new("node").args(["-e", "console.log(process.execPath)"]).output().unwrap();
    let node = PathBuf::from(String::from_utf8(node.stdout).unwrap().trim());
    let script = "let map = new Map();\n\
        for (let i = 0; i < 100000; i++) map.set('k' + i % 5000, {i, a: [i, i + 1]});\n\
        if (process.argv[1] !== 'word' || map.size !== 5000) process.exit(1);";
    let count = || count(&workshop, &node, &["-e", script, "word"], &[("PATH", "/usr/bin:/bin")]).unwrap();
    let counts = [count(), count()];
    let (least, most) =
        (counts.iter().copied().fold(f64::MAX, f64::min), counts.iter().copied().fold(0.0, f64::max));
    // Without its options for V8, counts vary by 1 to 3 %.
    assert!(most - least < 3e-4 * least, "{counts:?}");
}

#[test]
fn variables_that_come_and_go_do_not_count() {
    let Some(workshop) = Workshop::new() else { return };
    let program = workshop.compile("known.c", &[]);
    // These variables are set in this process, so they do not count as set for the command.
    let own: Vec<(String, String)> = std::env::vars().collect();
    let own: Vec<(&str, &str)> = own.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let kept = ["PATH", "HOME"];
    let few: Vec<(&str, &str)> = own.iter().copied().filter(|(name, _)| kept.contains(name)).collect();
    let mut more = few.clone();
    more.extend(own.iter().copied().filter(|(name, _)| name.starts_with("NEXTEST") || *name == "OLDPWD"));
    more.push(("SCRUPLE_PADDING", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxx"));
    assert_eq!(count(&workshop, &program, &[], &few), count(&workshop, &program, &[], &more));
}

#[test]
fn variables_that_are_set_for_a_command_are_kept() {
    let set = [("PYTHONHASHSEED", "7"), ("MY_OWN", "kept"), ("GODEBUG", "gctrace=1")];
    let mut launch = launch(Path::new("/bin/true"), &["word"], &set);
    steady(&mut launch);
    let value = |name: &str| {
        let found = launch.env.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value.to_str().unwrap().to_owned())
    };
    assert_eq!(value("PYTHONHASHSEED").as_deref(), Some("7"));
    assert_eq!(value("MY_OWN").as_deref(), Some("kept"));
    assert_eq!(value("GODEBUG").as_deref(), Some("gctrace=1,asyncpreemptoff=1,gcstoptheworld=1"));
    assert_eq!(value("PERL_HASH_SEED").as_deref(), Some("0"));
    assert_eq!(launch.argv, ["/bin/true", "word"]);
    assert!(launch.options.fixed_addresses);
    let mut sorted = launch.env.clone();
    sorted.sort();
    assert_eq!(launch.env, sorted);
}

#[test]
fn a_counter_is_inherited_by_programs_that_begin_later() {
    // The kernel counts page faults itself, so this tests the inheritance of counters on any processor.
    let touch = |pages: u32| {
        let counter = Hardware::attach(HardwareEvent::PageFaults, 0)?;
        assert!(counter.read().is_err(), "nothing was executed yet");
        let program =
            format!("import mmap\nm = mmap.mmap(-1, 1 << 26)\nfor i in range({pages}): m[i * 4096] = 1");
        assert!(Command::new("python3").args(["-S", "-c", &program]).status().unwrap().success());
        counter.read()
    };
    let (few, many) = match (touch(10), touch(5010)) {
        (Ok(few), Ok(many)) => (few, many),
        (Err(why), _) | (_, Err(why)) => {
            skip(&why.to_string());
            return;
        }
    };
    assert!((4_000..6_000).contains(&(many - few)), "{few} {many}");
}

#[test]
fn where_the_processor_does_not_count_the_reason_is_given() {
    match Hardware::available() {
        Ok(()) => assert!(Hardware::attach(HardwareEvent::Cycles, 0).is_ok()),
        Err(why) => {
            assert!(why.contains("counter") || why.contains("permit") || why.contains("kernel"), "{why}")
        }
    }
}
