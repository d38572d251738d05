//! `[realtime]` in tollgate.toml: limits of realtime sessions.

use std::time::Duration;
use tollgate_catalog::form::Form;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RealtimeSettings {
    /// Sessions at once, of one key and of one account, on one replica.
    pub sessions_per_key: usize,
    pub sessions_per_account: usize,
    /// A session in which nothing is said for so long is closed.
    pub idle_time: Duration,
    /// After so long the hold for its next response is given back, until something is said.
    pub hold_time: Duration,
    pub longest: Duration,
    /// The largest message of a client, and of a provider.
    pub message_bytes: usize,
    pub provider_message_bytes: usize,
    /// Output tokens of a response whose session names no limit.
    pub max_output_tokens: u64,
    /// Output tokens that a response is held for at first; the hold grows with it.
    pub first_hold: u64,
    /// What a client may send in a second, in the long run; more is read later.
    pub bytes_per_second: u64,
    pub events_per_second: u64,
    /// Both sides are pinged so often, and are gone when they were not heard for so long.
    pub ping_every: Duration,
    pub silence: Duration,
}

impl Default for RealtimeSettings {
    fn default() -> RealtimeSettings {
        RealtimeSettings {
            sessions_per_key: 256,
            sessions_per_account: 1_024,
            idle_time: Duration::from_secs(10 * 60),
            hold_time: Duration::from_secs(60),
            longest: Duration::from_secs(60 * 60),
            message_bytes: 24 << 20,
            provider_message_bytes: 32 << 20,
            max_output_tokens: 4_096,
            first_hold: 1_024,
            bytes_per_second: 2 << 20,
            events_per_second: 200,
            ping_every: Duration::from_secs(20),
            silence: Duration::from_secs(60),
        }
    }
}

impl RealtimeSettings {
    pub fn read(form: &mut Form<'_>) -> RealtimeSettings {
        let default = RealtimeSettings::default();
        let mut table = form.table("realtime");
        let message = table.size_or("message_bytes", default.message_bytes as u64);
        let provider = table.size_or("provider_message_bytes", default.provider_message_bytes as u64);
        let settings = RealtimeSettings {
            sessions_per_key: table.int_or("sessions_per_key", default.sessions_per_key, 1..=1_000_000),
            sessions_per_account: table.int_or("sessions_per_account", default.sessions_per_account, 1..=1_000_000),
            idle_time: table.duration_or("idle_time", default.idle_time),
            hold_time: table.duration_or("hold_time", default.hold_time),
            longest: table.duration_or("longest", default.longest),
            message_bytes: usize::try_from(message).unwrap_or(usize::MAX),
            provider_message_bytes: usize::try_from(provider).unwrap_or(usize::MAX),
            max_output_tokens: table.int_or("max_output_tokens", default.max_output_tokens, 1..=1_000_000),
            first_hold: table.int_or("first_hold", default.first_hold, 1..=1_000_000),
            bytes_per_second: table.size_or("bytes_per_second", default.bytes_per_second),
            events_per_second: table.int_or("events_per_second", default.events_per_second, 1..=1_000_000),
            ping_every: table.duration_or("ping_every", default.ping_every),
            silence: table.duration_or("silence", default.silence),
        };
        table.finish();
        settings
    }
}
