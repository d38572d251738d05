//! Answers that came after their client had left. The source bills them; so the same question of
//! the same account is answered with them for a minute, and charged then. Cached by each replica
//! for itself, within bounds. One for which nobody comes in time was billed in vain, which is
//! reported to whoever tidies up.

use crate::world::Millis;
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use tollgate_store::{AccountId, CallId, SocialVain};

/// Who asks, and what.
pub type Question = (AccountId, [u8; 32]);

const CACHED_FOR: Millis = 60_000;
/// Bytes of all cached answers together; beyond, a new one is not cached.
const MOST: usize = 64 << 20;

#[derive(Clone, Default)]
pub struct AnswerCache(Arc<Mutex<Inside>>);

#[derive(Default)]
struct Inside {
    slots: HashMap<Question, Slot>,
    /// Answers that nobody took.
    lost: Vec<(CallId, Question)>,
}

enum Slot {
    /// On its way; the channel closes when it is here or will not come.
    Coming(watch::Receiver<()>),
    Here {
        answer: Bytes,
        until: Millis,
        call: CallId,
    },
}

/// The answer to a question is on its way. Dropped without one, nobody waits for it any longer.
pub struct Coming {
    cache: AnswerCache,
    question: Question,
    _done: watch::Sender<()>,
}

impl Inside {
    /// Puts something in the place of a question; an answer that stood there is lost.
    fn put(&mut self, question: Question, slot: Slot) {
        if let Some(Slot::Here { call, .. }) = self.slots.insert(question, slot) {
            self.lost.push((call, question));
        }
    }

    fn expire(&mut self, now: Millis) {
        let lost = &mut self.lost;
        self.slots.retain(|question, slot| match slot {
            Slot::Here { until, call, .. } if *until <= now => {
                lost.push((*call, *question));
                false
            }
            _ => true,
        });
    }
}

impl AnswerCache {
    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The client has left, the answer has not come yet.
    pub fn coming(&self, question: Question) -> Coming {
        let (done, waiting) = watch::channel(());
        self.inside().put(question, Slot::Coming(waiting));
        Coming { cache: self.clone(), question, _done: done }
    }

    /// The cached answer, which is taken; one that is on its way is waited for.
    pub async fn take(&self, question: &Question, now: impl Fn() -> Millis) -> Option<Bytes> {
        loop {
            let mut waiting = {
                let mut inside = self.inside();
                match inside.slots.get(question)? {
                    Slot::Coming(waiting) => waiting.clone(),
                    Slot::Here { until, .. } if *until <= now() => return None,
                    Slot::Here { .. } => {
                        let Some(Slot::Here { answer, .. }) = inside.slots.remove(question) else { return None };
                        return Some(answer);
                    }
                }
            };
            // Nothing is ever sent: the channel closes.
            let _ = waiting.changed().await;
        }
    }

    /// Forgets what is past its time; the answers that nobody took since the last time.
    pub fn forget(&self, now: Millis) -> Vec<SocialVain> {
        let mut inside = self.inside();
        inside.expire(now);
        let lost = std::mem::take(&mut inside.lost).into_iter();
        lost.map(|(call, (account, question))| SocialVain { call, question, account, at: now, until: now }).collect()
    }
}

impl Coming {
    pub fn came(self, answer: Bytes, call: CallId, now: Millis) {
        let mut inside = self.cache.inside();
        inside.expire(now);
        let held = |slot: &Slot| if let Slot::Here { answer, .. } = slot { answer.len() } else { 0 };
        if inside.slots.values().map(held).sum::<usize>() + answer.len() <= MOST {
            inside.put(self.question, Slot::Here { answer, until: now + CACHED_FOR, call });
        } else {
            inside.lost.push((call, self.question));
        }
    }
}

impl Drop for Coming {
    fn drop(&mut self) {
        let mut inside = self.cache.inside();
        if matches!(inside.slots.get(&self.question), Some(Slot::Coming(_))) {
            inside.slots.remove(&self.question);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const ONE: Question = (AccountId([1; 16]), [1; 32]);

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_cached_for_a_minute_for_whoever_asked() {
        let cache = AnswerCache::default();
        assert!(cache.take(&ONE, || 0).await.is_none());
        cache.coming(ONE).came(Bytes::from_static(b"x"), CallId([1; 16]), 1_000);
        assert!(cache.take(&(AccountId([2; 16]), [1; 32]), || 1_000).await.is_none(), "another account");
        assert_eq!(cache.take(&ONE, || 60_999).await.as_deref(), Some(&b"x"[..]));
        assert!(cache.take(&ONE, || 60_999).await.is_none(), "once");
        assert!(cache.forget(99_000).is_empty(), "it was taken");
        let lost = |now| {
            cache.forget(now).iter().map(|vain| (vain.call.0[0], vain.account, vain.question)).collect::<Vec<_>>()
        };
        cache.coming(ONE).came(Bytes::from_static(b"x"), CallId([2; 16]), 1_000);
        assert!(cache.take(&ONE, || 61_000).await.is_none(), "too late");
        assert!(lost(60_999).is_empty());
        assert_eq!((lost(61_000), lost(61_000)), (vec![(2, ONE.0, ONE.1)], vec![]), "lost, and reported once");
        cache.coming(ONE).came(Bytes::from(vec![0; MOST + 1]), CallId([3; 16]), 1_000);
        assert!(cache.take(&ONE, || 1_000).await.is_none(), "too large");
        assert_eq!(lost(1_000), [(3, ONE.0, ONE.1)]);
        cache.coming(ONE).came(Bytes::from_static(b"x"), CallId([4; 16]), 1_000);
        cache.coming(ONE).came(Bytes::from_static(b"y"), CallId([5; 16]), 1_000);
        assert_eq!(lost(1_000), [(4, ONE.0, ONE.1)], "the newer answer stays");
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_on_its_way_is_waited_for() {
        let cache = AnswerCache::default();
        let coming = cache.coming(ONE);
        let waiting = cache.take(&ONE, || 0);
        tokio::pin!(waiting);
        assert!(tokio::time::timeout(Duration::from_millis(10), &mut waiting).await.is_err());
        coming.came(Bytes::from_static(b"x"), CallId([1; 16]), 0);
        assert_eq!(waiting.await.as_deref(), Some(&b"x"[..]));
        let coming = cache.coming(ONE);
        drop(coming);
        assert!(cache.take(&ONE, || 0).await.is_none(), "it will not come");
    }
}
