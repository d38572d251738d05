//! A TOML file as a form that people fill in: every field is asked for by name and checked where it
//! is read, every mistake is collected with its file, line and field, and what nobody asked for is
//! reported at the end.
//!
//! A reader that finds a mistake records it and returns a stand-in, so that reading goes on and all
//! mistakes come out at once; [`Mistakes::result`] then refuses the value as a whole.
//!
//! ```
//! use tollgate_catalog::form::{Form, Mistakes};
//! let mistakes = Mistakes::default();
//! let mut form = Form::parse("tollgate.toml", "[server]\nlisten = '127.0.0.1:8080'\n", &mistakes);
//! let mut server = form.table("server");
//! let listen: Option<std::net::SocketAddr> = server.parsed("listen");
//! let grace = server.duration_or("grace", std::time::Duration::from_secs(30));
//! server.finish();
//! form.finish();
//! assert_eq!(mistakes.result((listen, grace)).unwrap().0.unwrap().port(), 8080);
//! ```

mod json;
mod mistake;
mod node;
mod overrides;
mod scalars;
mod suggest;
mod tables;
mod units;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use mistake::{LineInFile, Mistake, Mistakes};
use node::{FormNode, FormValue};
pub use overrides::Override;
pub use suggest::{did_you_mean, nearest};
pub use units::{parse_duration, parse_size};

/// One table of the file. Ask for each field, then [`Form::finish`] it.
#[must_use = "call finish() so that unknown keys are reported"]
pub struct Form<'m> {
    /// Dotted path of this table, empty for the whole file.
    path: String,
    place: LineInFile,
    fields: BTreeMap<String, FormNode>,
    /// The names that were asked for and are not there, one per line: what an unknown key may have
    /// been meant as.
    absent: String,
    mistakes: &'m Mistakes,
    /// The file's syntax is broken: what the rest says would only mislead.
    muted: bool,
}

impl<'m> Form<'m> {
    /// Reads a file. Syntax errors are recorded at once; the form is then empty of further
    /// complaints.
    pub fn parse(file: &str, text: &str, mistakes: &'m Mistakes) -> Form<'m> {
        Form::parse_with(file, text, &[], mistakes)
    }

    /// The same with values laid over the file's, such as those of environment variables.
    pub fn parse_with(file: &str, text: &str, overrides: &[Override], mistakes: &'m Mistakes) -> Form<'m> {
        let file: Arc<str> = Arc::from(file);
        let (mut fields, errors) = node::read(&file, text, 0);
        let muted = !errors.is_empty();
        for (place, reason) in errors {
            mistakes.add(&place, "", reason);
        }
        for over in overrides {
            overrides::lay(&mut fields, over, mistakes);
        }
        Form { path: String::new(), place: LineInFile::line(&file, 1), fields, absent: String::new(), mistakes, muted }
    }

    /// A part of a file that begins after so many lines. `None`: it is not TOML by itself, and
    /// nothing was recorded.
    pub(crate) fn parse_page(file: &Arc<str>, text: &str, before: usize, mistakes: &'m Mistakes) -> Option<Form<'m>> {
        let (fields, errors) = node::read(file, text, before);
        let place = LineInFile::line(file, before + 1);
        let form = Form { path: String::new(), place, fields, absent: String::new(), mistakes, muted: false };
        errors.is_empty().then_some(form)
    }

    fn child(&self, path: String, place: LineInFile, fields: BTreeMap<String, FormNode>) -> Form<'m> {
        Form { path, place, fields, absent: String::new(), mistakes: self.mistakes, muted: self.muted }
    }

    /// Dotted path of this table, such as `model."demo".price`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Where this table begins.
    pub fn place(&self) -> LineInFile {
        self.place.clone()
    }

    /// Where a field stands; the table itself when it is not there.
    pub fn place_of(&self, key: &str) -> LineInFile {
        self.fields.get(key).map_or_else(|| self.place.clone(), |node| node.place.clone())
    }

    /// Full path of a field of this table.
    pub fn field(&self, key: &str) -> String {
        join(&self.path, key)
    }

    pub fn has(&self, key: &str) -> bool {
        self.fields.contains_key(key)
    }

    /// The names of all fields of this table, in alphabetical order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.fields.keys().map(String::as_str)
    }

    /// Records a mistake about a field of this table.
    pub fn mistake(&self, key: &str, reason: impl Into<String>) {
        if !self.muted {
            self.mistakes.add(&self.place_of(key), &self.field(key), reason.into());
        }
    }

    /// Records a mistake about this table as a whole.
    pub fn mistake_here(&self, reason: impl Into<String>) {
        if !self.muted {
            self.mistakes.add(&self.place, &self.path, reason.into());
        }
    }

    /// Ends the reading of this table: every field nobody asked for is a mistake.
    pub fn finish(self) {
        for (key, _) in self.fields.iter().filter(|(_, node)| !node.asked) {
            let present = self.fields.iter().filter(|(_, node)| node.asked).map(|(name, _)| name.as_str());
            let hint = did_you_mean(key, self.absent.lines().chain(present));
            self.mistake(key, format!("is not a known key{hint}"));
        }
    }

    /// Declares keys that are known without being read, so that they are not reported.
    pub fn known(&mut self, keys: &[&str]) {
        for key in keys {
            self.ask(key);
        }
    }

    /// Drops the table without complaints about what was not read; for tables whose rest another
    /// reader owns.
    pub fn ignore_rest(self) {}

    fn ask(&mut self, key: &str) -> Option<&FormNode> {
        if let Some(node) = self.fields.get_mut(key) {
            node.asked = true;
            return Some(node);
        }
        self.absent.push_str(key);
        self.absent.push('\n');
        None
    }

    fn missing(&self, key: &str, wanted: &str) {
        self.mistake(key, format!("is missing: {wanted} is needed"));
    }

    /// Reads a field with a function from its value to the wanted type or a reason why not.
    fn read<T>(&mut self, key: &str, read: impl FnOnce(&FormValue) -> Result<T, String>) -> Option<Option<T>> {
        let result = read(&self.ask(key)?.value);
        match result {
            Ok(value) => Some(Some(value)),
            Err(reason) => {
                self.mistake(key, reason);
                Some(None)
            }
        }
    }
}

/// `a.b`, quoting what TOML would want quoted.
pub(crate) fn join(path: &str, key: &str) -> String {
    let bare = !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    let key = if bare { key.to_owned() } else { format!("{key:?}") };
    if path.is_empty() { key } else { format!("{path}.{key}") }
}
