//! Cells of CSV.

use scruple_core::harmless_text::plain_lines;

/// Quotes a cell as RFC 4180 prescribes. An apostrophe is put before a text that a spreadsheet would take for a
/// formula, and characters that control a terminal are replaced.
pub(crate) fn quoted(cell: &str) -> String {
    let formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']) && cell.parse::<f64>().is_err();
    let cell = plain_lines(cell);
    let text = if formula { format!("'{cell}") } else { cell };
    match text.contains([',', ';', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_cell_is_neither_a_formula_nor_two_cells() {
        assert_eq!(quoted("=cmd|' /C calc'!A0"), "'=cmd|' /C calc'!A0");
        assert_eq!(quoted("@SUM(1,\"2\")"), "\"'@SUM(1,\"\"2\"\")\"");
        assert_eq!(quoted("-n a"), "'-n a");
        assert_eq!(quoted("-1.5e-3"), "-1.5e-3");
        assert_eq!(quoted("a;b"), "\"a;b\"");
        assert_eq!(quoted("\u{1b}[31m"), "\u{fffd}[31m");
    }
}
