//! Programs that do nothing but execute another one.

use crate::program::Program;
use std::ffi::OsString;
use std::path::Path;

/// Programs that execute the rest of their command line.
const WRAPPERS: [&str; 10] =
    ["chrt", "env", "ionice", "nice", "nohup", "setsid", "stdbuf", "taskset", "time", "timeout"];

/// The index of the first word in the command line of a wrapper that names such a program; `None` if there is none.
pub(super) fn index_of_wrapped_program(
    argv: &[OsString],
    folder: &Path,
    is: impl Fn(&Program) -> bool,
) -> Option<usize> {
    let name = Path::new(argv.first()?).file_name()?.to_str()?;
    if !WRAPPERS.contains(&name) {
        return None;
    }
    let named = |word: &OsString| Program::find(word, folder).is_ok_and(|program| is(&program));
    argv.iter().skip(1).position(named).map(|at| at + 1)
}
