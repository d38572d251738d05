//! How often a provider may be asked and how long it remembers, as data.

use std::time::Duration;

/// The manners of one provider's video API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Habits {
    /// Between two polls of one task, before jitter.
    pub poll_every: Duration,
    /// Polls of one account in a second; `None` when the provider names no limit.
    pub polls_per_second: Option<u32>,
    /// How long a task can be asked for. After that it must have been decided.
    pub remembers: Duration,
    /// How long a result link works; `None` when links do not end by themselves.
    pub link_lasts: Option<Duration>,
    /// A lost task can be found again.
    pub finds: bool,
    /// A finished task tells what was counted: one that does not is a fault.
    pub reports: bool,
}

pub(crate) const MINUTE: u64 = 60;
pub(crate) const HOUR: u64 = 60 * MINUTE;
pub(crate) const DAY: u64 = 24 * HOUR;

impl Habits {
    /// How long an open task is waited for: a quarter of an hour, or a minute per second of video,
    /// and never until the provider has forgotten it.
    pub fn patience(&self, seconds: u32) -> Duration {
        let wanted = Duration::from_secs((15 * MINUTE).max(u64::from(seconds) * MINUTE));
        wanted.min(Duration::from_secs(DAY)).min(self.remembers.saturating_sub(Duration::from_secs(HOUR)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORGETFUL: Habits = Habits {
        poll_every: Duration::from_secs(15),
        polls_per_second: Some(20),
        remembers: Duration::from_secs(DAY),
        link_lasts: Some(Duration::from_secs(DAY)),
        finds: false,
        reports: true,
    };
    const LASTING: Habits = Habits { remembers: Duration::from_secs(7 * DAY), ..FORGETFUL };

    #[test]
    fn patience_ends_before_the_provider_forgets() {
        assert_eq!(FORGETFUL.patience(5).as_secs(), 15 * MINUTE);
        assert_eq!(LASTING.patience(30).as_secs(), 30 * MINUTE);
        assert_eq!(FORGETFUL.patience(100_000).as_secs(), 23 * HOUR);
        assert_eq!(LASTING.patience(100_000).as_secs(), DAY);
    }
}
