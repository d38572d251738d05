//! Who is dead. A replica proves that it lives by changing its row; another takes it for dead when
//! it has looked at that row often enough, for long enough, by its own clock, and it was always the
//! same. No two clocks are ever compared.

use std::collections::HashMap;

type Replica = Vec<u8>;

#[derive(Default)]
pub(super) struct Watch {
    /// The last beat seen, and when it was seen first.
    seen: HashMap<Replica, (i64, i64)>,
    looked_at: Option<i64>,
}

impl Watch {
    /// Takes note of the beats as they are now and says whose have stood still for `silence`
    /// milliseconds.
    pub fn look(&mut self, beats: Vec<(Replica, i64)>, now: i64, silence: i64) -> Vec<Replica> {
        // Whoever was away for long (stopped, suspended, starved) has not watched; the others may
        // have been away with it.
        if self.looked_at.is_some_and(|at| now.saturating_sub(at) > silence / 2) {
            self.seen.clear();
        }
        self.looked_at = Some(now);
        let before = std::mem::take(&mut self.seen);
        let mut dead = Vec::new();
        for (replica, beat) in beats {
            let since = match before.get(&replica) {
                Some((last, since)) if *last == beat => *since,
                _ => now,
            };
            if now.saturating_sub(since) >= silence {
                dead.push(replica.clone());
            }
            self.seen.insert(replica, (beat, since));
        }
        dead
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(watch: &mut Watch, beat: i64, now: i64) -> bool {
        !watch.look(vec![(vec![1], beat)], now, 300).is_empty()
    }

    #[test]
    fn beats_that_go_on_are_life() {
        let mut watch = Watch::default();
        for n in 0..100 {
            assert!(!one(&mut watch, n / 2, n * 100), "a beat every 200");
        }
    }

    #[test]
    fn silence_is_death_after_a_while() {
        let mut watch = Watch::default();
        let verdicts: Vec<bool> = (0..5).map(|n| one(&mut watch, 7, n * 100)).collect();
        assert_eq!(verdicts, [false, false, false, true, true]);
        assert!(!one(&mut watch, 8, 500), "it is back");
    }

    #[test]
    fn who_did_not_look_cannot_judge() {
        let mut watch = Watch::default();
        assert!(!one(&mut watch, 7, 0) && !one(&mut watch, 7, 100));
        assert!(!one(&mut watch, 7, 1_000), "away for 900");
        assert!(!one(&mut watch, 7, 1_100) && !one(&mut watch, 7, 1_200) && one(&mut watch, 7, 1_300));
    }

    #[test]
    fn a_clock_that_goes_back_only_delays() {
        let mut watch = Watch::default();
        assert!(!one(&mut watch, 7, 1_000) && !one(&mut watch, 7, 100));
        assert!(!one(&mut watch, 7, 250));
    }
}
