//! Quote = hold ≥ charge on ten thousand generated calls for pictures and edits, recordings,
//! speech, songs, and what only reads text: every unit they are sold by, sizes on both sides of
//! each class, qualities, numbers, seconds at the rounding edges, characters of one to four bytes,
//! answers that come in part or not at all. What each must cost is computed here once more, from
//! the prices below and nothing else.

use super::generated_texts;
use crate::generated::{Seed, calls, end, lanes, rows};
use crate::house::{House, Plan, call_id};
use crate::v1::transcriptions::{KIND, form, wav_of};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use tollgate_store::{CallId, Ending, UsageRow};

/// Prices that do not come out even, in micro-USD.
const CATALOG: &str = r#"
[model."pictures"]
type = "image"
supported_endpoint_types = ["image-generation"]
billing_unit = "per_call"
price = { per_call = 33_333 }
route = [{ provider = "sim", upstream_model = "sim-image-new" }]
[model."pictures".image]
most = 10
edit_images = 16
masks = true
default_size = "1024x1024"
default_quality = "medium"
qualities = ["low", "medium", "high"]
base64_only = true
[[model."pictures".tier]]
name = "4K"
when = [{ dim = "request_attr", path = "resolution", equals = "4K" }]
price = { per_call = 250_001 }
[[model."pictures".tier]]
name = "high"
when = [{ dim = "request_attr", path = "quality", equals = "high" }]
multiplier = "1333/1000"
[[model."pictures".tier]]
name = "2K"
when = [{ dim = "request_attr", path = "resolution", equals = "2K" }]
price = { per_call = 77_777 }

[model."ears"]
type = "asr"
supported_endpoint_types = ["audio-transcription"]
billing_unit = "audio_duration"
price = { input = 359_999_999 }
transcription = { response_formats = ["json", "text", "srt", "vtt", "verbose_json"], translations = true }
route = [{ provider = "sim", upstream_model = "whisper-sim" }]

[model."cheap-ears"]
type = "asr"
supported_endpoint_types = ["audio-transcription"]
billing_unit = "audio_duration"
price = { input = 1 }
route = [{ provider = "sim", upstream_model = "whisper-sim" }]

[model."flat-ears"]
type = "asr"
supported_endpoint_types = ["audio-transcription"]
billing_unit = "per_call"
price = { per_call = 1_001 }
route = [{ provider = "sim", upstream_model = "whisper-sim" }]

[model."voice"]
type = "tts"
supported_endpoint_types = ["audio-speech"]
billing_unit = "characters"
price = { input = 14_999_999 }
speech = { formats = ["mp3", "wav", "pcm"], max_characters = 600 }
route = [{ provider = "sim", upstream_model = "sim-tts" }]

[model."songs"]
type = "music"
supported_endpoint_types = ["music-generation"]
billing_unit = "per_call"
price = { per_call = 30_001 }
music = { formats = ["mp3", "wav"], max_prompt = 2_000, max_lyrics = 3_500, instrumental = true }
route = [{ provider = "minimax", upstream_model = "music-2.0" }]

[model."tunes"]
type = "music"
supported_endpoint_types = ["music-generation"]
billing_unit = "per_second"
price = { video_second = 8_009 }
music = { formats = ["mp3", "opus"], max_prompt = 2_000, instrumental = true, seconds = [3, 600] }
route = [{ provider = "elevenlabs", upstream_model = "music_v1" }]
"#;

/// What a form brings along.
#[derive(Clone, Copy, Debug)]
pub enum Upload {
    /// Nothing: it is JSON.
    None,
    /// A recording of so many parts of a second, of which there are so many in one.
    Recording(u32, u32),
    /// So many pictures, and whether there is a mask.
    Pictures(u64, bool),
}

/// A call, and what it must cost.
#[derive(Clone, Debug)]
pub struct Wish {
    pub path: &'static str,
    pub body: Value,
    pub upload: Upload,
    pub hold: i64,
    pub charge: i64,
    /// What it counts as, so that all sorts are seen.
    pub sort: String,
}

