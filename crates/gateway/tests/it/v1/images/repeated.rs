//! Makers of one picture at a time: several are asked for by as many requests, and each may fail
//! alone.

use super::*;
use crate::house::error_of;

/// Makers that are asked once for each picture: one in its own form, one as in a conversation.
const REPEATING: [&str; 2] = ["ark-pictures", "google-pictures"];

/// What a maker may do with one of several requests, and whether that shows in links of its own.
const FAILURES: [(&str, bool); 9] = [
    ("moderation", true),
    ("moderated", true),
    ("error", true),
    ("limited", true),
    ("none", true),
    ("garbage", true),
    ("lost", true),
    ("broken", false),
    ("cut", true),
];

fn asked_of_its_maker(house: &House) -> usize {
    house.sim.received().iter().filter(|one| one.method == "POST").count()
}

/// MM2: what failed of several pictures became an entry with an empty link, and was charged.
#[tokio::test(flavor = "multi_thread")]
async fn each_of_several_requests_fails_alone() {
    let house = house().await;
    let mut left = house.available().await;
    for model in REPEATING {
        for format in ["b64_json", "url"] {
            for (failure, in_links) in FAILURES {
                if model == "ark-pictures" && format == "url" && !in_links {
                    continue;
                }
                house.sim.clear();
                let prompt = format!("{model} {format} [[sim:turns of=ok,{failure},ok]]");
                let (result, row) = made(&house, model, &prompt, json!({ "n": 3, "response_format": format })).await;
                let what = format!("{prompt}: {result}");
                let entries = result["data"].as_array().expect("a list");
                let key = if format == "url" { "url" } else { "b64_json" };
                assert_eq!(entries.len(), 2, "{what}");
                assert!(entries.iter().all(|one| one[key].as_str().is_some_and(|text| !text.is_empty())), "{what}");
                if format == "b64_json" {
                    assert_eq!(pictures(&result), 2, "{what}");
                }
                assert_eq!(result["metadata"], json!({ "success_count": "2", "failed_count": "1" }), "{what}");
                assert_eq!((row.hold.nano(), row.charge.nano(), row.counters.calls), (3 * EACH, 2 * EACH, 2), "{what}");
                assert_eq!(asked_of_its_maker(&house), 3, "none is asked for again: {what}");
                house.quiet().await;
                left -= 2 * EACH;
                assert_eq!(house.available().await, left, "the rest of the hold is released: {what}");
            }
        }
    }
}

/// What is made in the place of what failed would be more than was asked for.
#[tokio::test(flavor = "multi_thread")]
async fn one_of_four_is_shown_and_paid() {
    let house = house().await;
    for model in REPEATING {
        let prompt = format!("{model} [[sim:turns of=limited,error,ok,moderation]]");
        let (result, row) = made(&house, model, &prompt, json!({ "n": 4, "response_format": "b64_json" })).await;
        assert_eq!((pictures(&result), row.charge.nano(), row.counters.calls), (1, EACH, 1), "{model}");
        assert_eq!(result["metadata"], json!({ "success_count": "1", "failed_count": "3" }), "{model}");
    }
}

/// What goes wrong with each of three requests; status and code of the answer, and whether it may
/// be sent again.
const ALL_FAIL: [(&str, u16, &str, bool); 7] = [
    ("limited,limited,limited", 429, "rate_limit_exceeded", true),
    ("limited,error,limited", 502, "upstream_error", false),
    ("limited,lost,limited", 502, "upstream_error", false),
    ("limited,none,limited", 502, "upstream_invalid_reply", false),
    ("error,moderation,limited", 400, "content_policy_violation", false),
    ("moderated,lost,none", 400, "content_policy_violation", false),
    ("limited,refuse,limited", 400, "", false),
];

/// The answer is the failure that says most, whichever of the requests it was.
#[tokio::test(flavor = "multi_thread")]
async fn what_fails_altogether_is_free_and_says_most() {
    let house = house().await;
    let before = house.available().await;
    for model in REPEATING {
        for (of, status, code, again) in ALL_FAIL {
            let mut turns: Vec<&str> = of.split(',').collect();
            for _ in 0..turns.len() {
                turns.rotate_left(1);
                house.sim.clear();
                let prompt = format!("{model} [[sim:turns of={}]]", turns.join(","));
                let more = json!({ "n": 3, "response_format": "b64_json" });
                let reply = make(&house, model, &prompt, more).await;
                let advised = reply.headers().get("x-should-retry").is_none_or(|value| value != "false");
                let (got, error) = free(&house, reply).await;
                assert_eq!((got, advised), (status, again), "{prompt}: {error}");
                assert!(code.is_empty() || error["code"] == code, "{prompt}: {error}");
                assert_eq!(asked_of_its_maker(&house), 3, "{prompt}");
            }
        }
    }
    house.quiet().await;
    assert_eq!(house.available().await, before);
}

