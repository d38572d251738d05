//! Replies that are stored for idempotency keys, and how many of them an account may have.

use tollgate_store::{HoldRefused, Options, ROW_BYTES, StoredReply};

use crate::common::{Customer, House, idem, reply};

/// What whoever repeats the key is given; `None`: nothing is stored.
async fn repeated(h: &House, c: &Customer, key: u8) -> Option<StoredReply> {
    let mut wish = h.wish(c, 10);
    wish.idem = Some(idem(key, 1));
    match h.hold(wish).await {
        Err(HoldRefused::IdemDone { reply, .. }) => reply,
        other => panic!("not done: {:?}", other.map(|held| held.call)),
    }
}

/// A call with a key, answered with so many bytes.
async fn answered(h: &House, c: &Customer, key: u8, bytes: usize) -> Option<StoredReply> {
    let mut wish = h.wish(c, 10);
    wish.idem = Some(idem(key, 1));
    let call = h.hold(wish).await.expect("new").call;
    let mut ending = h.ending(c, call, 5);
    ending.reply = Some(reply(&"x".repeat(bytes)));
    assert_eq!(h.store.close(ending).await.expect("closed").captured.nano(), 5);
    repeated(h, c, key).await
}

pub async fn stored_replies_of_an_account_have_a_bound(h: House) {
    let options = Options { reply_bytes: 2 * ROW_BYTES + 100, ..h.options.clone() };
    let h = h.reopened_with(options).await;
    let (c, other) = (h.customer(0, 1_000).await, h.customer(0, 1_000).await);
    let fifty = Some(reply(&"x".repeat(50)));
    assert_eq!(answered(&h, &c, 1, 51).await, Some(reply(&"x".repeat(51))));
    assert_eq!(answered(&h, &c, 2, 50).await, None, "one byte too many");
    assert_eq!(answered(&h, &c, 3, 49).await, Some(reply(&"x".repeat(49))), "it fits exactly");
    assert_eq!(answered(&h, &c, 4, 0).await, None);
    assert_eq!(answered(&h, &other, 1, 50).await, fifty, "another account has its own room");
    assert_eq!(h.pots(&c).await, (0, 980, 0, 0), "each was charged once");

    let h = h.reopen().await;
    assert_eq!(repeated(&h, &c, 2).await, None);
    assert_eq!(answered(&h, &c, 5, 50).await, None, "what was stored before counts");
    // Room comes back when keys are forgotten, after a day.
    h.clock.advance(12 * 3_600_000);
    h.store.sweep(h.clock.now()).await.expect("a sweep");
    assert_eq!(answered(&h, &c, 6, 50).await, None);
    h.clock.advance(14 * 3_600_000);
    assert_eq!(h.store.sweep(h.clock.now()).await.expect("a sweep").forgotten, 6);
    assert_eq!(answered(&h, &c, 7, 50).await, fifty);
    assert_eq!(h.pots(&c).await, (0, 965, 0, 0));
    h.close().await;
}
