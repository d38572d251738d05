//! `quote`: the price of a request that stands in a file, from the catalog alone, by the functions
//! that price real calls.

use crate::args::QuoteArgs;
use crate::catalog::configured;
use crate::real;
use crate::serve::{listed, settings};
use crate::show::Output;
use anyhow::{Context as _, anyhow, bail};
use serde_json::Value;
use std::path::Path;
use std::process::ExitCode;
use tollgate_catalog::Money;
use tollgate_gateway::call::Terms;
use tollgate_gateway::endpoints::quote::read;
use tollgate_gateway::quotes::{self, QuoteReply, Shop};
use tollgate_gateway::refusal::Refusal;
use tollgate_gateway::sale::Serving;
use tollgate_gateway::sale::offers::of_catalog;
use tollgate_store::Counters;

pub async fn quote(config: &Path, asked: &QuoteArgs, out: &Output) -> anyhow::Result<ExitCode> {
    let endpoint = asked.endpoint.as_str();
    let body = std::fs::read(&asked.file).with_context(|| asked.file.display().to_string())?;
    let catalog = configured(config).await.map_err(|trouble| anyhow!(trouble))?;
    let settings = settings(config)?;
    let stream_hold = settings.limits.stream_hold;
    let offers = of_catalog(&catalog).map_err(|mistakes| anyhow!(listed(&mistakes)))?;
    let (providers, workflows, text) = Default::default();
    let serving = Serving { catalog, offers, providers, workflows, served: Vec::new(), text };
    let catalog = &serving.catalog;
    let picture_links = settings.images.copy_to.is_some();
    let shop = Shop { serving: &serving, caller: None, picture_links, realtime: &settings.realtime };
    let request = read(&shop, endpoint, body.into()).map_err(in_words)?;
    let name = request.model();
    let model = catalog.model(name).with_context(|| format!("the catalog has no model `{name}`"))?;
    if !model.supports(request.endpoint_type()) {
        bail!("`{name}` is not offered by {endpoint}; it offers: {}", model.supported_endpoint_types.join(", "));
    }
    if !catalog.groups.contains_key(&asked.group) {
        let known: Vec<&str> = catalog.groups.keys().map(String::as_str).collect();
        bail!("there is no group `{}`; there are: {}", asked.group, known.join(", "));
    }
    let at = asked.at.unwrap_or_else(real::now_ms);
    let terms = Terms { at, group: &asked.group, topped_up: asked.paid, stream_hold };
    let (_, reply) = quotes::quote_reply(endpoint, terms, model, &*request, stated(&asked.used)?).map_err(in_words)?;
    out.say(&reply, || table(&reply));
    Ok(ExitCode::SUCCESS)
}

fn stated(used: &[String]) -> anyhow::Result<Option<Counters>> {
    let mut all: Option<Counters> = None;
    for one in used {
        let (name, value) = one.split_once('=').with_context(|| format!("--use {one}: write it as output=120"))?;
        if !quotes::state(all.get_or_insert_default(), name, value).map_err(in_words)? {
            bail!("--use {one}: there is no counter `{name}`");
        }
    }
    Ok(all)
}

fn in_words(refusal: Refusal) -> anyhow::Error {
    match refusal.param {
        Some(param) => anyhow!("{} ({param})", refusal.message),
        None => anyhow!(refusal.message),
    }
}

fn table(reply: &QuoteReply) -> String {
    let sum = &reply.calculation;
    let how = match reply.kind {
        "exact" => "exactly",
        "open" => "at first, without a limit",
        _ => "at most",
    };
    let mut text = format!("{}, {how}\n", reply.model);
    for line in &sum.lines {
        let price = Money::from_nano(i64::try_from(line.micro_usd).unwrap_or(i64::MAX).saturating_mul(1_000));
        let per = serde_json::to_value(line.per).ok();
        let per = per.as_ref().and_then(Value::as_str).unwrap_or("").replace('_', " ");
        text += &format!("  {:<14} {:>12} at {price} USD per {per}\n", line.face.name(), line.quantity);
    }
    if let Some(tier) = &sum.tier {
        let settled = if reply.tier_is_settled { "" } else { " (the dearest that can apply)" };
        text += &format!("  tier {}{settled}\n", tier.name);
        for why in &tier.why {
            text += &format!("    because {why}\n");
        }
    }
    text += &format!("  group {}, times {}, prices {}\n", sum.group, sum.multiplier, sum.pricing_version);
    if let Some(at) = &reply.price_changes_at {
        text += &format!("  other prices from {at}\n");
    }
    text += &format!("  {} USD; {} USD are held", sum.total_usd, reply.hold_usd);
    if !reply.depends_on.is_empty() {
        text += &format!("\n  depends on {}", reply.depends_on.join("; "));
    }
    text
}
