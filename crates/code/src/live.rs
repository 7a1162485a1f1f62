//! Live blocks of a process by calling context, as the tool counts them, and the allocation sites that they give.

use super::machine_code::demangle::demangle;
use super::machine_code::symbols::Symbols;
use super::merged_profiles::Side;
use super::profile::{End, LiveBlocks, Profile, ProfileContext, ProfileFunction, Profiles};
use crate::allocation_sites::{
    CourseUnit, HeapAmounts, HeapCourse, HeapSites, MemoryBlocks, SiteCounting, SiteFrame, SiteIndex,
};
use scruple_core::explain::{self, is_allocator, restore_names_of_packages};
use std::collections::HashMap;

impl Profiles {
    /// The allocation sites of each process that allocated or freed anything; empty if they were not counted.
    pub fn heap_sites(&self, symbols: &mut Symbols) -> Vec<HeapSites> {
        let counted = self.processes.iter().filter_map(|profile| Some((profile, profile.live.as_ref()?)));
        // A forked process that does nothing but execute another program has nothing of its own.
        let counted = counted.filter(|(profile, live)| {
            profile.heap_functions > 0
                && (profile.end != End::Exec || profile.heap().allocations > 0 || live.end != live.inherited)
        });
        counted.map(|(profile, live)| SiteBuilder::of(profile, live, symbols).sites()).collect()
    }
}

impl Side {
    /// Adds what was live at the peak and at the end of each process to the contexts that called the allocator, from
    /// another launch of the same program in which live blocks were counted. Contexts that this launch did not have are
    /// added.
    pub fn add_live(&mut self, profiles: &Profiles) {
        let functions: HashMap<ProfileFunction, usize> =
            self.functions.iter().cloned().enumerate().map(|(at, function)| (function, at)).collect();
        let child =
            |(at, context): (usize, &explain::Context)| Some(((context.parent?, context.function), at));
        let mut below = ContextFinder {
            functions,
            children: self.tree.contexts.iter().enumerate().filter_map(child).collect(),
        };
        let mut processes = std::mem::take(&mut self.processes);
        for profile in &profiles.processes {
            let Some(live) = profile.live.as_ref().filter(|live| !live.contexts.is_empty()) else { continue };
            let known = processes.iter().position(|(words, _)| *words == profile.words);
            // The root stands for a process that only this launch has.
            let process = known.map_or(0, |known| processes.remove(known).1);
            let mut place: Vec<usize> = Vec::with_capacity(profile.contexts.len());
            for (at, context) in profile.contexts.iter().enumerate() {
                let here = match context.parent {
                    None => process,
                    Some(parent) => {
                        let function = context.function.map(|function| &profile.functions[function]);
                        below.find(self, process, place[parent], function)
                    }
                };
                place.push(here);
                if let Some((peak, end)) = live.contexts.get(&at) {
                    let site = self.site(here);
                    let cost = &mut self.tree.contexts[site].cost;
                    cost.at_peak = cost.at_peak.saturating_add(peak.bytes);
                    cost.at_end = cost.at_end.saturating_add(end.bytes);
                }
            }
        }
        self.processes = processes;
        restore_names_of_packages(&mut self.tree.functions);
    }

    /// The context that called the allocator of this context, without functions that only passed the request on.
    fn site(&self, context: usize) -> usize {
        let above = |context: usize| self.tree.contexts[context].parent.filter(|above| *above > 0);
        let name = |context: usize| &self.tree.functions[self.tree.contexts[context].function].shown;
        let mut site = above(context).unwrap_or(context);
        while is_allocator(name(site))
            && let Some(caller) = above(site)
        {
            site = caller;
        }
        site
    }
}

/// Finds the contexts of a side by the functions on their paths.
struct ContextFinder {
    functions: HashMap<ProfileFunction, usize>,
    children: HashMap<(usize, usize), usize>,
}