/// Micro-USD times a fraction, in nano-USD, rounded up once.
pub fn nano(micro: i128, times: i128, over: i128) -> i64 {
    i64::try_from((micro * 1_000 * times + over - 1) / over).expect("small")
}

fn picture(seed: &mut Seed) -> Wish {
    let n = 1 + seed.below(10);
    let fail = if seed.below(3) == 0 { seed.below(n + 1) } else { 0 };
    let side = |seed: &mut Seed| 16 * (16 + seed.below(225));
    let size = match seed.below(4) {
        0 => None,
        1 => Some((1_600, 1_000)),
        2 => Some(seed.one(&[(1_600, 1_008), (2_048, 2_096), (2_048, 2_112), (1_024, 1_024)])),
        _ => Some((side(seed), side(seed))),
    };
    let quality = seed.one(&[None, Some("auto"), Some("low"), Some("high")]);
    let pixels = size.map_or(1_024 * 1_024, |(wide, high)| wide * high);
    // The classes of docs/images.md.
    let class = match pixels {
        0..=1_600_000 => "1K",
        1_600_001..=4_300_000 => "2K",
        _ => "4K",
    };
    let (each, over, sort) = match (class, quality) {
        ("4K", _) => (250_001, 1, "4K"),
        (_, Some("high")) => (33_333 * 1_333, 1_000, "high"),
        ("2K", _) => (77_777, 1, "2K"),
        _ => (33_333, 1, "1K"),
    };
    let mut body = json!({ "model": "pictures", "prompt": format!("[[sim:partial fail={fail}]]"), "n": n });
    if let Some((wide, high)) = size {
        body["size"] = json!(format!("{wide}x{high}"));
    }
    if let Some(quality) = quality {
        body["quality"] = json!(quality);
    }
    let cost = |n: u64| nano(each, i128::from(n), over);
    let sort = if fail == n { "no picture".to_owned() } else { sort.to_owned() };
    let path = "/v1/images/generations";
    Wish { path, body, upload: Upload::None, hold: cost(n), charge: cost(n - fail), sort }
}

/// The same pictures made from others, as a form or as JSON.
fn edit(seed: &mut Seed) -> Wish {
    let made = picture(seed);
    let (mut body, pictures, mask) = (made.body, 1 + seed.below(4), seed.below(3) == 0);
    let sort = if made.charge == 0 { "no edit" } else { "edit" }.to_owned();
    let upload = match seed.below(2) {
        0 => Upload::Pictures(pictures, mask),
        _ => {
            let link = |at: u64| format!("data:image/png;base64,{}", BASE64_STANDARD.encode(png(at)));
            body["image"] = (0..pictures).map(link).collect();
            Upload::None
        }
    };
    Wish { path: "/v1/images/edits", body, upload, sort, ..made }
}

