//! The functions of a file in JavaScript, with the executed tokens and the callees of each.

use super::super::callers::Callees;
use super::super::tokens::{is_word, tokens};
use super::{Block, Covered, CoveredScript};
use scruple_code::UNKNOWN;
use scruple_stats::sorting::{self, SortedMap};
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

/// The name of the code outside all functions.
pub(super) const TOP: &str = "(top level)";

/// The functions with which V8 sets the fields of an object, and those of a class. They extend over methods of the
/// class, which are not in them.
const FIELDS: [&str; 2] = ["<instance_members_initializer>", "<static_initializer>"];

/// The number of characters that count as one token in a file whose text is not known.
const LENGTH: u64 = 4;

/// Built-in methods that call the function that is their first argument, and do not keep it.
const CALL_BACK: [&str; 13] = [
    "every",
    "filter",
    "find",
    "findIndex",
    "findLast",
    "findLastIndex",
    "flatMap",
    "forEach",
    "map",
    "reduce",
    "reduceRight",
    "some",
    "sort",
];

/// Built-in functions that call the function that is their second argument, and do not keep it.
const CALL_BACK_SECOND: [&str; 5] = ["from", "parse", "replace", "replaceAll", "stringify"];

/// A function of a file, with its own figures, without those of the functions inside it.
pub(super) struct OwnFunction {
    pub(super) name: String,
    pub(super) calls: u64,
    pub(super) executed: u64,
    pub(super) digest: u64,
    /// The last part of the name, by which it is called; its place if it has no name.
    pub(super) called: String,
    /// What it calls.
    pub(super) callees: Callees,
}

/// The functions of a file that ran. Without the file's text, tokens are taken to have [`LENGTH`] characters.
pub(super) fn functions(script: &CoveredScript, text: Option<&[u16]>) -> Vec<OwnFunction> {
    let mut all: Vec<(Block, &Covered)> =
        script.functions.iter().filter_map(|function| Some((*function.ranges.first()?, function))).collect();
    // Outer functions before those in them.
    sorting::by_key(&mut all, |(whole, _)| (whole.start_offset, usize::MAX - whole.end_offset));
    let end = all.iter().map(|(whole, _)| whole.end_offset).max().unwrap_or_default();
    let length = text.map_or(end, <[u16]>::len).min(end);
    let characters = Characters::of(&all, length);
    let names = names(&all);
    let called: Vec<String> = all.iter().map(|(whole, function)| called(script, *whole, function)).collect();
    let mut sums = vec![0_u64; all.len()];
    let mut callees = vec![Callees::default(); all.len()];
    let Some(text) = text else {
        for at in 0..length {
            let Some(function) = characters.function(at) else { continue };
            sums[function] = sums[function].saturating_add(characters.executed[at]);
        }
        sums.iter_mut().for_each(|sum| *sum /= LENGTH);
        return owned(&all, names, called, sums, &vec![UNKNOWN; all.len()], callees);
    };
    let own_names: Vec<Range<usize>> =
        all.iter().map(|(whole, function)| own_name(*whole, function, text)).collect();
    let mut digests: Vec<DefaultHasher> = all.iter().map(|_| DefaultHasher::new()).collect();
    let places = tokens(&text[..length]);
    let mut calls =
        CallsInText { all: &all, called: &called, text, places: &places, arguments: BTreeSet::new() };
    for (number, place) in places.iter().enumerate() {
        let Some(function) = characters.function(place.start) else { continue };
        let executed = characters.executed[place.start];
        sums[function] = sums[function].saturating_add(executed);
        // A renamed function has the same code.
        if own_names[function].contains(&place.start) {
            continue;
        }
        let token = &text[place.clone()];
        token.hash(&mut digests[function]);
        if is_word(token) && executed > 0 {
            calls.add_to(&mut callees[function], number, executed);
        }
    }
    let digests: Vec<u64> = digests.iter().map(Hasher::finish).collect();
    owned(&all, names, called, sums, &digests, callees)
}

/// The characters of a file.
struct Characters {
    /// The innermost function around each character; `usize::MAX` outside all functions.
    owner: Vec<usize>,
    /// How often each character was executed.
    executed: Vec<u64>,
}

