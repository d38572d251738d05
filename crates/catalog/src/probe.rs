//! How long a route may be without traffic before the gateway asks by itself whether it answers:
//! written of a route, of a provider, or of all of them.

use std::time::Duration;

use crate::form::Form;

/// Figures of other replicas are up to two minutes old: whoever asks more often asks twice.
const SHORTEST: Duration = Duration::from_secs(5 * 60);
/// Nothing remembers for longer that a route was asked.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3_600);

/// The time under this key; zero: never.
pub fn probe_every(form: &mut Form<'_>, key: &str) -> Option<Duration> {
    let every = form.opt_duration(key)?;
    if !every.is_zero() && !(SHORTEST..=LONGEST).contains(&every) {
        form.mistake(key, "must be 5 minutes at least and 168 hours at most, or 0: never");
    }
    Some(every)
}
