//! Compiles the tool for the installed Valgrind, once for each version and each set of sources, and keeps it in a
//! cache.

use super::unavailable::Unavailable;
use crate::embedded::EmbeddedGroup;
use crate::program::Program;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The tool's sources and its licence. They are embedded in the binary, so that they are distributed with it.
static SOURCES: EmbeddedGroup =
    EmbeddedGroup::new(include_bytes!(concat!(env!("OUT_DIR"), "/embedded/calltree-sources")));

/// Compiler flags. A Valgrind tool is linked statically, without the C library, at an address that programs do not
/// use.
const FLAGS: [&str; 24] = [
    "-std=gnu11",
    "-O2",
    "-m64",
    "-fno-stack-protector",
    "-fno-strict-aliasing",
    "-fno-builtin",
    "-fomit-frame-pointer",
    "-fno-pie",
    "-no-pie",
    "-static",
    "-nodefaultlibs",
    "-nostartfiles",
    "-u",
    "_start",
    "-Wl,-Ttext-segment=0x58000000",
    "-Wl,--build-id=none",
    // See main.c and processor.c: these replace functions of Valgrind. Line and unwinding tables are not read at the program's
    // start, checks and a second clean-up of translated blocks are left out, and the processor executes what the core
    // emulates slowly.
    "-Wl,--wrap=vgModuleLocal_read_debuginfo_dwarf3",
    "-Wl,--wrap=vgModuleLocal_read_callframe_info_dwarf3",
    "-Wl,--wrap=sanityCheckIRSB",
    "-Wl,--wrap=do_deadcode_BB",
    "-Wl,--wrap=cprop_BB",
    "-Wl,--wrap=amd64g_dirtyhelper_AES",
    "-Wl,--wrap=h_generic_calc_GetMSBs8x16",
    "-s",
];

const ARCHITECTURE: &str = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };

/// The installed Valgrind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Valgrind {
    /// The launcher binary, not the shell script that sets variables before it starts the launcher.
    pub(super) launcher: PathBuf,
    pub(super) version: String,
    /// The installation prefix, below which tools, headers and libraries are searched.
    prefix: PathBuf,
}

/// The compiled tool and the Valgrind that runs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// Valgrind's launcher.
    pub(super) launcher: PathBuf,
    /// The folder with the tool, for `VALGRIND_LIB`.
    pub(super) library: PathBuf,
    /// Valgrind's version.
    pub version: String,
}

impl Valgrind {
    pub(super) fn find() -> Result<Valgrind, Unavailable> {
        let found = Program::find("valgrind".as_ref(), Path::new("/"));
        Valgrind::at(&found.map_err(|_| Unavailable::NoValgrind)?.path)
    }

    fn at(path: &Path) -> Result<Valgrind, Unavailable> {
        let output = Command::new(path)
            .arg("--version")
            .stdin(Stdio::null())
            .output()
            .map_err(|error| Unavailable::NotStarted { path: path.to_owned(), why: error.to_string() })?;
        let said = String::from_utf8_lossy(&output.stdout);
        let version = said.trim().strip_prefix("valgrind-").filter(|_| output.status.success());
        let version = version.ok_or_else(|| {
            let printed = first_line(&output.stderr).or_else(|| first_line(&output.stdout));
            let printed = printed.map_or("printed nothing".to_owned(), |line| format!("printed ‘{line}’"));
            let why = format!("{}; {printed}", output.status);
            Unavailable::NoVersion { path: path.to_owned(), why }
        })?;
        // Debian installs a script under the name `valgrind`, which changes the environment of the program.
        let behind = path.with_file_name("valgrind.bin");
        let launcher = if behind.is_file() { behind } else { path.to_owned() };
        let real = fs::canonicalize(&launcher).unwrap_or(launcher.clone());
        let prefix = real.parent().and_then(Path::parent).unwrap_or(Path::new("/usr")).to_owned();
        Ok(Valgrind { launcher, version: version.to_owned(), prefix })
    }

    /// The folder with the tools that come with Valgrind.
    pub(super) fn tools(&self) -> Option<PathBuf> {
        let folders = ["libexec/valgrind", "lib/valgrind", "lib64/valgrind"];
        let holds = |folder: &PathBuf| folder.join("default.supp").is_file();
        folders.iter().map(|folder| self.prefix.join(folder)).find(holds)
    }

