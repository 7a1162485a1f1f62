//! The allocation sites of a process as rows: each place in the program's own code that allocates, and its callers.

use scruple_code::allocation_sites::{HeapAmounts, HeapSites, SiteFrame};
use scruple_core::explain::{group, is_library};
use scruple_core::harmless_text::plain;
use std::collections::HashMap;
use std::path::Path;

/// A place that allocates, itself or in functions of the libraries of its language; or a caller of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteRow {
    /// The function, with the line from which it allocates or calls.
    pub frame: SiteFrame,
    /// The library function that the place calls in order to allocate, if it does not call the allocator itself.
    pub through: Option<String>,
    /// What was allocated on this path.
    pub amounts: HeapAmounts,
    /// The callers, with their parts of the amounts. Where the path begins there are none.
    pub callers: Vec<SiteRow>,
    /// The contexts whose amounts these are.
    pub contexts: Vec<usize>,
}

/// The figure that rows are ordered by.
pub type SiteFigure = fn(&HeapAmounts) -> u64;

/// Returns the rows, those with the largest figures first.
pub fn rows(sites: &HeapSites, by: SiteFigure) -> Vec<SiteRow> {
    let own: Vec<bool> = sites.frames.iter().map(is_own).collect();
    let mut rows = RowsByFrame::default();
    for (at, context) in sites.contexts.iter().enumerate() {
        if context.own == HeapAmounts::default() {
            continue;
        }
        let path: Vec<usize> = sites.path(at).into_iter().map(|at| sites.contexts[at].frame).rev().collect();
        // The innermost function that does not only pass requests on; if all do, the outermost of them.
        let mut owns = path.iter().enumerate().filter(|(_, frame)| own[**frame]);
        let passes_on = |frame: usize| passes_on(&sites.frames[frame].name);
        let inner = owns.clone().find(|(_, frame)| !passes_on(**frame)).or_else(|| owns.next_back());
        let inner = inner.map(|(at, _)| at);
        let through = inner.and_then(|inner| Some((path[..inner].last()?, path[inner])));
        let through = through.map(|(library, own)| {
            let (library, own) = (&sites.frames[*library], &sites.frames[own]);
            if library.object == own.object { short(&library.name) } else { called(library) }
        });
        let outer = &path[inner.unwrap_or(0)..];
        let mut callers: Vec<usize> = outer.iter().copied().filter(|frame| own[*frame]).collect();
        if callers.is_empty() {
            callers.extend(path.first());
        }
        // C's main only calls the main of another language.
        if let [.., inner, outer] = callers[..]
            && sites.frames[outer].name == "main"
            && sites.frames[inner].name.ends_with("::main")
        {
            callers.pop();
        }
        rows.add(&callers, through, context.own, at);
    }
    rows.ordered(sites, by)
}

/// Rows that are being made, by the frame.
#[derive(Default)]
struct RowsByFrame {
    rows: HashMap<usize, UnsortedRow>,
}

/// A row that is being made.
#[derive(Default)]
struct UnsortedRow {
    amounts: HeapAmounts,
    contexts: Vec<usize>,
    /// The library functions that are called, with the bytes allocated through each.
    ways: HashMap<Option<String>, u64>,
    callers: RowsByFrame,
}

impl RowsByFrame {
    fn add(&mut self, path: &[usize], through: Option<String>, amounts: HeapAmounts, context: usize) {
        let mut level = self;
        let mut through = Some(through);
        for frame in path {
            let row = level.rows.entry(*frame).or_default();
            row.amounts += amounts;
            row.contexts.push(context);
            if let Some(through) = through.take() {
                *row.ways.entry(through).or_default() += amounts.allocated.bytes;
            }
            level = &mut row.callers;
        }
    }

    fn ordered(self, sites: &HeapSites, by: SiteFigure) -> Vec<SiteRow> {
        let row = |(frame, row): (usize, UnsortedRow)| {
            let most = row.ways.into_iter().max_by(|one, other| (one.1, &other.0).cmp(&(other.1, &one.0)));
            SiteRow {
                frame: sites.frames[frame].clone(),
                through: most.and_then(|(through, _)| through),
                amounts: row.amounts,
                contexts: row.contexts,
                callers: row.callers.ordered(sites, by),
            }
        };
        let mut rows: Vec<SiteRow> = self.rows.into_iter().map(row).collect();
        let key = |row: &SiteRow| {
            (std::cmp::Reverse((by(&row.amounts), row.amounts.allocated.bytes)), place(&row.frame))
        };
        rows.sort_by_cached_key(key);
        rows
    }
}

/// Whether a frame belongs to the program's own code, or to a library that is not part of its language.
fn is_own(frame: &SiteFrame) -> bool {
    const RUNTIME: [&str; 9] =
        ["libc.", "libc-", "ld-", "ld64", "libstdc++", "libc++", "libgcc_s", "libpthread", "libm."];
    let Some(object) = &frame.object else { return false };
    let file = Path::new(object).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    !RUNTIME.iter().any(|beginning| file.starts_with(beginning))
        && !is_start(&frame.name)
        && !is_library(&frame.name)
}

/// Whether a function starts the program before its own code runs.
fn is_start(name: &str) -> bool {
    matches!(name, "_start" | "__libc_start_call_main" | "__libc_csu_init")
        || name.starts_with("__libc_start_main")
}

