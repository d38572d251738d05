//! The formats of a transcript.

use std::fmt;

/// What `response_format` may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TranscriptFormat {
    Json,
    Text,
    Srt,
    Vtt,
    VerboseJson,
    DiarizedJson,
}

impl TranscriptFormat {
    pub const ALL: [TranscriptFormat; 6] = [
        TranscriptFormat::Json,
        TranscriptFormat::Text,
        TranscriptFormat::Srt,
        TranscriptFormat::Vtt,
        TranscriptFormat::VerboseJson,
        TranscriptFormat::DiarizedJson,
    ];
    /// What can be made of a text alone: offered by a model that does not say more.
    pub const PLAIN: [TranscriptFormat; 2] = [TranscriptFormat::Json, TranscriptFormat::Text];

    pub const fn name(self) -> &'static str {
        match self {
            TranscriptFormat::Json => "json",
            TranscriptFormat::Text => "text",
            TranscriptFormat::Srt => "srt",
            TranscriptFormat::Vtt => "vtt",
            TranscriptFormat::VerboseJson => "verbose_json",
            TranscriptFormat::DiarizedJson => "diarized_json",
        }
    }

    pub fn named(name: &str) -> Option<TranscriptFormat> {
        TranscriptFormat::ALL.into_iter().find(|format| format.name() == name)
    }

    pub const fn is_json(self) -> bool {
        matches!(self, TranscriptFormat::Json | TranscriptFormat::VerboseJson | TranscriptFormat::DiarizedJson)
    }

    pub const fn content_type(self) -> &'static str {
        if self.is_json() { "application/json" } else { "text/plain; charset=utf-8" }
    }
}

impl fmt::Display for TranscriptFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
