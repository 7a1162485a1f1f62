//! Measures the speed of a core: the length of one cycle, from a chain of dependent additions, and whether the core is
//! shared with a neighbour, from independent ones.
//!
//! A dependent addition of two registers takes one cycle on every processor of the last decades (Fog, "Instruction
//! tables", 2024), whatever else the core executes in parallel. So the chain takes as many cycles as it has additions.
//! Independent additions keep all execution units busy, so they take longer while another hardware thread of the core
//! executes anything. The loops begin on a cache line: across two lines, the independent additions take 14 % longer on
//! Zen 4, in one build of Scruple and not in the next.

use crate::clock;
use crate::scheduler_waits;

/// Additions in one pass of the loop, and passes in one chain. One chain takes about 4 µs.
const UNROLLED: u64 = 8;
const PASSES: u64 = 2000;

/// How often the chain is run. The fastest run counts, because interruptions only make runs longer.
const TRIES: u32 = 3;

/// The passes of the loop of independent additions. They take about 0.7 µs.
const INDEPENDENT_PASSES: u64 = 1500;

/// The additions in one pass of the loop of independent ones, with the one that counts the passes.
const OF_A_PASS: u64 = 7;

/// The most cycles that [`witness_beside`] takes on this processor if nothing else uses the core; `None` if that is not
/// known. The x86-64 processors with the ADX instructions (Broadwell, Zen and later ones) execute at least four additions
/// in a cycle (Fog, "Instruction tables", 2024).
pub fn most_cycles_of_witness() -> Option<f64> {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("adx") {
        return Some((OF_A_PASS * INDEPENDENT_PASSES) as f64 / 4.0);
    }
    None
}

/// The length in nanoseconds of one cycle of the core on which this thread of a program last ran; `None` if the
/// architecture or the system does not allow the measurement. The call takes about 20 µs.
pub fn cycle_beside(program: u32, thread: u32) -> Option<f64> {
    // If this thread cannot move to that core, its current core is measured: cores mostly share a clock.
    let fastest = on_the_core_of(program, thread, || fastest(chain))?;
    Some(fastest / (UNROLLED * PASSES) as f64)
}

/// The time in nanoseconds of a fixed piece of work that keeps all execution units busy, on the core on which this
/// thread of a program last ran; `None` as for [`cycle_beside`]. The call takes 15 to 45 µs, most of it to
/// move to that core and back.
pub fn witness_beside(program: u32, thread: u32) -> Option<f64> {
    on_the_core_of(program, thread, || fastest(independent))
}

/// Does something on the core on which a thread last ran.
fn on_the_core_of<T>(program: u32, thread: u32, act: impl FnOnce() -> Option<T>) -> Option<T> {
    let own = affinity()?;
    let core = scheduler_waits::last_core(program, thread)?;
    move_to(&only(core)?);
    let found = act();
    move_to(&own);
    found
}

/// The shortest time of a few runs, in nanoseconds, less that of reading the clock.
fn fastest(work: fn() -> Option<()>) -> Option<f64> {
    let (mut fastest, mut of_clock) = (u64::MAX, u64::MAX);
    for _ in 0..TRIES {
        let before = clock::read(libc::CLOCK_MONOTONIC)?;
        let began = clock::read(libc::CLOCK_MONOTONIC)?;
        work()?;
        fastest = fastest.min(clock::read(libc::CLOCK_MONOTONIC)? - began);
        of_clock = of_clock.min(began - before);
    }
    Some(fastest.saturating_sub(of_clock) as f64)
}

#[cfg(target_arch = "x86_64")]
fn chain() -> Option<()> {
    let (mut value, mut passes) = (1_u64, PASSES);
    // SAFETY: the code reads and writes these two registers only.
    unsafe {
        std::arch::asm!(
            ".p2align 6",
            "2:",
            "add {v}, {v}", "add {v}, {v}", "add {v}, {v}", "add {v}, {v}",
            "add {v}, {v}", "add {v}, {v}", "add {v}, {v}", "add {v}, {v}",
            "dec {n}",
            "jnz 2b",
            v = inout(reg) value,
            n = inout(reg) passes,
            options(nomem, nostack)
        );
    }
    std::hint::black_box((value, passes));
    Some(())
}

#[cfg(target_arch = "aarch64")]
fn chain() -> Option<()> {
    let (mut value, mut passes) = (1_u64, PASSES);
    // SAFETY: the code reads and writes these two registers only.
    unsafe {
        std::arch::asm!(
            ".p2align 6",
            "2:",
            "add {v}, {v}, {v}", "add {v}, {v}, {v}", "add {v}, {v}, {v}", "add {v}, {v}, {v}",
            "add {v}, {v}, {v}", "add {v}, {v}, {v}", "add {v}, {v}, {v}", "add {v}, {v}, {v}",
            "subs {n}, {n}, #1",
            "b.ne 2b",
            v = inout(reg) value,
            n = inout(reg) passes,
            options(nomem, nostack)
        );
    }
    std::hint::black_box((value, passes));
    Some(())
}

#[cfg(target_arch = "x86_64")]
fn independent() -> Option<()> {
    let mut passes = INDEPENDENT_PASSES;
    let (mut a, mut b, mut c, mut d, mut e, mut f) = (0_u64, 1_u64, 2_u64, 3_u64, 4_u64, 5_u64);
    // SAFETY: the code reads and writes these registers only.
    unsafe {
        std::arch::asm!(
            ".p2align 6",
            "2:",
            "add {a}, 1", "add {b}, 1", "add {c}, 1", "add {d}, 1", "add {e}, 1", "add {f}, 1",
            "dec {n}",
            "jnz 2b",
            a = inout(reg) a, b = inout(reg) b, c = inout(reg) c,
            d = inout(reg) d, e = inout(reg) e, f = inout(reg) f,
            n = inout(reg) passes,
            options(nomem, nostack)
        );
    }
    std::hint::black_box((a, b, c, d, e, f, passes));
    Some(())
}

