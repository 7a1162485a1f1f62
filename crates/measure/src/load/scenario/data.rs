//! Reads files with values for sessions: CSV with a head of names, or JSON lines.

use super::capture::text_of;
use scruple_stats::rng::Pcg;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Which row a session takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Take {
    /// The next row, and the first again after the last.
    #[default]
    InTurn,
    /// The next row. After the last row no more sessions start.
    Once,
    /// A random row, determined by the seed.
    Random,
}

type DataRow = Vec<Vec<u8>>;

/// The rows of a file.
#[derive(Debug)]
pub struct DataRows {
    /// The name of the data in placeholders.
    pub(crate) name: String,
    pub(crate) columns: Vec<String>,
    /// The slot of the first column.
    pub(crate) slot: usize,
    take: Take,
    rows: Arc<Vec<DataRow>>,
    taken: AtomicUsize,
}

impl DataRows {
    /// Reads a file: JSON lines if its name ends in `.jsonl` or `.ndjson`, else CSV.
    ///
    /// # Errors
    /// Says what is wrong with the file, and in which line.
    pub(crate) fn read(name: &str, file: &Path, take: Take, slot: usize) -> Result<DataRows, String> {
        let wrong = |why: String| format!("cannot read the data ‘{}’: {why}", file.display());
        let text = std::fs::read(file).map_err(|error| wrong(error.to_string()))?;
        let lines = file.extension().is_some_and(|ending| ending == "jsonl" || ending == "ndjson");
        let (columns, rows) = if lines { json_lines(&text) } else { csv(&text) }.map_err(wrong)?;
        if rows.is_empty() {
            return Err(wrong("it has no rows: sessions need at least one".to_owned()));
        }
        let (rows, taken) = (Arc::new(rows), AtomicUsize::new(0));
        Ok(DataRows { name: name.to_owned(), columns, slot, take, rows, taken })
    }

    /// A copy that starts from the first row. Rows that may be used only once are then taken in turn.
    pub(crate) fn again(&self) -> DataRows {
        DataRows {
            name: self.name.clone(),
            columns: self.columns.clone(),
            slot: self.slot,
            take: if self.take == Take::Once { Take::InTurn } else { self.take },
            rows: Arc::clone(&self.rows),
            taken: AtomicUsize::new(0),
        }
    }

    /// The row for a new session; `None` if no rows are left.
    pub(crate) fn next(&self, random: &mut Pcg) -> Option<&[Vec<u8>]> {
        let count = self.rows.len();
        let row = match self.take {
            Take::Random => (random.unit() * count as f64) as usize,
            Take::InTurn => self.taken.fetch_add(1, Ordering::Relaxed) % count,
            Take::Once => self.taken.fetch_add(1, Ordering::Relaxed),
        };
        self.rows.get(row).map(Vec::as_slice)
    }
}

fn csv(text: &[u8]) -> Result<(Vec<String>, Vec<DataRow>), String> {
    let mut reader = csv::Reader::from_reader(text);
    let head = reader.headers().map_err(|error| error.to_string())?;
    let columns: Vec<String> = head.iter().map(|name| name.trim().to_owned()).collect();
    if let Some(twice) = columns.iter().enumerate().find(|(at, name)| columns[..*at].contains(name)) {
        return Err(format!("two columns are called ‘{}’: give them different names", twice.1));
    }
    let row = |record: csv::Result<csv::ByteRecord>| {
        let record = record.map_err(|error| error.to_string())?;
        Ok(record.iter().map(<[u8]>::to_vec).collect())
    };
    Ok((columns, reader.byte_records().map(row).collect::<Result<_, String>>()?))
}

fn json_lines(text: &[u8]) -> Result<(Vec<String>, Vec<DataRow>), String> {
    let text = std::str::from_utf8(text).map_err(|_| "it is not UTF-8".to_owned())?;
    let mut columns: Vec<String> = Vec::new();
    let mut rows = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |why: String| format!("line {}: {why}", number + 1);
        let object: Map<String, Value> = serde_json::from_str(line).map_err(|error| {
            wrong(format!("{error}; each line is an object such as {{\"name\": \"Ada\"}}"))
        })?;
        if columns.is_empty() {
            columns = object.keys().cloned().collect();
        }
        let value = |name: &String| {
            let value = object.get(name).and_then(text_of);
            value.ok_or_else(|| wrong(format!("there is no ‘{name}’, which the first line has: add it")))
        };
        rows.push(columns.iter().map(value).collect::<Result<_, _>>()?);
    }
    Ok((columns, rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(name: &str, text: &str, take: Take) -> Result<DataRows, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join(name);
        std::fs::write(&file, text).expect("written");
        DataRows::read("users", &file, take, 0)
    }

    fn taken(rows: &DataRows, times: usize) -> Vec<Option<String>> {
        let mut random = Pcg::new(7);
        let mut row = || rows.next(&mut random).map(|row| String::from_utf8_lossy(&row[0]).into_owned());
        (0..times).map(|_| row()).collect()
    }

    #[test]
    fn rows_are_taken_in_turn_once_or_at_random() {
        let text = "name,age\nAda,36\n\"Bob, jr\",7\n";
        let own = |name: &str| Some(name.to_owned());
        let in_turn = rows("u.csv", text, Take::InTurn).expect("read");
        assert_eq!(in_turn.columns, ["name", "age"]);
        assert_eq!(taken(&in_turn, 3), [own("Ada"), own("Bob, jr"), own("Ada")]);
        let once = rows("u.csv", text, Take::Once).expect("read");
        assert_eq!(taken(&once, 3), [own("Ada"), own("Bob, jr"), None]);
        assert_eq!(taken(&once.again(), 3).iter().flatten().count(), 3);
        let random = rows("u.csv", text, Take::Random).expect("read");
        let drawn = taken(&random, 100);
        assert!(drawn.contains(&own("Ada")) && drawn.contains(&own("Bob, jr")) && !drawn.contains(&None));
        assert_eq!(drawn, taken(&random, 100));
        let lines = "{\"id\": 1, \"name\": \"x\"}\n\n{\"name\": \"y\", \"id\": 2}\n";
        let lines = rows("u.jsonl", lines, Take::InTurn).expect("read");
        assert_eq!((lines.columns.len(), lines.rows.len()), (2, 2));
    }

    #[test]
    fn mistakes_in_data_are_named() {
        let wrong = |name: &str, text: &str| rows(name, text, Take::InTurn).expect_err("refused");
        assert!(wrong("u.csv", "a,b\n1\n").contains("line: 2"), "{}", wrong("u.csv", "a,b\n1\n"));
        assert!(wrong("u.csv", "a,a\n1,2\n").contains("two columns"));
        assert!(wrong("u.csv", "a,b\n").contains("no rows"));
        assert!(wrong("u.jsonl", "{\"a\": 1}\n{\"b\": 2}\n").contains("line 2: there is no ‘a’"));
        assert!(wrong("u.jsonl", "[1]\n").contains("line 1"));
    }
}
