//! Normalises demangled names of functions: what compilers and linkers add is removed, so that a function has the same
//! name in all versions.

use super::Function;

/// Suffixes that compilers add to the names of copies and parts of functions, with a number behind them.
const NUMBERED: [&str; 7] = ["constprop", "isra", "part", "lto_priv", "llvm", "clone", "specialized"];

/// Suffixes that compilers add without a number, or before one.
const BARE: [&str; 3] = ["cold", "localalias", "resolver"];

/// Suffixes of processor-specific variants of functions of the C library.
const VARIANTS: [&str; 12] = [
    "_avx512", "_avx2", "_avx", "_sse2", "_sse42", "_sse4_1", "_ssse3", "_evex512", "_evex", "_erms",
    "_movbe", "_rtm",
];

/// The name without hashes, closure numbers, symbol versions, and suffixes of copies and variants.
pub fn normal(name: &str) -> String {
    let mut name = without_versions(name);
    name = without_hashes(&name);
    while let Some(shorter) = without_suffix(&name) {
        name = shorter;
    }
    name = without_closure_numbers(&name);
    for end in ["_unaligned", "_nosse"] {
        name = name.replace(end, "");
    }
    for variant in VARIANTS {
        if let Some(at) = name.find(variant)
            && name[at + variant.len()..].chars().next().is_none_or(|next| next == '_')
        {
            name.replace_range(at..at + variant.len(), "");
        }
    }
    for start in ["__GI_", "__libc_", "__new_"] {
        if let Some(rest) = name.strip_prefix(start).filter(|rest| !rest.is_empty()) {
            name = rest.to_owned();
        }
    }
    haskell(&name).unwrap_or(name)
}

/// Removes the version of a symbol: `memcpy@@GLIBC_2.14` becomes `memcpy`.
fn without_versions(name: &str) -> String {
    match name.find('@') {
        Some(at) if at > 0 => name[..at].to_owned(),
        _ => name.to_owned(),
    }
}

