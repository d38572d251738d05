//! `next`: ready-to-send parameters of the next page, for every cell whose paging is known.

use super::{ask, cells, house, plain};
use serde_json::Value;
use std::collections::BTreeSet;

#[tokio::test(flavor = "multi_thread")]
async fn following_next_reads_every_list_to_its_end() {
    let house = house("").await;
    let mut lists = 0;
    for cell in cells(&house).into_iter().filter(|cell| cell.paging.is_some()) {
        let name = &cell.model.name;
        let mut query = plain(&cell);
        let mut ids = BTreeSet::new();
        let mut pages = 0;
        let before = house.available().await;
        loop {
            let reply = ask(&house, &cell, &query).await;
            // Where nothing says that there is more, an empty page ends the list.
            if reply.status() == 404 {
                assert!(cell.paging.as_ref().is_some_and(|paging| paging.more.is_none()), "{name} names its end");
                break;
            }
            assert_eq!(reply.status(), 200, "{name} {query:?}: {}", reply.text().await.unwrap_or_default());
            let body: Value = reply.json().await.expect("JSON");
            pages += 1;
            collect(&body["data"], &mut ids);
            let Some(next) = body["next"].as_object() else { break };
            query = next.iter().map(|(key, value)| (key.clone(), value.as_str().expect("text").to_owned())).collect();
            assert!(pages < 9, "{name} does not end");
        }
        assert_eq!((pages, ids.len()), (3, 9), "{name}");
        let price = cell.price().expect("a price").nano();
        assert_eq!(before - house.available().await, pages * price, "{name}: every page is a call");
        lists += 1;
    }
    assert_eq!(lists, 53);
}

/// The ids of the entries, wherever they stand.
fn collect(value: &Value, ids: &mut BTreeSet<u64>) {
    match value {
        Value::Array(list) => list.iter().for_each(|one| collect(one, ids)),
        Value::Object(object) => {
            ids.extend(object.get("likes").and(object.get("id")).and_then(Value::as_u64));
            object.values().for_each(|one| collect(one, ids));
        }
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn next_keeps_the_callers_filters() {
    let house = house("").await;
    let cell = super::cell(&house, "bilibili", "search");
    let query = [("keyword", "咖啡"), ("duration", "2"), ("page", "2")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let body: Value = ask(&house, &cell, &query).await.json().await.expect("JSON");
    assert_eq!(
        body["next"],
        serde_json::json!({"keyword": "咖啡", "order": "totalrank", "page": "3", "page_size": "20", "duration": "2"})
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn there_is_no_next_that_we_would_refuse() {
    let house = house("").await;
    let cell = super::cell(&house, "bilibili", "user-posts");
    let ask_page = async |page: &str| {
        let query = [("uid", "[[sim:plain pages=200]]"), ("pn", page)];
        let query = query.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let body: Value = ask(&house, &cell, &query).await.json().await.expect("JSON");
        assert_eq!(body["object"], "social.result", "{body}");
        body["next"]["pn"].clone()
    };
    assert_eq!(ask_page("99").await, "100");
    assert_eq!(ask_page("100").await, Value::Null, "page 101 is refused");
}
