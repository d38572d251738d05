//! How news look to those who get them: a signed event for webhooks, a text in the form of each
//! chat. Chats that answer 200 and say in the body that they did not take it are read.

use super::PlaceAddress;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ring::hmac;
use serde_json::{Value, json};
use tollgate_store::{AlertEventId, AlertMove, AlertNews, AlertPlaceKind};

/// What is sent, and where: some sign in the address.
pub struct PlaceForm {
    pub url: String,
    pub body: Value,
}

/// What a webhook gets. The same event is always the same text.
pub fn event(id: AlertEventId, news: &AlertNews) -> Value {
    json!({
        "object": "event",
        "id": id,
        "type": format!("alert.{}", news.what.word()),
        "created_at": news.at_ms.div_euclid(1000),
        "data": { "rule": news.rule, "kind": news.kind, "subject": news.subject, "message": news.message },
    })
}

/// What people read.
pub fn text(news: &AlertNews) -> String {
    let word = match news.what {
        AlertMove::Firing => "FIRING",
        AlertMove::Reminder => "STILL FIRING",
        AlertMove::Cleared => "CLEARED",
        AlertMove::Test => "TEST",
    };
    format!("[Tollgate] {word}: {}: {}", news.rule, news.message)
}

/// A text in the form of a chat. What could call people by name there is made harmless.
pub fn chat(kind: AlertPlaceKind, address: &PlaceAddress, text: &str, now_ms: i64) -> PlaceForm {
    let mut url = address.to.clone();
    let secret = address.secret.as_deref();
    let body = match kind {
        AlertPlaceKind::Slack => json!({ "text": escaped(text) }),
        AlertPlaceKind::Discord => json!({ "content": text, "allowed_mentions": { "parse": [] } }),
        AlertPlaceKind::Feishu => {
            let mut body = json!({ "msg_type": "text", "content": { "text": text.replace('<', "‹") } });
            if let Some(secret) = secret {
                let at = now_ms.div_euclid(1000).to_string();
                body["sign"] = json!(signed(&format!("{at}\n{secret}"), b""));
                body["timestamp"] = json!(at);
            }
            body
        }
        AlertPlaceKind::Dingtalk => {
            if let Some(secret) = secret {
                let sign = signed(secret, format!("{now_ms}\n{secret}").as_bytes());
                let mark = if url.contains('?') { '&' } else { '?' };
                url = format!("{url}{mark}timestamp={now_ms}&sign={}", percent(&sign));
            }
            json!({ "msgtype": "text", "text": { "content": text } })
        }
        AlertPlaceKind::Wecom => json!({ "msgtype": "text", "text": { "content": text } }),
        // The address names the chat: `…/bot<token>/sendMessage?chat_id=<chat>`.
        AlertPlaceKind::Telegram | AlertPlaceKind::Webhook | AlertPlaceKind::Mail => json!({ "text": text }),
    };
    PlaceForm { url, body }
}

/// Those that answer 200 whatever happened.
pub fn says_in_its_body(kind: AlertPlaceKind) -> bool {
    use AlertPlaceKind::{Dingtalk, Discord, Feishu, Mail, Slack, Telegram, Webhook, Wecom};
    match kind {
        Feishu | Dingtalk | Wecom | Telegram => true,
        Webhook | Mail | Slack | Discord => false,
    }
}

/// Whether the body says that it was taken.
pub fn was_taken(kind: AlertPlaceKind, body: &[u8]) -> bool {
    let Ok(said) = serde_json::from_slice::<Value>(body) else { return false };
    match kind {
        AlertPlaceKind::Feishu => said["code"] == 0 || said["StatusCode"] == 0,
        AlertPlaceKind::Dingtalk | AlertPlaceKind::Wecom => said["errcode"] == 0,
        AlertPlaceKind::Telegram => said["ok"] == true,
        _ => true,
    }
}

fn signed(key: &str, text: &[u8]) -> String {
    BASE64_STANDARD.encode(hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes()), text))
}

