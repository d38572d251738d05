//! Who begins a response when a client has spoken.
//!
//! A provider that hears where a turn ends would also answer it, with or without money: it has the
//! audio already, and one burst of audio may hold many turns. So it is told not to
//! (`create_response: false`), and each turn that it hears is answered by a `response.create` of
//! ours, behind a hold. One that cannot be told gets audio hardly faster than it is spoken, and
//! only while a second, small hold stands for what the audio on its way may begin.

use serde_json::{Map, Value, json};
use std::time::Duration;
use tokio::time::Instant;

/// A provider that has not said by then what it does with a turn answers it by itself.
const UNSURE: Duration = Duration::from_secs(5);
/// Audio that may be on its way to a provider that answers by itself, and the pieces it goes in.
const AHEAD: Duration = Duration::from_millis(500);
pub const PIECE: Duration = Duration::from_millis(200);
/// From the last of such audio on a response to it has so long to begin.
const ANSWERED: Duration = Duration::from_secs(1);
/// Such audio passes so much faster than it is spoken: clocks differ.
const HASTE: f64 = 1.25;

/// Who begins the response to a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beginner {
    /// The provider has not said yet that it leaves it to us.
    Unsure(Instant),
    Gateway,
    Provider,
}

#[derive(Debug)]
pub struct TurnTaking {
    beginner: Beginner,
    /// The provider hears where turns end.
    hears: bool,
    /// The client wants each turn to be answered.
    answers: bool,
    /// What it wanted before an update that is not confirmed, and the `event_id` of that.
    before: Option<(Value, bool)>,
    /// A turn has ended whose audio is not committed yet.
    ended: bool,
    /// A turn is to be answered.
    due: bool,
    /// Audio that was passed on and is not spoken yet, as of then; and whether there was any.
    heard: bool,
    ahead: Duration,
    ahead_at: Instant,
    /// When the audio that waits may pass.
    ready_at: Option<Instant>,
}

impl TurnTaking {
    /// `by_itself`: the provider cannot be told to leave its turns to us.
    pub fn new(by_itself: bool, now: Instant) -> TurnTaking {
        TurnTaking {
            beginner: if by_itself { Beginner::Provider } else { Beginner::Unsure(now) },
            hears: true,
            answers: true,
            before: None,
            ended: false,
            due: false,
            heard: false,
            ahead: Duration::ZERO,
            ahead_at: now,
            ready_at: None,
        }
    }

    /// What a provider is told at first, unless it answers by itself anyway.
    pub fn own_setting(&self) -> Option<Value> {
        (self.beginner != Beginner::Provider).then(|| json!({ "type": "server_vad", "create_response": false }))
    }

    /// What a session began with: where that is other than what we have set, it is set again.
    pub fn began(&self, detection: Option<&Value>) -> Option<Value> {
        self.own_setting()?;
        match detection? {
            Value::Null => Some(Value::Null),
            Value::Object(detection) if detection.get("type").is_some_and(|kind| kind != "server_vad") => {
                let mut detection = detection.clone();
                detection.insert("create_response".to_owned(), Value::Bool(false));
                Some(Value::Object(detection))
            }
            _ => None,
        }
    }

    /// A client's wish, which the provider is told as far as it is the provider's to know.
    pub fn asked(&mut self, detection: &mut Value, event_id: Option<&str>) {
        let Value::Object(detection) = detection else { return };
        self.hears = true;
        if self.beginner == Beginner::Provider {
            return;
        }
        let answers = detection.get("create_response") != Some(&Value::Bool(false));
        self.before = Some((json!(event_id), self.answers));
        self.answers = answers;
        detection.insert("create_response".to_owned(), Value::Bool(false));
    }

    /// The provider has refused an event: if it was the wish, the wish before it holds.
    pub fn refused(&mut self, event_id: &Value) {
        if let Some((_, answers)) = self.before.take_if(|(id, _)| id == event_id) {
            self.answers = answers;
        }
    }

    /// What the provider says that it does.
    pub fn confirmed(&mut self, detection: Option<&Value>) {
        self.before = None;
        self.beginner = match (detection, self.beginner) {
            (Some(Value::Object(detection)), _) => {
                self.hears = true;
                match detection.get("create_response") == Some(&Value::Bool(false)) {
                    true => Beginner::Gateway,
                    false => Beginner::Provider,
                }
            }
            (Some(_), beginner) => {
                self.hears = false;
                beginner
            }
            (None, Beginner::Unsure(_)) => Beginner::Provider,
            (None, beginner) => beginner,
        };
    }

    /// The provider does not take what we told it.
    pub fn not_told(&mut self) {
        self.beginner = Beginner::Provider;
    }

    /// Shows a client its own wish.
    pub fn show(&self, detection: &mut Map<String, Value>) {
        if self.beginner == Beginner::Gateway {
            detection.insert("create_response".to_owned(), Value::Bool(self.answers));
        }
    }

    /// Audio has to wait until the provider has said what it does with it.
    pub fn is_unsure(&mut self, now: Instant) -> bool {
        match self.beginner {
            Beginner::Unsure(since) if now - since < UNSURE => self.hears,
            Beginner::Unsure(_) => {
                self.beginner = Beginner::Provider;
                false
            }
            _ => false,
        }
    }

    /// The provider may begin a response at any time while it hears something.
    pub fn is_by_itself(&self) -> bool {
        self.hears && self.beginner == Beginner::Provider
    }

