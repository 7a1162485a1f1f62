//! Tests of allocators other than the C library's: they are counted if possible, else the reason is reported.

use std::path::{Path, PathBuf};
use std::process::Command;

use scruple_measure::heap::{HeapSession, LiveBytes, Unmeasurable, measurable};

use crate::harness::{Workshop, skip, sums};

const LIBRARIES: [&str; 3] = ["jemalloc", "tcmalloc_minimal", "mimalloc"];
const MODES: [LiveBytes; 3] = [LiveBytes::Off, LiveBytes::Usable, LiveBytes::Requested];

/// The largest number of blocks, and of bytes in all, that an allocator itself allocates when it starts.
const OWN: (u64, u64) = (2, 64);

/// The path at which the compiler finds a library.
fn library(file: &str) -> Option<PathBuf> {
    let output = Command::new("cc").arg(format!("-print-file-name={file}")).output().unwrap();
    let path = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
    if !path.is_absolute() {
        skip(&format!("{file} is not installed"));
        return None;
    }
    Some(path)
}

/// Checks that counts equal those of the same program with the C library's allocator, except for the allocator's own
/// blocks.
fn assert_same(counted: (u64, u64, u64), expected: (u64, u64, u64), what: &str) {
    let (allocations, bytes) = (counted.0.wrapping_sub(expected.0), counted.1.wrapping_sub(expected.1));
    assert!(allocations <= OWN.0 && bytes <= OWN.1, "{what}: {counted:?}, expected {expected:?}");
    assert_eq!(counted.2, expected.2, "{what}");
}

#[test]
fn cplusplus_counts_the_same_with_every_allocator_linked_or_preloaded() {
    let workshop = Workshop::new();
    let flags = ["-std=c++17"];
    let plain = workshop.compile("c++", "containers.cc", &flags);
    let expected = sums(&workshop.count_plain(LiveBytes::Off, &plain));
    for name in LIBRARIES {
        let Some(path) = library(&format!("lib{name}.so")) else { continue };
        let linked = workshop.path().join(name);
        let wanted = format!("-l{name}");
        let linked = workshop.compile_as(
            &linked,
            "c++",
            "containers.cc",
            &["-std=c++17", "-Wl,--no-as-needed", &wanted],
        );
        for peak in MODES {
            let totals = workshop.count_plain(peak, &linked);
            assert_same(sums(&totals), expected, &format!("{name}, linked, {peak:?}"));
            assert!(totals.is_complete(), "{totals:?}");
            let totals = preloaded(&workshop, peak, &path, &plain, &[]);
            assert_same(totals, expected, &format!("{name}, preloaded, {peak:?}"));
        }
    }
}

fn preloaded(
    workshop: &Workshop,
    peak: LiveBytes,
    library: &Path,
    program: &Path,
    words: &[&str],
) -> (u64, u64, u64) {
    let session = HeapSession::start(workshop.path(), peak).unwrap();
    let environment = session.environment(Some(library.as_os_str()));
    assert!(Command::new(program).args(words).envs(environment).status().unwrap().success());
    sums(&session.read().unwrap())
}

#[test]
fn every_form_of_operator_new_counts_once_with_every_allocator() {
    let workshop = Workshop::new();
    let program = workshop.compile("c++", "operators.cc", &["-std=c++17"]);
    // The C++ library requests whole multiples of the alignment, the allocators' own operators the requested size.
    let most = sums(&workshop.count_plain(LiveBytes::Off, &program));
    let blocks: u64 = (1..=8).map(|i| 2 * (i * 100 + 1) + 1).sum();
    for name in LIBRARIES {
        let Some(path) = library(&format!("lib{name}.so")) else { continue };
        let words: &[&str] = if name == "mimalloc" { &["without what is too large"] } else { &[] };
        let all = MODES.map(|peak| preloaded(&workshop, peak, &path, &program, words));
        for (allocations, bytes, frees) in all {
            // Sixteen blocks, the C++ library's pool, what throwing an exception allocates, and the allocator's own
            // blocks.
            assert!((17..=20).contains(&allocations) && frees >= 16, "{name}: {all:?}");
            assert!(bytes >= blocks + 72_704 && bytes <= most.1, "{name}: {all:?}");
        }
        assert!(all.iter().all(|counts| counts.1.abs_diff(all[0].1) <= OWN.1), "{name}: {all:?}");
    }
}

