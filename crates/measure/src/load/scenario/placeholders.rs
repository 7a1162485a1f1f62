//! Texts with placeholders for values: `${name}`. A literal `${` is written `$${`.

use std::ops::Range;

/// A piece of a text with placeholders.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TextPiece {
    /// Literal bytes.
    Plain(Vec<u8>),
    /// The value in a slot.
    Value(usize),
}

/// The names of the placeholders in a text, each with its position.
///
/// # Errors
/// Fails if a placeholder does not end, or is empty.
pub(crate) fn names(text: &str) -> Result<Vec<(String, Range<usize>)>, String> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(offset) = text[at..].find("${") {
        let begin = at + offset;
        if text[..begin].ends_with('$') {
            at = begin + 2;
            continue;
        }
        let end = text[begin..].find('}').map(|length| begin + length);
        let end = end.ok_or_else(|| {
            format!(
                "‘{}’ has no ‘}}’ after it: close it, or write ‘$${{’ for these two characters",
                &text[begin..]
            )
        })?;
        let name = text[begin + 2..end].trim();
        if name.is_empty() {
            return Err("‘${}’ names no value: write a name between the braces".to_owned());
        }
        found.push((name.to_owned(), begin..end + 1));
        at = end + 1;
    }
    Ok(found)
}

/// Divides a text into pieces; `slot` returns the slot of a name.
///
/// # Errors
/// Fails if a placeholder is malformed, or `slot` does not know its name.
pub(crate) fn pieces(
    text: &str,
    slot: &mut dyn FnMut(&str) -> Result<usize, String>,
) -> Result<Vec<TextPiece>, String> {
    let mut pieces = Vec::new();
    let mut at = 0;
    let plain = |from: usize, to: usize, pieces: &mut Vec<TextPiece>| {
        if from < to {
            pieces.push(TextPiece::Plain(text[from..to].replace("$${", "${").into_bytes()));
        }
    };
    for (name, place) in names(text)? {
        plain(at, place.start, &mut pieces);
        pieces.push(TextPiece::Value(slot(&name)?));
        at = place.end;
    }
    plain(at, text.len(), &mut pieces);
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_at_their_placeholders() {
        let mut slot = |name: &str| match name {
            "a" => Ok(0),
            "b.c" => Ok(1),
            other => Err(format!("no {other}")),
        };
        let plain = |text: &str| TextPiece::Plain(text.as_bytes().to_vec());
        let cut = pieces("/${a}/x?y=${ b.c }&z=$${q}", &mut slot).expect("well-formed");
        let wanted = [plain("/"), TextPiece::Value(0), plain("/x?y="), TextPiece::Value(1), plain("&z=${q}")];
        assert_eq!(cut, wanted);
        assert_eq!(pieces("$5 and {}", &mut slot), Ok(vec![plain("$5 and {}")]));
        assert!(pieces("${a", &mut slot).expect_err("open").contains("no ‘}’"));
        assert!(pieces("${}", &mut slot).is_err() && pieces("${d}", &mut slot).is_err());
    }
}
