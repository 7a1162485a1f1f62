//! Finds the callers of functions for which only the number of calls is known. For every place where the text calls a
//! name, it is known how often the place was executed. If these numbers add up to the calls of the only function with
//! that name, these places are its callers. If only one place passes a function to a built-in method, and nothing else
//! mentions the function, its remaining calls come from there.

use scruple_stats::sorting::SortedMap;
use std::collections::BTreeSet;

/// A function of a process, with what its text calls.
pub(super) struct Called {
    /// The number of calls; above zero.
    pub calls: u64,
    /// The cost of the function itself.
    pub cost: u64,
    /// The name by which it can be called; empty if there is none.
    pub name: String,
    /// What it calls.
    pub callees: Callees,
}

/// What the text of a function calls.
#[derive(Clone, Default)]
pub(super) struct Callees {
    /// How often the function executed calls, by the called name.
    pub named: SortedMap<String, u64>,
    /// The functions that it contains and passes to methods which call them before they return: their names, with the
    /// methods' names.
    pub passed: BTreeSet<(String, String)>,
    /// The same for functions that have a name, which others may use, too.
    pub passed_by_name: BTreeSet<(String, String)>,
    /// The names that it uses otherwise. Functions with these names may be called from anywhere.
    pub mentioned: BTreeSet<String>,
}

/// A function below one of its callers.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CallNode {
    /// The index of the function.
    pub function: usize,
    /// The index of the caller's place, which precedes this one; `None` if the callers are not known.
    pub parent: Option<usize>,
    /// The number of calls from there.
    pub calls: u64,
    /// The number of calls of the function by itself.
    pub recursive: u64,
    /// The part of the cost. If there are several places, it is divided by the calls.
    pub cost: u64,
}

/// The largest number of places of a function. If it had more, its callers are not reported.
const MOST: usize = 100;

/// Returns the places of all functions, callers first. `callers` are those that [`callers`] found.
pub(super) fn places(functions: &[Called], callers: &[Vec<(usize, u64)>]) -> Vec<CallNode> {
    let mut known: Vec<bool> = callers.iter().map(|callers| !callers.is_empty()).collect();
    let mut places: Vec<CallNode> = Vec::new();
    let mut of: Vec<Option<Vec<usize>>> = vec![None; functions.len()];
    let mut left: Vec<usize> = (0..functions.len()).collect();
    while !left.is_empty() {
        let is_ready = |function: &usize| {
            let others = callers[*function].iter().filter(|(caller, _)| caller != function);
            !known[*function] || others.clone().all(|(caller, _)| of[*caller].is_some())
        };
        let (ready, waiting): (Vec<usize>, Vec<usize>) = left.iter().partition(|function| is_ready(function));
        left = waiting;
        if ready.is_empty() {
            // Functions that call each other: where the cycle begins is not known.
            known[on_cycle(left[0], callers, &of)] = false;
        }
        for function in ready {
            let callers: &[(usize, u64)] = if known[function] { &callers[function] } else { &[] };
            let first = places.len();
            place(function, &functions[function], callers, &of, &mut places);
            of[function] = Some((first..places.len()).collect());
        }
    }
    places
}

/// Returns a function that calls itself through others. Every function without a place is called by another one without
/// a place, so following callers leads to such a function.
fn on_cycle(function: usize, callers: &[Vec<(usize, u64)>], of: &[Option<Vec<usize>>]) -> usize {
    let mut seen = BTreeSet::new();
    let mut at = function;
    while seen.insert(at) {
        let mut others = callers[at].iter().map(|(caller, _)| *caller);
        at = others.find(|caller| *caller != at && of[*caller].is_none()).unwrap_or(at);
    }
    at
}

/// Adds the places of a function whose callers have theirs.
fn place(
    function: usize,
    one: &Called,
    callers: &[(usize, u64)],
    of: &[Option<Vec<usize>>],
    places: &mut Vec<CallNode>,
) {
    let recursive: u64 =
        callers.iter().filter(|(caller, _)| *caller == function).map(|(_, calls)| calls).sum();
    let mut above: Vec<(usize, u64)> = Vec::new();
    for (caller, calls) in callers.iter().filter(|(caller, _)| *caller != function) {
        let of_caller = of[*caller].as_deref().unwrap_or_default();
        let weights: Vec<u64> = of_caller.iter().map(|place| places[*place].calls).collect();
        above.extend(of_caller.iter().copied().zip(divided(*calls, &weights)));
    }
    above.retain(|(_, calls)| *calls > 0);
    if above.is_empty() || above.len() > MOST {
        places.push(CallNode { function, parent: None, calls: one.calls, recursive: 0, cost: one.cost });
        return;
    }
    let weights: Vec<u64> = above.iter().map(|(_, calls)| *calls).collect();
    let costs = divided(one.cost, &weights);
    let repeats = divided(recursive, &weights);
    for (((parent, calls), cost), recursive) in above.into_iter().zip(costs).zip(repeats) {
        places.push(CallNode { function, parent: Some(parent), calls, recursive, cost });
    }
}