impl ContextFinder {
    /// Returns the context of a function that the context `parent` calls. A function that is on the path already has
    /// its context there, because the tool counts recursion in this way. `None` stands for an interruption by a signal.
    fn find(
        &mut self,
        side: &mut Side,
        process: usize,
        parent: usize,
        function: Option<&ProfileFunction>,
    ) -> usize {
        let function = match function {
            None => side.signal(),
            Some(function) => match self.functions.get(function) {
                Some(known) => *known,
                None => {
                    let added = side.add_function(function.clone(), side.named_like(function));
                    self.functions.insert(function.clone(), added);
                    added
                }
            },
        };
        let mut above = parent;
        while above != process && above != 0 {
            if side.tree.contexts[above].function == function {
                return above;
            }
            above = side.tree.contexts[above].parent.unwrap_or(0);
        }
        *self.children.entry((parent, function)).or_insert_with(|| {
            let (parent, calls) = (Some(parent), 1);
            side.tree.contexts.push(explain::Context { parent, function, calls, ..Default::default() });
            side.tree.contexts.len() - 1
        })
    }
}

/// Converts contexts of functions to contexts of frames.
struct SiteBuilder<'a> {
    profile: &'a Profile,
    live: &'a LiveBlocks,
    symbols: &'a mut Symbols,
    located: HashMap<(Option<String>, u64), Vec<SiteFrame>>,
    sites: HeapSites,
    index: SiteIndex,
    /// For each context of the profile, the context of the frame that called it.
    callers: HashMap<usize, Option<usize>>,
}

