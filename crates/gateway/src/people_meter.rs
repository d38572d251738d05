//! What an operator watches of people: how sign-ins end, who has to wait, and what becomes of
//! letters. Names and e-mails are in none of it.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct SignInLabels {
    by: &'static str,
    ending: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct WaitLabels {
    act: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct LetterLabels {
    outcome: &'static str,
}

/// Clones count together.
#[derive(Clone, Default)]
pub struct PeopleMeter {
    sign_ins: Family<SignInLabels, Counter>,
    waits: Family<WaitLabels, Counter>,
    letters: Family<LetterLabels, Counter>,
    /// Letters that wait to be sent, when it was last looked.
    pub letters_waiting: Gauge,
    /// Sessions that are open, when it was last looked.
    pub sessions: Gauge,
}

impl PeopleMeter {
    /// Somebody tried to sign in.
    pub fn signed_in(&self, by: &'static str, ending: &'static str) {
        self.sign_ins.get_or_create(&SignInLabels { by, ending }).inc();
    }

    /// Somebody was asked to wait.
    pub fn waits(&self, act: &'static str) {
        self.waits.get_or_create(&WaitLabels { act }).inc();
    }

    /// A letter was handed over, put off or given up.
    pub fn letter(&self, outcome: &'static str) {
        self.letters.get_or_create(&LetterLabels { outcome }).inc();
    }

    /// How many letters came to this.
    pub fn letters(&self, outcome: &'static str) -> u64 {
        self.letters.get_or_create(&LetterLabels { outcome }).get()
    }

    pub fn register(&self, registry: &mut Registry) {
        registry.register("sign_ins", "Tries to sign in, by way and ending", self.sign_ins.clone());
        registry.register("people_waits", "Tries of people that were told to wait, by act", self.waits.clone());
        registry.register("letters", "Tries to hand over letters, by outcome", self.letters.clone());
        registry.register("letters_waiting", "Letters that wait to be sent", self.letters_waiting.clone());
        registry.register("sessions", "Sessions of people that are open", self.sessions.clone());
    }
}