/// Removes the hashes of Rust: `::h0123456789abcdef` and `[0123456789abcdef]`.
fn without_hashes(name: &str) -> String {
    let is_hash = |text: &str| text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if let Some((rest, last)) = name.rsplit_once("::h")
        && is_hash(last)
    {
        return rest.to_owned();
    }
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find('[') {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        match after.find(']') {
            Some(end) if is_hash(&after[1..end]) => rest = &after[end + 1..],
            _ => {
                out.push('[');
                rest = &after[1..];
            }
        }
    }
    out + rest
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The name without its last suffix; `None` where it has none.
fn without_suffix(name: &str) -> Option<String> {
    if let Some((rest, _)) = name.rsplit_once(" [clone ").filter(|(_, end)| end.ends_with(']')) {
        return Some(rest.to_owned());
    }
    let (rest, last) = name.rsplit_once('.')?;
    if rest.is_empty() {
        return None;
    }
    // The closures of Go are called a.b.func1.2; `without_closure_numbers` handles them.
    let go = rest.rsplit('.').next().is_some_and(|word| word.starts_with("func"));
    if is_number(last) {
        let copy = rest.rsplit_once('.').filter(|(name, word)| !name.is_empty() && NUMBERED.contains(word));
        return (!go).then(|| copy.map_or(rest, |(name, _)| name).to_owned());
    }
    // A method or a function of a package may have such a name.
    let is_of_package = rest.contains('/') || rest.contains("(*");
    (BARE.contains(&last) && !is_of_package).then(|| rest.to_owned())
}

/// Gives functions back the names that [`normal`] took for those of parts: `cold` in Go's package `main` is no part of
/// a function `main`. Two of three signs must say so, because no profile has all functions of a program: the file has
/// code of Go, it has other functions of that package, or it has no function that this may be a part of.
pub fn restore_names_of_packages(functions: &mut [Function]) {
    fn stem(function: &Function) -> Option<&str> {
        let (stem, last) = function.shown.rsplit_once('.')?;
        (BARE.contains(&last) && function.name != function.shown).then_some(stem)
    }
    let is_of_package = |function: &Function| {
        let Some(package) = stem(function) else { return false };
        let has = |is: &dyn Fn(&str) -> bool| {
            functions.iter().any(|one| one.module == function.module && stem(one).is_none() && is(&one.name))
        };
        let signs = [
            has(&|name| name.starts_with("runtime.")),
            has(&|name| name.strip_prefix(package).is_some_and(|rest| rest.starts_with('.'))),
            !has(&|name| name == function.name),
        ];
        signs.into_iter().filter(|sign| *sign).count() >= 2
    };
    let restored: Vec<usize> = (0..functions.len()).filter(|at| is_of_package(&functions[*at])).collect();
    restored.into_iter().for_each(|at| functions[at].name = functions[at].shown.clone());
}

/// Whether the name is one that compilers give to a part of a function to which the rest of it jumps. A method may be
/// called `cold` as well, and keeps its name.
pub fn is_cold_part(function: &Function) -> bool {
    let shown = &function.shown;
    let has_mark = || shown.contains("[clone .cold") || shown.ends_with(".cold") || shown.contains(".cold.");
    // Names without the mark, which are nearly all, are searched once.
    shown.contains(".cold") && has_mark() && function.name != *shown
}

/// Removes the numbers of closures: `{closure#3}`, `{{closure}}`, `{lambda(int)#2}`, Go's `.func1.2`.
fn without_closure_numbers(name: &str) -> String {
    let mut out = name.replace("{{closure}}", "{closure}");
    while let Some(at) = out.find('#') {
        let digits = out[at + 1..].bytes().take_while(u8::is_ascii_digit).count();
        match digits {
            0 => break,
            _ => out.replace_range(at..at + 1 + digits, ""),
        }
    }
    let Some(at) = out.find(".func") else { return out };
    let rest = &out[at + ".func".len()..];
    let numbers = rest.split('.').all(is_number);
    if numbers { out[..at + ".func".len()].to_owned() } else { out }
}

/// Replaces local names of GHC such as `_s1Xa_info`, which each compilation renumbers; `None` for other names.
fn haskell(name: &str) -> Option<String> {
    let ends = ["_info", "_entry"];
    let end = ends.into_iter().find(|end| name.ends_with(end))?;
    let stem = &name[..name.len() - end.len()];
    let (module, local) = stem.rsplit_once('_').unwrap_or(("", stem));
    let is_local = (4..=6).contains(&local.len())
        && local.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && local.bytes().any(|byte| byte.is_ascii_digit())
        && local.starts_with(['s', 'r', 'c', 'l']);
    is_local.then(|| format!("{module}_(local){end}"))
}

/// A bracket of a demangled name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameBracket {
    /// The begin of the arguments of a template.
    OpensTemplate,
    /// Their end.
    ClosesTemplate,
    /// The begin of a list of parameters.
    OpensParameters,
    /// Its end.
    ClosesParameters,
}

/// A letter of a demangled name, and the lists that enclose it. A bracket is not enclosed by its own list.
#[derive(Clone, Copy, Debug)]
pub struct NestedLetter {
    /// The letter.
    pub letter: char,
    /// The number of lists of template arguments that enclose it.
    pub templates: usize,
    /// The number of lists of parameters that enclose it.
    pub parameters: usize,
    /// The bracket that it is.
    pub bracket: Option<NameBracket>,
}

/// The letters of a demangled name, and the numbers of lists of template arguments and of parameters that do not end.
pub fn nested(name: &str) -> (Vec<NestedLetter>, [usize; 2]) {
    let (mut templates, mut parameters, mut before) = (0_usize, 0_usize, ' ');
    let letters = name.char_indices().map(|(at, letter)| {
        let rest = &name[at + letter.len_utf8()..];
        let is_operator = name[..at].ends_with("operator") || name[..at].ends_with("operator<");
        let follows_name = before.is_alphanumeric() || before == '_';
        let is_name = rest.starts_with(')') || rest.starts_with("anonymous namespace)");
        let bracket = match letter {
            '<' if templates > 0 || (follows_name && !is_operator) => Some(NameBracket::OpensTemplate),
            '>' if templates > 0 && before != '-' => Some(NameBracket::ClosesTemplate),
            '(' if parameters > 0 || !is_name => Some(NameBracket::OpensParameters),
            ')' if parameters > 0 => Some(NameBracket::ClosesParameters),
            _ => None,
        };
        before = letter;
        templates -= usize::from(bracket == Some(NameBracket::ClosesTemplate));
        parameters -= usize::from(bracket == Some(NameBracket::ClosesParameters));
        let nested = NestedLetter { letter, templates, parameters, bracket };
        templates += usize::from(bracket == Some(NameBracket::OpensTemplate));
        parameters += usize::from(bracket == Some(NameBracket::OpensParameters));
        nested
    });
    let letters = letters.collect();
    (letters, [templates, parameters])
}

