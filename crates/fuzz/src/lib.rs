//! Feeds parsers with damaged inputs, which are drawn from a corpus and a seed.
//!
//! Each input of the corpus is tried whole, cut short at many places, and then changed at random: bits, bytes, numbers,
//! repeated, removed and exchanged parts. A parser may refuse an input; it must not panic. `SCRUPLE_FUZZ_TRIES` sets
//! the number of random inputs (300 without it), `SCRUPLE_FUZZ_SEED` the seed (1 without it). An input that a parser
//! does not survive is written to a file; add it to the corpus, so that it is tried from then on.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::{env, fs};

/// The number of random inputs, unless `SCRUPLE_FUZZ_TRIES` sets it.
const TRIES: u64 = 300;

/// Places at which each input is cut short.
const CUTS: usize = 100;

/// A longer input is not changed further: it would cost time and show nothing new.
const LONGEST: usize = 1 << 17;

/// Texts that parsers often handle wrongly.
const DICTIONARY: [&[u8]; 24] = [
    b"0",
    b"-1",
    b"18446744073709551615",
    b"9223372036854775808",
    b"1e308",
    b"-1e999",
    b"NaN",
    b"0.1.2",
    b"0x",
    b"null",
    b"[[[[[[[[",
    b"{\"",
    b"\"\\u0000\"",
    b"\\",
    b"\0",
    b"\n",
    b"\r\n\r\n",
    b"\t",
    b" ",
    b"=",
    b":",
    b",",
    b"\xff\xfe",
    "\u{202e}é".as_bytes(),
];

/// Inputs that a parser reads, each with a name.
#[derive(Clone, Debug, Default)]
pub struct Corpus {
    inputs: Vec<(String, Vec<u8>)>,
}

impl Corpus {
    /// The corpus of that name: the files of `crates/fuzz/corpus/NAME`.
    pub fn named(name: &str) -> Corpus {
        Corpus::folder(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/corpus")).join(name))
    }

    /// All files of a folder and the folders in it.
    pub fn folder(path: impl AsRef<Path>) -> Corpus {
        let mut corpus = Corpus::default();
        corpus.add_folder(path.as_ref());
        assert!(!corpus.inputs.is_empty(), "the corpus ‘{}’ has no files", path.as_ref().display());
        corpus
    }

    /// The corpus with another input.
    pub fn with(mut self, name: &str, input: impl Into<Vec<u8>>) -> Corpus {
        self.inputs.push((name.to_owned(), input.into()));
        self
    }

    fn add_folder(&mut self, folder: &Path) {
        let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            match path.is_dir() {
                true => self.add_folder(&path),
                false => {
                    let input = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                    self.inputs.push((path.display().to_string(), input));
                }
            }
        }
    }

    /// Passes every input and its damaged versions to the parser, and fails with the first that it does not survive.
    pub fn is_survived_by(&self, parse: impl Fn(&[u8])) {
        for (name, input) in &self.inputs {
            attempt(name, input, &parse);
            for cut in 0..CUTS.min(input.len()) {
                attempt(name, &input[..input.len() * cut / CUTS], &parse);
            }
        }
        let seed = number("SCRUPLE_FUZZ_SEED", 1);
        let mut random = Random(seed);
        for _ in 0..number("SCRUPLE_FUZZ_TRIES", TRIES) {
            let (name, input) = &self.inputs[random.below(self.inputs.len())];
            let (_, other) = &self.inputs[random.below(self.inputs.len())];
            attempt(&format!("{name}, seed {seed}"), &damaged(input, other, &mut random), &parse);
        }
    }

    /// The same for a parser of text: bytes that are not UTF-8 are replaced.
    pub fn is_survived_by_text(&self, parse: impl Fn(&str)) {
        self.is_survived_by(|input| parse(&String::from_utf8_lossy(input)));
    }
}

fn number(variable: &str, otherwise: u64) -> u64 {
    match env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|error| panic!("{variable}={text}: {error}")),
        Err(_) => otherwise,
    }
}

