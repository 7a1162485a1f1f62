//! Tests with records that no library wrote.
#![expect(clippy::unwrap_used)]

use super::*;
use crate::heap::SiteSampling;
use scruple_fuzz::Corpus;

const REGISTERS: usize = registers::RECORDED;

fn record(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = (8 + body.len() as u32).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend(body);
    bytes
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// A sample at this stack pointer whose stack has this depth. The record contains the part `fresh` of the stack.
fn sampled(stack_pointer: u64, depth: u32, fresh: &[u8]) -> Vec<u8> {
    let mut body = words(&[5, 1000, 2000]);
    for half in [1, 77, depth, fresh.len() as u32] {
        body.extend(half.to_ne_bytes());
    }
    body.extend(words(&[0x4000, stack_pointer]));
    body.resize(body.len() + 8 * (REGISTERS - 2), 0);
    body.extend(fresh);
    record(1, 0, &body)
}

fn piece(owner: u32, records: &[Vec<u8>]) -> Vec<u8> {
    let records = records.concat();
    let mut bytes = 1u32.to_ne_bytes().to_vec();
    bytes.extend(owner.to_ne_bytes());
    bytes.extend((32 + records.len() as u64).to_ne_bytes());
    bytes.resize(32, 0);
    bytes.extend(records);
    bytes.resize(PIECE as usize, 0);
    bytes
}

fn example() -> Vec<u8> {
    let line = b"4000-5000 r-xp 00000000 08:01 12 /bin/sh";
    let mut body = 1u32.to_ne_bytes().to_vec();
    body.extend((line.len() as u32).to_ne_bytes());
    body.extend(words(&[u64::MAX, 0x9000]));
    body.extend(line);
    let first: Vec<u8> = (0..64).collect();
    let records = [
        record(3, 0, &body),
        sampled(0x7000, 64, &first),
        sampled(0x7010, 48, &[0xff; 8]),
        record(2, 0, &words(&[9, 32 + 72, 500])),
    ];
    piece(3, &records)
}

#[test]
fn a_stack_continues_with_that_of_the_sample_before() {
    let bytes = example();
    let mut piece = ThreadRecords::of(&bytes, 0).unwrap();
    let mut stacks = Vec::new();
    while let Some(record) = piece.next() {
        if let Ok(SiteRecord::Sample(sample)) = record {
            stacks.push(sample.stack.to_vec());
        }
    }
    let second: Vec<u8> = [0xff; 8].into_iter().chain(24..64).collect();
    assert_eq!(stacks, [(0..64).collect::<Vec<u8>>(), second]);
}

#[test]
fn a_stack_that_continues_another_than_that_before_is_damaged() {
    for second in [sampled(0x7018, 48, &[1; 8]), sampled(0x7000, 128, &[1; 8]), sampled(0x7000, 8, &[1; 16])]
    {
        let bytes = piece(3, &[sampled(0x7000, 64, &[2; 64]), second]);
        let mut piece = ThreadRecords::of(&bytes, 0).unwrap();
        assert!(piece.next().unwrap().is_ok());
        assert_eq!(piece.next().unwrap().err(), Some(records::Damaged));
    }
}

/// Reads a records' file as if it were that of a session.
fn sites(file: &[u8]) -> Vec<HeapSites> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("records");
    std::fs::write(&path, file).unwrap();
    let sampling = SiteSampling { mean: 1, seed: 1 };
    let mut header = super::super::format::header(super::super::LiveBytes::Requested, 4096, Some(sampling));
    header[76..80].copy_from_slice(&8u32.to_ne_bytes());
    let mut units = header.clone();
    for kind in [2u32, 2, 1] {
        let mut unit = vec![0; 4096];
        unit[..4].copy_from_slice(&kind.to_ne_bytes());
        units.extend(unit);
    }
    let totals = super::super::format::parse(&units, super::super::LiveBytes::Requested, 4096).unwrap();
    read(&File::open(&path).unwrap(), &header, &totals, &[]).unwrap()
}

#[test]
fn records_without_files_give_sites_without_names() {
    let all = sites(&example());
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].sum().allocated, MemoryBlocks { blocks: 2, bytes: 2000 });
    assert_eq!(all[0].sum().at_end, MemoryBlocks { blocks: 1, bytes: 1000 });
    assert!(all[0].frames.iter().any(|frame| frame.name.starts_with("(callers unknown: ")), "{:?}", all[0]);
}

#[test]
fn damaged_records_are_survived() {
    let corpus = Corpus::default().with("a piece", example());
    corpus.is_survived_by(|file| {
        if let Some(mut piece) = ThreadRecords::of(file, 0) {
            while piece.next().is_some() {}
        }
    });
    let mut state = 1u64;
    for _ in 0..300 {
        let mut file = example();
        for _ in 0..8 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let at = (state >> 33) as usize % 700;
            file[at] = (state >> 25) as u8;
        }
        sites(&file);
    }
}
