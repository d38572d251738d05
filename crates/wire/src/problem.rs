//! Why a request is refused before anything is sent.

use crate::error::Code;
use crate::json::{BrokenJson, DEPTH};

/// Callers' own words may stand in a refusal, but not all of them.
const MOST_PARAM: usize = 128;
const MOST_MESSAGE: usize = 512;

fn clip(text: &str, most: usize) -> String {
    text[..text.floor_char_boundary(most)].to_owned()
}

/// A refusal; names the parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub code: Code,
    pub param: Option<String>,
    pub message: String,
}

impl Problem {
    pub fn new(code: Code, param: &str, message: impl Into<String>) -> Problem {
        Problem { code, param: Some(clip(param, MOST_PARAM)), message: clip(&message.into(), MOST_MESSAGE) }
    }

    pub fn not_json(message: impl Into<String>) -> Problem {
        Problem { code: Code::InvalidJson, param: None, message: message.into() }
    }

    pub fn wrong(param: &str, wanted: &str) -> Problem {
        Problem::new(Code::InvalidParameter, param, format!("`{param}` must be {wanted}."))
    }

    pub fn missing(param: &str) -> Problem {
        Problem::new(Code::MissingParameter, param, format!("`{param}` is required."))
    }

    /// A file is longer than it may be. Who knows its field says which one.
    pub fn large_file(most: u64) -> Problem {
        Problem { code: Code::BodyTooLarge, param: None, message: format!("The file is larger than {most} bytes.") }
    }

    /// The same with another name of the field.
    pub fn about(self, field: &str) -> Problem {
        let message = match &self.param {
            Some(old) => self.message.replace(&format!("`{old}`"), &format!("`{field}`")),
            None => self.message,
        };
        Problem::new(self.code, field, message)
    }

    /// The field exists but the model's provider has nothing like it.
    pub fn unsupported(param: &str, why: impl Into<String>) -> Problem {
        Problem::new(Code::UnsupportedValue, param, why)
    }
}

impl From<BrokenJson> for Problem {
    fn from(broken: BrokenJson) -> Problem {
        match broken {
            BrokenJson::Syntax { at } => Problem::not_json(format!("The body is not valid JSON (at byte {at}).")),
            BrokenJson::Depth => Problem::not_json(format!("The body is nested more than {DEPTH} levels deep.")),
        }
    }
}
