//! Explains the difference between profiles that were written earlier.

use super::findings::Findings;
use super::gathered_launches::GatheredLaunches;
use crate::fault::Fault;
use crate::profile::read::{self, ImportedProfile, Kind};
use scruple_code::{as_built, name_stripped};
use scruple_core::explain::Count;
use std::path::Path;

/// Reads both profiles, and explains where their difference comes from.
pub fn explained(paths: [&str; 2], count: Count) -> Result<(Findings, GatheredLaunches), Fault> {
    let [first, second] = std::thread::scope(|scope| {
        let beside = scope.spawn(|| read::read(Path::new(paths[1])));
        let first = read::read(Path::new(paths[0]))?;
        let second = beside.join().unwrap_or_else(|_| Err(Fault::internal("a profile was lost")));
        Ok::<_, Fault>([first, second?])
    })?;
    let kind = common(paths, &first, &second)?;
    let has_count = match count {
        Count::Instructions => true,
        Count::Allocations | Count::Bytes => kind.has_heap,
        Count::AtPeak | Count::AtEnd | Count::Frees => false,
    };
    if !has_count {
        return Err(Fault::usage(format!(
            "cannot explain {} of ‘{}’ and ‘{}’: such profiles ({}) do not hold it; name two commands",
            count.word(),
            paths[0],
            paths[1],
            kind.format
        )));
    }
    let remarks = read::remark_of_checksums(&[(paths[0], &first), (paths[1], &second)]);
    let mut sides = [vec![first.side], vec![second.side]];
    name_stripped(&mut sides);
    let gathered = GatheredLaunches {
        sides,
        variation_of_totals: None,
        times: [Vec::new(), Vec::new()],
        remarks: remarks.into_iter().collect(),
        counted_by: None,
        kind,
        count,
        script: None,
    };
    let name = |title: Option<String>, path: &str| match title {
        Some(title) => format!("{path} ({title})"),
        None => path.to_owned(),
    };
    let names = [name(first.title, paths[0]), name(second.title, paths[1])];
    Ok((Findings::of(names, &gathered, [&as_built, &as_built]), gathered))
}

/// Returns the properties that both profiles have in common, or an error if they count different things.
pub fn common(names: [&str; 2], first: &ImportedProfile, second: &ImportedProfile) -> Result<Kind, Fault> {
    let (one, other) = (&first.kind, &second.kind);
    let word = |kind: &Kind| kind.word.clone().unwrap_or_else(|| "allocations".to_owned());
    if one.word != other.word || one.sampled.is_some() != other.sampled.is_some() {
        return Err(Fault::usage(format!(
            "cannot compare ‘{}’ with ‘{}’: the first has {} and the other {}; record both in the same way",
            names[0],
            names[1],
            word(one),
            word(other)
        )));
    }
    if one.callers != other.callers {
        return Err(Fault::usage(format!(
            "cannot compare ‘{}’ with ‘{}’: they contain different information about callers (contexts, calls between functions, or none); record both in the same way",
            names[0], names[1]
        )));
    }
    let sampled = one.sampled.zip(other.sampled).map(|(one, other)| one.of_both(other));
    Ok(Kind { has_heap: one.has_heap && other.has_heap, sampled, ..one.clone() })
}
