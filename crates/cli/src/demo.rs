//! `demo` (gateway and simulator in one process, with a funded account) and `sim` (the simulator
//! alone).

mod certificate;
mod people;
mod verified;
mod workflows;

use crate::args;
use crate::real;
use crate::serve::{listed, stop, stop_signal};
use crate::show::Output;
use anyhow::Context as _;
use serde_json::json;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tollgate_catalog::Money;
use tollgate_catalog::social::SHIPPED;
use tollgate_gateway::provider_trial;
use tollgate_gateway::settings::ConfigSource;
use tollgate_gateway::start::start;
use tollgate_sim::video::{KLING_ACCESS, KLING_SECRET};
use tollgate_sim::{STRIPE_KEY, STRIPE_WEBHOOK_SECRET, Sim, SimSettings, StripeSim};
use tollgate_store::{
    AccountId, Attribution, Credit, CreditKind, KeyId, KeyScope, Limits, NewAccount, NewAdminKey, NewKey, Pot, Store,
};

/// The catalog of the demo is the commented example of the format.
const CATALOG: &str = include_str!("../../../catalog/demo.toml");
const VIDEO_CATALOG: &str = include_str!("../../../catalog/video.toml");
const IMAGES_CATALOG: &str = include_str!("../../../catalog/images.toml");
const DIALECTS_CATALOG: &str = include_str!("../../../catalog/dialects.toml");
const REALTIME_CATALOG: &str = include_str!("../../../catalog/realtime.toml");
const SPEECH_CATALOG: &str = include_str!("../../../catalog/speech.toml");
const TRANSCRIPTION_CATALOG: &str = include_str!("../../../catalog/transcription.toml");
/// Makers of videos look at keys even in a simulation; Kling's is a pair.
const KEY: &str = "sim-key\n";
/// Where the simulator plays each provider: its name here, and below which path.
const PROVIDERS: [(&str, &str); 12] = [
    ("SIM", "/v1"),
    ("MESSAGES", ""),
    ("RESPONSES", "/v1"),
    ("GOOGLE", ""),
    ("TIKHUB", "/api/v1"),
    ("DASHSCOPE", "/video/dashscope"),
    ("ARK", "/video/ark/api/v3"),
    ("KLING", "/video/kling"),
    ("MINIMAX", "/video/minimax"),
    ("OPENAI", "/v1"),
    ("GEMINI", "/video/gemini"),
    ("ELEVENLABS", "/video/elevenlabs"),
];
const CONFIG: &str = "\
# The demo's configuration. Addresses are chosen at each start.
data_dir = \".\"

# Simulated videos are quick.
[tasks]
look_every = \"200ms\"
refresh_after = \"200ms\"

# People sign in, and their mail is a file each.
[people]
enabled = true
sign_up = \"open\"

[people.mail]
folder = \"mail\"

# Receivers on this machine may be notified.
[webhooks]
private = true

# Credit is paid at a simulated Stripe.
[payments.stripe]
secret_file = \"stripe.key\"
webhook_secret_file = \"stripe.whsec\"
api_base = \"http://127.0.0.1:9099\"
success_url = \"http://127.0.0.1:9099/done\"
cancel_url = \"http://127.0.0.1:9099/back\"
first_look = \"2s\"

[provider.sim]
kind = \"openai\"
base_url = \"http://127.0.0.1:9099/v1\"
# Some of its models report no usage on purpose.
estimated_percent = 0

[provider.messages]
kind = \"anthropic\"
base_url = \"http://127.0.0.1:9099\"
secret_file = \"sim.key\"
estimated_percent = 0

[provider.responses]
kind = \"openai-responses\"
base_url = \"http://127.0.0.1:9099/v1\"
secret_file = \"sim.key\"
estimated_percent = 0

[provider.google]
kind = \"gemini\"
base_url = \"http://127.0.0.1:9099\"
secret_file = \"sim.key\"
estimated_percent = 0

