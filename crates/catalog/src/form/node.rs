//! The parsed file as a plain tree that remembers the line of every key.

use std::collections::BTreeMap;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Place;

#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) value: Value,
    /// The line of the key (of the header, for a table).
    pub(crate) place: Place,
    /// Somebody read it: a key nobody reads is a mistake.
    pub(crate) asked: bool,
}

impl Node {
    pub(super) fn new(value: Value, place: Place) -> Node {
        Node { value, place, asked: false }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(String),
    Int(i128),
    /// Kept as written: this crate computes with no floats.
    Decimal(String),
    Bool(bool),
    Time(String),
    List(Vec<Node>),
    Table(BTreeMap<String, Node>),
    /// From the environment: text that each reader understands in its own way.
    Loose(String),
    /// Handed out to a form of its own.
    Taken,
}

impl Value {
    /// What it is, for people.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Value::Text(_) | Value::Loose(_) => "a text",
            Value::Int(_) => "a whole number",
            Value::Decimal(_) => "a decimal number",
            Value::Bool(_) => "true or false",
            Value::Time(_) => "a date or time",
            Value::List(_) => "a list",
            Value::Table(_) | Value::Taken => "a table",
        }
    }
}

/// Reads a file, or a part of it that begins after so many lines: the tree, and the syntax errors.
pub(super) fn read(file: &Arc<str>, text: &str, before: usize) -> (BTreeMap<String, Node>, Vec<(Place, String)>) {
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

    fn place(&self, offset: usize) -> Place {
        Place::line(self.file, self.before + self.starts.partition_point(|start| *start <= offset))
    }

    fn table(&self, table: DeTable<'_>) -> BTreeMap<String, Node> {
        table
            .into_iter()
            .map(|(key, value)| {
                let place = self.place(key.span().start);
                let value = self.value(value.into_inner());
                (key.into_inner().into_owned(), Node::new(value, place))
            })
            .collect()
    }

    fn value(&self, value: DeValue<'_>) -> Value {
        match value {
            DeValue::String(text) => Value::Text(text.into_owned()),
            DeValue::Integer(int) => {
                // Past 128 bits it is out of every range anyway.
                let most = if int.as_str().starts_with('-') { i128::MIN } else { i128::MAX };
                Value::Int(i128::from_str_radix(int.as_str(), int.radix()).unwrap_or(most))
            }
            DeValue::Float(float) => Value::Decimal(float.as_str().to_owned()),
            DeValue::Boolean(flag) => Value::Bool(flag),
            DeValue::Datetime(time) => Value::Time(time.to_string()),
            DeValue::Array(items) => Value::List(items.into_iter().map(|item| self.item(item)).collect()),
            DeValue::Table(table) => Value::Table(self.table(table)),
        }
    }

    fn item(&self, item: Spanned<DeValue<'_>>) -> Node {
        let place = self.place(item.span().start);
        Node::new(self.value(item.into_inner()), place)
    }
}
