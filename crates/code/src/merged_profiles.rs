//! Merges the profiles of one program into one call tree, with names that can be compared across versions.

use super::haskell::{self, ClosureTypes, SourceText};
use super::machine_code::aliases::Aliases;
use super::machine_code::code_hashes::MachineCode;
use super::machine_code::demangle::demangle;
use super::machine_code::stripped_function::{self, NamesByAddress};
use super::profile::{Calls, HeapCounts, Profile, ProfileFunction, Profiles};
use scruple_core::explain::{
    self, GENERATED, OwnCost, PROGRAM, Tree, is_library, normal, restore_names_of_packages,
};
use scruple_core::harmless_text::plain;
use scruple_stats::sorting::SortedMap;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

/// Indices of functions by file, address, name, and whether the file is the program itself.
type FunctionIndices = HashMap<(Option<String>, u64, Option<String>, bool), usize>;

/// One of two programs that are compared.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// The contexts of all processes, below a root without a function.
    pub tree: Tree,
    /// The tree's functions as the profiles name them, in the order of the tree.
    pub functions: Vec<ProfileFunction>,
    /// For each function, the executed instructions: the length by the distance from the function's start, in bytes.
    pub executed: Vec<SortedMap<u64, u8>>,
    /// How often each instruction was executed, by file and then by address in the file.
    pub counts: HashMap<String, HashMap<u64, u64>>,
    /// The own instructions of code whose function is known, by a symbol or an unwinding table, and of other code.
    pub named: (u64, u64),
    /// Calls to functions whose context is below the root, without their callers, because there are too many contexts.
    /// It is 0 only if there are none.
    pub cut: u64,
    /// The functions' machine code if it was stored with the profile; `None` if it has to be read from the files.
    pub code: Option<MachineCode>,
    /// The closures that Haskell code allocated, by the name of their type.
    pub closures: ClosureTypes,
    /// A digest of each function's code, where a language's runtime gave it: these functions have no machine code.
    pub digests: Option<Vec<u64>>,
    /// The names of functions in files without symbols, by file and start address.
    pub names: Arc<NamesByAddress>,
    /// The command line of each process, with the index of the context that stands for it.
    pub processes: Vec<(Vec<String>, usize)>,
    /// The program's file of each process, where it is known, and all instructions of the process.
    pub programs: Vec<(String, u64)>,
}

impl Side {
    /// How often the instruction at an address of a file was executed.
    pub fn executions(&self, file: &str, address: u64) -> u64 {
        self.counts.get(file).and_then(|of_file| of_file.get(&address)).copied().unwrap_or(0)
    }

    /// Builds the tree of these profiles; each process is below the root.
    pub fn of(profiles: &Profiles) -> Side {
        Side::with_sources(profiles, &haskell::as_built)
    }

    /// Like [`Side::of`], but `sources` supplies the sources that name Haskell functions.
    pub fn with_sources(profiles: &Profiles, sources: &SourceText<'_>) -> Side {
        Side::with_program(profiles, sources, programs(profiles).next())
    }

