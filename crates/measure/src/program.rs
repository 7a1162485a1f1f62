//! Finds the file that a command names, and determines what kind of file it is.

use crate::heap::system;
use object::{Architecture, Object, ObjectSection, ReadCache, ReadRef};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The file of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The path; it is absolute unless the working folder could not be determined.
    pub path: PathBuf,
}

/// Why a command's program was not found.
#[derive(Debug, thiserror::Error)]
pub enum NotFound {
    /// The search path has no executable file with this name.
    #[error("there is no program ‘{0}’ on the search path: check the spelling, or give its path")]
    OnPath(String),
    /// The file does not exist.
    #[error("there is no file ‘{0}’")]
    File(String),
    /// The path names a folder.
    #[error("‘{0}’ is a folder: name a program in it")]
    Folder(String),
    /// The file is not executable.
    #[error("‘{0}’ is not executable: `chmod +x` makes it so, or name its interpreter")]
    NotExecutable(String),
    /// The name is a whole command line, whose first word is a program.
    #[error("there is no program ‘{0}’: these are several words in one pair of quotes; leave the quotes out")]
    Quoted(String),
}

impl Program {
    /// Finds a program as a shell would, but only once, before the measurement starts.
    pub fn find(name: &OsStr, folder: &Path) -> Result<Program, NotFound> {
        let found = Program::find_by_name(name, folder);
        let mut words = name.as_bytes().split(u8::is_ascii_whitespace);
        let first = words.next().filter(|_| words.next().is_some());
        match first {
            Some(first)
                if found.is_err() && Program::find_by_name(OsStr::from_bytes(first), folder).is_ok() =>
            {
                Err(NotFound::Quoted(name.to_string_lossy().into_owned()))
            }
            _ => found,
        }
    }

    fn find_by_name(name: &OsStr, folder: &Path) -> Result<Program, NotFound> {
        let shown = name.to_string_lossy().into_owned();
        if name.as_bytes().contains(&b'/') {
            let path = folder.join(name);
            return match path.metadata() {
                Ok(data) if data.is_file() && data.permissions().mode() & 0o111 != 0 => Ok(Program { path }),
                Ok(data) if data.is_dir() => Err(NotFound::Folder(shown)),
                Ok(_) => Err(NotFound::NotExecutable(shown)),
                Err(_) => Err(NotFound::File(shown)),
            };
        }
        let search =
            std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/local/bin:/usr/bin:/bin"));
        std::env::split_paths(&search)
            .map(|place| folder.join(place).join(name))
            .find(|path| {
                path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
            })
            .map(|path| Program { path })
            .ok_or(NotFound::OnPath(shown))
    }

    /// Determines what kind of file it is.
    pub fn kind(&self) -> io::Result<FileKind> {
        let mut head = Vec::new();
        File::open(&self.path)?.take(256).read_to_end(&mut head)?;
        if let Some(line) = head.strip_prefix(b"#!") {
            let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii();
            let interpreter = line.split(|byte| *byte == b' ').next().unwrap_or_default();
            let argument = line[interpreter.len()..].trim_ascii();
            return Ok(FileKind::Script {
                interpreter: OsString::from_vec(interpreter.to_vec()).into(),
                argument: (!argument.is_empty()).then(|| String::from_utf8_lossy(argument).into_owned()),
            });
        }
        if !head.starts_with(b"\x7fELF") {
            return Ok(FileKind::Other);
        }
        Ok(elf_kind(&ReadCache::new(File::open(&self.path)?)))
    }

    /// The program that finally runs: the interpreter of a script. If the script uses `env`, its argument is
    /// resolved.
    pub fn resolved(&self) -> Program {
        let mut program = self.clone();
        for _ in 0..4 {
            let Ok(FileKind::Script { interpreter, argument }) = program.kind() else { break };
            let through_env = interpreter.file_name() == Some(OsStr::new("env"));
            let next = match argument.filter(|_| through_env) {
                Some(name) => {
                    let name = name
                        .strip_prefix("-S ")
                        .unwrap_or(&name)
                        .split_whitespace()
                        .next()
                        .unwrap_or("")
                        .to_owned();
                    Program::find(OsStr::new(&name), Path::new("/"))
                }
                None => Program::find(interpreter.as_os_str(), Path::new("/")),
            };
            match next {
                Ok(next) => program = next,
                Err(_) => break,
            }
        }
        program
    }

    /// Whether executing the file changes the user, the group or the capabilities, so that the loader ignores preloaded
    /// libraries.
    pub fn changes_user(&self) -> bool {
        let (user, group) = system::user_and_group();
        let Ok(data) = self.path.metadata() else { return false };
        let takes_user = data.mode() & libc::S_ISUID != 0 && data.uid() != user;
        let takes_group = data.mode() & libc::S_ISGID != 0 && data.gid() != group;
        takes_user || takes_group || (user != 0 && system::has_capabilities(&self.path))
    }

    /// Whether a counter of instructions can follow the program.
    ///
    /// # Errors
    /// Says why not.
    pub fn can_be_counted(&self) -> Result<(), String> {
        if self.changes_user() {
            return Err("the program changes its user, which hides it from counters".to_owned());
        }
        match self.kind() {
            Ok(FileKind::Elf { native: false, .. }) => {
                Err("it is a program for another processor".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Whether Valgrind can run the program.
    ///
    /// # Errors
    /// Says why not.
    pub fn can_run_under_valgrind(&self) -> Result<(), String> {
        self.can_be_counted()?;
        // Valgrind does not execute such a file, even if the user stays the same.
        let mode = self.path.metadata().map_or(0, |data| data.mode());
        if mode & (libc::S_ISUID | libc::S_ISGID) != 0 {
            return Err("valgrind executes no program that sets its user or group".to_owned());
        }
        File::open(&self.path)
            .map_err(|why| format!("valgrind cannot read ‘{}’: {why}", self.path.display()))?;
        Ok(())
    }
}

/// The kinds of executable files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A script with a `#!` line.
    Script {
        /// The interpreter in the `#!` line.
        interpreter: PathBuf,
        /// The rest of the `#!` line, if there is any.
        argument: Option<String>,
    },
    /// An ELF file.
    Elf {
        /// Whether a dynamic linker loads it.
        dynamic: bool,
        /// Whether the Go toolchain's note is present.
        go: bool,
        /// Whether it is for this machine's architecture and word size.
        native: bool,
    },
    /// Anything else, such as a script without a `#!` line.
    Other,
}

fn elf_kind<'data>(data: impl ReadRef<'data>) -> FileKind {
    let Ok(file) = object::File::parse(data) else { return FileKind::Other };
    let native = match file.architecture() {
        Architecture::X86_64 => cfg!(target_arch = "x86_64"),
        Architecture::Aarch64 => cfg!(target_arch = "aarch64"),
        _ => false,
    };
    let has = |name: &str| file.sections().any(|section| section.name() == Ok(name));
    FileKind::Elf { dynamic: has(".interp"), go: has(".note.go.buildid") || has(".go.buildinfo"), native }
}
