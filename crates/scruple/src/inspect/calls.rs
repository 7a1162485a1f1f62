//! `scruple inspect calls`: counts exactly what one program does, by function.

use super::args::CallsArgs;
use super::report::calls::{self, CallsReport, NamedPart};
use super::single_launch::{self, ProgramFile, ended, failure};
use crate::fault::{Code, Fault};
use crate::paths::{self, WorkFolder};
use crate::profile::read::{self, Kind, KnownCallers};
use crate::profile::{self, CallProfile};
use crate::progress::Progress;
use crate::render::export::{self, Export};
use crate::render::output;
use scruple_code::{End, Profile, Profiles, Side, SourceCosts, Symbols};
use scruple_core::harmless_text::plain;
use scruple_measure::calltree::{ChosenTool, DEFINITION, Trees, ValgrindTool};
use scruple_measure::command::{Commands, Job};
use scruple_measure::launcher::Ending;
use signal_hook::consts::SIGILL;
use std::path::Path;
use std::slice;
use std::time::Instant;

/// The name of the format in which Scruple stores call trees.
pub const CALLS: &str = "calls";

/// Returns the counter that records the call tree, or an error that says why it is not available. `aim` says what needs
/// it.
pub fn counter(aim: &str) -> Result<ChosenTool, Fault> {
    let counter = any_counter(aim)?;
    match counter.kind {
        ValgrindTool::Calltree => Ok(counter),
        _ => Err(refused(aim, &counter)),
    }
}

/// Says why a counter is not the call tree.
fn refused(aim: &str, counter: &ChosenTool) -> Fault {
    lacking(aim, counter.refused.first().map_or(String::new(), |(_, why)| why.to_string()))
}

fn lacking(aim: &str, why: String) -> Fault {
    Fault::usage(format!(
        "cannot {aim} here: the call tree cannot be taken, because {why}. `scruple doctor` says what else counts; \
         `scruple run --metrics instructions` and `scruple compare` tell how much, though not where"
    ))
}

/// Returns the call tree, or the tool that counts in its place: callgrind (functions, and the calls between them) or
/// cachegrind (functions).
pub fn any_counter(aim: &str) -> Result<ChosenTool, Fault> {
    let counter = ChosenTool::find(&paths::calltree_folder()?);
    counter.map_err(|why| lacking(aim, why.to_string()))
}

/// Returns the meaning of what a tool counts.
pub fn kind_of(counter: &ChosenTool) -> Kind {
    match counter.kind {
        ValgrindTool::Calltree => Kind::counted(read::OWN),
        tool => {
            let callers =
                if tool == ValgrindTool::Callgrind { KnownCallers::Calls } else { KnownCallers::Unknown };
            Kind { callers, has_heap: false, ..Kind::counted(tool.name()) }
        }
    }
}

/// Says that processes outlived the program.
pub fn remark_of_orphans(left_behind: u32) -> Option<String> {
    (left_behind > 0).then(|| {
        format!(
            "{left_behind} of its processes outlived the program and were ended; they are counted until then"
        )
    })
}

/// Says that the tree lacks callers, because there were too many calling contexts.
pub fn remark_of_cut(side: &Side) -> Option<String> {
    (side.cut > 0).then(|| {
        "there are too many calling contexts: those left out count for their function, but not for its callers".to_owned()
    })
}

/// Says which tool counts in place of the call tree, and what it does not count.
pub fn remark_of(counter: &ChosenTool) -> Option<String> {
    in_place_of_call_tree(counter).map(|lacks| format!("the call tree was not used; {lacks}"))
}

fn in_place_of_call_tree(counter: &ChosenTool) -> Option<String> {
    let lacks = match counter.kind {
        ValgrindTool::Calltree => return None,
        ValgrindTool::Callgrind => {
            "callgrind knows no allocations, and of each process only what it does after it last executed a program"
        }
        ValgrindTool::Cachegrind => {
            "cachegrind knows neither callers nor allocations, nor the files of functions and whether their code is the \
             same, and of each process only what it does after it last executed a program"
        }
    };
    Some(lacks.to_owned())
}

/// Runs the command once under the call tree.
pub fn calls(args: &CallsArgs) -> Result<Code, Fault> {
    let formats = [export::names(&calls::FORMATS), export::names(&profile::FORMATS), vec![CALLS]].concat();
    let exports = export::checked(args.export.clone(), &formats)?;
    if let Some(path) = &args.from {
        return imported(args, path, &exports);
    }
    let launcher = single_launch::launcher()?;
    let mut counter = any_counter("count calls")?;
    if counter.kind != ValgrindTool::Calltree && exports.iter().any(|export| export.format == CALLS) {
        return Err(lacking("write .calls", counter.describe()));
    }
    let job = single_launch::job(&args.command, args.time_limit.as_deref())?;
    let file = ProgramFile::of(&job);
    let work = WorkFolder::make()?;
    let progress = Progress::new();
    progress.note("counting: a program runs many times slower meanwhile");
    let mut commands = single_launch::commands(launcher, Vec::new())?;
    let mut trees = Trees::new(&counter, work.path());
    let aim = format!("what ‘{}’ calls", job.name);
    let hint = (!args.ignore_failure).then_some("; -i shows what it did regardless");
    let profiles = loop {
        match tree_of(&mut commands, &job, &mut trees, &aim, hint) {
            Ok((profiles, _)) => break profiles,
            Err(fault) => match trees.failure().and_then(|why| counter.weaker(why)) {
                Some(weaker) => counter = weaker,
                None => return Err(fault),
            },
        }
        trees.count_by(&counter);
    };
    progress.clear();
    file.require_same()?;
    let side = Side::of(&profiles);
    let whole = CallProfile::of(&job.name, &side, &kind_of(&counter));
    for remark in remark_of_orphans(profiles.left_behind).into_iter().chain(remark_of_cut(&side)) {
        progress.say(&remark);
    }
    let counted = CallsReport {
        profile: &whole,
        processes: profiles.count(),
        parts: profiles.named_parts().map(part).collect(),
        heap_seen: profiles.heap().is_some(),
        source: match in_place_of_call_tree(&counter) {
            None => format!("Counted: {DEFINITION}."),
            Some(lacks) => format!("Counted by {}; {lacks}. Counted are {DEFINITION}.", counter.describe()),
        },
        lines: match args.lines {
            true => profiles.source_costs(&mut Symbols::new()),
            false => SourceCosts::default(),
        },
        sort: args.sort,
        most: args.most,
    };
    write(args, &counted, &side, &exports)
}

