//! Memory that a program retains: each planted form of growth is found or left open, and never mistaken for another.

use scruple_stats::Pcg;
use scruple_stats::leak::{
    GrowthDoubt, Retained, judge_bounded_growth, judge_collected, judge_growth, judge_outside_malloc,
    judge_outside_the_heap, judge_processes, resident_growth_beyond,
};

const SIZES: [f64; 6] = [1000.0, 2000.0, 4000.0, 8000.0, 16_000.0, 32_000.0];
const ONE_BYTE: f64 = 1.0;

/// Live bytes as a function of the size of the work.
type Curve = fn(f64) -> f64;

fn exact(of: impl Fn(f64) -> f64) -> Retained {
    judge_growth(&SIZES.map(|n| (n, of(n).round())), ONE_BYTE)
}

fn word(retained: &Retained) -> &'static str {
    match retained {
        Retained::Grows { .. } => "grows",
        Retained::Slows { .. } => "slows",
        Retained::Stops { .. } => "stops",
        Retained::Constant { .. } => "constant",
        Retained::Unknown(_) => "unknown",
    }
}

#[test]
fn exact_forms_are_distinguished() {
    let forms: [(&str, &str, Curve); 12] = [
        ("grows", "a list", |n| 50_000.0 + 40.0 * n),
        ("grows", "a list on a large base", |n| 2e9 + 40.0 * n),
        ("grows", "one request in fifty", |n| 90_000.0 + 112.0 * (n / 50.0).floor()),
        ("grows", "pairs", |n| 1e6 + n * n / 64.0),
        ("grows", "a table that doubles beside a list", |n| 48.0 * n + 8.0 * (n * 1.4).log2().ceil().exp2()),
        ("grows", "n log n", |n| 1e5 + 8.0 * n * n.log2()),
        ("slows", "a logarithm", |n| 1e6 + 4096.0 * n.ln()),
        ("slows", "a root", |n| 1e6 + 900.0 * n.sqrt()),
        ("stops", "a cache of 4000 entries", |n| 1e6 + 100.0 * n.min(4000.0)),
        ("constant", "nothing", |_| 72_704.0),
        ("constant", "nothing but its arguments", |n| 72_704.0 + 16.0 * n.log10().floor()),
        ("constant", "garbage of a few bytes", |n| 72_704.0 + n % 7.0),
    ];
    for (expected, name, of) in forms {
        let found = exact(of);
        assert_eq!(word(&found), expected, "{name}: {found:?}");
    }
}

#[test]
fn memory_that_native_code_keeps_contradicts_a_heap_that_does_not_grow() {
    let steady = SIZES.map(|n| (n, 2_263_000.0));
    let native = SIZES.map(|n| (n, 542_000.0 + 104.0 * n));
    let judged = |heap: &[(f64, f64)], malloc: &[(f64, f64)]| {
        judge_outside_the_heap(judge_growth(heap, ONE_BYTE), malloc, ONE_BYTE)
    };
    match judged(&steady, &native) {
        Retained::Unknown(GrowthDoubt::OutsideTheHeap { per_unit }) => {
            assert!((per_unit - 104.0).abs() < 0.1)
        }
        other => panic!("{other:?}"),
    }
    // It also contradicts a heap whose growth slows down or has stopped.
    for heap in [SIZES.map(|n| (n, 1e6 + 900.0 * n.sqrt())), SIZES.map(|n| (n, 1e6 + 100.0 * n.min(4000.0)))]
    {
        assert_eq!(word(&judged(&heap, &native)), "unknown");
    }
    assert_eq!(word(&judged(&steady, &steady)), "constant");
    assert_eq!(word(&judged(&native, &steady)), "grows");
    // Nothing is known outside the heap of a program whose allocations cannot be counted.
    assert_eq!(word(&judged(&steady, &[])), "constant");
}

#[test]
fn more_processes_for_more_work_are_no_leak() {
    let left = SIZES.map(|n| (n, 1700.0 + 2304.0 * n));
    let judged = |most: &[(f64, f64)]| judge_processes(judge_growth(&left, ONE_BYTE), &left, most, ONE_BYTE);
    match judged(&SIZES.map(|n| (n, 2500.0))) {
        Retained::Unknown(GrowthDoubt::InProcesses { per_unit }) => {
            assert!((per_unit - 2304.0).abs() < 0.1);
        }
        other => panic!("{other:?}"),
    }
    // One process may have had more before its leak, and each of several may grow.
    assert_eq!(word(&judged(&SIZES.map(|n| (n, 1e9)))), "grows");
    assert_eq!(word(&judged(&SIZES.map(|n| (n, 1700.0 + 576.0 * n)))), "grows");
    assert_eq!(word(&judged(&[])), "grows", "nothing is known");
}

