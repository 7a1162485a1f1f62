//! Perl: recognised, so that what it cannot tell is said.

use super::elf::Elf;
use super::figures::COMMON;
use super::table::{Adapter, Found};

const WHY: &str = "it counts references and keeps no figures; malloc.bytes has what it takes from malloc, \
                   without the heads of scalars, which come from arenas";

pub(super) const ADAPTER: Adapter = Adapter {
    word: "perl",
    lacks: &[
        ("alloc.bytes", WHY),
        ("alloc.objects", WHY),
        ("gc.count", "it counts references and has no collector"),
        ("gc.minor", "it counts references and has no collector"),
        ("gc.major", "it counts references and has no collector"),
        ("gc.time", "it counts references and has no collector"),
        ("gc.pause_max", "it counts references and has no collector"),
        ("heap.live_max", WHY),
        ("heap.peak", WHY),
    ],
    find,
    tell: |_, _| Ok(Vec::new()),
};

fn find(elf: &Elf) -> Option<Found> {
    let perl = elf.exports("perl_alloc") || elf.needs("libperl.so").is_some();
    debug_assert_eq!(ADAPTER.lacks.len(), COMMON.len());
    perl.then(|| Found::new(None, "the symbols it exports", "not at all")).flatten()
}
