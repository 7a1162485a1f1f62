//! Reads the files that the tool writes (see the tool's `profile.c`). The files may be damaged.

mod live;

use super::error::CalltreeError;
use super::profile::{
    End, HeapCounts, InstructionRun, LiveBlocks, Profile, ProfileContext, ProfileFunction, Profiles,
    RecursiveCalls, SeenEffect,
};
use scruple_stats::sorting;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The first line of a file: the format and its version.
const HEAD: &str = "scruple-calltree 1";

/// Reads all profiles whose path is `out`, a dot, and the numbers of process and part.
///
/// # Errors
/// Fails if a profile cannot be read, or there is none.
pub fn read_all(out: &Path) -> Result<Profiles, CalltreeError> {
    let folder = out.parent().unwrap_or(Path::new("."));
    let beginning = format!("{}.", out.file_name().unwrap_or_default().to_string_lossy());
    let unusable = |source| CalltreeError::Folder { path: folder.to_owned(), source };
    let mut files: Vec<(i32, u32, PathBuf)> = Vec::new();
    let mut profiles = Profiles::default();
    for entry in fs::read_dir(folder).map_err(unusable)?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some((process, part)) = name.strip_prefix(&beginning).and_then(|rest| rest.split_once('.'))
        else {
            continue;
        };
        let Ok(process) = process.parse() else { continue };
        match (part, part.parse()) {
            ("running", _) => profiles.lost.push(process),
            ("exec", _) => profiles.unstarted.push(process),
            ("unwritten", _) => return Err(CalltreeError::Unwritten { folder: folder.to_owned() }),
            (_, Ok(part)) => files.push((process, part, entry.path())),
            _ => {}
        }
    }
    sorting::ascending(&mut files);
    for (_, part, path) in files {
        let bytes = fs::read(&path).map_err(|source| CalltreeError::Folder { path: path.clone(), source })?;
        let mut profile = parse(&String::from_utf8_lossy(&bytes))
            .map_err(|why| CalltreeError::Damaged { path: path.clone(), why })?;
        profile.part = part;
        match profile.end {
            End::Dump => profiles.dumps.push(profile),
            _ => profiles.processes.push(profile),
        }
    }
    if profiles.processes.is_empty() && profiles.lost.is_empty() {
        return Err(CalltreeError::Nothing("the call tree"));
    }
    Ok(profiles)
}

/// Reads one profile.
///
/// # Errors
/// Says what is wrong with the profile, and in which line.
pub(super) fn parse(text: &str) -> Result<Profile, String> {
    let mut lines = text.lines();
    match lines.next() {
        Some(HEAD) => {}
        Some(line) if line.starts_with("scruple-calltree ") => {
            return Err(format!("it is of another version (‘{}’)", line.escape_debug()));
        }
        _ => return Err("it does not begin like a profile".to_owned()),
    }
    let mut reader = ProfileParser::default();
    for (number, line) in lines.enumerate() {
        if reader.ended {
            return Err(format!("line {}: something follows the end", number + 2));
        }
        reader.line(line).map_err(|why| format!("line {}: {why}", number + 2))?;
    }
    reader.finish()
}

#[derive(Default)]
struct ProfileParser {
    profile: Profile,
    objects: HashMap<u32, Option<String>>,
    functions: HashMap<u32, usize>,
    contexts: HashMap<u32, usize>,
    ended: bool,
}

/// Splits a line into words.
struct Words<'a>(&'a str);

impl<'a> Words<'a> {
    fn word(&mut self) -> Result<&'a str, String> {
        let (word, rest) = self.0.split_once(' ').unwrap_or((self.0, ""));
        self.0 = rest;
        if word.is_empty() { Err("a word is missing".to_owned()) } else { Ok(word) }
    }

    fn number<T: FromStr>(&mut self) -> Result<T, String> {
        let word = self.word()?;
        word.parse().map_err(|_| format!("‘{}’ is not a number", word.escape_debug()))
    }

    fn address(&mut self) -> Result<u64, String> {
        let word = self.word()?;
        u64::from_str_radix(word, 16).map_err(|_| format!("‘{}’ is not an address", word.escape_debug()))
    }

    /// The rest of the line, unescaped: text that comes from the program.
    fn text(self) -> String {
        let mut text = String::with_capacity(self.0.len());
        let mut characters = self.0.chars();
        while let Some(character) = characters.next() {
            match character {
                '\\' => match characters.next() {
                    Some('n') => text.push('\n'),
                    Some('r') => text.push('\r'),
                    other => text.extend(other),
                },
                other => text.push(other),
            }
        }
        text
    }
}