/// The name without the arguments of templates and generics, which all instances share.
pub fn group(name: &str) -> String {
    let (letters, [open, _]) = nested(name);
    let of_template = [Some(NameBracket::OpensTemplate), Some(NameBracket::ClosesTemplate)];
    let is_shared = |at: &&NestedLetter| at.templates == 0 && !of_template.contains(&at.bracket);
    let out: String = letters.iter().filter(is_shared).map(|at| at.letter).collect();
    if open == 0 && !out.is_empty() { out } else { name.to_owned() }
}

/// Whether a function belongs to the library of its language, by its demangled name.
pub fn is_library(name: &str) -> bool {
    const BEGINNINGS: [&str; 14] = [
        "std::",
        "core::",
        "alloc::",
        "__gnu_cxx::",
        "__rust",
        "__rdl",
        "hashbrown::",
        "runtime.",
        "internal/",
        "base:",
        "ghc-prim:",
        "ghc-bignum:",
        "ghc-internal:",
        "integer-gmp:",
    ];
    let is_one = |name: &str| BEGINNINGS.iter().any(|beginning| name.starts_with(beginning));
    let grouped = group(&name.trim_start_matches(['<', '&', '*']).replace("::<", "<"));
    // Of `<alloc::vec::Vec<T> as app::Sum>::sum` the type decides; of `<T as alloc::string::ToString>::to_string`,
    // whose type is a parameter, the trait.
    if name.starts_with('<')
        && let Some((of, interface)) = grouped.split_once(" as ")
    {
        let of = of
            .trim_start_matches(['&', '*', '[', '(', '<'])
            .trim_start_matches("dyn ")
            .trim_start_matches("mut ");
        return if of.contains("::") { is_one(of) } else { is_one(interface) };
    }
    // Names may begin with a result: `void std::swap<int>`, `std::vector<int> app::read(int)`.
    let head = grouped.split('(').next().unwrap_or(&grouped);
    is_one(head.rsplit(' ').next().unwrap_or(head))
}

