//! A case for every pair of scalar types. Each body is the conversion, marked by a `pause`.

use std::arch::asm;

fn mark() {
    // SAFETY: it waits for a moment.
    unsafe { asm!("pause", options(nostack, nomem, preserves_flags)) };
}

macro_rules! all {
    ($bench:ident: $($from:ty => $($to:ty)*;)*) => { $( $( pair!($bench, $from, $to, |a| a as $to); )* )* };
}

macro_rules! pair {
    ($bench:ident, $from:ty, $to:ty, $body:expr) => {
        $bench.case_with(concat!(stringify!($from), " -> ", stringify!($to)), <$from>::default(), |a: $from| -> $to {
            mark();
            let body: fn($from) -> $to = $body;
            body(a)
        });
    };
}

fn main() {
    let mut bench = scruple_bench::Bench::new();
    // The conversions between `u64` and floating-point numbers have branches, and so more than one loop.
    all!(bench:
        u8 => u8 u16 u32 u64 i8 i16 i32 i64 f32 f64;
        u16 => u8 u16 u32 u64 i8 i16 i32 i64 f32 f64;
        u32 => u8 u16 u32 u64 i8 i16 i32 i64 f32 f64;
        u64 => u8 u16 u32 u64 i8 i16 i32 i64;
        i8 => u8 u16 u32 u64 i8 i16 i32 i64 f32 f64;
        i16 => u8 u16 u32 u64 i8 i16 i32 i64 f32 f64;
        i32 => u8 u16 u32 u64 i8 i16 i32 i64 f32 f64;
        i64 => u8 u16 u32 u64 i8 i16 i32 i64 f32 f64;
        f32 => u8 u16 u32 i8 i16 i32 i64 f32 f64;
        f64 => u8 u16 u32 i8 i16 i32 i64 f32 f64;
    );
    pair!(bench, bool, bool, |a| a);
    pair!(bench, char, char, |a| a);
    pair!(bench, u8, char, |a| a as char);
    pair!(bench, char, u32, |a| a as u32);
    pair!(bench, bool, u8, |a| a as u8);
    pair!(bench, u32, bool, |a| a & 1 == 0);
    bench.main()
}
