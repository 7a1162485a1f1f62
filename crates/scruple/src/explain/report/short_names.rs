//! Shortens demangled names of functions, so that a sentence with several of them can be read.

use scruple_core::explain::{NameBracket, NestedLetter, nested};

/// The length up to which a name stays as it is, in characters.
const LONG: usize = 80;

/// Returns the name without what makes it too long: first the template arguments within others, then the parameters, then
/// all template arguments.
pub fn short(name: &str) -> String {
    let fits = |name: &String| name.chars().count() <= LONG;
    let forms = [(usize::MAX, true), (1, true), (1, false)].into_iter();
    let mut forms = forms.map(|(depth, parameters)| shortened(name, depth, parameters));
    forms.find(fits).unwrap_or_else(|| shortened(name, 0, false))
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
