//! The cost of the calls of a function, by the place from which it calls.

use scruple_code::{Binaries, CallSite, Side};
use scruple_core::explain::{Count, Explanation, is_allocator};
use std::collections::HashMap;

/// The cost and the number of calls of one function by another.
#[derive(Clone, Copy, Debug, Default)]
struct CallSum {
    cost: f64,
    calls: f64,
}

/// The costs of the calls of each function on both sides. If the code of a function changed, a row of its own shows the
/// cost of that, so a call of it counts as much as in the first program.
pub struct CallCosts<'a> {
    sides: [&'a Side; 2],
    count: Count,
    binaries: &'a Binaries,
    by_caller: [HashMap<usize, HashMap<usize, CallSum>>; 2],
}

impl<'a> CallCosts<'a> {
    /// Adds up the calls in the trees of both sides, for the count of an explanation of these.
    pub fn of(explanation: &Explanation, sides: [&'a Side; 2], binaries: &'a Binaries) -> CallCosts<'a> {
        let count = explanation.count;
        let [first, second] = sides.map(|side| mean_costs(side, count));
        let mut fixed = [HashMap::new(), HashMap::new()];
        for row in explanation.rows.iter().filter(|row| row.same_code != Some(true)) {
            let mean = |functions: &[usize], of: &[CallSum]| {
                let sum = functions.iter().map(|one| of[*one]);
                let sum = sum.fold(CallSum::default(), |all, one| all.with(one));
                (sum.calls > 0.0).then(|| sum.cost / sum.calls)
            };
            let cost = mean(&row.functions.0, &first).or_else(|| mean(&row.functions.1, &second));
            if let Some(cost) = cost {
                fixed[0].extend(row.functions.0.iter().map(|one| (*one, cost)));
                fixed[1].extend(row.functions.1.iter().map(|one| (*one, cost)));
            }
        }
        let by_caller = [0, 1].map(|side| by_caller(sides[side], count, &fixed[side]));
        CallCosts { sides, count, binaries, by_caller }
    }

    /// The cost of what a function of a side calls, by the address of the call. Calls whose target is not known have the
    /// mean cost of those that no known call explains.
    pub fn by_address(&self, side: usize, function: usize) -> HashMap<u64, f64> {
        let tree = self.sides[side];
        let none = HashMap::new();
        let callees = self.by_caller[side].get(&function).unwrap_or(&none);
        let sites = self.binaries.call_sites(tree, function);
        let object = tree.functions[function].object.as_ref();
        let is_callee = |site: &CallSite, callee: usize| {
            let known = &tree.functions[callee];
            let is_there = known.object.as_ref() == object && known.offset > 0;
            site.target.is_some_and(|target| is_there && known.offset == target)
                || site.callee.as_ref().is_some_and(|name| *name == tree.tree.functions[callee].name)
        };
        let callee_of: Vec<Option<usize>> =
            sites.iter().map(|site| callees.keys().copied().find(|one| is_callee(site, *one))).collect();
        let is_known = |callee: &usize| callee_of.contains(&Some(*callee));
        let others = callees.iter().filter(|(callee, _)| !is_known(callee)).map(|(_, sum)| *sum);
        let others = others.fold(CallSum::default(), CallSum::with);
        let executions = |counts: &dyn Fn(Option<usize>) -> bool| -> f64 {
            let sites = sites.iter().zip(&callee_of).filter(|(_, callee)| counts(**callee));
            sites.map(|(site, _)| site.count as f64).sum()
        };
        let unknown = executions(&|callee| callee.is_none());
        let other_cost = if unknown > 0.0 { others.cost / unknown } else { 0.0 };
        // Allocations count for the function that requests them.
        let allocates = |callee: Option<usize>| {
            callee.is_some_and(|callee| is_of_heap(&tree.tree.functions[callee].name))
        };
        let requests = executions(&allocates);
        let request_cost = if requests > 0.0 { self.own(side, function) / requests } else { 0.0 };
        let cost = |(site, callee): (&CallSite, &Option<usize>)| {
            let each = match callee.and_then(|callee| callees.get(&callee)) {
                Some(sum) if sum.calls > 0.0 => sum.cost / sum.calls,
                Some(_) => 0.0,
                None => other_cost,
            };
            let request = if allocates(*callee) { request_cost } else { 0.0 };
            (site.address, site.count as f64 * (each + request))
        };
        sites.iter().zip(&callee_of).map(cost).collect()
    }

    /// The functions that a function of a side calls.
    pub fn callees(&self, side: usize, function: usize) -> impl Iterator<Item = usize> {
        self.by_caller[side].get(&function).into_iter().flat_map(|callees| callees.keys().copied())
    }

    /// Whether executed instructions are what is counted.
    pub fn counts_instructions(&self) -> bool {
        self.count == Count::Instructions
    }

    /// The allocations that a function itself requests.
    fn own(&self, side: usize, function: usize) -> f64 {
        if self.counts_instructions() {
            return 0.0;
        }
        let contexts = self.sides[side].tree.contexts.iter().filter(|context| context.function == function);
        contexts.map(|context| context.cost.of(self.count) as f64).sum()
    }
}

impl CallSum {
    fn with(self, more: CallSum) -> CallSum {
        CallSum { cost: self.cost + more.cost, calls: self.calls + more.calls }
    }
}

/// Whether a function is part of the memory allocator's interface.
fn is_of_heap(name: &str) -> bool {
    let words = ["alloc", "memalign", "free", "operator new", "operator delete"];
    is_allocator(name) || words.iter().any(|word| name.contains(word))
}

/// The cost of all calls of each function, including what it calls.
fn mean_costs(side: &Side, count: Count) -> Vec<CallSum> {
    let contexts = &side.tree.contexts;
    let mut cost: Vec<f64> = contexts.iter().map(|context| context.cost.of(count) as f64).collect();
    let mut sums = vec![CallSum::default(); side.tree.functions.len()];
    for (at, context) in contexts.iter().enumerate().rev() {
        let sum = &mut sums[context.function];
        *sum = sum.with(CallSum { cost: cost[at], calls: context.calls as f64 });
        if let Some(above) = context.parent {
            cost[above] += cost[at];
        }
    }
    sums
}

/// The calls of each function by each other one. A call of a function in `fixed` has the cost given there, and not that
/// of the contexts below it.
fn by_caller(
    side: &Side,
    count: Count,
    fixed: &HashMap<usize, f64>,
) -> HashMap<usize, HashMap<usize, CallSum>> {
    let contexts = &side.tree.contexts;
    let mut cost: Vec<f64> = contexts.iter().map(|context| context.cost.of(count) as f64).collect();
    let mut all: HashMap<usize, HashMap<usize, CallSum>> = HashMap::new();
    for (at, context) in contexts.iter().enumerate().rev() {
        let Some(above) = context.parent else { continue };
        let calls = context.calls as f64;
        let cost_of_calls = fixed.get(&context.function).map_or(cost[at], |each| each * calls);
        cost[above] += cost_of_calls;
        let sum = all.entry(contexts[above].function).or_default().entry(context.function).or_default();
        *sum = sum.with(CallSum { cost: cost_of_calls, calls });
    }
    // A recursive call leads back to a context above, which contains the cost.
    for (from, to, calls) in &side.tree.recursive {
        let (caller, callee) = (contexts[*from].function, contexts[*to].function);
        let sum = all.entry(caller).or_default().entry(callee).or_default();
        *sum = sum.with(CallSum { cost: 0.0, calls: *calls as f64 });
    }
    all
}