#[test]
fn mapped_memory_contradicts_bytes_of_malloc_that_do_not_grow() {
    let steady = SIZES.map(|n| (n, 1200.0));
    let mapped = SIZES.map(|n| (n, 1.1e6 + 82.0 * n));
    let judged = |resident: &[(f64, f64)], allocated: &[(f64, f64)]| {
        judge_outside_malloc(judge_growth(&steady, ONE_BYTE), resident, allocated, ONE_BYTE)
    };
    match judged(&mapped, &steady) {
        Retained::Unknown(GrowthDoubt::OutsideMalloc { per_unit }) => assert!((per_unit - 82.0).abs() < 0.1),
        other => panic!("{other:?}"),
    }
    assert_eq!(word(&judged(&steady, &steady)), "constant");
    // Blocks of 62 bytes that are all freed before the end explain 82 resident bytes.
    let freed = SIZES.map(|n| (n, 1200.0 + 62.0 * n));
    assert_eq!(word(&judged(&mapped, &freed)), "constant");
    assert_eq!(word(&judged(&[], &steady)), "constant", "nothing is known");
}

/// Resident sizes in MB of programs of language runtimes that keep nothing, or map 80 bytes in each step.
#[test]
fn mapped_memory_contradicts_a_live_heap_that_does_not_grow() {
    let sizes = [8e3, 16e3, 32e3, 64e3, 128e3, 256e3];
    let steady = sizes.map(|n| (n, 2_263_000.0));
    let judged = |resident: [f64; 6]| {
        let resident: Vec<(f64, f64)> =
            sizes.into_iter().zip(resident).map(|(n, megabytes)| (n, megabytes * 1e6)).collect();
        judge_outside_malloc(judge_growth(&steady, ONE_BYTE), &resident, &[], ONE_BYTE)
    };
    let maps = [
        (
            "Node.js, whose heap becomes larger after the smallest size",
            [45.19, 50.57, 51.86, 54.5, 59.63, 69.84],
        ),
        ("Go", [3.47, 4.81, 6.64, 9.46, 14.59, 24.81]),
        ("Java", [37.82, 38.85, 40.28, 42.75, 47.79, 57.98]),
        ("Ruby", [14.92, 16.25, 17.8, 20.29, 25.51, 35.73]),
        ("OCaml", [4.42, 5.89, 7.89, 10.41, 15.5, 25.77]),
        ("GHC", [4.96, 5.62, 6.93, 9.52, 14.64, 24.69]),
        ("Guile", [11.44, 12.03, 14.14, 16.71, 21.88, 32.42]),
    ];
    for (name, resident) in maps {
        match judged(resident) {
            Retained::Unknown(GrowthDoubt::OutsideMalloc { per_unit }) => {
                assert!((70.0..90.0).contains(&per_unit), "{name}: {per_unit}")
            }
            other => panic!("{name}: {other:?}"),
        }
    }
    let keep_nothing = [
        ("Node.js", [44.54, 49.39, 49.3, 49.18, 49.25, 49.13]),
        ("Go", [2.89, 3.51, 3.89, 4.6, 4.02, 4.15]),
        ("Java", [36.2, 36.16, 36.13, 36.28, 36.13, 36.16]),
        ("Ruby", [14.26, 14.92, 15.18, 15.18, 15.31, 15.22]),
        ("OCaml", [3.98, 4.59, 5.3, 5.27, 5.37, 5.4]),
        ("GHC", [4.37, 4.37, 4.37, 4.39, 4.4, 4.41]),
        ("Guile", [10.68, 10.79, 11.52, 11.58, 11.69, 11.93]),
    ];
    for (name, resident) in keep_nothing {
        assert_eq!(word(&judged(resident)), "constant", "{name}");
    }
    // Four sizes leave the form of growth open.
    let four = [(4e3, 36.27e6), (8e3, 36.63e6), (16e3, 37.23e6), (32e3, 38.74e6)];
    let found = judge_outside_malloc(judge_growth(&steady, ONE_BYTE), &four, &[], ONE_BYTE);
    assert_eq!(word(&found), "unknown", "{found:?}");
}

