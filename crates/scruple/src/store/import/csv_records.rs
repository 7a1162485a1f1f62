//! Parses comma-separated values.

use super::ImportError;

/// Returns the records of a text, each with the line where it begins. `delimiter` separates the cells, and quotes are
/// as in RFC 4180.
pub(super) fn records(text: &str, delimiter: char) -> Result<Vec<(usize, Vec<String>)>, ImportError> {
    let mut records = Vec::new();
    let mut record = vec![String::new()];
    let (mut quoted, mut line, mut first) = (false, 1, 1);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\n' {
            line += 1;
        }
        let Some(cell) = record.last_mut() else { break };
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                cell.push('"');
            }
            '"' => quoted = !quoted,
            _ if quoted => cell.push(c),
            c if c == delimiter => record.push(String::new()),
            '\r' => {}
            '\n' => {
                let done = std::mem::replace(&mut record, vec![String::new()]);
                if done != [""] {
                    records.push((first, done));
                }
                first = line;
            }
            _ => cell.push(c),
        }
    }
    if quoted {
        return Err(ImportError::at(format!("line {first}"), "the text ends inside a quoted cell"));
    }
    if record != [""] {
        records.push((first, record));
    }
    Ok(records)
}
