//! Why a session ends, and what its client gets: an error event in words, and a code by which
//! SDKs decide whether to come back.

use crate::refusal::Refusal;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tollgate_wire::error::Code;

/// The longest reason that fits into a close frame.
const REASON: usize = 123;

/// A session's last words.
pub struct LastWords {
    pub code: CloseCode,
    pub reason: String,
    /// Told before the close.
    pub error: Option<Box<Refusal>>,
}

impl LastWords {
    /// Without an error: nothing went wrong.
    pub fn plain(code: CloseCode, reason: &str) -> LastWords {
        LastWords { code, reason: reason.to_owned(), error: None }
    }

    /// For a refusal of ours: money and rules are 1008, so that no SDK comes back by itself.
    pub fn refused(refusal: Refusal) -> LastWords {
        let code = match refusal.code {
            Code::LedgerUnavailable | Code::Overloaded => CloseCode::Again,
            Code::ServerDraining => CloseCode::Away,
            Code::BodyTooLarge => CloseCode::Size,
            Code::UpstreamError | Code::UpstreamInvalidReply | Code::UpstreamTimeout | Code::Internal => {
                CloseCode::Error
            }
            _ => CloseCode::Policy,
        };
        LastWords { code, reason: refusal.code.code().to_owned(), error: Some(Box::new(refusal)) }
    }

    pub fn fault(code: Code, text: &str) -> LastWords {
        LastWords::refused(Refusal::new(code, text))
    }

    /// The provider has closed the session. Its code is passed on where one may send it; its words
    /// are not.
    pub fn closed_by_provider(frame: Option<&CloseFrame>) -> LastWords {
        let code = frame.map_or(CloseCode::Error, |frame| match frame.code {
            CloseCode::Normal
            | CloseCode::Away
            | CloseCode::Policy
            | CloseCode::Error
            | CloseCode::Restart
            | CloseCode::Again
            | CloseCode::Size
            | CloseCode::Invalid => frame.code,
            CloseCode::Iana(code) | CloseCode::Library(code) if (3_000..4_000).contains(&code) => frame.code,
            CloseCode::Library(code) if (4_000..5_000).contains(&code) => frame.code,
            _ => CloseCode::Error,
        });
        let text = "The provider closed the session.";
        LastWords {
            code,
            reason: "upstream_closed".to_owned(),
            error: Some(Box::new(Refusal::new(Code::UpstreamError, text))),
        }
    }

    /// The reason as it fits into a frame.
    pub fn short_reason(&self) -> String {
        let mut reason = self.reason.clone();
        reason.truncate(reason.floor_char_boundary(REASON));
        reason
    }
}

/// A refusal as an event. `about` is the `event_id` of the client's event, if it had one.
pub fn error_event(number: u64, refusal: &Refusal, about: Option<&str>) -> Value {
    let error = json!({
        "type": refusal.code.openai_type(), "code": refusal.code.code(), "message": refusal.message,
        "param": refusal.param, "event_id": about,
    });
    json!({ "type": "error", "event_id": format!("event_gateway_{number}"), "error": error })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_tell_sdks_whether_to_come_back() {
        let of = |code| u16::from(LastWords::fault(code, "x").code);
        for (code, number) in [
            (Code::InsufficientBalance, 1008),
            (Code::InvalidApiKey, 1008),
            (Code::AccountSpendLimitReached, 1008),
            (Code::UpstreamError, 1011),
            (Code::UpstreamTimeout, 1011),
            (Code::Overloaded, 1013),
            (Code::ServerDraining, 1001),
            (Code::BodyTooLarge, 1009),
        ] {
            assert_eq!(of(code), number, "{}", code.code());
        }
    }

    #[test]
    fn a_provider_s_code_is_passed_on_where_it_is_a_legal_one() {
        let passed = |code: u16| {
            let frame = CloseFrame { code: code.into(), reason: "secret.host.example".into() };
            let words = LastWords::closed_by_provider(Some(&frame));
            assert!(!words.short_reason().contains("secret"));
            u16::from(words.code)
        };
        for code in [1000, 1001, 1008, 1011, 1012, 1013, 3000, 4000, 4999] {
            assert_eq!(passed(code), code);
        }
        for code in [1004, 1005, 1006, 1015, 2000] {
            assert_eq!(passed(code), 1011, "{code}");
        }
        assert_eq!(u16::from(LastWords::closed_by_provider(None).code), 1011);
    }
}
