//! What the catalog says of a model that makes pictures, besides prices. What the words mean to a
//! provider is not known here.

use crate::LineInFile;
use std::time::Duration;

/// The `image` table of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageTable {
    /// Which of a maker's ways, where it has several.
    pub api: String,
    /// The most pictures of one call; absent: the usual number, or what the makers take.
    pub most: Option<u64>,
    /// Asked for, and priced, where a caller names none.
    pub default_size: Option<String>,
    /// Sizes on sale; none: whatever the maker takes.
    pub sizes: Vec<String>,
    pub default_quality: Option<String>,
    pub qualities: Vec<String>,
    /// Its maker hands over base64 and nothing else.
    pub base64_only: bool,
    /// Its maker is sent how to hand pictures over; OpenAI's newer models refuse the field.
    pub sends_format: bool,
    /// Previews before the finished picture are passed on; they cost at the maker.
    pub partial_images: bool,
    /// Its maker can stream, so that a stream is asked for as one.
    pub streams: bool,
    /// Pictures that an edit may bring along; 0: there are no edits.
    pub edit_images: u64,
    pub masks: bool,
    /// Characters of a prompt.
    pub prompt_characters: u64,
    /// How long its maker may take until it answers, or until a task is over; absent: as long as
    /// the provider may.
    pub time: Option<Duration>,
    /// Parameters whose values cost the same on purpose, though they may cost more at the maker.
    pub one_price: Vec<String>,
    /// Where it is written, for messages; absent where nothing is.
    pub place: Option<LineInFile>,
}

impl ImageTable {
    /// The most pictures of one call, where nothing else is said.
    pub const USUAL_MOST: u64 = 10;
}

impl Default for ImageTable {
    fn default() -> ImageTable {
        ImageTable {
            api: String::new(),
            most: None,
            default_size: None,
            sizes: Vec::new(),
            default_quality: None,
            qualities: Vec::new(),
            base64_only: false,
            sends_format: true,
            partial_images: false,
            streams: false,
            edit_images: 0,
            masks: false,
            prompt_characters: 32_000,
            time: None,
            one_price: Vec::new(),
            place: None,
        }
    }
}
