//! What was sent and did not count, reported beside a task. A request may have a hundred thousand
//! such fields, and each is repeated whenever the task is shown: so many are listed by name, the
//! others by their number.

use super::Warning;

/// Warnings that are listed one by one.
const MOST: usize = 16;
/// The field under which the others are counted.
const MORE: &str = "…";

/// A list that does not grow without end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Warnings {
    list: Vec<Warning>,
    more: usize,
}

impl Warnings {
    pub fn push(&mut self, warning: Warning) {
        if self.list.len() < MOST { self.list.push(warning) } else { self.more += 1 }
    }

    /// The list as it is shown and stored.
    pub fn list(self) -> Vec<Warning> {
        let Warnings { mut list, more } = self;
        if more > 0 {
            list.push(Warning::new(MORE, format!("… and {more} more fields that did not count.")));
        }
        list
    }
}

impl Warnings {
    /// A list that was stored, perhaps before there was a bound.
    pub fn bounded(warnings: Vec<Warning>) -> Vec<Warning> {
        if warnings.len() <= MOST + 1 { warnings } else { warnings.into_iter().collect::<Warnings>().list() }
    }
}

impl FromIterator<Warning> for Warnings {
    fn from_iter<T: IntoIterator<Item = Warning>>(all: T) -> Warnings {
        let mut warnings = Warnings::default();
        all.into_iter().for_each(|one| warnings.push(Warning::new(one.field, one.message)));
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_are_a_few_and_a_number() {
        let of = |count: usize| {
            let all = (0..count).map(|at| Warning::new(format!("{at}{}", "x".repeat(10_000)), "why".repeat(1_000)));
            all.collect::<Warnings>().list()
        };
        assert_eq!(of(0), []);
        assert_eq!(of(MOST).len(), MOST);
        let many = of(100_000);
        assert_eq!(many.len(), MOST + 1);
        assert!(many[MOST].message.contains(&format!(" {} more", 100_000 - MOST)), "{:?}", many[MOST]);
        assert!(serde_json::to_string(&many).expect("JSON").len() < 16 << 10);
        // What was cut once is listed as it was before.
        assert_eq!(Warnings::bounded(many.clone()), many);
        let old = vec![Warning::new("f", "m"); 1_000];
        assert_eq!(Warnings::bounded(old).len(), MOST + 1);
    }
}