#[test]
fn resident_memory_may_grow_by_more_than_a_live_heap_explains() {
    let heap = exact(|n| 1.2e6 + 1.4 * n);
    let of = |bytes: f64| resident_growth_beyond(&heap, &SIZES.map(|n| (n, 3e7 + bytes * n)), ONE_BYTE);
    assert!(of(83.0).is_some_and(|per_unit| (per_unit - 83.0).abs() < 0.1));
    assert_eq!(of(4.0), None, "a collector that copies has room for everything twice");
    assert_eq!(resident_growth_beyond(&heap, &[], ONE_BYTE), None, "nothing is known");
    let doubt = Retained::Unknown(GrowthDoubt::Noise { at_most: 2.0 });
    assert!(resident_growth_beyond(&doubt, &SIZES.map(|n| (n, 3e7 + 83.0 * n)), ONE_BYTE).is_some());
    let steady = exact(|_| 1.2e6);
    assert_eq!(resident_growth_beyond(&steady, &SIZES.map(|n| (n, 83.0 * n)), ONE_BYTE), None);
}

#[test]
fn growth_without_collections_may_be_what_nothing_uses() {
    let grown = || exact(|n| 3e7 + 96.0 * n);
    assert_eq!(word(&judge_collected(grown(), Some(2.0))), "grows");
    for collections in [None, Some(0.0), Some(1.0)] {
        let found = judge_collected(grown(), collections);
        assert!(matches!(found, Retained::Unknown(GrowthDoubt::Uncollected { .. })), "{found:?}");
        assert_eq!(word(&judge_collected(exact(|_| 3e7), collections)), "constant");
    }
}

/// Readings of a Go program that keeps 96 bytes in each step, whose last collections came long before its end.
#[test]
fn growth_is_not_called_smaller_where_the_collector_did_not_look_at_the_end() {
    let sizes = [8e3, 16e3, 32e3, 64e3, 128e3, 256e3];
    let live = [138_080.0, 1_141_712.0, 3_136_192.0, 6_184_120.0, 12_275_716.0, 22_927_808.0];
    let pairs: Vec<(f64, f64)> = sizes.into_iter().zip(live).collect();
    let at_most = sizes.map(|n| (n, 96.0 * n + 20_000.0));
    let base = sizes.map(|n| (n, 138_080.0));
    assert_eq!(word(&judge_growth(&pairs, ONE_BYTE)), "slows");
    assert_eq!(word(&judge_bounded_growth(&pairs, &at_most, ONE_BYTE)), "unknown");
    assert_eq!(word(&judge_bounded_growth(&base, &at_most, ONE_BYTE)), "unknown");
    assert_eq!(word(&judge_bounded_growth(&base, &base, ONE_BYTE)), "constant");
    assert_eq!(word(&judge_bounded_growth(&at_most, &at_most, ONE_BYTE)), "grows");
}

#[test]
fn bytes_per_unit_lie_in_their_interval() {
    match exact(|n| 50_000.0 + 40.0 * n) {
        Retained::Grows { per_unit, interval, power } => {
            assert!((per_unit - 40.0).abs() < 1e-9 && interval.contains(40.0), "{interval:?}");
            assert!(power.contains(1.0) && power.high < 1.2, "{power:?}");
        }
        other => panic!("{other:?}"),
    }
}

/// Runs of one size differ by far more than the growth, which a line through the means would hide.
#[test]
fn runs_of_one_size_that_differ_count_against_growth() {
    let pairs = |by: f64, base: f64, each: f64| -> Vec<(f64, f64)> {
        SIZES.iter().flat_map(|n| [-by, by].map(|off| (*n, base + each * n + off))).collect()
    };
    assert_eq!(word(&judge_growth(&pairs(10.0, 5e4, 40.0), ONE_BYTE)), "grows");
    let found = judge_growth(&pairs(2e6, 5e7, 40.0), ONE_BYTE);
    assert!(
        matches!(found, Retained::Unknown(GrowthDoubt::Noise { at_most }) if at_most > 40.0),
        "{found:?}"
    );
    // A few kilobytes over all sizes: a collector that looks more often sees a larger maximum.
    let few = |by: f64| -> Vec<(f64, f64)> {
        pairs(by, 5e4, 0.2).into_iter().map(|(n, bytes)| (n / 100.0, bytes)).collect()
    };
    assert_eq!(word(&judge_growth(&few(0.0), ONE_BYTE)), "grows");
    assert_ne!(word(&judge_growth(&few(1.0), ONE_BYTE)), "grows");
}

