//! Mail: written with what it is about, and sent after a death in between.

use super::{Browser, house, letters, person, token_in};
use crate::engine::Engine;
use serde_json::json;
use tollgate_gateway::people::letter::{Letter, LetterAbout};
use tollgate_gateway::people::tokens::OneTimeToken;
use tollgate_store::{NewMailToken, TokenPurpose};

pub async fn a_letter_whose_sender_died_is_sent_by_the_next() {
    for engine in Engine::both().await {
        let house = house(&engine.url).await;
        let ada = person(&house, "ada@example.com", None, None).await;
        let app = &house.running().app;
        let token = OneTimeToken::new(|bytes| app.world.fill(bytes));
        let letter = Letter {
            about: LetterAbout::Reset,
            to: ada.email.clone(),
            locale: "zh-CN".to_owned(),
            link: Some(format!("https://gate.example/reset-password#token={}", token.text)),
            place: String::new(),
        };
        let sealed = app.people.sealed(&letter, |bytes| app.world.fill(bytes)).expect("mail is sent here");
        assert!(!sealed.windows(20).any(|some| token.text.as_bytes().starts_with(some)), "no token in the store");
        // Token and mail are one write. Nobody rings: whoever did it is dead.
        let expires_at = app.world.now_ms() + 3_600_000;
        let new = NewMailToken { hash: token.hash, purpose: TokenPurpose::Reset, expires_at };
        app.store.mail_token(new, ada.id, sealed).await.expect("written");
        // And a sender takes it, and dies.
        assert_eq!(app.store.take_mail(10, 180_000).await.expect("taken").len(), 1);
        assert_eq!(app.store.take_mail(10, 180_000).await.expect("taken").len(), 0, "it is in other hands");
        app.people.ring();
        assert_eq!(app.store.mail_waiting().await.expect("read"), 1);
        house.later(181_000).await;
        app.people.ring();
        let sent = letters(&house, 1).await.remove(0);
        assert_eq!(token_in(&sent), token.text);
        let reset = json!({ "token": token.text, "new_password": "a whole new lamp 7" });
        assert_eq!(Browser::new(&house).post("/api/password/reset", reset).await.status, 200);
        letters(&house, 2).await;
        house.quiet().await;
    }
}
