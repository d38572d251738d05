//! Passwords. Hashing one takes 19 MiB and tens of milliseconds on purpose, so it is done off the
//! threads that serve, two at a time, and only so many wait: a thousand sign-ins at once are
//! refused, not queued, and delay no stream.
//!
//! An e-mail that nobody has costs the same work as one that somebody has.

use super::common;
use crate::refusal::Refusal;
use argon2::{Algorithm, Argon2, Params, Version};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use tokio::sync::Semaphore;
use tollgate_store::PasswordHash;
use tollgate_wire::error::Code;

/// At once.
const RUNNING: usize = 2;
/// Behind them.
const WAITING: usize = 32;
/// Characters.
pub const SHORTEST: usize = 10;
pub const LONGEST: usize = 200;

/// How passwords are hashed today; what was hashed otherwise is hashed again at the next sign-in.
const TODAY: Cost = Cost { kib: 19 * 1_024, passes: 2, lanes: 1 };
const SALT: usize = 16;
const HASH: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cost {
    kib: u32,
    passes: u32,
    lanes: u32,
}

impl Cost {
    fn text(self) -> String {
        format!("argon2id m={} t={} p={}", self.kib, self.passes, self.lanes)
    }

    fn read(text: &str) -> Option<Cost> {
        let mut words = text.strip_prefix("argon2id ")?.split(' ').map(|word| word.split_once('='));
        let mut next = |name: &str| words.next()??.1.parse().ok().filter(|_| !name.is_empty());
        Some(Cost { kib: next("m")?, passes: next("t")?, lanes: next("p")? })
    }
}

/// Where passwords are hashed.
#[derive(Clone)]
pub struct Passwords(Arc<HashingDesk>);

struct HashingDesk {
    /// Running and waiting.
    places: Semaphore,
    running: Arc<Semaphore>,
    /// Passwords hashed so far.
    runs: AtomicU64,
    now: AtomicUsize,
    most: AtomicUsize,
    refused: AtomicU64,
}

impl Default for Passwords {
    fn default() -> Passwords {
        Passwords(Arc::new(HashingDesk {
            places: Semaphore::new(RUNNING + WAITING),
            running: Arc::new(Semaphore::new(RUNNING)),
            runs: AtomicU64::new(0),
            now: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
        }))
    }
}

/// What became of a password that was compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComparedPassword {
    pub right: bool,
    /// Right, and hashed as passwords were hashed before.
    pub outdated: bool,
}

impl Passwords {
    /// How often one was hashed, the most at once, and how many had no place.
    pub fn figures(&self) -> (u64, usize, u64) {
        let desk = &self.0;
        (desk.runs.load(Ordering::Relaxed), desk.most.load(Ordering::Relaxed), desk.refused.load(Ordering::Relaxed))
    }

    /// A password as it is stored.
    pub async fn hash(&self, password: String, fill: impl FnOnce(&mut [u8])) -> Result<PasswordHash, Refusal> {
        let mut salt = [0; SALT];
        fill(&mut salt);
        let hash = self.run(password, salt.to_vec(), TODAY).await?;
        Ok(PasswordHash { secret: [salt.as_slice(), &hash].concat(), parameters: TODAY.text() })
    }

    /// Whether it is this one. Without one to compare with the work is the same.
    pub async fn compare(&self, password: String, stored: Option<&PasswordHash>) -> Result<ComparedPassword, Refusal> {
        let known = stored.and_then(|one| Some((one.secret.split_at_checked(SALT)?, Cost::read(&one.parameters)?)));
        let ((salt, expected), cost) = known.unwrap_or((([0; SALT].as_slice(), [].as_slice()), TODAY));
        let hash = self.run(password, salt.to_vec(), cost).await?;
        let right = known.is_some() && same(&hash, expected);
        Ok(ComparedPassword { right, outdated: right && cost != TODAY })
    }

