//! A start by hand or by `cargo bench`: the program executes Scruple on itself.

use crate::case::Declaration;
use crate::serve::end;
use std::env;
use std::ffi::OsString;

const HAND: &str = "SCRUPLE_BENCH_HAND";

/// Weighs the cases by Scruple, if any of them is selected, and returns the exit code.
pub fn main<'a>(me: &[OsString], cases: impl Iterator<Item = &'a Declaration>) -> i32 {
    if selects_none(me, cases) { 0 } else { weigh(me) }
}

/// The argument that `cargo bench` adds, which is not meant for the program.
const OF_CARGO: &str = "--bench";

pub fn is_started_by_cargo_bench(me: &[OsString]) -> bool {
    me.iter().any(|word| word == OF_CARGO)
}

/// Translates the arguments after `cargo bench --` to options of Scruple: plain words select cases, and nothing is
/// stored unless an option is about the store.
fn options_of_cargo(me: &[OsString]) -> Vec<OsString> {
    if !is_started_by_cargo_bench(me) {
        return Vec::new();
    }
    let mut options: Vec<OsString> = Vec::new();
    for word in me.iter().skip(1).filter(|word| *word != OF_CARGO) {
        if !word.to_string_lossy().starts_with('-') {
            options.push("--filter".into());
        }
        options.push(word.clone());
    }
    let store = ["--store", "--label", "--baseline", "--no-store"];
    let asked = |word: &OsString| store.iter().any(|option| word.to_string_lossy().starts_with(option));
    if !options.iter().any(asked) {
        options.push("--no-store".into());
    }
    options
}

/// Returns the program with its own arguments, which are none if `cargo bench` started it.
fn of_program(me: &[OsString]) -> &[OsString] {
    if is_started_by_cargo_bench(me) { &me[..1] } else { me }
}

/// Whether `cargo bench` selects cases, but none of these. It gives all benches of a package the same words, and does not
/// run the next bench if one fails. Scruple looks at the parameters of cases, so it decides if there are any.
fn selects_none<'a>(me: &[OsString], mut cases: impl Iterator<Item = &'a Declaration>) -> bool {
    let plain = |word: &&OsString| !word.to_string_lossy().starts_with('-');
    let words: Vec<_> = me.iter().skip(1).filter(plain).map(|word| word.to_string_lossy()).collect();
    let selected =
        |case: &Declaration, word: &str| case.name.contains(word) || case.tags.iter().any(|tag| tag == word);
    let may_be =
        |case: &Declaration| !case.params.is_empty() || words.iter().any(|word| selected(case, word));
    is_started_by_cargo_bench(me) && !words.is_empty() && !cases.any(may_be)
}

/// Executes Scruple on this program.
fn weigh(me: &[OsString]) -> i32 {
    if env::var_os(HAND).is_none() {
        let mut scruple = std::process::Command::new("scruple");
        scruple.arg("bench").args(options_of_cargo(me)).arg("--").args(of_program(me)).env(HAND, "1");
        #[cfg(unix)]
        let _ = std::os::unix::process::CommandExt::exec(&mut scruple);
        #[cfg(not(unix))]
        if let Ok(status) = scruple.status() {
            return status.code().unwrap_or(1);
        }
    }
    let words: Vec<String> = me.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    end(&format!("this is a bench program; run it with: scruple bench -- {}", words.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn words_behind_cargo_bench_select_cases_and_nothing_is_stored_unasked() {
        let me = words("bench --bench fnv parse --quick");
        assert_eq!(options_of_cargo(&me), words("--filter fnv --filter parse --quick --no-store"));
        assert_eq!(of_program(&me), words("bench"));
        let asked = words("bench --label=before --bench");
        assert_eq!(options_of_cargo(&asked), words("--label=before"));
        let by_hand = words("bench 10");
        assert!(options_of_cargo(&by_hand).is_empty());
        assert_eq!(of_program(&by_hand), words("bench 10"));
    }

    #[test]
    fn a_bench_without_the_selected_cases_does_not_fail() {
        let tagged = [Declaration { tags: vec!["quick".to_owned()], ..Declaration::new("fnv/one") }];
        let scanned = [Declaration { params: vec![("n".to_owned(), 10.into())], ..Declaration::new("sum") }];
        assert!(selects_none(&words("bench --bench parse"), tagged.iter()));
        for selecting in ["bench --bench", "bench --bench parse one", "bench quick --bench", "bench parse"] {
            assert!(!selects_none(&words(selecting), tagged.iter()), "{selecting}");
        }
        assert!(!selects_none(&words("bench --bench n=10"), scanned.iter()));
    }
}