    /// So much audio is to go to a provider that answers by itself. May it go now?
    pub fn passes(&mut self, length: Duration, now: Instant) -> bool {
        self.ahead = self.ahead.saturating_sub((now - self.ahead_at).mul_f64(HASTE));
        self.ahead_at = now;
        let over = (self.ahead + length).saturating_sub(AHEAD);
        if self.ahead.is_zero() || over.is_zero() {
            self.ahead += length;
            self.heard = true;
            self.ready_at = None;
            return true;
        }
        self.ready_at = Some(now + over.min(self.ahead).div_f64(HASTE));
        false
    }

    pub fn ready_at(&self) -> Option<Instant> {
        self.ready_at
    }

    /// Until then a provider that answers by itself may begin a response to what it has heard.
    pub fn may_begin_until(&self) -> Option<Instant> {
        let heard = self.heard && self.is_by_itself();
        heard.then(|| self.ahead_at + self.ahead + ANSWERED)
    }

    /// The provider has heard a turn end, or nobody speak for long.
    pub fn turn_ended(&mut self) {
        self.ended = true;
    }

    /// What was said is part of the conversation.
    pub fn committed(&mut self) {
        if std::mem::take(&mut self.ended) {
            self.due = self.beginner == Beginner::Gateway && self.answers;
        }
    }

    /// A response reads the conversation: it answers what was said.
    pub fn answered(&mut self) {
        self.due = false;
    }

    pub fn is_due(&self) -> bool {
        self.due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(answer: Value) -> TurnTaking {
        let mut turns = TurnTaking::new(false, Instant::now());
        turns.confirmed(Some(&answer));
        turns
    }

    fn turn(turns: &mut TurnTaking) -> bool {
        turns.turn_ended();
        turns.committed();
        let due = turns.is_due();
        turns.answered();
        due
    }

    #[test]
    fn turns_are_answered_here_where_the_provider_says_that_it_does_not() {
        assert!(turn(&mut told(json!({ "type": "server_vad", "create_response": false }))));
        for by_itself in [json!({ "type": "server_vad" }), json!({ "create_response": true })] {
            let mut turns = told(by_itself);
            assert!(turns.is_by_itself() && !turn(&mut turns));
        }
        let mut turns = told(json!({ "create_response": false }));
        turns.committed();
        assert!(!turns.is_due(), "what a client commits by hand is no turn");
    }

    #[test]
    fn a_wish_is_shown_and_not_passed_on() {
        let mut turns = told(json!({ "create_response": false }));
        let mut wish = json!({ "type": "semantic_vad" });
        turns.asked(&mut wish, Some("a"));
        assert_eq!(wish, json!({ "type": "semantic_vad", "create_response": false }));
        assert!(turn(&mut turns));
        let mut wish = json!({ "type": "server_vad", "create_response": false });
        turns.asked(&mut wish, Some("b"));
        assert!(!turn(&mut turns));
        turns.refused(&json!("other"));
        assert!(!turn(&mut turns));
        turns.refused(&json!("b"));
        assert!(turn(&mut turns), "the update came to nothing");
        let mut shown = Map::new();
        turns.show(&mut shown);
        assert_eq!(Value::Object(shown), json!({ "create_response": true }));
    }

    #[test]
    fn audio_waits_for_a_provider_s_word_and_not_for_ever() {
        let now = Instant::now();
        let mut turns = TurnTaking::new(false, now);
        assert!(turns.is_unsure(now) && turns.own_setting().is_some());
        assert!(!turns.is_unsure(now + UNSURE) && turns.is_by_itself() && turns.own_setting().is_none());
        assert!(TurnTaking::new(true, now).is_by_itself());
        let mut silent = TurnTaking::new(false, now);
        silent.confirmed(Some(&Value::Null));
        assert!(!silent.is_unsure(now) && !silent.is_by_itself(), "nobody listens for turns");
    }

    #[test]
    fn what_a_session_began_with_stays() {
        let turns = TurnTaking::new(false, Instant::now());
        assert_eq!(turns.began(Some(&json!({ "type": "server_vad" }))), None);
        assert_eq!(turns.began(Some(&Value::Null)), Some(Value::Null));
        let semantic = json!({ "type": "semantic_vad", "eagerness": "low" });
        let told = turns.began(Some(&semantic)).expect("told");
        assert_eq!(told, json!({ "type": "semantic_vad", "eagerness": "low", "create_response": false }));
    }

    #[test]
    fn audio_for_who_answers_by_itself_goes_as_it_is_spoken() {
        let now = Instant::now();
        let mut turns = TurnTaking::new(true, now);
        let mut at = now;
        let mut passed = Duration::ZERO;
        for _ in 0..500 {
            while !turns.passes(PIECE, at) {
                let ready = turns.ready_at().expect("a time");
                assert!(ready > at);
                at = ready;
            }
            passed += PIECE;
            let spoken = (at - now).mul_f64(HASTE) + AHEAD;
            assert!(passed <= spoken + Duration::from_millis(1), "{passed:?} at {:?}", at - now);
        }
        assert!(at - now < Duration::from_secs(81), "and no slower: {:?}", at - now);
        let until = turns.may_begin_until().expect("it has heard something");
        assert!(until > at + ANSWERED && until <= at + ANSWERED + AHEAD + PIECE, "{:?}", until - at);
        assert_eq!(TurnTaking::new(true, now).may_begin_until(), None, "it has heard nothing");
        assert!(turns.passes(Duration::from_secs(9), at + Duration::from_secs(9)), "a large piece goes alone");
        assert!(!turns.passes(PIECE, at + Duration::from_secs(9)));
    }
}
