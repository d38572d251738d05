//! Prints docs/social-cells.md, written from the shipped cells.

use tollgate_catalog::load;
use tollgate_catalog::social::SHIPPED;

fn main() {
    let files: Vec<(String, String)> =
        SHIPPED.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    let catalog = load(&files).expect("the shipped cells are right");
    print!("{}", catalog.social.page());
}
