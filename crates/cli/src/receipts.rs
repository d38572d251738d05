//! Receipts on the command line. Verifying needs the receipt and the published keys, and neither a
//! server nor a network.

use crate::accounts::by_command_line;
use crate::args;
use crate::keys::ask;
use crate::show::Output;
use anyhow::Context as _;
use serde_json::json;
use std::io::Read as _;
use std::path::Path;
use std::process::ExitCode;
use tollgate_catalog::{Line, Money, Unit};
use tollgate_store::receipt::{Invalid, PublicKeys, Receipt, Signed, Verified, price_id, verify, verify_price};
use tollgate_store::{AccountId, CallId, admin::AdminCommand};

/// Nothing of ours is larger; a wrong file is recognized before it fills the memory.
const LARGEST: u64 = 1 << 20;

const KEY_COLUMNS: &[&str] = &["kid", "from_ms", "until_ms"];

pub async fn receipt(config: &Path, command: args::ReceiptCommand, out: &Output) -> anyhow::Result<ExitCode> {
    match command {
        args::ReceiptCommand::Verify { file, keys, price } => {
            let text = read(&file)?;
            let keys: PublicKeys = match keys {
                Some(path) => serde_json::from_str(&read(&path)?)
                    .with_context(|| format!("{} is not a copy of the published keys", path.display()))?,
                None => serde_json::from_value(ask(config, AdminCommand::ReceiptKeys).await?)?,
            };
            let price = price.as_deref().map(read).transpose()?;
            let verdict = verify(&text, &keys).and_then(|verified| match &price {
                Some(price) => verify_price(&verified.receipt, price).map(|()| verified),
                None => Ok(verified),
            });
            return Ok(print_verdict(verdict, out));
        }
        args::ReceiptCommand::Price { price_id: text } => {
            let id = price_id(&text).context("price_id: thirty-two digits, as in the receipt")?;
            let price: String = serde_json::from_value(ask(config, AdminCommand::PriceVersion { id }).await?)?;
            // Without a line's end: its hash is in the receipt.
            crate::show::print(&price);
        }
        args::ReceiptCommand::Show { account, call } => {
            let account: AccountId = account.parse().context("--account")?;
            let call: CallId = call.parse().context("call")?;
            let signed: Signed = serde_json::from_value(ask(config, AdminCommand::Receipt { account, call }).await?)?;
            crate::show::print_line(&signed.text());
        }
        args::ReceiptCommand::Keys => {
            let keys = ask(config, AdminCommand::ReceiptKeys).await?;
            crate::show::print_line(&keys.to_string());
        }
        args::ReceiptCommand::Rotate => {
            let keys = ask(config, AdminCommand::ReceiptRotate { done: by_command_line() }).await?;
            out.table(&keys, keys["keys"].as_array().map_or(&[], Vec::as_slice), KEY_COLUMNS);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    let reading = if path == Path::new("-") {
        std::io::stdin().take(LARGEST).read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(LARGEST).read_to_string(&mut text))
    };
    reading.with_context(|| path.display().to_string())?;
    Ok(text)
}

fn print_verdict(verdict: Result<Verified, Invalid>, out: &Output) -> ExitCode {
    match verdict {
        Ok(Verified { receipt }) => {
            out.say(&json!({ "valid": true, "receipt": receipt }), || sentence(&receipt));
            ExitCode::SUCCESS
        }
        Err(why) => {
            out.say(&json!({ "valid": false, "reason": why.to_string() }), || format!("NOT VALID: {why}"));
            ExitCode::FAILURE
        }
    }
}

/// What is proven, in words.
fn sentence(receipt: &Receipt) -> String {
    let usd = |nano| Money::from_nano(nano);
    let mut text = format!(
        "valid: {} of {} on {} cost {} USD",
        receipt.call_id,
        receipt.account_id,
        receipt.model,
        usd(receipt.total_nano_usd)
    );
    for (nano, what) in [
        (receipt.write_off_nano_usd, "was written off by the operator"),
        (receipt.refunded_nano_usd, "has been given back"),
    ] {
        if nano > 0 {
            text.push_str(&format!("; {} USD of it {what}", usd(nano)));
        }
    }
    for line in receipt.calculation.iter().flat_map(|calculation| &calculation.lines) {
        let per = match line.per {
            Unit::MillionTokens => "million tokens",
            Unit::Call => "call",
            Unit::Second => "second",
            Unit::Use => "use",
        };
        let Line { quantity, face, micro_usd, .. } = line;
        text.push_str(&format!("\n  {quantity} × {} at {micro_usd} micro-USD per {per}", face.name()));
    }
    text
}
