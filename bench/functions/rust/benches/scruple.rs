//! The seven functions under Scruple.

use seven_functions::{BASIS, eight, four, step, steps};

scruple_bench::main! {
    "loop"(_h: u32 = BASIS) => 7u32;
    "id"(h: u32 = BASIS) => h;
    "fnv1"(h: u32 = BASIS) => step(h, 1);
    "fnv4"(h: u32 = BASIS) => four(h);
    "fnv8"(h: u32 = BASIS) => eight(h);
    "us"(h: u32 = BASIS) => steps(h, 900);
    "ms"(h: u32 = BASIS) => steps(h, 900_000);
}
