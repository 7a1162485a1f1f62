//! Numbers with their nouns in the singular or the plural.

use crate::unit;
use std::fmt::Display;

/// Returns the noun in the singular for one thing, else in the plural.
pub fn noun<C: PartialEq + From<u8>>(count: C, one: &str) -> String {
    let ends_in_hiss = ["s", "x", "ch", "sh"].iter().any(|end| one.ends_with(end));
    match count == C::from(1) {
        true => one.to_owned(),
        false => format!("{one}{}", if ends_in_hiss { "es" } else { "s" }),
    }
}

/// Returns the number with its noun: `1 version`, `2 versions`.
pub fn counted<C: PartialEq + From<u8> + Copy + Display>(count: C, one: &str) -> String {
    format!("{count} {}", noun(count, one))
}

/// Returns the number, in groups of three digits, with its noun: `1 version`, `2,000 versions`.
pub fn grouped(count: u64, one: &str) -> String {
    format!("{} {}", unit::grouped(count as f64), noun(count, one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular_and_all_else_is_not() {
        assert_eq!([0_usize, 1, 2].map(|count| counted(count, "block")), ["0 blocks", "1 block", "2 blocks"]);
        let hissing = ["process", "launch", "index"].map(|one| noun(2_u32, one));
        assert_eq!(hissing, ["processes", "launches", "indexes"]);
        assert_eq!(noun(1.0, "thread"), "thread");
        assert_eq!([1, 2_000].map(|count| grouped(count, "run")), ["1 run", "2,000 runs"]);
    }
}
