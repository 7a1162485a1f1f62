//! Decodes the same base64 into a buffer again and again: `decode BYTES TIMES`.

use base64::{Engine, engine::general_purpose::STANDARD};
use std::hint::black_box;

fn main() {
    let words: Vec<usize> = std::env::args().skip(1).map(|word| word.parse().expect("a number")).collect();
    let [size, times] = words[..] else { panic!("usage: decode BYTES TIMES") };
    let mut state = 12345_u32;
    let bytes: Vec<u8> = (0..size)
        .map(|_| {
            state = state.wrapping_mul(1_103_515_245).wrapping_add(12345);
            (state >> 16) as u8
        })
        .collect();
    let text = STANDARD.encode(&bytes);
    let mut decoded = vec![0; size + 3];
    let mut sum = 0;
    for _ in 0..times {
        let length = STANDARD.decode_slice(black_box(text.as_bytes()), &mut decoded).expect("it is base64");
        sum += length + usize::from(decoded[length / 2]);
    }
    assert_eq!(decoded[..size], bytes[..]);
    println!("{sum}");
}
