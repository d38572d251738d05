//! No ratio of a picture is lost: whoever makes it is sent the ratio, or the request is refused, or
//! the ratio is named among what was left out.

use super::providers::provider;
use serde_json::{Value, json};
use tollgate_media::image::{ImagePlan, ImageRequest, ImageRules, PictureFormat};
use tollgate_upstream::video::Asking;
use tollgate_upstream::{BaseUrl, ImageJob, KINDS, Payload, Provider, ProviderKind, ProviderSettings, Secret, preset};
use tollgate_wire::{Problem, SizeMembers};

/// Ways that some makers have beside their usual one.
const WAYS: [&str; 4] = ["", "live", "tasks", "imagen"];

fn plan(more: &Value) -> ImagePlan {
    planned(more, false)
}

fn planned(more: &Value, edit: bool) -> ImagePlan {
    let mut body = json!({ "model": "m", "prompt": "a" });
    body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    let asked = ImageRequest::from_json(body.to_string().as_bytes(), edit).expect("a request");
    let rules = ImageRules {
        most: 4,
        default_size: None,
        sizes: Vec::new(),
        default_quality: None,
        qualities: Vec::new(),
        format: PictureFormat::Url,
        base64_only: false,
        links: true,
        partials: false,
        sources: 2,
        masks: true,
        prompt: 1_000,
        one_price: Vec::new(),
        tiers: Vec::new(),
    };
    ImagePlan::new(asked, &rules).expect("a plan")
}

fn job<'a>(plan: &'a ImagePlan, api: &'a str) -> ImageJob<'a> {
    ImageJob {
        plan,
        model: "m",
        api,
        files: &[],
        sends_format: false,
        streams: false,
        n: 1,
        external_id: "call_1",
        drawn: [0; 16],
    }
}

/// The body that a maker is sent and the fields that it is not, or why it cannot take the request.
fn sent(
    kind: &'static ProviderKind,
    api: &str,
    members: SizeMembers,
    more: &Value,
) -> Result<(Value, Vec<String>), Problem> {
    let maker = kind.image.expect("pictures");
    let mut settings = ProviderSettings::default();
    settings.quirks.picture_size = members;
    let base = BaseUrl::parse("https://maker.example/v1").expect("an address");
    let secret =
        (!kind.name.starts_with("vertex")).then(|| Secret::new(if kind.key_pair { "KEY|SECRET" } else { "KEY" }));
    let provider = Provider::new("maker", kind, base, secret, settings).expect("a provider");
    let plan = plan(more);
    let job = job(&plan, api);
    let request = maker.create(&Asking { provider: &provider, now: 0 }, &job)?;
    let Payload::Whole(body) = request.body() else { panic!("a whole body") };
    Ok((serde_json::from_slice(body).expect("JSON"), maker.drops(&provider, &job)))
}

/// What a body says of a ratio, wherever it stands.
fn ratio(body: &Value) -> Option<&str> {
    let members = body.as_object()?;
    let own = ["aspect_ratio", "aspectRatio"].iter().find_map(|name| members.get(*name)?.as_str());
    own.or_else(|| members.values().find_map(ratio))
}

#[test]
fn a_ratio_beside_a_class_is_sent_or_refused_by_its_name() {
    let (mut taken, mut refused) = (0, 0);
    for kind in KINDS.iter().filter(|kind| kind.image.is_some()) {
        for (api, members) in WAYS.iter().flat_map(|api| SizeMembers::ALL.iter().map(move |members| (api, members.1))) {
            for more in [
                json!({ "size": "1K", "aspect_ratio": "16:9" }),
                json!({ "size": "2K", "aspect_ratio": "16:9" }),
                json!({ "size": "4K", "aspect_ratio": "16:9" }),
                json!({ "size": "16:9", "resolution": "2K" }),
                json!({ "size": "auto", "aspect_ratio": "16:9" }),
                json!({ "aspect_ratio": "16:9", "resolution": "1K" }),
            ] {
                let what = format!("{} {api} {members:?} {more}", kind.name);
                match sent(kind, api, members, &more) {
                    Ok((body, dropped)) => {
                        let kept = ratio(&body) == Some("16:9") || dropped.iter().any(|field| field == "aspect_ratio");
                        assert!(kept, "{what}: {body}, without {dropped:?}");
                        taken += 1;
                    }
                    Err(problem) => {
                        let field = problem.param.as_deref();
                        assert!(matches!(field, Some("size" | "aspect_ratio")), "{what}: {problem:?}");
                        refused += 1;
                    }
                }
            }
        }
    }
    assert!(taken > 50 && refused > 50, "{taken} taken, {refused} refused");
}

