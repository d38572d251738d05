//! Calls for measuring the ledger: accounts with more money than they can spend, and the hold and
//! close of an ordinary call.

use std::path::Path;
use std::sync::Arc;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use tollgate_catalog::{Money, Price};

use super::price;
use crate::sqlite::writer::fill::{Calls, fill};
use crate::{
    AccountId, CallId, Close, Counters, Credit, CreditKind, Ending, Hold, KeyId, Limits, NewAccount, NewKey, Pot,
    Store, StoreError, UsageFacts,
};

const HELD: Money = Money::from_nano(5_000_000);
const CHARGED: Money = Money::from_nano(1_400_000);

/// Who pays, and with which key.
pub type Owner = (AccountId, KeyId);

/// The same call again and again.
#[derive(Clone)]
pub struct Load {
    pub owners: Vec<Owner>,
    price: Arc<Price>,
}

impl Load {
    pub async fn prepare(store: &Store, accounts: u64) -> Result<Self, StoreError> {
        // Many at once share a commit.
        let owners = stream::iter(0..accounts).map(|number| owner(store, number)).buffered(1_000).try_collect().await?;
        Ok(Self { owners, price: price(1_000_000) })
    }

    /// The owner of the n-th call.
    pub fn owner(&self, n: u64) -> Owner {
        let place = usize::try_from(n % self.owners.len() as u64).unwrap_or(0);
        self.owners[place]
    }

    pub fn hold(&self, call: CallId, (account, key): Owner, at: i64) -> Hold {
        Hold {
            call,
            account,
            key,
            amount: HELD,
            least: HELD,
            price: self.price.clone(),
            model: "example-model".into(),
            endpoint: "/v1/chat/completions",
            paid_only: false,
            topped_up: true,
            expires_at: at + 600_000,
            at,
            idem: None,
        }
    }

    pub fn close(&self, call: CallId, (account, key): Owner, at: i64) -> Close {
        Close {
            call,
            account,
            ending: Ending::Answered,
            reason: String::new(),
            charge: CHARGED,
            most: None,
            row: facts(key, at),
            reply: None,
        }
    }

    /// Writes that many finished calls straight into the SQLite file of a store that is shut.
    pub fn write_history(&self, dir: &Path, calls: u64, at: i64) -> Result<(), StoreError> {
        let row = facts(self.owner(0).1, at);
        let history = Calls { owners: &self.owners, price: self.price.clone(), hold: HELD, charge: CHARGED, row };
        fill(dir, &history, calls)
    }
}

/// An account with a key and more money than it can spend.
async fn owner(store: &Store, number: u64) -> Result<Owner, StoreError> {
    let account = store.create_account(NewAccount { name: format!("a{number}"), ..Default::default() }).await?.id;
    let credit = Credit {
        id: format!("start-{number}"),
        account,
        kind: CreditKind::TopUp,
        pot: Pot::Paid,
        amount: Money::from_nano(1_000_000_000_000_000),
        expires_at: None,
        reason: "load".into(),
        actor: "example".into(),
    };
    store.credit(credit).await?;
    let new = NewKey {
        account,
        name: "k".into(),
        expires_at: None,
        models: None,
        cidrs: None,
        limits: Limits::default(),
        scope: Default::default(),
    };
    Ok((account, store.create_key(new, &format!("sk-{number:048}")).await?.id))
}

fn facts(key: KeyId, at: i64) -> UsageFacts {
    UsageFacts {
        key,
        at,
        ended_at: at + 700,
        endpoint: "/v1/chat/completions".into(),
        model: "example-model".into(),
        provider: Some("example".into()),
        upstream_model: Some("example-model-2026".into()),
        status: 200,
        counters: Counters { input: 1_000, output: 200, ..Counters::default() },
        estimated: false,
        raw_usage: Some(r#"{"prompt_tokens":1000,"completion_tokens":200,"total_tokens":1200}"#.into()),
        attempts: 1,
        first_byte_ms: Some(310),
        tier: None,
        dropped: None,
        cost: None,
        price: None,
    }
}

/// User and system time of this process, all threads, in clock ticks of 10 ms.
pub fn cpu_ticks() -> std::io::Result<u64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let number = |i: usize| fields.get(i).and_then(|f| f.parse::<u64>().ok()).unwrap_or(0);
    Ok(number(11) + number(12))
}
