//! Columns of text: pads and truncates texts, and aligns numbers on their decimal points.

use super::colours::{DIM, OPEN};
use super::output::WIDEST;
use scruple_stats::sorting::SortedMap;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Pads or truncates a text to exactly this many columns.
pub(crate) fn fit(text: &str, columns: usize) -> String {
    let width = text.width();
    if width <= columns {
        return format!("{text}{}", " ".repeat(columns - width));
    }
    let mut cut = String::new();
    let mut used = 0;
    for c in text.chars() {
        let w = c.width().unwrap_or(0);
        if used + w + 1 > columns {
            break;
        }
        cut.push(c);
        used += w;
    }
    format!("{cut}…{}", " ".repeat(columns.saturating_sub(used + 1)))
}

/// Pads or truncates the name of an arm. Its version stays, because arms may differ by nothing else.
pub(crate) fn fit_name(name: &str, columns: usize) -> String {
    let at = name.rfind(" @").unwrap_or(name.len());
    let (subject, whole) = name.split_at(at);
    // The commit in parentheses after the name of a version is the first part that may be left out.
    let short = whole.split(" (").next().unwrap_or_default();
    let fits = |version: &&str| columns.saturating_sub(version.width()) >= LEAST_SUBJECT;
    match [whole, short].into_iter().filter(|version| !version.is_empty()).find(fits) {
        Some(version) if name.width() > columns => fit(subject, columns - version.width()) + version,
        _ => fit(name, columns),
    }
}

/// Pads or truncates the names of arms that stand in one table. Names that would look the same keep what
/// distinguishes them: each is shown from its first different character on, after as much of its beginning as fits.
pub(crate) fn fit_names<'a>(names: &[&'a str], columns: usize) -> SortedMap<&'a str, String> {
    let mut alike: SortedMap<String, Vec<&str>> = SortedMap::new();
    for name in names {
        let group = alike.entry(fit_name(name, columns)).or_default();
        if !group.contains(name) {
            group.push(name);
        }
    }
    let mut fitted = SortedMap::new();
    for (text, group) in alike {
        for name in &group {
            let others = group.iter().filter(|other| *other != name);
            let text = match others.map(|other| common_beginning(name, other)).max() {
                None => text.clone(),
                Some(shared) => {
                    let (beginning, rest) = name.split_at(shared);
                    let room = columns.saturating_sub(LEAST_SUBJECT.min(beginning.width()));
                    let end = fit(rest, room);
                    fit(beginning, columns - end.trim_end().width()) + end.trim_end()
                }
            };
            fitted.insert(*name, text);
        }
    }
    fitted
}

/// Returns the length in bytes of the text with which both texts begin.
fn common_beginning(one: &str, other: &str) -> usize {
    let both = one.char_indices().zip(other.chars());
    both.take_while(|((_, a), b)| a == b).last().map_or(0, |((at, c), _)| at + c.len_utf8())
}

/// The least number of columns for the subject in a truncated name.
const LEAST_SUBJECT: usize = 3;

/// Names the columns of a table that were left out because it is wider than the output, and says how to see them. Returns
/// an empty text if there are none.
pub(crate) fn left_out_line<S: AsRef<str>>(heads: &[S], whole: usize, width: usize) -> String {
    if heads.is_empty() {
        return String::new();
    }
    let heads: Vec<&str> = heads.iter().map(AsRef::as_ref).collect();
    let how = match whole <= WIDEST {
        true => format!("set COLUMNS={whole} to see them"),
        false => "--json has their figures".to_owned(),
    };
    let line = format!("Columns that do not fit: {}; {how}.", heads.join(", "));
    format!("{DIM}{}{DIM:#}\n", wrap(&line, width))
}

/// Pads a text on the left.
pub(crate) fn right(text: &str, columns: usize) -> String {
    format!("{}{text}", " ".repeat(columns.saturating_sub(text.width())))
}

/// Units, and other symbols that stay on the line of the number before them.
pub(crate) const UNITS: [&str; 19] = [
    "×", "%", "ps", "ns", "µs", "ms", "s", "B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "Hz", "k", "M",
    "G",
];

/// Breaks a line at spaces, so that no piece is wider than the terminal unless a single word is. A number and its unit
/// are one word, and so are a sign of multiplication and the factor after it. All pieces are indented as the line is.
pub(crate) fn wrap(text: &str, columns: usize) -> String {
    let mut words: Vec<String> = Vec::new();
    let is_command = |quoted: &str| quoted.starts_with(|first: char| first.is_ascii_lowercase());
    // The quotes of commands that are still to come.
    let mut left = text.matches('`').count();
    for word in text.split(' ') {
        let is_unit = UNITS.contains(&word.trim_end_matches([',', '.', ';', ':', ')', ']']));
        let is_number = word.starts_with(|first: char| first.is_ascii_digit());
        match words.last_mut() {
            Some(last)
                if is_unit && last.ends_with(|end: char| end.is_ascii_digit())
                    || is_number && *last == "×" =>
            {
                last.extend([" ", word]);
            }
            // A command can be copied only from a line of its own.
            Some(last) if left > 0 && last.rsplit_once('`').is_some_and(|(_, rest)| is_command(rest)) => {
                last.extend([" ", word]);
            }
            _ => words.push(word.to_owned()),
        }
        left -= word.matches('`').count();
    }
    let indent = &text[..text.len() - text.trim_start_matches(' ').len()];
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= columns => line.extend([" ", word.as_str()]),
            Some(_) => lines.push(format!("{indent}{word}")),
            None => lines.push(word),
        }
    }
    lines.join("\n")
}

