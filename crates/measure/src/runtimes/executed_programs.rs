//! The programs that ran in a process tree, from a launch that stops processes when they execute a program.

use super::elf::Elf;
use super::go::Build;
use super::{ALL, Runtime};
use crate::program::Program;
use object::{Object, ObjectSection, ReadCache};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashSet};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What must be known of the programs of a tree before their runtimes are asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreePrograms {
    /// Whether a Go program was among them.
    pub go: bool,
    /// How the stripped Go programs were built.
    pub stripped_go: BTreeSet<Build>,
    /// The runtimes of programs into which no library can be loaded. The command itself is not among them, because some
    /// runtimes can be asked there.
    pub unreached: BTreeSet<String>,
}

impl TreePrograms {
    /// Adds the programs of another launch.
    pub(crate) fn add(&mut self, other: TreePrograms) {
        self.go |= other.go;
        self.stripped_go.extend(other.stripped_go);
        self.unreached.extend(other.unreached);
    }
}

/// Examines the files of the programs that a tree executes, each file once.
#[derive(Debug, Default)]
pub(crate) struct ProgramFiles {
    known: HashSet<(u64, u64)>,
    pub(crate) seen: TreePrograms,
}

impl ProgramFiles {
    /// Handles that a process has executed its program. `is_command` if that is the command itself.
    pub(crate) fn executes(&mut self, pid: i32, is_command: bool) {
        let path = PathBuf::from(format!("/proc/{pid}/exe"));
        let Ok(data) = fs::metadata(&path) else { return };
        if self.known.insert((data.dev(), data.ino())) {
            self.look_at(&path, is_command);
        }
    }

    /// Most files are neither Go programs nor closed to libraries, so only the headers are read.
    fn look_at(&mut self, path: &Path, is_command: bool) {
        let Ok(file) = File::open(path) else { return };
        let cache = ReadCache::new(file);
        let Ok(file) = object::File::parse(&cache) else { return };
        let has = |name| file.section_by_name(name).is_some();
        if has(".go.buildinfo") {
            self.seen.go = true;
            if !has(".symtab") || !(has(".debug_info") || has(".zdebug_info")) {
                self.seen.stripped_go.extend(Build::of(&file));
            }
            return;
        }
        let is_static = file.section_by_name(".interp").is_none_or(|section| section.size() == 0);
        if !is_command && (is_static || Program { path: path.to_owned() }.changes_user()) {
            let runtime = Elf::read(path).and_then(|elf| runtime_of(&elf));
            self.seen.unreached.extend(runtime.map(|runtime| runtime.word().to_owned()));
        }
    }
}

fn runtime_of(elf: &Elf) -> Option<Runtime> {
    ALL.into_iter().find(|runtime| (runtime.adapter().find)(elf).is_some())
}
