//! Reads the profiles that Valgrind's callgrind writes: instructions and calls by function.
//!
//! The format is the "Callgrind Format Specification" of the Valgrind manual. Names are compressed (`(7) main`
//! defines, `(7)` refers), positions may be relative, and the cost after a `calls=` line is inclusive: it contains
//! the callee's callees.

use scruple_stats::sorting::SortedMap;
use std::collections::{BTreeSet, HashMap};

/// A function, identified together with the file that contains it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectFunction {
    /// The function's name, without callgrind's marks of recursive instances.
    pub name: String,
    /// The file name of the executable or library; empty if callgrind does not know it.
    pub object: String,
}

/// The counts of one function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FunctionCosts {
    /// Instructions of the function itself, including functions inlined into it.
    pub own: u64,
    /// Instructions including callees; those of a recursive function count once.
    pub inclusive: u64,
    /// The number of calls.
    pub calls: u64,
    /// Allocations by the function itself; 0 if the file has no such column.
    pub allocations: u64,
    /// The bytes of these allocations.
    pub bytes: u64,
}

/// The counts of one process, or their sum.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallgrindProfile {
    /// The number of all instructions.
    pub total: u64,
    /// The counts by function.
    pub functions: SortedMap<ObjectFunction, FunctionCosts>,
    /// Whether allocations were counted, as Scruple's own files of this format have them.
    pub has_heap: bool,
    /// The number of calls by caller and callee.
    pub edges: SortedMap<(ObjectFunction, ObjectFunction), u64>,
    /// The code of functions, if the file has the addresses of instructions.
    pub code: SortedMap<ObjectFunction, ExecutedCode>,
    /// The paths of executables and libraries by their file names.
    pub paths: SortedMap<String, String>,
}

/// The executed instructions of one function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecutedCode {
    /// The number of executions by the instruction's address in the file.
    pub counts: SortedMap<u64, u64>,
    /// The lowest address at which the function was called.
    pub begin: Option<u64>,
    /// The numbers of the source files that functions of this name are in. More than one means that these are several
    /// functions.
    pub sources: BTreeSet<String>,
}

impl CallgrindProfile {
    /// Adds the counts of another profile, such as that of another process of the same server.
    pub fn add(&mut self, other: &CallgrindProfile) {
        add(&mut self.total, other.total);
        for (function, costs) in &other.functions {
            let sum = self.functions.entry(function.clone()).or_default();
            add(&mut sum.own, costs.own);
            add(&mut sum.inclusive, costs.inclusive);
            add(&mut sum.calls, costs.calls);
            add(&mut sum.allocations, costs.allocations);
            add(&mut sum.bytes, costs.bytes);
        }
        for (edge, calls) in &other.edges {
            add(self.edges.entry(edge.clone()).or_default(), *calls);
        }
        self.paths.extend(other.paths.clone());
        self.has_heap |= other.has_heap;
    }
}

/// Reads a profile, including all its parts if there are several.
///
/// # Errors
/// Says in which line the profile is malformed and why, as a clause.
pub fn parse(text: &str) -> Result<CallgrindProfile, String> {
    let mut reader = CallgrindParser { positions: 1, event: 0, ..CallgrindParser::default() };
    for (number, line) in text.lines().enumerate() {
        reader.line(line.trim_end()).map_err(|why| format!("line {}: {why}", number + 1))?;
    }
    if !reader.has_events {
        return Err("it has no line ‘events:’".to_owned());
    }
    Ok(reader.finish())
}