fn attempt(name: &str, input: &[u8], parse: &impl Fn(&[u8])) {
    if catch_unwind(AssertUnwindSafe(|| parse(input))).is_ok() {
        return;
    }
    let path = env::temp_dir().join(format!("scruple-fuzz-{}-{}", std::process::id(), input.len()));
    let written = fs::write(&path, input);
    panic!("a damaged version of {name} is not survived; it is in {} ({written:?})", path.display());
}

/// One to six changes of an input.
fn damaged(input: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..=random.below(6) {
        if bytes.len() > LONGEST {
            break;
        }
        let at = random.below(bytes.len() + 1);
        let part = random.part(&bytes);
        match random.below(9) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 if at < bytes.len() => bytes[at] = random.below(256) as u8,
            2 => drop(bytes.splice(at..at, DICTIONARY[random.below(DICTIONARY.len())].iter().copied())),
            3 => drop(bytes.drain(part)),
            4 => {
                let repeated: Vec<u8> = bytes[part].repeat(1 + random.below(20));
                bytes.splice(at..at, repeated);
            }
            5 => {
                let theirs = other[random.part(other)].to_vec();
                bytes.splice(part, theirs);
            }
            6 => another_number(&mut bytes, at, random),
            7 => another_line(&mut bytes, random),
            _ => bytes.truncate(at),
        }
    }
    bytes
}

/// Replaces the first number after a place.
fn another_number(bytes: &mut Vec<u8>, at: usize, random: &mut Random) {
    let Some(first) = bytes[at..].iter().position(u8::is_ascii_digit).map(|offset| at + offset) else {
        return;
    };
    let end =
        bytes[first..].iter().position(|byte| !byte.is_ascii_digit()).map_or(bytes.len(), |n| first + n);
    let number = match random.below(3) {
        0 => random.next().to_string().into_bytes(),
        1 => random.below(300).to_string().into_bytes(),
        _ => DICTIONARY[random.below(10)].to_vec(),
    };
    bytes.splice(first..end, number);
}

/// Moves a line to another place.
fn another_line(bytes: &mut Vec<u8>, random: &mut Random) {
    let mut lines: Vec<Vec<u8>> = bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    if lines.len() > 1 {
        let line = lines.remove(random.below(lines.len()));
        lines.insert(random.below(lines.len() + 1), line);
        *bytes = lines.concat();
    }
}

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which is not 0.
    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// A part of the bytes, mostly a short one.
    fn part(&mut self, bytes: &[u8]) -> std::ops::Range<usize> {
        let start = self.below(bytes.len() + 1);
        let longest = if self.below(4) == 0 { bytes.len() } else { 16 };
        start..(start + self.below(longest + 1)).min(bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn inputs_are_tried_whole_cut_short_and_changed_and_the_same_ones_each_time() {
        let corpus = Corpus::default().with("a", "number 12\nline two\n").with("b", "x=1");
        let tried = || {
            let all = RefCell::new(Vec::new());
            corpus.is_survived_by(|input| all.borrow_mut().push(input.to_vec()));
            all.into_inner()
        };
        let all = tried();
        assert_eq!(all, tried());
        assert!(all.contains(&b"number 12\nline two\n".to_vec()) && all.contains(&Vec::new()));
        let mut distinct = all.clone();
        distinct.sort();
        distinct.dedup();
        assert!(distinct.len() > TRIES as usize / 2, "{}", distinct.len());
    }

    #[test]
    fn a_parser_that_panics_is_found_and_its_input_is_kept() {
        let parse = |text: &str| {
            text.split(' ')
                .filter(|word| word.len() > 18)
                .for_each(|word| assert!(word.parse::<u64>().is_ok(), "{word}"));
        };
        let corpus = Corpus::default().with("numbers", "1 2 3 4 5 6 7 8");
        let found = catch_unwind(|| corpus.is_survived_by_text(parse)).expect_err("a panic");
        let message = found.downcast_ref::<String>().expect("a message");
        let path = message.split("it is in ").nth(1).and_then(|rest| rest.strip_suffix(" (Ok(()))"));
        let path = path.unwrap_or_else(|| panic!("{message}"));
        let input = fs::read(path).expect("the input");
        fs::remove_file(path).expect("a file to remove");
        assert!(catch_unwind(|| parse(&String::from_utf8_lossy(&input))).is_err());
    }
}
