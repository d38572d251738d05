//! `/api/session/totp`: a second factor, on and off, and its recovery codes.

use super::sessions::done;
use super::verb::{PersonRequest, PersonVerb};
use crate::endpoints::admin::field::{FieldKind, must};
use crate::endpoints::openapi::shapes::named;
use crate::endpoints::row::{Access, Family, Row};
use crate::people::tokens::{RECOVERY_CODES, recovery_code, recovery_hash};
use crate::people::totp;
use crate::people::waits::GuardedAct;
use crate::refusal::Refusal;
use futures_util::FutureExt as _;
use serde_json::{Value, json};
use tollgate_store::CredentialKind;
use tollgate_wire::error::Code;

pub const FAMILY: Family = Family { tag: "people: second factor", rows, schemas };

fn rows() -> Vec<Row> {
    let path = "/api/session/totp";
    vec![
        PROPOSE.post(path, Access::Session, "A new second factor; it counts once it is confirmed").gives(named("Totp")),
        CONFIRM
            .post("/api/session/totp/confirm", Access::Session, "Confirms it with a first code; gives recovery codes")
            .gives(named("RecoveryCodes")),
        RENEW
            .post("/api/session/totp/recovery-codes", Access::Session, "New recovery codes; the old ones end")
            .gives(named("RecoveryCodes")),
        DROP.delete(path, Access::Session, "Takes the second factor away").gives(named("Done")),
    ]
}

fn schemas() -> Value {
    json!({
        "Totp": { "type": "object", "required": ["secret", "uri"], "properties": {
            "secret": { "type": "string", "description": "Base32, shown this once" },
            "uri": { "type": "string", "description": "What an application reads from a picture" },
        } },
        "RecoveryCodes": { "type": "object", "required": ["recovery_codes"], "properties": {
            "recovery_codes": { "type": "array", "items": { "type": "string" }, "description": "Each works once" },
        } },
    })
}

static PROPOSE: PersonVerb = PersonVerb {
    fields: &[],
    answer: |asked| {
        async move {
            let (own, app) = (asked.strong()?, &asked.app);
            let mut secret = [0; totp::SECRET_BYTES];
            asked.fill(&mut secret);
            let sealed = app.people.seal_totp(&own.id.to_string(), &secret, |nonce| asked.fill(nonce));
            let sealed = sealed.ok_or_else(|| Refusal::new(Code::Internal, "The second factor cannot be sealed."))?;
            app.store.propose_totp(own.id, sealed).await?;
            Ok(json!({ "secret": totp::base32(&secret), "uri": totp::uri(&own.record.email, &secret) }).into())
        }
        .boxed()
    },
};

static CONFIRM: PersonVerb = PersonVerb {
    fields: &[must("code", FieldKind::Text(20), "Six digits")],
    answer: |asked| {
        async move {
            let (own, app) = (asked.strong()?, &asked.app);
            let begun = app.people.waits.begin(GuardedAct::SignIn, &own.record.email, asked.address(), asked.now())?;
            let credentials = app.store.credentials(own.id).await?;
            let proposed = credentials.iter().find(|one| one.kind == CredentialKind::TotpNew);
            let none =
                || Refusal::new(Code::Conflict, "There is no second factor to confirm: POST /api/session/totp first.");
            let proposed = proposed.ok_or_else(none)?;
            let secret = app.people.open_totp(&own.id.to_string(), &proposed.secret).ok_or_else(none)?;
            let step = totp::step_of(&secret, &asked.text("code")?, asked.now());
            let wrong = || {
                let text = "`code` is not the code of now: is the clock of the device right?";
                Refusal::about(Code::InvalidParameter, "code", text)
            };
            let codes = codes(asked);
            let hashes: Vec<[u8; 32]> = codes.iter().map(|code| recovery_hash(code)).collect();
            if !app.store.confirm_totp(&own.record, step.ok_or_else(wrong)?, &hashes).await? {
                return Err(none());
            }
            begun.succeeded();
            Ok(json!({ "recovery_codes": codes }).into())
        }
        .boxed()
    },
};

static RENEW: PersonVerb = PersonVerb {
    fields: &[],
    answer: |asked| {
        async move {
            let (own, app) = (asked.strong()?, &asked.app);
            let has = app.store.credentials(own.id).await?.iter().any(|one| one.kind == CredentialKind::Totp);
            if !has {
                return Err(Refusal::new(Code::Conflict, "There is no second factor."));
            }
            let codes = codes(asked);
            let hashes: Vec<[u8; 32]> = codes.iter().map(|code| recovery_hash(code)).collect();
            app.store.renew_recovery(&own.record, &hashes).await?;
            Ok(json!({ "recovery_codes": codes }).into())
        }
        .boxed()
    },
};

static DROP: PersonVerb = PersonVerb {
    fields: &[],
    answer: |asked| {
        async move {
            let own = asked.strong()?;
            if !asked.app.store.drop_totp(&own.record, own.done()).await? {
                return Err(Refusal::new(Code::NotFound, "There is no second factor."));
            }
            Ok(done())
        }
        .boxed()
    },
};

fn codes(asked: &PersonRequest) -> Vec<String> {
    (0..RECOVERY_CODES).map(|_| recovery_code(|bytes| asked.fill(bytes))).collect()
}
