//! Attributes the counts of programs that GHC compiled to their procedures. Haskell procedures jump to each other
//! instead of calling, so that all of them seem to be called by the runtime; and most have no symbol. Here counts are
//! summed by address. GHC's debugging information (`-g1`) says where each procedure begins; its name comes from the
//! source, or from the Core that GHC dumped. A jump from one procedure to another is known only where the instruction
//! contains the target.

mod heap;
mod heap_limit;
mod names;
mod procedures;
mod source;

use super::profile::{HeapCounts, InstructionRun, Profile, ProfileContext, ProfileFunction, RecursiveCalls};
use heap::{TablePlace, Type};
use procedures::Procedures;
use scruple_stats::sorting::SortedMap;
use std::collections::{BTreeSet, HashMap};

pub use heap::{ClosureTypes, Closures};
pub(super) use names::is_of_module;
pub use procedures::core_of;
pub use source::{SourceText, as_built};

/// If at least this share of a function's entries comes from one other function, that function is shown as its
/// caller.
const ALL: f64 = 0.99;

/// A piece of Haskell code: a procedure, or all code of a file that cannot be divided into procedures.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CodePiece {
    object: String,
    /// The start address; `None` where procedure boundaries are not known.
    begin: Option<u64>,
    name: Option<String>,
}

/// The counts of a piece.
#[derive(Default)]
struct PieceCounts {
    instructions: u64,
    entries: u64,
    /// Jumps from the piece to itself.
    repeats: u64,
    from: SortedMap<usize, u64>,
    /// Bytes of Haskell's heap, and closures in it.
    bytes: i64,
    closures: u64,
}

/// The function in the tree that is shown as the caller of all Haskell procedures.
pub(super) const ALL_PROCEDURES: &str = "(procedures of Haskell)";

/// The files of a profile that contain Haskell code, and for each function of the profile whether it is Haskell code.
struct Haskell {
    files: HashMap<String, Procedures>,
    functions: Vec<bool>,
    /// The files whose code without symbols is Haskell code.
    nameless: BTreeSet<String>,
    /// The words of each closure that only programs built with `-prof` have.
    of_profiler: u64,
}

impl Haskell {
    fn of(profile: &Profile, sources: &SourceText<'_>) -> Option<Haskell> {
        // The runtime as a library has no symbol for StgRun, which starts Haskell code.
        let starts = |one: &ProfileFunction| {
            one.name.as_deref().is_some_and(|name| name.starts_with("StgRun"))
                || one.object.as_deref().is_some_and(|path| path.contains("/libHSrts"))
        };
        profile.functions.iter().find(|one| starts(one))?;
        let is_named = |one: &ProfileFunction| one.name.as_deref().is_some_and(names::is_haskell);
        let mut objects: SortedMap<&str, bool> = SortedMap::new();
        for one in profile.functions.iter().filter(|one| is_named(one)) {
            let has_modules = one.name.as_deref().and_then(names::module).is_some();
            *objects.entry(one.object.as_deref().unwrap_or_default()).or_default() |= has_modules;
        }
        // Most of the runtime is C, whose local functions have no symbols in a library.
        let all_haskell = |object: &str| objects.get(object) == Some(&true);
        let is_haskell = |one: &ProfileFunction| match &one.name {
            Some(_) => is_named(one),
            None => one.object.as_deref().is_some_and(all_haskell),
        };
        let functions = profile.functions.iter().map(is_haskell).collect();
        let mut files: HashMap<String, Procedures> = objects
            .keys()
            .filter_map(|path| Some(((*path).to_owned(), Procedures::of(path, sources)?)))
            .collect();
        for run in &profile.runs {
            if let Some(file) = run.object.as_ref().and_then(|object| files.get_mut(object)) {
                file.learn(run);
            }
        }
        let nameless = objects.into_iter().filter(|(_, all)| *all).map(|(path, _)| path.to_owned()).collect();
        let has_profiler = files.values().any(|file| file.address_of(heap::PROFILER).is_some());
        let of_profiler = if has_profiler { heap::OF_PROFILER } else { 0 };
        Some(Haskell { files, functions, nameless, of_profiler })
    }