fn some(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

impl ProfileParser {
    fn line(&mut self, line: &str) -> Result<(), String> {
        let mut words = Words(line);
        let profile = &mut self.profile;
        match words.word()? {
            "mode" => {
                let mode = words.word()?;
                profile.total_only = mode == "total";
                profile.live = (mode == "sites").then(LiveBlocks::default);
            }
            "process" => (profile.process, profile.parent) = (words.number()?, words.number()?),
            "forked" => profile.is_forked = true,
            "because" => {
                profile.end = match words.word()? {
                    "exit" => End::Exit,
                    "exec" => End::Exec,
                    "request" => End::Request,
                    "dump" => End::Dump,
                    other => return Err(format!("‘{}’ is not a reason to stop", other.escape_debug())),
                }
            }
            "program" | "argument" => profile.words.push(words.text()),
            "label" => profile.label = some(words.text()),
            "effect" => {
                let between = [words.number()?, words.number()?];
                profile.effect = Some(SeenEffect { between, what: words.text() });
            }
            "leftover" => profile.leftover = some(words.text()),
            "heap-functions" => profile.heap_functions = words.number()?,
            "cut-calls" => profile.cut = words.number()?,
            "recursion-by" => profile.folds_by_call = words.word()? == "call",
            "total" => profile.total = words.number()?,
            "end" => self.ended = true,
            "o" => {
                let id = words.number()?;
                self.objects.insert(id, some(words.text()));
            }
            "f" => self.function(words)?,
            "c" => self.context(words)?,
            "e" => self.calls(words)?,
            "r" => self.run(words)?,
            other if profile.live.is_some() && self.live_line(other, words)? => {}
            other => return Err(format!("‘{}’ is not a kind of line", other.escape_debug())),
        }
        Ok(())
    }

    fn object(&self, id: u32) -> Result<Option<String>, String> {
        self.objects.get(&id).cloned().ok_or_else(|| format!("there is no file {id}"))
    }

    fn known(map: &HashMap<u32, usize>, id: u32, what: &str) -> Result<usize, String> {
        map.get(&id).copied().ok_or_else(|| format!("there is no {what} {id}"))
    }

    fn function(&mut self, mut words: Words) -> Result<(), String> {
        let (id, object, offset) = (words.number()?, words.number()?, words.address()?);
        let function = ProfileFunction { object: self.object(object)?, offset, name: some(words.text()) };
        self.functions.insert(id, self.profile.functions.len());
        self.profile.functions.push(function);
        Ok(())
    }

    fn context(&mut self, mut words: Words) -> Result<(), String> {
        let (id, parent, function): (u32, u32, u32) = (words.number()?, words.number()?, words.number()?);
        let own = words.number()?;
        let heap =
            HeapCounts { allocations: words.number()?, bytes: words.number()?, frees: words.number()? };
        // Only the first context has no parent, and each other one follows its parent.
        let parent = match parent {
            0 if self.profile.contexts.is_empty() => None,
            id => Some(ProfileParser::known(&self.contexts, id, "context")?),
        };
        let function = match function {
            0 => None,
            id => Some(ProfileParser::known(&self.functions, id, "function")?),
        };
        self.contexts.insert(id, self.profile.contexts.len());
        self.profile.contexts.push(ProfileContext { parent, function, calls: 0, own, heap });
        Ok(())
    }

    fn calls(&mut self, mut words: Words) -> Result<(), String> {
        let from = ProfileParser::known(&self.contexts, words.number()?, "context")?;
        let to = ProfileParser::known(&self.contexts, words.number()?, "context")?;
        let calls = words.number()?;
        let target = &mut self.profile.contexts[to];
        if target.parent == Some(from) {
            target.calls = target.calls.saturating_add(calls);
        } else {
            self.profile.recursive.push(RecursiveCalls { from, to, calls });
        }
        Ok(())
    }

    fn run(&mut self, mut words: Words) -> Result<(), String> {
        let (function, object): (u32, u32) = (words.number()?, words.number()?);
        let (offset, count) = (words.address()?, words.number()?);
        let function = match function {
            0 => None,
            id => Some(ProfileParser::known(&self.functions, id, "function")?),
        };
        let digits = words.word()?.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8));
        let lengths = digits.collect::<Option<Vec<u8>>>().ok_or("a length is malformed")?;
        let object = self.object(object)?;
        self.profile.runs.push(InstructionRun { function, object, offset, lengths, count });
        Ok(())
    }

    /// Checks that the own instructions of contexts, and those of runs, each add up to the total.
    fn finish(self) -> Result<Profile, String> {
        let profile = self.profile;
        if !self.ended {
            return Err("its end is missing".to_owned());
        }
        if let Some(live) = &profile.live {
            live.check()?;
        } else if !profile.total_only {
            let tree = profile.contexts.iter().fold(0, |sum: u64, context| sum.saturating_add(context.own));
            let of_run = |run: &InstructionRun| run.count.saturating_mul(run.lengths.len() as u64);
            let runs = profile.runs.iter().fold(0, |sum: u64, run| sum.saturating_add(of_run(run)));
            if (tree, runs) != (profile.total, profile.total) {
                return Err(format!(
                    "the tree has {tree} instructions and the addresses {runs}, but the total is {}",
                    profile.total
                ));
            }
        }
        Ok(profile)
    }
}

#[cfg(test)]
mod tests;
