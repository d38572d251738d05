//! Plain holds and ends of calls: nearly all there are. A group of them is one transaction of two
//! round trips. The first locks the accounts and says what they have, then all is decided here, by
//! the arithmetic that SQLite has too, and the second writes it: so many rows as arrays, which
//! takes the database a fifth of what functions take that read and decide operation by operation.
//! What is not plain (trial credit, idempotency keys, tasks, too little money or too low a limit)
//! is left to the functions of `functions.sql`, which say what an operation means.

mod column;
mod decide;
mod rows;
mod write;

use futures_util::future::{try_join, try_join_all, try_join3};
use tokio_postgres::{Client, Error, Row, Statement};

use self::decide::{Decisions, Locked};
use self::write::{NewPrices, Tables, Values};
use super::batch::{Failed, OpOutcome};
use super::queue::PendingOp;
use super::queued::QueuedOp;
use super::records::SqlParam;
use crate::ids::CallId;

/// Fewer are not worth a transaction of their own.
const FEW: usize = 8;

/// Between its two round trips a group holds the locks of its accounts. Of a replica that stands
/// still then, or lost its network, the database takes them back after a second, before others
/// wait too long for theirs. What was not committed is sent again.
const SETTINGS: &str = "SET idle_in_transaction_session_timeout = '1s'; SET plan_cache_mode = force_generic_plan; \
     SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off";

/// The statements of a connection.
pub(super) struct PlainStatements {
    accounts: Statement,
    keys: Statement,
    holds: Statement,
    tables: Tables,
}

impl PlainStatements {
    pub async fn prepare(client: &Client) -> Result<Self, Error> {
        // Plans are made once and must do for any number of rows; the tables of running calls grow
        // and shrink too fast for statistics.
        client.batch_execute(SETTINGS).await?;
        Ok(Self {
            accounts: client.prepare(rows::ACCOUNTS).await?,
            keys: client.prepare(rows::KEYS).await?,
            holds: client.prepare(rows::HOLDS).await?,
            tables: Tables::prepare(client).await?,
        })
    }

    /// The outcome of each operation that is plain. When the database refuses one of them, none is
    /// applied.
    pub async fn apply(
        &self,
        client: &Client,
        part: &[PendingOp],
        replica: &[u8; 16],
    ) -> Result<Vec<Option<OpOutcome>>, Failed> {
        let named = Named::of(part);
        if named.count < FEW {
            return Ok(part.iter().map(|_| None).collect());
        }
        let begun = try_join(self.begin(client, part), self.lock(client, &named)).await;
        let ((), [accounts, keys, holds]) = begun.map_err(Failed::from_statement)?;
        let mut decisions = Decisions::of(part, Locked::of(&accounts, &keys, &holds)?, replica);
        let outcomes = std::mem::take(&mut decisions.outcomes);
        let written = self.tables.statements(&decisions, replica);
        let all = written.iter().map(|(statement, values)| execute(client, statement, values));
        // Sent in this order, without waiting; a commit after a failure undoes all.
        try_join(try_join_all(all), client.batch_execute("COMMIT")).await.map_err(Failed::from_statement)?;
        Ok(outcomes)
    }

    /// Prices before accounts, and each in the order of ids: the same order in every replica.
    async fn begin(&self, client: &Client, part: &[PendingOp]) -> Result<(), Error> {
        let prices = NewPrices::of(part);
        let begin = client.batch_execute(self.tables.begin());
        if prices.is_empty() {
            return begin.await;
        }
        let values = prices.values();
        try_join(begin, execute(client, self.tables.prices(), &values)).await.map(|_| ())
    }

    async fn lock(&self, client: &Client, named: &Named<'_>) -> Result<[Vec<Row>; 3], Error> {
        let params: [[SqlParam<'_>; 1]; 3] = [[&named.accounts], [&named.keys], [&named.closed]];
        let accounts = client.query(&self.accounts, &params[0]);
        let keys = client.query(&self.keys, &params[1]);
        let holds = client.query(&self.holds, &params[2]);
        let (accounts, keys, holds) = try_join3(accounts, keys, holds).await?;
        Ok([accounts, keys, holds])
    }
}

async fn execute(client: &Client, statement: &Statement, values: &Values<'_>) -> Result<u64, Error> {
    let values: Vec<SqlParam<'_>> = values.iter().map(|value| &**value as SqlParam<'_>).collect();
    client.execute(statement, &values).await
}

/// Whom the operations are about that may be plain.
struct Named<'a> {
    count: usize,
    accounts: Vec<&'a [u8]>,
    keys: Vec<&'a [u8]>,
    closed: Vec<&'a [u8]>,
}

impl<'a> Named<'a> {
    fn of(part: &'a [PendingOp]) -> Self {
        let mut named = Self { count: 0, accounts: Vec::new(), keys: Vec::new(), closed: Vec::new() };
        for pending in part {
            let (account, key) = match &pending.op {
                QueuedOp::Hold(waits) if decide::hold_may_be_plain(waits) => (&waits.hold.account, &waits.hold.key),
                QueuedOp::Close(waits) => {
                    let CallId(call) = &waits.close.call;
                    named.closed.push(call);
                    (&waits.close.account, &waits.close.row.key)
                }
                _ => continue,
            };
            named.count += 1;
            named.accounts.push(&account.0);
            named.keys.push(&key.0);
        }
        for ids in [&mut named.accounts, &mut named.keys] {
            ids.sort_unstable();
            ids.dedup();
        }
        named
    }
}
