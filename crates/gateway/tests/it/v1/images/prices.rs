//! Prices by number, size and quality: what is quoted is what is held, and the charge is never
//! more.

use super::*;
use crate::v1::switched_off::switch;
use tollgate_store::PauseKind;

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

/// The first tier that applies is taken. Where it does not go by an option that costs more at the
/// provider, that option would be had for nothing.
#[tokio::test(flavor = "multi_thread")]
async fn an_option_that_costs_more_is_not_sold_beside_a_tier_that_does_not_know_it() {
    let house = house().await;
    let moving = json!({ "output_format": "GIF" });
    let (_, row) = made(&house, "tiered-pictures", "a cat", moving.clone()).await;
    assert_eq!(row.charge.nano(), 90_000_000);
    assert_eq!(house.sim.received().pop().expect("sent").json()["output_format"], "gif");
    let sent = house.sim.received().len();
    for more in [json!({ "quality": "high" }), json!({ "size": "1536x1024" })] {
        let (_, row) = made(&house, "tiered-pictures", "a cat", more.clone()).await;
        assert!([160_000_000, 60_000_000].contains(&row.charge.nano()), "{more} alone");
        let mut both = moving.clone();
        both.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let (status, error) =
            crate::house::error_of(make(&house, "tiered-pictures", "a cat", both.clone()).await).await;
        assert_eq!((status, &error["param"]), (400, &json!("output_format")), "{both}: {error}");
        let url = house.url("/v1/quote?endpoint=/v1/images/generations");
        let body = asked("tiered-pictures", "a cat", &both);
        let reply = house.http.post(url).bearer_auth(&house.key).json(&body).send().await.expect("a reply");
        assert_eq!(reply.status(), 400, "a quote says so too");
    }
    assert_eq!(house.sim.received().len(), sent + 2, "only what has a price was sent");
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
    // Whoever names none, or leaves it to us, has lost nothing.
    for more in [json!({}), json!({ "quality": "auto" })] {
        let reply = make(&house, "minimax-tiered", "a cat", more.clone()).await;
        assert_eq!(reply.status(), 200, "{more}");
        assert_eq!(reply.headers().get("x-tollgate-dropped"), None, "{more}");
    }
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

/// B3: whoever copies OpenAI reads sizes and numbers in words of its own, and would make what is
/// not priced.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_passes_beside_the_price() {
    let house = house().await;
    for model in MAKERS {
        for (more, field) in [
            (json!({ "size": "1024x1024", "width": 4096 }), "width"),
            (json!({ "size": "1024x1024", "image_size": "4096x4096" }), "image_size"),
            (json!({ "num_images": 4 }), "num_images"),
            (json!({ "N": 4 }), "N"),
            (json!({ "batch_size": 4 }), "batch_size"),
            (
                json!({ "sequential_image_generation_options": { "max_images": 15 } }),
                "sequential_image_generation_options",
            ),
            (json!({ "parameters": { "size": "4096*4096" } }), "parameters"),
            (json!({ "extra_body": { "n": 4 } }), "extra_body"),
            (json!({ "metadata": { "imageConfig": { "imageSize": "4K" } } }), "metadata.imageConfig"),
            (json!({ "image_url": "https://media.example/1.png" }), "image_url"),
        ] {
            let reply = make(&house, model, "a cat", more.clone()).await;
            let (status, error) = crate::house::error_of(reply).await;
            let said = (status, error["code"].as_str(), error["param"].as_str());
            assert_eq!(said, (400, Some("unknown_parameter"), Some(field)), "{model} {more}: {error}");
        }
    }
    assert_eq!((house.sim.received().len(), house.all_rows().await.len()), (0, 0), "nothing was sent or held");
}

/// R6: a ratio is another word for a size that is sold.
#[tokio::test(flavor = "multi_thread")]
async fn a_ratio_is_sold_as_the_size_that_has_it() {
    let house = house().await;
    for (more, size, each) in [
        (json!({ "aspect_ratio": "1:1" }), "1024x1024", EACH),
        (json!({ "size": "1:1" }), "1024x1024", EACH),
        (json!({ "aspect_ratio": "3:2" }), "1536x1024", 60_000_000),
        (json!({ "aspect_ratio": "1:1", "resolution": "2K" }), "2048x2048", EACH),
    ] {
        let (_, row) = made(&house, "sized-pictures", "a cat", more.clone()).await;
        let sent = house.sim.received().pop().expect("sent").json();
        assert_eq!((&sent["size"], sent.get("aspect_ratio")), (&json!(size), None), "{more}");
        assert_eq!((row.charge.nano(), row.hold.nano()), (each, each), "{more}");
    }
    let (status, error) =
        crate::house::error_of(make(&house, "sized-pictures", "a cat", json!({ "aspect_ratio": "16:9" })).await).await;
    assert_eq!((status, &error["param"]), (400, &json!("aspect_ratio")), "{error}");
}

/// B6: a price goes by whether pictures are changed, and by how many.
#[tokio::test(flavor = "multi_thread")]
async fn edits_and_the_number_of_their_pictures_have_prices() {
    let house = house().await;
    let letters = BASE64_STANDARD
        .encode(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0\0\0\0\0IEND\xaeB`\x82");
    let link = format!("data:image/png;base64,{letters}");
    for (path, pictures, each) in [
        ("/v1/images/generations", 0, EACH),
        ("/v1/images/edits", 1, 70_000_000),
        ("/v1/images/edits", 2, 70_000_000),
        ("/v1/images/edits", 3, 90_000_000),
    ] {
        let mut body = asked("edited-pictures", "a hat", &json!({ "n": 2 }));
        if pictures > 0 {
            body["image"] = json!(vec![&link; pictures]);
        }
        let url = house.url(&format!("/v1/quote?endpoint={path}"));
        let quote: Value = house
            .http
            .post(url)
            .bearer_auth(&house.key)
            .json(&body)
            .send()
            .await
            .expect("a reply")
            .json()
            .await
            .expect("JSON");
        let reply = post(&house, path, &body).send().await.expect("a reply");
        let (status, call) = (reply.status(), call_id(&reply));
        assert_eq!(status, 200, "{pictures}: {}", reply.text().await.unwrap_or_default());
        let row = house.row(call).await;
        assert_eq!(
            (row.charge.nano(), quote["hold_nano_usd"].as_i64()),
            (2 * each, Some(2 * each)),
            "{path} {pictures}"
        );
    }
}

/// R5: what one provider cannot do another one can, which is out of service: that is no mistake of
/// the caller.
#[tokio::test(flavor = "multi_thread")]
async fn a_route_that_is_out_of_service_could_have_taken_it() {
    let house = house().await;
    // MiniMax makes no such size, and Ark does.
    let large = json!({ "size": "2K" });
    made(&house, "unlike-routes", "a cat", large.clone()).await;
    switch(&house, PauseKind::Provider, "ark", true).await;
    let reply = make(&house, "unlike-routes", "a cat", large.clone()).await;
    assert!(reply.headers().contains_key("retry-after"), "{:?}", reply.headers());
    let (status, error) = free(&house, reply).await;
    assert_eq!((status, &error["code"]), (503, &json!("no_route_available")), "{error}");
    made(&house, "unlike-routes", "a cat", json!({ "size": "1024x1024" })).await;
    // What none of them makes is one, whatever is out of service.
    let reply = make(&house, "unlike-routes", "a cat", json!({ "size": "2K", "aspect_ratio": "16:9" })).await;
    assert_eq!(crate::house::error_of(reply).await.0, 400);
}