[provider.tikhub]
kind = \"tikhub\"
base_url = \"http://127.0.0.1:9099/api/v1\"

[provider.dashscope]
kind = \"dashscope\"
poll_every = \"500ms\"
base_url = \"http://127.0.0.1:9099/video/dashscope\"
secret_file = \"sim.key\"

[provider.ark]
kind = \"ark\"
poll_every = \"500ms\"
base_url = \"http://127.0.0.1:9099/video/ark/api/v3\"
secret_file = \"sim.key\"

[provider.kling]
kind = \"kling\"
poll_every = \"500ms\"
base_url = \"http://127.0.0.1:9099/video/kling\"
access_file = \"kling-access.key\"
secret_file = \"kling-secret.key\"

[provider.minimax]
kind = \"minimax\"
poll_every = \"500ms\"
base_url = \"http://127.0.0.1:9099/video/minimax\"
secret_file = \"sim.key\"

[provider.openai]
kind = \"openai\"
poll_every = \"500ms\"
base_url = \"http://127.0.0.1:9099/v1\"
secret_file = \"sim.key\"

[provider.gemini]
kind = \"gemini\"
poll_every = \"500ms\"
base_url = \"http://127.0.0.1:9099/video/gemini\"
secret_file = \"sim.key\"

[provider.elevenlabs]
kind = \"elevenlabs\"
base_url = \"http://127.0.0.1:9099/video/elevenlabs\"
secret_file = \"sim.key\"
";
const ACCOUNT: &str = "demo";
/// The table that a folder of an earlier version does not have.
const PAYMENTS: &str = "[payments.stripe]";

pub async fn sim(listen: SocketAddr, out: &Output) -> anyhow::Result<()> {
    let stopped = stop_signal()?;
    let sim =
        Sim::start(SimSettings { listen, ..SimSettings::default() }).await.context("the simulator cannot start")?;
    let url = format!("http://{}/v1", sim.addr());
    out.say(&json!({ "sim_url": url }), || format!("simulated provider at {url}"));
    stopped.await;
    sim.stop().await;
    Ok(())
}

pub async fn demo(demo: args::DemoArgs, out: &Output) -> anyhow::Result<()> {
    real::logs();
    let sim = Sim::start(SimSettings { listen: ([127, 0, 0, 1], 0).into(), ..SimSettings::default() })
        .await
        .context("the simulator cannot start")?;
    let sim_url = format!("http://{}/v1", sim.addr());
    let stripe = StripeSim::start().await.context("the simulated Stripe cannot start")?;
    let (data_dir, temporary) = match demo.data {
        Some(dir) => (dir, false),
        None => (temporary_folder(), true),
    };
    let mut source = configured(demo.listen, &data_dir, (&sim_url, &stripe.url()))?;
    let authority = match demo.tls {
        true => Some(certificate::lay(&mut source, &data_dir, demo.listen.ip())?),
        false => None,
    };
    let loaded = source.load().map_err(|mistakes| anyhow::anyhow!(listed(&mistakes)))?;
    let stopped = stop_signal()?;
    let running = start(loaded, Some(source.clone()), real::world()).await?;
    provider_trial::offer(&running, source, real::world());
    let [secret, manage] = funded_keys(&running.app.store).await?;
    let admin = admin_key(&running.app.store).await?;
    if !demo.drafts {
        verified::verify(&running.app).await?;
    }
    let base_url = format!("{}://{}", running.app.settings.scheme(), running.address);
    stripe.tell(&format!("{base_url}/api/payments/stripe/webhook"));
    let mut line = json!({
        "base_url": base_url, "dash_url": base_url, "key": secret, "manage_key": manage, "admin_key": admin, "sim_url": sim_url,
    });
    let links = people::links(&running.app.store, &base_url).await?;
    line["people"] = json!(links);
    if let Some(authority) = &authority {
        line["ca_file"] = json!(authority);
    }
    let welcome = || welcome(&base_url, [&secret, &manage, &admin], authority.as_deref()) + &people::shown(&links);
    out.say(&line, welcome);
    stopped.await;
    stop(running).await;
    sim.stop().await;
    if temporary {
        std::fs::remove_dir_all(&data_dir).with_context(|| format!("{} could not be removed", data_dir.display()))?;
    }
    Ok(())
}

