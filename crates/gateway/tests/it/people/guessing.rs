//! Guessing: who is here cannot be found out, guesses wait, and they cost others nothing.

use super::{Browser, GOOD, house, house_without_time, person, signed_in};
use serde_json::{Value, json};

/// What was hashed meanwhile.
async fn counted<T>(house: &crate::house::House, work: impl Future<Output = T>) -> (T, u64) {
    let runs = || house.running().app.people.passwords.figures().0;
    let before = runs();
    let done = work.await;
    (done, runs() - before)
}

#[tokio::test(flavor = "multi_thread")]
async fn known_and_unknown_e_mails_get_the_same_answer_for_the_same_work() {
    let house = house("sqlite").await;
    let known = person(&house, "ada@example.com", None, None).await;
    let locked = person(&house, "locked@example.com", None, None).await;
    house.running().app.store.change_person(locked.id, None, Some(true), super::test()).await.expect("locked out");
    let _ = known;
    type Ask = fn(&str) -> Value;
    let asks: [(&str, Ask); 4] = [
        ("/api/session", |email| json!({ "email": email, "password": "wrong wrong wrong" })),
        ("/api/sign-up", |email| json!({ "email": email, "password": GOOD })),
        ("/api/password/forgot", |email| json!({ "email": email })),
        ("/api/email/resend", |email| json!({ "email": email })),
    ];
    for (path, body) in asks {
        let mut seen = Vec::new();
        for email in ["ada@example.com", "nobody@example.com", "locked@example.com"] {
            let mut browser = Browser::new(&house);
            let (answer, runs) = counted(&house, browser.post(path, body(email))).await;
            seen.push((answer.status, answer.body, runs));
        }
        assert_eq!(seen[0], seen[1], "{path}");
        assert_eq!(seen[0], seen[2], "{path}");
        let hashed = u64::from(path == "/api/session" || path == "/api/sign-up");
        assert_eq!(seen[0].2, hashed, "{path}");
    }
    // The right password of somebody who is locked out, and a wrong one.
    let mut browser = Browser::new(&house);
    let (right, runs) = counted(&house, browser.sign_in("locked@example.com", GOOD)).await;
    assert_eq!((right.code.as_str(), runs), ("sign_in_failed", 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn guesses_wait_longer_and_longer_and_nobody_is_locked_out() {
    let house = house_without_time("sqlite").await;
    for email in ["ada@example.com", "nobody@example.com"] {
        if email.starts_with("ada") {
            person(&house, email, None, None).await;
        }
        let mut browser = Browser::new(&house);
        for _ in 0..5 {
            assert_eq!(browser.sign_in(email, "wrong wrong wrong").await.status, 401);
        }
        let (waits, runs) = counted(&house, browser.sign_in(email, GOOD)).await;
        assert_eq!((waits.status, waits.code.as_str(), runs), (429, "rate_limit_exceeded", 0), "{}", waits.body);
        assert_eq!(waits.retry_after, Some(1), "{email}");
    }
    house.later(2_000).await;
    assert_eq!(Browser::new(&house).sign_in("ada@example.com", GOOD).await.status, 200, "the owner comes in");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_sign_ins_at_once_hash_two_at_a_time() {
    let house = house("sqlite").await;
    let mut ada = signed_in(&house, "ada@example.com", None, None).await;
    let tries = (0..1_000).map(|n| {
        let house = &house;
        async move { Browser::new(house).sign_in(&format!("nobody{n}@example.com"), "wrong wrong wrong").await.status }
    });
    let statuses = futures_util::future::join_all(tries).await;
    let (runs, most, refused) = house.running().app.people.passwords.figures();
    assert!(most <= 2, "{most} at once");
    let count = |status| u64::try_from(statuses.iter().filter(|one| **one == status).count()).expect("a number");
    assert_eq!(count(401) + count(429) + count(503), 1_000, "{statuses:?}");
    assert_eq!(count(503), refused, "who found no place was refused");
    // One for the person, one for her sign-in, and one for each that was answered.
    assert_eq!(runs, 2 + count(401));
    assert!(count(429) >= 800, "one address does not fill the queue: {}", count(429));
    assert_eq!(ada.get("/api/session").await.status, 200);
    let call = house.post(&json!({ "model": "plain", "messages": [{ "role": "user", "content": "hi" }] }));
    assert_eq!(call.send().await.expect("a reply").status(), 200);
    house.quiet().await;
}

/// Whatever somebody changes by a session leaves a row for good, so there is an end to it.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_changes_without_end_waits() {
    let house = house_without_time("sqlite").await;
    // The session that begins is the first of two hundred changes.
    let mut ada = signed_in(&house, "ada@example.com", None, None).await;
    for number in 1..200 {
        assert_eq!(ada.ask("DELETE", "/api/sessions", None).await.status, 200, "{number}");
    }
    let refused = ada.ask("DELETE", "/api/sessions", None).await;
    assert_eq!((refused.status, refused.code.as_str()), (429, "rate_limit_exceeded"), "{}", refused.body);
    assert_eq!(ada.get("/api/session").await.status, 200, "reading goes on");
    house.quiet().await;
}