/// Divides a number in proportion to weights, so that the parts add up to it.
fn divided(number: u64, weights: &[u64]) -> Vec<u64> {
    let whole: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    let mut before = 0;
    let mut sum = 0;
    let part = |weight: &u64| {
        sum += u128::from(*weight);
        let up_to = (u128::from(number) * sum).checked_div(whole).unwrap_or_default() as u64;
        let part = up_to - before;
        before = up_to;
        part
    };
    weights.iter().map(part).collect()
}

/// Returns the callers of each function, with the numbers of calls; none if the texts do not show all of its calls.
pub(super) fn callers(functions: &[Called]) -> Vec<Vec<(usize, u64)>> {
    let mut named: SortedMap<&str, Option<usize>> = SortedMap::new();
    for (index, one) in functions.iter().enumerate().filter(|(_, one)| !one.name.is_empty()) {
        named.entry(&one.name).and_modify(|known| *known = None).or_insert(Some(index));
    }
    let mut callers: Vec<Vec<(usize, u64)>> = functions.iter().map(|_| Vec::new()).collect();
    for (caller, one) in functions.iter().enumerate() {
        for (name, calls) in one.callees.named.iter().filter(|(_, calls)| **calls > 0) {
            if let Some(Some(callee)) = named.get(name.as_str()) {
                callers[*callee].push((caller, *calls));
            }
        }
    }
    for (callee, caller) in handers(functions, &named) {
        let sum: u64 = callers[callee].iter().map(|(_, calls)| *calls).fold(0, u64::saturating_add);
        if let Some(calls) = functions[callee].calls.checked_sub(sum).filter(|calls| *calls > 0) {
            match callers[callee].iter_mut().find(|(known, _)| *known == caller) {
                Some((_, known)) => *known += calls,
                None => callers[callee].push((caller, calls)),
            }
        }
    }
    for (callers, one) in callers.iter_mut().zip(functions) {
        let sum: u128 = callers.iter().map(|(_, calls)| u128::from(*calls)).sum();
        if sum != u128::from(one.calls) {
            callers.clear();
        }
    }
    callers
}