    pub(super) fn has_tool(&self, name: &str) -> bool {
        let file = format!("{name}-{ARCHITECTURE}-linux");
        self.tools().is_some_and(|folder| folder.join(file).is_file())
    }

    fn headers(&self) -> Result<PathBuf, Unavailable> {
        let folder = self.prefix.join("include/valgrind");
        let missing = || Unavailable::NoHeaders { what: "headers", valgrind: self.launcher.clone() };
        let config = fs::read_to_string(folder.join("config.h")).map_err(|_| missing())?;
        if !folder.join("pub_tool_tooliface.h").is_file() {
            return Err(missing());
        }
        let line = config.lines().find_map(|line| line.strip_prefix("#define VERSION \""));
        let headers = line.map_or("", |rest| rest.trim_end_matches('"'));
        if headers != self.version {
            let (headers, program) = (headers.to_owned(), self.version.clone());
            return Err(Unavailable::OtherHeaders { headers, program });
        }
        Ok(folder)
    }

    /// Valgrind's core, its translator, and the parts of the compiler's library that they need, in link order.
    fn archives(&self) -> Result<Vec<PathBuf>, Unavailable> {
        let names = ["coregrind", "vex", "gcc-sup"].map(|name| format!("lib{name}-{ARCHITECTURE}-linux.a"));
        let multiarch = format!("lib/{}-linux-gnu/valgrind", std::env::consts::ARCH);
        let folders = [multiarch.as_str(), "lib64/valgrind", "lib/valgrind", "libexec/valgrind"];
        let folder = folders.iter().map(|folder| self.prefix.join(folder));
        let folder = folder.into_iter().find(|folder| names.iter().all(|name| folder.join(name).is_file()));
        match folder {
            Some(folder) => Ok(names.iter().map(|name| folder.join(name)).collect()),
            None => Err(Unavailable::NoHeaders { what: "static libraries", valgrind: self.launcher.clone() }),
        }
    }
}

impl Tool {
    /// Returns the tool for the Valgrind on the search path, from the cache or newly compiled.
    ///
    /// # Errors
    /// Says what is missing and how to get it.
    pub fn prepare(cache: &Path) -> Result<Tool, Unavailable> {
        if !cfg!(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))) {
            return Err(Unavailable::Platform);
        }
        Tool::prepare_for(&Valgrind::find()?, cache)
    }

    fn prepare_for(valgrind: &Valgrind, cache: &Path) -> Result<Tool, Unavailable> {
        let headers = valgrind.headers()?;
        let archives = valgrind.archives()?;
        let kept = |path: &Path| {
            let path = path.to_owned();
            move |error: io::Error| Unavailable::Cache { path, why: error.to_string() }
        };
        let cache = std::path::absolute(cache).map_err(kept(cache))?;
        let folder = cache.join(format!("{}-{:016x}", valgrind.version, digest(&archives)));
        let tool = Tool {
            launcher: valgrind.launcher.clone(),
            library: folder.clone(),
            version: valgrind.version.clone(),
        };
        if folder.join("complete").is_file() {
            return Ok(tool);
        }
        fs::create_dir_all(&cache).map_err(kept(&cache))?;
        let lock = File::create(cache.join("lock")).map_err(kept(&cache))?;
        lock.lock().map_err(kept(&cache))?;
        if folder.join("complete").is_file() {
            return Ok(tool);
        }
        // The folder may hold remains of an interrupted attempt.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("source")).map_err(kept(&folder))?;
        let built = compile(valgrind, &folder, &headers, &archives).and_then(|()| tool.try_out());
        if let Err(why) = built {
            let _ = fs::remove_dir_all(&folder);
            return Err(why);
        }
        File::create(folder.join("complete")).map_err(kept(&folder))?;
        Ok(tool)
    }

    /// Runs a tiny program under the tool: some failures, such as a folder mounted noexec, appear only then.
    fn try_out(&self) -> Result<(), Unavailable> {
        let fails = |why: String| Unavailable::NotWorking { version: self.version.clone(), why };
        let out = self.library.join("trial");
        let output = Command::new(&self.launcher)
            .args(["-q", "--tool=calltree", "--vgdb=no"])
            .arg(format!("--out={}", out.display()))
            .arg("/bin/true")
            .env("VALGRIND_LIB", &self.library)
            .env_remove("VALGRIND_OPTS")
            .stdin(Stdio::null())
            .output();
        let output = output.map_err(|error| fails(error.to_string()))?;
        let profiles = scruple_code::read_all(&out).map_err(|error| fails(error.to_string()));
        for profile in fs::read_dir(&self.library).into_iter().flatten().flatten() {
            if profile.file_name().to_string_lossy().starts_with("trial.") {
                let _ = fs::remove_file(profile.path());
            }
        }
        let counted = profiles?.processes.iter().map(|profile| profile.total).sum::<u64>();
        if counted == 0 {
            return Err(fails(
                first_line(&output.stderr).unwrap_or_else(|| "it wrote no profile".to_owned()),
            ));
        }
        Ok(())
    }
}