#[test]
fn what_is_said_of_a_size_stands_where_its_maker_looks() {
    let of = |kind: &str, more: &Value| {
        let kind = KINDS.iter().find(|one| one.name == kind).expect("a kind");
        let problem = match sent(kind, "", SizeMembers::Size, more) {
            Ok((body, _)) => {
                return Ok([&body["size"], &body["parameters"]["size"], &body["aspect_ratio"], &body["resolution"]]
                    .map(|text| text.as_str().unwrap_or_default().to_owned()));
            }
            Err(problem) => problem,
        };
        assert!(problem.param.as_deref() == Some("size") || problem.message.contains("2048x1152"), "{problem:?}");
        Err(problem.param.unwrap_or_default())
    };
    let both = json!({ "size": "2k", "aspect_ratio": "16:9" });
    for (kind, more, expected) in [
        ("openai", both.clone(), Ok(["2K", "", "16:9", ""])),
        ("openai", json!({ "size": "2K" }), Ok(["2K", "", "", ""])),
        ("openai", json!({ "size": "1536x1024", "aspect_ratio": "3:2" }), Ok(["1536x1024", "", "", ""])),
        ("openai", json!({ "aspect_ratio": "3:2", "resolution": "2k" }), Ok(["", "", "3:2", "2k"])),
        ("openai", json!({ "size": "auto" }), Ok(["auto", "", "", ""])),
        ("ark", json!({ "size": "2k" }), Ok(["2K", "", "", ""])),
        ("ark", json!({ "size": "2048x1152", "aspect_ratio": "16:9" }), Ok(["2048x1152", "", "", ""])),
        ("ark", both.clone(), Err("aspect_ratio")),
        ("ark", json!({ "aspect_ratio": "16:9", "resolution": "2K" }), Err("size")),
        ("dashscope", json!({ "size": "2K" }), Ok(["", "2K", "", ""])),
        ("dashscope", json!({ "size": "2048x1152" }), Ok(["", "2048*1152", "", ""])),
        ("dashscope", both, Err("aspect_ratio")),
        ("dashscope", json!({ "size": "16:9" }), Err("size")),
    ] {
        let expected = expected.map(|texts| texts.map(str::to_owned)).map_err(str::to_owned);
        assert_eq!(of(kind, &more), expected, "{kind} {more}");
    }
}

/// C10: xAI takes a ratio and a class, links instead of files, and little else.
#[test]
fn xai_is_sent_what_it_knows_and_what_is_lost_is_named() {
    let xai = provider(preset("xai").expect("a row"));
    let maker = xai.kind.image.expect("pictures");
    let link = "https://a.example/1.png";
    let more = json!({ "size": "1024x1024", "quality": "high", "style": "vivid", "seed": 7, "user": "u" });
    let mut edit = more.clone();
    edit["image"] = json!(link);
    let mut several = more.clone();
    several["image"] = json!([link, link]);
    let url = json!({ "url": link, "type": "image_url" });
    for (more, extra) in
        [(more.clone(), json!({})), (edit, json!({ "image": url })), (several, json!({ "images": [url, url] }))]
    {
        let plan = planned(&more, more.get("image").is_some());
        let job = job(&plan, "");
        let request = maker.create(&Asking { provider: &xai, now: 0 }, &job).expect("a request");
        let Payload::Whole(body) = request.body() else { panic!("a whole body") };
        let mut expected = json!({
            "model": "m", "prompt": "a", "n": 1, "aspect_ratio": "1:1", "resolution": "1k", "user": "u",
        });
        expected.as_object_mut().expect("an object").extend(extra.as_object().expect("an object").clone());
        assert_eq!(serde_json::from_slice::<Value>(body).expect("JSON"), expected);
        let mut dropped = maker.drops(&xai, &job);
        dropped.sort();
        assert_eq!(dropped, ["quality", "seed", "style"]);
    }
    for (more, field) in [
        (json!({ "size": "4K" }), "size"),
        (json!({ "size": "3840x2160" }), "size"),
        (json!({ "size": "1000x300" }), "size"),
        (json!({ "image": link, "mask": link }), "mask"),
    ] {
        let plan = planned(&more, more.get("image").is_some());
        let refused = maker.create(&Asking { provider: &xai, now: 0 }, &job(&plan, "")).expect_err("refused");
        assert_eq!(refused.param.as_deref(), Some(field), "{more}");
    }
}
