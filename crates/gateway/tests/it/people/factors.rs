//! Second factors: each code once, recovery codes once, and nobody without.

use super::{Browser, GOOD, house, letters, signed_in, token_in};
use crate::engine::Engine;
use serde_json::{Value, json};
use tollgate_gateway::people::totp::code_at;

/// Base32 back into bytes.
fn bytes(text: &str) -> Vec<u8> {
    let (mut out, mut held, mut bits) = (Vec::new(), 0u64, 0);
    for c in text.bytes() {
        let value = if c.is_ascii_uppercase() { c - b'A' } else { c - b'2' + 26 };
        held = (held << 5) | u64::from(value);
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            out.push(u8::try_from((held >> bits) & 255).expect("a byte"));
        }
    }
    out
}

/// The code that an app shows at a time.
pub fn code_of(secret: &str, now_ms: i64) -> String {
    code_at(&bytes(secret), now_ms / 30_000)
}

#[tokio::test(flavor = "multi_thread")]
async fn codes_work_once() {
    for engine in Engine::both().await {
        let house = house(&engine.url).await;
        let mut ada = signed_in(&house, "ada@example.com", None, None).await;
        let proposed = ada.post("/api/session/totp", json!({})).await;
        let secret = bytes(proposed.body["secret"].as_str().expect("a secret"));
        let now = || house.running().app.world.now_ms() / 30_000;
        let wrong = ada.post("/api/session/totp/confirm", json!({ "code": "000000000" })).await;
        assert_eq!((wrong.status, wrong.code.as_str()), (400, "invalid_parameter"));
        let first = now();
        let confirmed = ada.post("/api/session/totp/confirm", json!({ "code": code_at(&secret, first) })).await;
        let codes: Vec<String> = confirmed.body["recovery_codes"]
            .as_array()
            .map_or(Vec::new(), |all| all.iter().map(|code| code.as_str().expect("text").to_owned()).collect());
        assert_eq!(codes.len(), 10, "{}", confirmed.body);

        let with = |more: Value| {
            let mut body = json!({ "email": "ada@example.com", "password": GOOD });
            body.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
            body
        };
        let sign_in = async |more: Value| Browser::new(&house).post("/api/session", with(more)).await;
        let missing = sign_in(json!({})).await;
        assert_eq!((missing.status, missing.code.as_str()), (401, "second_factor_required"));
        assert_eq!(sign_in(json!({ "code": code_at(&secret, first) })).await.code, "sign_in_failed", "was used");
        house.later(60_000).await;
        // Two at once with the same code: one of them.
        let code = json!({ "code": code_at(&secret, now()) });
        let (one, two) = tokio::join!(sign_in(code.clone()), sign_in(code.clone()));
        let mut both = [one.status, two.status];
        both.sort_unstable();
        assert_eq!(both, [200, 401], "{}: {} {}", engine.name, one.body, two.body);
        assert_eq!(sign_in(code).await.code, "sign_in_failed", "again");
        // The same for a recovery code.
        let code = json!({ "recovery_code": codes[3].to_uppercase() });
        let (one, two) = tokio::join!(sign_in(code.clone()), sign_in(code.clone()));
        assert_eq!(one.status.min(two.status), 200);
        assert_eq!(one.status.max(two.status), 401);
        house.later(20 * 60_000).await;
        assert_eq!(sign_in(code).await.code, "sign_in_failed", "again");
        assert_eq!(sign_in(json!({ "recovery_code": codes[4] })).await.status, 200, "another one");

        // Whoever reads the mail has not the telephone.
        let mut thief = Browser::new(&house);
        assert_eq!(thief.post("/api/password/forgot", json!({ "email": "ada@example.com" })).await.status, 200);
        let token = token_in(&letters(&house, 1).await[0]);
        let reset = json!({ "token": token, "new_password": "mine from now on, all" });
        assert_eq!(thief.post("/api/password/reset", reset).await.code, "second_factor_required");
        assert_eq!(sign_in(json!({ "recovery_code": codes[5] })).await.status, 200, "the password stays");
        let stored = house.running().app.store.person_by_email("ada@example.com").await.expect("read").expect("her");
        let credentials = house.running().app.store.credentials(stored.id).await.expect("read");
        assert!(!credentials.iter().any(|one| one.secret.windows(20).any(|some| some == secret)), "sealed");
        house.quiet().await;
    }
}