/// Returns the first line of output that is not blank, escaped.
fn first_line(output: &[u8]) -> Option<String> {
    let said = String::from_utf8_lossy(output);
    said.lines().map(str::trim).find(|line| !line.is_empty()).map(|line| line.escape_debug().to_string())
}

/// A hash of everything that the compiled tool depends on besides Valgrind's version.
fn digest(archives: &[PathBuf]) -> u64 {
    let mut hasher = DefaultHasher::new();
    FLAGS.hash(&mut hasher);
    SOURCES.files().hash(&mut hasher);
    for archive in archives {
        let data = archive.metadata().ok();
        let changed = data.as_ref().and_then(|data| data.modified().ok());
        (archive, data.map(|data| data.len()), changed).hash(&mut hasher);
    }
    hasher.finish()
}

fn compiler() -> Result<PathBuf, Unavailable> {
    let named = std::env::var_os("CC").filter(|name| !name.is_empty());
    let names = named.into_iter().chain(["cc", "gcc", "clang"].map(Into::into));
    let found = names.filter_map(|name| Program::find(&name, Path::new("/")).ok()).next();
    found.map(|program| program.path).ok_or(Unavailable::NoCompiler)
}

fn compile(
    valgrind: &Valgrind,
    folder: &Path,
    headers: &Path,
    archives: &[PathBuf],
) -> Result<(), Unavailable> {
    let cache = |error: io::Error| Unavailable::Cache { path: folder.to_owned(), why: error.to_string() };
    let tools = valgrind.tools();
    let tools = tools.ok_or(Unavailable::NoTool("folder of tools"))?;
    for entry in fs::read_dir(tools).map_err(cache)?.flatten() {
        symlink(entry.path(), folder.join(entry.file_name())).map_err(cache)?;
    }
    let source = folder.join("source");
    for (name, content) in SOURCES.files() {
        fs::write(source.join(name), content).map_err(cache)?;
    }
    let mut command = Command::new(compiler()?);
    let platform = format!("-DVGP_{ARCHITECTURE}_linux=1");
    let flavour = format!("-DVGPV_{ARCHITECTURE}_linux_vanilla=1");
    let skipped = if cfg!(target_arch = "aarch64") { "-m64" } else { "" };
    command.args(FLAGS.iter().filter(|flag| **flag != skipped));
    command.args([format!("-DVGA_{ARCHITECTURE}=1"), "-DVGO_linux=1".to_owned(), platform, flavour]);
    command.arg("-I").arg(headers).arg("-I").arg(headers.parent().unwrap_or(headers));
    command.arg("-o").arg(folder.join(format!("calltree-{ARCHITECTURE}-linux")));
    let sources = SOURCES.files().iter().filter(|(name, _)| name.ends_with(".c"));
    command.args(sources.map(|(name, _)| source.join(name)));
    command.args(archives).arg("-lgcc").stdin(Stdio::null());
    let fails = |why: String| Unavailable::NotCompiled { version: valgrind.version.clone(), why };
    let output = command.output().map_err(|error| fails(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let first = |word: &str| said.lines().find(|line| line.contains(word));
    let line = first("No space left").or_else(|| first("error")).or(said.lines().next());
    Err(fails(line.unwrap_or("the compiler did not say why").trim().escape_debug().to_string()))
}
