//! Identifiers of accounts, keys and calls: 16 bytes, 48 bits of milliseconds and 80 random bits,
//! so that they sort by age in every index. The text form is a prefix and 26 lower-case Crockford
//! base32 characters.

use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::str::FromStr;
use std::sync::Mutex;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Clocks;

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const TEXT_LEN: usize = 26;

/// The text is not an identifier of the wanted kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an identifier of the form {0}…")]
pub struct NotAnId(pub &'static str);

macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub [u8; 16]);

        impl $name {
            pub const PREFIX: &'static str = $prefix;

            /// Bytes read from the database; anything but 16 bytes is not ours.
            pub fn from_slice(bytes: &[u8]) -> Option<Self> {
                bytes.try_into().ok().map(Self)
            }

            /// Milliseconds since 1970 at which the id was made.
            pub fn made_at(&self) -> i64 {
                let mut ms = [0u8; 8];
                ms[2..].copy_from_slice(&self.0[..6]);
                i64::from_be_bytes(ms)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                // In one piece: each piece may make a string grow.
                let mut text = [0; $prefix.len() + TEXT_LEN];
                let (prefix, number) = text.split_at_mut($prefix.len());
                prefix.copy_from_slice($prefix.as_bytes());
                number.copy_from_slice(&encode(&self.0));
                f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = NotAnId;

            fn from_str(text: &str) -> Result<Self, NotAnId> {
                text.strip_prefix($prefix)
                    .and_then(decode)
                    .map(Self)
                    .ok_or(NotAnId($prefix))
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

id_type!(
    /// One customer of the gateway.
    AccountId,
    "acct_"
);
id_type!(
    /// One payment of a customer: what is to be paid, and what became of it.
    OrderId,
    "ord_"
);
id_type!(
    /// Redemption codes that were made together.
    BatchId,
    "batch_"
);
id_type!(
    /// One API key of an account.
    KeyId,
    "key_"
);
id_type!(
    /// One call; also the identity of its hold and of its usage row.
    CallId,
    "call_"
);
id_type!(
    /// One video task. A task is one call, so both ids are the same number under two names.
    TaskId,
    "task_"
);

impl TaskId {
    pub fn of(call: CallId) -> Self {
        Self(call.0)
    }

    pub fn call(self) -> CallId {
        CallId(self.0)
    }
}

id_type!(
    /// One run of a workflow.
    RunId,
    "run_"
);
id_type!(
    /// One key of the operator's API.
    AdminKeyId,
    "adm_"
);

id_type!(
    /// Something that is watched for operators.
    AlertRuleId,
    "rule_"
);
id_type!(
    /// Where operators hear of trouble.
    AlertPlaceId,
    "place_"
);
id_type!(
    /// That a rule began to fire, still does, or has ceased to; also a notice to a customer.
    AlertEventId,
    "alert_"
);
id_type!(
    /// Somebody who signs in.
    PersonId,
    "pers_"
);
id_type!(
    /// One session of a person, by which it is listed and ended; it opens nothing.
    SessionId,
    "sess_"
);
id_type!(
    /// One invite, by which it is listed and taken back; it opens nothing.
    InviteId,
    "inv_"
);
id_type!(
    /// One passkey of a person, by which it is listed and removed; it opens nothing.
    PasskeyId,
    "pkey_"
);

fn encode(bytes: &[u8; 16]) -> [u8; TEXT_LEN] {
    // In words of 64 bits: ids are written several times per call.
    let value = u128::from_be_bytes(*bytes);
    let digit = |word: u64, shift: u32| ALPHABET[((word >> shift) & 31) as usize];
    #[expect(clippy::cast_possible_truncation, reason = "each word takes the digits it holds whole")]
    let (low, middle, high) = (value as u64, (value >> 60) as u64, (value >> 120) as u64);
    let mut text = [0u8; TEXT_LEN];
    text[0] = digit(high, 5);
    text[1] = digit(high, 0);
    for i in 0..12u32 {
        text[2 + i as usize] = digit(middle, 55 - 5 * i);
        text[14 + i as usize] = digit(low, 55 - 5 * i);
    }
    text
}

fn decode(text: &str) -> Option<[u8; 16]> {
    let text = text.as_bytes();
    // 26 characters hold 130 bits: the first may carry three only.
    if text.len() != TEXT_LEN || text[0] > b'7' {
        return None;
    }
    let mut value: u128 = 0;
    for c in text {
        let digit = ALPHABET.iter().position(|a| a == c)?;
        value = (value << 5) | digit as u128;
    }
    Some(value.to_be_bytes())
}

/// A map by id. Ids are ours and random in their last bytes, so those are the hash: nobody can
/// choose them to collide.
pub(crate) type IdMap<K, V> = std::collections::HashMap<K, V, BuildHasherDefault<LastBytes>>;

#[derive(Default)]
pub(crate) struct LastBytes(u64);

impl Hasher for LastBytes {
    fn write(&mut self, bytes: &[u8]) {
        if let Some(last) = bytes.last_chunk::<8>() {
            self.0 ^= u64::from_be_bytes(*last);
        }
    }

    /// The length of a key says nothing: all ids are as long.
    fn write_usize(&mut self, _: usize) {}

    fn finish(&self) -> u64 {
        // Within a millisecond ids count up from their last byte. A map looks for a place by the
        // low bits, which a product takes from the low bits only, and compares the high ones, which
        // it takes from all.
        self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

/// Makes ids that never repeat and never go back, even when the clock does.
pub struct Maker {
    world: Clocks,
    last: Mutex<u128>,
}

impl Maker {
    pub fn new(world: Clocks) -> Self {
        Self { world, last: Mutex::new(0) }
    }

    pub fn account(&self) -> AccountId {
        AccountId(self.next())
    }

    pub fn key(&self) -> KeyId {
        KeyId(self.next())
    }

    pub fn admin_key(&self) -> AdminKeyId {
        AdminKeyId(self.next())
    }

    pub fn call(&self) -> CallId {
        CallId(self.next())
    }

    pub fn order(&self) -> OrderId {
        OrderId(self.next())
    }

    pub fn batch(&self) -> BatchId {
        BatchId(self.next())
    }

    pub fn run(&self) -> RunId {
        RunId(self.next())
    }

    pub fn alert_rule(&self) -> AlertRuleId {
        AlertRuleId(self.next())
    }

    pub fn alert_place(&self) -> AlertPlaceId {
        AlertPlaceId(self.next())
    }

    pub fn alert_event(&self) -> AlertEventId {
        AlertEventId(self.next())
    }

    pub fn person(&self) -> PersonId {
        PersonId(self.next())
    }

    pub fn session(&self) -> SessionId {
        SessionId(self.next())
    }

    pub fn invite(&self) -> InviteId {
        InviteId(self.next())
    }

    pub fn passkey(&self) -> PasskeyId {
        PasskeyId(self.next())
    }

    fn next(&self) -> [u8; 16] {
        let now = u128::from((self.world.now_ms)().max(0).unsigned_abs()) & ((1 << 48) - 1);
        let mut last = self.last.lock().unwrap_or_else(|e| e.into_inner());
        // One draw of randomness per millisecond; within it (or while the clock stands back) count
        // on.
        *last = if now > (*last >> 80) {
            let mut random = [0u8; 16];
            (self.world.random)(&mut random[6..]);
            random[6] &= 0x7f; // leaves room to count within the millisecond
            (now << 80) | u128::from_be_bytes(random)
        } else {
            *last + 1
        };
        last.to_be_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        let id = CallId([255; 16]);
        assert_eq!(id.to_string(), "call_7zzzzzzzzzzzzzzzzzzzzzzzzz");
        assert_eq!(id.to_string().parse(), Ok(id));
        assert!("acct_7zzzzzzzzzzzzzzzzzzzzzzzzz".parse::<CallId>().is_err());
        assert!("call_8zzzzzzzzzzzzzzzzzzzzzzzzz".parse::<CallId>().is_err());
        assert!("call_".parse::<CallId>().is_err());
    }

    #[test]
    fn ids_grow_even_when_the_clock_goes_back() {
        use std::sync::Arc;
        use std::sync::atomic::{AtomicI64, Ordering};
        use std::time::Duration;
        let clock = Arc::new(AtomicI64::new(1_000_000));
        let now = clock.clone();
        let maker = Maker::new(Clocks {
            now_ms: Arc::new(move || now.load(Ordering::Relaxed)),
            steady_ms: Arc::new(|| 0),
            wall_lasts: Duration::ZERO,
            database_ms: None,
            random: Arc::new(|b| b.fill(9)),
        });
        let first = maker.call();
        assert_eq!(first.made_at(), 1_000_000);
        let second = maker.call();
        clock.store(5, Ordering::Relaxed);
        let third = maker.call();
        assert!(first < second && second < third);
    }

    #[test]
    fn ids_of_one_millisecond_find_places_of_their_own() {
        use std::collections::HashSet;
        use std::hash::BuildHasher;
        use std::time::Duration;
        let clock: crate::world::NowMs = std::sync::Arc::new(|| 1_000_000);
        let random = std::sync::Arc::new(|b: &mut [u8]| b.fill(9));
        let (now_ms, wall_lasts) = (clock.clone(), Duration::ZERO);
        let maker = Maker::new(Clocks { now_ms, steady_ms: clock, wall_lasts, database_ms: None, random });
        let hasher = BuildHasherDefault::<LastBytes>::default();
        let places: HashSet<u64> = (0..4096).map(|_| hasher.hash_one(maker.call()) & 4095).collect();
        assert!(places.len() > 2048, "4096 ids fall into {} of 4096 places", places.len());
    }
}