/// A refusal hides that the answer to another request is lost: that one may have been made.
#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_key_makes_nothing_again_that_may_have_been_made() {
    let house = house().await;
    for model in REPEATING {
        house.sim.clear();
        let more = json!({ "n": 2, "response_format": "b64_json" });
        let body = asked(model, &format!("{model} [[sim:turns of=moderation,lost]]"), &more);
        let send = async || {
            let request = post(&house, "/v1/images/generations", &body).header("idempotency-key", model);
            let reply = request.send().await.expect("a reply");
            assert_eq!(reply.headers()["x-should-retry"], "false", "{model}");
            let refused = error_of(reply).await;
            house.quiet().await;
            refused
        };
        let first = send().await;
        assert_eq!((first.0, &first.1["code"]), (400, &json!("content_policy_violation")), "{model}");
        assert_eq!(send().await, first, "{model}");
        assert_eq!(asked_of_its_maker(&house), 2, "{model}: nobody makes it again");
    }
}

/// A warning names its picture among all of them, whichever request it came with.
#[tokio::test(flavor = "multi_thread")]
async fn warnings_name_their_pictures_in_the_whole_answer() {
    let house = house().await;
    let more = json!({ "n": 4, "response_format": "b64_json" });
    let (result, row) = made(&house, "ark-pictures", "[[sim:turns of=link,ok,link,ok code=404]]", more).await;
    assert_eq!((row.charge.nano(), row.counters.calls), (4 * EACH, 4), "all of them are handed over");
    let entries = result["data"].as_array().expect("a list").iter().enumerate();
    let at_links: Vec<String> =
        entries.filter(|(_, entry)| entry["url"] != "").map(|(at, _)| format!("data[{at}]")).collect();
    let warnings = result["warnings"].as_array().expect("a list").iter();
    let named: Vec<&str> = warnings.map(|warning| warning["field"].as_str().expect("a field")).collect();
    assert_eq!((at_links.len(), named), (2, at_links.iter().map(String::as_str).collect()), "{}", result["warnings"]);
}

/// Pictures that another route may make are made there, unless some of them may be made already.
#[tokio::test(flavor = "multi_thread")]
async fn another_route_is_asked_only_where_nothing_was_begun() {
    const ROUTES: &str = r#"
[model."second-chance"]
type = "image"
supported_endpoint_types = ["image-generation"]
billing_unit = "per_call"
price = { per_call = 40_000 }
image = { base64_only = true }
route = [
  { provider = "gemini", upstream_model = "first", priority = 1 },
  { provider = "gemini", upstream_model = "second", priority = 2 },
]
"#;
    let house = House::with(Plan { catalog: ROUTES, ..Plan::default() }).await;
    for (of, made_there) in [("limited,limited,ok,ok", true), ("limited,error,ok,ok", false)] {
        house.sim.clear();
        let reply = make(&house, "second-chance", &format!("[[sim:turns of={of}]]"), json!({ "n": 2 })).await;
        assert_eq!(reply.status().is_success(), made_there, "{of}");
        let row = house.row(call_id(&reply)).await;
        let (charge, sent) = if made_there { (2 * EACH, 4) } else { (0, 2) };
        assert_eq!((row.charge.nano(), asked_of_its_maker(&house)), (charge, sent), "{of}");
    }
}

/// What was used is what all requests together have used, those included that brought no picture.
#[tokio::test(flavor = "multi_thread")]
async fn usage_is_the_sum_of_all_requests() {
    let house = house().await;
    for (model, of, usage) in [
        ("ark-pictures", "ok,ok,ok", json!({ "generated_images": 3, "output_tokens": 49_152, "total_tokens": 49_152 })),
        (
            "ark-pictures",
            "ok,limited,ok",
            json!({ "generated_images": 2, "output_tokens": 32_768, "total_tokens": 32_768 }),
        ),
        (
            "google-pictures",
            "ok,ok,ok",
            json!({ "promptTokenCount": 15, "candidatesTokenCount": 3_870, "totalTokenCount": 3_885 }),
        ),
        (
            "google-pictures",
            "moderated,ok,moderation",
            json!({ "promptTokenCount": 15, "candidatesTokenCount": 2_580, "totalTokenCount": 2_590 }),
        ),
    ] {
        for format in ["b64_json", "url"] {
            let prompt = format!("{model} {format} [[sim:turns of={of}]]");
            let (result, row) = made(&house, model, &prompt, json!({ "n": 3, "response_format": format })).await;
            let told = result["usage"].as_object().expect("a report");
            for (name, value) in usage.as_object().expect("a report") {
                assert_eq!(&told[name], value, "{prompt}");
            }
            let counts = ["input_tokens", "output_tokens", "total_tokens"].map(|name| told[name].as_u64());
            assert!(counts.iter().all(Option::is_some), "{prompt}: as SDKs read it: {told:?}");
            let noted: Value = serde_json::from_str(&row.raw_usage.expect("a report")).expect("JSON");
            assert_eq!(noted, usage, "{prompt}: the same stands in the usage row");
        }
    }
}
