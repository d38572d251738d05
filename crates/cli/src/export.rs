//! `social call` and `social export`: social data as a customer gets it. An export reads a list page by page within a number of
//! pages and an amount of money, writes each entry once, and goes on where it stopped when it is run again.

mod entries;
mod file;

use crate::args;
use crate::http::Http;
use crate::real;
use crate::show::Output;
use anyhow::{Context as _, bail};
use entries::{entries, shipped_items};
use file::{Sheet, State};
use serde_json::{Value, json};
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use tollgate_catalog::Money;

type Params = Vec<(String, String)>;

pub async fn call(call: args::SocialCall) -> anyhow::Result<ExitCode> {
    let http = Http::new(&call.url, &real::api_key())?;
    let reply = http.send(&address(&call.cell, &params(&call.params)?)?, None).await?;
    println!("{}", String::from_utf8_lossy(&reply.body));
    Ok(if reply.status == 200 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

pub async fn export(export: args::SocialExport, out: &Output) -> anyhow::Result<ExitCode> {
    let http = Http::new(&export.call.url, &real::api_key())?;
    let limit: Money = export.usd.parse().context("--usd")?;
    let price = price(&http, &export.call.cell).await?;
    let first = params(&export.call.params)?;
    let mut state = State::open(&export.out, &export.call.cell, &first)?;
    let mut sheet = Sheet::open(&export.out)?;
    let places = export.items.clone().map_or_else(|| shipped_items(&export.call.cell), |place| vec![place]);
    let (mut pages, mut spent, mut stopped) = (0, Money::ZERO, None);
    while pages < export.pages && !state.done {
        let after = spent.checked_add(price).context("the amount")?;
        if after > limit {
            stopped = Some(format!("the next page costs {price} USD and {limit} were allowed"));
            break;
        }
        let reply = http.send(&address(&export.call.cell, &state.next)?, None).await?;
        if reply.status == 404 && state.pages > 0 {
            // A list that does not tell its end ends with an empty page.
            state.done = true;
        } else if reply.status != 200 {
            stopped = Some(refusal(&reply.body));
            break;
        } else {
            spent = spent.checked_add(reply.charge).context("the amount")?;
            let answer: Value = serde_json::from_slice(&reply.body).context("the reply")?;
            let list = entries(&answer["data"], &places)
                .context("no list was found in the answer: say where it is with --items /place")?;
            sheet.add(list)?;
            state.turn(answer["next"].as_object());
            pages += 1;
        }
        state.save()?;
        progress(pages, export.pages, sheet.count(), spent, limit);
    }
    if std::io::stderr().is_terminal() {
        eprintln!();
    }
    let report = json!({
        "pages": pages, "entries": sheet.count(), "new_entries": sheet.added(), "spent_usd": spent.to_string(),
        "done": state.done, "stopped": stopped,
    });
    out.say(&report, || {
        let end = match (&stopped, state.done) {
            (Some(why), _) => format!("stopped: {why}; the same command goes on from here"),
            (None, true) => "the list is at its end".to_owned(),
            (None, false) => "there is more; the same command goes on from here".to_owned(),
        };
        format!("{} entries ({} new) for {spent} USD; {end}", sheet.count(), sheet.added())
    });
    Ok(if stopped.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn params(list: &[String]) -> anyhow::Result<Params> {
    let pair = |text: &String| {
        let (name, value) = text.split_once('=').with_context(|| format!("{text:?} is not NAME=VALUE"))?;
        Ok((name.to_owned(), value.to_owned()))
    };
    list.iter().map(pair).collect()
}

fn address(cell: &str, params: &Params) -> anyhow::Result<String> {
    let Some((platform, capability)) = cell.split_once('/') else { bail!("name a cell as bilibili/search") };
    let encoded = |text: &str| -> String {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
        text.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
    };
    let pairs: Vec<String> =
        params.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
    Ok(format!("/v1/social/{}/{}?{}", encoded(platform), encoded(capability), pairs.join("&")))
}

/// What a page costs, from the gateway's own catalog.
async fn price(http: &Http, cell: &str) -> anyhow::Result<Money> {
    let reply = http.send("/api/social/catalog", None).await?;
    let catalog: Value = serde_json::from_slice(&reply.body).context("the catalog")?;
    let found = catalog["cells"].as_array().into_iter().flatten().find(|one| {
        cell.split_once('/')
            .is_some_and(|(platform, capability)| one["platform"] == platform && one["capability"] == capability)
    });
    let Some(found) = found else { bail!("this gateway does not sell {cell:?}") };
    found["price_usd"].to_string().parse().context("the price")
}

fn refusal(body: &[u8]) -> String {
    let error: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |name: &str| error["error"][name].as_str().unwrap_or("?").to_owned();
    format!("{} ({})", text("message").trim_end_matches('.'), text("code"))
}

fn progress(pages: u32, most: u32, entries: usize, spent: Money, limit: Money) {
    if !std::io::stderr().is_terminal() {
        return;
    }
    let filled = (pages * 20 / most.max(1)) as usize;
    let bar: String = (0..20).map(|at| if at < filled { '#' } else { '·' }).collect();
    eprint!("\r[{bar}] page {pages}/{most}  {entries} entries  {spent}/{limit} USD ");
    let _ = std::io::stderr().flush();
}
