//! Whether a caller may store something, and the error where he may not.

use super::Past;
use crate::refusal::Refusal;
use crate::who::caller::Caller;
use crate::work::conversation::ConversationDesk;
use tollgate_store::{KeyAndAccount, NoRoom, Quota, StorageUsed};
use tollgate_wire::error::Code;

/// What a caller may store by itself, free of charge: nothing without money, whoever he is. Reading
/// and deleting need none.
pub async fn may_store(desk: &ConversationDesk, caller: &Caller) -> Result<Quota, Refusal> {
    let unknown = || Refusal::new(Code::InvalidApiKey, "This key is revoked, or its account is closed.");
    let KeyAndAccount { account, .. } = desk.till.store.key_by_hash(caller.key.hash).await?.ok_or_else(unknown)?;
    let pots = [account.trial_available, account.paid_available, account.trial_held, account.paid_held];
    if pots.iter().all(|pot| pot.is_zero()) {
        let text = "Storing a conversation needs a balance above zero; nothing is charged for it. Reading and deleting need none.";
        return Err(Refusal::new(Code::InsufficientBalance, text));
    }
    Ok(desk.storage.quota(&account))
}

/// An answer that belongs to a conversation must be stored: it is not asked for where there is no
/// room for it.
pub async fn has_room(desk: &ConversationDesk, caller: &Caller, past: &Past) -> Result<(), Refusal> {
    if past.named.conversation.is_none() || !past.named.store {
        return Ok(());
    }
    let quota = desk.storage.quota(&caller.account);
    let used = desk.till.store.stored(caller.account.id).await?;
    // The response, its own items and at least one of the answer, which is longer by what is not
    // known yet.
    let own: usize = past.own.iter().map(String::len).sum();
    let items = past.own.len() as u64 + 2;
    let more = StorageUsed { bytes: 2 * own as u64 + tollgate_store::ROW_BYTES * items, objects: 1, items };
    if quota.has_room(used, more) { Ok(()) } else { Err(no_room(NoRoom::Account(used), quota)) }
}

pub fn no_room(why: NoRoom, quota: Quota) -> Refusal {
    match why {
        NoRoom::Account(used) => {
            let text = format!(
                "The account stores {} of {} bytes, {} of {} responses and conversations, and {} of {} items; this does not fit beside them. Delete some, or send `store: false`.",
                used.bytes, quota.bytes, used.objects, quota.objects, used.items, quota.items
            );
            Refusal::new(Code::StorageQuotaExceeded, text)
        }
        NoRoom::All => {
            let text = "There is no room to store anything more at the moment. Reading and deleting work; calls with `store: false` do too.";
            Refusal::new(Code::StorageFull, text)
        }
    }
}
