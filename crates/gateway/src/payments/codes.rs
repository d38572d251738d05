//! Redemption codes as people type them: 26 letters and digits of 128 random bits, and one that
//! checks them, in groups. And the guard against those who guess: wrong codes are counted by
//! account, by address and in all, in memory that has a bound.

use crate::settings::WrongCodes;
use crate::world::Millis;
use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use tollgate_store::{AccountId, hash_secret};

/// Without letters that look like digits.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const LETTERS: usize = 26;
/// The groups a code is shown in; the last letter of the last one checks the others.
const GROUPS: [usize; 5] = [6, 5, 5, 5, 6];

/// A code as it is shown, once.
pub fn new_code(fill: impl Fn(&mut [u8])) -> String {
    let mut random = [0; 16];
    fill(&mut random);
    let mut value = u128::from_be_bytes(random);
    let mut letters = [0u8; LETTERS];
    for letter in letters.iter_mut().rev() {
        let digit = (value & 31) as usize;
        *letter = ALPHABET[digit];
        value >>= 5;
    }
    let text: String = letters.iter().chain([&ALPHABET[check(&letters)]]).map(|b| char::from(*b)).collect();
    let mut rest = text.as_str();
    let groups = GROUPS.map(|length| {
        let (group, after) = rest.split_at(length);
        rest = after;
        group
    });
    groups.join("-")
}

/// What a code is stored as; `None`: it is none, and nobody need be asked.
pub fn read(text: &str) -> Option<[u8; 32]> {
    let mut letters = Vec::with_capacity(LETTERS + 1);
    for c in text.chars().take(128) {
        let c = match c.to_ascii_uppercase() {
            '-' | ' ' => continue,
            'O' => '0',
            'I' | 'L' => '1',
            c => c,
        };
        let byte = u8::try_from(c).ok().filter(|byte| ALPHABET.contains(byte))?;
        letters.push(byte);
    }
    let (last, letters) = letters.split_last()?;
    if text.chars().count() > 128 || letters.len() != LETTERS || ALPHABET[check(letters)] != *last {
        return None;
    }
    Some(hash(letters))
}

fn hash(letters: &[u8]) -> [u8; 32] {
    hash_secret(&format!("tollgate code {}", String::from_utf8_lossy(letters)))
}

/// Luhn's check over 32 letters: one wrong letter is always noticed, two neighbours that changed
/// places nearly always.
fn check(letters: &[u8]) -> usize {
    let number = |letter: &u8| ALPHABET.iter().position(|one| one == letter).unwrap_or_default();
    let sum: usize = letters
        .iter()
        .rev()
        .enumerate()
        .map(|(place, letter)| match place % 2 {
            0 => {
                let double = 2 * number(letter);
                double / 32 + double % 32
            }
            _ => number(letter),
        })
        .sum();
    (32 - sum % 32) % 32
}

const HOUR: Millis = 3_600_000;
/// The most accounts and addresses that are remembered; when there are more, the oldest are
/// forgotten, and the number for all still holds.
const REMEMBERED: usize = 10_000;

/// Who has sent wrong codes lately.
pub struct CodeGuard {
    limits: WrongCodes,
    seen: Mutex<Wrong>,
}

#[derive(Default)]
struct Wrong {
    accounts: HashMap<AccountId, Window>,
    addresses: HashMap<IpAddr, Window>,
    all: Window,
}

/// Wrong codes since then.
#[derive(Clone, Copy, Default)]
struct Window {
    since: Millis,
    count: u32,
}

impl Window {
    fn left(&self, now: Millis, most: u32) -> Result<(), Millis> {
        let ends = self.since.saturating_add(HOUR);
        if self.count >= most && now < ends { Err(ends - now) } else { Ok(()) }
    }

    fn add(&mut self, now: Millis) {
        if self.count == 0 || now >= self.since.saturating_add(HOUR) || now < self.since {
            *self = Window { since: now, count: 0 };
        }
        self.count = self.count.saturating_add(1);
    }
}

impl CodeGuard {
    pub fn new(limits: WrongCodes) -> CodeGuard {
        CodeGuard { limits, seen: Mutex::default() }
    }

