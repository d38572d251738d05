//! A mistake in a file, and the list they are collected in.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;

/// Something wrong with what a person wrote: where, in which field, and why.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Mistake {
    /// The file, or the environment variable that overrides it (then `line` is 0).
    pub file: String,
    pub line: usize,
    /// Dotted path of the field; empty when the file cannot be read as TOML at all.
    pub field: String,
    pub reason: String,
}

/// `catalog/demo.toml:12: model."demo".price.input: is missing: …`
impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        if !self.field.is_empty() {
            write!(f, ": {}", self.field)?;
        }
        write!(f, ": {}", self.reason)
    }
}

impl std::error::Error for Mistake {}

/// Where a value was written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineInFile {
    file: Arc<str>,
    line: usize,
}

impl LineInFile {
    pub fn line(file: &Arc<str>, line: usize) -> LineInFile {
        LineInFile { file: Arc::clone(file), line }
    }

    /// A value that comes from somewhere without lines, such as an environment variable.
    pub fn origin(name: &str) -> LineInFile {
        LineInFile { file: Arc::from(name), line: 0 }
    }

    /// The same place after the lines around it moved.
    pub(crate) fn moved(&self, file: &Arc<str>, from: usize, to: usize) -> LineInFile {
        LineInFile { file: Arc::clone(file), line: (self.line + to).saturating_sub(from) }
    }

    pub fn file_name(&self) -> &str {
        &self.file
    }

    pub fn line_number(&self) -> usize {
        self.line
    }

    pub fn mistake(&self, field: &str, reason: impl Into<String>) -> Mistake {
        Mistake { file: self.file.to_string(), line: self.line, field: field.to_owned(), reason: reason.into() }
    }
}

/// `catalog/demo.toml:12`, or the name of the environment variable.
impl fmt::Display for LineInFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.file),
            line => write!(f, "{}:{line}", self.file),
        }
    }
}

/// The growing list of mistakes; shared by all forms of one reading.
#[derive(Debug, Default)]
pub struct Mistakes(RefCell<Vec<Mistake>>);

impl Mistakes {
    pub fn add(&self, place: &LineInFile, field: &str, reason: impl Into<String>) {
        self.push(place.mistake(field, reason));
    }

    pub fn push(&self, mistake: Mistake) {
        self.0.borrow_mut().push(mistake);
    }

    pub fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// All of them, by file and line.
    pub fn into_list(self) -> Vec<Mistake> {
        let mut list = self.0.into_inner();
        list.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
        list.dedup();
        list
    }

    /// The value if nothing was wrong with it.
    pub fn result<T>(self, value: T) -> Result<T, Vec<Mistake>> {
        match self.into_list() {
            list if list.is_empty() => Ok(value),
            list => Err(list),
        }
    }
}
