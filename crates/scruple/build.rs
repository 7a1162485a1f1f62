//! Asks the linker for a smaller program, where the linker is the one that is known to do it, and for one that starts
//! sooner where tests start it thousands of times.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// Nothing unwinds in a release (`panic = "abort"`), so the unwinding tables, a tenth of the program, are not needed.
/// Unit tests that are built as a release can pass, but a failed one ends them all.
const WITHOUT_TABLES: &str = "SECTIONS { /DISCARD/ : {
    *(.eh_frame) *(.eh_frame.*) *(.gcc_except_table) *(.gcc_except_table.*)
} } INSERT AFTER .text;
";

/// The compiler from which on `rust-lld` links programs for this system, if it comes with the compiler.
const LINKER_SINCE: u32 = 90;

/// The version of the GNU C library from which on programs may have packed relative relocations.
const PACKED_SINCE: u32 = 36;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if env::var("PROFILE").as_deref() != Ok("release") {
        // A program at a fixed address has no relocations. A debug build has 100,000, which take a third of a start.
        if env::var("CARGO_CFG_TARGET_ENV").as_deref() == Ok("gnu") {
            println!("cargo::rustc-link-arg-bins=-no-pie");
        }
        return;
    }
    if !linked_by_lld() {
        return;
    }
    let Ok(folder) = env::var("OUT_DIR") else { return };
    let script = Path::new(&folder).join("without-tables.ld");
    fs::write(&script, WITHOUT_TABLES).expect("OUT_DIR can be written");
    println!("cargo::rustc-link-arg-bins=-Wl,-T,{}", script.display());
    // Functions with the same machine code are linked once. Nothing compares addresses of functions.
    println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    if has_packed_relocations() {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// Whether the program is linked by the `rust-lld` of the compiler, which no setting has replaced by another linker.
fn linked_by_lld() -> bool {
    let target = "x86_64-unknown-linux-gnu";
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let of_the_compiler = env::var_os("RUSTC_LINKER").is_none() && !flags.contains("link");
    env::var("TARGET").as_deref() == Ok(target)
        && of_the_compiler
        && output_of(&env::var("RUSTC").unwrap_or_default(), &["--version"])
            .and_then(|version| version.split('.').nth(1)?.parse::<u32>().ok())
            .is_some_and(|minor| minor >= LINKER_SINCE)
        && output_of(&env::var("RUSTC").unwrap_or_default(), &["--print", "sysroot"]).is_some_and(|root| {
            Path::new(root.trim()).join("lib/rustlib").join(target).join("bin/gcc-ld/ld.lld").exists()
        })
}

/// Whether this machine's C library reads packed relocations. A program that is built here then needs one that does.
fn has_packed_relocations() -> bool {
    env::var("HOST") == env::var("TARGET")
        && output_of("getconf", &["GNU_LIBC_VERSION"])
            .and_then(|version| version.trim().rsplit('.').next()?.parse::<u32>().ok())
            .is_some_and(|minor| minor >= PACKED_SINCE)
}

fn output_of(program: &str, words: &[&str]) -> Option<String> {
    let output = Command::new(program).args(words).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
