//! The end of a call after which nobody may try again, stored under its Idempotency-Key: something
//! may have been made, so whoever repeats the key gets the same refusal and not a second try.

use crate::refusal::Refusal;
use serde_json::{Value, json};
use tollgate_store::StoredReply;
use tollgate_wire::error::Code;

/// The refusal as it is stored.
pub(super) fn write(refusal: &Refusal) -> Option<StoredReply> {
    refusal.once.then(|| {
        let body = json!({
            "code": refusal.code.code(), "message": refusal.message, "param": refusal.param,
            "upstream_code": refusal.upstream_code, "details": refusal.details,
        });
        StoredReply {
            status: refusal.code.status(),
            content_type: "application/json".to_owned(),
            body: body.to_string().into(),
        }
    })
}

/// The refusal of a call that was cut off with its gateway, as it is stored.
pub fn lost_refusal() -> Option<StoredReply> {
    write(&stopped(true))
}

/// The refusal of a call that was cut off by a stop.
pub(super) fn stopped(keyed: bool) -> Refusal {
    lost("The gateway was stopped while this was being made, and whether it was made is not known.", keyed)
}

/// The refusal of a call whose answer was not handed over, though it may have been made.
pub(super) fn broken_off(keyed: bool) -> Refusal {
    lost("This broke off before its answer was handed over, and whether it was made is not known.", keyed)
}

fn lost(why: &str, keyed: bool) -> Refusal {
    let again = match keyed {
        true => ", and it is not begun again under this Idempotency-Key; send it with a new key to have it made.",
        false => ". Sent again, it may be made a second time.",
    };
    Refusal::new(Code::ChargeStateUnknown, format!("{why} Nothing was charged{again}")).once()
}

/// The refusal that was stored; `None` where it is an answer.
pub(super) fn read(stored: &StoredReply) -> Option<Refusal> {
    if stored.status < 400 {
        return None;
    }
    let body: Value = serde_json::from_slice(&stored.body).ok()?;
    let code = Code::ALL.iter().find(|code| body["code"] == code.code())?;
    let refusal = Refusal::new(*code, body["message"].as_str().unwrap_or_default());
    let text = |member: &str| body[member].as_str().map(Box::from);
    let (upstream_code, details) = (text("upstream_code"), text("details"));
    Some(Refusal { param: body["param"].as_str().map(str::to_owned), upstream_code, details, ..refusal }.once())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_not_be_repeated_is_refused_again() {
        let refusal = Refusal {
            upstream_code: Some("Slow".into()),
            details: Some("{\"seconds\":9}".into()),
            ..Refusal::about(Code::UpstreamTimeout, "prompt", "It took too long.")
        };
        assert!(write(&refusal).is_none(), "it may be tried again");
        let stored = write(&refusal.clone().once()).expect("stored");
        let repeated = read(&stored).expect("a refusal");
        assert_eq!((&repeated.upstream_code, &repeated.details), (&refusal.upstream_code, &refusal.details));
        assert_eq!(
            (repeated.code, repeated.message, repeated.param, repeated.once),
            (refusal.code, refusal.message, refusal.param, true)
        );
        assert!(read(&StoredReply { status: 200, ..stored }).is_none());
    }
}