impl Characters {
    /// Finds out to which function each character belongs. The functions are given with outer functions first.
    fn of(all: &[(Block, &Covered)], length: usize) -> Characters {
        let mut owner = vec![usize::MAX; length];
        let mut executed = vec![0_u64; length];
        for (index, (whole, function)) in all.iter().enumerate() {
            let part = |block: &Block| {
                let start = block.start_offset.min(length);
                start..block.end_offset.clamp(start, length)
            };
            for block in &function.ranges {
                if let Some(counts) = executed.get_mut(part(block)) {
                    counts.fill(block.count);
                }
            }
            if let Some(owners) = owner.get_mut(part(whole)) {
                owners.fill(index);
            }
        }
        Characters { owner, executed }
    }

    /// The innermost function around a character.
    fn function(&self, at: usize) -> Option<usize> {
        self.owner.get(at).copied().filter(|function| *function != usize::MAX)
    }
}

/// The calls in the text of a file.
struct CallsInText<'a> {
    all: &'a [(Block, &'a Covered)],
    /// The name by which each function is called.
    called: &'a [String],
    text: &'a [u16],
    places: &'a [Range<usize>],
    /// The tokens that pass a function to a built-in method.
    arguments: BTreeSet<usize>,
}

impl CallsInText<'_> {
    /// Adds the callee that the word with this number names to the function around it.
    fn add_to(&mut self, callees: &mut Callees, number: usize, executed: u64) {
        let name = self.word(number);
        let Some(open) = opening_of_call(self.text, self.places, number) else {
            let is_defined = self.is(number + 1, "=")
                && self
                    .places
                    .get(number + 2)
                    .is_some_and(|value| begins_function(self.all, value.start, &name));
            if !is_defined && !self.arguments.contains(&number) {
                callees.mentioned.insert(name);
            }
            return;
        };
        self.add_passed(callees, &name, open);
        // A method with the name of a function may be another one.
        if number > 0 && [".", "?."].iter().any(|dot| self.is(number - 1, dot)) {
            callees.mentioned.insert(name.clone());
        }
        let calls = callees.named.entry(name).or_default();
        *calls = calls.saturating_add(executed);
    }

    /// Adds the function that a call passes to a built-in method, which calls it.
    fn add_passed(&mut self, callees: &mut Callees, method: &str, open: usize) {
        let argument = match (CALL_BACK.contains(&method), CALL_BACK_SECOND.contains(&method)) {
            (true, _) => Some(open + 1),
            (_, true) => second_argument(self.text, self.places, open),
            _ => None,
        };
        let Some(argument) = argument.filter(|argument| *argument < self.places.len()) else { return };
        let place = self.places[argument].clone();
        if let Some(passed) = unnamed_at(self.all, place.start) {
            callees.passed.insert((self.called[passed].clone(), method.to_owned()));
        } else if is_word(&self.text[place]) && [",", ")"].iter().any(|end| self.is(argument + 1, end)) {
            callees.passed_by_name.insert((self.word(argument), method.to_owned()));
            self.arguments.insert(argument);
        }
    }

    fn word(&self, number: usize) -> String {
        String::from_utf16_lossy(&self.text[self.places[number].clone()])
    }

    fn is(&self, number: usize, expected: &str) -> bool {
        is(self.text, self.places, number, expected)
    }
}

/// Whether the token with this number is this text.
fn is(text: &[u16], places: &[Range<usize>], number: usize, expected: &str) -> bool {
    places.get(number).is_some_and(|place| expected.encode_utf16().eq(text[place.clone()].iter().copied()))
}

/// The number of the parenthesis that opens the arguments, if a token is the name in a call.
fn opening_of_call(text: &[u16], places: &[Range<usize>], number: usize) -> Option<usize> {
    let open = number + 1 + usize::from(is(text, places, number + 1, "?."));
    is(text, places, open, "(").then_some(open)
}

/// The number of the first token of the second argument of a call, given the number of its opening parenthesis.
fn second_argument(text: &[u16], places: &[Range<usize>], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (number, place) in places.iter().enumerate().skip(open + 1) {
        let (first, last) = (text[place.start], text[place.end - 1]);
        // A piece of a template may begin and end with a brace.
        let closes = [b')', b']', b'}'].iter().any(|one| first == u16::from(*one));
        let opens = [b'(', b'[', b'{'].iter().any(|one| last == u16::from(*one));
        if closes {
            depth = depth.checked_sub(1)?;
        }
        if depth == 0 && is(text, places, number, ",") {
            return Some(number + 1);
        }
        depth += usize::from(opens);
    }
    None
}

