//! The layouts of the Go programs that a build starts.

use super::empty_program::EmptyProgram;
use super::layout::{Layout, STRIPPED};
use super::layout_of_stripped;
use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::rc::Rc;

/// The layouts of program files, by device and inode. A build starts the same compiler many times, so each is read
/// once.
#[derive(Debug, Default)]
pub(crate) struct Layouts {
    empty_programs: Vec<EmptyProgram>,
    known: HashMap<(u64, u64), LayoutOfFile>,
}

/// The layout of a file: `None` if it is not a Go program, an error if the places of its counters cannot be found.
type LayoutOfFile = Result<Option<Rc<Layout>>, String>;

impl Layouts {
    /// Layouts that are learnt from these empty programs where programs are stripped.
    pub(crate) fn learnt_from(empty_programs: &[EmptyProgram]) -> Layouts {
        Layouts { empty_programs: empty_programs.to_vec(), ..Layouts::default() }
    }

    /// Whether the process runs a Go program, even if its layout cannot be read.
    pub(crate) fn has(&mut self, pid: i32) -> bool {
        !matches!(self.of(pid), Ok(None))
    }

    /// The layout of the program that a process runs; `None` if it is not a Go program.
    pub(super) fn of(&mut self, pid: i32) -> LayoutOfFile {
        let path = format!("/proc/{pid}/exe");
        let Ok(data) = fs::metadata(&path) else { return Ok(None) };
        let read = || match Layout::read(Path::new(&path)) {
            Err(why) if why == STRIPPED => {
                layout_of_stripped::layout(Path::new(&path), &self.empty_programs).map(Some)
            }
            read => read,
        };
        let read = || read().map(|layout| layout.map(Rc::new));
        self.known.entry((data.dev(), data.ino())).or_insert_with(read).clone()
    }
}
