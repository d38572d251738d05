//! After a crash: closes in the journal are applied, calls without one are settled at their last mark or voided.
//! Everything goes through the same close as in normal life, so it happens once however often it is tried.

use std::collections::HashMap;

use tollgate_catalog::Money;

use super::{Engine, lock};
use crate::call::{Close, Ending, Mark, UsageFacts};
use crate::error::StoreError;
use crate::ids::CallId;
use crate::journal::record::{self, Record};
use crate::report::Recovered;

impl Engine {
    pub(super) async fn recover(&self, journal: Vec<Vec<u8>>) -> Result<Recovered, StoreError> {
        let mut recovered = Recovered::default();
        let mut marks: HashMap<CallId, (Box<Mark>, Option<[u8; 16]>)> = HashMap::new();
        for payload in journal {
            match record::read(&payload) {
                Some(Record::Mark { mark, price_id }) => {
                    marks.insert(mark.call, (mark, price_id));
                }
                Some(Record::Close { close, price_id }) => self.replay(*close, price_id, &mut recovered).await?,
                None => recovered.dropped += 1,
            }
        }
        let left: Vec<CallId> = lock(&self.shared.books).open.keys().copied().collect();
        for call in left {
            let (close, price_id) = match marks.remove(&call) {
                Some((mark, price_id)) => (Close::at_mark(*mark, "crashed"), price_id),
                None => match self.without_mark(call, "crashed") {
                    Some(close) => (close, None),
                    None => continue,
                },
            };
            count(&mut recovered, self.close_in_books(close, price_id).map(|(closed, ..)| closed.captured));
        }
        self.flush().await?;
        self.shared.journal.reset()?;
        Ok(recovered)
    }

    async fn replay(
        &self,
        close: Close,
        price_id: Option<[u8; 16]>,
        recovered: &mut Recovered,
    ) -> Result<(), StoreError> {
        let (account, call) = (close.account, close.call);
        if let Some((closed, ..)) = self.close_in_books(close, price_id) {
            count(recovered, Some(closed.captured));
        } else if self.readers.usage_of(account, call).await?.is_none() {
            // The hold never became durable: the call never was.
            recovered.dropped += 1;
        }
        Ok(())
    }

    /// Ends an open call that nobody will end: at its last mark if it has one, else without a charge.
    pub(super) fn resolve(&self, call: CallId, reason: &str) -> bool {
        let marked = self.shared.journal.mark_of(call).and_then(|payload| record::read(&payload));
        let (close, price_id) = match marked {
            Some(Record::Mark { mark, price_id }) => (Close::at_mark(*mark, reason), price_id),
            _ => match self.without_mark(call, reason) {
                Some(close) => (close, None),
                None => return false,
            },
        };
        self.shared.journal.forget_mark(call);
        self.close_in_books(close, price_id).is_some()
    }

    fn without_mark(&self, call: CallId, reason: &str) -> Option<Close> {
        let now = self.now();
        let books = lock(&self.shared.books);
        let open = books.open.get(&call)?;
        let row = UsageFacts::unanswered(open.key, open.at, now, open.endpoint.clone(), open.model.clone());
        Some(Close::unanswered(call, open.account, Ending::Expired, reason, row))
    }
}

fn count(recovered: &mut Recovered, captured: Option<Money>) {
    match captured {
        Some(captured) if captured.is_zero() => recovered.voided += 1,
        Some(_) => recovered.settled += 1,
        None => {}
    }
}
