//! Very short functions: steps of the FNV-1a hash, the identity, whose cost is that of the harness, and two loops of
//! about a microsecond and a millisecond.

fn step(h: u32, byte: u32) -> u32 {
    (h ^ byte).wrapping_mul(16777619)
}

fn four(h: u32) -> u32 {
    step(step(step(step(h, 1), 2), 3), 4)
}

fn steps(h: u32, n: u32) -> u32 {
    (0..n).fold(h, |h, i| step(h, i & 255))
}

scruple_bench::main! {
    "fnv/loop"(_h: u32 = 2166136261) => 7u32;
    "fnv/id"(h: u32 = 2166136261) => h;
    "fnv/fnv1"(h: u32 = 2166136261) => step(h, 1);
    "fnv/fnv4"(h: u32 = 2166136261) => four(h);
    "fnv/fnv8"(h: u32 = 2166136261) => four(four(h));
    "fnv/us"(h: u32 = 2166136261) => steps(h, 900);
    "fnv/ms"(h: u32 = 2166136261) => steps(h, 900_000);
}
