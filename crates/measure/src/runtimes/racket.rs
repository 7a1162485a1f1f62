//! Racket CS: reads the log of its collections (`PLTSTDERR=… debug@GC`), whose last line is a summary.

use super::adapter::{Adapter, Recognition};
use super::agent_records::{AgentRecord, HookFile};
use super::elf::{Elf, FileMarks};
use super::figures::RuntimeFigure;

pub(super) const ADAPTER: Adapter = Adapter {
    word: "racket",
    lacks: &[("alloc.objects", "the runtime counts bytes, not objects")],
    marks: FileMarks { texts: &["PLTSTDERR"], ..FileMarks::NONE },
    find,
    figures_of,
    counts_from_its_parent: true,
    ..Adapter::SILENT
};

fn find(elf: &Elf) -> Option<Recognition> {
    let racket = elf.section(".rackboot") || elf.section(".rackprog") || elf.holds("PLTSTDERR");
    racket
        .then(|| Recognition::new(None, "its boot sections", "the log of its collections, through PLTSTDERR"))
        .flatten()
}

fn figures_of(record: &AgentRecord, _answers: &[&HookFile]) -> Result<Vec<RuntimeFigure>, String> {
    match log(&record.text()) {
        Some(figures) => Ok(figures),
        None if record.refused() => {
            Err("the program's PLTSTDERR logs collections itself: run it without".to_owned())
        }
        None => Err(record.silence()),
    }
}

/// The figures of a log. It has a line `GC: 0:min0 @ 49,476K(+6,943K); free 6,695K(-8,783K) 2ms @ 68` for each
/// collection, and ends with `GC: 0:atexit peak 61,124K(+16,175K); alloc 175,894K; major 0; minor 21; 28ms`.
fn log(text: &str) -> Option<Vec<RuntimeFigure>> {
    let last = text.lines().rev().find(|line| line.starts_with("GC: ") && line.contains(":atexit "))?;
    let after = |word: &str| {
        let rest = &last[last.find(word)? + word.len()..];
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != ',').unwrap_or(rest.len());
        rest[..end].replace(',', "").parse::<f64>().ok()
    };
    let (major, minor) = (after("major ")?, after("minor ")?);
    let time = last.rsplit("; ").next()?.trim_end_matches("ms").parse::<f64>().ok()?;
    let mut longest = 0.0_f64;
    let mut live = 0.0_f64;
    for line in text.lines().filter(|line| !line.contains(":atexit ")) {
        // The pause stands before the last `@`, the size before the collection after the first.
        let Some((before, _)) = line.rsplit_once(" @ ") else { continue };
        let pause = before.rsplit(' ').next().and_then(|word| word.trim_end_matches("ms").parse().ok());
        longest = longest.max(pause.unwrap_or(0.0));
        let number =
            |text: &str| text.split('K').next().and_then(|word| word.replace(',', "").parse::<f64>().ok());
        let held = line.split(" @ ").nth(1).and_then(number);
        let freed = line.split("free ").nth(1).and_then(number);
        if let (Some(held), Some(freed)) = (held, freed) {
            live = live.max(held - freed);
        }
    }
    const KIB: f64 = 1024.0;
    Some(vec![
        RuntimeFigure::near("alloc.bytes", after("alloc ")? * KIB),
        RuntimeFigure::exact("gc.count", major + minor),
        RuntimeFigure::exact("gc.minor", minor),
        RuntimeFigure::exact("gc.major", major),
        RuntimeFigure::noisy("gc.time", time * 1e6),
        RuntimeFigure::noisy("gc.pause_max", longest * 1e6),
        RuntimeFigure::near("heap.peak", after("peak ")? * KIB),
        RuntimeFigure::estimated("heap.live_max", live * KIB),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use scruple_fuzz::Corpus;

    #[test]
    fn the_last_line_and_the_pauses_are_read() {
        let figures =
            log(include_str!("../../tests/data/runtimes/racket/debug-GC.stderr.txt")).expect("a log");
        let value = |key: &str| figures.iter().find(|figure| figure.key == key).map(|figure| figure.value);
        assert_eq!(value("alloc.bytes"), Some(180_115_456.0));
        assert_eq!(
            (value("gc.minor"), value("gc.major"), value("gc.time")),
            (Some(21.0), Some(0.0), Some(28e6))
        );
        assert_eq!((value("gc.pause_max"), value("heap.peak")), (Some(7e6), Some(62_590_976.0)));
        assert_eq!(value("heap.live_max"), Some(52_931.0 * 1024.0));
    }

    #[test]
    fn a_log_without_its_end_is_none() {
        assert!(log("GC: 0:min0 @ 49,476K(+6,943K); free 6,695K(-8,783K) 2ms @ 68\n").is_none());
    }

    #[test]
    fn damaged_logs_are_survived() {
        let corpus = Corpus::folder(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/runtimes/racket"));
        corpus.is_survived_by_text(|text| drop(log(text)));
    }
}
