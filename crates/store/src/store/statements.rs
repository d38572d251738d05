//! The verb of monthly statements.

use super::{Engine, Store};
use crate::account::EventPage;
use crate::error::StoreError;
use crate::ids::AccountId;
use crate::statement::{STATEMENT_EVENTS, Statement, StatementSpan};

const PAGE: u32 = 500;

impl Store {
    /// The statement of an account; `None`: there is no such account.
    pub async fn statement(&self, id: AccountId, span: StatementSpan) -> Result<Option<Statement>, StoreError> {
        let Some(account) = self.account(id).await? else { return Ok(None) };
        let mut events = Vec::new();
        let mut page = EventPage { before: None, limit: PAGE };
        // Newest first; what is younger than the month is passed over.
        'pages: loop {
            let found = self.events(id, page).await?;
            let last = found.len() < PAGE as usize;
            page.before = found.last().map(|event| event.seq);
            for event in found {
                if event.at < span.from || events.len() >= STATEMENT_EVENTS {
                    break 'pages;
                }
                if event.at < span.to {
                    events.push(event);
                }
            }
            if last {
                break;
            }
        }
        events.reverse();
        let now = on_engine!(self, e => e.now());
        let rows = on_engine!(self, e => e.statement(id, span.clone()).await)?;
        Statement::of(&account, &span, rows, events, now).map(Some)
    }
}
