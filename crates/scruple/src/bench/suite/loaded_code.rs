//! Finds out which code the programs of a suite have loaded, where it is not in their own files.

use super::bench_side::BenchSide;
use super::cases::Cases;
use scruple_core::protocol::{BenchRequest, LoadedReply, Reply, TELLS_CODE};
use scruple_core::run::Run;
use scruple_measure::bench::{BenchError, BenchProgram, END};
use scruple_measure::loaded_files::{self, UnknownCode};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

/// The time within which a program must say which code it has loaded.
const LIMIT: Duration = Duration::from_secs(10);

/// What the programs of a suite have loaded. Their processes answer and end while the next ones start, which is not
/// timed and takes long in some languages.
#[derive(Default)]
pub(super) struct LoadedCode {
    sides: Vec<LoadedBySide>,
    /// The processes that have been asked, each with its side.
    asked: Vec<(usize, BenchProgram)>,
    /// The processes that were told to end.
    ending: Vec<BenchProgram>,
}

impl Drop for LoadedCode {
    fn drop(&mut self) {
        self.wait_for_ends();
    }
}

/// What one program has loaded, in all its processes that were asked.
struct LoadedBySide {
    /// When the first process had loaded enough to describe itself.
    described: SystemTime,
    /// Whether the code is not in the file of the program.
    elsewhere: bool,
    /// Whether the program is asked.
    wanted: bool,
    runtime: String,
    files: BTreeSet<PathBuf>,
    texts: BTreeSet<String>,
    unknown: Option<String>,
}

impl LoadedCode {
    /// Notes that another program has just described itself.
    pub(super) fn add_side(&mut self) {
        self.sides.push(LoadedBySide {
            described: SystemTime::now(),
            elsewhere: false,
            wanted: false,
            runtime: String::new(),
            files: BTreeSet::new(),
            texts: BTreeSet::new(),
            unknown: None,
        });
    }

    /// Requests that those programs are asked whose code is not in their own files.
    pub(super) fn want(&mut self, programs: &[BenchSide]) {
        for (side, program) in self.sides.iter_mut().zip(programs) {
            let Some(hello) = program.hello.as_ref().filter(|_| !is_compiled(program)) else { continue };
            side.elsewhere = true;
            side.wanted = hello.features.iter().any(|feature| feature == TELLS_CODE);
            side.runtime.clone_from(&hello.runtime);
        }
    }

    /// Tells the processes that have just been timed to end, or asks which code they have loaded, without waiting for
    /// them.
    pub(super) fn finish(&mut self, process: u32, cases: &Cases, programs: Vec<BenchProgram>) {
        for (place, mut program) in programs.into_iter().enumerate() {
            let of_case = || cases.weighed.iter().find(|weighed| weighed.place == place);
            let index = if place < self.sides.len() { Some(place) } else { of_case().map(|case| case.side) };
            match index.and_then(|index| Some((index, self.sides.get_mut(index)?))) {
                Some((index, side)) if side.wanted && process == 0 => {
                    match program.send(&BenchRequest::Loaded) {
                        Ok(()) => self.asked.push((index, program)),
                        Err(error) => side.unknown = Some(error.to_string()),
                    }
                }
                _ if program.send(&BenchRequest::Bye).is_ok() => self.ending.push(program),
                _ => {}
            }
        }
    }

    /// Waits for the ends and the answers of the processes that were told to end, or asked.
    pub(super) fn wait(&mut self, interrupted: &AtomicBool) {
        self.read_answers(interrupted);
        self.wait_for_ends();
    }

    fn wait_for_ends(&mut self) {
        for program in self.ending.drain(..) {
            program.wait_for_end(END);
        }
    }

    fn read_answers(&mut self, interrupted: &AtomicBool) {
        for (index, mut program) in self.asked.drain(..) {
            let Some(side) = self.sides.get_mut(index) else { continue };
            match program.next_reply(&BenchRequest::Loaded.line(), LIMIT, interrupted) {
                Ok(Reply::Loaded(LoadedReply { loaded, generated })) => {
                    side.files.extend(loaded.into_iter().map(PathBuf::from));
                    side.texts.extend(generated);
                }
                Ok(_) => side.unknown = Some("the answer is to another request".to_owned()),
                Err(BenchError::Interrupted) => side.wanted = false,
                Err(error) => side.unknown = Some(error.to_string()),
            }
            if program.send(&BenchRequest::Bye).is_ok() {
                self.ending.push(program);
            }
        }
    }

    /// Stores the digest of the code with the run if it is known, or else why it is not.
    pub(super) fn add_to(&self, run: &mut Run) {
        let mut digests = Vec::new();
        if self.sides.iter().any(|side| side.elsewhere && !side.wanted) {
            return;
        }
        for side in self.sides.iter().filter(|side| side.wanted) {
            let why = match (&side.unknown, side.digest()) {
                (None, Ok(digest)) => {
                    digests.push(digest);
                    continue;
                }
                (None, Err(UnknownCode::Changed(_))) => return,
                (None, Err(unknown)) => unknown.to_string(),
                (Some(why), _) => why.clone(),
            };
            let text =
                format!("earlier runs are not used, because it is unknown which code was timed: {why}");
            run.warn("unknown-code", text);
            return;
        }
        run.provenance.code = (!digests.is_empty()).then(|| digests.join(" "));
    }

    /// Returns the files that changed after they had been loaded.
    pub(super) fn changed_files(&self) -> Vec<&Path> {
        let changed = |side: &'_ LoadedBySide| {
            let since = side.described;
            move |file: &&Path| loaded_files::has_changed_since(file, since)
        };
        self.sides
            .iter()
            .flat_map(|side| side.files.iter().map(PathBuf::as_path).filter(changed(side)))
            .collect()
    }
}

impl LoadedBySide {
    fn digest(&self) -> Result<String, UnknownCode> {
        let mut texts = self.texts.clone();
        texts.insert(self.runtime.clone());
        loaded_files::digest(&self.files, &texts, self.described)
    }
}

/// Whether the file of the program holds the code that is timed. Where an interpreter runs it, the file is that of the
/// interpreter.
pub(super) fn is_compiled(side: &BenchSide) -> bool {
    let language = side.hello.as_ref().map(|hello| hello.language.as_str());
    matches!(language, Some("c" | "c++" | "rust" | "haskell" | "go"))
}