    /// The file of a run, if the run is Haskell code.
    fn file_of<'a>(&'a self, run: &'a InstructionRun) -> Option<(&'a str, &'a Procedures)> {
        let object = run.object.as_deref()?;
        let procedures = self.files.get(object)?;
        let inside =
            run.function.map_or_else(|| self.nameless.contains(object), |function| self.functions[function]);
        (inside && !procedures.is_stub(run.offset)).then_some((object, procedures))
    }

    fn owns(&self, context: &ProfileContext) -> bool {
        context.function.is_some_and(|function| self.functions[function])
    }

    /// The type of closures whose info table is at a place in a file, or is named in it.
    fn closure_type(&self, place: &TablePlace, file: &Procedures) -> Option<Type> {
        match place {
            TablePlace::Address(address) => heap::type_at(*address, file, self.of_profiler),
            TablePlace::Symbol(symbol) => {
                let known =
                    |other: &Procedures| heap::type_at(other.address_of(symbol)?, other, self.of_profiler);
                self.files.values().find_map(known).or_else(|| heap::type_of(symbol))
            }
        }
    }
}

/// The profile with one function per Haskell procedure, all below [`ALL_PROCEDURES`], and the closures that these
/// allocated by type; `None` if GHC compiled nothing in it, or if the counts by address exceed the counts by context.
pub(super) fn by_procedure(profile: &Profile, sources: &SourceText<'_>) -> Option<(Profile, ClosureTypes)> {
    let haskell = Haskell::of(profile, sources)?;
    let mut pieces = CodePieces::default();
    let mut closures = ClosureTypes::new();
    for (at, run) in profile.runs.iter().enumerate() {
        let Some((object, procedures)) = haskell.file_of(run) else { continue };
        let piece = pieces.add(at, run, piece(run, profile, object, procedures), procedures);
        let allocated = heap::allocated(run, procedures);
        piece.bytes += allocated.bytes * run.count as i64;
        for place in &allocated.tables {
            let Some(known) = haskell.closure_type(place, procedures) else { continue };
            piece.closures += run.count;
            let bytes = known.size.unwrap_or(0) * run.count;
            *closures.entry(known.name).or_default() += Closures { count: run.count, bytes };
        }
    }
    let whole: u64 =
        profile.contexts.iter().filter(|context| haskell.owns(context)).map(|context| context.own).sum();
    let rest = whole.checked_sub(pieces.all.iter().map(|(_, counted)| counted.instructions).sum())?;
    Some((rebuilt(profile, &haskell, &pieces, rest), closures))
}

fn piece(run: &InstructionRun, profile: &Profile, object: &str, procedures: &Procedures) -> CodePiece {
    let object = object.to_owned();
    // Callgrind names local procedures, which have no symbol, by the symbol before them.
    let is_sure = profile.calls.is_empty();
    let symbol = run.function.filter(|_| is_sure).map(|function| &profile.functions[function]);
    if let Some((begin, name)) =
        symbol.and_then(|function| Some((function.offset, function.name.as_deref()?)))
    {
        return CodePiece { object, begin: Some(begin), name: Some(names::shown(name)) };
    }
    let (begin, name) = procedures.at(run.offset).unzip();
    CodePiece { object, begin: begin.flatten(), name }
}

#[derive(Default)]
struct CodePieces {
    all: Vec<(CodePiece, PieceCounts)>,
    known: HashMap<CodePiece, usize>,
    begins: HashMap<(String, u64), usize>,
    /// Jumps with known targets: the index of the source piece, the file, the target address, and the count.
    jumps: Vec<(usize, String, u64, u64)>,
    /// The index of the piece, by the index of the run.
    of_runs: HashMap<usize, usize>,
}

impl CodePieces {
    fn add(
        &mut self,
        number: usize,
        run: &InstructionRun,
        piece: CodePiece,
        procedures: &Procedures,
    ) -> &mut PieceCounts {
        let at = *self.known.entry(piece.clone()).or_insert_with(|| {
            self.all.push((piece.clone(), PieceCounts::default()));
            self.all.len() - 1
        });
        self.of_runs.insert(number, at);
        let counted = &mut self.all[at].1;
        counted.instructions += run.count * run.lengths.len() as u64;
        if piece.begin == Some(run.offset) {
            counted.entries += run.count;
        }
        let (last, before) = run.lengths.split_last().unwrap_or((&0, &[]));
        let address = run.offset + before.iter().map(|length| u64::from(*length)).sum::<u64>();
        if let Some(target) = procedures.jump(address, *last) {
            self.jumps.push((at, piece.object.clone(), target, run.count));
        }
        if let Some(begin) = piece.begin {
            self.begins.insert((piece.object, begin), at);
        }
        &mut self.all[at].1
    }

