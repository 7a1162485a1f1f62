//! Texts from outside, as they stand in Markdown, AsciiDoc and Org.

/// The markup language of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Markup {
    /// Markdown with pipe tables.
    Markdown,
    /// AsciiDoc.
    AsciiDoc,
    /// Org mode.
    Org,
}

/// Writes a text as code in which nothing is interpreted as markup.
pub(crate) fn code(text: &str, markup: Markup) -> String {
    match markup {
        _ if text.is_empty() => String::new(),
        Markup::Markdown => format!("`{}`", text.replace('|', "\\|").replace('`', "'")),
        Markup::AsciiDoc => format!("`{}`", text.replace('|', "\\|")),
        Markup::Org => format!("={}=", text.replace('|', "\\vert{}")),
    }
}

/// Escapes a text for any kind of document.
pub(crate) fn prose(text: &str, markup: Markup) -> String {
    match markup {
        Markup::Markdown => escaped(text),
        // Neither language has an escape that works everywhere. Without these characters no markup can start.
        Markup::AsciiDoc | Markup::Org => text.replace(['|', '*', '[', ']', '<', '>', '`', '+'], " "),
    }
}

/// A sentence with names in it that the user chose, none of which is interpreted as markup.
pub(crate) fn in_markup(sentence: &str, markup: Markup) -> String {
    if matches!(markup, Markup::Markdown) {
        return escaped(sentence);
    }
    // Figures have signs and brackets, after a space. Macros and links have brackets after another character.
    let mut out = String::with_capacity(sentence.len());
    for c in sentence.chars() {
        let twice = "<>+:@#".contains(c) && out.ends_with(c);
        if twice || (c == '[' && !out.ends_with(' ')) {
            out.push(' ');
        }
        out.push(if "*`\n\r".contains(c) { ' ' } else { c });
    }
    out
}

/// Escapes all markup of a text for Markdown.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // Forges turn names and issue numbers into links after rendering. Only a zero-width space prevents that.
            '#' | '@' => {
                out.push(c);
                out.push_str("&#8203;");
            }
            '\n' | '\r' => out.push(' '),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '$' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}
