//! What costs more than a word, tried out at a provider: a picture, a sentence spoken, a second
//! written down, a song, a video. What each costs is said first, and nothing is sent without a
//! yes. A whole gateway of its own is put up for it in an empty folder, so that it is asked as
//! customers ask: the ledger in use knows nothing of it.

use crate::configuration::Loaded;
use crate::endpoints::router;
use crate::jobs::JobCounter;
use crate::sale::Serving;
use crate::settings::Settings;
use crate::start::{Running, start};
use crate::trial::{TrialOutcome, TrialResult, quoted};
use crate::world::World;
use axum::Router;
use axum::body::{Body, to_bytes};
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{Method, Request};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tollgate_catalog::{Model, Money};
use tollgate_store::{AccountId, Credit, CreditKind, Limits, NewAccount, NewKey, Pot};
use tollgate_upstream::Ability;
use tower::ServiceExt as _;

/// What is made of sound and pictures, the cheapest first.
const MEDIA: [Ability; 5] = [Ability::Transcription, Ability::Speech, Ability::Image, Ability::Music, Ability::Video];
/// The longest answer that is read.
const MOST_REPLY: usize = 64 << 20;
/// How long a video or a song is waited for.
const PATIENCE: Duration = Duration::from_secs(15 * 60);
const LOOK: Duration = Duration::from_secs(2);
const BOUNDARY: &str = "tollgate-provider-test";

/// What to try of one provider.
#[derive(Clone, Debug)]
pub struct MediaOrder<'a> {
    pub provider: &'a str,
    /// Only this.
    pub only: Option<Ability>,
    /// The cost was agreed to.
    pub send: bool,
    /// Hears how many were made.
    pub progress: Option<&'a JobCounter>,
    /// Nothing more is made once this is cancelled.
    pub stop: Option<CancellationToken>,
}

/// The cheapest request of one sort.
struct MediaAsk {
    ability: Ability,
    model: Arc<Model>,
    upstream_model: String,
    path: &'static str,
    body: Value,
    most_nano: i64,
}

/// Says what one of each sort would cost, or makes it.
pub async fn try_media(loaded: Loaded, order: &MediaOrder<'_>, world: World) -> Result<Vec<TrialResult>, String> {
    if !loaded.serving.providers.contains_key(order.provider) {
        let known = loaded.serving.providers.keys().map(String::as_str);
        let hint = tollgate_catalog::form::did_you_mean(order.provider, known);
        return Err(format!("no provider of the configuration is called {:?}{hint}", order.provider));
    }
    let wanted = MEDIA.into_iter().filter(|one| order.only.is_none_or(|only| only == *one));
    let asks: Vec<MediaAsk> =
        wanted.filter_map(|ability| cheapest(&loaded, order.provider, ability, world.now_ms())).collect();
    if !order.send || asks.is_empty() {
        return Ok(asks.iter().map(|ask| ask.result(TrialOutcome::Planned, "would be sent".to_owned())).collect());
    }
    let dir = tempfile::tempdir().map_err(|error| format!("no folder for the test: {error}"))?;
    let house = House::open(loaded, order.provider, dir.path(), &asks, world).await?;
    let stop = order.stop.clone().unwrap_or_default();
    let mut results = Vec::new();
    for (at, ask) in asks.iter().enumerate() {
        order.progress.inspect(|counter| counter.at(i64::try_from(at).unwrap_or(0)));
        let made = tokio::select! {
            made = house.made(ask) => made,
            () = stop.cancelled() => break,
        };
        results.push(match made {
            Ok(said) => ask.result(TrialOutcome::Answered, said),
            Err(said) => ask.result(TrialOutcome::Failed, said),
        });
    }
    house.running.stop().await;
    Ok(results)
}