    /// For each piece, how often it was entered, and its only caller if it has one.
    fn calls(&self) -> Vec<(u64, Option<usize>)> {
        let mut counted: Vec<PieceCounts> = self.all.iter().map(|_| PieceCounts::default()).collect();
        for (from, object, target, count) in &self.jumps {
            match self.begins.get(&(object.clone(), *target)) {
                Some(to) if to == from => counted[*to].repeats += count,
                Some(to) => *counted[*to].from.entry(*from).or_default() += count,
                None => {}
            }
        }
        let calls = |(at, one): (usize, &PieceCounts)| {
            let calls = self.all[at].1.entries.saturating_sub(one.repeats);
            let most = one.from.iter().max_by_key(|(_, count)| **count);
            let only = most.filter(|(_, count)| **count as f64 >= ALL * calls as f64 && calls > 0);
            (calls, only.map(|(from, _)| *from))
        };
        let mut calls: Vec<(u64, Option<usize>)> = counted.iter().enumerate().map(calls).collect();
        // In a cycle of pieces that only enter each other, the first entry came from elsewhere, so the cycle is cut.
        for at in 0..calls.len() {
            let mut above = calls[at].1;
            let mut steps = 0;
            while let Some(next) = above.filter(|_| steps <= calls.len()) {
                above = calls[next].1;
                steps += 1;
            }
            if above.is_some() {
                calls[at].1 = None;
            }
        }
        calls
    }
}

/// Builds the new profile. Contexts of other code keep their callers; functions that Haskell code calls become
/// callees of [`ALL_PROCEDURES`].
fn rebuilt(profile: &Profile, haskell: &Haskell, pieces: &CodePieces, rest: u64) -> Profile {
    // Where procedures jump to each other, callgrind takes jumps for calls.
    let mut new =
        Profile { contexts: Vec::new(), recursive: Vec::new(), calls: Vec::new(), ..profile.clone() };
    let function =
        |name: Option<String>, object: Option<String>, offset: u64| ProfileFunction { name, object, offset };
    new.functions.push(function(Some(ALL_PROCEDURES.to_owned()), None, 0));
    let all_procedures = Some(new.functions.len() - 1);
    // The context of `ALL_PROCEDURES` follows the root, whose index is 0.
    let all = 1;
    let mut place: Vec<usize> = Vec::with_capacity(profile.contexts.len());
    for context in &profile.contexts {
        let parent = context.parent.map(|parent| place[parent]);
        if parent.is_some() && haskell.owns(context) {
            new.contexts[all].heap += context.heap;
            place.push(all);
            continue;
        }
        place.push(new.contexts.len());
        new.contexts.push(ProfileContext { parent, ..context.clone() });
        if parent.is_none() {
            // How often the runtime starts Haskell code says nothing about the procedures.
            let (parent, function) = (Some(0), all_procedures);
            new.contexts.push(ProfileContext {
                parent,
                function,
                calls: 1,
                own: rest,
                ..ProfileContext::default()
            });
        }
    }
    for calls in &profile.recursive {
        if !haskell.owns(&profile.contexts[calls.from]) && !haskell.owns(&profile.contexts[calls.to]) {
            let (from, to) = (place[calls.from], place[calls.to]);
            new.recursive.push(RecursiveCalls { from, to, ..*calls });
        }
    }
    let first = new.functions.len();
    for (piece, _) in &pieces.all {
        let piece = piece.clone();
        new.functions.push(function(piece.name, Some(piece.object), piece.begin.unwrap_or(0)));
    }
    let calls = pieces.calls();
    let mut contexts: Vec<Option<usize>> = vec![None; pieces.all.len()];
    for at in 0..pieces.all.len() {
        // The contexts of the callers must exist first.
        let mut path = vec![at];
        while let Some(above) = calls[path[path.len() - 1]].1 {
            path.push(above);
        }
        let mut parent = all;
        for one in path.into_iter().rev() {
            parent = *contexts[one].get_or_insert_with(|| {
                let counted = &pieces.all[one].1;
                let (calls, function) = (calls[one].0, Some(first + one));
                let bytes = u64::try_from(counted.bytes).unwrap_or(0);
                let heap = HeapCounts { allocations: counted.closures, bytes, frees: 0 };
                let own = counted.instructions;
                new.contexts.push(ProfileContext { parent: Some(parent), function, calls, own, heap });
                new.contexts.len() - 1
            });
        }
    }
    for (run, piece) in &pieces.of_runs {
        new.runs[*run].function = Some(first + piece);
    }
    new
}