#[test]
fn live_bytes_with_another_allocator_are_those_of_its_blocks() {
    let workshop = Workshop::new();
    let program = workshop.c("entry_points.c", &[]);
    for name in LIBRARIES {
        let Some(path) = library(&format!("lib{name}.so")) else { continue };
        let session = HeapSession::start(workshop.path(), LiveBytes::Requested).unwrap();
        let environment = session.environment(Some(path.as_os_str()));
        if !Command::new(&program).envs(environment).status().unwrap().success() {
            skip(&format!("{name} does not behave as the C library's in all entry points"));
            continue;
        }
        let live = session.read().unwrap().counts().live.unwrap();
        // The allocators load the C++ library, which keeps a pool.
        let most = 600 + 72_704 + OWN.1;
        assert!((600..=most).contains(&(live.bytes as u64)), "{name}: {live:?}");
        assert!((4..=4 + OWN.1).contains(&(live.peak - (3 << 20) - live.bytes as u64)), "{name}: {live:?}");
    }
}

#[test]
fn an_allocator_linked_in_statically_is_found_with_and_without_names() {
    let workshop = Workshop::new();
    for file in ["libjemalloc_pic.a", "libtcmalloc_minimal.a"] {
        let Some(archive) = library(file) else { continue };
        for strip in [&[][..], &["-s"]] {
            let mut flags = vec!["-std=c++17", archive.to_str().unwrap(), "-pthread", "-ldl"];
            flags.extend(strip);
            let program = workshop.compile("c++", "containers.cc", &flags);
            let answer = measurable(&program).unwrap_err();
            assert!(matches!(answer, Unmeasurable::OwnAllocator { .. }), "{file} {strip:?}: {answer}");
            assert!(!workshop.count_plain(LiveBytes::Off, &program).is_complete(), "{file} {strip:?}");
        }
    }
}

#[test]
fn an_allocator_under_a_prefix_is_found_even_where_names_were_stripped() {
    let workshop = Workshop::new();
    let Some(archive) = library("libjemalloc_pic.a") else { return };
    // Rust's jemalloc crates build the allocator with this prefix.
    let renamed = workshop.path().join("prefixed.a");
    let mut objcopy = Command::new("objcopy");
    for name in
        ["malloc", "calloc", "realloc", "free", "posix_memalign", "aligned_alloc", "malloc_usable_size"]
    {
        objcopy.arg(format!("--redefine-sym={name}=_rjem_{name}"));
    }
    // Other functions that would replace the C library's get the prefix, too.
    for name in ["memalign", "valloc", "__libc_malloc", "__libc_calloc", "__libc_realloc", "__libc_free"] {
        objcopy.arg(format!("--redefine-sym={name}=_rjem_{name}"));
    }
    assert!(objcopy.arg(&archive).arg(&renamed).status().unwrap().success());
    for strip in [&[][..], &["-s"]] {
        let mut flags = vec![renamed.to_str().unwrap(), "-pthread", "-ldl", "-lm"];
        flags.extend(strip);
        let program = workshop.c("prefixed.c", &flags);
        let answer = measurable(&program).unwrap_err();
        assert!(matches!(answer, Unmeasurable::OwnAllocator { .. }), "{strip:?}: {answer}");
        let started = workshop.count(LiveBytes::Off, Command::new("/bin/sh").arg("-c").arg(&program));
        assert!(!started.totals.is_complete(), "{:?}", started.totals);
    }
}

#[test]
fn a_program_that_asks_its_allocator_past_malloc_is_named() {
    let workshop = Workshop::new();
    if library("libmimalloc.so").is_none() {
        return;
    }
    let program = workshop.c("past_malloc.c", &["-lmimalloc"]);
    let answer = measurable(&program).unwrap_err();
    assert!(matches!(&answer, Unmeasurable::PastMalloc { symbol, .. } if symbol == "mi_malloc"), "{answer}");
    assert!(!workshop.count_plain(LiveBytes::Off, &program).is_complete());
}

/// The C library's function for sizes would take the header of a wrapper for its own.
#[test]
fn live_memory_is_unknown_where_a_wrapper_of_malloc_does_not_tell_sizes() {
    let workshop = Workshop::new();
    let wrapper = workshop.c("wrapped_malloc.c", &["-shared", "-fPIC"]);
    let program = workshop.c("many.c", &[]);
    let expected = sums(&workshop.count_plain(LiveBytes::Off, &program));
    for peak in MODES {
        let session = HeapSession::start(workshop.path(), peak).unwrap();
        let environment = session.environment(Some(wrapper.as_os_str()));
        assert!(Command::new(&program).envs(environment).status().unwrap().success(), "{peak:?}");
        let totals = session.read().unwrap();
        assert_eq!(sums(&totals), expected, "{peak:?}");
        assert!(totals.processes.iter().all(|process| process.lacks_sizes), "{totals:?}");
    }
}