impl<'a> SiteBuilder<'a> {
    fn of(profile: &'a Profile, live: &'a LiveBlocks, symbols: &'a mut Symbols) -> SiteBuilder<'a> {
        let sites = HeapSites {
            process: profile.process,
            words: profile.words.clone(),
            total: HeapAmounts {
                allocated: MemoryBlocks { blocks: profile.heap().allocations, bytes: profile.heap().bytes },
                at_peak: live.peak,
                at_end: live.end,
            },
            inherited: live.inherited,
            course: HeapCourse { unit: CourseUnit::Instructions, points: live.course.clone() },
            counting: SiteCounting::Exact,
            ..HeapSites::default()
        };
        let (index, callers, located) = (SiteIndex::default(), HashMap::new(), HashMap::new());
        SiteBuilder { profile, live, symbols, located, sites, index, callers }
    }

    fn sites(mut self) -> HeapSites {
        for (at, context) in self.profile.contexts.iter().enumerate() {
            let live = self.live.contexts.get(&at);
            if live.is_none() && context.heap.allocations == 0 {
                continue;
            }
            let (at_peak, at_end) = live.copied().unwrap_or_default();
            let allocated = MemoryBlocks { blocks: context.heap.allocations, bytes: context.heap.bytes };
            let site = self.site(at);
            self.sites.contexts[site].own += HeapAmounts { allocated, at_peak, at_end };
        }
        if self.live.reused > 0 {
            self.sites.unseen.push(format!(
                "the frees of {} blocks: the function that freed them is not known as an allocator’s; they \
                    count as live until their memory was allocated again",
                self.live.reused
            ));
        }
        if self.live.unseen > 0 {
            self.sites.unseen.push(format!(
                "the blocks of {} calls of an allocator that were not seen to return",
                self.live.unseen
            ));
        }
        if self.profile.cut > 0 {
            let lost = "the callers of some sites: there were too many calling contexts";
            self.sites.unseen.push(lost.to_owned());
        }
        self.sites
    }

    /// The context of the frame that called this context's function, which is an allocator.
    fn site(&mut self, at: usize) -> usize {
        let mut site = self.caller(at);
        while let Some(context) = site
            && is_allocator(&self.sites.frames[self.sites.contexts[context].frame].name)
            && let Some(parent) = self.sites.contexts[context].parent
        {
            site = Some(parent);
        }
        // An allocator that nothing called stands for itself.
        site.unwrap_or_else(|| {
            let frame = self.function(&self.profile.contexts[at]);
            self.index.context(&mut self.sites, None, frame)
        })
    }

    /// The context of the frame that called a context's function; `None` if nothing did.
    fn caller(&mut self, at: usize) -> Option<usize> {
        let mut open = Vec::new();
        let mut known = None;
        let mut next = Some(at);
        while let Some(at) = next {
            if let Some(caller) = self.callers.get(&at) {
                known = *caller;
                break;
            }
            open.push(at);
            next = self.profile.contexts[at].parent;
        }
        while let Some(at) = open.pop() {
            for frame in self.frames(at) {
                known = Some(self.index.context(&mut self.sites, known, frame));
            }
            self.callers.insert(at, known);
        }
        known
    }

    /// The frames of the function that called a context's function, outermost first: those that are inlined come last.
    fn frames(&mut self, at: usize) -> Vec<SiteFrame> {
        let profile = self.profile;
        let Some(parent) = profile.contexts[at].parent else { return Vec::new() };
        let caller = Some(&profile.contexts[parent]).filter(|caller| caller.parent.is_some());
        let own = caller.map(|caller| self.function(caller));
        let Some(call) = self.live.calls.get(&at) else { return own.into_iter().collect() };
        if let Some(frames) = self.located.get(call) {
            return frames.clone();
        }
        let (object, after) = call;
        // The address after a call may belong to the next line, or to the next function.
        let location = self.symbols.locate(object.as_deref(), after.saturating_sub(1));
        // Of a context whose caller is lost, the place of the call is known.
        let own = own.unwrap_or_else(|| {
            let outermost = location.frames.last().and_then(|frame| frame.name.as_deref());
            let name = outermost.unwrap_or(&location.place).to_owned();
            SiteFrame { name, object: object.clone(), ..SiteFrame::default() }
        });
        let mut frames: Vec<SiteFrame> = location
            .frames
            .into_iter()
            .map(|frame| SiteFrame {
                name: frame.name.unwrap_or_else(|| own.name.clone()),
                object: object.clone(),
                file: frame.file,
                line: frame.line,
            })
            .collect();
        frames.reverse();
        match frames.first_mut() {
            // The tool also knows symbols that are in a separate file only.
            Some(outermost) => outermost.name.clone_from(&own.name),
            None => frames.push(own),
        }
        self.located.insert(call.clone(), frames.clone());
        frames
    }

    /// The frame of a context's function, without a line.
    fn function(&mut self, context: &ProfileContext) -> SiteFrame {
        let Some(function) = context.function.map(|function| &self.profile.functions[function]) else {
            return SiteFrame { name: "(signal)".to_owned(), ..SiteFrame::default() };
        };
        let object = function.object.clone();
        let name = match &function.name {
            // The version of a library's symbol does not belong to the name.
            Some(name) => demangle(name.split_once('@').map_or(name, |(bare, _)| bare)),
            None => self.symbols.locate(object.as_deref(), function.offset).name().to_owned(),
        };
        SiteFrame { name, object, file: None, line: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_of_a_package_that_only_the_launch_for_live_blocks_executed_keeps_its_name() {
        let named = |name: &&str| ProfileFunction {
            name: Some((*name).to_owned()),
            object: Some("/app".to_owned()),
            ..ProfileFunction::default()
        };
        let launch = |names: &[&str]| {
            let mut contexts = vec![ProfileContext::default()];
            contexts.extend((0..names.len()).map(|at| ProfileContext {
                parent: Some(at),
                function: Some(at),
                ..ProfileContext::default()
            }));
            let functions = names.iter().map(named).collect();
            let live =
                LiveBlocks { contexts: [(names.len(), Default::default())].into(), ..LiveBlocks::default() };
            let words = vec!["/app".to_owned()];
            let process = Profile { words, functions, contexts, live: Some(live), ..Profile::default() };
            Profiles { processes: vec![process], ..Profiles::default() }
        };
        let mut side = Side::of(&launch(&["runtime.main", "main.main", "malloc"]));
        side.add_live(&launch(&["runtime.main", "main.main", "main.cold", "malloc"]));
        let last = side.tree.functions.last().map(|one| one.name.as_str());
        assert_eq!(last, Some("main.cold"));
    }
}
