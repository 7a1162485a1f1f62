//! Shortens demangled names of functions, so that a sentence with several of them can be read.

use scruple_core::explain::{NameBracket, NestedLetter, nested};
use scruple_core::harmless_text::without_middle;

/// The length up to which a name stays as it is, in characters.
const LONG: usize = 80;

/// The most characters of a name without arguments and parameters.
const LONGEST: usize = 151;

/// Returns the name without what makes it too long: first the template arguments within others, then the parameters, then
/// all template arguments, then the middle. Of a name of C++ that could not be demangled, the path remains.
pub fn short(name: &str) -> String {
    let path = path_of_mangled(name);
    let name = path.as_deref().unwrap_or(name);
    let fits = |name: &String| name.chars().count() <= LONG;
    let forms = [(usize::MAX, true), (1, true), (1, false)].into_iter();
    let mut forms = forms.map(|(depth, parameters)| shortened(name, depth, parameters));
    forms.find(fits).unwrap_or_else(|| without_middle(&shortened(name, 0, false), LONGEST))
}

/// The namespaces and the name with which a mangled name of C++ begins, up to its template arguments, with the end of the
/// mangled name: other instances have the same path. It follows <https://itanium-cxx-abi.github.io/cxx-abi/abi.html>.
fn path_of_mangled(name: &str) -> Option<String> {
    const LAST: usize = 8;
    let mut rest = name.strip_prefix("_Z")?;
    let is_nested = rest.starts_with('N');
    rest = rest.trim_start_matches('N').trim_start_matches(['r', 'V', 'K', 'R', 'O', 'L']);
    let mut path: Vec<&str> = Vec::new();
    if let Some(after) = rest.strip_prefix("St") {
        path.push("std");
        rest = after;
    }
    while let Some((length, after)) =
        rest.find(|letter: char| !letter.is_ascii_digit()).map(|at| rest.split_at(at))
    {
        let Some((one, after)) = length.parse().ok().and_then(|length: usize| after.split_at_checked(length))
        else {
            break;
        };
        path.push(if one.starts_with("_GLOBAL__N_") { "(anonymous namespace)" } else { one });
        rest = after;
        if !is_nested && path != ["std"] {
            break;
        }
    }
    let named = path.iter().any(|one| *one != "std");
    let last: String = name.chars().skip(name.chars().count().saturating_sub(LAST)).collect();
    named.then(|| format!("{} (…{last})", path.join("::")))
}

/// The name with template arguments down to this depth, and with or without parameters.
fn shortened(name: &str, depth: usize, parameters: bool) -> String {
    let (letters, open) = nested(name);
    if open != [0, 0] {
        return name.to_owned();
    }
    let is_visible = |at: &&NestedLetter| at.templates <= depth && (parameters || at.parameters == 0);
    let mut out = String::new();
    for at in letters.iter().filter(is_visible) {
        out.push(at.letter);
        let hides = match at.bracket {
            Some(NameBracket::OpensTemplate) => at.templates == depth,
            Some(NameBracket::OpensParameters) => !parameters,
            _ => false,
        };
        if hides {
            out.push('…');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_not_long_stay_as_they_are() {
        for name in
            ["main.(*Group).Go", "bool operator<(Key const&, Key const&)", "<str as heck::ToSnakeCase>::to"]
        {
            assert_eq!(short(name), name);
        }
    }

    #[test]
    fn a_name_that_could_not_be_demangled_keeps_its_path() {
        let mangled =
            "_ZN2v84base17PrintCheckOperandIPKaEENSt9enable_ifIXaaaantsrSt11is_functionIT_EE5valueE4typeES7_";
        assert_eq!(short(mangled), "v8::base::PrintCheckOperand (…typeES7_)");
        assert_eq!(short("_ZN12_GLOBAL__N_15parseIXQ"), "(anonymous namespace)::parse (…parseIXQ)");
        assert_eq!(short("_Z5visitIiEDTcl"), "visit (…tIiEDTcl)");
        assert_eq!(short("_ZSt4findIXQ"), "std::find (…4findIXQ)");
        for name in ["_Z", "_Z9", "_ZNS", "_Z99999999999999999999x", "_Zlsé"] {
            assert_eq!(short(name), name);
        }
    }

    #[test]
    fn a_name_without_arguments_is_cut_in_the_middle() {
        let long = format!("{}::last", "module::".repeat(500));
        let name = short(&long);
        assert_eq!(name.chars().count(), LONGEST);
        assert!(name.starts_with("module::module") && name.ends_with("::last"), "{name}");
    }

    #[test]
    fn inner_template_arguments_go_first_and_parameters_next() {
        let find = "Cache<std::basic_string<char, std::char_traits<char>, std::allocator<char> >, int>::find(int const&)";
        assert_eq!(short(find), "Cache<std::basic_string<…>, int>::find(int const&)");
        let parameters = format!("sorted<Rec>({}int)", "std::vector<Rec, std::allocator<Rec> >&, ".repeat(3));
        assert_eq!(short(&parameters), "sorted<Rec>(…)");
        let long = format!("std::sort<{}int>(int*, int*)", "std::pair<int, int>, ".repeat(9));
        assert_eq!(short(&long), "std::sort<…>(…)");
    }

    #[test]
    fn operators_and_anonymous_namespaces_remain() {
        let long = "std::less<std::basic_string<char, std::char_traits<char>, std::allocator<char> > >::operator()(int, int) const";
        assert_eq!(short(long), "std::less<std::basic_string<…> >::operator()(int, int) const");
        let names = format!("(anonymous namespace)::parse({}int)", "unsigned long long, ".repeat(5));
        assert_eq!(short(&names), "(anonymous namespace)::parse(…)");
        let less = format!("operator<({}int)", "std::basic_string<char> const&, ".repeat(4));
        assert_eq!(short(&less), "operator<(…)");
    }
}
