//! The error for a caller whose key or account has reached a spending limit: which one, how much it
//! is, when it begins anew.

use crate::refusal::Refusal;
use crate::world::Millis;
use tollgate_store::{LimitKind, LimitReached, date};
use tollgate_wire::error::Code;

/// Clients are not asked to wait longer than this.
const SOON: Millis = 60_000;

pub fn limited(reached: &LimitReached, now: Millis) -> Refusal {
    let (code, whose) = match reached.kind {
        LimitKind::KeyTotal | LimitKind::KeyDay | LimitKind::KeyMonth => (Code::KeySpendCapReached, "key"),
        LimitKind::AccountDay | LimitKind::AccountMonth => (Code::AccountSpendLimitReached, "account"),
    };
    let span = match reached.kind {
        LimitKind::KeyTotal => "in all",
        LimitKind::KeyDay | LimitKind::AccountDay => "a day",
        LimitKind::KeyMonth | LimitKind::AccountMonth => "a month",
    };
    let limit = reached.limit;
    let Some(frees_at) = reached.frees_at else {
        let message =
            format!("This {whose} may spend {limit} USD {span}, and this call may cost more than is left of it.");
        return Refusal::new(code, message);
    };
    let message = format!(
        "This {whose} may spend {limit} USD {span}, and this call may cost more than is left of it. The limit begins anew on {} at 00:00 UTC.",
        date(frees_at)
    );
    let refusal = Refusal::new(code, message);
    match u32::try_from((frees_at - now).max(0).div_euclid(1_000) + 1) {
        Ok(seconds) if frees_at - now < SOON => refusal.after(seconds),
        _ => refusal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_catalog::Money;

    #[test]
    fn the_message_names_the_limit_and_its_end() {
        let midnight = 1_772_323_200_000; // 1 March 2026
        let limit = Money::from_nano(1_500_000_000);
        let table = [
            (LimitKind::KeyTotal, None, "key may spend 1.5 USD in all", None),
            (LimitKind::KeyDay, Some(midnight), "key may spend 1.5 USD a day", Some("anew on 2026-03-01 at 00:00 UTC")),
            (LimitKind::AccountDay, Some(midnight), "account may spend 1.5 USD a day", Some("on 2026-03-01")),
            (LimitKind::AccountMonth, Some(midnight), "account may spend 1.5 USD a month", Some("on 2026-03-01")),
            (LimitKind::KeyMonth, None, "key may spend 1.5 USD a month", None),
        ];
        for (kind, frees_at, begins, ends) in table {
            let refusal = limited(&LimitReached { kind, limit, frees_at }, midnight - 3_600_000);
            assert!(refusal.message.contains(begins), "{}", refusal.message);
            assert_eq!(refusal.message.contains("anew"), ends.is_some(), "{}", refusal.message);
            assert!(refusal.message.contains(ends.unwrap_or("")), "{}", refusal.message);
            assert_eq!(refusal.retry_after, None, "an hour is no wait for a client");
        }
        let soon =
            limited(&LimitReached { kind: LimitKind::KeyDay, limit, frees_at: Some(midnight) }, midnight - 5_000);
        assert_eq!(soon.retry_after, Some(6));
    }
}
