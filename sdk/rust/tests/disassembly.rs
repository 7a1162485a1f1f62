//! Checks in the compiled code that case and tare of every pair of scalar types differ only by the body.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Runs a tool. Returns `None` if it is not installed.
fn run(command: &mut Command) -> Option<String> {
    let output = command.output().ok()?;
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// An instruction: its address, its mnemonic, and where it jumps to.
struct Instruction {
    address: u64,
    mnemonic: String,
    target: Option<u64>,
}

fn instruction(line: &str) -> Option<Instruction> {
    let (address, text) = line.trim().split_once(":\t")?;
    let mut words = text.split_whitespace();
    let mnemonic = words.next()?.to_owned();
    let target = words.next().and_then(|word| u64::from_str_radix(word, 16).ok());
    Some(Instruction {
        address: u64::from_str_radix(address, 16).ok()?,
        target: target.filter(|_| mnemonic.starts_with('j')),
        mnemonic,
    })
}

/// The mnemonics of each innermost loop of a function.
fn loops(function: &[Instruction]) -> Vec<Vec<&str>> {
    let mut found: Vec<Vec<&str>> = Vec::new();
    for (end, jump) in function.iter().enumerate() {
        let Some(start) = jump.target.filter(|target| *target <= jump.address) else { continue };
        let Some(begin) = function.iter().position(|one| one.address == start) else { continue };
        let body = &function[begin..=end];
        if body[..body.len() - 1].iter().all(|one| one.target.is_none_or(|target| target > one.address)) {
            found.push(body.iter().map(|one| one.mnemonic.as_str()).collect());
        }
    }
    found
}

/// Removes the instructions of `tare` from `case` in their order. Returns `None` if one is missing.
fn without<'a>(case: &[&'a str], tare: &[&str]) -> Option<Vec<&'a str>> {
    let mut due = tare.iter().peekable();
    let rest = case.iter().copied().filter(|one| due.next_if(|tare| *tare == one).is_none()).collect();
    due.next().is_none().then_some(rest)
}

#[test]
fn case_and_tare_of_each_pair_of_scalar_types_differ_by_the_body_alone() {
    let folder = folder();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let rustc = || {
        let mut rustc = Command::new("rustc");
        rustc.args(["--edition", "2024", "-O", "-C", "symbol-mangling-version=v0", "--out-dir"]);
        rustc.arg(&folder).env("CARGO_PKG_VERSION", "0");
        rustc
    };
    let library = ["--crate-name", "scruple_bench", "--crate-type", "rlib"];
    let built = run(rustc().args(library).arg(here.join("src/lib.rs")));
    let external = format!("scruple_bench={}", folder.join("libscruple_bench.rlib").display());
    let program = here.join("tests/disassembly/pairs.rs");
    let built = built.and_then(|_| run(rustc().arg("--extern").arg(external).arg(program)));
    let text = built.and_then(|_| {
        run(Command::new("objdump").args(["-d", "--no-show-raw-insn"]).arg(folder.join("pairs")))
    });
    let _ = std::fs::remove_dir_all(&folder);
    let Some(text) = text else { return eprintln!("not tested: there is no rustc or no objdump") };

    let mut seen = BTreeSet::new();
    for function in text.split("\n\n").filter(|function| function.contains("4Body5batch")) {
        let Some(types) = function.split_once("5Plain").and_then(|(_, rest)| rest.get(..2)) else { continue };
        let instructions: Vec<Instruction> = function.lines().filter_map(instruction).collect();
        let (cases, tares): (Vec<_>, Vec<_>) =
            loops(&instructions).into_iter().partition(|one| one.contains(&"pause"));
        // The loops for latency end with the addition on which the next argument depends.
        for chained in [true, false] {
            let chosen = |one: &Vec<&str>| one[..one.len() - 2].ends_with(&["add"]) == chained;
            let cases: BTreeSet<_> = cases.iter().filter(|one| chosen(one)).collect();
            let tares: BTreeSet<_> = tares.iter().filter(|one| chosen(one)).collect();
            assert!(!cases.is_empty() && !tares.is_empty(), "{types}: {function}");
            for (case, tare) in cases.iter().flat_map(|case| tares.iter().map(move |tare| (case, tare))) {
                // Between an integer and a floating-point number the tare moves the bits; the case converts them.
                let mut harness = (*tare).clone();
                if crosses(types) {
                    harness.remove(harness.iter().rposition(|one| *one == "movq").expect("a move of bits"));
                }
                let mut body =
                    without(case, &harness).unwrap_or_else(|| panic!("{types}: {case:?} {tare:?}"));
                body.retain(|one| *one != "pause");
                let identity = types.starts_with(&types[1..]);
                assert!(
                    !identity || body.is_empty(),
                    "{types}: an identity costs nothing: {case:?} {tare:?}"
                );
                // Conversions between floating-point and other numbers are long if values may not fit.
                let converts = |one: &&str| {
                    one.starts_with("mov") || ["and", "test", "not", "sete", "cwtl", "cltq"].contains(one)
                };
                assert!(
                    types.contains(['f', 'd']) || body.iter().all(converts),
                    "{types}: {case:?} {tare:?}"
                );
            }
        }
        seen.insert(types);
    }
    // The linker keeps one of several identical functions.
    assert!(seen.len() > 40, "{seen:?}");
}

fn crosses(types: &str) -> bool {
    types.chars().filter(|kind| "fd".contains(*kind)).count() == 1
}

fn folder() -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("scruple-disassembly-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the programs");
    folder
}
