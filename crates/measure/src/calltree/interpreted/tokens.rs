//! Divides a text in JavaScript into tokens, as far as counting them requires: comments and white space are not tokens,
//! and neither the layout nor the length of a name matters.

use std::ops::Range;

/// Operators of several characters, longer ones first.
const OPERATORS: [&str; 35] = [
    ">>>=", "...", "===", "!==", "**=", "<<=", ">>=", ">>>", "&&=", "||=", "??=", "=>", "==", "!=", "<=",
    ">=", "&&", "||", "??", "?.", "++", "--", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<", ">>",
    "**", "#!", "//",
];

/// Words after which a slash begins a regular expression.
const BEFORE_PATTERN: [&str; 15] = [
    "return",
    "typeof",
    "case",
    "in",
    "of",
    "delete",
    "void",
    "throw",
    "new",
    "else",
    "do",
    "instanceof",
    "yield",
    "await",
    "default",
];

/// Returns the places of the tokens.
pub(super) fn tokens(text: &[u16]) -> Vec<Range<usize>> {
    let mut reader = Tokenizer { text, at: 0, found: Vec::new(), braces: Vec::new() };
    if reader.begins("#!") {
        reader.skip_line();
    }
    while reader.at < text.len() {
        reader.next();
    }
    reader.found
}

/// Whether a token is a name or a keyword.
pub(super) fn is_word(token: &[u16]) -> bool {
    token.first().is_some_and(|unit| is_part_of_word(*unit) && !is_digit(*unit))
}

fn character(unit: u16) -> char {
    char::from_u32(unit.into()).unwrap_or(char::REPLACEMENT_CHARACTER)
}

fn is_digit(unit: u16) -> bool {
    character(unit).is_ascii_digit()
}

fn is_part_of_word(unit: u16) -> bool {
    let letter = character(unit);
    // Halves of characters beyond the basic plane occur in names only.
    letter.is_alphanumeric() || "_$\\#".contains(letter) || letter == char::REPLACEMENT_CHARACTER
}

struct Tokenizer<'a> {
    text: &'a [u16],
    at: usize,
    found: Vec<Range<usize>>,
    /// For each open brace, whether it is in a template, whose text continues after the closing brace.
    braces: Vec<bool>,
}

