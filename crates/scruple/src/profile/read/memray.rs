//! Reads the output of `memray transform csv`: allocations at the peak (or leaks, or temporary ones) by stack, with the
//! innermost function first.

use super::{ImportedProfile, Kind, TreeBuilder};
use scruple_core::explain::OwnCost;

/// The first characters of the table.
pub(super) const HEAD: &str = "allocator,num_allocations,size,";

pub(super) fn parse(text: &str) -> Result<ImportedProfile, String> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let headers = reader.headers().map_err(|error| error.to_string())?.clone();
    let column = |name: &str| {
        let place = headers.iter().position(|header| header == name);
        place.ok_or_else(|| format!("it has no column ‘{name}’"))
    };
    let (count, size, stack) = (column("num_allocations")?, column("size")?, column("stack_trace")?);
    let mut builder = TreeBuilder::new();
    let mut rows = 0;
    for (number, record) in reader.records().enumerate() {
        let wrong = |why: String| format!("row {}: {why}", number + 1);
        let record = record.map_err(|error| wrong(error.to_string()))?;
        let amount = |place: usize| {
            let text = record.get(place).unwrap_or_default();
            text.parse::<u64>().map_err(|_| wrong(format!("‘{}’ is not a whole number", text.escape_debug())))
        };
        let cost = OwnCost { allocations: amount(count)?, bytes: amount(size)?, ..OwnCost::default() };
        let frames = record.get(stack).unwrap_or_default().split('|').filter(|frame| !frame.is_empty());
        let mut functions: Vec<usize> = frames
            .map(|frame| {
                let mut parts = frame.rsplitn(3, ';');
                let (_line, file, name) = (parts.next(), parts.next(), parts.next());
                builder.function(name.unwrap_or(frame), file.unwrap_or_default(), false)
            })
            .collect();
        functions.reverse();
        builder.stack(&functions, cost).map_err(wrong)?;
        rows += 1;
    }
    match rows {
        0 => Err("it has no allocations".to_owned()),
        _ => Ok(ImportedProfile {
            title: None,
            kind: Kind::heap("memray"),
            side: builder.done(),
            has_checksum: false,
        }),
    }
}
