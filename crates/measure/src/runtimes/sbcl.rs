//! Steel Bank Common Lisp: a file of ours is loaded before the program's, if the command line permits it.

use super::adapter::{Adapter, Recognition};
use super::agent_records::{AgentRecord, HookFile, field};
use super::elf::{Elf, FileMarks};
use super::figures::RuntimeFigure;
use super::wrappers;
use std::ffi::OsString;
use std::path::Path;

pub(super) const ADAPTER: Adapter = Adapter {
    word: "sbcl",
    lacks: &[
        ("alloc.objects", "the runtime counts bytes, not objects"),
        ("gc.minor", "generations are not distinguished; see gc.count"),
        ("gc.major", "generations are not distinguished; see gc.count"),
        ("gc.pause_max", "the runtime keeps the sum of its pauses only"),
        ("heap.peak", "the runtime keeps no maximum; see memory.peak"),
    ],
    marks: FileMarks { exported: &["lisp_startup_options"], ..FileMarks::NONE },
    find,
    figures_of,
    counts_from_its_parent: true,
    hook: Some(("hook.lisp", include_str!("hooks/hook.lisp"))),
    ..Adapter::SILENT
};

fn find(elf: &Elf) -> Option<Recognition> {
    let asked = "a file loaded first, by the command line; not for saved images";
    let sbcl = elf.exports("lisp_startup_options");
    sbcl.then(|| Recognition::new(None, "the symbols it exports", asked)).flatten()
}

fn figures_of(_record: &AgentRecord, answers: &[&HookFile]) -> Result<Vec<RuntimeFigure>, String> {
    let Some(answer) = answers.first() else {
        return Err("sbcl reported nothing: only `sbcl --script FILE`, `sbcl --load …` and `sbcl --eval …` can be asked, by \
                    themselves or behind env, nice and the like; not a script that names it, not a saved image and \
                    not a child"
            .to_owned());
    };
    let value = |name: &str| field(&answer.text, name);
    let mut figures = Vec::new();
    figures.extend(value("consed").map(|bytes| RuntimeFigure::exact("alloc.bytes", bytes)));
    figures.extend(value("cycles").map(|cycles| RuntimeFigure::exact("gc.count", cycles)));
    figures.extend(value("gc_us").map(|time| RuntimeFigure::noisy("gc.time", time * 1e3)));
    figures.extend(
        value("live").filter(|live| *live > 0.0).map(|live| RuntimeFigure::near("heap.live_max", live)),
    );
    Ok(figures)
}

/// The index of SBCL in the command line of a wrapper; `None` if this is not such a command line.
pub(super) fn index_in_wrapper(argv: &[OsString], folder: &Path) -> Option<usize> {
    wrappers::index_of_wrapped_program(argv, folder, |program| {
        program.path.file_name().is_some_and(|name| name == "sbcl")
            && Elf::read(&program.path).as_deref().and_then(find).is_some()
    })
}

/// The command line with our file loaded first; `None` if that would change what the program does.
///
/// `--script F` abbreviates several options. They are written out, so that ours can be inserted among them.
pub(super) fn with_hook(argv: &[OsString], hook: &Path) -> Option<Vec<OsString>> {
    const RUNTIME: [&str; 3] = ["--noinform", "--disable-ldb", "--lose-on-corruption"];
    let mut words: Vec<OsString> = argv.first().cloned().into_iter().collect();
    let mut rest = argv.iter().skip(1).peekable();
    while let Some(word) = rest.peek().and_then(|word| word.to_str()) {
        match word {
            "--script" => {
                let script: Vec<OsString> = rest.cloned().collect();
                if script.len() < 2 {
                    return None;
                }
                words.extend(RUNTIME.map(OsString::from));
                words.extend(
                    ["--no-sysinit", "--no-userinit", "--disable-debugger", "--load"].map(OsString::from),
                );
                words.push(hook.into());
                words.extend(script);
                return Some(words);
            }
            "--dynamic-space-size" | "--control-stack-size" | "--core" | "--tls-limit" => {
                words.extend(rest.by_ref().take(2).cloned());
            }
            word if RUNTIME.contains(&word)
                || word == "--merge-core-pages"
                || word == "--no-merge-core-pages" =>
            {
                words.extend(rest.next().cloned());
            }
            word if word.starts_with("--") && word != "--version" && word != "--help" => break,
            _ => return None,
        }
    }
    rest.peek()?;
    words.push("--load".into());
    words.push(hook.into());
    words.extend(rest.cloned());
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hooked(words: &[&str]) -> Option<String> {
        let argv: Vec<OsString> = words.iter().map(OsString::from).collect();
        let words = with_hook(&argv, Path::new("/h"))?;
        Some(words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn a_script_keeps_its_meaning() {
        let expected = "sbcl --noinform --disable-ldb --lose-on-corruption --no-sysinit --no-userinit \
                        --disable-debugger --load /h --script f.lisp --x";
        assert_eq!(hooked(&["sbcl", "--script", "f.lisp", "--x"]).as_deref(), Some(expected));
    }

    #[test]
    fn other_command_lines_load_our_file_first() {
        assert_eq!(
            hooked(&["sbcl", "--noinform", "--load", "a", "--quit"]).as_deref(),
            Some("sbcl --noinform --load /h --load a --quit")
        );
        assert_eq!(hooked(&["sbcl", "--version"]), None);
        assert_eq!(hooked(&["sbcl"]), None);
    }
}
