//! Makes text from outside harmless for terminals and readers.

/// Whether a character controls the terminal or the text around it instead of being shown: control characters, and
/// marks that change the direction of writing (Unicode Standard Annex 9).
pub fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text with every controlling character (see [`steers`]) replaced by U+FFFD; line ends too, so that it stays one
/// line.
///
/// ```
/// assert_eq!(scruple_core::harmless_text::plain("a\u{1b}[31mred\n"), "a\u{fffd}[31mred\u{fffd}");
/// ```
pub fn plain(text: &str) -> String {
    text.chars().map(|c| if steers(c) { '\u{fffd}' } else { c }).collect()
}

/// The text with every controlling character (see [`steers`]) except line ends and tabs replaced by U+FFFD.
pub fn plain_lines(text: &str) -> String {
    let steers = |c: char| steers(c) && !matches!(c, '\n' | '\t');
    text.chars().map(|c| if steers(c) { '\u{fffd}' } else { c }).collect()
}

/// What the lines of an error message after its first one begin with, such as the end of a program's output.
const INDENT: &str = "    ";

/// An error message in which no later line can look like another message. A line end in quotes belongs to a name, and
/// is replaced by U+FFFD. Lines after the first one are indented.
///
/// ```
/// use scruple_core::harmless_text::message;
/// assert_eq!(message("cannot read ‘a\nb’: it says:\n    one\ntwo"), "cannot read ‘a\u{fffd}b’: it says:\n    one\n    two");
/// ```
pub fn message(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_name = false;
    for (at, c) in text.char_indices() {
        let indented =
            text[at..].strip_prefix('\n').is_some_and(|rest| rest.is_empty() || rest.starts_with(INDENT));
        in_name = c == '‘' || in_name && c != '’';
        match c {
            '\n' if indented => out.push(c),
            '\n' if in_name => out.push('\u{fffd}'),
            '\n' => out.extend(["\n", INDENT]),
            _ => out.push(c),
        }
    }
    out
}

/// The text, or its beginning and an ellipsis if it has more than this number of characters.
///
/// ```
/// use scruple_core::harmless_text::shortened;
/// assert_eq!(shortened("Fix it", 6), "Fix it");
/// assert_eq!(shortened("Fix the cache", 6), "Fix t…");
/// ```
pub fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some(_) => text.chars().take(most - 1).collect::<String>().trim_end().to_owned() + "…",
        None => text.to_owned(),
    }
}

/// The text, or its beginning, an ellipsis and its end if it has more than this number of characters: long names often
/// differ at their end.
///
/// ```
/// assert_eq!(scruple_core::harmless_text::without_middle("module::module::last", 13), "module::…last");
/// ```
pub fn without_middle(text: &str, most: usize) -> String {
    let length = text.chars().count();
    if length <= most {
        return text.to_owned();
    }
    let end = most / 3;
    let head: String = text.chars().take(most - end - 1).collect();
    let tail: String = text.chars().skip(length - end).collect();
    format!("{head}…{tail}")
}

/// The most names that an error message lists, and the most characters of each.
const LISTED: usize = 12;
const LENGTH: usize = 61;

/// Lists names for an error message, in quotes and harmless. A long name is cut, and of many names only the first are
/// listed, with the number of the others.
///
/// ```
/// use scruple_core::harmless_text::list_names;
/// assert_eq!(list_names(["one", "two"]), "‘one’, ‘two’");
/// ```
pub fn list_names<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> String {
    let mut names = names.into_iter();
    let quoted = |name: S| format!("‘{}’", shortened(&plain(name.as_ref()), LENGTH));
    let listed: Vec<String> = names.by_ref().take(LISTED).map(quoted).collect();
    match names.count() {
        0 => listed.join(", "),
        more => format!("{} and {more} more", listed.join(", ")),
    }
}

/// The colours that reports have, as parameters of SGR sequences (ECMA-48 §8.3.117): none, bold, faint, red, green,
/// yellow. With other colours, such as concealed characters, a text from outside could hide a verdict.
const COLOURS: [&str; 7] = ["", "0", "1", "2", "31", "32", "33"];

/// A report made harmless for a terminal: line ends, tabs and the colours that reports have stay, and all other
/// controlling characters are replaced by U+FFFD.
pub fn for_terminal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        let (shown, others) = rest.split_at(shown(rest));
        out.push_str(shown);
        rest = others;
        let Some(c) = rest.chars().next() else { return out };
        let taken = if c == '\u{1b}' { colour(rest).unwrap_or(0) } else { 0 };
        match taken {
            0 if steers(c) && !matches!(c, '\n' | '\t') => out.push('\u{fffd}'),
            0 => out.push(c),
            _ => out.push_str(&rest[..taken]),
        }
        rest = &rest[taken.max(c.len_utf8())..];
    }
}

/// The length of the beginning of a text that consists of ASCII characters that are shown, and line ends.
pub fn shown(text: &str) -> usize {
    let others = |byte: u8| !matches!(byte, b' '..=b'~' | b'\n');
    text.bytes().position(others).unwrap_or(text.len())
}

/// The length of the SGR sequence of reports' colours at the beginning of a text; `None` where there is none.
fn colour(text: &str) -> Option<usize> {
    let inner = text.strip_prefix("\u{1b}[")?;
    let end = inner.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    let ours = inner[..end].split(';').all(|parameter| COLOURS.contains(&parameter));
    (ours && inner[end..].starts_with('m')).then_some(end + 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_colours_and_line_ends_reach_a_terminal() {
        assert_eq!(for_terminal("a\u{1b}[1;31mb\u{1b}[0m\n\tc"), "a\u{1b}[1;31mb\u{1b}[0m\n\tc");
        assert_eq!(for_terminal("\u{1b}]0;title\u{7}x\u{1b}[2Jy\u{1b}"), "�]0;title�x�[2Jy�");
        assert_eq!(for_terminal("\u{1b}[8mhidden\u{1b}[1;7m"), "�[8mhidden�[1;7m");
        assert_eq!(for_terminal("one\u{202e}owt\u{9b}31m"), "one�owt�31m");
    }

    #[test]
    fn of_many_or_long_names_the_message_stays_short() {
        let names = (0..100).map(|number| format!("{number}{}", "x".repeat(10_000)));
        let text = list_names(names);
        assert!(text.chars().count() < 1000 && text.ends_with("and 88 more"), "{text}");
        assert_eq!(list_names(["a\u{1b}[31m"]), "‘a\u{fffd}[31m’");
    }

    #[test]
    fn a_second_line_does_not_look_like_another_message() {
        assert_eq!(message("no ‘a\nerror: b’, no ‘c’"), "no ‘a\u{fffd}error: b’, no ‘c’");
        assert_eq!(message("no ‘a’\nerror: b’"), "no ‘a’\n    error: b’");
        let output = "‘sh’ failed; it said:\n    it’s ‘a\n    b\n";
        assert_eq!(message(output), output);
    }

    #[test]
    fn plain_text_is_one_line() {
        assert_eq!(plain("a\nb\u{2066}c\r"), "a�b�c�");
        assert_eq!(plain_lines("a\nb\u{2066}c\td\r"), "a\nb�c\td�");
    }

    #[test]
    fn a_long_text_is_shortened_between_characters() {
        assert_eq!(shortened("Fix it", 201), "Fix it");
        let long = shortened(&"é".repeat(10_000), 201);
        assert_eq!(long.chars().count(), 201);
        assert!(long.ends_with("é…"));
    }
}
