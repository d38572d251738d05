//! What accounts store is counted exactly, within their quota and that of all, and what is erased
//! makes room again.

use tollgate_store::{
    AddedItem, Item, NewResponse, NoRoom, Quota, REFUSALS_PER_MINUTE, ROW_BYTES, StorageUsed, StoredConversation,
    StoredResponse, UsagePage,
};

use crate::common::{Customer, House};

const DAY: i64 = 86_400_000;

fn talk(h: &House, id: &str, metadata: &str) -> StoredConversation {
    let now = h.clock.now();
    StoredConversation { id: id.into(), created_at: now, expires_at: now + DAY, metadata: metadata.into() }
}

fn items(ids: &[&str], json: &str) -> Vec<Item> {
    ids.iter().map(|id| Item { id: (*id).into(), json: json.into() }).collect()
}

fn response(h: &House, c: &Customer, id: &str, conversation: Option<&str>) -> NewResponse {
    let now = h.clock.now();
    let response = StoredResponse {
        id: id.into(),
        conversation: conversation.map(str::to_owned),
        created_at: now,
        expires_at: now + DAY,
        input: "[\"é\"]".into(),
        object: "{}".into(),
        ..StoredResponse::default()
    };
    let said = |at: usize, id: &str| AddedItem { item: items(&[id], "{}").remove(0), spare: format!("spare_{at}") };
    let said = conversation.map(|_| vec![said(0, "i1"), said(1, "new")]).unwrap_or_default();
    NewResponse { account: c.account, response, items: vec!["o1".into(), "o2".into()], said }
}

/// The sum over the rows themselves.
async fn counted(h: &House, c: &Customer) -> StorageUsed {
    let sql = "SELECT coalesce(sum(bytes), 0), coalesce(sum(objects), 0), coalesce(sum(items), 0) FROM (
        SELECT account_id, 512 + octet_length(id) + octet_length(input) + octet_length(object) AS bytes, 1 AS objects, 0 AS items
          FROM response
        UNION ALL SELECT account_id, 512 + octet_length(id) + octet_length(response_id), 0, 1 FROM response_item
        UNION ALL SELECT account_id, 512 + octet_length(id) + octet_length(metadata), 1, 0 FROM conversation
        UNION ALL SELECT account_id, 512 + octet_length(conversation) + octet_length(id) + octet_length(item), 0, 1
          FROM conversation_item) counted WHERE account_id = ";
    let number = |n: i64| u64::try_from(n).expect("not below zero");
    if h.place.url == "sqlite" {
        let file = rusqlite::Connection::open(h.place.data_dir.join("kept.db")).expect("the file");
        let row = |r: &rusqlite::Row<'_>| Ok((r.get(0)?, r.get(1)?, r.get(2)?));
        let (bytes, objects, items): (i64, i64, i64) =
            file.query_row(&format!("{sql}?1"), [c.account.0], row).expect("a sum");
        let of_all: i64 = file
            .query_row("SELECT bytes - (SELECT coalesce(sum(bytes), 0) FROM stored WHERE account_id <> x'') FROM stored WHERE account_id = x''", [], |r| r.get(0))
            .expect("a difference");
        assert_eq!(of_all, 0, "the sum of all is the sum of each");
        return StorageUsed { bytes: number(bytes), objects: number(objects), items: number(items) };
    }
    let (client, connection) = tokio_postgres::connect(&h.place.url, tokio_postgres::NoTls).await.expect("connected");
    let mut driver = tokio::task::JoinSet::new();
    driver.spawn(async move { drop(connection.await) });
    let sql = sql.replace(
        "coalesce(sum(bytes), 0), coalesce(sum(objects), 0), coalesce(sum(items), 0)",
        "coalesce(sum(bytes), 0)::bigint, coalesce(sum(objects), 0)::bigint, coalesce(sum(items), 0)::bigint",
    );
    let row = client.query_one(&format!("{sql}$1"), &[&c.account.0.as_slice()]).await.expect("a sum");
    StorageUsed { bytes: number(row.get(0)), objects: number(row.get(1)), items: number(row.get(2)) }
}

async fn stored(h: &House, c: &Customer) -> StorageUsed {
    let usage = h.store.stored(c.account).await.expect("read");
    assert_eq!(usage, counted(h, c).await, "what is counted is what is there");
    usage
}

