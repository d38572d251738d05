//! `workflow quote|run|wait|resume|cancel|runs`: runs as a customer has them, over the network and
//! with a key. A run is quoted first, and nothing is begun that was not confirmed.

mod inputs;
mod words;

use crate::args::{GatewayArgs, RunInputArgs, RunWaitArgs, WorkflowRunArgs};
use crate::http::Http;
use crate::real;
use crate::show::Output;
use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use tokio::time::Instant;
use tollgate_catalog::Money;

const RUNS: &str = "/v1/workflows/runs";
const LIST: &[&str] =
    &["id", "slug", "status", "stopped", "failure", "charged_nano_usd", "max_cost_nano_usd", "created_at_ms"];
/// Times in a row that the gateway may be out of reach while a run is waited for: it may be
/// restarting.
const MISSES: u32 = 10;

fn http(gateway: &GatewayArgs) -> anyhow::Result<Http> {
    Http::new(gateway, &real::api_key())
}

/// Something that stands in a path.
fn named(kind: &str, word: &str) -> anyhow::Result<()> {
    if word.is_empty() || !word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-') {
        bail!("{word:?} is not the {kind}");
    }
    Ok(())
}

fn path(run: &str) -> anyhow::Result<String> {
    named("id of a run", run)?;
    Ok(format!("{RUNS}/{run}"))
}

/// An amount as the interface takes it.
fn nano(usd: &str) -> anyhow::Result<i64> {
    let amount: Money = usd.parse().context("--max-cost")?;
    if amount.is_negative() {
        bail!("--max-cost: write an amount of USD such as 0.5");
    }
    Ok(amount.nano())
}

pub async fn quote(asked: &RunInputArgs, gateway: &GatewayArgs, out: &Output) -> anyhow::Result<()> {
    let http = http(gateway)?;
    let inputs = inputs::given(&http, asked).await?;
    let quote = quoted(&http, &asked.slug, &inputs).await?;
    out.say(&quote, || words::quote(&quote));
    Ok(())
}

async fn quoted(http: &Http, slug: &str, inputs: &Value) -> anyhow::Result<Value> {
    let body = json!({ "inputs": inputs }).to_string();
    http.send(&format!("/v1/workflows/{slug}/quote"), Some(body.into())).await?.json()
}

