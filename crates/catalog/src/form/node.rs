//! The parsed file as a plain tree that remembers the line of every key.

use std::collections::BTreeMap;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::LineInFile;

#[derive(Clone, Debug)]
pub(crate) struct FormNode {
    pub(crate) value: FormValue,
    /// The line of the key (of the header, for a table).
    pub(crate) place: LineInFile,
    /// Somebody read it: a key nobody reads is a mistake.
    pub(crate) asked: bool,
}

impl FormNode {
    pub(super) fn new(value: FormValue, place: LineInFile) -> FormNode {
        FormNode { value, place, asked: false }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum FormValue {
    Text(String),
    Int(i128),
    /// As written: this crate computes with no floats.
    Decimal(String),
    Bool(bool),
    Time(String),
    List(Vec<FormNode>),
    Table(BTreeMap<String, FormNode>),
    /// From the environment: text that each reader understands in its own way.
    Loose(String),
    /// Handed out to a form of its own.
    Taken,
}

impl FormValue {
    /// What it is, for people.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            FormValue::Text(_) | FormValue::Loose(_) => "a text",
            FormValue::Int(_) => "a whole number",
            FormValue::Decimal(_) => "a decimal number",
            FormValue::Bool(_) => "true or false",
            FormValue::Time(_) => "a date or time",
            FormValue::List(_) => "a list",
            FormValue::Table(_) | FormValue::Taken => "a table",
        }
    }
}

/// Reads a file, or a part of it that begins after so many lines: the tree, and the syntax errors.
pub(super) fn read(
    file: &Arc<str>,
    text: &str,
    before: usize,
) -> (BTreeMap<String, FormNode>, Vec<(LineInFile, String)>) {
    let lines = Lines::of(file, text, before);
    let (table, errors) = DeTable::parse_recoverable(text);
    let errors = errors
        .iter()
        .map(|error| {
            let at = error.span().map_or(0, |span| span.start);
            (lines.place(at), format!("is not TOML: {}", error.message().trim()))
        })
        .collect();
    (lines.table(table.into_inner()), errors)
}

struct Lines<'f> {
    file: &'f Arc<str>,
    /// Lines of the file before the text.
    before: usize,
    /// Offset of the first byte of every line.
    starts: Vec<usize>,
}

impl<'f> Lines<'f> {
    fn of(file: &'f Arc<str>, text: &str, before: usize) -> Lines<'f> {
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(newlines.map(|(at, _)| at + 1)).collect();
        Lines { file, before, starts }
    }

    fn place(&self, offset: usize) -> LineInFile {
        LineInFile::line(self.file, self.before + self.starts.partition_point(|start| *start <= offset))
    }

    fn table(&self, table: DeTable<'_>) -> BTreeMap<String, FormNode> {
        table
            .into_iter()
            .map(|(key, value)| {
                let place = self.place(key.span().start);
                let value = self.value(value.into_inner());
                (key.into_inner().into_owned(), FormNode::new(value, place))
            })
            .collect()
    }

    fn value(&self, value: DeValue<'_>) -> FormValue {
        match value {
            DeValue::String(text) => FormValue::Text(text.into_owned()),
            DeValue::Integer(int) => {
                // Past 128 bits it is out of every range anyway.
                let most = if int.as_str().starts_with('-') { i128::MIN } else { i128::MAX };
                FormValue::Int(i128::from_str_radix(int.as_str(), int.radix()).unwrap_or(most))
            }
            DeValue::Float(float) => FormValue::Decimal(float.as_str().to_owned()),
            DeValue::Boolean(flag) => FormValue::Bool(flag),
            DeValue::Datetime(time) => FormValue::Time(time.to_string()),
            DeValue::Array(items) => FormValue::List(items.into_iter().map(|item| self.item(item)).collect()),
            DeValue::Table(table) => FormValue::Table(self.table(table)),
        }
    }

    fn item(&self, item: Spanned<DeValue<'_>>) -> FormNode {
        let place = self.place(item.span().start);
        FormNode::new(self.value(item.into_inner()), place)
    }
}
