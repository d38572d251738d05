//! docs/errors.md says what the table of errors says, row by row.

use tollgate_wire::error::Code;

#[test]
fn the_page_has_every_code_as_the_table_has_it() {
    let page = include_str!("../../../../docs/errors.md");
    for code in Code::ALL {
        let row = format!("| {} | `{}` | {} |", code.status(), code.code(), code.meaning());
        assert!(page.contains(&row), "docs/errors.md lacks the row\n{row}");
    }
    let rows = page
        .lines()
        .filter(|line| line.starts_with("| ") && line.matches('`').count() >= 2 && line[2..5].parse::<u16>().is_ok());
    assert_eq!(rows.count(), Code::ALL.len(), "docs/errors.md has a row that the table does not");
}