/// Whether a function only passes requests on to the allocator of the C library, by its demangled name. Its callers
/// allocate.
pub fn is_allocator(name: &str) -> bool {
    const RUST: [&str; 8] = [
        "__rust_alloc",
        "__rust_realloc",
        "__rdl_alloc",
        "__rdl_realloc",
        "__rg_alloc",
        "__rg_realloc",
        "alloc::alloc::alloc",
        "alloc::alloc::realloc",
    ];
    const GLOBAL: [&str; 2] = ["::alloc_impl", " as core::alloc::Allocator>::"];
    let bare = name.strip_prefix("__rustc::").unwrap_or(name);
    name.starts_with("operator new")
        || RUST.iter().any(|one| bare.strip_prefix(one).is_some_and(|rest| ["", "_zeroed"].contains(&rest)))
        || bare == "alloc::alloc::exchange_malloc"
        || (bare.contains("alloc::alloc::Global") && GLOBAL.iter().any(|one| bare.contains(one)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_of_compilers_are_not_part_of_a_name() {
        for (name, expected) in [
            ("hash.constprop.0", "hash"),
            ("hash.isra.0.cold", "hash"),
            ("hash [clone .part.1]", "hash"),
            ("app::score::h0123456789abcdef", "app::score"),
            ("app[0123456789abcdef]::score", "app::score"),
            ("app::main::{closure#12}", "app::main::{closure}"),
            ("app::main::{{closure}}", "app::main::{closure}"),
            ("main.words.func1.2", "main.words.func"),
            ("memcpy@@GLIBC_2.14", "memcpy"),
            ("__memmove_avx_unaligned_erms", "__memmove"),
            ("__strlen_evex", "__strlen"),
            ("__GI_memcmp", "memcmp"),
            ("Main_s1Xa_info", "Main_(local)_info"),
            ("Main_$wscore_info", "Main_$wscore_info"),
            ("base_GHCziList_zdwlenAcc_info", "base_GHCziList_zdwlenAcc_info"),
            ("a.b", "a.b"),
            // Names that people gave.
            ("main.clone", "main.clone"),
            ("main.(*Tree).clone", "main.(*Tree).clone"),
            ("example.org/tree.(*Tree).cold", "example.org/tree.(*Tree).cold"),
            ("Repository.part", "Repository.part"),
            ("main.cold", "main"),
            ("main.cold.1", "main"),
            ("hash.llvm.1234567890", "hash"),
            ("", ""),
        ] {
            assert_eq!(normal(name), expected, "{name}");
        }
    }

    #[test]
    fn a_function_of_a_package_is_no_part_of_another_function() {
        let names = |all: &[&'static str]| {
            let function = |shown: &&str| Function {
                module: "program".to_owned(),
                name: normal(shown),
                shown: (*shown).to_owned(),
                ..Function::default()
            };
            let mut functions: Vec<Function> = all.iter().map(function).collect();
            restore_names_of_packages(&mut functions);
            let cold = functions.iter().map(is_cold_part).collect::<Vec<_>>();
            (functions.into_iter().map(|function| function.name).collect::<Vec<_>>(), cold)
        };
        let (go, cold) =
            names(&["main", "main.main", "main.cold", "main.resolver", "runtime.main", "log.cold"]);
        assert_eq!(go, ["main", "main.main", "main.cold", "main.resolver", "runtime.main", "log.cold"]);
        assert_eq!(cold, [false; 6]);
        // Code of C in a program of Go, and programs in C: OpenMP has parts of its own.
        let parts = ["main.main", "runtime.main", "parse", "parse.cold"];
        assert_eq!(names(&parts).0, ["main.main", "runtime.main", "parse", "parse"]);
        let (c, cold) = names(&["main", "main._omp_fn.0", "main.cold", "hash.isra.0", "hash.isra.0.cold"]);
        assert_eq!(c, ["main", "main._omp_fn", "main", "hash", "hash"]);
        assert_eq!(cold, [false, false, true, false, true]);
        assert_eq!(names(&["Repository.load", "Repository.cold"]).0, ["Repository.load", "Repository.cold"]);
    }

    #[test]
    fn instances_of_a_template_are_one_group() {
        assert_eq!(group("Acc<unsigned int>::add(unsigned int)"), "Acc::add(unsigned int)");
        assert_eq!(group("<Map<I,F> as Iterator>::next"), "<Map as Iterator>::next");
        assert_eq!(group("operator<(int)"), "operator<(int)");
        assert_eq!(group("a->b"), "a->b");
        assert_eq!(group("odd<"), "odd<");
    }

    #[test]
    fn the_languages_own_libraries_are_known() {
        for name in [
            "std::vector<int>::push_back(int&&)",
            "core::iter::next",
            "<alloc::vec::Vec<T> as X>::y",
            "void std::swap<int>(int&)",
            "void std::vector<std::unique_ptr<Big, std::default_delete<Big> > >::_M_insert<Big>(Big&&)",
            "<T as alloc::string::ToString>::to_string",
            "std::panic::catch_unwind::<&dyn core::ops::Fn<(), Output = i32> + core::marker::Sync, i32>",
            "<&dyn core::ops::Fn<(), Output = i32> + core::marker::Sync as core::ops::FnOnce<()>>::call_once",
            "runtime.mallocgc",
            "base:GHC.List.$wlenAcc",
        ] {
            assert!(is_library(name), "{name}");
        }
        for name in [
            "main",
            "app::score",
            "Acc<std::string>::add",
            "stdlib_wrapper",
            "main.score",
            "std::vector<int> app::read(int)",
            "<app::Page as core::fmt::Display>::fmt",
        ] {
            assert!(!is_library(name), "{name}");
        }
    }
}