pub async fn run(asked: WorkflowRunArgs, out: &Output) -> anyhow::Result<ExitCode> {
    let http = http(&asked.gateway)?;
    let slug = &asked.inputs.slug;
    let inputs = inputs::given(&http, &asked.inputs).await?;
    let quote = quoted(&http, slug, &inputs).await?;
    eprintln!("{}", words::quote(&quote));
    let confirm = confirmed(&asked, &quote)?;
    let body = json!({ "inputs": inputs, "confirm": confirm }).to_string();
    let key = asked.idempotency_key.clone().unwrap_or_else(fresh_key);
    let run = begun(&http, &format!("/v1/workflows/{slug}/runs"), &body, &key).await?;
    let id = run["id"].as_str().context("the gateway gave no run")?;
    if asked.no_wait {
        out.say(&run, || words::run(&run));
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("{id} has begun");
    waited(&http, id, &asked.wait, out).await
}

/// An Idempotency-Key that nobody has used.
fn fresh_key() -> String {
    let mut random = [0; 16];
    real::fill(&mut random);
    format!("cli-{:032x}", u128::from_le_bytes(random))
}

/// What is repeated of the quote, if it may be.
fn confirmed(asked: &WorkflowRunArgs, quote: &Value) -> anyhow::Result<Value> {
    if quote["executable"] == false {
        let text = |name: &str| quote[name].as_str().unwrap_or("?").to_owned();
        bail!("it cannot be run: {} ({})", text("blocking_reason"), text("blocking_code"));
    }
    let mut confirm = quote["confirm"].clone();
    if let Some(usd) = &asked.max_cost {
        let most = nano(usd)?;
        if quote["most_nano_usd"].as_i64().is_none_or(|quoted| quoted > most) {
            bail!("it may cost more than --max-cost {usd}; nothing was begun");
        }
        confirm["max_cost_nano_usd"] = json!(most);
    }
    if asked.yes || agreed()? {
        return Ok(confirm);
    }
    bail!("nothing was begun: it was not confirmed (--yes confirms it)");
}

/// Asks whoever sits there.
fn agreed() -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        return Ok(false);
    }
    eprint!("Confirm all of this and begin? [y/N] ");
    std::io::stderr().flush()?;
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    Ok(matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Begins a run. An answer that was lost is asked for again, under the same key.
async fn begun(http: &Http, path: &str, body: &str, key: &str) -> anyhow::Result<Value> {
    let mut missed = 0;
    loop {
        let asked = ("application/json", body.to_owned().into());
        match http.send_as(path, Some(asked), Some(key)).await {
            Ok(reply) if reply.status.is_server_error() && missed < MISSES => {}
            Ok(reply) => return reply.json(),
            Err(error) if missed >= MISSES => return Err(error),
            Err(_) => {}
        }
        missed += 1;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

pub async fn wait(run: &str, wait: &RunWaitArgs, gateway: &GatewayArgs, out: &Output) -> anyhow::Result<ExitCode> {
    waited(&http(gateway)?, run, wait, out).await
}

async fn waited(http: &Http, id: &str, wait: &RunWaitArgs, out: &Output) -> anyhow::Result<ExitCode> {
    let path = path(id)?;
    let until = Instant::now() + Duration::from_secs(wait.patience);
    let (mut missed, mut seen) = (0, String::new());
    let run = loop {
        match http.send(&path, None).await {
            Ok(reply) if reply.status.is_server_error() && missed < MISSES => missed += 1,
            Ok(reply) => {
                missed = 0;
                let run = reply.json()?;
                let line = words::progress(&run);
                if line != seen {
                    eprintln!("{line}");
                    seen = line;
                }
                if !matches!(run["status"].as_str(), Some("running" | "waiting")) {
                    break run;
                }
            }
            Err(error) if missed >= MISSES => return Err(error),
            Err(_) => missed += 1,
        }
        if Instant::now() >= until {
            bail!("{id} has not ended within {} seconds; it goes on, and can be waited for again", wait.patience);
        }
        tokio::time::sleep(Duration::from_secs(wait.every)).await;
    };
    if let Some(folder) = &wait.out {
        for file in saved(http, &run, folder).await? {
            eprintln!("{file}");
        }
    }
    out.say(&run, || words::run(&run));
    Ok(if run["status"] == "completed" { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Fetches the files that steps made; their names here.
async fn saved(http: &Http, run: &Value, folder: &Path) -> anyhow::Result<Vec<String>> {
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let mut names = Vec::new();
    for (step, output, link) in words::files(run) {
        let Some(at) = link.find(words::FILES) else { continue };
        let ending = link.split('?').next().and_then(|name| name.rsplit('_').next()).unwrap_or("bin");
        // Names come from outside and stay in the folder.
        [&step, &output, &ending.to_owned()].iter().try_for_each(|word| named("name of a file", word))?;
        let file = folder.join(format!("{step}-{output}.{ending}"));
        let bytes = http.save(&link[at..], &file).await?;
        names.push(format!("{}: {bytes} bytes", file.display()));
    }
    Ok(names)
}

pub async fn resume(
    run: &str,
    max_cost: Option<&str>,
    resubmit: bool,
    gateway: &GatewayArgs,
    out: &Output,
) -> anyhow::Result<()> {
    let mut body = json!({ "resubmit": resubmit });
    if let Some(usd) = max_cost {
        body["max_cost_nano_usd"] = json!(nano(usd)?);
    }
    post(&format!("{}/resume", path(run)?), &body, gateway, out).await
}

pub async fn cancel(run: &str, gateway: &GatewayArgs, out: &Output) -> anyhow::Result<()> {
    post(&format!("{}/cancel", path(run)?), &json!({}), gateway, out).await
}

async fn post(path: &str, body: &Value, gateway: &GatewayArgs, out: &Output) -> anyhow::Result<()> {
    let run = http(gateway)?.send(path, Some(body.to_string().into())).await?.json()?;
    out.say(&run, || words::run(&run));
    Ok(())
}

pub async fn list(limit: u32, after: Option<&str>, gateway: &GatewayArgs, out: &Output) -> anyhow::Result<()> {
    let mut query = format!("{RUNS}?limit={limit}");
    if let Some(after) = after {
        named("id of a run", after)?;
        query += &format!("&after={after}");
    }
    let page = http(gateway)?.send(&query, None).await?.json()?;
    out.table(&page, page["data"].as_array().map_or(&[], Vec::as_slice), LIST);
    Ok(())
}