fn temporary_folder() -> PathBuf {
    let mut random = [0; 8];
    real::fill(&mut random);
    std::env::temp_dir().join(format!("tollgate-demo-{:016x}", u64::from_le_bytes(random)))
}

/// The demo is an ordinary configuration in its data folder: people can look at it, change it and
/// see it taken over. What is different at each start (addresses) is laid over it like the
/// environment.
fn configured(listen: SocketAddr, data_dir: &Path, (sim_url, stripe): (&str, &str)) -> anyhow::Result<ConfigSource> {
    let file = data_dir.join("tollgate.toml");
    let catalog = data_dir.join("catalog");
    let cells = SHIPPED.map(|(name, text)| (catalog.join("social").join(name), text));
    let own = [(file.clone(), CONFIG), (catalog.join("demo.toml"), CATALOG)];
    // A folder of an earlier version has a configuration without these providers, and keeps it.
    let later = [
        (catalog.join("dialects.toml"), DIALECTS_CATALOG),
        (catalog.join("images.toml"), IMAGES_CATALOG),
        (catalog.join("realtime.toml"), REALTIME_CATALOG),
        (catalog.join("speech.toml"), SPEECH_CATALOG),
        (catalog.join("transcription.toml"), TRANSCRIPTION_CATALOG),
        (catalog.join("video.toml"), VIDEO_CATALOG),
        (data_dir.join("sim.key"), KEY),
        (data_dir.join("stripe.key"), STRIPE_KEY),
        (data_dir.join("stripe.whsec"), STRIPE_WEBHOOK_SECRET),
        (data_dir.join("kling-access.key"), KLING_ACCESS),
        (data_dir.join("kling-secret.key"), KLING_SECRET),
    ];
    let later = later.into_iter().filter(|_| !file.exists()).collect::<Vec<_>>();
    let flows = workflows::FILES.map(|(name, bytes)| (catalog.join("workflows").join(name), bytes));
    let flows = flows.into_iter().filter(|_| !file.exists()).collect::<Vec<_>>();
    let texts = own.into_iter().chain(cells).chain(later).map(|(path, text)| (path, text.as_bytes()));
    for (path, bytes) in texts.chain(flows) {
        if !path.exists() {
            let dir = path.parent().context("a folder")?;
            std::fs::create_dir_all(dir).with_context(|| format!("{} cannot be made", dir.display()))?;
            std::fs::write(&path, bytes).with_context(|| format!("{} cannot be written", path.display()))?;
        }
    }
    let mut source = real::source(&file);
    let environment = Arc::make_mut(&mut source.environment);
    environment.insert("TOLLGATE__LISTEN".to_owned(), listen.to_string());
    let host = sim_url.trim_end_matches("/v1");
    // The environment can change a provider that a folder of an earlier version does not have, but
    // not make one.
    let written = std::fs::read_to_string(&file).with_context(|| format!("{} cannot be read", file.display()))?;
    for (name, path) in PROVIDERS {
        if written.contains(&format!("[provider.{}]", name.to_ascii_lowercase())) {
            environment.insert(format!("TOLLGATE__PROVIDER__{name}__BASE_URL"), format!("{host}{path}"));
        }
    }
    if written.contains(PAYMENTS) {
        for (name, path) in [("API_BASE", ""), ("SUCCESS_URL", "/done"), ("CANCEL_URL", "/back")] {
            environment.insert(format!("TOLLGATE__PAYMENTS__STRIPE__{name}"), format!("{stripe}{path}"));
        }
    }
    Ok(source)
}