#[cfg(target_arch = "aarch64")]
fn independent() -> Option<()> {
    let mut passes = INDEPENDENT_PASSES;
    let (mut a, mut b, mut c, mut d, mut e, mut f) = (0_u64, 1_u64, 2_u64, 3_u64, 4_u64, 5_u64);
    // SAFETY: the code reads and writes these registers only.
    unsafe {
        std::arch::asm!(
            ".p2align 6",
            "2:",
            "add {a}, {a}, #1", "add {b}, {b}, #1", "add {c}, {c}, #1",
            "add {d}, {d}, #1", "add {e}, {e}, #1", "add {f}, {f}, #1",
            "subs {n}, {n}, #1",
            "b.ne 2b",
            a = inout(reg) a, b = inout(reg) b, c = inout(reg) c,
            d = inout(reg) d, e = inout(reg) e, f = inout(reg) f,
            n = inout(reg) passes,
            options(nomem, nostack)
        );
    }
    std::hint::black_box((a, b, c, d, e, f, passes));
    Some(())
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn chain() -> Option<()> {
    None
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn independent() -> Option<()> {
    None
}

/// The cores that this thread may use.
fn affinity() -> Option<libc::cpu_set_t> {
    // SAFETY: the set is plain data, which the kernel fills in up to the size given.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        let size = std::mem::size_of::<libc::cpu_set_t>();
        (libc::sched_getaffinity(0, size, &mut set) == 0).then_some(set)
    }
}

fn only(core: usize) -> Option<libc::cpu_set_t> {
    // SAFETY: the set is plain data, and the core lies within it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        (core < libc::CPU_SETSIZE as usize).then(|| libc::CPU_SET(core, &mut set))?;
        Some(set)
    }
}

/// Restricts this thread to these cores; if the kernel refuses, nothing changes.
fn move_to(cores: &libc::cpu_set_t) {
    // SAFETY: the kernel reads a valid set of the size given.
    unsafe { libc::sched_setaffinity(0, std::mem::size_of::<libc::cpu_set_t>(), cores) };
}

#[cfg(test)]
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod tests {
    use super::*;

    /// No processor has run at less than 100 MHz or more than 10 GHz for decades.
    #[test]
    fn a_cycle_takes_as_long_as_processors_take() {
        let before = affinity().expect("a thread has cores");
        let own = std::process::id();
        let cycle = cycle_beside(own, own).expect("this process is there");
        assert!((0.1..10.0).contains(&cycle), "{cycle} ns");
        let witness = witness_beside(own, own).expect("this process is there");
        // At least one addition for each cycle, however many hardware threads the core has.
        assert!((100.0..1e9).contains(&witness), "{witness} ns");
        let after = affinity().expect("a thread has cores");
        // SAFETY: both sets are valid.
        assert!(unsafe { libc::CPU_EQUAL(&before, &after) }, "the thread may use other cores than before");
    }

    #[test]
    fn what_is_measured_beside_a_program_runs_on_the_core_of_that_program() {
        let cores = affinity().expect("a thread has cores");
        // SAFETY: the set is valid, and the cores lie within it.
        let mine = (0..libc::CPU_SETSIZE as usize).filter(|core| unsafe { libc::CPU_ISSET(*core, &cores) });
        for core in mine {
            let mut child = std::process::Command::new("sh");
            let mut child = child.args(["-c", "while :; do :; done"]).spawn().expect("a shell");
            let pid = child.id();
            let one = only(core).expect("the core lies within the set");
            // SAFETY: the kernel reads a valid set of the size given.
            unsafe { libc::sched_setaffinity(pid as i32, std::mem::size_of::<libc::cpu_set_t>(), &one) };
            while scheduler_waits::last_core(pid, pid) != Some(core) {
                std::thread::yield_now();
            }
            // SAFETY: the call has no arguments.
            let here = on_the_core_of(pid, pid, || Some(unsafe { libc::sched_getcpu() }));
            child.kill().expect("it is ours");
            child.wait().expect("it has ended");
            assert_eq!(here, Some(core as i32));
        }
    }

    /// Every processor of the last decades executes at least two additions in a cycle if none waits for another, and one
    /// and a half beside a busy neighbour.
    #[test]
    fn independent_additions_are_executed_in_parallel_and_dependent_ones_are_not() {
        let (mut of_chain, mut of_independent) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..200 {
            of_chain = of_chain.min(fastest(chain).expect("a clock"));
            of_independent = of_independent.min(fastest(independent).expect("a clock"));
        }
        let dependent = of_chain / (UNROLLED * PASSES) as f64;
        let parallel = of_independent / (OF_A_PASS * INDEPENDENT_PASSES) as f64;
        assert!(parallel < 0.8 * dependent, "{parallel} ns, {dependent} ns");
        // Alone on a core with more than four units, the additions take less; beside a neighbour, up to twice as long.
        let cycles = of_independent / dependent;
        if let Some(most) = most_cycles_of_witness() {
            assert!((0.5 * most..2.5 * most).contains(&cycles), "{cycles} cycles, {most} alone");
        }
    }
}
