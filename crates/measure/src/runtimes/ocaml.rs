//! OCaml 4 and 5, native code and bytecode: reads the summary that `OCAMLRUNPARAM=v=0x400` prints at the program's
//! exit.

use super::adapter::{Adapter, Recognition, Setting};
use super::agent_records::{AgentRecord, HookFile};
use super::elf::{Elf, FileMarks, word_after};
use super::figures::{LIVE, LIVE_AT_MOST, RuntimeFigure};

pub(super) const ADAPTER: Adapter = Adapter {
    word: "ocaml",
    lacks: &[
        ("alloc.objects", "the runtime counts words, not blocks"),
        ("gc.time", "the summary has no times; OCaml 5 programs can be read with olly"),
        ("gc.pause_max", "the summary has no times; OCaml 5 programs can be read with olly"),
        ("heap.live_max", "the summary does not say what is alive; see heap.peak"),
    ],
    marks: FileMarks {
        local: &["caml_startup__code_begin", "caml_startup_code"],
        texts: &["OCAMLRUNPARAM", "caml_startup"],
        ..FileMarks::NONE
    },
    find,
    figures_of,
    counts_from_its_parent: true,
    for_resident_size: &[("OCAMLRUNPARAM", Setting::Ends { separator: ",", text: "s=4k" })],
    ..Adapter::SILENT
};

const WORD: f64 = 8.0;

fn find(elf: &Elf) -> Option<Recognition> {
    let by = if elf.has("caml_startup__code_begin") || elf.has("caml_startup_code") {
        "the symbols of its start"
    } else if elf.holds("OCAMLRUNPARAM") && elf.holds("caml_startup") || elf.section(".caml_names") {
        "the runtime's names in the file"
    } else if elf.holds("OCAMLRUNPARAM") {
        "the variable that its runtime asks for"
    } else {
        return None;
    };
    let asked = match elf.dynamic {
        true => "its summary at exit, through OCAMLRUNPARAM",
        false => "its summary at exit, through OCAMLRUNPARAM, cut out of standard error",
    };
    Recognition::new(word_after(&elf.comment, "OCaml "), by, asked)
}

fn figures_of(record: &AgentRecord, _answers: &[&HookFile]) -> Result<Vec<RuntimeFigure>, String> {
    match summary(&record.text()) {
        Some(mut figures) => {
            let peak = figures.iter().find(|figure| figure.key == "heap.peak").map(|figure| figure.value);
            figures.extend(peak.and_then(|peak| live(record, peak)).into_iter().flatten());
            Ok(figures)
        }
        None if record.refused() => {
            Err("the program's OCAMLRUNPARAM sets ‘v’ itself: leave it out, or add 0x400 to it".to_owned())
        }
        None => Err(format!("{}; an uncaught exception prints no summary", record.silence())),
    }
}

/// The live size at the end of the program, and its upper bound, in bytes. If the heap had been much larger before, its
/// contents may have been alive; otherwise the rest of it was garbage.
fn live(record: &AgentRecord, peak: f64) -> Option<[RuntimeFigure; 2]> {
    let at_end = record.reported().then(|| record.values[0] as f64 * WORD)?;
    const SLACK: f64 = 4e6;
    let at_most = if peak > 1.5 * at_end + SLACK { peak } else { at_end };
    Some([RuntimeFigure::near(LIVE, at_end), RuntimeFigure::near(LIVE_AT_MOST, at_most)])
}

/// The figures of a summary; `None` if the text contains none.
pub(super) fn summary(text: &str) -> Option<Vec<RuntimeFigure>> {
    let value = |name: &str| {
        text.lines()
            .rev()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")?.trim().parse::<f64>().ok())
    };
    let (minor, major) = (value("minor_collections")?, value("major_collections")?);
    let mut figures = vec![
        RuntimeFigure::exact("alloc.bytes", value("allocated_words")? * WORD),
        RuntimeFigure::exact("gc.count", minor + major),
        RuntimeFigure::exact("gc.minor", minor),
        RuntimeFigure::exact("gc.major", major),
        RuntimeFigure::exact("heap.peak", value("top_heap_words")? * WORD),
        RuntimeFigure::exact("ocaml.promoted", value("promoted_words")? * WORD),
    ];
    figures.extend(value("compactions").map(|count| RuntimeFigure::exact("ocaml.compactions", count)));
    Some(figures)
}

/// Whether a line belongs to the summary, which is cut out of standard error.
pub(super) fn is_summary(line: &[u8]) -> bool {
    const NAMES: [&[u8]; 13] = [
        b"allocated_words",
        b"minor_words",
        b"promoted_words",
        b"major_words",
        b"minor_collections",
        b"major_collections",
        b"heap_words",
        b"heap_chunks",
        b"top_heap_words",
        b"compactions",
        b"forced_major_collections",
        b"mean_space_overhead",
        b"live_words",
    ];
    NAMES.iter().any(|name| line.strip_prefix(*name).is_some_and(|rest| rest.starts_with(b": ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use scruple_fuzz::Corpus;

    const SUMMARY: &str = include_str!("../../tests/data/runtimes/ocaml/v0x400.stderr.txt");

    #[test]
    fn words_become_bytes() {
        let figures = summary(SUMMARY).expect("a summary");
        let value = |key: &str| figures.iter().find(|figure| figure.key == key).map(|figure| figure.value);
        assert_eq!(value("alloc.bytes"), Some(240_800_472.0));
        assert_eq!(
            (value("gc.count"), value("gc.minor"), value("gc.major")),
            (Some(407.0), Some(356.0), Some(51.0))
        );
        assert_eq!(value("heap.peak"), Some(12_255_232.0));
        assert_eq!(value("ocaml.promoted"), Some(239_870_648.0));
        assert!(SUMMARY.lines().all(|line| is_summary(line.as_bytes())));
    }

    #[test]
    fn no_summary_is_none() {
        assert!(summary("Fatal error: exception Exit\n").is_none());
        assert!(!is_summary(b"words: 3"));
    }

    #[test]
    fn damaged_summaries_are_survived() {
        Corpus::default().with("v0x400", SUMMARY).is_survived_by_text(|text| drop(summary(text)));
    }
}
