//! Speech: a text is spoken, and the audio passes to the client as it comes. Its price is known
//! before, by the characters of the text; how long it plays is counted on the way.

mod asked;
mod call;
mod flow;

pub use asked::AskedSpeech;
pub use call::SpeechCall;
