//! `cargo test --benches` runs each case once, and does not weigh.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

const MANIFEST: &str = r#"
[package]
name = "micro"
version = "0.1.0"
edition = "2024"

[dependencies]
scruple-bench = { path = "scruple-bench" }

[[bench]]
name = "micro"
harness = false

[workspace]
"#;

const BENCH: &str = r#"
use std::io::Write;

fn note(word: &str) {
    let file = std::fs::OpenOptions::new().append(true).create(true).open(std::env::var_os("NOTES").unwrap());
    writeln!(file.unwrap(), "{word}").unwrap();
}

fn main() {
    let mut bench = scruple_bench::Bench::new();
    bench.case("plain", || note("plain"));
    bench.case_setup("sum", || { note("set up"); vec![1, 2] }, |v| v.iter().sum::<u64>())
        .param("n", 2)
        .check(|sum| if *sum == 3 { Ok(None) } else { Err("not 3".to_owned()) });
    bench.case("wrong", || 4).check(|_| Err("it is four".to_owned()));
    bench.case("throws", || panic!("no luck"));
    bench.main()
}
"#;

/// A package with one bench, in a folder of its own, with a copy of the SDK as a member of its workspace.
fn package(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("benches")).expect("a folder for the package");
    fs::create_dir_all(folder.join("src")).expect("a folder for the package");
    for (file, text) in [("Cargo.toml", MANIFEST), ("benches/micro.rs", BENCH), ("src/lib.rs", "")] {
        fs::write(folder.join(file), text).expect("a file of the package");
    }
    let copy = folder.join("scruple-bench");
    fs::create_dir(&copy).expect("a folder for the SDK");
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR"));
    let parts = ["Cargo.toml", "src", "benches"].map(|part| sdk.join(part));
    let copied = Command::new("cp").arg("-r").args(parts).arg(&copy).status().expect("cp can be started");
    assert!(copied.success(), "the SDK is copied");
    folder
}

fn cargo_test(folder: &Path, words: &[&str]) -> (Output, String) {
    let notes = folder.join("notes");
    let _ = fs::remove_file(&notes);
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["test", "--offline", "--quiet", "--benches", "--"]).args(words);
    cargo.current_dir(folder).env("NOTES", &notes).env("CARGO_TARGET_DIR", folder.join("target"));
    let output = cargo.output().expect("Cargo can be started");
    (output, fs::read_to_string(notes).unwrap_or_default())
}

#[test]
fn every_case_runs_once_and_failures_decide_the_exit_code() {
    let folder = package("each-once");
    let (output, notes) = cargo_test(&folder, &[]);
    let said = String::from_utf8_lossy(&output.stdout);
    for line in
        ["test plain ... ok", "test sum (n=2) ... ok", "test wrong ... FAILED", "test throws ... FAILED"]
    {
        assert!(said.contains(line), "{line}: {output:?}");
    }
    let reasons = String::from_utf8_lossy(&output.stderr);
    assert!(reasons.contains("wrong: it is four") && reasons.contains("throws: no luck"), "{reasons}");
    assert_eq!((notes.as_str(), output.status.code()), ("plain\nset up\n", Some(101)));

    let (output, notes) = cargo_test(&folder, &["plain", "--nocapture"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        (notes.as_str(), String::from_utf8_lossy(&output.stdout).matches("... ok").count()),
        ("plain\n", 1)
    );

    let (output, notes) = cargo_test(&folder, &["--list"]);
    assert!(output.status.success() && notes.is_empty(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("sum (n=2): benchmark"), "{output:?}");
}