impl Tokenizer<'_> {
    fn unit(&self, ahead: usize) -> char {
        self.text.get(self.at + ahead).map_or('\0', |unit| character(*unit))
    }

    fn begins(&self, word: &str) -> bool {
        word.chars().enumerate().all(|(ahead, letter)| self.unit(ahead) == letter)
    }

    fn skip_line(&mut self) {
        while self.at < self.text.len() && !matches!(self.unit(0), '\n' | '\r' | '\u{2028}' | '\u{2029}') {
            self.at += 1;
        }
    }

    fn next(&mut self) {
        let start = self.at;
        match self.unit(0) {
            letter if letter.is_whitespace() || letter == '\u{feff}' => {
                self.at += 1;
                return;
            }
            '/' if self.unit(1) == '/' => return self.skip_line(),
            '/' if self.unit(1) == '*' => {
                self.at += 2;
                while self.at < self.text.len() && !self.begins("*/") {
                    self.at += 1;
                }
                self.at = (self.at + 2).min(self.text.len());
                return;
            }
            quote @ ('"' | '\'') => self.quoted(quote),
            '`' => self.template(),
            '}' if self.braces.pop() == Some(true) => self.template(),
            '/' if self.may_begin_pattern() => self.pattern(),
            '.' if self.unit(1).is_ascii_digit() => self.number(),
            letter if letter.is_ascii_digit() => self.number(),
            _ if is_part_of_word(self.text[start]) => {
                while self.text.get(self.at).is_some_and(|unit| is_part_of_word(*unit)) {
                    self.at += 1;
                }
            }
            letter => {
                if letter == '{' {
                    self.braces.push(false);
                }
                let operator = OPERATORS.iter().find(|operator| self.begins(operator));
                self.at += operator.map_or(1, |operator| operator.len());
            }
        }
        self.found.push(start..self.at);
    }

    fn quoted(&mut self, quote: char) {
        self.at += 1;
        while self.at < self.text.len() && !matches!(self.unit(0), '\n' | '\r') {
            match self.unit(0) {
                '\\' => self.at += 1,
                letter if letter == quote => break,
                _ => {}
            }
            self.at += 1;
        }
        self.at = (self.at + 1).min(self.text.len());
    }

    /// Reads a template from a quote or from the end of an expression to the next expression or its end.
    fn template(&mut self) {
        self.at += 1;
        while self.at < self.text.len() {
            match self.unit(0) {
                '\\' => self.at += 1,
                '`' => break,
                '$' if self.unit(1) == '{' => {
                    self.at += 1;
                    self.braces.push(true);
                    break;
                }
                _ => {}
            }
            self.at += 1;
        }
        self.at = (self.at + 1).min(self.text.len());
    }

    fn may_begin_pattern(&self) -> bool {
        let Some(last) = self.found.last().map(|place| &self.text[place.clone()]) else { return true };
        let word = String::from_utf16_lossy(last);
        match is_word(last) {
            true => BEFORE_PATTERN.contains(&word.as_str()),
            false => {
                let end = word.chars().last().unwrap_or(' ');
                !(matches!(end, ')' | ']' | '}' | '"' | '\'' | '`')
                    || last.first().is_some_and(|unit| is_digit(*unit)))
            }
        }
    }

    fn pattern(&mut self) {
        self.at += 1;
        let mut in_class = false;
        while self.at < self.text.len() && !matches!(self.unit(0), '\n' | '\r') {
            match self.unit(0) {
                '\\' => self.at += 1,
                '[' => in_class = true,
                ']' => in_class = false,
                '/' if !in_class => break,
                _ => {}
            }
            self.at += 1;
        }
        self.at = (self.at + 1).min(self.text.len());
        while self.text.get(self.at).is_some_and(|unit| is_part_of_word(*unit)) {
            self.at += 1;
        }
    }

    fn number(&mut self) {
        while self.text.get(self.at).is_some_and(|unit| is_part_of_word(*unit) || character(*unit) == '.') {
            let is_exponent = matches!(self.unit(0), 'e' | 'E') && matches!(self.unit(1), '+' | '-');
            self.at += if is_exponent { 2 } else { 1 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let text: Vec<u16> = text.encode_utf16().collect();
        tokens(&text).into_iter().map(|place| String::from_utf16_lossy(&text[place])).collect()
    }

    #[test]
    fn texts_are_divided_as_javascript_divides_them() {
        for (text, expected) in [
            ("#!/usr/bin/node\nlet a=1.5e-3+.5", "let a = 1.5e-3 + .5"),
            ("a /* no */ / b // no\n/ c", "a / b / c"),
            ("x = /[/'\"]+\\//g.test(y)", "x = /[/'\"]+\\//g . test ( y )"),
            ("return /a b/; (1) / 2", "return /a b/ ; ( 1 ) / 2"),
            ("`a ${ {b: 1}.b + `c${d}` } e`.f", "`a ${ { b : 1 } . b + `c${ d }` } e` . f"),
            ("a?.b ?? c>>>=d ** -e", "a ?. b ?? c >>>= d ** - e"),
            ("'it\\'s' + \"// no\"", "'it\\'s' + \"// no\""),
            ("été.#x = 𝒳", "été . #x = 𝒳"),
            ("'not ended\nb", "'not ended\n b"),
            ("`not ended", "`not ended"),
        ] {
            assert_eq!(words(text).join(" "), expected);
        }
    }

    #[test]
    fn layout_does_not_matter() {
        assert_eq!(words("f(a,b){return a+b}").len(), words("f ( a , b ) {\n  return a + b // sum\n}").len());
    }
}