    /// Builds the trees of two programs that are compared. Each may begin with another program that executes it in its
    /// own place, as `env` and other wrappers do.
    pub fn both(profiles: [&Profiles; 2], sources: [&SourceText<'_>; 2]) -> [Side; 2] {
        let [first, second] = most_alike(profiles);
        [
            Side::with_program(profiles[0], sources[0], first),
            Side::with_program(profiles[1], sources[1], second),
        ]
    }

    fn with_program(profiles: &Profiles, sources: &SourceText<'_>, program: Option<&str>) -> Side {
        let mut side = Side::default();
        let root = side.add_function(ProfileFunction::default(), explain::Function::default());
        side.tree.contexts.push(explain::Context { function: root, calls: 1, ..Default::default() });
        side.tree.folds_by_call = profiles.processes.iter().all(|profile| profile.folds_by_call);
        let mut known = FunctionIndices::new();
        let mut aliases = Aliases::default();
        for profile in &profiles.processes {
            let mut by_procedure = haskell::by_procedure(profile, sources);
            // Callgrind does not count the allocations of malloc, and a part must not be shown as the whole.
            if let Some((counted, closures)) = by_procedure.as_mut().filter(|_| !profile.calls.is_empty()) {
                counted.contexts.iter_mut().for_each(|context| context.heap = HeapCounts::default());
                closures.clear();
            }
            for (name, closures) in by_procedure.iter().flat_map(|(_, closures)| closures) {
                *side.closures.entry(name.clone()).or_default() += *closures;
            }
            let file = own_file(profile);
            let is_program = file == program;
            side.programs.extend(file.map(|file| (file.to_owned(), profile.total)));
            let profile = by_procedure.as_ref().map_or(profile, |(profile, _)| profile);
            side.add(profile, program, is_program, &mut known, &mut aliases);
        }
        restore_names_of_packages(&mut side.tree.functions);
        side
    }

    /// The share of instructions in functions whose beginning is not known.
    pub fn nameless(&self) -> f64 {
        let (named, nameless) = self.named;
        nameless as f64 / (named.saturating_add(nameless)).max(1) as f64
    }

    /// Whether Go's runtime ran: its monitor runs in each program.
    pub fn is_go(&self) -> bool {
        self.has(|name| name == "runtime.sysmon")
    }

    /// Whether the program started threads. Go's runtime always does.
    pub fn has_threads(&self) -> bool {
        self.is_go() || self.has(|name| name.starts_with("pthread_create"))
    }

    fn has(&self, is_wanted: impl Fn(&str) -> bool) -> bool {
        self.functions.iter().any(|function| function.name.as_deref().is_some_and(&is_wanted))
    }

    /// Whether a function has no symbol, and only an unwinding table says where it is.
    pub fn is_stripped(&self, function: usize) -> bool {
        let known = &self.functions[function];
        // Code whose function is not known is attributed to the beginning of the file, its header.
        let begins = known.object.is_some() && known.offset > 0;
        known.name.is_none() && begins && !self.executed[function].is_empty()
    }

    /// The share of instructions in functions without a symbol that are known only from an unwinding table.
    pub fn stripped(&self) -> f64 {
        let contexts = self.tree.contexts.iter().filter(|context| self.is_stripped(context.function));
        let sum: u64 = contexts.map(|context| context.cost.instructions).sum();
        sum as f64 / self.tree.total(explain::Count::Instructions).max(1) as f64
    }

    /// Names the functions without a symbol. A function that `names` does not contain gets its address as its name.
    pub(super) fn use_names(&mut self, names: &Arc<NamesByAddress>, is_second: bool) {
        for function in (0..self.functions.len()).filter(|one| self.is_stripped(*one)).collect::<Vec<_>>() {
            let known = &self.functions[function];
            let path = known.object.clone().unwrap_or_default();
            let name = match names.get(&path) {
                None => stripped_function::label(known.offset, None, &path),
                Some(names) => names.get(&known.offset).cloned().unwrap_or_else(|| match is_second {
                    true => stripped_function::label_of_second(known.offset, &path),
                    false => stripped_function::label(known.offset, None, &path),
                }),
            };
            self.tree.functions[function].name = plain(&name);
            self.tree.functions[function].shown = plain(&name);
        }
        self.names = names.clone();
    }

    /// The share of instructions in code that is in no file: the program generated it while it ran.
    pub fn generated(&self) -> f64 {
        let in_no_file = |function: &usize| self.functions[*function].object.is_none();
        let contexts = self.tree.contexts.iter().filter(|context| in_no_file(&context.function));
        let sum: u64 = contexts.map(|context| context.cost.instructions).sum();
        sum as f64 / self.tree.total(explain::Count::Instructions).max(1) as f64
    }

    /// Whether GHC compiled a part of the program.
    pub fn is_haskell(&self) -> bool {
        self.tree.functions.iter().any(|function| function.trampoline && !function.shown.is_empty())
    }

    /// The share of instructions in Haskell functions that are known only by their module.
    pub fn local_functions(&self) -> f64 {
        let is_local = |function: &usize| haskell::is_of_module(&self.tree.functions[*function].shown);
        let contexts = self.tree.contexts.iter().filter(|context| is_local(&context.function));
        let sum: u64 = contexts.map(|context| context.cost.instructions).sum();
        sum as f64 / self.tree.total(explain::Count::Instructions).max(1) as f64
    }

    /// Adds a function: `function` as the profile has it, `named` with names that other versions share. Returns its
    /// index.
    pub fn add_function(&mut self, function: ProfileFunction, named: explain::Function) -> usize {
        self.functions.push(function);
        self.tree.functions.push(named.harmless());
        self.executed.push(SortedMap::new());
        self.functions.len() - 1
    }

    /// Adds the profile of a process. `program` is the file of the program that was started first; `is_program` says
    /// whether the process runs it.
    fn add(
        &mut self,
        profile: &Profile,
        program: Option<&str>,
        is_program: bool,
        known: &mut FunctionIndices,
        aliases: &mut Aliases,
    ) {
        self.cut = self.cut.saturating_add(profile.cut);
        let places = self.add_functions(profile, program, known, aliases);
        let process = explain::Function {
            name: match is_program {
                true => "the program".to_owned(),
                false => profile.words.first().map_or("a process".to_owned(), |word| base(word).to_owned()),
            },
            ..explain::Function::default()
        };
        let process = self.special(process);
        let begin = self.tree.contexts.len();
        self.processes.push((profile.words.clone(), begin));
        self.add_runs(profile, &places, aliases);
        self.add_contexts(profile, process, &places);
        self.add_calls(profile, begin, &places);
    }

    /// Adds the functions that are not known from another process, and returns the index of each function of the
    /// profile.
    fn add_functions(
        &mut self,
        profile: &Profile,
        program: Option<&str>,
        known: &mut FunctionIndices,
        aliases: &mut Aliases,
    ) -> Vec<usize> {
        let place = |function: &ProfileFunction| {
            let function = &aliases.with_name(function);
            let is_own = program.is_some() && function.object.as_deref() == program;
            let id = (function.object.clone(), function.offset, function.name.clone(), is_own);
            *known.entry(id).or_insert_with(|| {
                let named = named(function, is_own);
                let aliases = aliases.of(function, &named.name);
                self.add_function(function.clone(), explain::Function { aliases, ..named })
            })
        };
        profile.functions.iter().map(place).collect()
    }

    /// Adds which instructions ran, and how often.
    fn add_runs(&mut self, profile: &Profile, places: &[usize], aliases: &mut Aliases) {
        // The instructions of functions to which Valgrind gives no name are not attributed to them.
        let mut unnamed: HashMap<(&str, u64), usize> = HashMap::new();
        for (index, function) in profile.functions.iter().enumerate() {
            if let (None, Some(object)) = (&function.name, &function.object) {
                unnamed.insert((object, function.offset), index);
            }
        }
        for run in &profile.runs {
            let function = run.function.or_else(|| {
                let object = run.object.as_deref()?;
                unnamed.get(&(object, aliases.begin_without_size(object, run.offset)?)).copied()
            });
            let mut address = run.offset;
            let mut of_file = match &run.object {
                Some(object) if self.counts.contains_key(object) => self.counts.get_mut(object),
                Some(object) => Some(self.counts.entry(object.clone()).or_default()),
                None => None,
            };
            for length in &run.lengths {
                if let Some(of_file) = &mut of_file {
                    *of_file.entry(address).or_default() += run.count;
                }
                if let Some(function) = function
                    && let Some(distance) = address.checked_sub(profile.functions[function].offset)
                {
                    self.executed[places[function]].insert(distance, *length);
                }
                address += u64::from(*length);
            }
        }
    }

    /// Adds the contexts of a process, with their costs.
    fn add_contexts(&mut self, profile: &Profile, process: usize, places: &[usize]) {
        let signal = self.signal();
        let begin = self.tree.contexts.len();
        let mut has_threads = false;
        for (index, context) in profile.contexts.iter().enumerate() {
            let function = match (context.parent, context.function) {
                (None, _) => process,
                (Some(_), None) => signal,
                (Some(_), Some(function)) => places[function],
            };
            let cost = OwnCost {
                instructions: context.own,
                allocations: context.heap.allocations,
                bytes: context.heap.bytes,
                frees: context.heap.frees,
                ..OwnCost::default()
            };
            let calls = match index {
                // A forked process is no further call of the program: it continues where its parent was.
                0 => u64::from(!profile.is_forked),
                // All threads count as one call, because their number varies and means over them say nothing.
                _ if self.tree.functions[function].name == THREADS_OF_GO => {
                    u64::from(!std::mem::replace(&mut has_threads, true))
                }
                _ => context.calls,
            };
            self.tree.contexts.push(explain::Context {
                parent: Some(context.parent.map_or(0, |parent| begin + parent)),
                function,
                calls,
                recursive: 0,
                cost,
            });
            let is_known = !self.tree.functions[function].name.is_empty() || self.is_stripped(function);
            let sum = if is_known { &mut self.named.0 } else { &mut self.named.1 };
            *sum += context.own;
        }
    }

    /// Adds the calls between contexts. The contexts of the process begin at `begin`.
    fn add_calls(&mut self, profile: &Profile, begin: usize, places: &[usize]) {
        let edge = |edge: &Calls| explain::Edge {
            caller: places[edge.caller],
            callee: places[edge.callee],
            calls: edge.calls,
        };
        self.tree.edges.extend(profile.calls.iter().map(edge));
        for call in &profile.recursive {
            let to = &mut self.tree.contexts[begin + call.to];
            to.recursive = to.recursive.saturating_add(call.calls);
            self.tree.recursive.push((begin + call.from, begin + call.to, call.calls));
        }
    }

    /// The index of the function that stands for an interruption by a signal.
    pub(super) fn signal(&mut self) -> usize {
        self.special(explain::Function { name: "(signal)".to_owned(), ..Default::default() })
    }

    /// Names a function that this launch did not execute as the other functions of its file are named.
    pub(super) fn named_like(&self, function: &ProfileFunction) -> explain::Function {
        let of_file = self.functions.iter().position(|known| known.object == function.object);
        named(function, of_file.is_some_and(|at| self.tree.functions[at].module == PROGRAM))
    }

    /// The index of a function without code that stands for a process or a signal interruption; it is added if
    /// necessary.
    fn special(&mut self, named: explain::Function) -> usize {
        let named = named.harmless();
        match self.tree.functions.iter().position(|known| *known == named) {
            Some(known) => known,
            None => self.add_function(ProfileFunction::default(), named),
        }
    }
}

fn base(path: &str) -> &str {
    Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or(path)
}

/// The files of the programs that the first process executed, one in place of the other.
fn programs(profiles: &Profiles) -> impl Iterator<Item = &str> {
    let first = profiles.processes.first().map(|profile| profile.process);
    let of_first = profiles.processes.iter().filter(move |profile| Some(profile.process) == first);
    of_first.filter_map(own_file)
}

/// The programs that are compared: those whose executed functions share the most names, else those with the same file
/// name, else the last ones. One file that both execute, and then another one in its place, is a wrapper.
fn most_alike(profiles: [&Profiles; 2]) -> [Option<&str>; 2] {
    let names = |all: &'_ Profiles, file: &str| -> HashSet<String> {
        let functions = all.processes.iter().flat_map(|profile| &profile.functions);
        let of_file = functions.filter(|function| function.object.as_deref() == Some(file));
        of_file.filter_map(|function| function.name.clone()).collect()
    };
    let [old, new] =
        profiles.map(|all| programs(all).map(|file| (file, names(all, file))).collect::<Vec<_>>());
    let last = [&old, &new].map(|all| all.last().map(|one| one.0));
    let pairs = old.iter().flat_map(|one| new.iter().map(move |other| (one, other)));
    let both = pairs.max_by_key(|(one, other)| {
        let is_wrapper = one.0 == other.0 && !last.contains(&Some(one.0));
        (!is_wrapper).then(|| (one.1.intersection(&other.1).count(), base(one.0) == base(other.0)))
    });
    both.map_or(last, |(one, other)| [Some(one.0), Some(other.0)])
}