#[derive(Default)]
struct CallgrindParser {
    /// The number of position columns before the costs.
    positions: usize,
    /// Whether the first of them is the address of an instruction.
    has_addresses: bool,
    /// The index of the column of instructions (`Ir`) among the costs.
    event: usize,
    /// The indices of the columns of allocations and their bytes, if there are such columns.
    heap: Option<(usize, usize)>,
    has_events: bool,
    functions: NameTable,
    objects: NameTable,
    /// The source file in which the current function begins.
    source: String,
    object: String,
    function: ObjectFunction,
    callee_object: Option<String>,
    callee: ObjectFunction,
    /// The number of calls whose cost is in the next line.
    calls: Option<u64>,
    code: HashMap<ObjectFunction, ExecutedCode>,
    paths: SortedMap<String, String>,
    /// The function's own instructions, allocations and bytes.
    own: HashMap<ObjectFunction, [u64; 3]>,
    /// The sum of all own costs.
    all: u64,
    /// The number of calls and their inclusive instructions, by caller and callee.
    edges: HashMap<(ObjectFunction, ObjectFunction), (u64, u64)>,
}

#[derive(Default)]
struct NameTable(HashMap<u64, String>);

impl NameTable {
    /// Resolves `(7) name`, `(7)` or a bare name.
    fn resolve(&mut self, text: &str) -> Result<String, String> {
        let Some(rest) = text.strip_prefix('(') else { return Ok(text.to_owned()) };
        let numbered =
            rest.split_once(')').and_then(|(number, name)| Some((number.parse::<u64>().ok()?, name.trim())));
        match numbered {
            None if rest.starts_with(|c: char| c.is_ascii_digit()) => Err(format!("‘{text}’ is not a name")),
            // A function may itself be called `(below main)`.
            None => Ok(text.to_owned()),
            Some((number, "")) => {
                self.0.get(&number).cloned().ok_or_else(|| format!("name ({number}) is not defined"))
            }
            Some((number, name)) => match self.0.insert(number, name.to_owned()) {
                Some(other) if other != name => Err(format!("name ({number}) is defined twice")),
                _ => Ok(name.to_owned()),
            },
        }
    }
}

