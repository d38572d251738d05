//! Patterns for the names of models: `*` stands for any text, `?` for one character.

use std::fmt;

/// A pattern, matched against a whole name. Upper and lower case differ, as they do in names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob(String);

impl Glob {
    pub fn new(pattern: impl Into<String>) -> Glob {
        Glob(pattern.into())
    }

    pub fn matches(&self, name: &str) -> bool {
        fits(self.0.as_bytes(), name.as_bytes())
    }
}

/// Goes back to the last star only: linear in name times stars, whatever the pattern.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(one) if *one == b'?' || *one == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    p = at + 1;
                    n = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|one| *one == b'*')
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Glob;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, matches) in [
            ("gpt-4.1", "gpt-4.1", true),
            ("gpt-4.1", "gpt-4.1-mini", false),
            ("gpt-4.1*", "gpt-4.1-mini", true),
            ("*mini", "gpt-4.1-mini", true),
            ("gpt-*-mini", "gpt-4.1-mini", true),
            ("gpt-?.1", "gpt-4.1", true),
            ("gpt-?", "gpt-", false),
            ("*a*b*c", "xxaxxbxxbc", true),
            ("*", "", true),
            ("", "x", false),
            ("GPT*", "gpt-4", false),
        ] {
            assert_eq!(Glob::new(pattern).matches(name), matches, "{pattern} {name}");
        }
    }
}
