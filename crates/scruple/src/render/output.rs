//! Where texts are written: the terminal, standard output, and files.

use super::colours::BAD;
use crate::fault::Fault;
use scruple_core::harmless_text::{for_terminal, plain_lines};
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Read, Write};
use std::path::Path;

/// The first bytes of a database of SQLite.
const DATABASE: &[u8; 16] = b"SQLite format 3\0";

/// Checks that a file can be written, and leaves no trace of the check.
pub fn check_writable(path: &Path) -> Result<(), Fault> {
    refuse_database(path)?;
    let existed = path.exists();
    match OpenOptions::new().append(true).create(true).open(path) {
        Ok(_) if existed => Ok(()),
        Ok(_) => {
            // If the path is a link without a target, the target was created. If the removal fails, an empty file
            // stays; it is about to be written.
            let _ = path.canonicalize().and_then(std::fs::remove_file);
            Ok(())
        }
        Err(error) => Err(Fault::unwritable_export(path, error)),
    }
}

/// Refuses to overwrite a database: it is a store, with readings that cannot be made again, or another program's.
fn refuse_database(path: &Path) -> Result<(), Fault> {
    let mut first = [0; DATABASE.len()];
    let begins = |_| File::open(path).and_then(|mut file| file.read_exact(&mut first)).is_ok();
    // Opening a pipe would wait for its writer.
    match path.metadata().ok().filter(|data| data.is_file()).is_some_and(begins) && first == *DATABASE {
        true => Err(Fault::usage(format!(
            "‘{}’ is a store or another database: name another file",
            path.display()
        ))),
        false => Ok(()),
    }
}

/// Writes text files; `-` means standard output. Characters that control a terminal or change the direction of writing
/// are replaced, whatever their origin. All files are tried; the last error is returned.
pub fn write_files<'a>(files: impl IntoIterator<Item = (&'a Path, String)>) -> Result<Option<Fault>, Fault> {
    let mut unwritten = None;
    for (path, text) in files {
        match path == Path::new("-") {
            true => print(&text)?,
            false => unwritten = write_file(path, plain_lines(&text).as_bytes()).err().or(unwritten),
        }
    }
    Ok(unwritten)
}

/// Writes one file byte for byte; `-` means standard output.
pub fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), Fault> {
    if path == Path::new("-") {
        let written = io::stdout().write_all(bytes);
        return written.or_else(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => Ok(()),
            _ => Err(Fault::usage(format!("cannot write to standard output: {error}"))),
        });
    }
    write_file(path, bytes)
}

/// Writes one file. The name `-` has no special meaning.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Fault> {
    refuse_database(path)?;
    std::fs::write(path, bytes).map_err(|error| {
        Fault::usage(format!("cannot write ‘{}’: {error}; name another file", path.display()))
    })
}

/// Prints a text that is not the content of a file. If a file is written to standard output, the text goes to standard
/// error.
pub fn print_beside(file_on_stdout: bool, text: &str) -> Result<(), Fault> {
    if !file_on_stdout {
        return print(text);
    }
    // A failure to write is ignored, because standard error may be closed.
    let _ = anstream::stderr().write_all(for_terminal(text).as_bytes());
    Ok(())
}

/// Formats an error for standard error.
pub fn fault_text(fault: &Fault) -> String {
    format!("{BAD}error:{BAD:#} {fault}")
}

/// Prints a message to standard error.
pub fn warn(text: &str) {
    // A failure to write is ignored, because a closed standard error must not end a measurement.
    let _ = writeln!(anstream::stderr(), "{}", for_terminal(&format!("scruple: {text}")));
}

/// Prints each of these messages to standard error.
pub fn warn_of_all(texts: &[String]) {
    texts.iter().for_each(|text| warn(text));
}

/// Writes a text to standard output. A reader that has closed the pipe does not cause an error.
pub fn print(text: &str) -> Result<(), Fault> {
    let text = for_terminal(text);
    // A long text without styles, such as JSON, is not searched for them.
    let result = match text.contains('\x1b') {
        true => anstream::stdout().write_all(text.as_bytes()),
        false => io::stdout().write_all(text.as_bytes()),
    };
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Fault::usage(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// The most columns that COLUMNS asks for.
pub const WIDEST: usize = 400;

/// Returns the number of columns to write for: that of the terminal, or 100 without one.
pub fn width() -> usize {
    if let Some(columns) = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()) {
        return usize::clamp(columns, 40, WIDEST);
    }
    match io::stdout().is_terminal() {
        true => {
            terminal_size::terminal_size().map_or(80, |(columns, _)| usize::from(columns.0)).clamp(40, 200)
        }
        false => 100,
    }
}
