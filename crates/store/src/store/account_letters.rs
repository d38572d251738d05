//! What the owners of an account are to be told of it. Whoever changes the account writes a row,
//! also from the command line; a gateway makes letters of it, once over all of them.

use super::Store;
use crate::alert::notice::{AccountLetter, LetterCause};
use crate::error::StoreError;
use crate::ids::AccountId;
use crate::person::statement::{PersonStatement, SqlRow, may, must, values};

pub(super) fn put_account_letter(account: AccountId, cause: LetterCause, now: i64) -> PersonStatement {
    let sql = "INSERT INTO account_letter (account_id, about, at) VALUES ($1, $2, $3) \
         ON CONFLICT (account_id, about) DO UPDATE SET at = excluded.at";
    may(sql, values![account.0, cause.word(), now])
}

impl Store {
    /// Some of what is to be told, in the order in which it happened.
    pub async fn account_letters(&self, limit: u32) -> Result<Vec<AccountLetter>, StoreError> {
        const SQL: &str = "SELECT l.account_id, l.about, l.at, a.name FROM account_letter l JOIN account a ON a.id = l.account_id \
             ORDER BY l.at, l.account_id, l.about LIMIT $1";
        let letter = |row: &SqlRow| {
            let (account, at) = (AccountId(row.id(0)?), row.int(2)?);
            Ok(AccountLetter { account, cause: LetterCause::of(&row.text(1)?), at, name: row.text(3)? })
        };
        self.people_rows(SQL, values![i64::from(limit)]).await?.iter().map(letter).collect()
    }

    /// These letters tell it. `false`: somebody else has written them.
    pub async fn write_account_letter(&self, told: &AccountLetter, sealed: Vec<Vec<u8>>) -> Result<bool, StoreError> {
        let sql = "DELETE FROM account_letter WHERE account_id = $1 AND about = $2 AND at = $3";
        let mut write = vec![must(sql, values![told.account.0, told.cause.word(), told.at])];
        let now = self.people_now();
        write.extend(sealed.into_iter().map(|sealed| self.put_mail(sealed, now)));
        Ok(self.write_people(write).await?.is_none())
    }
}