pub async fn what_is_stored_is_counted_exactly(h: House) {
    let (c, other, all) = (h.customer(0, 0).await, h.customer(0, 0).await, Quota::UNLIMITED);
    let s = &h.store;
    assert_eq!(stored(&h, &c).await, StorageUsed::default());
    s.create_conversation(c.account, talk(&h, "conv_1", "{}"), items(&["i1", "i2"], "{\"é\":1}"), all)
        .await
        .expect("asked")
        .expect("room");
    let begun = stored(&h, &c).await;
    assert_eq!((begun.objects, begun.items), (1, 2));
    assert_eq!(begun.bytes, 3 * ROW_BYTES + 6 + 2 + 2 * (6 + 2 + 8));
    // The same id a second time, and items that are there, add nothing.
    s.create_conversation(c.account, talk(&h, "conv_1", "{}"), items(&["i1"], "{}"), all)
        .await
        .expect("asked")
        .expect("room");
    assert!(s.add_items(c.account, "conv_1", items(&["i2"], "{}"), 0, all).await.expect("asked").expect("room"));
    assert_eq!(stored(&h, &c).await, begun);
    assert!(s.add_items(c.account, "conv_1", items(&["i3"], "{}"), 0, all).await.expect("asked").expect("room"));
    assert!(!s.add_items(c.account, "conv_2", items(&["i4"], "{}"), 0, all).await.expect("asked").expect("room"));
    assert!(
        s.change_conversation(c.account, talk(&h, "conv_1", "{\"long\":\"er\"}"), all)
            .await
            .expect("asked")
            .expect("room")
    );
    assert!(
        s.change_conversation(c.account, talk(&h, "conv_1", "{\"a\":1}"), all).await.expect("asked").expect("room")
    );
    assert!(s.store_response(response(&h, &c, "resp_1", Some("conv_1")), all).await.expect("asked").expect("room"));
    assert!(!s.store_response(response(&h, &c, "resp_1", Some("conv_1")), all).await.expect("asked").expect("room"));
    let full = stored(&h, &c).await;
    assert_eq!((full.objects, full.items), (2, 7), "three items and two said, two by which the response is found");
    s.store_response(response(&h, &other, "resp_2", None), all).await.expect("asked").expect("room");
    let others = stored(&h, &other).await;
    // Erased one by one, it is as if it had never been.
    assert!(s.delete_item(c.account, "conv_1", "i3").await.expect("asked"));
    let said = AddedItem { item: items(&["new"], "{}").remove(0), spare: "spare_1".into() };
    assert!(s.remove_said(c.account, "conv_1", said).await.expect("asked"));
    assert_eq!(stored(&h, &c).await.items, 5);
    assert!(s.delete_response(c.account, "resp_1").await.expect("asked"));
    stored(&h, &c).await;
    assert!(s.delete_conversation(c.account, "conv_1").await.expect("asked"));
    assert_eq!(stored(&h, &c).await, StorageUsed::default());
    assert_eq!(stored(&h, &other).await, others, "another's is another's");
    // So it is by time.
    s.create_conversation(other.account, talk(&h, "conv_3", "{}"), items(&["i1", "i2"], "{}"), all)
        .await
        .expect("asked")
        .expect("room");
    h.clock.advance(DAY + 1);
    assert_eq!(s.forget_responses(h.clock.now()).await.expect("swept"), 2);
    assert_eq!(stored(&h, &other).await, StorageUsed::default());
    h.close().await;
}

