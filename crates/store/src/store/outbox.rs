//! Mail that is to be sent: written with what it is about, taken by whoever sends it, and gone when
//! it was handed over.

use super::{Engine, Store};
use crate::error::StoreError;
use crate::person::DueMail;
use crate::person::statement::{PersonStatement, may, must, values};

impl Store {
    /// Sent as soon as somebody looks.
    pub(super) fn put_mail(&self, sealed: Vec<u8>, now: i64) -> PersonStatement {
        let id = on_engine!(self, e => e.people_ids().invite());
        let sql = "INSERT INTO mail_outbox (id, sealed, created_at, due_at, tries) VALUES ($1, $2, $3, $3, 0)";
        may(sql, values![id.0, &*sealed, now])
    }

    /// Mail that belongs to no other change.
    pub async fn queue_mail(&self, sealed: Vec<u8>) -> Result<(), StoreError> {
        self.write_people(vec![self.put_mail(sealed, self.people_now())]).await.map(drop)
    }

    pub async fn mail_waiting(&self) -> Result<i64, StoreError> {
        const SQL: &str = "SELECT count(*) FROM mail_outbox";
        self.people_rows(SQL, Vec::new()).await?.first().map_or(Ok(0), |row| row.int(0))
    }

    /// Takes mail that is due, for so long: should the taker die, it is due again afterwards.
    pub async fn take_mail(&self, limit: u32, lease_ms: i64) -> Result<Vec<DueMail>, StoreError> {
        const SQL: &str = "SELECT id, sealed, created_at, due_at, tries FROM mail_outbox WHERE due_at <= $1 \
             ORDER BY due_at, id LIMIT $2";
        let now = self.people_now();
        let mut taken = Vec::new();
        for row in self.people_rows(SQL, values![now, i64::from(limit)]).await? {
            let (id, due) = (row.id(0)?, row.int(3)?);
            let sql = "UPDATE mail_outbox SET due_at = $3, tries = tries + 1 WHERE id = $1 AND due_at = $2";
            let take = must(sql, values![id, due, now.saturating_add(lease_ms)]);
            if self.write_people(vec![take]).await?.is_none() {
                let (sealed, created_at) = (row.bytes(1)?, row.int(2)?);
                taken.push(DueMail { id, sealed, created_at, tries: row.int(4)? + 1 });
            }
        }
        Ok(taken)
    }

    /// It was handed over, or given up.
    pub async fn end_mail(&self, id: [u8; 16]) -> Result<(), StoreError> {
        self.write_people(vec![may("DELETE FROM mail_outbox WHERE id = $1", values![id])]).await.map(drop)
    }

    /// It could not be handed over.
    pub async fn put_mail_off(&self, id: [u8; 16], until: i64) -> Result<(), StoreError> {
        let sql = "UPDATE mail_outbox SET due_at = $2 WHERE id = $1";
        self.write_people(vec![may(sql, values![id, until])]).await.map(drop)
    }
}
