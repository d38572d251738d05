//! What a request makes its provider read that does not stand in the request, found while the
//! request is read.
//!
//! A hold must bound what a provider can report. Text is counted where it stands. A picture is
//! bounded, because every provider scales it down. Whatever else is only named (a link, a file id,
//! a stored prompt, a cache) or packed (a PDF, a clip) can be as long as the model's context: here
//! it is only found, and the gateway holds for the context. What counts as such is data
//! (`table.rs`, `tools.rs`), one list per dialect.

mod limit;
mod place;
mod table;
mod tools;
mod used;

pub(crate) use table::{CITING, Means, PICTURES, REFERENCES, Top, means, top};
pub(crate) use tools::hosted;

pub use limit::limit_uses;
pub use used::{TOOLS, ToolUses};

use std::borrow::Cow;
use std::ops::Range;
use tollgate_wire::Dialect;
use tollgate_wire::json::{BrokenJson, Scan};

/// A kind of content that a model may or may not take, by the word that catalogs have for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modality {
    Image,
    Audio,
    Video,
    File,
}

impl Modality {
    pub const ALL: [Modality; 4] = [Modality::Image, Modality::Audio, Modality::Video, Modality::File];

    pub const fn word(self) -> &'static str {
        match self {
            Modality::Image => "image",
            Modality::Audio => "audio",
            Modality::Video => "video",
            Modality::File => "file",
        }
    }
}

/// A tool that runs at the provider: what it finds is read as input, and its use may be charged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosted {
    /// One name in all dialects: `web_search`, `code_execution`, …; a tool that nobody knows has
    /// its own.
    pub name: Cow<'static, str>,
    /// The most uses that the request allows of it.
    pub most: Option<u64>,
    /// Where it stands in the body.
    pub at: usize,
    /// Its options that make a use cost more there, such as `image_generation.quality`, and where
    /// they stand.
    pub dear: Vec<(&'static str, usize)>,
    /// Where the body says that there is no such limit.
    open: Option<Range<usize>>,
}

/// What is read besides the text of the request. Places are offsets in the body;
/// [`crate::Request::place`] names them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// Pictures, and the tokens they are estimated at.
    pub pictures: u64,
    pub pictured: u64,
    /// Tokens of members that are not part of the conversation as far as anybody knows.
    pub aside: u64,
    /// Tokens of packed sound beyond its estimate.
    pub packed: u64,
    /// The first thing whose length cannot be known from the request.
    pub unseen: Option<usize>,
    /// The provider may read the conversation once more to shorten it.
    pub compacts: bool,
    pub hosted: Vec<Hosted>,
    /// The most uses of all such tools together.
    pub most_uses: Option<u64>,
    first: [Option<usize>; 4],
}

/// More tools than any provider takes would only make work.
const MOST_HOSTED: usize = 1_024;

impl Reads {
    /// Where the first content of a modality stands.
    pub fn first(&self, modality: Modality) -> Option<usize> {
        self.first[modality as usize]
    }

    pub(crate) fn sees(&mut self, modality: Modality, at: usize) {
        self.first[modality as usize].get_or_insert(at);
    }

    /// Content whose length is not known here.
    pub(crate) fn hides(&mut self, modality: Option<Modality>, at: usize) {
        self.unseen.get_or_insert(at);
        if let Some(modality) = modality {
            self.sees(modality, at);
        }
    }

    pub(crate) fn runs(&mut self, name: impl Into<Cow<'static, str>>, most: Option<u64>, at: usize) {
        if self.hosted.len() < MOST_HOSTED {
            self.hosted.push(Hosted { name: name.into(), most, at, dear: Vec::new(), open: None });
        }
    }
}

/// The tools that run at a provider, of those that this body for it names.
pub fn hosted_names(dialect: Dialect, body: &[u8]) -> Vec<Cow<'static, str>> {
    let mut reads = Reads::default();
    // Only what is around the conversation matters, and a body of our own can be read.
    let _ = Scan::new(body).object(|key, scan| {
        scan.peek();
        let (name, at) = (key.bytes(), scan.at());
        let raw = scan.value()?;
        if name.as_ref() == b"tools" {
            return hosted(dialect, raw, at, &mut reads);
        }
        if let (Some(Top::Runs(tool)), false) = (top(dialect, &name), matches!(raw, b"null" | b"false" | b"[]")) {
            reads.runs(tool, None, at);
        }
        Ok::<(), BrokenJson>(())
    });
    reads.hosted.into_iter().map(|tool| tool.name).collect()
}

/// The name of the value at this offset of a body.
pub(crate) fn place(body: &[u8], at: usize) -> String {
    place::of(body, at)
}

#[cfg(test)]
mod tests;
