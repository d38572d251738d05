//! How fast a client may send. What comes faster is not refused: it is read later, and the client
//! feels that its socket is full.

use crate::settings::RealtimeSettings;
use tokio::time::Instant;

/// Seconds' worth that may come at once.
const BURST: f64 = 20.0;

pub struct ClientPace {
    bytes: Bucket,
    events: Bucket,
}

struct Bucket {
    per_second: f64,
    most: f64,
    left: f64,
    at: Instant,
}

impl Bucket {
    fn new(per_second: u64, least: u64, now: Instant) -> Bucket {
        let per_second = per_second.max(1) as f64;
        let most = (per_second * BURST).max(least as f64);
        Bucket { per_second, most, left: most, at: now }
    }

    fn take(&mut self, amount: f64, now: Instant) {
        let since = now.duration_since(self.at).as_secs_f64();
        self.left = (self.left + since * self.per_second).min(self.most) - amount;
        self.at = now;
    }

    /// When there is something again.
    fn free_at(&self) -> Option<Instant> {
        (self.left < 0.0).then(|| self.at + std::time::Duration::from_secs_f64(-self.left / self.per_second))
    }
}

impl ClientPace {
    pub fn new(settings: &RealtimeSettings, now: Instant) -> ClientPace {
        let largest = settings.message_bytes as u64;
        ClientPace {
            bytes: Bucket::new(settings.bytes_per_second, largest, now),
            events: Bucket::new(settings.events_per_second, 1, now),
        }
    }

    /// One more message. If it was too fast: when the next may be read.
    pub fn came(&mut self, bytes: usize, now: Instant) -> Option<Instant> {
        self.bytes.take(bytes as f64, now);
        self.events.take(1.0, now);
        self.bytes.free_at().max(self.events.free_at())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_burst_is_read_at_once_and_the_rest_later() {
        let now = Instant::now();
        let settings = RealtimeSettings { events_per_second: 10, ..RealtimeSettings::default() };
        let mut pace = ClientPace::new(&settings, now);
        for at in 0..200 {
            assert_eq!(pace.came(100, now), None, "{at}");
        }
        let later = pace.came(100, now).expect("a wait");
        assert_eq!(later - now, Duration::from_millis(100));
        assert_eq!(pace.came(100, now + Duration::from_secs(5)), None);
        let mut large = ClientPace::new(&RealtimeSettings::default(), now);
        assert_eq!(large.came(24 << 20, now), None, "the largest message is no burst");
        assert!(large.came(24 << 20, now).is_some());
    }
}