impl CallgrindParser {
    fn line(&mut self, line: &str) -> Result<(), String> {
        if line.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '*')) {
            return self.cost(line);
        }
        if self.calls.is_some() {
            return Err("calls are not followed by their cost".to_owned());
        }
        if let Some((key, value)) = line.split_once('=')
            && key.bytes().all(|byte| byte.is_ascii_lowercase())
        {
            return self.assignment(key, value.trim());
        }
        match line.split_once(':') {
            Some(("positions", columns)) => {
                self.positions = columns.split_whitespace().count();
                self.has_addresses = columns.split_whitespace().next() == Some("instr");
            }
            Some(("events", columns)) => {
                let place = |event| columns.split_whitespace().position(|name| name == event);
                self.event = place("Ir").ok_or("instructions (Ir) were not counted")?;
                self.heap = place("Allocations").zip(place("Bytes"));
                self.has_events = true;
            }
            Some((key, _)) if key.bytes().all(|byte| byte.is_ascii_lowercase()) => {}
            _ if line.is_empty() || line.starts_with('#') => {}
            _ => return Err("callgrind writes no such line".to_owned()),
        }
        Ok(())
    }

    fn assignment(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "ob" => {
                self.object = self.objects.resolve(value)?;
                self.know(self.object.clone());
            }
            "fl" => value.clone_into(&mut self.source),
            "fn" => {
                self.function = function(&self.functions.resolve(value)?, &self.object);
            }
            "cob" => {
                let object = self.objects.resolve(value)?;
                self.know(object.clone());
                self.callee_object = Some(object);
            }
            "cfn" => {
                let object = self.callee_object.take().unwrap_or_else(|| self.object.clone());
                self.callee = function(&self.functions.resolve(value)?, &object);
            }
            "calls" => {
                let mut words = value.split_whitespace();
                let count = words.next().and_then(|word| word.parse().ok());
                self.calls = Some(count.ok_or("the number of calls is malformed")?);
                if let Some(begin) = words.next().and_then(address).filter(|_| self.has_addresses) {
                    let known = &mut self.code.entry(self.callee.clone()).or_default().begin;
                    *known = Some(known.map_or(begin, |known| known.min(begin)));
                }
            }
            // Source files of inlined and of called code, and jumps.
            "fi" | "fe" | "cfi" | "cfl" | "jump" | "jcnd" | "jfi" | "jfn" => {}
            other => return Err(format!("callgrind writes no line that begins with ‘{other}=’")),
        }
        Ok(())
    }

    fn cost(&mut self, line: &str) -> Result<(), String> {
        // Trailing columns with the value 0 may be left out.
        let column = |event: usize| match line.split_whitespace().nth(self.positions + event) {
            None => Ok(0),
            Some(text) => text.parse::<u64>().map_err(|_| format!("‘{text}’ is not a cost")),
        };
        let cost = column(self.event)?;
        let (allocations, bytes) = match self.heap {
            None => (0, 0),
            Some((allocations, bytes)) => (column(allocations)?, column(bytes)?),
        };
        match self.calls.take() {
            None => {
                let all = self.all.checked_add(cost);
                self.all = all.ok_or("its costs are together larger than any program’s")?;
                let own = self.own.entry(self.function.clone()).or_default();
                for (sum, more) in own.iter_mut().zip([cost, allocations, bytes]) {
                    add(sum, more);
                }
                if let Some(place) =
                    line.split_whitespace().next().and_then(address).filter(|_| self.has_addresses)
                {
                    let code = self.code.entry(self.function.clone()).or_default();
                    add(code.counts.entry(place).or_default(), cost);
                    if !code.sources.contains(&self.source) {
                        code.sources.insert(self.source.clone());
                    }
                }
            }
            Some(calls) => {
                let edge = self.edges.entry((self.function.clone(), self.callee.clone())).or_default();
                add(&mut edge.0, calls);
                add(&mut edge.1, cost);
            }
        }
        Ok(())
    }

    /// Remembers the path of a file. Functions have only the file's name.
    fn know(&mut self, path: String) {
        if let Some((_, name)) = path.rsplit_once('/') {
            self.paths.entry(name.to_owned()).or_insert(path);
        }
    }

    fn finish(self) -> CallgrindProfile {
        let has_heap = self.heap.is_some();
        let edges = self.edges.iter().map(|(edge, (calls, _))| (edge.clone(), *calls)).collect();
        let code = self.code.into_iter().collect();
        let functions = SortedMap::new();
        let mut profile =
            CallgrindProfile { total: self.all, functions, has_heap, edges, code, paths: self.paths };
        let mut entered: HashMap<&ObjectFunction, u64> = HashMap::new();
        let mut below: HashMap<&ObjectFunction, u64> = HashMap::new();
        for ((caller, callee), (calls, inclusive)) in &self.edges {
            add(&mut profile.functions.entry(callee.clone()).or_default().calls, *calls);
            if caller != callee {
                add(entered.entry(callee).or_default(), *inclusive);
                add(below.entry(caller).or_default(), *inclusive);
            }
        }
        for (function, own) in &self.own {
            let costs = profile.functions.entry(function.clone()).or_default();
            [costs.own, costs.allocations, costs.bytes] = *own;
        }
        for (function, costs) in profile.functions.iter_mut() {
            // The inclusive cost is the cost of all calls to the function. Nothing calls the first function; its
            // inclusive cost is its own cost plus that of its callees.
            let from_below = costs.own.saturating_add(below.get(function).copied().unwrap_or(0));
            let inclusive = entered.get(function).copied().unwrap_or(from_below);
            costs.inclusive = inclusive.max(costs.own).min(profile.total);
        }
        profile
    }
}

/// Adds, limited to 64 bits: inclusive costs of a damaged file may exceed them. They are compared with the total
/// later.
fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

