//! Where a Go program without debugging information keeps its counters: learnt from a program that the same version of
//! Go builds.
//!
//! Both programs contain the same code of the runtime, except for addresses. So the offsets within structures are those
//! of the other program, and where an instruction of the other program refers to a variable, the same instruction of
//! the stripped one has the variable's address.

use super::layout::{Layout, VARIABLES};
use crate::calltree::go_functions;
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind};
use object::{Architecture, Object, ObjectSection, ObjectSymbol};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{LazyLock, Mutex};

/// The smallest number of functions that must agree on the address of a variable.
const LEAST: usize = 3;

/// What was learnt, by device and inode of the program.
type Known = HashMap<(u64, u64), Result<Layout, String>>;

static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);

/// Where a program keeps its counters. Builds a small program with Go for that, once for each file.
///
/// # Errors
/// Says why it cannot be known.
pub(crate) fn layout(path: &Path) -> Result<Layout, String> {
    let file = fs::metadata(path).map_err(|error| format!("the program file cannot be read: {error}"))?;
    let key = (file.dev(), file.ino());
    let mut known = KNOWN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    known
        .entry(key)
        .or_insert_with(|| learn(path).map_err(|why| format!("{} ({why})", super::STRIPPED)))
        .clone()
}

fn learn(path: &Path) -> Result<Layout, String> {
    let data = fs::read(path).map_err(|error| format!("the program file cannot be read: {error}"))?;
    let file = object::File::parse(&*data).map_err(|error| error.to_string())?;
    if file.architecture() != Architecture::X86_64 {
        return Err("only code for x86-64 can be compared with that of another program".to_owned());
    }
    let build = Build::of(&file).ok_or("its build information is of another form")?;
    let folder = scratch_folder()?;
    let learnt = build.twin(&folder).and_then(|twin| {
        let data = fs::read(&twin).map_err(|error| error.to_string())?;
        let other = object::File::parse(&*data).map_err(|error| error.to_string())?;
        let layout = Layout::read(&twin)?.ok_or("the other program is no Go program")?;
        relocated(layout, &other, &file)
    });
    let _ = fs::remove_dir_all(&folder);
    learnt
}

/// How a program was built, by the linker's build information.
#[derive(Debug, PartialEq, Eq)]
struct Build {
    /// The version, such as `go1.26.0`.
    version: String,
    settings: BTreeMap<String, String>,
}

/// The environment variables that decide how the runtime is compiled.
const DECISIVE: [&str; 3] = ["GOAMD64", "GOEXPERIMENT", "CGO_ENABLED"];

impl Build {
    fn of(file: &object::File<'_>) -> Option<Build> {
        Build::parse(file.section_by_name(".go.buildinfo")?.data().ok()?)
    }

    /// Reads the form of Go 1.18 and later: 32 bytes of head, then two texts, each after its length.
    fn parse(data: &[u8]) -> Option<Build> {
        const INLINE: u8 = 2;
        if !data.starts_with(b"\xff Go buildinf:") || data.get(15)? & INLINE == 0 {
            return None;
        }
        let (version, rest) = text(data.get(32..)?)?;
        let (lines, _) = text(rest)?;
        // The text stands between two marks of 16 bytes each.
        let lines = lines.get(16..lines.len().checked_sub(16)?)?;
        let settings = String::from_utf8_lossy(lines)
            .lines()
            .filter_map(|line| line.strip_prefix("build\t")?.split_once('='))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        // A version may be followed by experiments, after a blank.
        let version = String::from_utf8_lossy(version).split_whitespace().next()?.to_owned();
        Some(Build { version, settings })
    }

    /// Builds a program of the same version and settings.
    fn twin(&self, folder: &Path) -> Result<std::path::PathBuf, String> {
        let go = |words: &[&str]| {
            let mut command = Command::new("go");
            command.args(words).current_dir(folder).stdin(Stdio::null());
            for name in ["GOFLAGS", "GOOS", "GOARCH", "GODEBUG"].iter().chain(&DECISIVE) {
                command.env_remove(name);
            }
            let decisive = DECISIVE.iter().filter_map(|name| Some((name, self.settings.get(*name)?)));
            command.envs(decisive).env("GO111MODULE", "off").env("GOTOOLCHAIN", "local");
            command.output()
        };
        let version = &self.version;
        let here = match go(&["env", "GOVERSION"]) {
            Ok(said) if said.status.success() => String::from_utf8_lossy(&said.stdout).trim().to_owned(),
            _ => return Err(format!("with {version} on the path they could be found")),
        };
        if here.split_whitespace().next() != Some(version) {
            return Err(format!("with {version} on the path they could be found; there is {here}"));
        }
        let source = folder.join("twin.go");
        fs::write(&source, "package main\n\nfunc main() {}\n").map_err(|error| error.to_string())?;
        let mode = format!("-buildmode={}", self.settings.get("-buildmode").map_or("exe", String::as_str));
        let mut words = vec!["build", "-o", "twin", &mode];
        words.extend(self.settings.get("-race").map(|_| "-race"));
        words.push("twin.go");
        let done = go(&words).map_err(|error| format!("go cannot be started: {error}"))?;
        if !done.status.success() {
            let said = String::from_utf8_lossy(&done.stderr);
            let last = said.trim().lines().last().unwrap_or("no reason given").to_owned();
            return Err(format!("{version} could not build a program to compare with: {last}"));
        }
        Ok(folder.join("twin"))
    }
}

