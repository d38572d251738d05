//! Stored responses and conversations: found by their account, continued, erased, forgotten.

use tollgate_store::{AddedItem, Chain, Item, ItemPage, NewResponse, Quota, StoredConversation, StoredResponse};

use crate::common::{Customer, House};

const DAY: i64 = 86_400_000;

fn response_of(h: &House, id: &str, previous: Option<&str>) -> StoredResponse {
    let now = h.clock.now();
    StoredResponse {
        id: id.to_owned(),
        previous: previous.map(str::to_owned),
        conversation: None,
        created_at: now,
        expires_at: now + 30 * DAY,
        input: format!("[{{\"asked\":\"{id}\"}}]"),
        object: format!("{{\"id\":\"{id}\",\"opaque\":\"\u{2028}é\"}}"),
    }
}

async fn keep(h: &House, c: &Customer, response: StoredResponse, items: &[&str]) -> bool {
    let items = items.iter().map(|item| (*item).to_owned()).collect();
    let new = NewResponse { account: c.account, response, items, said: Vec::new() };
    h.store.store_response(new, Quota::UNLIMITED).await.expect("asked").expect("room")
}

async fn chain(h: &House, c: &Customer, id: &str) -> Chain {
    h.store.response_chain(c.account, id).await.expect("read")
}

fn ids(chain: Chain) -> Vec<String> {
    match chain {
        Chain::Whole(list) => list.into_iter().map(|one| one.id).collect(),
        other => vec![format!("{other:?}")],
    }
}

pub async fn a_response_is_stored_once_for_one_account(h: House) {
    let (c, other) = (h.customer(0, 0).await, h.customer(0, 0).await);
    let one = response_of(&h, "resp_1", None);
    assert!(keep(&h, &c, one.clone(), &["msg_1", "rs_1"]).await);
    let again = StoredResponse { object: "{}".to_owned(), ..one.clone() };
    assert!(!keep(&h, &c, again, &[]).await, "a second of the same id is not stored, and that is reported");
    assert_eq!(h.store.response(c.account, "resp_1").await.expect("read"), Some(one.clone()), "the first stays");
    assert_eq!(h.store.response(other.account, "resp_1").await.expect("read"), None, "another's is not found");
    keep(&h, &other, response_of(&h, "resp_1", None), &["msg_1"]).await;
    let found = h.store.responses_with_items(c.account, vec!["rs_1".to_owned(), "nobody".to_owned()]).await;
    assert_eq!(found.expect("read"), std::slice::from_ref(&one));
    assert!(h.store.responses_with_items(other.account, vec!["rs_1".to_owned()]).await.expect("read").is_empty());
    assert!(!h.store.delete_response(other.account, "resp_9").await.expect("asked"));
    assert!(h.store.delete_response(c.account, "resp_1").await.expect("asked"));
    assert!(!h.store.delete_response(c.account, "resp_1").await.expect("asked"), "erased once");
    assert!(h.store.responses_with_items(c.account, vec!["rs_1".to_owned()]).await.expect("read").is_empty());
    assert!(h.store.response(other.account, "resp_1").await.expect("read").is_some(), "the other keeps its own");
    let h = h.reopen().await;
    assert!(h.store.response(other.account, "resp_1").await.expect("read").is_some(), "over a restart");
    h.close().await;
}

pub async fn responses_form_a_tree(h: House) {
    let c = h.customer(0, 0).await;
    for (id, previous) in [("a", None), ("b", Some("a")), ("c", Some("b")), ("d", Some("b")), ("lost", Some("gone"))] {
        keep(&h, &c, response_of(&h, id, previous), &[]).await;
    }
    assert_eq!(ids(chain(&h, &c, "c").await), ["a", "b", "c"]);
    assert_eq!(ids(chain(&h, &c, "d").await), ["a", "b", "d"], "a branch has its own parents only");
    assert_eq!(chain(&h, &c, "x").await, Chain::Missing("x".to_owned()));
    assert_eq!(chain(&h, &c, "lost").await, Chain::Missing("gone".to_owned()));
    h.store.delete_response(c.account, "b").await.expect("erased");
    assert_eq!(chain(&h, &c, "c").await, Chain::Missing("b".to_owned()), "what was erased is in no history");
    keep(&h, &c, response_of(&h, "me", Some("me")), &[]).await;
    assert_eq!(chain(&h, &c, "me").await, Chain::TooLong, "a provider that repeats ids does not hang us");
    let long = "x".repeat(33 << 20);
    keep(&h, &c, StoredResponse { object: long.clone(), ..response_of(&h, "big", None) }, &[]).await;
    keep(&h, &c, StoredResponse { object: long, ..response_of(&h, "bigger", Some("big")) }, &[]).await;
    assert_eq!(ids(chain(&h, &c, "big").await), ["big"]);
    assert_eq!(chain(&h, &c, "bigger").await, Chain::TooLong);
    h.close().await;
}