/// An address in full, as files without compressed positions have it.
fn address(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

fn function(name: &str, object: &str) -> ObjectFunction {
    // The second and further instances of a recursive function are marked by an apostrophe and a number.
    let base = match name.rsplit_once('\'') {
        Some((base, number)) if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => base,
        _ => name,
    };
    let object = object.rsplit('/').next().unwrap_or(object);
    ObjectFunction {
        name: base.to_owned(),
        object: if object == "???" { String::new() } else { object.to_owned() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scruple_fuzz::Corpus;

    #[test]
    fn damaged_profiles_are_survived() {
        Corpus::named("callgrind").is_survived_by_text(|text| drop(parse(text)));
    }

    /// A part of a real profile: `main` calls `work` ten times, which each time calls `fib` once, which recurses.
    const REAL: &str = "\
# callgrind format
version: 1
creator: callgrind-3.19.0
positions: line
events: Ir
summary: 8323

ob=(5) /tmp/cg/t
fl=(146) /tmp/cg/t.c
fn=(550) fib
3 130
cfn=(551) fib'2
calls=10 *
* 1270
* 30
cfn=(551)
calls=10 *
* 690
* 20

fn=(551)
3 1960
cfn=(551)
calls=120 *
* 1690

fn=(536) main
5 10
cfn=(548) work
calls=1 -1
* 826
* 18
cfn=(548)
calls=9 -1
* 7434
* 35

fn=(548)
4 50
cfn=(550)
calls=10 -1
* 2140
* 6070
totals: 8323
";

    fn costs(profile: &CallgrindProfile, name: &str) -> (u64, u64, u64) {
        let found =
            profile.functions.iter().find(|(function, _)| function.name == name).expect("in the profile");
        (found.1.own, found.1.inclusive, found.1.calls)
    }

    #[test]
    fn a_real_profile_is_read() {
        let profile = parse(REAL).expect("valid");
        assert_eq!(profile.total, 8323);
        assert_eq!(costs(&profile, "main"), (63, 8323, 0));
        assert_eq!(costs(&profile, "work"), (6120, 8260, 10));
        assert_eq!(costs(&profile, "fib"), (2140, 2140, 150));
        let object = &profile.functions.keys().next().expect("some").object;
        assert_eq!(object, "t");
    }

    #[test]
    fn other_columns_and_objects_are_distinguished() {
        let text = "\
positions: instr line
events: Dr Ir
ob=(1) /bin/a
fn=(1) f
0x1 1 5 100
cob=(2) /lib/b.so
cfn=(1)
calls=2 0x9 9
0x2 2 0 40
ob=(2)
fn=(1)
0x9 9 1 40
+1 +1 7
";
        // The first column may be hexadecimal, and the last line lacks the column of instructions, which then counts
        // as 0.
        let profile = parse(text).expect("valid");
        let shown: Vec<_> =
            profile.functions.iter().map(|(f, c)| (f.object.as_str(), c.own, c.calls)).collect();
        assert_eq!(shown, [("a", 100, 0), ("b.so", 40, 2)]);
        assert_eq!(profile.total, 140);
    }

    #[test]
    fn a_text_that_is_not_a_profile_is_refused() {
        assert!(parse("").is_err());
        assert!(parse("events: Dr").expect_err("no Ir").contains("line 1"));
        assert!(parse("events: Ir\nfn=(3)\n").expect_err("undefined").contains("line 2"));
        assert!(parse("events: Ir\nfn=f\n1 many\n").expect_err("no number").contains("line 3"));
    }

    #[test]
    fn a_line_that_callgrind_does_not_write_is_refused() {
        for (from, to, line) in [
            ("fn=(536) main", "gn=(536) main", 27),
            ("fn=(536) main", "fn=(5k6) main", 27),
            ("fn=(536) main", "fn=(548) main", 29),
            ("fn=(536) main", "fn9(536) main", 27),
            ("calls=9 -1\n", "calls=9 -1\n\n", 35),
        ] {
            assert!(REAL.contains(from));
            let why = parse(&REAL.replacen(from, to, 1)).expect_err(to);
            assert!(why.starts_with(&format!("line {line}: ")), "{to}: {why}");
        }
    }
}
