//! The seven functions under criterion.rs, written as its manual recommends.

use criterion::{Criterion, criterion_group, criterion_main};
use seven_functions::{BASIS, eight, four, step, steps};
use std::hint::black_box;

fn seven(c: &mut Criterion) {
    c.bench_function("loop", |b| b.iter(|| 7u32));
    c.bench_function("id", |b| b.iter(|| black_box(BASIS)));
    c.bench_function("fnv1", |b| b.iter(|| step(black_box(BASIS), 1)));
    c.bench_function("fnv4", |b| b.iter(|| four(black_box(BASIS))));
    c.bench_function("fnv8", |b| b.iter(|| eight(black_box(BASIS))));
    c.bench_function("us", |b| b.iter(|| steps(black_box(BASIS), 900)));
    c.bench_function("ms", |b| b.iter(|| steps(black_box(BASIS), 900_000)));
}

criterion_group!(benches, seven);
criterion_main!(benches);