/// The demo account is funded once; each start makes a new key, because the secret of an old one is
/// nowhere to be read.
async fn funded_keys(store: &Store) -> anyhow::Result<[String; 2]> {
    let account = match find_account(store).await? {
        Some(account) => account,
        None => store.create_account(NewAccount { name: ACCOUNT.to_owned(), ..NewAccount::default() }).await?.id,
    };
    let credits = [("demo-trial", Pot::Trial, 5), ("demo-paid", Pot::Paid, 95)];
    let (_, calls) = funded(store, account, ACCOUNT, &credits).await?;
    let (_, manages) = new_key(store, account, ACCOUNT, KeyScope::Manage).await?;
    Ok([calls, manages])
}

/// Gives an account of the demo its credits in USD, each once, and a new key.
async fn funded(
    store: &Store,
    account: AccountId,
    name: &str,
    credits: &[(&str, Pot, i64)],
) -> anyhow::Result<(KeyId, String)> {
    for (id, pot, usd) in credits {
        let credit = Credit {
            id: (*id).to_owned(),
            account,
            kind: CreditKind::TopUp,
            pot: *pot,
            amount: Money::from_usd(*usd).context("an amount")?,
            expires_at: None,
            reason: "demo credit".to_owned(),
            actor: "demo".to_owned(),
        };
        store.credit(credit).await?;
    }
    new_key(store, account, name, KeyScope::Call).await
}

async fn new_key(store: &Store, account: AccountId, name: &str, scope: KeyScope) -> anyhow::Result<(KeyId, String)> {
    let secret = real::new_secret();
    let (name, limits) = (name.to_owned(), Limits::default());
    let key = NewKey { account, name, expires_at: None, models: None, cidrs: None, limits, scope };
    Ok((store.create_key(key, &secret).await?.id, secret))
}

/// The same for the operator's API: a new one at each start, and the old ones stop.
async fn admin_key(store: &Store) -> anyhow::Result<String> {
    let done = Attribution::by("demo".to_owned(), "a start of the demo".to_owned());
    let mut old = store.admin_keys().await?;
    old.retain(|key| key.name == ACCOUNT && key.revoked_at.is_none());
    for key in old {
        store.revoke_admin_key(key.id, done.clone()).await?;
    }
    let secret = real::new_admin_secret();
    store.create_admin_key(NewAdminKey { name: ACCOUNT.to_owned(), expires_at: None, done }, &secret).await?;
    Ok(secret)
}

async fn find_account(store: &Store) -> anyhow::Result<Option<AccountId>> {
    let accounts = store.accounts(None, 100).await?;
    Ok(accounts.into_iter().find(|account| account.name == ACCOUNT).map(|account| account.id))
}

fn welcome(base_url: &str, [secret, manage, admin]: [&str; 3], authority: Option<&Path>) -> String {
    let trusting = authority.map(|file| format!("--cacert {} ", file.display())).unwrap_or_default();
    format!(
        "Tollgate is ready at {base_url} with simulated providers and 100 USD of demo credit.\n\n\
         Key: {secret}\n\
         Key that manages the account: {manage}\n\
         Admin key: {admin}\n\n{}\
         Try it:\n\n  \
         curl {trusting}{base_url}/v1/chat/completions \\\n    \
         -H 'Authorization: Bearer {secret}' -H 'Content-Type: application/json' \\\n    \
         -d '{{\"model\":\"tollgate-demo\",\"messages\":[{{\"role\":\"user\",\"content\":\"Hello!\"}}]}}'\n\n  \
         curl {trusting}{base_url}/v1/usage -H 'Authorization: Bearer {secret}'\n\n\
         Top up at a simulated Stripe (open the `url` of the answer, and press the button):\n\n  \
         curl {trusting}{base_url}/api/account/topups -H 'Authorization: Bearer {manage}' \\\n    \
         -H 'Content-Type: application/json' -d '{{\"amount_minor\":2500}}'\n\n\
         Ctrl-C stops it.",
        authority.map(certificate::how_to_trust).unwrap_or_default()
    )
}
