//! What every run needs at its start: an id, a seed, the provenance, and its passes.

use crate::git;
use crate::secrets::without_secrets;
use scruple_core::harmless_text::plain;
use scruple_core::provenance::Provenance;
use scruple_core::run::{Run, RunState, Terms};
use scruple_measure::host;
use scruple_measure::program_origin;
use scruple_stats::Pcg;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Which passes of a run are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passes {
    /// Those for time, and all others.
    All,
    /// The timing pass only.
    TimeOnly,
    /// All but the timing pass.
    CountOnly,
}

impl Passes {
    /// The passes that the options `--time-only` and `--count-only`, which exclude each other, ask for.
    pub fn asked(time_only: bool, count_only: bool) -> Passes {
        match (time_only, count_only) {
            (true, _) => Passes::TimeOnly,
            (false, true) => Passes::CountOnly,
            (false, false) => Passes::All,
        }
    }

    /// Whether time is measured.
    pub fn time(self) -> bool {
        self != Passes::CountOnly
    }

    /// Whether anything besides time is measured.
    pub fn count(self) -> bool {
        self != Passes::TimeOnly
    }
}

/// Creates a run without arms. Its provenance contains the digests of the programs at these paths.
pub fn empty_run(seed: Option<u64>, label: Option<&str>, terms: Terms, programs: &[&Path]) -> Run {
    Run { provenance: provenance(programs), ..run_from_elsewhere(seed, label, terms) }
}

/// Creates a run without arms for what was measured elsewhere, so that nothing is known of its environment.
pub fn run_from_elsewhere(seed: Option<u64>, label: Option<&str>, terms: Terms) -> Run {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let entropy = entropy();
    Run {
        id: identifier(now.as_millis() as u64, entropy),
        label: label.map(str::to_owned),
        started: now.as_millis() as i64,
        state: RunState::Running,
        seed: seed_of_run(seed, entropy),
        argv: without_secrets(command_line()),
        terms,
        ..Run::of(Vec::new())
    }
}

/// Returns the words of Scruple's command line. Bytes of them that are not text are replaced by U+FFFD.
pub fn command_line() -> impl Iterator<Item = String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned())
}

/// Returns the seed of a run: the one that was asked for, or one of six digits that is drawn.
fn seed_of_run(asked: Option<u64>, entropy: u64) -> u64 {
    asked.unwrap_or(entropy % 1_000_000)
}

/// Returns a number that differs between processes and times.
fn entropy() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_nanos() as u64 ^ (u64::from(std::process::id()) << 32)
}

/// Creates a run for readings from a script. It is the same on every machine at every time.
pub fn scripted_run(seed: Option<u64>, label: Option<&str>, terms: Terms) -> Run {
    let seed = seed.unwrap_or(1);
    Run {
        id: format!("scripted-{seed}"),
        label: label.map(str::to_owned),
        state: RunState::Running,
        seed,
        terms,
        provenance: Provenance { machine_class: "scripted".to_owned(), ..Provenance::default() },
        ..Run::of(Vec::new())
    }
}

/// Creates a new id for a run that began at an earlier time. `position` distinguishes runs that began at the same time.
pub fn identifier_of(milliseconds: u64, position: usize) -> String {
    identifier(milliseconds, entropy() ^ position as u64)
}

fn provenance(programs: &[&Path]) -> Provenance {
    let folder = std::env::current_dir().unwrap_or_default();
    let mut provenance = host::provenance(&folder);
    for path in programs {
        let name = path.display().to_string();
        if provenance.programs.contains_key(&name) {
            continue;
        }
        let origin = program_origin::origin_of(path);
        provenance.libraries.extend(origin.libraries);
        provenance.toolchains.extend(origin.toolchain.map(|text| (name.clone(), text)));
        provenance.programs.extend(scruple_code::file_digest(path).map(|digest| (name, digest)));
    }
    if let Some(state) = git::state(&folder) {
        provenance.commit = Some(state.commit);
        provenance.dirty = Some(state.dirty);
    }
    provenance
}

/// Whether a file is no longer the one that had this digest. What was measured of it may then be of two programs.
pub fn has_changed(path: &Path, digest: Option<&str>) -> bool {
    scruple_code::file_digest(path).as_deref() != digest
}

/// Adds a warning if the file of a program is no longer the one with which the run began. `loaded` are other files with
/// code that have changed since.
pub fn warn_of_changed_programs(run: &mut Run, loaded: &[&Path]) {
    let is_changed = |(path, digest): &(&String, &String)| has_changed(Path::new(path), Some(digest));
    let all = run.provenance.programs.iter();
    let programs = all.filter(is_changed).map(|(path, _)| path.clone());
    let changed = programs.chain(loaded.iter().map(|path| path.display().to_string()));
    let changed: Vec<String> = changed.map(|path| format!("‘{}’", plain(&path))).collect();
    if changed.is_empty() {
        return;
    }
    let text = format!(
        "{} changed while it was measured, so figures may be of two programs: measure it again",
        changed.join(", ")
    );
    run.warn("program-changed", text);
}

/// Creates an id that sorts by time: ten characters for milliseconds and four random ones, in Crockford's base 32.
fn identifier(milliseconds: u64, entropy: u64) -> String {
    const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let chance = Pcg::new(entropy).next_u64();
    let digit = |value: u64, place: u32| DIGITS[(value >> (5 * place) & 31) as usize] as char;
    let time = (0..9).rev().map(|place| digit(milliseconds, place));
    time.chain((0..4).map(|place| digit(chance, place))).collect()
}