fn part((label, profile): (&str, &Profile)) -> NamedPart {
    NamedPart { label: plain(label), is_copy: profile.end == End::Dump, instructions: profile.total }
}

/// Shows a profile that was written earlier.
fn imported(args: &CallsArgs, path: &Path, exports: &[Export]) -> Result<Code, Fault> {
    let imported = read::read(path)?;
    if imported.kind.format != read::OWN && exports.iter().any(|export| export.format == CALLS) {
        return Err(Fault::usage(
            ".calls holds what Scruple counted itself: run the program, or explain the profile as it is",
        ));
    }
    let title = imported.title.clone().unwrap_or_else(|| path.display().to_string());
    let whole = CallProfile::of(&title, &imported.side, &imported.kind);
    let kind = &imported.kind;
    let varies = if kind.sampled.is_some() { "; samples vary by chance" } else { "" };
    let name = path.display().to_string();
    let unchecked =
        read::remark_of_checksums(&[(&name, &imported)]).map_or_else(String::new, |why| format!(" {why}."));
    let counted = CallsReport {
        profile: &whole,
        processes: 1,
        parts: Vec::new(),
        heap_seen: kind.has_heap,
        source: format!("Read from ‘{}’, a profile of {}{varies}.{unchecked}", name, kind.format),
        lines: SourceCosts::default(),
        sort: args.sort,
        most: args.most,
    };
    write(args, &counted, &imported.side, exports)
}

fn write(
    args: &CallsArgs,
    counted: &CallsReport<'_>,
    side: &Side,
    exports: &[Export],
) -> Result<Code, Fault> {
    let aside = exports.iter().any(|export| export.path == Path::new("-"));
    let mut unwritten = None;
    for export in exports {
        let bytes = match export::writer(&calls::FORMATS, &export.format) {
            Some(text) => text(counted).into_bytes(),
            None if export.format == CALLS => {
                read::own_format_bytes(&counted.profile.title, counted.heap_seen, side)
            }
            None => export::writer(&profile::FORMATS, &export.format)
                .map_or_else(Vec::new, |bytes| bytes(slice::from_ref(counted.profile), counted.drawn())),
        };
        unwritten = output::write_bytes(&export.path, &bytes).err().or(unwritten);
    }
    let text = if args.json { calls::json(counted) } else { calls::text(counted, output::width()) };
    output::print_beside(aside, &text)?;
    unwritten.map_or(Ok(Code::Fine), Err)
}

/// Runs a program once under the call tree. Returns also when it ended. `aim` says what needs the tree, for the error message if there is none.
/// `hint` is the advice for a program that fails; without it, failures are ignored.
pub fn tree_of(
    commands: &mut Commands,
    job: &Job,
    trees: &mut Trees,
    aim: &str,
    hint: Option<&str>,
) -> Result<(Profiles, Instant), Fault> {
    let began = Instant::now();
    let weighing = ended(job, commands.weigh_with(job, trees))?;
    let taken = trees.take();
    let executed = matches!(&taken, Some(Ok(profiles)) if !profiles.unstarted.is_empty());
    if let Some(hint) = hint {
        let is_lost = matches!(&taken, Some(Ok(profiles)) if !profiles.lost.is_empty());
        let hint = match (executed, is_lost) {
            (true, _) => format!(" ({LOST_BY_EXEC}){hint}"),
            (false, true) => "; its counts are lost".to_owned(),
            (false, false) if weighing.ending == Ending::Signaled(SIGILL) => format!("{hint}; {TOO_NEW}"),
            (false, false) => hint.to_owned(),
        };
        if let Some(fault) = failure(job, &weighing, &hint) {
            return Err(fault);
        }
    }
    let why = match taken {
        None => weighing.not_launched.unwrap_or_else(|| "it was not launched".to_owned()),
        Some(Err(error)) => error.to_string(),
        Some(Ok(_)) if executed => LOST_BY_EXEC.to_owned(),
        Some(Ok(profiles)) if !profiles.lost.is_empty() => {
            "one of its processes was killed, and its counts are lost".to_owned()
        }
        Some(Ok(profiles)) => return Ok((profiles, began + weighing.wall)),
    };
    Err(Fault { code: Code::Unknown, message: format!("cannot tell {aim}: {why}") })
}

/// What to do about a program that ends by SIGILL, as it does at an instruction that Valgrind does not know.
const TOO_NEW: &str = "if Valgrind does not know one of its instructions, compile it for an older processor (without \
     -march=native)";

/// The message about a process that executed another program, for which there are no counts.
const LOST_BY_EXEC: &str = "one of its processes executed a program under which valgrind did not start: some versions of valgrind \
     cannot execute /proc/self/exe, and a process that has changed its user must be allowed to read valgrind and its tool";