pub async fn an_account_stores_within_its_quota(h: House) {
    let (c, s) = (h.customer(0, 0).await, &h.store);
    let quota = Quota { bytes: 8_000, objects: 2, items: 4 };
    let make = async |id: &str, n: &[&str], json: &str| {
        s.create_conversation(c.account, talk(&h, id, "{}"), items(n, json), quota).await.expect("asked")
    };
    make("conv_1", &["a", "b"], "{}").await.expect("room");
    let used = stored(&h, &c).await;
    assert_eq!(make("conv_2", &["a", "b", "c"], "{}").await, Err(NoRoom::Account(used)), "too many items");
    assert_eq!(make("conv_2", &["a"], &"x".repeat(8_000)).await, Err(NoRoom::Account(used)), "too many bytes");
    assert_eq!(stored(&h, &c).await, used, "what is refused leaves nothing");
    make("conv_2", &[], "{}").await.expect("room");
    let used = stored(&h, &c).await;
    assert_eq!(make("conv_3", &[], "{}").await, Err(NoRoom::Account(used)), "too many objects");
    assert_eq!(
        s.store_response(response(&h, &c, "resp_1", None), quota).await.expect("asked"),
        Err(NoRoom::Account(used))
    );
    assert_eq!(s.response(c.account, "resp_1").await.expect("read"), None);
    assert!(s.add_items(c.account, "conv_2", items(&["c", "d"], "{}"), 0, quota).await.expect("asked").expect("room"));
    let full = stored(&h, &c).await;
    let more = s.add_items(c.account, "conv_2", items(&["e"], "{}"), 0, quota).await.expect("asked");
    assert_eq!(more, Err(NoRoom::Account(full)));
    let long = s.change_conversation(c.account, talk(&h, "conv_1", &"x".repeat(8_000)), quota).await.expect("asked");
    assert_eq!(long, Err(NoRoom::Account(full)));
    // Another account has a quota of its own, and what is erased makes room.
    let other = h.customer(0, 0).await;
    s.store_response(response(&h, &other, "resp_1", None), quota).await.expect("asked").expect("room");
    assert!(s.delete_item(c.account, "conv_2", "c").await.expect("asked"));
    assert!(s.add_items(c.account, "conv_2", items(&["e"], "{}"), 0, quota).await.expect("asked").expect("room"));
    stored(&h, &c).await;
    h.close().await;
}

/// Many at once, from several clients of one account: not one more than there is room for.
pub async fn many_at_once_store_within_the_quota(h: House) {
    let (c, s) = (h.customer(0, 0).await, &h.store);
    let quota = Quota { objects: 7, ..Quota::UNLIMITED };
    let ids: Vec<String> = (0..24).map(|n| format!("conv_{n}")).collect();
    let all = ids.iter().map(|id| s.create_conversation(c.account, talk(&h, id, "{}"), items(&["a"], "{}"), quota));
    let made = futures_util::future::join_all(all).await;
    let made = made.into_iter().filter(|one| one.as_ref().expect("asked").is_ok()).count();
    assert_eq!((made, stored(&h, &c).await.objects), (7, 7));
    h.close().await;
}

pub async fn all_accounts_together_store_within_a_bound(h: House) {
    let options = tollgate_store::Options { stored_bytes: 10_000, ..h.options.clone() };
    let h = h.reopened_with(options).await;
    let (one, two) = (h.customer(0, 0).await, h.customer(0, 0).await);
    let make = async |c: &Customer, id: &str| {
        let all = Quota::UNLIMITED;
        h.store.create_conversation(c.account, talk(&h, id, &"x".repeat(4_000)), vec![], all).await.expect("asked")
    };
    make(&one, "conv_1").await.expect("room");
    make(&two, "conv_2").await.expect("room");
    assert_eq!(make(&one, "conv_3").await, Err(NoRoom::All));
    assert_eq!(make(&two, "conv_3").await, Err(NoRoom::All));
    assert!(h.store.delete_conversation(two.account, "conv_2").await.expect("asked"));
    // A replica that shares its database counts anew after a while.
    h.clock.advance(6_000);
    make(&one, "conv_3").await.expect("room");
    h.close().await;
}

pub async fn refused_calls_leave_a_bounded_number_of_rows(h: House) {
    let c = h.customer(0, 0).await;
    for _ in 0..500 {
        h.store.note_refusal(h.maker.call(), c.account, "insufficient_balance".into(), h.facts(&c, 0));
    }
    let page = UsagePage { before: None, limit: 1_000 };
    let rows = h.store.usage(Some(c.account), page).await.expect("a page");
    assert_eq!(rows.len(), REFUSALS_PER_MINUTE as usize);
    h.clock.advance(60_000);
    h.store.sweep(h.clock.now()).await.expect("swept");
    let rows = h.store.usage(Some(c.account), page).await.expect("a page");
    let sums: Vec<&str> =
        rows.iter().filter_map(|row| row.raw_usage.as_deref().filter(|raw| raw.contains("refused_calls"))).collect();
    let rest = 500 - REFUSALS_PER_MINUTE;
    assert_eq!(sums, [format!("{{\"reasons\":{{\"insufficient_balance\":{rest}}},\"refused_calls\":{rest}}}")]);
    assert_eq!(rows.len(), REFUSALS_PER_MINUTE as usize + 1);
    assert_eq!(h.store.gauges().refusals_summed, u64::from(rest));
    h.close().await;
}
