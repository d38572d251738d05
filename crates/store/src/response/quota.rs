//! How much of what an account stores there may be: responses, conversations and their items.
//! Counted with every write, in its transaction, by triggers of the schema, so that nothing is
//! stored or erased uncounted.

/// What every stored row counts beside its texts: keys, indexes and the slack of pages. With it the
/// sum is about what the disk holds.
pub const ROW_BYTES: u64 = 512;

/// What is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StorageUsed {
    pub bytes: u64,
    /// Responses and conversations.
    pub objects: u64,
    /// Items of conversations, and ids of items by which responses are found.
    pub items: u64,
}

/// How much an account may store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    pub bytes: u64,
    pub objects: u64,
    pub items: u64,
}

/// Why something was not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoom {
    /// The account has this already.
    Account(StorageUsed),
    /// All accounts together have as much as there may be, or the disk is nearly full.
    All,
}

impl Quota {
    pub const UNLIMITED: Quota = Quota { bytes: u64::MAX, objects: u64::MAX, items: u64::MAX };

    /// Whether there is room for `more` beside what is stored.
    pub fn has_room(&self, used: StorageUsed, more: StorageUsed) -> bool {
        let fits = |used: u64, more: u64, most: u64| more == 0 || used.saturating_add(more) <= most;
        fits(used.bytes, more.bytes, self.bytes)
            && fits(used.objects, more.objects, self.objects)
            && fits(used.items, more.items, self.items)
    }
}

impl StorageUsed {
    /// A row with these texts.
    fn row(texts: &[&str]) -> u64 {
        texts.iter().fold(ROW_BYTES, |sum, text| sum.saturating_add(length(text)))
    }

    pub(crate) fn plus(self, other: StorageUsed) -> StorageUsed {
        StorageUsed {
            bytes: self.bytes.saturating_add(other.bytes),
            objects: self.objects.saturating_add(other.objects),
            items: self.items.saturating_add(other.items),
        }
    }

    /// A response or a conversation.
    pub(crate) fn object(texts: &[&str]) -> StorageUsed {
        StorageUsed { bytes: StorageUsed::row(texts), objects: 1, items: 0 }
    }

    pub(crate) fn item(texts: &[&str]) -> StorageUsed {
        StorageUsed { bytes: StorageUsed::row(texts), objects: 0, items: 1 }
    }

    pub(crate) fn bytes(bytes: u64) -> StorageUsed {
        StorageUsed { bytes, objects: 0, items: 0 }
    }

    /// Text that grows.
    pub(crate) fn text(text: &str) -> StorageUsed {
        StorageUsed::bytes(length(text))
    }
}

fn length(text: &str) -> u64 {
    u64::try_from(text.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_up_to_the_quota_and_not_beyond() {
        let quota = Quota { bytes: 1_000, objects: 2, items: 3 };
        let used = StorageUsed { bytes: 900, objects: 1, items: 3 };
        for (more, fits) in [
            (StorageUsed { bytes: 100, objects: 1, items: 0 }, true),
            (StorageUsed { bytes: 101, objects: 1, items: 0 }, false),
            (StorageUsed { bytes: 1, objects: 2, items: 0 }, false),
            (StorageUsed { bytes: 1, objects: 0, items: 1 }, false),
            (StorageUsed { bytes: u64::MAX, objects: 0, items: 0 }, false),
        ] {
            assert_eq!(quota.has_room(used, more), fits, "{more:?}");
        }
        // A quota that was made smaller than what is there refuses nothing that adds nothing.
        let small = Quota { bytes: 1, objects: 0, items: 0 };
        assert!(small.has_room(used, StorageUsed::default()));
        assert!(!small.has_room(used, StorageUsed { bytes: 1, ..StorageUsed::default() }));
    }

    #[test]
    fn a_row_counts_its_texts_and_itself() {
        assert_eq!(StorageUsed::object(&["ab", "é"]), StorageUsed { bytes: ROW_BYTES + 4, objects: 1, items: 0 });
        assert_eq!(StorageUsed::item(&[""]), StorageUsed { bytes: ROW_BYTES, objects: 0, items: 1 });
    }
}
