//! The file of an export and the note beside it (`FILE.state`) that says where to go on. Entries
//! are on the disk before the note is; what was written twice by an accident in between is
//! recognised by its id.

use super::Params;
use super::entries::{id_of, plain};
use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Where an export stands.
#[derive(Serialize, Deserialize)]
pub struct ExportState {
    pub cell: String,
    /// What it was begun with.
    pub first: Params,
    pub next: Params,
    pub pages: u32,
    pub done: bool,
    #[serde(skip)]
    path: PathBuf,
}

impl ExportState {
    pub fn open(out: &Path, cell: &str, first: &Params) -> anyhow::Result<ExportState> {
        let mut name = out.as_os_str().to_owned();
        name.push(".state");
        let path = PathBuf::from(name);
        if !path.exists() {
            if out.exists() {
                bail!("{} exists and was not written by an export", out.display());
            }
            return Ok(ExportState {
                cell: cell.to_owned(),
                first: first.clone(),
                next: first.clone(),
                pages: 0,
                done: false,
                path,
            });
        }
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let state: ExportState = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
        if state.cell != cell || state.first != *first {
            bail!("{} belongs to another export, of {}: choose another file", out.display(), state.cell);
        }
        Ok(ExportState { path, ..state })
    }

    /// On to the next page, or to the end.
    pub fn turn(&mut self, next: Option<&Map<String, Value>>) {
        self.pages += 1;
        match next {
            Some(next) => {
                self.next = next.iter().filter_map(|(name, value)| Some((name.clone(), plain(value)?))).collect();
            }
            None => self.done = true,
        }
    }

    pub fn save(&self) -> anyhow::Result<()> {
        let mut name = self.path.as_os_str().to_owned();
        name.push(".new");
        std::fs::write(&name, serde_json::to_string(self)?)?;
        Ok(std::fs::rename(&name, &self.path)?)
    }
}

/// Entries in a file, each once.
pub struct Sheet {
    file: File,
    seen: HashSet<String>,
    before: usize,
    /// The columns of a CSV file, once they are known.
    columns: Option<Vec<String>>,
    csv: bool,
}

impl Sheet {
    pub fn open(path: &Path) -> anyhow::Result<Sheet> {
        let csv = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("csv"));
        let text = if path.exists() { std::fs::read_to_string(path)? } else { String::new() };
        let mut seen = HashSet::new();
        let mut columns = None;
        if csv {
            let mut rows = rows(&text).into_iter();
            columns = rows.next();
            seen.extend(rows.filter_map(|row| row.into_iter().next()));
        } else {
            let parsed = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            seen.extend(parsed.map(|entry| id_of(&entry)));
        }
        let file =
            OpenOptions::new().create(true).append(true).open(path).with_context(|| path.display().to_string())?;
        Ok(Sheet { file, before: seen.len(), seen, columns, csv })
    }

    pub fn add(&mut self, list: &[Value]) -> anyhow::Result<()> {
        let mut text = String::new();
        for entry in list {
            let id = id_of(entry);
            if !self.seen.insert(id.clone()) {
                continue;
            }
            if self.csv {
                let columns = self.columns.get_or_insert_with(|| {
                    let names = columns_of(entry);
                    text.push_str(&row(&names));
                    names
                });
                let cell = |name: &String| match entry.get(name) {
                    _ if name == "_id" => id.clone(),
                    Some(Value::Null) | None => String::new(),
                    Some(value) => plain(value).unwrap_or_else(|| value.to_string()),
                };
                text.push_str(&row(&columns.iter().map(cell).collect::<Vec<_>>()));
            } else {
                text.push_str(&entry.to_string());
                text.push('\n');
            }
        }
        self.file.write_all(text.as_bytes())?;
        Ok(self.file.sync_data()?)
    }

    pub fn count(&self) -> usize {
        self.seen.len()
    }

    pub fn added(&self) -> usize {
        self.seen.len() - self.before
    }
}

/// The first entry decides the columns; `_id` is what tells entries apart.
fn columns_of(entry: &Value) -> Vec<String> {
    let own = entry.as_object().into_iter().flat_map(Map::keys).cloned();
    std::iter::once("_id".to_owned()).chain(own).collect()
}

fn row(cells: &[String]) -> String {
    let quoted: Vec<String> = cells.iter().map(|cell| format!("\"{}\"", cell.replace('"', "\"\""))).collect();
    format!("{}\r\n", quoted.join(","))
}

/// The rows of a file that `row` wrote: every cell is in quotes. A row that was cut off is not one.
fn rows(text: &str) -> Vec<Vec<String>> {
    let (mut all, mut cells, mut cell, mut inside) = (Vec::new(), Vec::new(), String::new(), false);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match (letter, inside) {
            ('"', true) if letters.peek() == Some(&'"') => cell.extend(letters.next()),
            ('"', _) => inside = !inside,
            (',', false) => cells.push(std::mem::take(&mut cell)),
            ('\n', false) => {
                cells.push(std::mem::take(&mut cell));
                all.push(std::mem::take(&mut cells));
            }
            ('\r', false) => {}
            (other, _) => cell.push(other),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_export_goes_on_where_it_stopped_and_writes_each_entry_once() {
        let dir = tempfile::tempdir().expect("a folder");
        for name in ["a.jsonl", "a.csv"] {
            let path = dir.path().join(name);
            let first = vec![("keyword".to_owned(), "x".to_owned())];
            let mut state = ExportState::open(&path, "p/search", &first).expect("new");
            let mut sheet = Sheet::open(&path).expect("new");
            sheet.add(&[json!({"id": 1, "text": "a \"b\",\nc"}), json!({"id": 2}), json!({"id": 1})]).expect("written");
            state.turn(json!({"cursor": "c2", "n": 3}).as_object());
            state.save().expect("saved");
            assert_eq!((sheet.count(), sheet.added()), (2, 2));

            let again = ExportState::open(&path, "p/search", &first).expect("known");
            assert_eq!(again.next, [("cursor".to_owned(), "c2".to_owned()), ("n".to_owned(), "3".to_owned())]);
            assert!(ExportState::open(&path, "p/user", &first).is_err(), "another export");
            let mut sheet = Sheet::open(&path).expect("known");
            sheet.add(&[json!({"id": 2}), json!({"id": 3})]).expect("written");
            assert_eq!((sheet.count(), sheet.added()), (3, 1), "{name}");
        }
        let text = std::fs::read_to_string(dir.path().join("a.csv")).expect("read");
        assert_eq!(
            text,
            "\"_id\",\"id\",\"text\"\r\n\"1\",\"1\",\"a \"\"b\"\",\nc\"\r\n\"2\",\"2\",\"\"\r\n\"3\",\"3\",\"\"\r\n"
        );
        std::fs::write(dir.path().join("other"), "mine").expect("written");
        assert!(
            ExportState::open(&dir.path().join("other"), "p/search", &Vec::new()).is_err(),
            "not ours to write into"
        );
    }
}