    /// Whether another code is looked at; if not, for how long.
    pub fn may_try(&self, account: AccountId, address: Option<IpAddr>, now: Millis) -> Result<(), Millis> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.all.left(now, self.limits.all)?;
        seen.accounts.get(&account).map_or(Ok(()), |window| window.left(now, self.limits.account))?;
        let address = address.map(block);
        address.and_then(|ip| seen.addresses.get(&ip)).map_or(Ok(()), |window| window.left(now, self.limits.address))
    }

    pub fn was_wrong(&self, account: AccountId, address: Option<IpAddr>, now: Millis) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.all.add(now);
        count(&mut seen.accounts, account, now);
        if let Some(address) = address {
            count(&mut seen.addresses, block(address), now);
        }
    }
}

/// Whoever has one address of a network of version 6 has all of the network.
fn block(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) => IpAddr::V6((u128::from(v6) >> 64 << 64).into()),
        v4 => v4,
    }
}

fn count<K: Eq + Hash + Copy>(map: &mut HashMap<K, Window>, who: K, now: Millis) {
    if map.len() >= REMEMBERED && !map.contains_key(&who) {
        map.retain(|_, window| now < window.since.saturating_add(HOUR));
        if map.len() >= REMEMBERED
            && let Some(oldest) = map.iter().min_by_key(|(_, window)| window.since).map(|(who, _)| *who)
        {
            map.remove(&oldest);
        }
    }
    map.entry(who).or_default().add(now);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(n: u8) -> String {
        new_code(|bytes| bytes.iter_mut().zip(n..).for_each(|(byte, value)| *byte = value.wrapping_mul(37)))
    }

    #[test]
    fn a_code_is_read_as_people_write_it() {
        let one = code(3);
        assert_eq!(one.len(), 27 + 4);
        let hash = read(&one).expect("a code");
        let loose = one.to_ascii_lowercase().replace('-', " ").replace('0', "o").replace('1', "l");
        assert_eq!(read(&loose), Some(hash));
        assert_ne!(read(&code(4)), Some(hash));
        for wrong in ["", "ABC", &one[1..], &format!("{one}0"), &"0".repeat(1_000), "ÄÖÜ"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    /// Every single letter that is another one is noticed before anybody is asked.
    #[test]
    fn a_wrong_letter_is_noticed() {
        let one: Vec<u8> = code(9).bytes().filter(|b| *b != b'-').collect();
        for place in 0..one.len() {
            for letter in ALPHABET {
                let mut other = one.clone();
                other[place] = *letter;
                let text = String::from_utf8(other).expect("letters");
                assert_eq!(read(&text).is_some(), *letter == one[place], "{text}");
            }
        }
    }

    #[test]
    fn guessing_has_an_end_and_an_end_of_that() {
        let guard = CodeGuard::new(WrongCodes { account: 3, address: 5, all: 9 });
        let (one, two) = (AccountId([1; 16]), AccountId([2; 16]));
        let here: IpAddr = "2001:db8::1".parse().expect("an address");
        let near: IpAddr = "2001:db8::ffff".parse().expect("an address");
        for _ in 0..3 {
            assert!(guard.may_try(one, Some(here), 1_000).is_ok());
            guard.was_wrong(one, Some(here), 1_000);
        }
        assert_eq!(guard.may_try(one, None, 1_000), Err(HOUR));
        assert!(guard.may_try(two, Some(near), 1_000).is_ok());
        for _ in 0..2 {
            guard.was_wrong(two, Some(near), 1_000);
        }
        assert!(guard.may_try(AccountId([3; 16]), Some(here), 1_000).is_err(), "the same network");
        for _ in 0..4 {
            guard.was_wrong(AccountId([4; 16]), None, 1_000);
        }
        assert!(guard.may_try(AccountId([5; 16]), None, 1_000).is_err(), "all together");
        assert!(guard.may_try(one, Some(here), 1_000 + HOUR).is_ok(), "an hour later");
    }

    #[test]
    fn what_is_remembered_has_a_bound() {
        let guard = CodeGuard::new(WrongCodes { account: 3, address: 5, all: u32::MAX });
        for n in 0..30_000u128 {
            guard.was_wrong(AccountId(n.to_be_bytes()), None, 1);
        }
        assert_eq!(guard.seen.lock().expect("ours").accounts.len(), REMEMBERED);
    }
}
