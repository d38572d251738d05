//! docs/errors.md says what the table of errors says, row by row.

use tollgate_wire::error::Code;

#[test]
fn the_page_has_every_code_as_the_table_has_it() {
    let page = include_str!("../../../../docs/errors.md");
    for code in Code::ALL {
        let row = format!("| {} | `{}` | {} |", code.status(), code.code(), code.meaning());
        assert!(page.contains(&row), "docs/errors.md lacks the row\n{row}");
    }
    // Other tables of the page have several codes in a cell, or close codes of sessions.
    let is_row = |line: &&str| {
        let cells: Vec<&str> = line.split(" | ").collect();
        matches!(cells[..], [status, code, ..] if status.len() == "| 400".len()
            && status.get(2..).is_some_and(|status| status.parse::<u16>().is_ok()) && code.starts_with('`'))
    };
    let rows = page.lines().filter(is_row);
    assert_eq!(rows.count(), Code::ALL.len(), "docs/errors.md has a row that the table does not");
}