impl MediaAsk {
    fn result(&self, outcome: TrialOutcome, said: String) -> TrialResult {
        TrialResult {
            endpoint: self.ability.word(),
            model: Some(self.upstream_model.clone()),
            request: Some(format!("POST {}", self.path)),
            most_usd: Some(Money::from_nano(self.most_nano).to_string()),
            outcome,
            said,
        }
    }
}

/// Of all that is sold of this sort at the provider, what costs least.
fn cheapest(loaded: &Loaded, provider: &str, ability: Ability, now: i64) -> Option<MediaAsk> {
    let (settings, serving) = (&loaded.settings, &loaded.serving);
    let offers = |model: &&Arc<Model>| {
        model.supported_endpoint_types.iter().any(|name| Ability::of_endpoint_type(name) == Some(ability))
    };
    let routed = serving.catalog.models.values().filter(offers).filter_map(|model| {
        let route = model.routes.iter().find(|route| route.provider == provider)?;
        Some((model, route.upstream_model.clone()))
    });
    let asks = routed.flat_map(|(model, upstream_model)| {
        let (path, bodies) = bodies(ability, serving, model);
        bodies.into_iter().filter_map(move |body| {
            let most_nano = price(settings, serving, model, (path, &body), now)?;
            let (model, upstream_model) = (model.clone(), upstream_model.clone());
            Some(MediaAsk { ability, model, upstream_model, path, body, most_nano })
        })
    });
    asks.min_by_key(|ask| ask.most_nano)
}

fn price(
    settings: &Settings,
    serving: &Serving,
    model: &Arc<Model>,
    (path, body): (&str, &Value),
    now: i64,
) -> Option<i64> {
    quoted(settings, serving, model, (path, body.clone()), now)
}

/// Requests that a model may take: of those that it does, the cheapest is made.
fn bodies(ability: Ability, serving: &Serving, model: &Model) -> (&'static str, Vec<Value>) {
    let name = &model.name;
    let with = |base: Value, member: &str, values: &[String]| -> Vec<Value> {
        let one = |value: &String| {
            let mut body = base.clone();
            body[member] = json!(value);
            body
        };
        if values.is_empty() { vec![base.clone()] } else { values.iter().map(one).collect() }
    };
    match ability {
        Ability::Transcription => ("/v1/audio/transcriptions", vec![json!({ "model": name, "seconds": 1 })]),
        Ability::Speech => {
            let known = model.speech.as_ref().map(|table| table.voices.clone()).unwrap_or_default();
            let voice = model.default_voice.clone().or(known.first().cloned()).unwrap_or_else(|| "alloy".to_owned());
            ("/v1/audio/speech", vec![json!({ "model": name, "input": "OK.", "voice": voice })])
        }
        Ability::Image => {
            let base = json!({ "model": name, "prompt": "A grey square.", "n": 1 });
            let sized = with(base, "size", &model.image.sizes);
            let all = sized.into_iter().flat_map(|body| with(body, "quality", &model.image.qualities));
            ("/v1/images/generations", all.collect())
        }
        Ability::Music => {
            let mut body = json!({ "model": name, "prompt": "One soft note of a piano." });
            if let Some((least, _)) = model.music.as_ref().and_then(|table| table.seconds) {
                body["duration"] = json!(least);
            }
            if model.music.as_ref().is_some_and(|table| table.instrumental) {
                body["instrumental"] = json!(true);
            }
            ("/v1/music/generations", vec![body])
        }
        _ => {
            let sold = |name: &str| model.video.as_ref().and_then(|table| table.sold.get(name).cloned());
            let base = json!({ "model": name, "prompt": "A grey square that does not move." });
            let mut all = vec![base.clone()];
            if serving.offers.contains_key(name) {
                let seconds = sold("seconds").unwrap_or_else(|| (1..=10).map(|n| n.to_string()).collect());
                let tiers = sold("resolution").unwrap_or_else(|| model.resolutions.clone());
                for body in with(base, "seconds", &seconds) {
                    let tier = |tier: &String| {
                        let mut body = body.clone();
                        body["metadata"] = json!({ "resolution": tier });
                        body
                    };
                    all.extend(tiers.iter().map(tier));
                    all.push(body);
                }
                // Some have no shape of their own, and some take none.
                let shaped = |body: &Value| {
                    let mut body = body.clone();
                    body["metadata"]["ratio"] = json!("16:9");
                    body
                };
                all.extend(all.iter().map(shaped).collect::<Vec<_>>());
            }
            ("/v1/videos", all)
        }
    }
}