/// The program's own file: the one in which the process starts, after the loader.
fn own_file(profile: &Profile) -> Option<&str> {
    let is_loader = |object: &str| base(object).starts_with("ld-") || base(object).starts_with("ld64");
    let starts = ["_start", "_rt0_amd64_linux", "_rt0_arm64_linux"];
    let begins = |function: &&ProfileFunction| {
        let named = function.name.as_deref().is_some_and(|name| starts.contains(&name));
        named && function.object.as_deref().is_some_and(|object| !is_loader(object))
    };
    let by_start = profile.functions.iter().find(begins);
    let word = profile.words.first();
    let by_word = || {
        let name = word.map(|word| base(word));
        profile.functions.iter().find(|one| one.object.as_deref().map(base) == name)
    };
    // A stripped program may have been started through a link with another name.
    let by_link = || {
        let path = word.and_then(|word| std::fs::canonicalize(word).ok())?;
        profile.functions.iter().find(|one| one.object.as_deref().map(Path::new) == Some(&path))
    };
    by_start.or_else(by_word).or_else(by_link).and_then(|function| function.object.as_deref())
}

/// The functions with which threads of Go begin. Chance decides which of them runs a goroutine.
const GO_THREADS: [&str; 3] = ["_rt0_amd64_linux", "_rt0_arm64_linux", "runtime.clone.abi0"];

