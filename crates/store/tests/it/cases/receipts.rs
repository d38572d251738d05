//! Receipts on every engine: what they say, which key signs them, what a refund and a rotation do.

use tollgate_store::receipt::{Signed, verify};
use tollgate_store::{CallId, CreditKind, Ending, Pot, Receipted};

use crate::common::{Customer, House};

async fn signed(h: &House, c: &Customer, call: CallId) -> Signed {
    match h.store.receipt(c.account, call).await.expect("reading") {
        Receipted::Signed(signed) => *signed,
        Receipted::StillOpen => panic!("{call} is open"),
        Receipted::NoSuchCall => panic!("{call} is unknown"),
    }
}

async fn holds(h: &House, signed: &Signed) {
    let keys = h.store.receipt_keys().await.expect("keys");
    verify(&signed.text(), &keys).expect("the receipt holds");
}

pub async fn a_receipt_proves_the_charge(h: House) {
    let c = h.customer(100, 1_000).await;
    let call = h.held(&c, 300).await;
    assert!(matches!(h.store.receipt(c.account, call).await, Ok(Receipted::StillOpen)));
    h.store.close(h.ending(&c, call, 250)).await.expect("closed");
    let proof = signed(&h, &c, call).await;
    let r = &proof.receipt;
    assert_eq!((r.call_id, r.account_id, r.key_id, r.key_prefix.as_str()), (call, c.account, c.key, "sk-call"));
    assert_eq!((r.ending, r.status, r.estimated, r.model.as_str()), (Ending::Answered, 200, false, "test"));
    assert_eq!((r.hold_nano_usd, r.total_nano_usd, r.charge_nano_usd), (300, 250, 250));
    assert_eq!((r.write_off_nano_usd, r.refunded_nano_usd), (0, 0));
    let calculation = r.calculation.as_ref().expect("a calculation");
    assert_eq!((calculation.pricing_version.as_str(), calculation.group.as_str()), ("v1", "default"));
    let lines: Vec<_> = calculation.lines.iter().map(|l| (l.face.name(), l.quantity, l.micro_usd)).collect();
    assert_eq!(lines, [("input", 250_000, 1)]);
    assert_eq!(r.issued_at_ms, h.clock.now());
    holds(&h, &proof).await;
    let stranger = h.customer(0, 0).await;
    for (account, call) in [(stranger.account, call), (c.account, h.maker.call())] {
        assert!(matches!(h.store.receipt(account, call).await, Ok(Receipted::NoSuchCall)));
    }
    h.close().await;
}

pub async fn a_receipt_tells_what_was_free_written_off_and_refunded(h: House) {
    let c = h.customer(0, 100).await;
    let free = h.held(&c, 50).await;
    // Something was counted, and the call is free all the same: the provider failed.
    let mut ending = h.ending(&c, free, 0);
    ending.row.counters.input = 7;
    h.store.close(ending).await.expect("closed");
    let proof = signed(&h, &c, free).await;
    assert_eq!((proof.receipt.total_nano_usd, proof.receipt.hold_nano_usd), (0, 50));
    assert_eq!(proof.receipt.calculation.as_ref().map(|c| c.lines.len()), Some(0), "nothing was charged");
    holds(&h, &proof).await;
    // A refused call never had a price.
    let refused = h.maker.call();
    h.store.note_refusal(refused, c.account, "insufficient_balance".into(), h.facts(&c, 0));
    let proof = signed(&h, &c, refused).await;
    assert_eq!((proof.receipt.ending, proof.receipt.calculation.is_none()), (Ending::Refused, true));
    holds(&h, &proof).await;
    // More than the account had.
    let lost = h.held(&c, 60).await;
    h.store.close(h.ending(&c, lost, 130)).await.expect("closed");
    let before = signed(&h, &c, lost).await;
    let r = &before.receipt;
    assert_eq!((r.total_nano_usd, r.charge_nano_usd, r.write_off_nano_usd), (130, 100, 30));
    holds(&h, &before).await;
    h.credit(&c, "sorry", CreditKind::Refund { call: lost }, Pot::Paid, 40).await.expect("a refund");
    let after = signed(&h, &c, lost).await;
    assert_eq!((after.receipt.refunded_nano_usd, after.receipt.charge_nano_usd), (40, 100), "a new receipt says so");
    holds(&h, &after).await;
    holds(&h, &before).await;
    h.close().await;
}

pub async fn keys_of_receipts_are_made_once_and_rotate(h: House) {
    let c = h.customer(0, 1_000).await;
    let call = h.held(&c, 10).await;
    h.store.close(h.ending(&c, call, 10)).await.expect("closed");
    let old = signed(&h, &c, call).await;
    let first = h.store.receipt_keys().await.expect("keys");
    assert_eq!(first.keys.len(), 1);
    let h = h.reopen().await;
    assert_eq!(h.store.receipt_keys().await.expect("keys"), first, "a restart makes no new key");
    h.clock.advance(86_400_000);
    let keys = h.store.rotate_receipt_key().await.expect("a new key").keys;
    assert_eq!(keys.len(), 2);
    assert_eq!((keys[0].from_ms, keys[0].until_ms), (h.clock.now(), None));
    assert_eq!((keys[1].kid.as_str(), keys[1].until_ms), (first.keys[0].kid.as_str(), Some(h.clock.now())));
    let new = signed(&h, &c, call).await;
    assert_eq!(new.receipt.kid, keys[0].kid, "signed with the new key at once");
    holds(&h, &new).await;
    holds(&h, &old).await;
    assert!(verify(&new.text(), &first).is_err(), "the old copy of the keys does not know it");
    if h.place.url != "sqlite" {
        other_replicas_sign_with_the_same_key(&h, &c, call).await;
    }
    h.close().await;
}

async fn other_replicas_sign_with_the_same_key(h: &House, c: &Customer, call: CallId) {
    let other = House::open(&h.place.url).await;
    let kid = |keys: tollgate_store::receipt::PublicKeys| keys.keys[0].kid.clone();
    assert_eq!(signed(&other, c, call).await.receipt.kid, kid(h.store.receipt_keys().await.expect("keys")));
    let new = kid(other.store.rotate_receipt_key().await.expect("a new key"));
    let proof = signed(h, c, call).await;
    assert_eq!(proof.receipt.kid, new, "without a restart");
    holds(&other, &proof).await;
    // Two operators at once: two new keys, one after the other, and one of them signs.
    let (one, two) = tokio::join!(h.store.rotate_receipt_key(), other.store.rotate_receipt_key());
    let most = one.expect("a new key").keys.len().max(two.expect("a new key").keys.len());
    assert_eq!(most, 5);
    let keys = h.store.receipt_keys().await.expect("keys").keys;
    assert_eq!(keys.iter().filter(|key| key.until_ms.is_none()).count(), 1);
    other.store.shut().await;
}

/// Noted once each, in the order in which they came.
pub async fn secrets_are_known_by_their_names(h: House) {
    let known = async || h.store.signing_secrets().await.expect("names");
    assert!(known().await.is_empty());
    for (names, expected) in [(vec!["b"], vec!["b"]), (vec!["a", "b"], vec!["b", "a"]), (vec![], vec!["b", "a"])] {
        let names = names.into_iter().map(str::to_owned).collect();
        h.clock.advance(1_000);
        h.store.note_signing_secrets(names).await.expect("noted");
        assert_eq!(known().await, expected);
    }
}
