//! Escaped texts in pictures.

use super::words::plain;
use maud::{Markup, html};

/// A text at a position; without a class where that is empty.
pub(crate) fn label(class: &str, (x, y): (f64, f64), text: &str) -> String {
    let class = Some(class).filter(|class| !class.is_empty());
    html! { text class=[class] x=(one(x)) y=(one(y)) { (plain(text)) } }.into_string()
}

/// A rotated text.
pub(crate) fn turned(class: &str, (x, y): (f64, f64), text: &str) -> String {
    let (x, y) = (one(x), one(y));
    let turn = format!("rotate(-60 {x} {y})");
    html! { text class=(class) x=(x) y=(y) transform=(turn) { (plain(text)) } }.into_string()
}

/// The tooltip of a shape, in lines.
pub(crate) fn tip(text: &str) -> String {
    let markup: Markup = html! { title { (text.lines().map(plain).collect::<Vec<String>>().join("\n")) } };
    markup.into_string()
}

fn one(value: f64) -> String {
    format!("{value:.1}")
}
