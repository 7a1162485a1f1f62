//! Tables of values: a column for the commit or the time, and a column for each metric, or a single column of values.
//!
//! Both the user's own CSV and that of Otava (formerly Hunter) are such tables. Cells are separated by `,`, `;` or
//! tabs.

use super::{SeriesValue, Values, in_base_unit, time};
use crate::store::import::csv_records::records;
use crate::store::import::{ImportError, clean};

const COMMIT: &[&str] = &["commit", "revision", "version", "rev", "sha", "hash", "commit_hash"];
const TIME: &[&str] = &["time", "timestamp", "date", "datetime"];
const NUMBER: &[&str] = &["value", "result", "measurement"];
const SUBJECT: &[&str] = &["subject", "name", "benchmark", "test", "series"];
const METRIC: &[&str] = &["metric"];
const UNIT: &[&str] = &["unit"];

/// A table: rows of cells below a head.
pub(super) struct TextTable {
    pub head: Vec<String>,
    /// The rows, each with the place that an error message names.
    pub rows: Vec<(String, Vec<String>)>,
}

/// Returns the character that separates the cells of a text.
fn delimiter(text: &str) -> char {
    let first = text.lines().next().unwrap_or("");
    [',', ';', '\t'].into_iter().max_by_key(|c| (first.matches(*c).count(), *c == ',')).unwrap_or(',')
}

fn position(head: &[String], names: &[&str]) -> Option<usize> {
    head.iter().position(|name| names.iter().any(|known| name.trim().eq_ignore_ascii_case(known)))
}

/// Whether a text begins with the head of such a table.
pub fn recognises(text: &str) -> bool {
    let first = text.lines().next().unwrap_or("");
    let head: Vec<String> =
        first.split(delimiter(text)).map(|name| name.trim_matches('"').to_owned()).collect();
    head.len() > 1 && head.iter().any(|name| names_version(name))
}

/// Whether a column of this name holds commits or times.
pub(super) fn names_version(name: &str) -> bool {
    COMMIT.iter().chain(TIME).any(|known| name.trim().eq_ignore_ascii_case(known))
}

/// Whether a cell holds a value.
pub(super) fn is_number(cell: &str) -> bool {
    cell.trim().parse::<f64>().is_ok_and(f64::is_finite)
}

/// Reads a table of CSV.
pub fn read(text: &str, name: &str) -> Result<Values, ImportError> {
    let mut records = records(text, delimiter(text))?.into_iter();
    let (_, head) = records.next().ok_or_else(|| ImportError::at("the whole text", "it is empty"))?;
    let row = |(line, cells): (usize, Vec<String>)| {
        let place = format!("line {line}");
        // A number with a decimal comma would be read as two cells.
        if cells.iter().skip(head.len()).any(|cell| !cell.trim().is_empty()) {
            let what = format!("it has {} cells, and the head has {}", cells.len(), head.len());
            return Err(ImportError::at(place, what));
        }
        Ok((place, cells))
    };
    let rows = records.map(row).collect::<Result<_, _>>()?;
    values(&TextTable { head, rows }, name)
}

