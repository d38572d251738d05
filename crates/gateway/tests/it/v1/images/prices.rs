//! Prices by number, size and quality: what is quoted is what is held, and the charge is never
//! more.

use super::*;

async fn quoted(house: &House, body: &Value) -> Value {
    let url = house.url("/v1/quote?endpoint=/v1/images/generations");
    let reply = house.http.post(url).bearer_auth(&house.key).json(body).send().await.expect("a reply");
    let (status, quote) = (reply.status(), reply.json::<Value>().await.expect("JSON"));
    assert_eq!(status, 200, "{body}: {quote}");
    quote
}

#[tokio::test(flavor = "multi_thread")]
async fn pictures_by_number_size_and_quality() {
    let house = house_with(Plan { usd: "1000", ..Plan::default() }).await;
    let mut rows = 0;
    for n in 1..=4 {
        for (size, class) in [
            (None, "1K"),
            (Some("auto"), "1K"),
            (Some("1024x1024"), "1K"),
            (Some("1280x720"), "1K"),
            (Some("1600x1000"), "1K"),
            (Some("1616x1008"), "2K"),
            (Some("2048x2048"), "2K"),
            (Some("3840x2160"), "4K"),
        ] {
            for quality in [None, Some("auto"), Some("low"), Some("high")] {
                let each = match (class, quality) {
                    ("4K", _) => 250_000_000,
                    (_, Some("high")) => 160_000_000,
                    _ => EACH,
                };
                let mut more = json!({ "n": n });
                size.into_iter().for_each(|size| more["size"] = json!(size));
                quality.into_iter().for_each(|quality| more["quality"] = json!(quality));
                // Some of the pictures fail now and then.
                let fail = (rows + n) % 2 * (n / 2);
                rows += 1;
                let prompt = format!("[[sim:partial fail={fail}]]");
                let quote = quoted(&house, &asked("pictures", &prompt, &more)).await;
                let (_, row) = made(&house, "pictures", &prompt, more.clone()).await;
                let (hold, charge) = (row.hold.nano(), row.charge.nano());
                assert_eq!(quote["hold_nano_usd"], hold, "{more}");
                assert_eq!(quote["most_nano_usd"], hold, "{more}");
                assert_eq!((hold, charge), (n * each, (n - fail) * each), "{more}");
                assert_eq!(quote["kind"], "upper_bound");
                // What is asked of the provider is what is priced.
                let sent = house.sim.received().pop().expect("sent").json();
                let chosen = size.filter(|size| *size != "auto").unwrap_or("1024x1024");
                assert_eq!((&sent["size"], &sent["n"]), (&json!(chosen), &json!(n)), "{more}");
                let chosen = quality.filter(|quality| *quality != "auto").unwrap_or("medium");
                assert_eq!(sent["quality"], chosen, "{more}");
            }
        }
    }
    assert_eq!(rows, 128);
}

/// MM38: a quality or a size in another spelling, or of which the price knows nothing, is not sold
/// at the base price.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_price_does_not_know_is_not_sold_at_the_base_price() {
    let house = house().await;
    for (quality, sent, each) in [
        ("HIGH", "high", 160_000_000),
        ("High", "high", 160_000_000),
        ("MEDIUM", "medium", EACH),
        ("Auto", "medium", EACH),
    ] {
        for model in ["pictures", "tiered-pictures"] {
            let (result, row) = made(&house, model, "a cat", json!({ "quality": quality })).await;
            assert_eq!(row.charge.nano(), each, "{model} {quality}");
            let asked = house.sim.received().pop().expect("sent").json();
            assert_eq!((&asked["quality"], &result["quality"]), (&json!(sent), &json!(sent)), "{model} {quality}");
        }
    }
    let (_, row) = made(&house, "tiered-pictures", "a cat", json!({ "size": "1536*1024" })).await;
    assert_eq!(row.charge.nano(), 60_000_000);
    let sent = house.sim.received().len();
    for (model, more, field) in [
        ("pictures", json!({ "quality": "max" }), "quality"),
        ("tiered-pictures", json!({ "quality": "xhigh" }), "quality"),
        ("tiered-pictures", json!({ "quality": "low" }), "quality"),
        ("tiered-pictures", json!({ "size": "3840x2160" }), "size"),
    ] {
        let (status, error) = crate::house::error_of(make(&house, model, "a cat", more.clone()).await).await;
        assert_eq!((status, &error["param"]), (400, &json!(field)), "{model} {more}");
    }
    assert_eq!(house.sim.received().len(), sent, "nothing was sent");
}

/// What is asked of the provider is what is priced: one that takes no quality sells none.
#[tokio::test(flavor = "multi_thread")]
async fn a_quality_that_the_provider_does_not_take_is_neither_sold_nor_said() {
    let house = house().await;
    let reply = make(&house, "minimax-tiered", "a cat", json!({ "quality": "high" })).await;
    let (status, error) = crate::house::error_of(reply).await;
    assert_eq!((status, &error["param"]), (400, &json!("quality")), "{error}");
    assert_eq!(house.sim.received().len(), 0);
    let (result, row) = made(&house, "minimax-tiered", "a cat", json!({})).await;
    assert_eq!((row.charge.nano(), result.get("quality")), (EACH, None), "{result}");
    // Where no price goes by it, it is left out and reported.
    let (result, _) = made(&house, "minimax-pictures", "a cat", json!({ "quality": "high" })).await;
    assert_eq!(result.get("quality"), None, "{result}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stated_number_is_quoted_exactly() {
    let house = house().await;
    let url = house.url("/v1/quote?endpoint=/v1/images/generations&calls=2");
    let body = asked("pictures", "a cat", &json!({ "n": 4, "quality": "high" }));
    let reply = house.http.post(url).bearer_auth(&house.key).json(&body).send().await.expect("a reply");
    let quote: Value = reply.json().await.expect("JSON");
    assert_eq!((&quote["kind"], &quote["total_nano_usd"]), (&json!("exact"), &json!(320_000_000)), "{quote}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_money_nothing_is_sent() {
    let house = house_with(Plan { usd: "0.1", ..Plan::default() }).await;
    let reply = make(&house, "pictures", "cats", json!({ "n": 3 })).await;
    assert_eq!(crate::house::error_of(reply).await.0, 402);
    assert_eq!(house.sim.received().len(), 0);
    made(&house, "pictures", "cats", json!({ "n": 2 })).await;
}