/// The name under which they are one.
const THREADS_OF_GO: &str = "(threads of Go)";

/// The function with names that other versions share.
fn named(function: &ProfileFunction, is_own: bool) -> explain::Function {
    if function.name.as_deref().is_some_and(|name| is_own && GO_THREADS.contains(&name)) {
        let name = THREADS_OF_GO.to_owned();
        return explain::Function { shown: name.clone(), name, ..explain::Function::default() };
    }
    let shown = function.name.as_deref().map(demangle).unwrap_or_default();
    let name = normal(&shown);
    let is_all = function.object.is_none() && shown == haskell::ALL_PROCEDURES;
    let module = match (&function.object, is_own) {
        _ if is_all => String::new(),
        (_, true) => PROGRAM.to_owned(),
        (Some(object), false) => without_version(base(object)),
        (None, false) => GENERATED.to_owned(),
    };
    explain::Function {
        module,
        library: is_own && is_library(&shown),
        trampoline: is_all || shown.starts_with("StgRun"),
        name,
        shown,
        aliases: Vec::new(),
    }
}

/// The file name without its version: `libz.so.1.2.13` becomes `libz.so`, `libc-2.36.so` becomes `libc.so`.
pub fn without_version(file: &str) -> String {
    let stem = file.find(".so").map_or(file, |at| &file[..at]);
    let numbers = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let stem = stem.rsplit_once('-').filter(|(_, end)| numbers(end)).map_or(stem, |(stem, _)| stem);
    if file.contains(".so") { format!("{stem}.so") } else { stem.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::ProfileContext;

    fn function(name: &str) -> ProfileFunction {
        ProfileFunction { name: Some(name.to_owned()), object: Some("/app".to_owned()), offset: 0x1000 }
    }

    #[test]
    fn more_threads_of_go_are_not_more_calls() {
        let functions = vec![function("_rt0_amd64_linux"), function("runtime.clone.abi0")];
        let context = |parent, function, calls| ProfileContext {
            parent,
            function,
            calls,
            own: 9,
            heap: HeapCounts::default(),
        };
        let contexts =
            vec![context(None, None, 0), context(Some(0), Some(0), 1), context(Some(0), Some(1), 6)];
        let process = Profile { words: vec!["/app".to_owned()], functions, contexts, ..Profile::default() };
        let tree = Side::of(&Profiles { processes: vec![process], ..Profiles::default() }).tree;
        let threads =
            tree.contexts.iter().filter(|context| tree.functions[context.function].name == THREADS_OF_GO);
        assert_eq!(threads.map(|context| context.calls).collect::<Vec<_>>(), [1, 0]);
    }

    #[test]
    fn it_does_not_matter_which_thread_of_go_runs_a_function() {
        let on_thread = |start: &str| {
            let functions = vec![function("_rt0_amd64_linux"), function(start), function("main.main")];
            let context = |parent, function, own| ProfileContext {
                parent,
                function,
                calls: 1,
                own,
                heap: HeapCounts::default(),
            };
            let contexts =
                vec![context(None, None, 0), context(Some(0), Some(1), 5), context(Some(1), Some(2), 70)];
            let process =
                Profile { words: vec!["/app".to_owned()], functions, contexts, ..Profile::default() };
            Side::of(&Profiles { processes: vec![process], ..Profiles::default() })
        };
        let [first, second] = ["_rt0_amd64_linux", "runtime.clone.abi0"].map(|start| on_thread(start).tree);
        let name = |tree: &Tree, context: usize| tree.functions[tree.contexts[context].function].name.clone();
        for context in 0..first.contexts.len() {
            assert_eq!(name(&first, context), name(&second, context));
        }
    }

    #[test]
    fn libraries_of_two_versions_have_one_name() {
        assert_eq!(without_version("libz.so.1.2.13"), "libz.so");
        assert_eq!(without_version("libc-2.36.so"), "libc.so");
        assert_eq!(without_version("app"), "app");
    }
}
