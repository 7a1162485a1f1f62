//! Lua 5.4: the collector's cycles, counted by a finaliser that re-creates itself.

use super::adapter::{Adapter, Recognition};
use super::agent_records::{AgentRecord, HookFile, field};
use super::elf::{Elf, FileMarks};
use super::figures::RuntimeFigure;

pub(super) const ADAPTER: Adapter = Adapter {
    word: "lua",
    lacks: &[
        ("alloc.bytes", "Lua keeps no total, but takes every byte from malloc: malloc.bytes is exact"),
        ("alloc.objects", "Lua keeps no total, but takes every object from malloc: see malloc.count"),
        ("gc.minor", "the kinds of cycle are not distinguished; see gc.count"),
        ("gc.major", "the kinds of cycle are not distinguished; see gc.count"),
        ("gc.time", "Lua keeps no times; profile the program instead"),
        ("gc.pause_max", "Lua keeps no times; profile the program instead"),
        ("heap.live_max", "Lua keeps no maximum; see malloc.peak"),
        ("heap.peak", "Lua keeps no maximum; malloc.peak is exact"),
    ],
    marks: FileMarks { exported: &["lua_newstate"], texts: &["LUA_INIT_5_4"], ..FileMarks::NONE },
    find,
    figures_of,
    counts_from_its_parent: true,
    hook: Some(("hook.lua", include_str!("hooks/hook.lua"))),
    ..Adapter::SILENT
};

fn find(elf: &Elf) -> Option<Recognition> {
    let lua = elf.needs("liblua5.4").is_some() || elf.exports("lua_newstate") && elf.holds("LUA_INIT_5_4");
    lua.then(|| {
        Recognition::new(Some("5.4".to_owned()), "the symbols of its library", "a hook through LUA_INIT")
    })
    .flatten()
}

pub(super) fn figures_of(record: &AgentRecord, answers: &[&HookFile]) -> Result<Vec<RuntimeFigure>, String> {
    match answers.first().and_then(|answer| field(&answer.text, "cycles")) {
        Some(cycles) => Ok(vec![RuntimeFigure::exact("gc.count", cycles)]),
        None => Err(format!("{}; os.exit without `true` closes nothing", record.silence())),
    }
}
