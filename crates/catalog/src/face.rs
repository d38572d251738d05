//! Faces: the closed list of things a price can be put on, the prices of them, and the quantities
//! used.

use std::ops::{Index, IndexMut};

use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One thing a model can charge for. The names are those of `book_faces` in the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Face {
    Input,
    Output,
    CacheRead,
    CacheWrite,
    #[serde(rename = "cache_write_1h")]
    CacheWrite1h,
    ImageInput,
    ImageOutput,
    AudioInput,
    AudioOutput,
    PerCall,
    VideoSecond,
    #[serde(rename = "tool:web_search")]
    WebSearch,
    #[serde(rename = "tool:web_fetch")]
    WebFetch,
    #[serde(rename = "tool:code_execution")]
    CodeExecution,
    #[serde(rename = "tool:file_search")]
    FileSearch,
    #[serde(rename = "tool:image_generation")]
    ImageGeneration,
    #[serde(rename = "tool:maps")]
    Maps,
    #[serde(rename = "tool:mcp")]
    Mcp,
    #[serde(rename = "tool:tool_search")]
    ToolSearch,
    #[serde(rename = "tool:shell")]
    Shell,
    #[serde(rename = "tool:x_search")]
    XSearch,
}

/// What the integer price of a face is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    MillionTokens,
    Call,
    Second,
    /// One use of a tool that runs at the provider.
    Use,
}

impl Unit {
    /// How many of what is counted the price is for.
    pub const fn size(self) -> u128 {
        match self {
            Unit::MillionTokens => 1_000_000,
            Unit::Call | Unit::Second | Unit::Use => 1,
        }
    }
}

impl Face {
    pub const COUNT: usize = 11 + Face::TOOLS.len();
    /// Tools that a provider runs and may charge for, each by the use. Written `tool:NAME`; a model
    /// that sells one has a price for it, be it zero.
    pub const TOOLS: [Face; 10] = [
        Face::WebSearch,
        Face::WebFetch,
        Face::CodeExecution,
        Face::FileSearch,
        Face::ImageGeneration,
        Face::Maps,
        Face::Mcp,
        Face::ToolSearch,
        Face::Shell,
        Face::XSearch,
    ];
    pub const ALL: [Face; Face::COUNT] = [
        Face::Input,
        Face::Output,
        Face::CacheRead,
        Face::CacheWrite,
        Face::CacheWrite1h,
        Face::ImageInput,
        Face::ImageOutput,
        Face::AudioInput,
        Face::AudioOutput,
        Face::PerCall,
        Face::VideoSecond,
        Face::WebSearch,
        Face::WebFetch,
        Face::CodeExecution,
        Face::FileSearch,
        Face::ImageGeneration,
        Face::Maps,
        Face::Mcp,
        Face::ToolSearch,
        Face::Shell,
        Face::XSearch,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Face::Input => "input",
            Face::Output => "output",
            Face::CacheRead => "cache_read",
            Face::CacheWrite => "cache_write",
            Face::CacheWrite1h => "cache_write_1h",
            Face::ImageInput => "image_input",
            Face::ImageOutput => "image_output",
            Face::AudioInput => "audio_input",
            Face::AudioOutput => "audio_output",
            Face::PerCall => "per_call",
            Face::VideoSecond => "video_second",
            Face::WebSearch => "tool:web_search",
            Face::WebFetch => "tool:web_fetch",
            Face::CodeExecution => "tool:code_execution",
            Face::FileSearch => "tool:file_search",
            Face::ImageGeneration => "tool:image_generation",
            Face::Maps => "tool:maps",
            Face::Mcp => "tool:mcp",
            Face::ToolSearch => "tool:tool_search",
            Face::Shell => "tool:shell",
            Face::XSearch => "tool:x_search",
        }
    }

    pub fn named(name: &str) -> Option<Face> {
        Face::ALL.iter().copied().find(|face| face.name() == name)
    }

    /// The face of a tool by the name of the tool.
    pub fn tool(name: &str) -> Option<Face> {
        Face::TOOLS.into_iter().find(|face| face.name().strip_prefix("tool:") == Some(name))
    }

    pub const fn is_tool(self) -> bool {
        self.at() >= Face::WebSearch.at()
    }

    pub const fn unit(self) -> Unit {
        match self {
            Face::PerCall => Unit::Call,
            Face::VideoSecond => Unit::Second,
            tool if tool.is_tool() => Unit::Use,
            _ => Unit::MillionTokens,
        }
    }

    const fn at(self) -> usize {
        self as usize
    }

    /// Where the price of a token face comes from when the catalog does not put one on it: such
    /// tokens are ordinary input or output tokens. Never zero, and never a call that cannot be
    /// charged.
    const fn ordinary(self) -> Option<Face> {
        match self {
            Face::CacheRead | Face::CacheWrite | Face::ImageInput | Face::AudioInput => Some(Face::Input),
            Face::CacheWrite1h => Some(Face::CacheWrite),
            Face::ImageOutput | Face::AudioOutput => Some(Face::Output),
            _ => None,
        }
    }
}

