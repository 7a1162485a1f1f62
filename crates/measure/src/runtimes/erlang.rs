//! Erlang and Elixir: recognised, so that what they cannot tell is said.

use super::elf::Elf;
use super::table::{Adapter, Found};

const WHY: &str = "the virtual machine runs nothing of ours as it halts, and what a sampler saw last is stale; \
                   print erlang:statistics(garbage_collection) at the program's end";

pub(super) const ADAPTER: Adapter = Adapter {
    word: "erlang",
    lacks: &[
        ("alloc.bytes", WHY),
        ("alloc.objects", WHY),
        ("gc.count", WHY),
        ("gc.minor", WHY),
        ("gc.major", WHY),
        ("gc.time", WHY),
        ("gc.pause_max", WHY),
        ("heap.live_max", WHY),
        ("heap.peak", WHY),
    ],
    find,
    tell: |_, _| Ok(Vec::new()),
};

fn find(elf: &Elf) -> Option<Found> {
    let beam = elf.exports("erts_alloc_init") || elf.has("erts_alloc_init");
    beam.then(|| Found::new(None, "the symbols it exports", "not at all")).flatten()
}