pub async fn responses_are_forgotten_in_time(h: House) {
    let c = h.customer(0, 0).await;
    keep(&h, &c, response_of(&h, "old", None), &["msg_old"]).await;
    keep(&h, &c, response_of(&h, "continued", None), &[]).await;
    h.clock.advance(20 * DAY);
    keep(&h, &c, response_of(&h, "new", Some("continued")), &[]).await;
    h.clock.advance(11 * DAY);
    assert!(h.store.response(c.account, "old").await.expect("read").is_none(), "not shown before it is swept");
    assert!(h.store.responses_with_items(c.account, vec!["msg_old".to_owned()]).await.expect("read").is_empty());
    assert_eq!(ids(chain(&h, &c, "new").await), ["continued", "new"], "lives with what continues it");
    assert_eq!(h.store.forget_responses(h.clock.now()).await.expect("swept"), 1);
    assert_eq!(h.store.forget_responses(h.clock.now()).await.expect("swept"), 0);
    h.clock.advance(20 * DAY);
    assert_eq!(chain(&h, &c, "new").await, Chain::Missing("new".to_owned()));
    assert_eq!(h.store.forget_responses(h.clock.now()).await.expect("swept"), 2);
    h.close().await;
}

fn items(ids: &[&str]) -> Vec<Item> {
    ids.iter().map(|id| Item { id: (*id).to_owned(), json: format!("{{\"id\":\"{id}\"}}") }).collect()
}

/// The same as a call says them, with ids to spare.
fn said(ids: &[&str], call: &str) -> Vec<AddedItem> {
    let said = |(at, item): (usize, Item)| AddedItem { item, spare: format!("{call}_{at}") };
    items(ids).into_iter().enumerate().map(said).collect()
}

async fn listed(h: &House, c: &Customer, conversation: &str) -> Vec<String> {
    let page = ItemPage { after: None, limit: 100, most_bytes: u64::MAX, newest_first: false };
    let items = h.store.items(c.account, conversation, page).await.expect("read");
    items.into_iter().map(|item| item.id).collect()
}

/// Calls in one conversation that began at the same time, of a provider that counts its items anew
/// with every answer: none is lost, and each can be taken back by itself.
pub async fn calls_that_say_items_of_one_id_lose_none(h: House) {
    let c = h.customer(0, 0).await;
    let now = h.clock.now();
    let new = StoredConversation { id: "conv_1".into(), created_at: now, expires_at: now + DAY, metadata: "{}".into() };
    h.store.create_conversation(c.account, new, items(&["i0"]), Quota::UNLIMITED).await.expect("asked").expect("room");
    let call = |id: &str| {
        let response = StoredResponse { conversation: Some("conv_1".into()), ..response_of(&h, id, None) };
        let said = said(&["i1", "i2"], id);
        let new = NewResponse { account: c.account, response, items: vec![], said };
        h.store.store_response(new, Quota::UNLIMITED)
    };
    let (one, two, three, four) = tokio::join!(call("a"), call("b"), call("c"), call("d"));
    for written in [one, two, three, four] {
        assert!(written.expect("asked").expect("room"));
    }
    let mut all = listed(&h, &c, "conv_1").await;
    assert_eq!((all.len(), all[0].as_str()), (9, "i0"), "{all:?}");
    all.sort();
    // One of them came first; the others have ids of their own.
    let first = ["a", "b", "c", "d"].into_iter().find(|call| !all.contains(&format!("{call}_0"))).expect("a first one");
    let others: Vec<String> = ["a", "b", "c", "d"]
        .iter()
        .filter(|call| **call != first)
        .flat_map(|call| [format!("{call}_0"), format!("{call}_1")])
        .collect();
    assert_eq!(all, [&others[..], &["i0".to_owned(), "i1".to_owned(), "i2".to_owned()]].concat());
    let unsay = async |call: &str| {
        for said in said(&["i1", "i2"], call) {
            assert!(h.store.remove_said(c.account, "conv_1", said).await.expect("asked"));
        }
    };
    let second = if first == "a" { "b" } else { "a" };
    unsay(second).await;
    let left = listed(&h, &c, "conv_1").await;
    assert_eq!(left.len(), 7);
    assert!(left.iter().all(|id| !id.starts_with(second)) && left.contains(&"i1".to_owned()), "{left:?}");
    unsay(first).await;
    let left = listed(&h, &c, "conv_1").await;
    assert!(left.len() == 5 && !left.contains(&"i1".to_owned()), "{left:?}");
    // What another has said under the same id stays.
    let other = AddedItem { item: Item { id: "i0".into(), json: "{}".into() }, spare: "e_0".into() };
    assert!(!h.store.remove_said(c.account, "conv_1", other).await.expect("asked"));
    h.close().await;
}

