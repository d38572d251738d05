//! Numbered migrations. The first is `schema.sql` of its database, every later one a file
//! `migrations/NNNN-name.sql` beside it; its place in the list is its number. A database keeps
//! number, name and fingerprint of each that has run (table `migration`), so a list that was
//! changed afterwards is noticed before anything is done. Never change a migration that was
//! released: add one.

use std::borrow::Cow;

use sha2::{Digest, Sha256};

use crate::error::StoreError;
use crate::world::Options;

#[derive(Clone, Debug)]
pub(crate) struct Migration {
    /// As its file is called.
    pub name: Cow<'static, str>,
    pub sql: Cow<'static, str>,
}

impl Migration {
    pub const fn new(name: &'static str, sql: &'static str) -> Self {
        Self { name: Cow::Borrowed(name), sql: Cow::Borrowed(sql) }
    }

    /// Of its words: comments and spacing may be mended.
    pub fn fingerprint(&self) -> String {
        let lines = self.sql.lines().map(|line| line.split("--").next().unwrap_or_default());
        let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
        Sha256::digest(words.join(" "))[..8].iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The list of this version; a test adds those of a later one.
#[cfg_attr(not(feature = "testing"), expect(unused_variables, reason = "only a test adds others"))]
pub(crate) fn of(own: &[Migration], options: &Options) -> Vec<Migration> {
    #[cfg_attr(not(feature = "testing"), expect(unused_mut, reason = "only a test adds others"))]
    let mut list = own.to_vec();
    #[cfg(feature = "testing")]
    for sql in options.version.iter().flat_map(|version| version.migrations.clone()) {
        list.push(Migration { name: format!("{:04}-later", list.len() + 1).into(), sql: sql.into() });
    }
    list
}

/// A row of the table `migration`.
pub(crate) struct Ran {
    pub number: i64,
    pub fingerprint: String,
}

/// How many have run, which can be more than this version knows. `ran` is in the order of numbers;
/// `place` is what was opened.
pub(crate) fn done(known: &[Migration], ran: &[Ran], place: &str) -> Result<usize, StoreError> {
    let numbered = ran.iter().map(|one| one.number).eq(1..=ran.len() as i64);
    let alike = ran.iter().zip(known).all(|(ran, known)| ran.fingerprint == known.fingerprint());
    if ran.is_empty() || !numbered || !alike {
        return Err(unreleased(place));
    }
    Ok(ran.len())
}

/// A database whose tables were never part of a release. Nothing was changed in it.
pub(crate) fn unreleased(place: &str) -> StoreError {
    StoreError::broken(format!(
        "{place} was made by an unreleased build whose tables differ from this version's, and was left as it is: \
         run the build that made it, or start with an empty data folder or database"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(list: &[Migration]) -> Vec<Ran> {
        let numbered = (1..).zip(list);
        numbered.map(|(number, one)| Ran { number, fingerprint: one.fingerprint() }).collect()
    }

    #[test]
    fn a_list_that_was_changed_is_noticed() {
        let list = [Migration::new("schema", "CREATE TABLE a (b)"), Migration::new("0002-c", "CREATE TABLE c (d)")];
        for known in 1..=2 {
            for have in 1..=2 {
                assert_eq!(done(&list[..known], &ran(&list[..have]), "x").expect("the same list"), have);
            }
        }
        let other = [Migration::new("schema", "CREATE TABLE a (c)")];
        let mut gap = ran(&list);
        gap.remove(0);
        for (known, have) in [(&other[..], ran(&list)), (&list[..], gap), (&list[..], Vec::new())] {
            let why = done(known, &have, "x.db").expect_err("another list").to_string();
            assert!(why.contains("x.db was made by an unreleased build"), "{why}");
        }
    }

    #[test]
    fn comments_and_spacing_do_not_count() {
        let one = Migration::new("a", "-- Why.\nCREATE TABLE a (\n  b INTEGER -- Bytes.\n);");
        assert_eq!(one.fingerprint(), Migration::new("b", "CREATE TABLE a ( b INTEGER );").fingerprint());
        assert_ne!(one.fingerprint(), Migration::new("a", "CREATE TABLE a ( b TEXT );").fingerprint());
    }

    /// Every file is in its list, in the place that its number says.
    #[test]
    fn the_files_are_numbered_as_they_run() {
        let lists = [
            ("src/sqlite", crate::sqlite::MIGRATIONS),
            ("src/sqlite/stored", crate::sqlite::RESPONSE_MIGRATIONS),
            ("src/postgres", crate::postgres::MIGRATIONS),
        ];
        for (folder, list) in lists {
            assert_eq!(list[0].name, "schema");
            let files = std::fs::read_dir(format!("{folder}/migrations")).into_iter().flatten().flatten();
            let mut names: Vec<String> = files.map(|file| file.file_name().to_string_lossy().into_owned()).collect();
            names.sort();
            let listed: Vec<String> = list[1..].iter().map(|one| format!("{}.sql", one.name)).collect();
            assert_eq!(names, listed, "{folder}");
            for (number, one) in (1..).zip(list).skip(1) {
                assert!(
                    one.name.starts_with(&format!("{number:04}-")),
                    "{folder}: {} has the number {number}",
                    one.name
                );
            }
        }
    }
}
