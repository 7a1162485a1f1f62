//! Reads the CSV of tasty-bench: a mean for each benchmark, and allocations if the runtime counted them.

use super::figures::{add, add_own, add_summary};
use super::{ImportError, Imported, case, clean, csv_records};
use scruple_core::metric::Quality;
use scruple_core::unit::Unit;
use scruple_stats::sorting::SortedMap;

/// The beginning of the header.
const HEADER: &str = "Name,Mean (ps),";

/// Whether a text begins with the header.
pub(super) fn recognises(text: &str) -> bool {
    text.starts_with(HEADER)
}

/// Reads a file.
pub(super) fn read(text: &str) -> Result<Imported, ImportError> {
    if !recognises(text) {
        return Err(ImportError::at("line 1", format!("it does not begin with ‘{HEADER}’")));
    }
    if !text.ends_with('\n') {
        return Err(ImportError::at("the last line", "the text ends in the middle of a row"));
    }
    let mut imported = Imported::of("tasty-bench");
    let records = csv_records::records(text, ',')?;
    let columns = records.first().map(|(_, header)| header.clone()).unwrap_or_default();
    for (line, record) in records.into_iter().skip(1) {
        let wrong = |what: String| ImportError::at(format!("line {line}"), what);
        if record.len() != columns.len() {
            return Err(wrong(format!("there are {} columns, not {}", record.len(), columns.len())));
        }
        let figure = |column: &str| {
            let Some(position) = columns.iter().position(|known| known == column) else { return Ok(None) };
            let cell = &record[position];
            let number = cell.parse::<u64>();
            number
                .map(|number| Some(number as f64))
                .map_err(|_| wrong(format!("‘{}’ is not a figure of {column}", clean(cell))))
        };
        // The program itself puts all benchmarks into a group of this name.
        let name = record[0].strip_prefix("All.").unwrap_or(&record[0]);
        let mut arm = case(name, &["tasty-bench"], SortedMap::new());
        if let Some(picoseconds) = figure("Mean (ps)")? {
            add_summary(&mut arm, "time.cpu", "tasty-bench, mean", picoseconds / 1e3)?;
        }
        if let Some(bytes) = figure("Allocated")? {
            add(&mut arm, "alloc.bytes", Quality::Near, "tasty-bench", vec![bytes])?;
        }
        if let Some(bytes) = figure("Copied")? {
            add_own(&mut arm, "tasty_bench.copied", Unit::Bytes, "tasty-bench", vec![bytes])?;
        }
        if let Some(bytes) = figure("Peak Memory")? {
            // The runtime tells the largest size since the start of the program, so this is only an upper bound.
            add_summary(&mut arm, "heap.peak", "tasty-bench, largest heap of any benchmark so far", bytes)?;
        }
        imported.arms.push(arm);
    }
    imported.remark(
        "which-clock",
        "the file does not say which clock tasty-bench read: the means are kept as processor time, and are wall time if \
         it had --time-mode wall",
    );
    imported.finished()
}

#[cfg(test)]
mod tests {
    use super::super::{Format, recognise};
    use super::*;

    // Both files were written by tasty-bench 0.3.4, the second with +RTS -T.
    const PLAIN: &str = include_str!("../../../tests/data/import/tasty-bench/plain.csv");
    const COUNTED: &str = include_str!("../../../tests/data/import/tasty-bench/runtime-statistics.csv");

    #[test]
    fn means_are_estimates_of_processor_time() {
        assert_eq!(recognise(PLAIN), Some(Format::TastyBench));
        let imported = read(PLAIN).expect("readable");
        let names: Vec<&str> = imported.arms.iter().map(|arm| arm.name.as_str()).collect();
        let tenth = "Fibonacci numbers.tenth, \"quoted\"";
        assert_eq!(names, ["Fibonacci numbers.fifth", tenth, "Fibonacci numbers.1.5", "list"]);
        let time = imported.arms[1].sample("time.cpu").expect("a time");
        assert_eq!((time.quality, time.readings.as_slice()), (Quality::Estimated, &[1407.443][..]));
        assert_eq!(imported.arms[1].figures.len(), 1);
        assert_eq!(imported.warnings[0].code, "which-clock");
    }

    #[test]
    fn the_runtime_counts_allocations() {
        let imported = read(COUNTED).expect("readable");
        let readings = |key: &str| imported.arms[3].sample(key).map(|sample| sample.readings.clone());
        assert_eq!(readings("alloc.bytes"), Some(vec![71599.0]));
        assert_eq!(readings("tasty_bench.copied"), Some(vec![1123.0]));
        assert_eq!(readings("heap.peak"), Some(vec![2_097_152.0]));
    }

    #[test]
    fn a_file_that_was_cut_is_refused_unless_it_ends_after_a_line() {
        for cut in (0..COUNTED.len()).filter(|cut| !COUNTED[..*cut].ends_with('\n')) {
            assert!(read(&COUNTED[..cut]).is_err(), "{cut}");
        }
        assert!(read("Name,Mean (ps),2*Stdev (ps)\nx,1,2\ny,-1,2\n").is_err());
    }
}
