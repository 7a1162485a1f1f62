//! LuaJIT: the collector's cycles, counted by a finaliser that re-creates itself.

use super::adapter::{Adapter, Recognition};
use super::elf::{Elf, FileMarks};
use super::lua::figures_of;

const NO_TOTAL: &str =
    "LuaJIT keeps no total, and its allocator takes memory from the kernel, which malloc.* does not see";
const NO_CYCLES: &str = "the kinds of cycle are not distinguished; see gc.count";
const NO_TIMES: &str = "LuaJIT keeps no times; profile the program with -jp instead";
const NO_MAXIMUM: &str = "LuaJIT keeps no maximum; see memory.peak";

pub(super) const ADAPTER: Adapter = Adapter {
    word: "luajit",
    lacks: &[
        ("alloc.bytes", NO_TOTAL),
        ("alloc.objects", NO_TOTAL),
        ("gc.minor", NO_CYCLES),
        ("gc.major", NO_CYCLES),
        ("gc.time", NO_TIMES),
        ("gc.pause_max", NO_TIMES),
        ("heap.live_max", NO_MAXIMUM),
        ("heap.peak", NO_MAXIMUM),
    ],
    marks: FileMarks { exported: &["luaJIT_setmode"], ..FileMarks::NONE },
    find,
    figures_of,
    counts_from_its_parent: true,
    ..Adapter::SILENT
};

fn find(elf: &Elf) -> Option<Recognition> {
    let luajit = elf.needs("libluajit").is_some() || elf.exports("luaJIT_setmode");
    luajit.then(|| Recognition::new(None, "the symbols it exports", "a hook through LUA_INIT")).flatten()
}
