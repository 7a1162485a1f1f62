//! The seven functions under divan, written as its manual recommends.

use divan::{Bencher, black_box};
use seven_functions::{BASIS, eight, four, step, steps};

fn main() {
    divan::main();
}

#[divan::bench(name = "loop")]
fn constant() -> u32 {
    7
}

#[divan::bench]
fn id(bencher: Bencher<'_, '_>) {
    bencher.bench_local(|| black_box(BASIS));
}

#[divan::bench]
fn fnv1(bencher: Bencher<'_, '_>) {
    bencher.bench_local(|| step(black_box(BASIS), 1));
}

#[divan::bench]
fn fnv4(bencher: Bencher<'_, '_>) {
    bencher.bench_local(|| four(black_box(BASIS)));
}

#[divan::bench]
fn fnv8(bencher: Bencher<'_, '_>) {
    bencher.bench_local(|| eight(black_box(BASIS)));
}

#[divan::bench]
fn us(bencher: Bencher<'_, '_>) {
    bencher.bench_local(|| steps(black_box(BASIS), 900));
}

#[divan::bench]
fn ms(bencher: Bencher<'_, '_>) {
    bencher.bench_local(|| steps(black_box(BASIS), 900_000));
}