    async fn run(&self, password: String, salt: Vec<u8>, cost: Cost) -> Result<Vec<u8>, Refusal> {
        let busy = || Refusal::new(Code::Overloaded, "Too many people sign in at the moment.").after(2);
        let Ok(_place) = self.0.places.try_acquire() else {
            self.0.refused.fetch_add(1, Ordering::Relaxed);
            return Err(busy());
        };
        let turn = self.0.running.clone().acquire_owned().await.map_err(|_| busy())?;
        let desk = self.0.clone();
        let hashing = move || {
            // Held to the end, also when nobody waits any more.
            let _turn = turn;
            desk.runs.fetch_add(1, Ordering::Relaxed);
            let now = desk.now.fetch_add(1, Ordering::Relaxed) + 1;
            desk.most.fetch_max(now, Ordering::Relaxed);
            let hash = hashed(&password, &salt, cost);
            desk.now.fetch_sub(1, Ordering::Relaxed);
            hash
        };
        let hash = tokio::task::spawn_blocking(hashing).await.ok().flatten();
        hash.ok_or_else(|| Refusal::new(Code::Internal, "The password could not be hashed."))
    }
}

fn hashed(password: &str, salt: &[u8], cost: Cost) -> Option<Vec<u8>> {
    let params = Params::new(cost.kib, cost.passes, cost.lanes, Some(HASH)).ok()?;
    let mut out = vec![0; HASH];
    let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    argon.hash_password_into(password.as_bytes(), salt, &mut out).ok()?;
    Some(out)
}

/// In the same time wherever they differ.
pub fn same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |odd, (a, b)| odd | (a ^ b)) == 0
}

/// Whether a password may be taken at all.
pub fn acceptable(field: &str, password: &str, email: &str) -> Result<(), Refusal> {
    let bad = |why: String| Err(Refusal::about(Code::InvalidParameter, field, format!("`{field}` {why}.")));
    let length = password.chars().count();
    if length < SHORTEST {
        return bad(format!("must have {SHORTEST} characters at least"));
    }
    if length > LONGEST {
        return bad(format!("must have {LONGEST} characters at most"));
    }
    if common::is_common(password, email) {
        return bad("is one of those that are tried first; choose another".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_password_is_compared_with_the_cost_it_was_hashed_with() {
        let desk = Passwords::default();
        let stored = desk.hash("a horse and a battery".to_owned(), |salt| salt.fill(3)).await.expect("hashed");
        assert_eq!(stored.parameters, "argon2id m=19456 t=2 p=1");
        let right = desk.compare("a horse and a battery".to_owned(), Some(&stored)).await.expect("compared");
        assert_eq!(right, ComparedPassword { right: true, outdated: false });
        let wrong = desk.compare("a horse and a batter".to_owned(), Some(&stored)).await.expect("compared");
        assert!(!wrong.right);
        let nobody = desk.compare(String::new(), None).await.expect("compared");
        assert!(!nobody.right);
        assert_eq!(desk.figures().0, 4, "each is one run, of an unknown e-mail too");
        let old = Cost { kib: 64, passes: 1, lanes: 1 };
        let hash = hashed("long ago it was short", &[9; SALT], old).expect("hashed");
        let stored = PasswordHash { secret: [[9; SALT].as_slice(), &hash].concat(), parameters: old.text() };
        let compared = desk.compare("long ago it was short".to_owned(), Some(&stored)).await.expect("compared");
        assert_eq!(compared, ComparedPassword { right: true, outdated: true });
    }

    /// On one thread all ask before the first one is done: what has no place is refused at once.
    #[tokio::test]
    async fn a_thousand_at_once_are_two_and_a_queue_of_thirty_two() {
        let desk = Passwords::default();
        let asked = (0..1_000).map(|_| desk.compare("whatever it may be".to_owned(), None));
        let done = futures_util::future::join_all(asked).await;
        let refused = done.iter().filter_map(|one| one.as_ref().err()).collect::<Vec<_>>();
        assert!(refused.iter().all(|why| why.code == Code::Overloaded && why.retry_after == Some(2)));
        let (runs, most, counted) = desk.figures();
        assert_eq!((runs, refused.len(), counted), (34, 966, 966));
        assert!(most <= 2, "{most} at once");
    }

    #[test]
    fn short_and_common_passwords_are_refused() {
        for (password, good) in [
            ("123456789", false),
            ("1234567890", false),
            ("qwertyuiop", false),
            ("Password123!", false),
            ("P@ssw0rd2026", false),
            ("aaaaaaaaaaaa", false),
            ("abcabcabcabc", false),
            ("anna.meier@x", false),
            ("correct horse battery", true),
            ("kupfer-lampe-41", true),
        ] {
            assert_eq!(acceptable("password", password, "anna.meier@example.com").is_ok(), good, "{password}");
        }
        assert!(acceptable("password", &"ä".repeat(201), "").is_err());
    }
}