/// Whether a function only passes requests on to an allocator, as its name shows: `xmalloc`, `PyMem_RawRealloc`,
/// `os::malloc`, `xstrdup`, a class's `operator new`.
fn passes_on(name: &str) -> bool {
    let name = short(name);
    let last = name.rsplit("::").next().unwrap_or(&name).to_lowercase();
    last.contains("alloc") || last.ends_with("strdup") || last.ends_with("operator new")
}

/// The function's name and its file or library, on one line.
pub fn called(frame: &SiteFrame) -> String {
    let file = frame.object.as_deref().and_then(|object| Path::new(object).file_name()?.to_str());
    match file {
        Some(file) if !frame.name.starts_with(file) => plain(&format!("{} ({file})", short(&frame.name))),
        _ => short(&frame.name),
    }
}

/// The function's name without the arguments of templates and the types of parameters, on one line.
fn short(name: &str) -> String {
    let name = group(name);
    let bare = name.trim_end_matches(" const");
    let begin = bare.strip_suffix(')').and_then(|inner| {
        let mut open = 1;
        inner.char_indices().rev().find_map(|(at, letter)| {
            open += i32::from(letter == ')') - i32::from(letter == '(');
            (open == 0).then_some(at)
        })
    });
    plain(begin.filter(|begin| *begin > 0).map_or(&name, |begin| &bare[..begin]))
}

/// The function's name and its line, or else its file.
pub fn place(frame: &SiteFrame) -> String {
    let name = frame.file.as_deref().and_then(|file| Path::new(file).file_name()?.to_str());
    match (name, frame.line) {
        (Some(file), Some(line)) => plain(&format!("{} ({file}:{line})", short(&frame.name))),
        _ => called(frame),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scruple_code::allocation_sites::{MemoryBlocks, SiteIndex};

    fn frame(name: &str, object: &str) -> SiteFrame {
        SiteFrame { name: name.to_owned(), object: Some(object.to_owned()), ..SiteFrame::default() }
    }

    #[test]
    fn names_are_shown_without_parameters() {
        for (name, expected) in [
            ("void std::vector<int, A<int> >::_M_insert<int>(int&&)", "void std::vector::_M_insert"),
            ("Less::operator()(int) const", "Less::operator()"),
            ("(anonymous namespace)::read(char const*)", "(anonymous namespace)::read"),
            ("app::make::{{closure}}", "app::make::{{closure}}"),
            ("record", "record"),
        ] {
            assert_eq!(short(name), expected);
        }
    }

    #[test]
    fn functions_that_only_pass_requests_on_count_for_their_callers() {
        let (mut sites, mut index) = (HeapSites::default(), SiteIndex::default());
        let mut add = |names: &[&str]| {
            let path = names.iter().map(|name| frame(name, "/bin/app"));
            let at = path.fold(None, |parent, frame| Some(index.context(&mut sites, parent, frame)));
            sites.contexts[at.expect("a frame")].own.at_peak += MemoryBlocks { blocks: 1, bytes: 8 };
        };
        add(&["main", "read", "xmalloc", "do_xmalloc"]);
        add(&["main", "Node::operator new(unsigned long)"]);
        add(&["alloc_all"]);
        let rows = rows(&sites, |amounts| amounts.at_peak.bytes);
        let found: Vec<(&str, Option<&str>)> =
            rows.iter().map(|row| (row.frame.name.as_str(), row.through.as_deref())).collect();
        let expected = [("alloc_all", None), ("main", Some("Node::operator new")), ("read", Some("xmalloc"))];
        assert_eq!(found, expected);
    }

    #[test]
    fn allocations_of_libraries_belong_to_the_calling_code() {
        let (mut sites, mut index) = (HeapSites::default(), SiteIndex::default());
        let mut add = |path: &[SiteFrame], bytes: u64| {
            let at = path
                .iter()
                .fold(None, |parent, frame| Some(index.context(&mut sites, parent, frame.clone())))
                .expect("a frame");
            sites.contexts[at].own.at_peak += MemoryBlocks { blocks: 1, bytes };
        };
        let (start, main, work) =
            (frame("_start", "/bin/app"), frame("main", "/bin/app"), frame("work", "/bin/app"));
        let (print, buffer) =
            (frame("printf", "/lib/libc.so.6"), frame("_IO_file_doallocate", "/lib/libc.so.6"));
        add(&[start.clone(), main.clone(), work.clone(), print.clone(), buffer.clone()], 10);
        add(&[start.clone(), main.clone(), work.clone()], 1);
        add(&[start.clone(), main.clone()], 100);
        add(&[start, buffer], 5);
        let rows = rows(&sites, |amounts| amounts.at_peak.bytes);
        let found: Vec<(&str, Option<&str>, u64, usize)> = rows
            .iter()
            .map(|row| {
                (
                    row.frame.name.as_str(),
                    row.through.as_deref(),
                    row.amounts.at_peak.bytes,
                    row.callers.len(),
                )
            })
            .collect();
        assert_eq!(
            found,
            [("main", None, 100, 0), ("work", None, 11, 1), ("_IO_file_doallocate", None, 5, 0),]
        );
        assert_eq!(rows[1].callers[0].frame.name, "main");
    }
}
