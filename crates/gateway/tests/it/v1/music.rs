//! `POST /v1/music/generations`: songs of two makers.

use crate::house::{House, Plan, call_id, error_of};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Response;
use serde_json::{Value, json};
use tollgate_store::Ending;

const CATALOG: &str = include_str!("../../../../../catalog/speech.toml");
const SONG: i64 = 30_000_000;
const SECOND: i64 = 8_000_000;

async fn house() -> House {
    House::with(Plan { catalog: CATALOG, ..Plan::default() }).await
}

async fn compose(house: &House, body: &Value) -> Response {
    let post = house.http.post(house.url("/v1/music/generations")).bearer_auth(&house.key);
    post.json(body).send().await.expect("a reply")
}

/// It is made, and billed by its provider, whether or not anybody waits for it.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_leaves_before_the_song_pays_for_it() {
    for (model, path, charge) in [
        ("music-2.0", "/video/minimax/v1/music_generation", SONG),
        ("eleven-music", "/video/elevenlabs/v1/music", 12 * SECOND),
    ] {
        let house = house().await;
        let before = house.available().await;
        house.sim.shut(path);
        let mut body = json!({ "model": model, "prompt": "jazz" });
        if model == "eleven-music" {
            body["duration"] = json!(12);
        }
        let post = house.http.post(house.url("/v1/music/generations")).bearer_auth(&house.key).json(&body);
        house.leave(post).await;
        house.sim.open();
        house.quiet().await;
        assert_eq!((before - house.available().await, house.all_rows().await.len()), (charge, 1), "{model}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_song_comes_whole_and_is_paid_by_the_call_or_by_its_seconds() {
    let house = house().await;
    for (body, begins, charge, seconds) in [
        (
            json!({ "model": "music-2.0", "prompt": "jazz [[sim:ms=60500]]", "lyrics": "[Verse]\nla la" }),
            &b"\xff\xf3"[..],
            SONG,
            61,
        ),
        (
            json!({ "model": "music-2.0", "prompt": "[[sim:ms=2000]]", "instrumental": true, "response_format": "wav" }),
            b"RIFF",
            SONG,
            2,
        ),
        (json!({ "model": "eleven-music", "prompt": "jazz", "duration": 12 }), b"\xff\xf3", 12 * SECOND, 12),
        (json!({ "model": "eleven-music", "prompt": "jazz", "response_format": "opus" }), b"OggS", 30 * SECOND, 30),
        // Shorter than was asked for: only what came is paid.
        (json!({ "model": "eleven-music", "prompt": "[[sim:ms=5000]]", "duration": 12 }), b"\xff\xf3", 5 * SECOND, 5),
        // Longer than was asked for: no more than that is paid.
        (
            json!({ "model": "eleven-music", "prompt": "[[sim:ms=15000]]", "duration": 12 }),
            b"\xff\xf3",
            12 * SECOND,
            12,
        ),
    ] {
        let url = house.url("/v1/quote?endpoint=/v1/music/generations");
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
        let reply = compose(&house, &body).await;
        assert_eq!(reply.status(), 200, "{body}: {}", reply.text().await.unwrap_or_default());
        let call = call_id(&reply);
        let result: Value = reply.json().await.expect("JSON");
        assert_eq!(result["metadata"], json!({ "success_count": "1", "failed_count": "0" }));
        let song = &result["data"][0];
        let bytes = STANDARD.decode(song["b64_json"].as_str().expect("a song")).expect("base64");
        assert!(bytes.starts_with(begins) && song["url"] == "", "{body}");
        assert!((song["duration"].as_f64().expect("a number") - 0.05).ceil() >= 1.0, "{song}");
        let row = house.row(call).await;
        assert_eq!((row.charge.nano(), row.ending), (charge, Ending::Answered), "{body}");
        assert_eq!(row.counters.audio_output, (seconds * 50_u64).div_ceil(3), "{body}");
        assert!(quote["hold_nano_usd"] == row.hold.nano() && row.charge <= row.hold, "{quote}");
    }
    let sent = house.sim.received().into_iter().next().expect("a request").json();
    assert_eq!((&sent["lyrics"], &sent["output_format"]), (&json!("[Verse]\nla la"), &json!("hex")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_is_given_where_the_provider_has_one() {
    let house = house().await;
    let body = json!({ "model": "music-2.0", "prompt": "[[sim:ms=30000]]", "output": "url" });
    let reply = compose(&house, &body).await;
    let call = call_id(&reply);
    let result: Value = reply.json().await.expect("JSON");
    let song = &result["data"][0];
    assert!(song["url"].as_str().is_some_and(|url| url.contains("Expires=")) && song["b64_json"] == "", "{result}");
    assert_eq!((&song["duration"], house.row(call).await.charge.nano()), (&json!(30.0), SONG));
    let without = json!({ "model": "music-2.0", "prompt": "[[sim:empty]]", "output": "url" });
    let (status, error) = error_of(compose(&house, &without).await).await;
    assert_eq!((status, error["code"].as_str()), (502, Some("upstream_invalid_reply")));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_named_and_what_fails_is_free() {
    let house = house().await;
    for (body, status, code, param) in [
        (json!({ "model": "music-2.0" }), 400, "missing_parameter", "prompt"),
        (json!({ "model": "music-2.0", "prompt": "x".repeat(2_001) }), 400, "invalid_parameter", "prompt"),
        (json!({ "model": "music-2.0", "prompt": "x", "duration": 9 }), 400, "unsupported_value", "duration"),
        (json!({ "model": "eleven-music", "prompt": "x", "lyrics": "la" }), 400, "unsupported_value", "lyrics"),
        (json!({ "model": "eleven-music", "prompt": "x", "duration": 2 }), 400, "unsupported_value", "duration"),
        (json!({ "model": "eleven-music", "prompt": "x", "output": "url" }), 400, "unsupported_value", "output"),
        (
            json!({ "model": "eleven-music", "prompt": "x", "response_format": "wav" }),
            400,
            "unsupported_value",
            "response_format",
        ),
        (
            json!({ "model": "music-2.0", "prompt": "x", "aigc_watermark": true }),
            400,
            "unknown_parameter",
            "aigc_watermark",
        ),
        (json!({ "model": "plain", "prompt": "x" }), 400, "unsupported_value", "model"),
    ] {
        let (got, error) = error_of(compose(&house, &body).await).await;
        assert_eq!((got, error["code"].as_str(), error["param"].as_str()), (status, Some(code), Some(param)), "{body}");
    }
    assert!(house.sim.received().is_empty() && house.all_rows().await.is_empty());
    let before = house.available().await;
    for (model, scenario, status, code) in [
        ("music-2.0", "moderated", 400, "content_policy_violation"),
        ("music-2.0", "empty", 502, "upstream_invalid_reply"),
        ("music-2.0", "error500", 502, "upstream_error"),
        ("music-2.0", "money", 502, "upstream_error"),
        ("eleven-music", "limited", 429, "rate_limit_exceeded"),
        ("eleven-music", "wrong_format", 502, "upstream_invalid_reply"),
    ] {
        let body = json!({ "model": model, "prompt": format!("[[sim:{scenario}]]") });
        let (got, error) = error_of(compose(&house, &body).await).await;
        assert_eq!((got, error["code"].as_str()), (status, Some(code)), "{model} {scenario}: {error}");
    }
    for (model, scenario) in [("music-2.0", "cut cut=fin"), ("music-2.0", "unfinished"), ("eleven-music", "cut")] {
        let body = json!({ "model": model, "prompt": format!("[[sim:{scenario} ms=30000]]") });
        let post = house.http.post(house.url("/v1/music/generations")).bearer_auth(&house.key);
        // It may break before its head has left.
        if let Ok(reply) = post.json(&body).send().await {
            assert!(reply.bytes().await.is_err(), "{model} {scenario}");
        }
    }
    house.quiet().await;
    let rows = house.all_rows().await;
    assert_eq!(rows.values().filter(|row| row.reason == "broken_off").count(), 3);
    assert_eq!(house.available().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_gets_the_same_song_and_pays_once() {
    let house = house().await;
    // Three seconds are stored in the database; a song of five minutes lies beside pictures.
    for (at, (ms, most)) in [(3_000, 1 << 20), (300_000, usize::MAX)].into_iter().enumerate() {
        let before = house.available().await;
        let body = json!({ "model": "music-2.0", "prompt": format!("[[sim:ms={ms}]]") });
        let mut songs = Vec::new();
        for _ in 0..3 {
            let post = house.http.post(house.url("/v1/music/generations")).bearer_auth(&house.key);
            let reply = post.header("idempotency-key", ms.to_string()).json(&body).send().await.expect("a reply");
            songs.push(reply.text().await.expect("a result"));
            house.quiet().await;
        }
        assert!(songs[0] == songs[1] && songs[1] == songs[2], "{ms}: {} {}", songs[1].len(), songs[2].len());
        assert!(songs[0].len() <= most && (songs[0].len() > 1 << 20) == (at > 0), "{ms}: {}", songs[0].len());
        assert_eq!((before - house.available().await, house.sim.received().len()), (SONG, at + 1));
    }
}

/// What nobody can have costs nothing, also where it was to be stored for its key.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_song_with_a_key_that_breaks_off_is_free() {
    let house = house().await;
    let before = house.available().await;
    let body = json!({ "model": "music-2.0", "prompt": "[[sim:cut ms=600000 cut=fin]]" });
    for _ in 0..2 {
        let post = house.http.post(house.url("/v1/music/generations")).bearer_auth(&house.key);
        let reply = post.header("idempotency-key", "k").json(&body).send().await.expect("a reply");
        let (status, error) = error_of(reply).await;
        assert_eq!((status, error["code"].as_str()), (502, Some("upstream_error")), "{error}");
    }
    house.quiet().await;
    assert_eq!((house.available().await, house.sim.received().len()), (before, 1));
}

const TIERS: &str = r#"
[model."songs"]
type = "music"
billing_unit = "per_call"
supported_endpoint_types = ["music-generation"]
price = { per_call = 30_000 }
route = [{ provider = "minimax", upstream_model = "music-2.0" }]
music = { formats = ["mp3", "wav"], max_prompt = 2_000, max_lyrics = 3_500, instrumental = true, links = true }
tier = [
  { name = "written", when = [{ dim = "request_attr", path = "lyrics_optimizer", equals = true }], price = { per_call = 90_000 } },
  { name = "sung", when = [{ dim = "request_attr", path = "lyrics", equals = true }], price = { per_call = 50_000 } },
  { name = "without-voice", when = [{ dim = "request_attr", path = "instrumental", equals = true }], price = { per_call = 20_000 } },
  { name = "wav", when = [{ dim = "request_attr", path = "response_format", equals = "wav" }], price = { per_call = 40_000 } },
  { name = "link", when = [{ dim = "request_attr", path = "output", equals = "url" }], price = { per_call = 10_000 } },
]

[model."songs-by-length"]
type = "music"
billing_unit = "per_call"
supported_endpoint_types = ["music-generation"]
price = { per_call = 30_000 }
route = [{ provider = "elevenlabs", upstream_model = "music_v1" }]
music = { formats = ["mp3"], max_prompt = 2_000, instrumental = true, seconds = [3, 600] }
tier = [{ name = "minute", when = [{ dim = "request_attr", path = "duration", equals = 60 }], price = { per_call = 60_000 } }]
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_song_is_sold_by_the_facts_of_its_request() {
    let house = House::with(Plan { catalog: TIERS, ..Plan::default() }).await;
    for (model, more, tier, micro) in [
        ("songs", json!({}), "base", 30_000),
        ("songs", json!({ "lyrics": "la" }), "sung", 50_000),
        ("songs", json!({ "lyrics_optimizer": true }), "written", 90_000),
        ("songs", json!({ "is_instrumental": true }), "without-voice", 20_000),
        ("songs", json!({ "audio_setting": { "format": "wav" } }), "wav", 40_000),
        ("songs", json!({ "output": "url" }), "link", 10_000),
        ("songs-by-length", json!({}), "base", 30_000),
        ("songs-by-length", json!({ "duration": 60 }), "minute", 60_000),
        ("songs-by-length", json!({ "duration": 61 }), "base", 30_000),
    ] {
        let mut body = json!({ "model": model, "prompt": "[[sim:ms=3000]]" });
        let fields = more.as_object().expect("fields");
        fields.iter().for_each(|(name, value)| body[name] = value.clone());
        let url = house.url("/v1/quote?endpoint=/v1/music/generations");
        let quote = house.http.post(url).bearer_auth(&house.key).json(&body).send().await.expect("a reply");
        let quote: Value = quote.json().await.expect("JSON");
        let row = house.row(call_id(&compose(&house, &body).await)).await;
        assert_eq!((row.charge.nano(), row.hold.nano()), (micro * 1_000, micro * 1_000), "{tier}: {row:?}");
        assert_eq!(quote["total_nano_usd"], json!(micro * 1_000), "{tier}: {quote}");
        let named = &quote["tier"]["name"];
        assert!(if tier == "base" { named.is_null() } else { named == tier }, "{tier}: {quote}");
    }
}

/// A tier that never applies is a misspelt one, and what it is for would be sold at the base price.
#[test]
fn a_price_goes_by_what_a_request_for_music_can_say() {
    let found = |music: &str, path: &str, equals: &str| {
        super::speech::checks::mistakes(&format!(
            "[model.m]\ntype = \"music\"\nbilling_unit = \"per_call\"\nsupported_endpoint_types = [\"music-generation\"]\n\
             price = {{ per_call = 1 }}\nroute = [{{ provider = \"elevenlabs\", upstream_model = \"u\" }}]\n\
             music = {{ formats = [\"mp3\", \"opus\"], max_prompt = 9, {music} }}\n\
             tier = [{{ name = \"t\", when = [{{ dim = \"request_attr\", path = \"{path}\", equals = \"{equals}\" }}], price = {{ per_call = 2 }} }}]\n"
        ))
    };
    let long = "seconds = [3, 60], instrumental = true";
    for (path, equals) in
        [("duration", "60"), ("instrumental", "true"), ("response_format", "opus"), ("lyrics", "false")]
    {
        assert_eq!(found(long, path, equals), Vec::<String>::new(), "{path} {equals}");
    }
    for (music, path, equals, expected) in [
        (long, "duration", "61", "`duration` is never \"61\" here; it can be whole numbers from 3 to 60"),
        (long, "duration", "060", "`duration` is never \"060\""),
        (long, "length", "60", "cannot depend on \"length\""),
        (long, "instrumental", "yes", "`instrumental` is never \"yes\" here; it can be true, false"),
        (long, "lyrics", "true", "`lyrics` is never \"true\" here; it can be false"),
        (long, "response_format", "wav", "`response_format` is never \"wav\" here; it can be mp3, opus"),
        (long, "output", "url", "`output` is never \"url\" here"),
        ("instrumental = false", "instrumental", "true", "`instrumental` is never \"true\""),
        ("instrumental = false", "duration", "30", "cannot depend on \"duration\"; it can on instrumental, lyrics"),
    ] {
        let found = found(music, path, equals);
        assert!(found.len() == 1 && found[0].contains(expected), "{expected}: {found:#?}");
    }
}