pub async fn an_item_is_found_in_any_conversation(h: House) {
    let (c, other) = (h.customer(0, 0).await, h.customer(0, 0).await);
    let now = h.clock.now();
    for (id, days, json) in [("conv_1", 2, "1"), ("conv_2", 2, "2"), ("conv_3", 1, "3")] {
        let new =
            StoredConversation { id: id.into(), created_at: now, expires_at: now + days * DAY, metadata: "{}".into() };
        let items = [("both", json), (id, json)].map(|(id, json)| Item { id: id.into(), json: json.into() });
        h.store
            .create_conversation(c.account, new, items.to_vec(), Quota::UNLIMITED)
            .await
            .expect("asked")
            .expect("room");
    }
    let named = async |account, ids: &[&str]| {
        let ids = ids.iter().map(|id| (*id).to_owned()).collect();
        let mut found = h.store.items_named(account, ids).await.expect("read");
        found.sort_by(|a, b| a.id.cmp(&b.id));
        found.into_iter().map(|item| format!("{}={}", item.id, item.json)).collect::<Vec<_>>()
    };
    assert_eq!(named(c.account, &["both", "conv_1", "nobody", "\0"]).await, ["both=3", "conv_1=1"], "the newest");
    assert_eq!(named(c.account, &["conv_2", "conv_3"]).await, ["conv_2=2", "conv_3=3"]);
    assert_eq!(named(other.account, &["both"]).await, [""; 0], "another's is as unknown as one that never was");
    h.clock.advance(DAY + 1);
    assert_eq!(named(c.account, &["both", "conv_3"]).await, ["both=2"], "what has expired is not found");
    assert!(h.store.delete_conversation(c.account, "conv_2").await.expect("asked"));
    assert_eq!(named(c.account, &["both", "conv_2"]).await, ["both=1"]);
    h.close().await;
}