#[test]
fn too_few_sizes_are_reported() {
    let three = [(1.0, 10.0), (2.0, 20.0), (8.0, 80.0)];
    assert_eq!(judge_growth(&three, ONE_BYTE), Retained::Unknown(GrowthDoubt::TooFewSizes));
    let close = [(10.0, 10.0), (11.0, 20.0), (12.0, 80.0), (13.0, 90.0)];
    assert_eq!(judge_growth(&close, ONE_BYTE), Retained::Unknown(GrowthDoubt::TooFewSizes));
}

#[test]
fn readings_in_whole_regions_show_no_less_than_a_region() {
    let regions = |n: f64| ((4e6 + 3.0 * n) / 2_097_152.0).ceil() * 2_097_152.0;
    let found = exact(regions);
    assert!(matches!(found, Retained::Unknown(GrowthDoubt::Noise { at_most }) if at_most > 3.0), "{found:?}");
}

#[test]
fn a_root_of_which_the_beginning_was_not_seen_is_left_open() {
    let found = judge_growth(
        &SIZES
            .iter()
            .zip([44_376.0, 44_376.0, 44_376.0, 44_376.0, 79_864.0, 105_136.0])
            .map(|(n, b)| (*n, b))
            .collect::<Vec<_>>(),
        ONE_BYTE,
    );
    assert!(matches!(found, Retained::Unknown(GrowthDoubt::Form { .. })), "{found:?}");
}

/// Growth that is observed up to 10 % too small, with noise of a collector of ±10 kB.
#[test]
fn no_form_is_taken_for_another_under_noise() {
    let forms: [(&[&str], &str, Curve); 6] = [
        (&["grows"], "a list", |n| 4e6 + 300.0 * n),
        (&["grows"], "one in fifty on a large base", |n| 1e8 + 2.0 * n),
        (&["slows"], "a root", |n| 4e6 + 30_000.0 * n.sqrt()),
        (&["slows"], "a logarithm", |n| 4e6 + 1e6 * n.ln()),
        (&["slows", "stops"], "a cache", |n| 4e6 + 1000.0 * n.min(4000.0)),
        (&["constant"], "nothing", |_| 4e6),
    ];
    let mut decided = 0;
    for (right, name, of) in forms {
        let mut wrong = 0;
        for seed in 0..400 {
            let mut pcg = Pcg::with_stream(seed, 7);
            let mut share = || f64::from(pcg.next_u32()) / f64::from(u32::MAX);
            let sizes: Vec<f64> = SIZES.iter().flat_map(|n| [*n, *n]).collect();
            let readings: Vec<(f64, f64)> = sizes
                .iter()
                .map(|n| {
                    let grown = of(*n) - of(0.001);
                    (*n, of(0.001) + grown * (1.0 - 0.1 * share()) + 20_000.0 * (share() - 0.5))
                })
                .collect();
            let found = word(&judge_growth(&readings, ONE_BYTE));
            decided += u32::from(found != "unknown");
            wrong += u32::from(found != "unknown" && !right.contains(&found));
        }
        assert!(wrong <= 20, "{name}: {wrong} of 400 wrong");
    }
    assert!(decided > 1200, "{decided} of 2400 decided");
}

#[test]
fn growth_far_below_the_smallest_that_matters_is_none() {
    let live = [1_322_336.0, 1_322_360.0, 1_322_552.0, 1_322_832.0, 1_323_376.0];
    let readings: Vec<(f64, f64)> =
        live.iter().zip(0..).map(|(bytes, power)| (10_000.0 * f64::powi(2.0, power), *bytes)).collect();
    assert!(matches!(judge_growth(&readings, 1.0), Retained::Constant { .. }));
    assert!(matches!(judge_growth(&readings, 0.001), Retained::Grows { .. }));
}