/// A gateway that sells what is tried, and nothing else, by the one provider.
struct House {
    running: Running,
    router: Router,
    account: AccountId,
    key: String,
}

impl House {
    async fn open(
        mut loaded: Loaded,
        provider: &str,
        dir: &Path,
        asks: &[MediaAsk],
        world: World,
    ) -> Result<House, String> {
        let settings = &mut loaded.settings;
        settings.listen = ([127, 0, 0, 1], 0).into();
        (settings.tls, settings.metrics_listen, settings.public_url) = (None, None, None);
        settings.data_dir = dir.to_owned();
        "sqlite".clone_into(&mut settings.database);
        settings.secrets_file = dir.join("secrets.key");
        (settings.probes.every, settings.video.copy_to) = (None, None);
        (settings.images.copy_to, settings.runs.copy_to) = (None, None);
        loaded.tls = None;
        loaded.serving.workflows = Default::default();
        for ask in asks {
            let mut model = Model::clone(&ask.model);
            model.routes.retain(|route| route.provider == provider);
            (model.login_required, model.requires_topup) = (false, false);
            loaded.serving.catalog.models.insert(model.name.clone(), Arc::new(model));
        }
        let mut secret = [0; 24];
        world.fill(&mut secret);
        let running = start(loaded, None, world).await.map_err(|error| error.to_string())?;
        let failed = |error: tollgate_store::StoreError| error.to_string();
        let store = &running.app.store;
        let groups: BTreeSet<String> = asks.iter().flat_map(|ask| ask.model.enable_groups.clone()).collect();
        let groups = groups.into_iter().collect();
        let new = NewAccount { name: "provider test".to_owned(), groups, ..NewAccount::default() };
        let account = store.create_account(new).await.map_err(failed)?.id;
        let (kind, pot, expires_at) = (CreditKind::TopUp, Pot::Paid, None);
        let (reason, actor) = ("provider test".to_owned(), "provider test".to_owned());
        // What is asked may cost its upper bound twice over before anybody is refused.
        let sum = asks.iter().fold(1_000_000_000_i64, |sum, ask| sum.saturating_add(ask.most_nano.saturating_mul(2)));
        let amount = Money::from_nano(sum);
        let credit = Credit { id: "provider-test".to_owned(), account, kind, pot, amount, expires_at, reason, actor };
        store.credit(credit).await.map_err(failed)?;
        let key: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        let key = format!("sk-{key}");
        let limits = Limits::default();
        let (expires_at, models, cidrs) = (None, None, None);
        let new = NewKey {
            account,
            name: "provider test".to_owned(),
            expires_at,
            models,
            cidrs,
            limits,
            scope: Default::default(),
        };
        store.create_key(new, &key).await.map_err(failed)?;
        let router = router(running.app.clone());
        Ok(House { running, router, account, key })
    }

    /// What was made, and what it would have been charged.
    async fn made(&self, ask: &MediaAsk) -> Result<String, String> {
        let before = self.left().await;
        let (kind, body) = match ask.ability {
            Ability::Transcription => (format!("multipart/form-data; boundary={BOUNDARY}"), recording(&ask.model.name)),
            _ => ("application/json".to_owned(), ask.body.to_string().into_bytes()),
        };
        let reply = self.asked(Method::POST, ask.path, Some((kind, body))).await?;
        if ask.ability == Ability::Video {
            let id = reply.json()["id"].as_str().unwrap_or_default().to_owned();
            self.finished(&id).await?;
        }
        let charged = Money::from_nano(before - self.left().await);
        Ok(match ask.ability {
            Ability::Video => format!("made; a customer would have paid {charged} USD"),
            _ => format!("answered with {} bytes; a customer would have paid {charged} USD", reply.body.len()),
        })
    }

