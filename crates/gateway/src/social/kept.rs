//! Answers that came after their client had left. The source bills them; so the same question of the same account is answered
//! with them for a minute, and charged then. Kept by each replica for itself, within bounds.

use crate::world::Millis;
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use tollgate_store::AccountId;

/// Who asks, and what.
pub type Question = (AccountId, [u8; 32]);

const KEPT_FOR: Millis = 60_000;
/// Bytes of all kept answers together; beyond, a new one is not kept.
const MOST: usize = 64 << 20;

#[derive(Clone, Default)]
pub struct Kept(Arc<Mutex<HashMap<Question, Slot>>>);

enum Slot {
    /// On its way; the channel closes when it is here or will not come.
    Coming(watch::Receiver<()>),
    Here {
        answer: Bytes,
        until: Millis,
    },
}

/// The answer to a question is on its way. Dropped without one, nobody waits for it any longer.
pub struct Coming {
    kept: Kept,
    question: Question,
    _done: watch::Sender<()>,
}

impl Kept {
    fn slots(&self) -> MutexGuard<'_, HashMap<Question, Slot>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The client has left, the answer has not come yet.
    pub fn coming(&self, question: Question) -> Coming {
        let (done, waiting) = watch::channel(());
        self.slots().insert(question, Slot::Coming(waiting));
        Coming { kept: self.clone(), question, _done: done }
    }

    /// The kept answer, which is taken; one that is on its way is waited for.
    pub async fn take(&self, question: &Question, now: impl Fn() -> Millis) -> Option<Bytes> {
        loop {
            let mut waiting = {
                let mut slots = self.slots();
                match slots.get(question)? {
                    Slot::Coming(waiting) => waiting.clone(),
                    Slot::Here { .. } => {
                        let Some(Slot::Here { answer, until }) = slots.remove(question) else { return None };
                        return (until > now()).then_some(answer);
                    }
                }
            };
            // Nothing is ever sent: the channel closes.
            let _ = waiting.changed().await;
        }
    }

    /// Forgets what is past its time.
    pub fn forget(&self, now: Millis) {
        self.slots().retain(|_, slot| !matches!(slot, Slot::Here { until, .. } if *until <= now));
    }
}

impl Coming {
    pub fn came(self, answer: Bytes, now: Millis) {
        self.kept.forget(now);
        let mut slots = self.kept.slots();
        let held: usize =
            slots.values().map(|slot| if let Slot::Here { answer, .. } = slot { answer.len() } else { 0 }).sum();
        if held + answer.len() <= MOST {
            slots.insert(self.question, Slot::Here { answer, until: now + KEPT_FOR });
        }
    }
}

impl Drop for Coming {
    fn drop(&mut self) {
        let mut slots = self.kept.slots();
        if matches!(slots.get(&self.question), Some(Slot::Coming(_))) {
            slots.remove(&self.question);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const ONE: Question = (AccountId([1; 16]), [1; 32]);

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_kept_for_a_minute_for_whoever_asked() {
        let kept = Kept::default();
        assert!(kept.take(&ONE, || 0).await.is_none());
        kept.coming(ONE).came(Bytes::from_static(b"x"), 1_000);
        assert!(kept.take(&(AccountId([2; 16]), [1; 32]), || 1_000).await.is_none(), "another account");
        assert_eq!(kept.take(&ONE, || 60_999).await.as_deref(), Some(&b"x"[..]));
        assert!(kept.take(&ONE, || 60_999).await.is_none(), "once");
        kept.coming(ONE).came(Bytes::from_static(b"x"), 1_000);
        assert!(kept.take(&ONE, || 61_000).await.is_none(), "too late");
        kept.coming(ONE).came(Bytes::from(vec![0; MOST + 1]), 1_000);
        assert!(kept.take(&ONE, || 1_000).await.is_none(), "too large");
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_on_its_way_is_waited_for() {
        let kept = Kept::default();
        let coming = kept.coming(ONE);
        let waiting = kept.take(&ONE, || 0);
        tokio::pin!(waiting);
        assert!(tokio::time::timeout(Duration::from_millis(10), &mut waiting).await.is_err());
        coming.came(Bytes::from_static(b"x"), 0);
        assert_eq!(waiting.await.as_deref(), Some(&b"x"[..]));
        let coming = kept.coming(ONE);
        drop(coming);
        assert!(kept.take(&ONE, || 0).await.is_none(), "it will not come");
    }
}
