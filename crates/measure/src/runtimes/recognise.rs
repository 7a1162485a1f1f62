//! Recognises runtimes in a program's file before it runs: which runtime, how it will be queried, and which figures
//! it has.

use super::elf::Elf;
use super::figures::COMMON;
use super::{ALL, Runtime};
use super::{ghc, go, wrappers};
use crate::program::{FileKind, Program};
use std::ffi::OsString;
use std::path::Path;

/// A runtime that a program will use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recognised {
    /// The runtime that was recognised.
    pub runtime: Runtime,
    /// The runtime's version, if the file names it.
    pub version: Option<String>,
    /// The mark in the file by which the runtime was recognised.
    pub by: &'static str,
    /// How the runtime will be queried.
    pub asked: &'static str,
    /// The common metrics that are available.
    pub metrics: Vec<&'static str>,
    /// The common metrics that are not available, each with the reason and possible remedies.
    pub lacking: Vec<(&'static str, String)>,
}

/// The runtimes of a program, recognised in its file, or in its interpreter's if it is a script; empty if none is
/// known.
///
/// Further runtimes may appear when it runs, since a wrapper executes another program; every process is then
/// examined.
pub fn recognise(program: &Program) -> Vec<Recognised> {
    let resolved = program.resolved();
    let Some(elf) = Elf::read(&resolved.path) else { return Vec::new() };
    let mut found = Vec::new();
    for runtime in ALL {
        let adapter = runtime.adapter();
        let Some(mut this) = (adapter.find)(&elf) else { continue };
        if runtime == Runtime::Go {
            this.version = go_version(&resolved);
            go::explain_stripped(&resolved.path, &elf, &mut this);
        }
        let privileged =
            resolved.changes_user().then_some("it runs as another user, so nothing may be loaded into it");
        let lacking: Vec<(&'static str, String)> = COMMON
            .iter()
            .filter_map(|key| {
                let of_runtime = (!runtime.counts(key)).then(|| runtime.lacks(key));
                let of_build =
                    this.not.iter().find(|(lacking, _)| lacking == key).map(|(_, why)| why.clone());
                let why = of_runtime.or(of_build).or(privileged.map(str::to_owned))?;
                Some((*key, why))
            })
            .collect();
        let metrics =
            COMMON.iter().copied().filter(|key| !lacking.iter().any(|(other, _)| other == key)).collect();
        found.push(Recognised {
            runtime,
            version: this.version,
            by: this.by,
            asked: this.asked,
            metrics,
            lacking,
        });
        // A Haskell program may contain OCaml's words by chance. Programs of both languages contain their runtime, and
        // rarely two.
        if matches!(runtime, Runtime::Ghc | Runtime::Ocaml | Runtime::Racket | Runtime::Go) {
            break;
        }
    }
    found
}

/// The program that `env`, `nice` or a similar program executes, if it has a runtime.
pub fn executed_by(words: &[OsString], folder: &Path) -> Option<Program> {
    let at = wrappers::index_of_wrapped_program(words, folder, |one| !recognise(one).is_empty())?;
    Program::find(&words[at], folder).ok()
}

/// Why no process reported a runtime: the reason of an absent figure.
pub(super) fn nothing(program: &Program) -> String {
    if program.changes_user() {
        return "the program runs as another user, so nothing may be loaded into it".to_owned();
    }
    if let Some(found) = recognise(program).first() {
        let word = found.runtime.word();
        return match found.runtime {
            Runtime::Ghc => format!("{word}: {}", ghc::SILENT),
            _ => format!(
                "{word}: the program contains this runtime, but the runtime did not ask for a report when it ran"
            ),
        };
    }
    match program.kind() {
        Ok(FileKind::Elf { native: false, .. }) => "the program is for another kind of machine".to_owned(),
        Ok(FileKind::Elf { dynamic: false, .. }) => {
            "no language runtime was recognised: the program is static, so nothing can be loaded into it"
                .to_owned()
        }
        _ => "no language runtime was recognised".to_owned(),
    }
}

/// The version in the build information: a separate word `go1.…`, here without `go`.
fn go_version(program: &Program) -> Option<String> {
    let data = std::fs::read(&program.path).ok()?;
    let file = object::File::parse(&*data).ok()?;
    let section = object::Object::section_by_name(&file, ".go.buildinfo")?;
    let data = object::ObjectSection::data(&section).ok()?;
    let text = String::from_utf8_lossy(data);
    let at = text.find("go1.")?;
    Some(text[at + 2..].chars().take_while(|c| c.is_ascii_alphanumeric() || ".-".contains(*c)).collect())
}
