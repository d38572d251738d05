//! What a model is billed by, and what that makes of a face: what its quantity counts, how many
//! tokens one of them stands for, whether it is charged at all. A new way to sell something is an
//! entry here, not code elsewhere.

use serde::{Deserialize, Serialize};

use crate::{Face, Faces, Fraction};

/// What a model is billed by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BillingUnit {
    #[default]
    Tokens,
    PerSecond,
    PerCall,
    Characters,
    AudioDuration,
}

/// What the quantity of a line counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    Token,
    Character,
    AudioSecond,
    VideoSecond,
    /// A call, or one image of a call that makes several.
    Call,
    /// One use of a tool that runs at the provider.
    Use,
}

/// A second of audio in tokens: a thousand a minute.
pub(crate) const TOKENS_PER_AUDIO_SECOND: Fraction = Fraction::reduced(50, 3);

impl BillingUnit {
    pub const ALL: [(&'static str, BillingUnit); 5] = [
        ("tokens", BillingUnit::Tokens),
        ("per_second", BillingUnit::PerSecond),
        ("per_call", BillingUnit::PerCall),
        ("characters", BillingUnit::Characters),
        ("audio_duration", BillingUnit::AudioDuration),
    ];

    pub const fn name(self) -> &'static str {
        match self {
            BillingUnit::Tokens => "tokens",
            BillingUnit::PerSecond => "per_second",
            BillingUnit::PerCall => "per_call",
            BillingUnit::Characters => "characters",
            BillingUnit::AudioDuration => "audio_duration",
        }
    }

    /// The face a model of this unit is known by, and cannot be sold without.
    pub const fn main_face(self) -> Face {
        match self {
            BillingUnit::PerSecond => Face::VideoSecond,
            BillingUnit::PerCall => Face::PerCall,
            BillingUnit::Tokens | BillingUnit::Characters | BillingUnit::AudioDuration => Face::Input,
        }
    }

    /// Whether a price on this face can ever be charged by a model of this unit.
    pub const fn charges(self, face: Face) -> bool {
        match self {
            BillingUnit::Tokens => !matches!(face, Face::VideoSecond),
            BillingUnit::Characters | BillingUnit::AudioDuration => {
                matches!(face, Face::Input | Face::PerCall) || self.is_free(face)
            }
            BillingUnit::PerCall => matches!(face, Face::PerCall) || face.is_tool(),
            BillingUnit::PerSecond => matches!(face, Face::VideoSecond | Face::PerCall),
        }
    }

    /// What is counted and shown at rate zero, by rule: the speech that was generated, the
    /// transcript of a recording.
    pub const fn is_free(self, face: Face) -> bool {
        match self {
            BillingUnit::Characters => matches!(face, Face::Output | Face::AudioOutput),
            BillingUnit::AudioDuration => matches!(face, Face::Output),
            BillingUnit::Tokens | BillingUnit::PerCall | BillingUnit::PerSecond => false,
        }
    }

    /// What the quantity of a face counts.
    pub const fn measure(self, face: Face) -> Measure {
        match (face, self) {
            (Face::PerCall, _) => Measure::Call,
            (Face::VideoSecond, _) => Measure::VideoSecond,
            (tool, _) if tool.is_tool() => Measure::Use,
            (Face::Input, BillingUnit::Characters) => Measure::Character,
            (Face::Input, BillingUnit::AudioDuration) => Measure::AudioSecond,
            _ => Measure::Token,
        }
    }

    /// The prices a call can be charged: what is free by rule at zero, and in a model billed by
    /// tokens every kind of token, those without a price of their own as ordinary ones.
    #[must_use]
    pub fn complete(self, written: &Faces) -> Faces {
        let mut faces = if self == BillingUnit::Tokens { written.completed() } else { *written };
        for face in Face::ALL {
            if self.is_free(face) && !faces.has(face) {
                faces.set(face, Some(0));
            }
        }
        faces
    }

    /// The unit of a price that was written down before prices named theirs.
    pub(crate) fn of_faces(faces: &Faces) -> BillingUnit {
        if faces.has(Face::VideoSecond) {
            BillingUnit::PerSecond
        } else if faces.has(Face::Input) {
            BillingUnit::Tokens
        } else {
            BillingUnit::PerCall
        }
    }
}

impl Measure {
    /// Tokens that one of it stands for; 1 where nothing is converted.
    pub const fn conversion(self) -> Fraction {
        match self {
            Measure::AudioSecond => TOKENS_PER_AUDIO_SECOND,
            Measure::Token | Measure::Character | Measure::VideoSecond | Measure::Call | Measure::Use => Fraction::ONE,
        }
    }
}