/// The function that begins there. Functions are sorted by where they begin.
fn function_at(all: &[(Block, &Covered)], start: usize) -> Option<usize> {
    let at = all.partition_point(|(whole, _)| whole.start_offset < start);
    all.get(at).is_some_and(|(whole, _)| whole.start_offset == start).then_some(at)
}

/// Whether a function with this name begins there.
fn begins_function(all: &[(Block, &Covered)], start: usize, name: &str) -> bool {
    function_at(all, start).is_some_and(|at| all[at].1.function_name == name)
}

/// Combines the figures of functions that ran.
fn owned(
    all: &[(Block, &Covered)],
    names: Vec<String>,
    called: Vec<String>,
    sums: Vec<u64>,
    digests: &[u64],
    callees: Vec<Callees>,
) -> Vec<OwnFunction> {
    let known = all.iter().zip(names.into_iter().zip(called)).zip(sums).zip(digests).zip(callees);
    known
        .filter(|(((((whole, _), _), _), _), _)| whole.count > 0)
        .map(|(((((whole, _), (name, called)), executed), digest), callees)| OwnFunction {
            name,
            calls: whole.count,
            executed,
            digest: *digest,
            called,
            callees,
        })
        .collect()
}

/// The name by which a function is called. One without a name has its place for a name, which no text calls.
fn called(script: &CoveredScript, whole: Block, function: &Covered) -> String {
    match function.function_name.rsplit(['.', ' ']).next() {
        None | Some("") => format!("{}:{}", script.url, whole.start_offset),
        Some(name) => name.to_owned(),
    }
}

/// The function without a name that begins there.
fn unnamed_at(all: &[(Block, &Covered)], start: usize) -> Option<usize> {
    function_at(all, start).filter(|at| all[*at].1.function_name.is_empty())
}

/// Where a function's text has its own name.
fn own_name(whole: Block, function: &Covered, text: &[u16]) -> Range<usize> {
    let name: Vec<u16> = function.function_name.encode_utf16().collect();
    let inside = text.get(whole.start_offset..whole.end_offset.min(text.len()));
    let Some(inside) = inside.filter(|_| !name.is_empty()) else { return 0..0 };
    let part_of_word = |at: usize| {
        let unit = inside.get(at).and_then(|unit| char::from_u32((*unit).into()));
        unit.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '$')
    };
    let is_whole = |at: &usize| {
        inside[*at..].starts_with(&name)
            && !at.checked_sub(1).is_some_and(part_of_word)
            && !part_of_word(at + name.len())
    };
    match (0..inside.len()).find(is_whole) {
        Some(at) => whole.start_offset + at..whole.start_offset + at + name.len(),
        None => 0..0,
    }
}

/// The names of functions, which are given with outer functions first: qualified by the functions around them, and
/// numbered among those that would have the same name.
fn names(all: &[(Block, &Covered)]) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(all.len());
    let mut around: Vec<usize> = Vec::new();
    let mut used: SortedMap<String, usize> = SortedMap::new();
    for (index, (whole, function)) in all.iter().enumerate() {
        while around.last().is_some_and(|outer| {
            all[*outer].0.end_offset < whole.end_offset || all[*outer].0.end_offset <= whole.start_offset
        }) {
            around.pop();
        }
        let name = match (function.function_name.as_str(), around.last()) {
            ("", None) => TOP,
            ("", Some(_)) => "(anonymous)",
            (name, _) => name,
        };
        let mut full = match around.last().map(|outer| names[*outer].as_str()) {
            None | Some(TOP) => name.to_owned(),
            Some(outer) => format!("{outer}.{name}"),
        };
        let times = used.entry(full.clone()).or_default();
        *times += 1;
        if *times > 1 {
            full = format!("{full} #{times}");
        }
        names.push(full);
        if !FIELDS.contains(&function.function_name.as_str()) {
            around.push(index);
        }
    }
    names
}
