//! What a caller gets before anything is sent: a refusal that names its field, or a warning
//! beside an accepted task.

use serde::{Deserialize, Serialize};
use tollgate_wire::cut;
use tollgate_wire::error::Code;

/// The request is not served, and nothing is charged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VideoRefusal {
    pub code: Code,
    pub message: String,
    /// The field to change, such as `metadata.settings.duration`.
    pub param: Option<String>,
}

impl VideoRefusal {
    pub(crate) fn new(code: Code, param: &str, message: impl Into<String>) -> VideoRefusal {
        VideoRefusal { code, message: message.into(), param: Some(param.to_owned()) }
    }

    pub(crate) fn invalid(param: &str, message: impl Into<String>) -> VideoRefusal {
        VideoRefusal::new(Code::InvalidParameter, param, message)
    }

    /// The value exists, but not for this model.
    pub(crate) fn unsupported(param: &str, message: impl Into<String>) -> VideoRefusal {
        VideoRefusal::new(Code::UnsupportedValue, param, message)
    }

    pub(crate) fn missing(param: &str, message: impl Into<String>) -> VideoRefusal {
        VideoRefusal::new(Code::MissingParameter, param, message)
    }
}

/// Longest name and longest text of a warning.
const FIELD: usize = 128;
const MESSAGE: usize = 512;

/// Something that was sent and did not count. The task runs all the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    pub field: String,
    pub message: String,
    /// It does count, only not to its end.
    #[serde(skip)]
    pub in_part: bool,
}

impl Warning {
    /// About a field whose end does not count.
    pub(crate) fn in_part(field: &str, message: impl AsRef<str>) -> Warning {
        Warning { in_part: true, ..Warning::new(field, message) }
    }

    /// Names of fields are the caller's, and shown again whenever the task is.
    pub fn new(field: impl AsRef<str>, message: impl AsRef<str>) -> Warning {
        let (field, message) = (cut(field.as_ref(), FIELD).into_owned(), cut(message.as_ref(), MESSAGE).into_owned());
        Warning { field, message, in_part: false }
    }
}
