//! The list of what a translation could not carry over. Nothing disappears without a line here.

use std::fmt;

/// Fields of the caller's request that the provider did not get; for the `x-tollgate-dropped`
/// header and the usage row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dropped(Vec<String>);

/// Longest list; what is beyond is shown as `…`.
const MOST: usize = 64;
/// Longest name.
const MOST_NAME: usize = 80;

impl Dropped {
    /// Adds a field once. Names come from callers, so they are cut to what a header can carry.
    pub fn add(&mut self, field: &str) {
        let mut name: String =
            field.chars().map(|c| if c.is_ascii_graphic() && c != ',' { c } else { '?' }).take(MOST_NAME).collect();
        if name.is_empty() {
            name.push('?');
        }
        match self.0.len() {
            0..MOST if !self.0.contains(&name) => self.0.push(name),
            MOST => self.0.push("...".to_owned()),
            _ => {}
        }
    }

    /// Adds all of another list.
    pub fn extend(&mut self, other: &Dropped) {
        other.0.iter().for_each(|field| self.add(field));
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn fields(&self) -> &[String] {
        &self.0
    }
}

/// Names separated by commas.
impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_and_the_list_is_bounded() {
        let mut dropped = Dropped::default();
        dropped.add("top_k");
        dropped.add("top_k");
        dropped.add("a,b\r\nx-evil: 1\u{e9}");
        assert_eq!(dropped.to_string(), "top_k,a?b??x-evil:?1?");
        for at in 0..200 {
            dropped.add(&format!("f{at}"));
        }
        assert_eq!(dropped.fields().len(), MOST + 1);
        assert!(dropped.to_string().ends_with(",..."));
    }
}
