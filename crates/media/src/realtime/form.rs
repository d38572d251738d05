//! How one side of a session speaks, where that is not OpenAI's GA interface.
//!
//! The middle knows GA events only, as JSON text. A form turns the frames of its side into such
//! events and such events into its frames. It is a value of one session and may remember what it
//! needs for that.

use bytes::Bytes;

/// What goes over a socket in one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LiveFrame {
    Text(String),
    Binary(Bytes),
}

/// A frame that its side should not have sent, in words that its client may read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveFault(pub String);

/// How a provider hears its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveHearing {
    /// Tokens of one second of audio that it hears, at most, and that it says.
    pub per_second: u64,
    pub said_per_second: u64,
    /// The model of the session writes down what it hears, and bills that with its responses.
    pub writes_down: bool,
    /// It answers the turns that it hears, and cannot be told not to.
    pub answers_itself: bool,
}

impl LiveHearing {
    /// The same with other rates, where somebody knows better.
    pub fn at(self, heard: Option<u64>, said: Option<u64>) -> LiveHearing {
        let (per_second, said_per_second) = (heard.unwrap_or(self.per_second), said.unwrap_or(self.said_per_second));
        LiveHearing { per_second, said_per_second, ..self }
    }
}

impl Default for LiveHearing {
    /// As OpenAI does.
    fn default() -> LiveHearing {
        LiveHearing { per_second: 10, said_per_second: 20, writes_down: false, answers_itself: false }
    }
}

/// The form of one side.
pub trait LiveForm: Send {
    /// What a frame of this side says, as GA events in their order.
    fn read(&mut self, frame: LiveFrame) -> Result<Vec<String>, LiveFault>;

    /// A GA event as the frames that this side gets.
    fn write(&mut self, event: String) -> Result<Vec<LiveFrame>, LiveFault>;

    /// What follows without being asked: events that this side says, and frames that it gets. To be
    /// asked for when a session begins and after each `read` and `write`.
    fn more(&mut self) -> (Vec<String>, Vec<LiveFrame>) {
        (Vec::new(), Vec::new())
    }

    /// How a provider of this form hears.
    fn hearing(&self) -> LiveHearing {
        LiveHearing::default()
    }

    /// Which form it is, where two sides of one form can do without the middle's words.
    fn kind(&self) -> &'static str {
        ""
    }

    /// The other side has the same form: each event carries the frame that it was made from, and
    /// that is what the other side gets.
    fn pair(&mut self) {}
}
