//! Tests with damaged, truncated and forged data files: the result is an error or a bounded number, never a panic.
#![expect(clippy::unwrap_used)]

use super::*;
use scruple_fuzz::Corpus;

const UNIT: u32 = 4096;

/// A file with a process of two slots, a further unit with one slot, and an unanswered note.
fn sample() -> Vec<u8> {
    let mut file = header(LiveBytes::Usable, UNIT, None);
    put(&mut file, 24, &3u32.to_ne_bytes());
    put(&mut file, 32, &1900i64.to_ne_bytes());
    put(&mut file, 44, &1u32.to_ne_bytes());
    file.resize(3 * UNIT as usize, 0);
    let (head, more) = (4096, 8192);
    for (offset, value) in [(0, KIND_PROCESS), (4, 1), (8, 77), (12, 1), (16, ORIGIN_FORK), (24, 3)] {
        put(&mut file, head + offset, &u32::to_ne_bytes(value));
    }
    put(&mut file, head + 40, &1000i64.to_ne_bytes());
    put(&mut file, head + 48, &1500i64.to_ne_bytes());
    put(&mut file, head + 128, b"/bin/sample");
    put(&mut file, more, &KIND_THREADS.to_ne_bytes());
    put(&mut file, more + 4, &1u32.to_ne_bytes());
    for (slot, thread) in [(head + 256, 77i32), (head + 384, 78), (more + 128, 79)] {
        put(&mut file, slot, &thread.to_ne_bytes());
        for (place, value) in [(8, 10u64), (16, 400), (24, 3), (32, 100), (40, 300), (48, 700)] {
            put(&mut file, slot + place, &value.to_ne_bytes());
        }
    }
    let note = more + 256;
    for (offset, value) in [(0, -1i32), (4, 80), (8, 2), (12, 1)] {
        put(&mut file, note + offset, &value.to_ne_bytes());
    }
    put(&mut file, note + 16, b"/bin/other");
    file
}

fn put(file: &mut [u8], offset: usize, bytes: &[u8]) {
    file[offset..offset + bytes.len()].copy_from_slice(bytes);
}

#[test]
fn units_of_one_process_are_one_record() {
    let totals = parse(&sample(), LiveBytes::Usable, UNIT).unwrap();
    let [process] = totals.processes.as_slice() else { panic!("{totals:?}") };
    assert_eq!((process.pid, process.threads, process.exe.as_str()), (77, 3, "/bin/sample"));
    assert_eq!(process.origin, ProcessOrigin::Fork);
    let live = LiveMemory { freed: 300, bytes: 1600, peak: 1700, peak_error: 2 * 65536 };
    assert_eq!(process.counts, AllocationCounts { allocations: 30, bytes: 1200, frees: 9, live: Some(live) });
    assert_eq!(totals.unseen, [UnrecordedProgram { pid: 80, path: "/bin/other".into() }]);
    assert_eq!(totals.counts(), process.counts);
    assert_eq!(totals.tree, Some(TreePeak { peak: 1900, error: 2 * 65536 }));
}

#[test]
fn a_note_is_answered_by_a_later_record_of_its_process() {
    let mut file = sample();
    put(&mut file, 8192 + 256 + 4, &77i32.to_ne_bytes());
    assert_eq!(
        parse(&file, LiveBytes::Usable, UNIT).unwrap().unseen.len(),
        1,
        "the record is older than the note"
    );
    put(&mut file, 8192 + 256 + 8, &1u32.to_ne_bytes());
    assert_eq!(parse(&file, LiveBytes::Usable, UNIT).unwrap().unseen, []);
}

#[test]
fn a_header_of_another_kind_is_refused() {
    for (offset, byte) in [(0, 0), (8, 9), (12, 0), (16, 2)] {
        let mut file = sample();
        file[offset] = byte;
        let damaged = parse(&file, LiveBytes::Usable, UNIT);
        assert_eq!(matches!(damaged, Err(HeapError::Damaged(_))), file != sample(), "{offset}");
    }
    assert!(parse(&sample(), LiveBytes::Usable, 0).is_err());
    assert!(parse(&sample(), LiveBytes::Usable, 8192).is_err());
    assert!(claimed_bytes(&[], UNIT).is_err());
}

#[test]
fn claims_beyond_the_limit_are_not_believed() {
    let mut file = sample();
    put(&mut file, 24, &u32::MAX.to_ne_bytes());
    assert_eq!(claimed_bytes(&file, UNIT).unwrap(), u64::from(LIMIT) * 4096);
}

#[test]
fn every_truncation_is_an_answer() {
    let file = sample();
    for end in 0..=file.len() {
        let parsed = parse(&file[..end], LiveBytes::Usable, UNIT);
        assert_eq!(parsed.is_ok(), end >= HEADER, "{end}");
    }
}

#[test]
fn the_largest_numbers_overflow_nothing() {
    let mut file = sample();
    for byte in &mut file[4096 + 24..] {
        *byte = 0xff;
    }
    put(&mut file, 8192, &KIND_THREADS.to_ne_bytes());
    put(&mut file, 8192 + 4, &1u32.to_ne_bytes());
    for slot in (4096 + 256..8192).chain(8192 + 128..12288).step_by(128).take(60) {
        put(&mut file, slot, &5i32.to_ne_bytes());
        put(&mut file, slot + 40, &i64::MAX.to_ne_bytes());
    }
    let totals = parse(&file, LiveBytes::Usable, UNIT).unwrap();
    assert_eq!(totals.counts().allocations, u64::MAX);
    let _ = (totals.counts().live_blocks(), totals.largest_peak(), totals.threads(), totals.is_complete());
}

#[test]
fn scrambled_files_never_panic() {
    let mut state = 1u64;
    let mut random = move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize
    };
    for _ in 0..3000 {
        let mut file = sample();
        for _ in 0..random() % 40 {
            let at = 20 + random() % (file.len() - 20);
            file[at] = random() as u8;
        }
        if let Ok(totals) = parse(&file, LiveBytes::Usable, UNIT) {
            let _ = (totals.counts(), totals.counts().live_blocks(), totals.largest_peak());
        }
    }
}

#[test]
fn damaged_data_files_are_survived() {
    let corpus = Corpus::default().with("a data file", sample());
    corpus.is_survived_by(|file| {
        let _ = claimed_bytes(file, UNIT);
        let _ = parse(file, LiveBytes::Usable, UNIT);
    });
}
