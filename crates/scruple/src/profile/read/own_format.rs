//! Reads and writes Scruple's own format of profiles: JSON, compressed by gzip. It contains what a comparison needs,
//! including the machine code.

use super::{ImportedProfile, Kind, OWN};
use scruple_code::{Binaries, ClosureTypes, MachineCode, ProfileFunction, Side};
use scruple_core::explain::{Context, Function, OwnCost, Tree};
use scruple_stats::sorting::SortedMap;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::io::Write;

/// The first characters of the JSON text.
pub(super) const HEAD: &str = "{\"scruple_calls\":";

/// The version of the format.
const VERSION: u32 = 2;

/// The row of a context: the index of its parent plus one, the index of its function, calls, recursive calls,
/// instructions, allocations, bytes.
type ContextRow = (u64, u64, u64, u64, u64, u64, u64);

#[derive(Serialize, Deserialize)]
struct OwnProfile {
    scruple_calls: u32,
    title: String,
    has_heap: bool,
    names: Vec<Function>,
    functions: Vec<ProfileFunction>,
    contexts: Vec<ContextRow>,
    recursive: Vec<(usize, usize, u64)>,
    #[serde(default)]
    folds_by_call: bool,
    executed: Vec<SortedMap<u64, u8>>,
    /// The number of executions of each instruction, by file.
    counts: SortedMap<String, Vec<(u64, u64)>>,
    named: (u64, u64),
    #[serde(default)]
    cut: u64,
    /// The closures of Haskell by type; profiles of Haskell programs without them lack their allocations.
    #[serde(default)]
    closures: Option<ClosureTypes>,
    /// The program's file of each process, with all instructions of the process.
    #[serde(default)]
    programs: Vec<(String, u64)>,
    code: MachineCode,
}

/// Returns the profile of a run in the form in which it is stored.
pub fn bytes(title: &str, has_heap: bool, side: &Side) -> Vec<u8> {
    let pairs =
        |of_file: &HashMap<u64, u64>| of_file.iter().map(|(address, count)| (*address, *count)).collect();
    let mut counts: SortedMap<String, Vec<(u64, u64)>> =
        side.counts.iter().map(|(file, of_file)| (file.clone(), pairs(of_file))).collect();
    counts.values_mut().for_each(|places| places.sort_unstable());
    let row = |context: &Context| {
        let OwnCost { instructions, allocations, bytes, .. } = context.cost;
        let parent = context.parent.map_or(0, |parent| parent as u64 + 1);
        (parent, context.function as u64, context.calls, context.recursive, instructions, allocations, bytes)
    };
    let document = OwnProfile {
        scruple_calls: VERSION,
        title: title.to_owned(),
        has_heap,
        names: side.tree.functions.clone(),
        functions: side.functions.clone(),
        contexts: side.tree.contexts.iter().map(row).collect(),
        recursive: side.tree.recursive.clone(),
        folds_by_call: side.tree.folds_by_call,
        executed: side.executed.clone(),
        counts,
        named: side.named,
        cut: side.cut,
        closures: Some(side.closures.clone()),
        programs: side.programs.clone(),
        code: Binaries::new().machine_code(side),
    };
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    // Writing to memory cannot fail.
    let _ = packed.write_all(serde_json::to_string(&document).unwrap_or_default().as_bytes());
    packed.finish().unwrap_or_default()
}

pub(super) fn parse(text: &str) -> Result<ImportedProfile, String> {
    let other_version = || "it was written by another version of Scruple; count it again".to_owned();
    let version =
        text[HEAD.len()..].split([',', '}']).next().and_then(|word| word.trim().parse::<u32>().ok());
    if version != Some(VERSION) {
        return Err(other_version());
    }
    let document: OwnProfile =
        serde_json::from_str(text).map_err(|error| format!("it is damaged: {error}"))?;
    let side = side(&document).ok_or("it is damaged: its parts do not fit together")?;
    if side.is_haskell() && document.closures.is_none() {
        return Err(other_version());
    }
    let kind = Kind { has_heap: document.has_heap, ..Kind::counted(OWN) };
    Ok(ImportedProfile { title: Some(document.title), kind, side, has_checksum: true })
}

/// Returns the tree. Returns `None` unless callers precede callees and every index is within its list.
fn side(document: &OwnProfile) -> Option<Side> {
    let functions = document.names.len();
    let lists = [document.functions.len(), document.executed.len(), document.code.functions.len()];
    if lists.iter().any(|length| *length != functions) {
        return None;
    }
    let mut contexts = Vec::with_capacity(document.contexts.len());
    let mut sum: u64 = 0;
    for (index, (parent, function, calls, recursive, instructions, allocations, bytes)) in
        document.contexts.iter().copied().enumerate()
    {
        let parent = usize::try_from(parent).ok()?.checked_sub(1);
        let function = usize::try_from(function).ok()?;
        if function >= functions || parent.is_none() != (index == 0) || parent.is_some_and(|at| at >= index) {
            return None;
        }
        sum = sum.checked_add(instructions)?;
        let cost = OwnCost { instructions, allocations, bytes, ..OwnCost::default() };
        contexts.push(Context { parent, function, calls, recursive, cost });
    }
    let known = |(from, to, _): &(usize, usize, u64)| *from < contexts.len() && *to < contexts.len();
    if contexts.is_empty() || !document.recursive.iter().all(known) {
        return None;
    }
    let of_files =
        document.counts.iter().map(|(file, places)| (file.clone(), places.iter().copied().collect()));
    Some(Side {
        digests: None,
        tree: Tree {
            functions: document.names.clone(),
            contexts,
            edges: Vec::new(),
            folds_by_call: document.folds_by_call,
            recursive: document.recursive.clone(),
        },
        functions: document.functions.clone(),
        executed: document.executed.clone(),
        counts: of_files.collect(),
        named: document.named,
        cut: document.cut,
        closures: document.closures.clone().unwrap_or_default(),
        programs: document.programs.clone(),
        code: Some(document.code.clone()),
        ..Side::default()
    })
}