fn percent(text: &str) -> String {
    text.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D")
}

/// What Slack would read as a command is text.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn news() -> AlertNews {
        AlertNews {
            what: AlertMove::Firing,
            rule: "low <!channel>".to_owned(),
            kind: "balance".to_owned(),
            subject: "acct_1".to_owned(),
            message: "acct_1 has 1 USD, less than 5 USD".to_owned(),
            at_ms: 1_700_000_000_999,
        }
    }

    /// As the makers of the chats describe them.
    #[test]
    fn each_chat_gets_its_own_form() {
        let said = "[Tollgate] FIRING: low <!channel>: acct_1 has 1 USD, less than 5 USD";
        let safe = said.replace('<', "&lt;").replace('>', "&gt;");
        let without = PlaceAddress { to: "https://chat.example/hook?access_token=x".to_owned(), secret: None };
        for (kind, expected) in [
            (AlertPlaceKind::Slack, json!({ "text": safe })),
            (AlertPlaceKind::Discord, json!({ "content": said, "allowed_mentions": { "parse": [] } })),
            (AlertPlaceKind::Feishu, json!({ "msg_type": "text", "content": { "text": said.replace('<', "‹") } })),
            (AlertPlaceKind::Dingtalk, json!({ "msgtype": "text", "text": { "content": said } })),
            (AlertPlaceKind::Wecom, json!({ "msgtype": "text", "text": { "content": said } })),
            (AlertPlaceKind::Telegram, json!({ "text": said })),
        ] {
            let made = chat(kind, &without, &text(&news()), 1_700_000_000_000);
            assert_eq!((made.body, made.url), (expected, without.to.clone()), "{kind:?}");
        }
    }

    /// The two that want a signature: by the key `timestamp\nsecret` over nothing, and by the
    /// secret over `timestamp\nsecret` in the address. The values come from Python's `hmac`.
    #[test]
    fn signatures_are_those_of_their_makers() {
        let with = PlaceAddress {
            to: "https://chat.example/hook?access_token=x".to_owned(),
            secret: Some("SECabc".to_owned()),
        };
        let feishu = chat(AlertPlaceKind::Feishu, &with, "x", 1_700_000_000_000).body;
        assert_eq!(feishu["timestamp"], "1700000000");
        assert_eq!(feishu["sign"], FEISHU);
        let dingtalk = chat(AlertPlaceKind::Dingtalk, &with, "x", 1_700_000_000_000).url;
        assert_eq!(dingtalk, format!("{}&timestamp=1700000000000&sign={DINGTALK}", with.to));
    }
    const FEISHU: &str = "XprR1de+0SSBnwWyU/4k6x2TL+Q2SJlM5NNEdAv7MWg=";
    const DINGTALK: &str = "jcUpW0QmtKduN03n4JqQ0PBosVjqnM8gU7fIIvsDmCM%3D";

    #[test]
    fn an_answer_of_200_may_be_a_refusal() {
        for (kind, body, taken) in [
            (AlertPlaceKind::Feishu, r#"{"code":0,"msg":"success"}"#, true),
            (AlertPlaceKind::Feishu, r#"{"StatusCode":0,"StatusMessage":"success"}"#, true),
            (AlertPlaceKind::Feishu, r#"{"code":19021,"msg":"sign match fail"}"#, false),
            (AlertPlaceKind::Dingtalk, r#"{"errcode":0,"errmsg":"ok"}"#, true),
            (AlertPlaceKind::Dingtalk, r#"{"errcode":310000,"errmsg":"keywords not in content"}"#, false),
            (AlertPlaceKind::Wecom, r#"{"errcode":45009,"errmsg":"api freq out of limit"}"#, false),
            (AlertPlaceKind::Telegram, r#"{"ok":true,"result":{}}"#, true),
            (AlertPlaceKind::Telegram, "<html>", false),
        ] {
            assert_eq!(was_taken(kind, body.as_bytes()), taken, "{kind:?} {body}");
        }
    }
}
