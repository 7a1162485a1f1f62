//! Typographic details of sentences: numbers stay on one line with their units, and negative numbers have a minus sign.

use crate::render::align::UNITS;

const NO_BREAK_SPACE: char = '\u{a0}';
const MINUS: char = '\u{2212}';

/// Sets the numbers of a sentence. A text in quotes (‘…’) comes from outside and is not changed, so that a command
/// can still be copied.
pub(crate) fn typeset(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut quoted = 0_u32;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        let rest = &text[at + c.len_utf8()..];
        match c {
            '‘' => quoted += 1,
            '’' => quoted = quoted.saturating_sub(1),
            _ => {}
        }
        let number = rest.starts_with(|next: char| next.is_ascii_digit());
        out.push(match c {
            ' ' if quoted == 0 && before.is_ascii_digit() && starts_with_unit(rest) => NO_BREAK_SPACE,
            ' ' if quoted == 0 && before == '×' && number => NO_BREAK_SPACE,
            '-' if quoted == 0 && number && matches!(before, ' ' | '[' | '(' | '±') => MINUS,
            _ => c,
        });
        before = c;
    }
    out
}

fn starts_with_unit(text: &str) -> bool {
    let word =
        text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '%' | '×'))).next().unwrap_or_default();
    UNITS.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::typeset;

    #[test]
    fn numbers_keep_their_units_and_signs() {
        assert_eq!(typeset("-31.0 % [-31.4, 2 kB]"), "−31.0\u{a0}% [−31.4, 2\u{a0}kB]");
        assert_eq!(typeset("4 more, 10 s."), "4 more, 10\u{a0}s.");
        assert_eq!(typeset("4.97 × to 5.63 ×; 7 ps"), "4.97\u{a0}× to 5.63\u{a0}×; 7\u{a0}ps");
        assert_eq!(typeset("2 → 1,188 times, × 594.07"), "2 → 1,188 times, ×\u{a0}594.07");
    }

    #[test]
    fn quoted_commands_can_be_copied() {
        let text = "‘head -5 2 B’ takes 3 ms, and so does ‘gzip -6’";
        assert_eq!(typeset(text), "‘head -5 2 B’ takes 3\u{a0}ms, and so does ‘gzip -6’");
    }
}