/// Splits a text from what follows it. Its length comes first, seven bits to a byte, the lowest first.
fn text(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let size = data.iter().take(5).position(|byte| *byte < 0x80)? + 1;
    let length = data[..size].iter().rev().fold(0_usize, |sum, byte| sum << 7 | usize::from(byte & 0x7f));
    data.get(size..)?.split_at_checked(length)
}

fn scratch_folder() -> Result<std::path::PathBuf, String> {
    let path = std::env::temp_dir().join(format!("scruple-go-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir(&path).map_err(|error| format!("‘{}’ cannot be made: {error}", path.display()))?;
    Ok(path)
}

/// The layout of `own`, given that of `other`, a program with the same runtime.
fn relocated(mut layout: Layout, other: &object::File<'_>, own: &object::File<'_>) -> Result<Layout, String> {
    let ranges = ranges(other);
    let mut found: BTreeMap<&str, BTreeMap<u64, usize>> = BTreeMap::new();
    let (ours, theirs) = (Code::of(own)?, Code::of(other)?);
    for (name, there) in &theirs.functions {
        let Some(here) = ours.functions.get(name) else { continue };
        let mut of_function: BTreeSet<(&str, u64)> = BTreeSet::new();
        for (theirs, ours) in theirs.references(*there, &ours, *here).unwrap_or_default() {
            let hit = ranges.iter().find(|(_, begin, end)| (*begin..*end).contains(&theirs));
            of_function
                .extend(hit.map(|(variable, begin, _)| (*variable, ours.wrapping_sub(theirs - begin))));
        }
        for (variable, address) in of_function {
            *found.entry(variable).or_default().entry(address).or_default() += 1;
        }
    }
    layout.movable_from = Layout::movable_from(own);
    for variable in VARIABLES {
        let places = found.remove(variable).unwrap_or_default();
        let agreed =
            places.first_key_value().filter(|(_, functions)| places.len() == 1 && **functions >= LEAST);
        let (address, _) =
            agreed.ok_or("its runtime’s code is not that of another program of its version")?;
        layout.variables.insert(variable.to_owned(), *address);
    }
    Ok(layout)
}

/// The variables of a program with symbols, each with its first address and the one after its last.
fn ranges(file: &object::File<'_>) -> Vec<(&'static str, u64, u64)> {
    let known = file.symbols().filter_map(|symbol| {
        let name = symbol.name().ok()?;
        let variable = VARIABLES.into_iter().find(|known| *known == name)?;
        Some((variable, symbol.address(), symbol.address() + symbol.size().max(1)))
    });
    known.collect()
}

/// The code of a program, and where its functions begin and end.
struct Code<'a> {
    bytes: &'a [u8],
    begin: u64,
    /// Begin and end by name. A name that two functions have is left out.
    functions: BTreeMap<String, (u64, u64)>,
}

impl<'a> Code<'a> {
    fn of(file: &object::File<'a>) -> Result<Code<'a>, String> {
        let text = file.section_by_name(".text").ok_or("it has no section .text")?;
        let bytes = text.data().map_err(|error| error.to_string())?;
        let end = text.address() + bytes.len() as u64;
        let names = go_functions(file).ok_or("its table of functions is of another form")?;
        let begins: BTreeSet<u64> = names.keys().copied().collect();
        let mut functions = BTreeMap::new();
        let mut twice = BTreeSet::new();
        for (begin, name) in names {
            let next = begins.range(begin + 1..).next().copied().unwrap_or(end);
            if name.starts_with("runtime.") && functions.insert(name.clone(), (begin, next)).is_some() {
                twice.insert(name);
            }
        }
        functions.retain(|name, _| !twice.contains(name));
        Ok(Code { bytes, begin: text.address(), functions })
    }

    fn instructions(&self, (begin, end): (u64, u64)) -> Option<Vec<Instruction>> {
        let place = |address: u64| usize::try_from(address.checked_sub(self.begin)?).ok();
        let code = self.bytes.get(place(begin)?..place(end)?)?;
        let mut all: Vec<Instruction> =
            Decoder::with_ip(64, code, begin, DecoderOptions::NONE).iter().collect();
        let padding = |one: &Instruction| one.mnemonic() == Mnemonic::Int3;
        all.truncate(all.iter().rposition(|one| !padding(one)).map_or(0, |last| last + 1));
        Some(all)
    }

    /// The addresses to which the same instructions of a function refer, here and in another program; `None` if the
    /// function has other code there.
    fn references(&self, here: (u64, u64), other: &Code<'_>, there: (u64, u64)) -> Option<Vec<(u64, u64)>> {
        let (ours, theirs) = (self.instructions(here)?, other.instructions(there)?);
        if ours.len() != theirs.len() {
            return None;
        }
        let mut all = Vec::new();
        for (one, other) in ours.iter().zip(&theirs) {
            all.extend(same(one, other)?);
        }
        Some(all)
    }
}

/// Whether two instructions differ only by addresses of code and data; then the addresses of data that they
/// refer to.
fn same(one: &Instruction, other: &Instruction) -> Option<Option<(u64, u64)>> {
    if one.code() != other.code() || one.segment_prefix() != other.segment_prefix() {
        return None;
    }
    let mut referred = None;
    for operand in 0..one.op_count() {
        let kind = one.op_kind(operand);
        let alike = kind == other.op_kind(operand)
            && match kind {
                OpKind::Register => one.op_register(operand) == other.op_register(operand),
                OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64 => true,
                OpKind::Memory if one.is_ip_rel_memory_operand() && other.is_ip_rel_memory_operand() => {
                    referred = Some((one.ip_rel_memory_address(), other.ip_rel_memory_address()));
                    true
                }
                OpKind::Memory => {
                    let place = |it: &Instruction| {
                        (
                            it.memory_base(),
                            it.memory_index(),
                            it.memory_index_scale(),
                            it.memory_displacement64(),
                        )
                    };
                    place(one) == place(other)
                }
                kind if is_immediate(kind) => one.immediate(operand) == other.immediate(operand),
                _ => true,
            };
        if !alike {
            return None;
        }
    }
    Some(referred)
}

fn is_immediate(kind: OpKind) -> bool {
    use OpKind::*;
    matches!(
        kind,
        Immediate8
            | Immediate8_2nd
            | Immediate16
            | Immediate32
            | Immediate64
            | Immediate8to16
            | Immediate8to32
            | Immediate8to64
            | Immediate32to64
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(flags: u8, version: &str, lines: &str) -> Vec<u8> {
        let mut data = b"\xff Go buildinf:".to_vec();
        data.extend([8, flags]);
        data.resize(32, 0);
        let marked = format!("{0}{lines}{0}", "m".repeat(16));
        for text in [version, &marked] {
            assert!(text.len() < 1 << 14);
            data.extend([text.len() as u8 | 0x80, (text.len() >> 7) as u8]);
            data.extend(text.bytes());
        }
        data
    }

    #[test]
    fn build_information_tells_version_and_settings() {
        let lines = "path\tcmd/gofmt\nbuild\t-buildmode=pie\nbuild\tGOAMD64=v3\n";
        let build = Build::parse(&info(2, "go1.26.8 X:nodwarf5", lines)).expect("it is of the known form");
        assert_eq!(build.version, "go1.26.8");
        assert_eq!(build.settings["GOAMD64"], "v3");
        assert_eq!(build.settings["-buildmode"], "pie");
        assert_eq!(Build::parse(&info(0, "go1.17", "")), None);
    }

    #[test]
    fn another_version_of_go_teaches_nothing() {
        let build = Build { version: "go1.2.3".to_owned(), settings: BTreeMap::new() };
        let folder = tempfile::tempdir().expect("a folder");
        let why = build.twin(folder.path()).expect_err("no go is that old");
        assert!(why.contains("with go1.2.3 on the path"), "{why}");
    }

    #[test]
    fn damaged_build_information_is_survived() {
        let whole = info(2, "go1.26.8", "build\tGOAMD64=v1\n");
        for cut in 0..whole.len() {
            drop(Build::parse(&whole[..cut]));
            let mut wrong = whole.clone();
            wrong[cut] = 0xff;
            drop(Build::parse(&wrong));
        }
    }

    #[test]
    fn instructions_differ_by_more_than_addresses_or_not() {
        let decode = |bytes: &[u8], at| {
            Decoder::with_ip(64, bytes, at, DecoderOptions::NONE).iter().next().expect("an instruction")
        };
        let loads = |displacement: u8, at| decode(&[0x48, 0x8b, 0x05, displacement, 0, 0, 0], at);
        assert_eq!(same(&loads(0x10, 0x1000), &loads(0x30, 0x2000)), Some(Some((0x1017, 0x2037))));
        let adds = |immediate| decode(&[0x48, 0x83, 0xc0, immediate], 0);
        assert_eq!(same(&adds(1), &adds(1)), Some(None));
        assert_eq!(same(&adds(1), &adds(2)), None);
        let member = |offset| decode(&[0x48, 0x8b, 0x40, offset], 0);
        assert_eq!(same(&member(8), &member(16)), None, "another offset in a structure");
        assert_eq!(same(&adds(1), &member(8)), None);
    }
}
