//! What the pictures have in common: a head that brings its own colours for light and dark, and text that cannot break out.

use scruple_core::plain::steers;
use std::fmt::Write as _;

/// Text in which nothing is markup.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // XML has no way to write these.
            c if steers(c) && !matches!(c, '\t' | '\n') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// The beginning of a picture. Whoever embeds it may set the variables; by itself it follows the reader's habit.
pub(crate) fn head(width: usize, height: usize, title: &str) -> String {
    let mut out = String::new();
    let title = escape(title);
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"scruple\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{title}\">"
    );
    out.push_str(
        "<style>\n\
         .scruple{--paper:#fff;--ink:#1c1c1c;--faint:#d8d8d8;--lightness:72%;font:11px ui-monospace,monospace}\n\
         @media(prefers-color-scheme:dark){.scruple{--paper:#16181c;--ink:#e6e6e6;--faint:#3a3d42;--lightness:36%}}\n\
         .scruple .paper{fill:var(--paper)}.scruple text{fill:var(--ink)}.scruple .line{stroke:var(--faint)}\n\
         .scruple .head{font-size:14px;font-weight:bold}\n\
         .scruple .part{stroke:var(--paper);stroke-width:.5}.scruple g:hover .part{stroke:var(--ink)}\n\
         </style>\n",
    );
    let _ = writeln!(out, "<rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>");
    let _ = writeln!(out, "<text class=\"head\" x=\"10\" y=\"20\">{title}</text>");
    out
}

/// The colour of a name: the same in every picture, light or dark by a variable.
pub(crate) fn colour(name: &str) -> String {
    let hash =
        name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("hsl({} {}% var(--lightness))", hash % 360, 45 + hash / 360 % 25)
}

/// As much of a text as fits into that many units of a fixed font; nothing where not even three letters do.
pub(crate) fn cut(text: &str, width: f64) -> String {
    let room = (width / 6.7) as usize;
    match text.chars().count() {
        length if length <= room => text.to_owned(),
        _ if room < 4 => String::new(),
        _ => text.chars().take(room - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_name_is_markup() {
        assert_eq!(escape("a<b>&\"c\"\u{1}"), "a&lt;b&gt;&amp;&quot;c&quot;\u{fffd}");
        assert!(head(10, 10, "<script>").contains("&lt;script&gt;"));
    }

    #[test]
    fn names_are_cut_to_the_room_there_is() {
        assert_eq!(
            (cut("Main.main", 100.0), cut("Main.main", 40.0)),
            ("Main.main".to_owned(), "Main…".to_owned())
        );
        assert_eq!(cut("Main.main", 20.0), "");
    }
}