/// Writes a remark: its sign, and below the sign nothing but spaces.
pub(crate) fn remark(text: &str, columns: usize) -> String {
    format!("{OPEN}!{OPEN:#} {}\n", wrap(text, columns.saturating_sub(2)).replace('\n', "\n  "))
}

/// Pads the cells of a column so that their decimal points are aligned, whatever the units of the cells are.
pub(crate) fn on_points(cells: &mut [String]) {
    let split = |cell: &str| {
        let number = cell.find(' ').unwrap_or(cell.len());
        let point = cell[..number].find('.').unwrap_or(number);
        (cell[..point].width(), cell[point..number].width(), cell[number..].width())
    };
    let parts: Vec<(usize, usize, usize)> = cells.iter().map(|cell| split(cell)).collect();
    let most = |pick: fn(&(usize, usize, usize)) -> usize| parts.iter().map(pick).max().unwrap_or(0);
    let (whole, fraction, unit) = (most(|p| p.0), most(|p| p.1), most(|p| p.2));
    for (cell, part) in cells.iter_mut().zip(&parts) {
        if cell.is_empty() {
            *cell = " ".repeat(whole + fraction + unit);
            continue;
        }
        let number = cell.find(' ').unwrap_or(cell.len());
        let (digits, symbol) = cell.split_at(number);
        *cell = format!(
            "{}{digits}{}{symbol}{}",
            " ".repeat(whole - part.0),
            " ".repeat(fraction - part.1),
            " ".repeat(unit - part.2)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_and_its_unit_stand_on_one_line() {
        assert_eq!(wrap("it is 4.97 × to 5.63 ×, 10 blocks", 20), "it is 4.97 × to\n5.63 ×, 10 blocks");
        assert_eq!(wrap("takes 12 ms", 8), "takes\n12 ms");
        assert_eq!(wrap("  net of that, it takes 12 ms", 16), "  net of that,\n  it takes 12 ms");
        assert_eq!(wrap("all of s and B", 6), "all of\ns and\nB");
        assert_eq!(wrap("60 times, × 5.9", 11), "60 times,\n× 5.9");
    }

    #[test]
    fn a_command_stands_on_one_line() {
        let text = "it is shallow: `git fetch --unshallow`, or `scruple doctor -h`, says more";
        let lines = "it is shallow:\n`git fetch --unshallow`,\nor\n`scruple doctor -h`,\nsays more";
        assert_eq!(wrap(text, 18), lines);
        assert_eq!(wrap("a single `quote is no command", 12), "a single\n`quote is no\ncommand");
    }

    #[test]
    fn the_lines_of_a_remark_stand_beside_its_sign() {
        let text = anstream::adapter::strip_str(&remark("the machine is busy", 13)).to_string();
        assert_eq!(text, "! the machine\n  is busy\n");
    }

    #[test]
    fn a_truncated_name_keeps_its_version() {
        assert_eq!(fit_name("gzip -c text.txt @tuesday", 12), "gz… @tuesday");
        assert_eq!(fit_name("gzip @old", 12), "gzip @old   ");
        assert_eq!(fit_name("gzip -c text.txt", 12), "gzip -c tex…");
        assert_eq!(fit_name("app @a-very-long-label", 12), "app @a-very…");
    }

    #[test]
    fn names_that_would_look_the_same_keep_what_distinguishes_them() {
        let names = ["head -c 9000000 /dev/zero", "head -c 9000000 /dev/urandom", "true", "true"];
        let fitted = fit_names(&names, 18);
        let shown: Vec<&str> = names.iter().map(|name| fitted[name].as_str()).collect();
        assert_eq!(
            shown,
            ["head -c 90000…zero", "head -c 90…urandom", "true              ", "true              "]
        );
        // One name begins with all of the other, and a difference may be longer than the column.
        let (one, other) = ("sort big.txt", "sort big.txt --parallel=1 --reverse");
        let fitted = fit_names(&[one, other, "sort big.txt --parallel=12"], 10);
        let mut shown: Vec<&String> = fitted.values().collect();
        assert!(shown.iter().all(|text| text.width() == 10), "{shown:?}");
        shown.dedup();
        assert_eq!(shown.len(), 3, "{shown:?}");
    }

    #[test]
    fn points_stand_below_each_other() {
        let mut cells: Vec<String> = ["1.48 ns", "809 µs", "12.5 ms", ""].map(str::to_owned).to_vec();
        on_points(&mut cells);
        assert_eq!(cells, ["  1.48 ns", "809    µs", " 12.5  ms", "         "]);
    }
}