pub async fn a_conversation_grows_in_order(h: House) {
    let (c, other) = (h.customer(0, 0).await, h.customer(0, 0).await);
    let now = h.clock.now();
    let new =
        StoredConversation { id: "conv_1".into(), created_at: now, expires_at: now + 30 * DAY, metadata: "{}".into() };
    h.store
        .create_conversation(c.account, new.clone(), items(&["i1", "i2"]), Quota::UNLIMITED)
        .await
        .expect("asked")
        .expect("room");
    assert_eq!(h.store.conversation(c.account, "conv_1").await.expect("read"), Some(new.clone()));
    assert_eq!(h.store.conversation(other.account, "conv_1").await.expect("read"), None);
    h.clock.advance(DAY);
    let response = StoredResponse { conversation: Some("conv_1".into()), ..response_of(&h, "resp_1", None) };
    let said_first = said(&["i3", "i4", "i5"], "a");
    h.store
        .store_response(
            NewResponse { account: c.account, response: response.clone(), items: vec![], said: said_first },
            Quota::UNLIMITED,
        )
        .await
        .expect("asked")
        .expect("room");
    // A second time adds nothing.
    h.store
        .store_response(
            NewResponse { account: c.account, response, items: vec![], said: said(&["i6"], "b") },
            Quota::UNLIMITED,
        )
        .await
        .expect("asked")
        .expect("room");
    let read = async |after: Option<&str>, limit, newest_first| {
        let page = ItemPage { after: after.map(str::to_owned), limit, most_bytes: u64::MAX, newest_first };
        let items = h.store.items(c.account, "conv_1", page).await.expect("read");
        items.into_iter().map(|item| item.id).collect::<Vec<_>>()
    };
    assert_eq!(read(None, 10, false).await, ["i1", "i2", "i3", "i4", "i5"]);
    assert_eq!(read(None, 2, true).await, ["i5", "i4"]);
    assert_eq!(read(Some("i4"), 2, true).await, ["i3", "i2"]);
    assert_eq!(read(Some("i4"), 9, false).await, ["i5"]);
    assert_eq!(read(Some("nobody"), 9, false).await, [""; 0], "an item that is not there has nothing after it");
    assert_eq!(h.store.conversation_bytes(c.account, "conv_1").await.expect("read"), 5 * 11);
    assert!(
        h.store
            .add_items(c.account, "conv_1", items(&["i7"]), now, Quota::UNLIMITED)
            .await
            .expect("asked")
            .expect("room")
    );
    assert!(
        !h.store
            .add_items(other.account, "conv_1", items(&["i8"]), now, Quota::UNLIMITED)
            .await
            .expect("asked")
            .expect("room")
    );
    assert_eq!(h.store.item(c.account, "conv_1", "i2").await.expect("read"), items(&["i2"]).pop());
    assert_eq!(h.store.item(other.account, "conv_1", "i2").await.expect("read"), None);
    assert!(h.store.delete_item(c.account, "conv_1", "i2").await.expect("asked"));
    assert!(!h.store.delete_item(c.account, "conv_1", "i2").await.expect("asked"));
    assert_eq!(read(None, 10, false).await, ["i1", "i3", "i4", "i5", "i7"]);
    let changed = StoredConversation { metadata: "{\"a\":\"b\"}".into(), ..new.clone() };
    assert!(h.store.change_conversation(c.account, changed, Quota::UNLIMITED).await.expect("asked").expect("room"));
    let found = h.store.conversation(c.account, "conv_1").await.expect("read").expect("there");
    assert_eq!((found.metadata.as_str(), found.expires_at), ("{\"a\":\"b\"}", now + 31 * DAY), "used, so it lives on");
    h.clock.advance(30 * DAY);
    assert_eq!(h.store.conversation(c.account, "conv_1").await.expect("read"), None);
    assert_eq!(h.store.forget_responses(h.clock.now()).await.expect("swept"), 2, "with its response");
    assert_eq!(h.store.conversation_bytes(c.account, "conv_1").await.expect("read"), 0);
    let again = StoredConversation { expires_at: h.clock.now() + DAY, ..new };
    h.store.create_conversation(c.account, again, items(&["x"]), Quota::UNLIMITED).await.expect("asked").expect("room");
    assert!(h.store.delete_conversation(c.account, "conv_1").await.expect("asked"));
    assert!(!h.store.delete_conversation(c.account, "conv_1").await.expect("asked"));
    h.close().await;
}

/// What no id can be is not found, on either engine: one of them has no place for this character at
/// all.
pub async fn an_id_that_cannot_be_is_not_found(h: House) {
    let c = h.customer(0, 0).await;
    let (s, id) = (&h.store, "resp_\0");
    assert_eq!(s.response(c.account, id).await.expect("read"), None);
    assert_eq!(chain(&h, &c, id).await, Chain::Missing(id.to_owned()));
    assert!(!s.delete_response(c.account, id).await.expect("asked"));
    assert!(s.responses_with_items(c.account, vec![id.to_owned()]).await.expect("read").is_empty());
    assert_eq!(s.conversation(c.account, id).await.expect("read"), None);
    assert!(!s.delete_conversation(c.account, id).await.expect("asked"));
    assert!(
        !s.add_items(c.account, id, items(&["i"]), h.clock.now(), Quota::UNLIMITED)
            .await
            .expect("asked")
            .expect("room")
    );
    assert_eq!(s.item(c.account, "conv_1", id).await.expect("read"), None);
    assert!(!s.delete_item(c.account, "conv_1", id).await.expect("asked"));
    let page = ItemPage { after: None, limit: 1, most_bytes: u64::MAX, newest_first: false };
    assert!(s.items(c.account, id, page).await.expect("read").is_empty());
}