/// Returns the values of a table.
pub(super) fn values(table: &TextTable, name: &str) -> Result<Values, ImportError> {
    let head = &table.head;
    let [commit, moment, number] = [COMMIT, TIME, NUMBER].map(|names| position(head, names));
    let [subject, metric, unit] = [SUBJECT, METRIC, UNIT].map(|names| position(head, names));
    if commit.is_none() && moment.is_none() {
        return Err(ImportError::at("the head", "it has no column ‘commit’ or ‘time’"));
    }
    let mut found = Values::default();
    let named = [commit, moment, number, subject, metric, unit];
    let columns: Vec<usize> = match number {
        Some(number) => vec![number],
        None => (0..head.len()).filter(|column| !named.contains(&Some(*column))).collect(),
    };
    for column in columns {
        let cells =
            || table.rows.iter().filter_map(move |(place, row)| Some((place, row, row.get(column)?.trim())));
        let filled = cells().filter(|(_, _, cell)| !cell.is_empty());
        // A column of words, such as a branch, is ignored. A column of numbers with a few words is an error.
        if number.is_none() && !filled.clone().any(|(_, _, cell)| is_number(cell)) {
            found
                .left_out
                .entry(format!("the column ‘{}’ holds no numbers", clean(&head[column])))
                .or_default();
            continue;
        }
        let (title, of_title) = unit_of(&head[column]);
        for (place, row, cell) in filled {
            let cell_of = |column: Option<usize>| {
                column
                    .and_then(|column| row.get(column))
                    .map(|cell| cell.trim())
                    .filter(|cell| !cell.is_empty())
            };
            if !is_number(cell) {
                let what =
                    format!("‘{}’ in the column ‘{}’ is not a number", clean(cell), clean(&head[column]));
                return Err(ImportError::at(place, what));
            }
            let Some(version) = cell_of(commit).or_else(|| cell_of(moment)) else {
                return Err(ImportError::at(place, "there is neither a commit nor a time"));
            };
            let when = match cell_of(moment) {
                None => None,
                Some(text) => match time(text) {
                    Some(when) => Some(when),
                    None => return Err(ImportError::at(place, format!("‘{}’ is not a time", clean(text)))),
                },
            };
            let (number, unit) =
                in_base_unit(cell.parse().unwrap_or(f64::NAN), cell_of(unit).unwrap_or(of_title));
            found.values.push(SeriesValue {
                version: version.to_owned(),
                time: when,
                subject: cell_of(subject).unwrap_or(name).to_owned(),
                metric: cell_of(metric).unwrap_or(title).to_owned(),
                unit,
                number,
            });
        }
    }
    Ok(found)
}

/// Splits the title of a column into a name and a unit: `latency (ms)`, `size [MB]`.
fn unit_of(title: &str) -> (&str, &str) {
    let title = title.trim();
    let split = |open: char, close: char| title.strip_suffix(close)?.rsplit_once(open);
    match split('(', ')').or_else(|| split('[', ']')) {
        Some((name, unit)) if !name.trim().is_empty() => (name.trim(), unit.trim()),
        _ => (title, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scruple_core::unit::Unit;

    fn read_all(text: &str) -> Vec<(String, String, String, f64)> {
        assert!(recognises(text));
        let values = read(text, "own").expect("values").values;
        values.into_iter().map(|one| (one.version, one.subject, one.metric, one.number)).collect()
    }

    #[test]
    fn a_column_for_each_metric_or_one_for_the_value() {
        let wide = "time;commit;branch;metric1;size (kB)\n2024.01.01 3:00:00 +0100;aaa0;main;-1.5;2\n\
                    2024.01.02 3:00:00 +0100;aaa1;main;;3\n";
        let own = |version: &str, metric: &str, number: f64| {
            (version.to_owned(), "own".to_owned(), metric.to_owned(), number)
        };
        assert_eq!(
            read_all(wide),
            [own("aaa0", "metric1", -1.5), own("aaa0", "size", 2e3), own("aaa1", "size", 3e3)]
        );
        let left_out = read(wide, "own").expect("values").left_out;
        assert_eq!(left_out.into_keys().collect::<Vec<_>>(), ["the column ‘branch’ holds no numbers"]);
        let long = "commit,value,unit,name,metric\na,1,ms,parse,latency\nb,2,ms,parse,latency\n";
        assert_eq!(read_all(long)[1], ("b".to_owned(), "parse".to_owned(), "latency".to_owned(), 2e6));
        assert_eq!(read(long, "own").expect("values").values[0].unit, Unit::Nanoseconds);
    }

    #[test]
    fn errors_name_their_line() {
        let error = |text: &str| read(text, "own").map(|_| ()).expect_err("an error").to_string();
        assert!(error("commit,value\na,1\nb,many\n").contains("line 3"));
        assert!(error("time,value\nsoon,1\n").contains("‘soon’ is not a time"));
        assert!(error("commit,value\n,1\n").contains("neither a commit nor a time"));
        assert!(error("commit,value\na,1\nb,2,3\n").contains("line 3: it has 3 cells, and the head has 2"));
        assert!(read("commit,value\na,1,\n", "own").is_ok(), "an empty cell at the end");
        assert!(error("what,value\na,1\n").contains("no column ‘commit’ or ‘time’"));
    }
}
