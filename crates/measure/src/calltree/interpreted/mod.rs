//! Programs in a language that an interpreter runs, by functions of their own: counted exactly inside the interpreter.

mod callers;
mod counts_file;
mod coverage;
mod guile;
mod python;
mod ruby;
mod tokens;

use scruple_code::{ProfileFunction, Side};
use scruple_core::explain;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The most bytes of counts that are read of one process.
const LARGEST: u64 = 1 << 30;

/// A language whose interpreter can count what each function executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Run by CPython 3.7 or later.
    Python,
    /// Run by Node 12 or later.
    JavaScript,
    /// Run by MRI 3.1 or later.
    Ruby,
    /// Run by Guile 3.0.
    Guile,
}

/// A launch of a program that counts itself.
#[derive(Debug)]
pub struct ScriptSession {
    language: Language,
    folder: PathBuf,
}

/// What the processes of a launch counted.
#[derive(Debug, Default)]
pub struct ScriptCounts {
    /// The tree of all processes. The counts of the language stand in place of instructions.
    pub side: Side,
    /// Processes that counted.
    pub processes: usize,
    /// Processes that ended without writing their counts, as far as they can be known: killed, replaced by `exec`, or
    /// left by `os._exit`.
    pub lost: usize,
    /// Processes that were counted in part only: those in which the program took the interpreter's hook for itself, those
    /// in Guile with further threads, and those in Ruby with further Ractors.
    pub partial: usize,
}

impl Language {
    /// What is counted, as a noun in the plural.
    pub fn word(self) -> &'static str {
        match self {
            Language::Python => "bytecode instructions of Python",
            Language::JavaScript => "executed tokens of JavaScript",
            Language::Ruby => "executed lines and calls of Ruby",
            Language::Guile => "virtual machine instructions of Guile",
        }
    }

    /// The name of the language.
    pub fn name(self) -> &'static str {
        match self {
            Language::Python => "Python",
            Language::JavaScript => "JavaScript",
            Language::Ruby => "Ruby",
            Language::Guile => "Guile",
        }
    }

    /// Whether the callers of every function are known, and not only the number of its calls.
    pub fn has_all_callers(self) -> bool {
        self != Language::JavaScript
    }
}

impl ScriptSession {
    /// Makes a folder below this one.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be written.
    pub fn start(language: Language, below: &Path) -> io::Result<ScriptSession> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        // The path always has the same length, because the program can read it.
        let folder = below.join(format!("script-{:06}", NUMBER.fetch_add(1, Ordering::Relaxed)));
        fs::create_dir(&folder)?;
        match language {
            Language::Python => python::prepare(&folder)?,
            Language::Ruby => ruby::prepare(&folder)?,
            Language::Guile => guile::prepare(&folder)?,
            Language::JavaScript => coverage::prepare(&folder)?,
        }
        Ok(ScriptSession { language, folder })
    }

    /// The variables that make the interpreter count. `given` finds those that the program would have anyway.
    pub fn env(&self, given: impl Fn(&str) -> Option<OsString>) -> Vec<(OsString, OsString)> {
        match self.language {
            Language::Python => python::env(&self.folder, given),
            Language::JavaScript => coverage::env(&self.folder),
            Language::Ruby => ruby::env(&self.folder, given),
            Language::Guile => guile::env(&self.folder, given),
        }
    }

    /// Like [`ScriptSession::env`], for a server that SIGINT ends. Node would not write its counts then.
    pub fn env_of_server(&self, given: impl Fn(&str) -> Option<OsString>) -> Vec<(OsString, OsString)> {
        match self.language {
            Language::JavaScript => coverage::env_of_server(&self.folder, given),
            _ => self.env(given),
        }
    }

    /// Reads what was counted.
    ///
    /// # Errors
    /// A clause that says what is damaged.
    pub fn read(&self) -> Result<ScriptCounts, String> {
        match self.language {
            Language::JavaScript => coverage::read(&self.folder),
            Language::Python | Language::Ruby | Language::Guile => {
                counts_file::read(self.language, &self.folder)
            }
        }
    }
}

/// A side with only its root, for functions that have digests of their code. If callers are not known, the root does
/// not count as one.
fn empty_side(language: Language) -> Side {
    let mut side = Side { digests: Some(vec![0]), ..Side::default() };
    let named = explain::Function { trampoline: !language.has_all_callers(), ..explain::Function::default() };
    let root = side.add_function(ProfileFunction::default(), named);
    side.tree.contexts.push(explain::Context { function: root, calls: 1, ..explain::Context::default() });
    side
}

/// Adds a function of a module to a side. `digest` is a hash of its code. Returns its index.
fn add_function(side: &mut Side, module: String, name: &str, digest: u64) -> usize {
    let named = explain::Function {
        module,
        name: name.to_owned(),
        shown: name.to_owned(),
        ..explain::Function::default()
    };
    let own = ProfileFunction { name: Some(name.to_owned()), object: None, offset: 0 };
    let place = side.add_function(own, named);
    side.digests.get_or_insert_default().push(digest);
    place
}

/// Reads a file of counts.
///
/// # Errors
///
/// Fails if the file cannot be read, or is longer than [`LARGEST`].
fn text_of(file: &Path) -> Result<String, String> {
    let size = fs::metadata(file).map_err(|error| error.to_string())?.len();
    if size > LARGEST {
        return Err(format!("a process wrote {size} bytes of counts, which is more than is read"));
    }
    fs::read_to_string(file).map_err(|error| error.to_string())
}
