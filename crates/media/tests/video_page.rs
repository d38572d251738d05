//! docs/video.md names every variant there is, and none that is not.

use std::collections::BTreeSet;
use tollgate_media::video::Variant;

#[test]
fn the_page_has_every_variant() {
    let page = include_str!("../../../docs/video.md");
    let table = page.split("## Variants").nth(1).and_then(|rest| rest.split("\n## ").next()).expect("the table");
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    let first = rows.filter_map(|row| row.split('|').nth(1));
    let named: BTreeSet<_> = first.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    let known: BTreeSet<_> = Variant::all().map(Variant::name).collect();
    assert_eq!(named, known);
}
