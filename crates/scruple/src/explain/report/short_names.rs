//! Shortens demangled names of functions, so that a sentence with several of them can be read.

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
    let mut out = String::new();
    let (mut templates, mut parentheses, mut before) = (0_usize, 0_usize, ' ');
    for (at, letter) in name.char_indices() {
        let rest = &name[at + letter.len_utf8()..];
        let is_operator = name[..at].ends_with("operator") || name[..at].ends_with("operator<");
        let is_hidden = templates > depth || (parentheses > 0 && !parameters);
        let opens = match letter {
            '<' if templates > 0 || ((before.is_alphanumeric() || before == '_') && !is_operator) => {
                templates += 1;
                templates > depth
            }
            '(' if parentheses > 0
                || !(rest.starts_with(')') || rest.starts_with("anonymous namespace)")) =>
            {
                parentheses += 1;
                !parameters
            }
            _ => false,
        };
        let closes = match letter {
            '>' if templates > 0 && before != '-' => {
                templates -= 1;
                true
            }
            ')' if parentheses > 0 => {
                parentheses -= 1;
                true
            }
            _ => false,
        };
        let is_hidden_still = templates > depth || (parentheses > 0 && !parameters);
        if !is_hidden || (closes && !is_hidden_still) {
            out.push(letter);
        }
        if opens && !is_hidden {
            out.push('…');
        }
        before = letter;
    }
    if templates == 0 && parentheses == 0 { out } else { name.to_owned() }
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
