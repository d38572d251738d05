//! Who makes models: the table `[vendor."NAME"]`, which models name and the price list shows.

/// One vendor. Its number is what clients know it by: it is never given to another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vendor {
    pub id: i64,
    pub name: String,
    pub description: String,
    pub icon: Option<String>,
}
