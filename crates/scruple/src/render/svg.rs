//! Parts that several pictures share: a frame with colours for light and dark, and truncated names.

use maud::{Markup, PreEscaped, html};
use scruple_core::harmless_text::plain_lines;

/// The colours and strokes for light and dark.
const STYLE: &str = "\n\
    .scruple{--paper:#fff;--ink:#1c1c1c;--faint:#d8d8d8;--lightness:72%;font:11px ui-monospace,monospace}\n\
    @media(prefers-color-scheme:dark){.scruple{--paper:#16181c;--ink:#e6e6e6;--faint:#3a3d42;--lightness:36%}}\n\
    .scruple .paper{fill:var(--paper)}.scruple text{fill:var(--ink)}.scruple .line{stroke:var(--faint)}\n\
    .scruple .head{font-size:14px;font-weight:bold}\n\
    .scruple .part{stroke:var(--paper);stroke-width:.5}.scruple g:hover .part{stroke:var(--ink)}\n";

/// Draws a picture. An embedding page may set the variables of its colours; a separate picture follows the reader's
/// light or dark setting.
pub(crate) fn picture(width: usize, height: usize, title: &str, body: &Markup) -> String {
    let title = plain_lines(title);
    let picture = html! {
        svg xmlns="http://www.w3.org/2000/svg" class="scruple" width=(width) height=(height)
            viewBox={ "0 0 " (width) " " (height) } role="img" aria-label=(title) {
            "\n" style { (PreEscaped(STYLE)) } "\n"
            rect class="paper" width=(width) height=(height) {} "\n"
            text class="head" x="10" y="20" { (title) } "\n"
            (body)
        }
    };
    picture.into_string() + "\n"
}

/// Returns the colour of a name. It is the same in every picture; a variable makes it light or dark.
pub(crate) fn colour(name: &str) -> String {
    let hash =
        name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("hsl({} {}% var(--lightness))", hash % 360, 45 + hash / 360 % 25)
}

/// Truncates a text to this width in units of a fixed font. Returns an empty text if not even three letters fit.
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
        let picture = picture(10, 10, "<b>&\"\u{1}", &html! {});
        assert_eq!(picture.matches("&lt;b&gt;&amp;&quot;\u{fffd}").count(), 2, "{picture}");
    }

    #[test]
    fn names_are_truncated_to_a_width() {
        assert_eq!(
            (cut("Main.main", 100.0), cut("Main.main", 40.0)),
            ("Main.main".to_owned(), "Main…".to_owned())
        );
        assert_eq!(cut("Main.main", 20.0), "");
    }
}