/// A picture as far as anybody looks at it.
fn png(tag: u64) -> Vec<u8> {
    [&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0"[..], &tag.to_le_bytes()].concat()
}

fn recording(seed: &mut Seed) -> Wish {
    let rate: u32 = seed.one(&[4_000, 4_000, 8_000]);
    let seconds: u32 = seed.one(&[0, 1, 2, 3, 7, 12, 29]);
    // At the edge of a second, one part before and behind it, or anywhere.
    let parts = match seed.below(4) {
        0 => seconds * rate,
        1 => (seconds * rate).saturating_sub(1),
        2 => seconds * rate + 1,
        _ => seconds * rate + u32::try_from(seed.below(u64::from(rate))).expect("small"),
    }
    .max(1);
    let billed = i128::from(parts.div_ceil(rate).max(1));
    let model = seed.one(&["ears", "cheap-ears", "flat-ears"]);
    // Fifty tokens are three seconds, and prices are for a million tokens.
    let cost = match model {
        "ears" => nano(359_999_999, billed * 50, 3 * 1_000_000),
        "cheap-ears" => nano(1, billed * 50, 3 * 1_000_000),
        _ => nano(1_001, 1, 1),
    };
    let mut body = json!({ "model": model });
    if model == "ears" {
        body["response_format"] = json!(seed.one(&["json", "text", "srt", "vtt", "verbose_json"]));
    }
    let fails = seed.below(12) == 0;
    if fails {
        body["prompt"] = json!("[[sim:error500]]");
    }
    let translated = model == "ears" && seed.below(3) == 0;
    let sort = if fails {
        "not heard"
    } else if translated {
        "translated"
    } else {
        model
    }
    .to_owned();
    let charge = if fails { 0 } else { cost };
    let path = if translated { "/v1/audio/translations" } else { "/v1/audio/transcriptions" };
    Wish { path, body, upload: Upload::Recording(parts, rate), hold: cost, charge, sort }
}

fn speech(seed: &mut Seed) -> Wish {
    let letter = seed.one(&["a", "ß", "字", "😀", "e\u{301}"]);
    let times = 1 + seed.below(200);
    let input = letter.repeat(usize::try_from(times).expect("small"));
    let characters = input.chars().count();
    let mut body = json!({ "model": "voice", "input": input, "voice": "alloy" });
    body["response_format"] = json!(seed.one(&["mp3", "wav", "pcm"]));
    let cost = nano(14_999_999, i128::try_from(characters).expect("small"), 1_000_000);
    let sort = "characters".to_owned();
    Wish { path: "/v1/audio/speech", body, upload: Upload::None, hold: cost, charge: cost, sort }
}

fn song(seed: &mut Seed) -> Wish {
    let body =
        json!({ "model": "songs", "prompt": format!("[[sim:ms={}]]", 500 + seed.below(1_500)), "instrumental": true });
    let cost = nano(30_001, 1, 1);
    let sort = "song".to_owned();
    Wish { path: "/v1/music/generations", body, upload: Upload::None, hold: cost, charge: cost, sort }
}

/// A song by the second: as long as it was asked for, shorter, longer, or not made.
fn tune(seed: &mut Seed) -> Wish {
    let asked = 3 + seed.below(6);
    // Half a second away from where a second begins: an encoder adds a packet.
    let whole = 1 + seed.below(10);
    let fails = seed.below(6) == 0;
    let marker = if fails { "error500".to_owned() } else { format!("ms={}", 1_000 * whole - 500) };
    let mut body = json!({ "model": "tunes", "prompt": format!("[[sim:{marker}]]"), "duration": asked });
    body["response_format"] = json!(seed.one(&["mp3", "opus"]));
    let cost = |seconds: u64| nano(8_009, i128::from(seconds), 1);
    let charge = if fails { 0 } else { cost(whole.min(asked)) };
    let sort = if fails { "no song" } else { "seconds" }.to_owned();
    Wish { path: "/v1/music/generations", body, upload: Upload::None, hold: cost(asked), charge, sort }
}

fn wish(seed: &mut Seed) -> Wish {
    match seed.below(40) {
        0..=7 => picture(seed),
        8..=11 => edit(seed),
        12..=19 => recording(seed),
        20..=22 => speech(seed),
        23 => song(seed),
        24 | 25 => tune(seed),
        26..=33 => generated_texts::vectors(seed),
        34..=36 => generated_texts::order(seed),
        _ => generated_texts::decision(seed),
    }
}

async fn quoted(house: &House, wish: &Wish) -> i64 {
    let mut body = wish.body.clone();
    match wish.upload {
        Upload::None => {}
        // A quote goes by milliseconds; here it gets the whole second that they are charged as.
        Upload::Recording(parts, rate) => body["seconds"] = json!(parts.div_ceil(rate).max(1)),
        Upload::Pictures(..) => body["image"] = json!("https://example.com/a.png"),
    }
    let url = house.url(&format!("/v1/quote?endpoint={}", wish.path));
    let reply = house.http.post(url).bearer_auth(&house.key).json(&body).send().await.expect("a reply");
    let quote: Value = reply.json().await.expect("JSON");
    assert_eq!(quote["hold_nano_usd"], quote["most_nano_usd"], "{wish:?}: {quote}");
    quote["hold_nano_usd"].as_i64().unwrap_or_else(|| panic!("{wish:?}: {quote}"))
}

async fn make(house: &House, wish: &Wish, asks: bool) -> CallId {
    if asks {
        assert_eq!(quoted(house, wish).await, wish.hold, "what is quoted is what is held: {wish:?}");
    }
    let request = house.http.post(house.url(wish.path)).bearer_auth(&house.key);
    let request = match wish.upload {
        Upload::None => request.json(&wish.body),
        Upload::Recording(parts, rate) => {
            let mut fields = fields(&wish.body);
            fields.push(("file".to_owned(), String::new()));
            let fields: Vec<(&str, &str)> =
                fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            request.header("content-type", KIND).body(form(&fields, "a.wav", &wav_of(1, 1, rate, 8, parts)))
        }
        Upload::Pictures(number, mask) => {
            request.header("content-type", KIND).body(pictures(&fields(&wish.body), number, mask))
        }
    };
    let reply = request.send().await.expect("a reply");
    let call = call_id(&reply);
    let _ = reply.bytes().await;
    call
}

/// A form with these fields and so many pictures.
fn pictures(fields: &[(String, String)], number: u64, mask: bool) -> Vec<u8> {
    let mut out = Vec::new();
    let mut part = |name: &str, more: &str, bytes: &[u8]| {
        let head = format!("--a-b\r\nContent-Disposition: form-data; name=\"{name}\"{more}\r\n\r\n");
        out.extend([head.as_bytes(), bytes, b"\r\n"].concat());
    };
    fields.iter().for_each(|(name, value)| part(name, "", value.as_bytes()));
    (0..number).for_each(|at| part("image[]", "; filename=\"a.png\"", &png(at)));
    if mask {
        part("mask", "; filename=\"a.png\"", &png(number));
    }
    out.extend(b"--a-b--\r\n");
    out
}

/// The fields of a form that say the same.
fn fields(body: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    body.as_object().expect("an object").iter().map(|(name, value)| (name.clone(), text(value))).collect()
}

fn judge(wish: &Wish, row: &UsageRow) {
    let what = || format!("{wish:?}: {row:?}");
    assert_eq!((row.hold.nano(), row.charge.nano()), (wish.hold, wish.charge), "{}", what());
    assert!(row.charge <= row.hold && row.write_off.is_zero(), "{}", what());
    assert_eq!(row.ending == Ending::Answered, wish.charge > 0, "{}", what());
}

#[tokio::test(flavor = "multi_thread")]
async fn generated_media_calls_cost_what_they_must() {
    let count = calls();
    let catalog: &'static str = format!("{CATALOG}{}", generated_texts::CATALOG).leak();
    let config = generated_texts::PROVIDERS.replace("\n[", "\nestimated_percent = 0\n[") + "estimated_percent = 0\n";
    let plan = Plan { usd: "1000000", catalog, config, sim: "estimated_percent = 0", ..Plan::default() };
    let house = Arc::new(House::with(plan).await);
    let mut seed = Seed(15);
    let wishes: Arc<Vec<Wish>> = Arc::new((0..count).map(|_| wish(&mut seed)).collect());
    let made = lanes(count, {
        let (house, wishes) = (house.clone(), wishes.clone());
        move |at| {
            let (house, wishes) = (house.clone(), wishes.clone());
            async move { (at, make(&house, &wishes[at], at % 5 == 0).await) }
        }
    })
    .await;
    let rows = rows(&house).await;
    assert_eq!((made.len(), rows.len()), (count, count));
    let mut seen: HashMap<&str, usize> = HashMap::new();
    for (at, call) in made {
        judge(&wishes[at], &rows[&call]);
        *seen.entry(wishes[at].sort.as_str()).or_default() += 1;
    }
    println!("chaos: generated calls of media: {count}, of them {seen:?}; quote = hold ≥ charge in each");
    let sorts = ["1K", "2K", "4K", "high", "no picture", "edit", "ears", "cheap-ears", "flat-ears", "not heard"];
    let more = ["translated", "characters", "song", "seconds", "no song", "no edit", "no order", "no decision"];
    for expected in sorts.into_iter().chain(more).chain(generated_texts::SORTS) {
        assert!(seen.get(expected).is_some_and(|seen| *seen > count / 800), "{expected} was hardly seen: {seen:?}");
    }
    end(house).await;
}
