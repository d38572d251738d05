//! `social call` and `social export`: social data as a customer gets it. An export reads a list
//! page by page within a number of pages and an amount of money, writes each entry once, and goes
//! on where it stopped when it is run again.

mod entries;
mod file;

use crate::args;
use crate::http::Http;
use crate::real;
use crate::show::Output;
use anyhow::{Context as _, bail};
use entries::{entries, shipped_items};
use file::{ExportState, Sheet};
use serde_json::{Value, json};
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use tollgate_catalog::Money;

type Params = Vec<(String, String)>;

pub async fn call(call: args::SocialCallArgs) -> anyhow::Result<ExitCode> {
    let http = Http::new(&call.gateway, &real::api_key())?;
    let reply = http.send(&address(&call.cell, &params(&call.params)?)?, None).await?;
    crate::show::print_line(&String::from_utf8_lossy(&reply.body));
    Ok(if reply.status == 200 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

pub async fn export(export: args::SocialExportArgs, out: &Output) -> anyhow::Result<ExitCode> {
    let http = Http::new(&export.call.gateway, &real::api_key())?;
    let limit: Money = export.usd.parse().context("--usd")?;
    let first = params(&export.call.params)?;
    let mut state = ExportState::open(&export.out, &export.call.cell, &first)?;
    // Before there is a file: one without its note would be taken for somebody else's, also when
    // not a page was read.
    state.save()?;
    let mut sheet = Sheet::open(&export.out)?;
    let places = export.items.clone().map_or_else(|| shipped_items(&export.call.cell), |place| vec![place]);
    let (mut pages, mut spent, mut stopped) = (0, Money::ZERO, None);
    while pages < export.pages && !state.done {
        let price = price(&http, &export.call.cell, &state.next).await?;
        if spent.checked_add(price).context("the amount")? > limit {
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

/// What a page costs this key at most: a price may depend on the account and on the parameters.
async fn price(http: &Http, cell: &str, params: &Params) -> anyhow::Result<Money> {
    let path = address(cell, &Params::new())?;
    let body: serde_json::Map<String, Value> =
        params.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    let endpoint = path.trim_end_matches('?');
    let reply =
        http.send(&format!("/v1/quote?endpoint={endpoint}"), Some(Value::Object(body).to_string().into())).await?;
    if reply.status != 200 {
        bail!("the gateway quotes no price for {cell}: {}", refusal(&reply.body));
    }
    let quote: Value = serde_json::from_slice(&reply.body).context("the quote")?;
    Ok(Money::from_nano(quote["hold_nano_usd"].as_i64().context("the quote has no amount")?))
}

fn refusal(body: &[u8]) -> String {
    let error: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |name: &str| error["error"][name].as_str().unwrap_or("?").to_owned();
    format!("{} ({})", text("message").trim_end_matches('.'), text("code"))
}

fn progress(pages: u32, most: u32, entries: usize, spent: Money, limit: Money) {
    if std::io::stderr().is_terminal() {
        eprint!("\r{} ", bar(pages, most, entries, spent, limit));
        let _ = std::io::stderr().flush();
    }
}

/// How far it is: twenty marks for all pages that may be read.
fn bar(pages: u32, most: u32, entries: usize, spent: Money, limit: Money) -> String {
    let filled = u64::from(pages) * 20 / u64::from(most.max(1));
    let bar: String = (0..20).map(|at| if at < filled { '#' } else { '·' }).collect();
    format!("[{bar}] page {pages}/{most}  {entries} entries  {spent}/{limit} USD")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_grows_with_the_pages() {
        let usd = |text: &str| text.parse::<Money>().expect("an amount");
        let bar = |pages, most| bar(pages, most, 9, usd("0.006"), usd("1"));
        assert_eq!(bar(0, 10), "[····················] page 0/10  9 entries  0.006/1 USD");
        assert_eq!(bar(3, 10), "[######··············] page 3/10  9 entries  0.006/1 USD");
        assert_eq!(bar(10, 10), "[####################] page 10/10  9 entries  0.006/1 USD");
        assert!(bar(1, 0).starts_with('[') && bar(u32::MAX, u32::MAX).starts_with("[####"), "whatever is asked for");
    }

    #[test]
    fn a_call_is_an_address() {
        let params = params(&["keyword=咖 啡&=".to_owned(), "page=2".to_owned()]).expect("parameters");
        assert_eq!(
            address("bilibili/search", &params).expect("a cell"),
            "/v1/social/bilibili/search?keyword=%E5%92%96%20%E5%95%A1%26%3D&page=2"
        );
        assert!(address("bilibili", &params).is_err() && super::params(&["x".to_owned()]).is_err());
    }
}
