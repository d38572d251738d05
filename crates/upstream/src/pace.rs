//! Keeps requests to one route below its rate by letting them wait a little. At most so many begin
//! in any second; who would have to wait longer than the limit is asked to come back instead of
//! standing in line.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

const WINDOW: Duration = Duration::from_secs(1);
/// Routes remembered; idle ones are forgotten when there are more.
const ROUTES: usize = 4_096;

/// The beginnings of the last second, per route.
#[derive(Debug, Default)]
pub struct Pace {
    routes: Mutex<HashMap<String, VecDeque<Instant>>>,
}

/// The line is too long; seconds after which it will not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy(pub Duration);

impl Pace {
    /// Waits for a turn on this route: `per_second` turns in any second, waiting at most
    /// `patience`.
    pub async fn turn(&self, route: &str, per_second: usize, patience: Duration) -> Result<(), Busy> {
        let at = self.book(route, per_second, patience)?;
        tokio::time::sleep_until(at).await;
        Ok(())
    }

    fn book(&self, route: &str, per_second: usize, patience: Duration) -> Result<Instant, Busy> {
        let now = Instant::now();
        if per_second == 0 {
            return Ok(now);
        }
        let mut routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        if routes.len() >= ROUTES {
            routes.retain(|_, turns| turns.back().is_some_and(|last| *last + WINDOW > now));
        }
        let turns = routes.entry(route.to_owned()).or_default();
        while turns.len() > per_second {
            turns.pop_front();
        }
        let at = match turns.front() {
            Some(first) if turns.len() == per_second => now.max(*first + WINDOW),
            _ => now.max(turns.back().copied().unwrap_or(now)),
        };
        if at > now + patience {
            return Err(Busy(at - now));
        }
        turns.push_back(at);
        if turns.len() > per_second {
            turns.pop_front();
        }
        Ok(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn never_more_than_ten_in_any_second_and_nobody_waits_long() {
        let pace = Pace::default();
        let began = Instant::now();
        let patience = Duration::from_millis(2_500);
        let mut turns = Vec::new();
        let mut refused = 0;
        for _ in 0..50 {
            match pace.book("a", 10, patience) {
                Ok(at) => turns.push(at - began),
                Err(busy) => {
                    assert!(busy.0 > patience);
                    refused += 1;
                }
            }
        }
        assert_eq!((turns.len(), refused), (30, 20), "10 at once, 10 after one second, 10 after two");
        for window in turns.windows(11) {
            assert!(window[10] - window[0] >= WINDOW);
        }
        assert!(pace.book("b", 10, patience).is_ok_and(|at| at == began), "another route has its own line");
        assert!(pace.book("a", 0, Duration::ZERO).is_ok(), "no limit");
        tokio::time::advance(Duration::from_secs(4)).await;
        pace.turn("a", 10, Duration::ZERO).await.expect("the line is gone");
    }
}
