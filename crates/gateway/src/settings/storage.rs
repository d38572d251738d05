//! `[storage]` in tollgate.toml: how much customers may store of responses and conversations, each
//! and all together.

use tollgate_catalog::form::Form;
use tollgate_store::{Account, Options, Quota};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StorageSettings {
    /// Of an account that has topped up once.
    pub account: Quota,
    /// Of one that never has.
    pub trial: Quota,
    /// Of all accounts together.
    pub total_bytes: u64,
    /// What the disk must have left for the ledger before anything more is stored (SQLite).
    pub disk_reserve: u64,
}

impl Default for StorageSettings {
    fn default() -> StorageSettings {
        let store = Options::default();
        StorageSettings {
            account: Quota { bytes: 256 << 20, objects: 10_000, items: 100_000 },
            trial: Quota { bytes: 4 << 20, objects: 100, items: 1_000 },
            total_bytes: store.stored_bytes,
            disk_reserve: store.disk_reserve,
        }
    }
}

impl StorageSettings {
    pub fn read(form: &mut Form<'_>) -> StorageSettings {
        let default = StorageSettings::default();
        let mut table = form.table("storage");
        let most = 0..=u64::from(u32::MAX);
        let settings = StorageSettings {
            account: Quota {
                bytes: table.size_or("account_bytes", default.account.bytes),
                objects: table.int_or("account_objects", default.account.objects, most.clone()),
                items: table.int_or("account_items", default.account.items, most.clone()),
            },
            trial: Quota {
                bytes: table.size_or("trial_bytes", default.trial.bytes),
                objects: table.int_or("trial_objects", default.trial.objects, most.clone()),
                items: table.int_or("trial_items", default.trial.items, most),
            },
            total_bytes: table.size_or("total_bytes", default.total_bytes),
            disk_reserve: table.size_or("disk_reserve", default.disk_reserve),
        };
        table.finish();
        settings
    }

    /// What an account may store.
    pub fn quota(&self, account: &Account) -> Quota {
        if account.topped_up { self.account } else { self.trial }
    }
}