/// The highest price a face may carry, in micro-USD: a million dollars. Above it a price is a
/// typing mistake.
pub const MAX_FACE: u64 = 1_000_000_000_000;

/// Prices by face: micro-USD per million tokens, per call or per second. A face without a price
/// cannot be charged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Faces([Option<u64>; Face::COUNT]);

impl Faces {
    pub const NONE: Faces = Faces([None; Face::COUNT]);

    #[must_use]
    pub fn with(mut self, face: Face, micro_usd: u64) -> Faces {
        self.set(face, Some(micro_usd));
        self
    }

    pub fn set(&mut self, face: Face, micro_usd: Option<u64>) {
        self.0[face.at()] = micro_usd;
    }

    pub fn get(&self, face: Face) -> Option<u64> {
        self.0[face.at()]
    }

    pub fn has(&self, face: Face) -> bool {
        self.get(face).is_some()
    }

    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// The faces that carry a price, in the order of [`Face::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (Face, u64)> + '_ {
        Face::ALL.iter().copied().filter_map(|face| Some((face, self.get(face)?)))
    }

    /// With the token faces that were not written priced as ordinary input or output tokens.
    #[must_use]
    pub fn completed(&self) -> Faces {
        let mut full = *self;
        for face in Face::ALL {
            if let (None, Some(ordinary)) = (full.get(face), face.ordinary()) {
                full.set(face, full.get(ordinary));
            }
        }
        full
    }
}

impl Serialize for Faces {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.iter().count()))?;
        for (face, price) in self.iter() {
            map.serialize_entry(face.name(), &price)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Faces {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Faces, D::Error> {
        let written = std::collections::BTreeMap::<String, u64>::deserialize(deserializer)?;
        let mut faces = Faces::NONE;
        for (name, price) in written {
            let face = Face::named(&name).ok_or_else(|| D::Error::custom(format!("no face is called {name:?}")))?;
            faces.set(face, Some(price));
        }
        Ok(faces)
    }
}

/// How much of each face a call used (or may use): tokens, calls, seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Quantities([u64; Face::COUNT]);

impl Quantities {
    pub const NONE: Quantities = Quantities([0; Face::COUNT]);

    #[must_use]
    pub fn with(mut self, face: Face, quantity: u64) -> Quantities {
        self[face] = quantity;
        self
    }

    /// The faces that were used at all, in the order of [`Face::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (Face, u64)> + '_ {
        Face::ALL.iter().copied().map(|face| (face, self[face])).filter(|(_, quantity)| *quantity > 0)
    }

    pub fn is_empty(&self) -> bool {
        *self == Quantities::NONE
    }
}

impl Index<Face> for Quantities {
    type Output = u64;

    fn index(&self, face: Face) -> &u64 {
        &self.0[face.at()]
    }
}

impl IndexMut<Face> for Quantities {
    fn index_mut(&mut self, face: Face) -> &mut u64 {
        &mut self.0[face.at()]
    }
}

impl Serialize for Quantities {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.iter().count()))?;
        for (face, quantity) in self.iter() {
            map.serialize_entry(face.name(), &quantity)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Quantities {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Quantities, D::Error> {
        let written = std::collections::BTreeMap::<String, u64>::deserialize(deserializer)?;
        let mut quantities = Quantities::NONE;
        for (name, quantity) in written {
            let face = Face::named(&name).ok_or_else(|| D::Error::custom(format!("no face is called {name:?}")))?;
            quantities[face] = quantity;
        }
        Ok(quantities)
    }
}
