//! Hashes words in Rust. planted.py replaces the text between @.
use std::hint::black_box;

#[inline(@INLINE@)]
fn @HASH@(word: &str) -> u32 {
    let mut hash = 0_u32;
    for _ in 0..black_box(@ROUNDS@) {
        for byte in word.bytes() {
            hash = hash.wrapping_mul(31).wrapping_add(u32::from(byte));
        }
    }
    hash
}

#[inline(never)]
fn parse(word: &str) -> u32 {
    @EXTRA@
    let mut all = 0;
    for _ in 0..black_box(@TIMES@) {
        all ^= @HASH@(word);
    }
    all
}

fn main() {
    let count = std::env::args().nth(1).map_or(2000, |word| word.parse().unwrap());
    let mut all = 0;
    for _ in 0..count {
        all ^= parse(black_box("hello world"));
    }
    for i in 0..1_000_000 {
        all ^= black_box(i);
    }
    std::process::exit((all == 1) as i32);
}