/// Returns the functions that only one function passes to built-in methods and that are otherwise only called, each
/// with the function that passes it.
fn handers(functions: &[Called], named: &SortedMap<&str, Option<usize>>) -> SortedMap<usize, usize> {
    let mut found: SortedMap<usize, Option<usize>> = SortedMap::new();
    for (at, one) in functions.iter().enumerate() {
        for (name, method) in one.callees.passed.iter().chain(&one.callees.passed_by_name) {
            if let Some(Some(callee)) = named.get(name.as_str()) {
                // A method of the program may keep a function that is passed to it, and call it later.
                let hander = (!named.contains_key(method.as_str())).then_some(at);
                found
                    .entry(*callee)
                    .and_modify(|known| *known = known.filter(|_| *known == hander))
                    .or_insert(hander);
            }
        }
    }
    for name in functions.iter().flat_map(|one| &one.callees.mentioned) {
        if let Some(Some(callee)) = named.get(name.as_str()) {
            found.remove(callee);
        }
    }
    found.into_iter().filter_map(|(callee, hander)| Some((callee, hander?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(name: &str, calls: u64, cost: u64, sites: &[(&str, u64)]) -> Called {
        let named = sites.iter().map(|(name, calls)| ((*name).to_owned(), *calls)).collect();
        let callees = Callees { named, ..Callees::default() };
        Called { calls, cost, name: name.to_owned(), callees }
    }

    fn shown(functions: &[Called]) -> Vec<(usize, Option<usize>, u64, u64, u64)> {
        let places = places(functions, &callers(functions));
        places.iter().map(|one| (one.function, one.parent, one.calls, one.recursive, one.cost)).collect()
    }

    #[test]
    fn calls_that_the_text_accounts_for_have_callers() {
        let all = [
            called("", 1, 5, &[("a", 2), ("b", 1)]),
            called("a", 2, 20, &[("b", 2)]),
            called("b", 3, 10, &[]),
        ];
        let b = [(2, Some(0), 1, 0, 3), (2, Some(1), 2, 0, 7)];
        assert_eq!(shown(&all), [&[(0, None, 1, 0, 5), (1, Some(0), 2, 0, 20)][..], &b].concat());
    }

    #[test]
    fn calls_by_a_built_in_method_are_of_the_only_one_that_hands_it_the_function() {
        let hands = |one: Called, method: &str| {
            let passed_by_name = BTreeSet::from([("b".to_owned(), method.to_owned())]);
            Called { callees: Callees { passed_by_name, ..one.callees.clone() }, ..one }
        };
        let top = || called("", 1, 5, &[("a", 2), ("b", 1)]);
        let (a, b) = (|| hands(called("a", 2, 20, &[]), "map"), || called("b", 7, 70, &[]));
        let of_b = |all: &[Called]| -> Vec<(Option<usize>, u64)> {
            shown(all).iter().filter(|one| one.0 == 2).map(|one| (one.1, one.2)).collect()
        };
        assert_eq!(of_b(&[top(), a(), b()]), [(Some(0), 1), (Some(1), 6)]);
        // `map` is a function of the program; two functions pass it; something else uses it.
        assert_eq!(of_b(&[top(), a(), b(), called("map", 1, 1, &[])]), [(None, 7)]);
        assert_eq!(of_b(&[hands(top(), "sort"), a(), b()]), [(None, 7)]);
        let mut other = top();
        other.callees.mentioned.insert("b".to_owned());
        assert_eq!(of_b(&[other, a(), b()]), [(None, 7)]);
        // It calls itself through a method.
        assert_eq!(shown(&[called("", 1, 5, &[("b", 1)]), hands(b(), "forEach")])[1], (1, Some(0), 1, 6, 70));
    }

    #[test]
    fn other_calls_have_no_callers() {
        // `b` is also called from elsewhere, and there are two functions `c`.
        let all = [
            called("", 1, 5, &[("b", 1), ("c", 2)]),
            called("b", 3, 9, &[]),
            called("c", 1, 1, &[]),
            called("c", 1, 1, &[]),
        ];
        assert!(places(&all, &callers(&all)).iter().all(|one| one.parent.is_none()));
    }

    #[test]
    fn functions_that_call_themselves_or_each_other_end() {
        let all = [called("", 1, 5, &[("f", 1)]), called("f", 8, 80, &[("f", 7)])];
        assert_eq!(shown(&all), [(0, None, 1, 0, 5), (1, Some(0), 1, 7, 80)]);
        let all =
            [called("", 1, 5, &[("f", 1)]), called("f", 4, 40, &[("g", 3)]), called("g", 3, 30, &[("f", 3)])];
        assert_eq!(shown(&all), [(0, None, 1, 0, 5), (1, None, 4, 0, 40), (2, Some(1), 3, 0, 30)]);
        // What they call has its callers, although it stands before them.
        let mut leaf = vec![called("", 1, 5, &[("f", 1)]), called("leaf", 3, 9, &[])];
        leaf.extend([called("f", 4, 40, &[("g", 3)]), called("g", 3, 30, &[("f", 3), ("leaf", 3)])]);
        let shown = shown(&leaf);
        assert!(shown[1] == (3, None, 3, 0, 30) && shown.contains(&(1, Some(1), 3, 0, 9)), "{shown:?}");
    }

    #[test]
    fn many_paths_to_a_function_end_in_one_place() {
        // Each function calls the next one from two others, so that the number of paths doubles 20 times.
        let mut all = vec![called("", 1, 1, &[("a0", 1), ("b0", 1)])];
        for level in 0..20 {
            let next = [(format!("a{}", level + 1), 1), (format!("b{}", level + 1), 1)];
            let next: Vec<(&str, u64)> =
                next.iter().map(|(name, calls)| (name.as_str(), *calls << level)).collect();
            all.extend(["a", "b"].map(|side| called(&format!("{side}{level}"), 1 << level, 10, &next)));
        }
        let places = places(&all, &callers(&all));
        assert!(places.len() < 41 * MOST, "{}", places.len());
        assert_eq!(places.iter().map(|one| one.cost).sum::<u64>(), 401);
    }
}
