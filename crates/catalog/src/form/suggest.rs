//! "Did you mean": the nearest known name, when it is near enough to be a slip.

/// Names that are longer were not typed.
const LONGEST: usize = 100;

/// `; did you mean "input"?`, or nothing when no name is near.
pub fn did_you_mean<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(written, known).map_or_else(String::new, |name| format!("; did you mean {name:?}?"))
}

/// The known name that differs least from what was written, if that is little. What is written may
/// come from a stranger, so names that cannot be near are passed over before anything is compared.
pub fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = written.chars().count();
    if length > LONGEST {
        return None;
    }
    let near = length.max(3) / 3;
    known
        .into_iter()
        .filter(|name| name.chars().count().abs_diff(length) <= near)
        .map(|name| (distance(written, name), name))
        .filter(|(distance, _)| *distance <= near)
        .min()
        .map(|(_, name)| name)
}

/// Edits (insert, delete, replace, swap of neighbours) between two short names.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.to_lowercase().chars().collect();
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = match (i, j) {
                (0, n) | (n, 0) => n,
                _ => {
                    let cost = usize::from(a[i - 1] != b[j - 1]);
                    let mut best = (rows[i - 1][j] + 1).min(rows[i][j - 1] + 1).min(rows[i - 1][j - 1] + cost);
                    if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                        best = best.min(rows[i - 2][j - 2] + 1);
                    }
                    best
                }
            };
        }
    }
    rows[a.len()][b.len()]
}
