//! Writes the file format of callgrind, version 1, which callgrind_annotate and KCachegrind read.

use super::CallProfile;
use scruple_core::explain::Cost;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The callees of a function: how often each is called, and the cost of these calls.
type Calls = BTreeMap<usize, (u64, Cost)>;

pub(super) fn text(profile: &CallProfile) -> String {
    let mut own: BTreeMap<usize, Cost> = BTreeMap::new();
    let mut calls: BTreeMap<usize, Calls> = BTreeMap::new();
    for node in &profile.nodes {
        super::add(own.entry(node.frame).or_default(), node.own);
        if let Some(parent) = node.parent {
            let caller = profile.nodes[parent].frame;
            let (count, cost) = calls.entry(caller).or_default().entry(node.frame).or_default();
            *count += node.calls;
            super::add(cost, node.inclusive);
        }
    }
    // A recursive call has no cost here, because its instructions are already in the outer call of the function.
    for (from, to, count) in &profile.recursive {
        let (caller, callee) = (profile.nodes[*from].frame, profile.nodes[*to].frame);
        calls.entry(caller).or_default().entry(callee).or_default().0 += count;
    }
    let mut out = String::from("# callgrind format\nversion: 1\ncreator: scruple\n");
    let _ = writeln!(out, "cmd: {}\npositions: line\nevents: Ir Allocations Bytes", profile.title);
    let _ = writeln!(out, "summary: {}", costs(profile.total()));
    for (frame, cost) in own {
        let named = &profile.frames[frame];
        let _ = write!(out, "\nob={}\nfl=???\nfn={}\n0 {}\n", named.object, named.name, costs(cost));
        for (callee, (count, cost)) in calls.get(&frame).into_iter().flatten() {
            let called = &profile.frames[*callee];
            let _ = write!(
                out,
                "cob={}\ncfi=???\ncfn={}\ncalls={count} 0\n0 {}\n",
                called.object,
                called.name,
                costs(*cost)
            );
        }
    }
    out
}

fn costs(cost: Cost) -> String {
    format!("{} {} {}", cost.instructions, cost.allocations, cost.bytes)
}

#[cfg(test)]
mod tests {
    #[test]
    fn recursive_calls_are_written_and_cost_nothing_again() {
        let mut profile = crate::profile::tests::small();
        profile.recursive.push((2, 1, 7));
        let text = super::text(&profile);
        assert!(text.contains("cfn=main\ncalls=7 0\n0 0 0 0\n"), "{text}");
        let read = scruple_measure::load::cost::callgrind::parse(&text).expect("a profile");
        let main = read.functions.iter().find(|(function, _)| function.name == "main").expect("main").1;
        assert_eq!((main.own, main.inclusive, main.calls, read.total), (100, 1160, 8, 1160));
    }
}