    async fn asked(&self, method: Method, path: &str, body: Option<(String, Vec<u8>)>) -> Result<Answered, String> {
        let mut request =
            Request::builder().method(method).uri(path).header(AUTHORIZATION, format!("Bearer {}", self.key));
        let mut bytes = Vec::new();
        if let Some((kind, body)) = body {
            request = request.header(CONTENT_TYPE, kind);
            bytes = body;
        }
        let request = request.body(Body::from(bytes)).map_err(|error| error.to_string())?;
        let reply = match self.router.clone().oneshot(request).await {
            Ok(reply) => reply,
            Err(never) => match never {},
        };
        let status = reply.status();
        let body = tokio::time::timeout(PATIENCE, to_bytes(reply.into_body(), MOST_REPLY)).await;
        let body = body.map_err(|_| "no answer in time".to_owned())?.map_err(|_| "the answer broke off".to_owned())?;
        let answered = Answered { body };
        if !status.is_success() {
            let error = &answered.json()["error"];
            let (code, text) = (error["code"].as_str().unwrap_or_default(), error["message"].as_str());
            return Err(format!("{code} (HTTP {}): {}", status.as_u16(), text.unwrap_or("it was refused")));
        }
        Ok(answered)
    }

    /// Waits until a video is there.
    async fn finished(&self, id: &str) -> Result<(), String> {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            let task = self.asked(Method::GET, &format!("/v1/videos/{id}"), None).await?.json();
            match task["status"].as_str() {
                Some("completed") => return Ok(()),
                Some("failed" | "cancelled") => {
                    return Err(task["error"]["message"].as_str().unwrap_or("the video failed").to_owned());
                }
                _ => tokio::time::sleep(LOOK).await,
            }
        }
        Err("no video in time; it may still be made and billed".to_owned())
    }

    /// What the account has.
    async fn left(&self) -> i64 {
        // A call is closed once its answer has gone out.
        let store = &self.running.app.store;
        for _ in 0..100 {
            if store.gauges().open_holds + store.gauges().queue_len == 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        store.account(self.account).await.ok().flatten().map_or(0, |account| account.paid_available.nano())
    }
}

struct Answered {
    body: Bytes,
}

impl Answered {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// A form with a second of silence: 8,000 samples of 16 bits.
fn recording(model: &str) -> Vec<u8> {
    const RATE: u32 = 8_000;
    let data = 2 * RATE;
    let mut wav = Vec::new();
    wav.extend_from_slice(b"RIFF");
    wav.extend_from_slice(&(36 + data).to_le_bytes());
    wav.extend_from_slice(b"WAVEfmt ");
    wav.extend_from_slice(&16_u32.to_le_bytes());
    for half in [1_u16, 1] {
        wav.extend_from_slice(&half.to_le_bytes());
    }
    wav.extend_from_slice(&RATE.to_le_bytes());
    wav.extend_from_slice(&data.to_le_bytes());
    for half in [2_u16, 16] {
        wav.extend_from_slice(&half.to_le_bytes());
    }
    wav.extend_from_slice(b"data");
    wav.extend_from_slice(&data.to_le_bytes());
    wav.resize(wav.len() + data as usize, 0);
    let head = format!(
        "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\n{model}\r\n--{BOUNDARY}\r\n\
         Content-Disposition: form-data; name=\"file\"; filename=\"silence.wav\"\r\nContent-Type: audio/wav\r\n\r\n"
    );
    let mut form = head.into_bytes();
    form.append(&mut wav);
    form.extend_from_slice(format!("\r\n--{BOUNDARY}--\r\n").as_bytes());
    form
}
