//! Cells that are sold to a closed group: for everybody else they do not exist.

use crate::house::{House, Plan, error_of};
use serde_json::{Value, json};
use tollgate_store::{AccountChange, Attribution};

const CATALOG: &str = r#"
[group.dear]
multiplier = 5
[social.mine]
order = 99
name_en = "Mine"
provider = "tikhub"
[social.mine.comments]
price = { per_call = 2_000 }
enable_groups = ["dear"]
route = [{ path = "/douyin/app/v3/fetch_video_comments", cost = 1_000 }]
answer = { items = ["/comments"] }
param = [{ name = "aweme_id", type = "string", required = true, max_length = 64, en = "The id." }]
[social.mine.post]
price = { per_call = 2_000 }
enable_groups = ["dear", "default"]
route = [{ path = "/douyin/app/v3/fetch_one_video", cost = 1_000 }]
param = [{ name = "aweme_id", type = "string", required = true, max_length = 64, en = "The id." }]
"#;

async fn page(house: &House, key: Option<&str>, path: &str) -> Value {
    let request = house.http.get(house.url(path));
    let request = key.into_iter().fold(request, |request, key| request.bearer_auth(key));
    request.send().await.expect("a reply").json().await.expect("JSON")
}

/// The models that are listed, with their prices.
async fn listed(house: &House, key: Option<&str>) -> Vec<(String, f64)> {
    let page = page(house, key, "/api/social/catalog").await;
    let line = |cell: &Value| {
        let price = cell["price_usd"].as_f64().expect("a price");
        (cell["model"].as_str().expect("a name").to_owned(), price)
    };
    page["cells"].as_array().expect("cells").iter().map(line).collect()
}

async fn tools(house: &House) -> String {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let reply = house.http.post(house.url("/mcp")).bearer_auth(&house.key).json(&body).send().await.expect("a reply");
    reply.text().await.expect("text")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_cell_does_not_exist_for_others() {
    let house = House::with(Plan { catalog: CATALOG, ..Plan::default() }).await;
    let (comments, post) = ("social-mine-comments".to_owned(), "social-mine-post".to_owned());
    assert_eq!(listed(&house, None).await, [(post.clone(), 0.002)]);
    assert_eq!(listed(&house, Some(&house.key)).await, [(post.clone(), 0.002)]);
    assert!(!page(&house, None, "/openapi.json").await.to_string().contains("/v1/social/mine/comments"));
    assert!(!tools(&house).await.contains(&comments));
    // Neither parameters, nor a top-up, nor a pause are spoken of: the answer is the same as for
    // nothing at all.
    for path in ["/v1/social/mine/comments", "/v1/social/mine/nothing"] {
        let (status, error) = error_of(house.get(path).send().await.expect("a reply")).await;
        assert_eq!((status, error["code"].as_str()), (404, Some("social_endpoint_not_found")), "{path}");
        let url = house.url(&format!("/v1/quote?endpoint={path}"));
        let quote = house.http.post(url).bearer_auth(&house.key).json(&json!({})).send().await.expect("a reply");
        let (status, error) = error_of(quote).await;
        assert_eq!((status, error["code"].as_str()), (404, Some("social_endpoint_not_found")), "{path}");
    }
    let app = &house.running().app;
    let change = AccountChange { groups: Some(vec!["dear".to_owned()]), ..AccountChange::default() };
    app.store.change_account(house.account, change, Attribution::default()).await.expect("asked").expect("changed");
    app.keys.refresh(&app.store, &app.world).await.expect("refreshed");
    let own = listed(&house, Some(&house.key)).await;
    assert_eq!(own, [(post, 0.01), (comments.clone(), 0.01)], "at its own price");
    assert!(tools(&house).await.contains(&comments));
    let (status, error) = error_of(house.get("/v1/social/mine/comments").send().await.expect("a reply")).await;
    assert_eq!((status, error["code"].as_str()), (400, Some("missing_parameter")));
}
