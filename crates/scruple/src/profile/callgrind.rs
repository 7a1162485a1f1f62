//! Writes the file format of callgrind, version 1, which callgrind_annotate and KCachegrind read. With two sides, each
//! side has its own events, and functions of the same name are one.

use super::stacks::counted;
use super::{CallProfile, ProfileFrame};
use scruple_core::explain::{Count, OwnCost};
use scruple_stats::sorting::SortedMap;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

/// The name of a file of which each side has its own version.
const BOTH: &str = "the programs";

/// A function of any side.
struct WrittenFunction<'a> {
    object: &'a str,
    name: &'a str,
    own: Vec<OwnCost>,
    /// The callees by their places: how often each is called, and the cost of these calls on each side.
    calls: SortedMap<usize, (u64, Vec<OwnCost>)>,
}

pub(super) fn text(sides: &[CallProfile]) -> String {
    let sides_of = |(count, word, _): (Count, _, _)| (0..sides.len()).map(move |side| (count, word, side));
    let columns: Vec<(Count, &str, usize)> = counted(sides).into_iter().flat_map(sides_of).collect();
    let events: Vec<String> = columns
        .iter()
        .map(|(count, word, side)| {
            let event = match count {
                Count::Instructions if *word == "instructions" => "Ir".to_owned(),
                Count::Instructions => word.replace(char::is_whitespace, "_"),
                Count::Allocations => "Allocations".to_owned(),
                Count::Bytes => "Bytes".to_owned(),
                Count::AtPeak => "BytesAtPeak".to_owned(),
                Count::AtEnd => "BytesAtEnd".to_owned(),
                Count::Frees => "Frees".to_owned(),
            };
            if sides.len() == 1 { event } else { format!("{event}_{}", ["A", "B"][*side]) }
        })
        .collect();
    let costs = |costs: &[OwnCost]| {
        let numbers: Vec<String> =
            columns.iter().map(|(count, _, side)| costs[*side].of(*count).to_string()).collect();
        numbers.join(" ")
    };
    let titles: Vec<&str> = sides.iter().map(|side| side.title.as_str()).collect();
    let totals: Vec<OwnCost> = sides.iter().map(CallProfile::total).collect();
    let functions = functions(sides);
    let mut out = String::from("# callgrind format\nversion: 1\ncreator: scruple\n");
    let _ = writeln!(out, "cmd: {}\npositions: line\nevents: {}", titles.join("; "), events.join(" "));
    let _ = writeln!(out, "summary: {}", costs(&totals));
    for function in &functions {
        let _ = write!(
            out,
            "\nob={}\nfl=???\nfn={}\n0 {}\n",
            function.object,
            function.name,
            costs(&function.own)
        );
        for (callee, (count, cost)) in &function.calls {
            let called = &functions[*callee];
            let _ = write!(
                out,
                "cob={}\ncfi=???\ncfn={}\ncalls={count} 0\n0 {}\n",
                called.object,
                called.name,
                costs(cost)
            );
        }
    }
    out
}

/// Returns the functions of all sides by file and name. A file that only one side has is taken for the other's version.
fn functions(sides: &[CallProfile]) -> Vec<WrittenFunction<'_>> {
    let files = |side: &'_ CallProfile| -> HashSet<String> {
        side.frames.iter().map(|frame| frame.object.clone()).collect()
    };
    let files: Vec<HashSet<String>> = sides.iter().map(files).collect();
    let none = vec![OwnCost::default(); sides.len()];
    let mut all: Vec<WrittenFunction<'_>> = Vec::new();
    let mut known: HashMap<(&str, &str), usize> = HashMap::new();
    for (which, side) in sides.iter().enumerate() {
        let mut place = |frame: usize| {
            let ProfileFrame { name, object, .. } = &side.frames[frame];
            let is_shared = files.iter().all(|files| files.contains(object));
            let object = if is_shared { object } else { BOTH };
            *known.entry((object, name)).or_insert_with(|| {
                all.push(WrittenFunction { object, name, own: none.clone(), calls: SortedMap::new() });
                all.len() - 1
            })
        };
        let places: Vec<usize> = (0..side.frames.len()).map(&mut place).collect();
        for node in &side.nodes {
            all[places[node.frame]].own[which].add(node.own);
            if let Some(parent) = node.parent {
                let calls = &mut all[places[side.nodes[parent].frame]].calls;
                let (count, cost) = calls.entry(places[node.frame]).or_insert_with(|| (0, none.clone()));
                *count += node.calls;
                cost[which].add(node.inclusive);
            }
        }
        // A recursive call has no cost here, because its instructions are already in the outer call of the function.
        for (from, to, count) in &side.recursive {
            let calls = &mut all[places[side.nodes[*from].frame]].calls;
            calls.entry(places[side.nodes[*to].frame]).or_insert_with(|| (0, none.clone())).0 += count;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::tests::small;

    #[test]
    fn recursive_calls_are_written_and_cost_nothing_again() {
        let mut profile = small();
        profile.recursive.push((2, 1, 7));
        let text = text(&[profile]);
        assert!(text.contains("cfn=main\ncalls=7 0\n0 0 0 0\n"), "{text}");
        let read = scruple_measure::callgrind::parse(&text).expect("a profile");
        let main = read.functions.iter().find(|(function, _)| function.name == "main").expect("main").1;
        assert_eq!((main.own, main.inclusive, main.calls, read.total), (100, 1160, 8, 1160));
    }

    #[test]
    fn functions_of_two_programs_stand_beside_each_other() {
        let mut other = small();
        other.frames.iter_mut().for_each(|frame| frame.object = frame.object.replace("/bin/app", "/bin/new"));
        other.nodes[1].own.instructions = 130;
        let text = text(&[small(), other]);
        assert!(text.contains("events: Ir_A Ir_B Allocations_A Allocations_B Bytes_A Bytes_B\n"), "{text}");
        assert!(text.contains("summary: 1160 1190 2 2 48 48\n"), "{text}");
        assert!(text.contains("\nob=the programs\nfl=???\nfn=main\n0 100 130 0 0 0 0\n"), "{text}");
        assert!(text.contains("\nob=/lib/libc.so\nfl=???\nfn=malloc\n0 60 60 0 0 0 0\n"), "{text}");
    }
}
