//! The `when` list of a tier.

use std::sync::LazyLock;

use jiff::tz::TimeZoneDatabase;

use crate::Condition;
use crate::condition::{Hours, Weekdays};
use crate::form::{Form, did_you_mean};
use crate::zone::Zone;

/// Compiled in, and read once: a large catalog names the same few zones again and again.
static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// Facts of every request that have a short form, `{ thinking = true }` and `{ endpoint = "…" }`.
fn fact(form: &mut Form<'_>) -> Option<Condition> {
    let thinking = form.opt_flag(Condition::THINKING).map(|on| (Condition::THINKING, on.to_string()));
    let endpoint = form.opt_text(Condition::ENDPOINT).map(|name| (Condition::ENDPOINT, name));
    let (path, equals) = match (thinking, endpoint) {
        (Some(_), Some(_)) => {
            form.mistake_here("is two conditions: write each in braces of its own");
            return None;
        }
        (one, other) => one.or(other)?,
    };
    Some(Condition::Attribute { path: path.to_owned(), equals })
}

pub(super) fn condition(mut form: Form<'_>) -> Option<Condition> {
    if !form.has("dim") && (form.has(Condition::THINKING) || form.has(Condition::ENDPOINT)) {
        let fact = fact(&mut form);
        form.finish();
        return fact;
    }
    let kinds = [("context_len", 0), ("request_attr", 1), ("wall_clock", 2)];
    let condition = match form.choice("dim", &kinds) {
        Some(0) => Some(Condition::ContextOver(form.int("context_len_gt", 0..=1_000_000_000))),
        Some(1) => Some(Condition::Attribute { path: form.text("path"), equals: form.plain("equals") }),
        Some(_) => wall_clock(&mut form),
        None => {
            // Which keys belong here is anybody's guess.
            form.ignore_rest();
            return None;
        }
    };
    form.finish();
    condition
}

fn wall_clock(form: &mut Form<'_>) -> Option<Condition> {
    let days: Option<Vec<u8>> = form.opt_ints("weekdays", 1..=7);
    let hours: Option<Vec<u8>> = form.opt_ints("hours", 0..=23);
    if !form.has("weekdays") && !form.has("hours") {
        form.mistake_here("a wall_clock condition needs weekdays, hours or both");
    }
    for (key, list) in [("weekdays", &days), ("hours", &hours)] {
        if list.as_ref().is_some_and(Vec::is_empty) {
            form.mistake(key, "must not be empty: leave it out to mean any");
        }
    }
    let name = form.text("timezone");
    if name.is_empty() {
        return None;
    }
    let Ok(zone) = ZONES.get(&name) else {
        let known: Vec<String> = ZONES.available().map(|zone| zone.to_string()).collect();
        let hint = did_you_mean(&name, known.iter().map(String::as_str));
        form.mistake("timezone", format!("{name:?} is not a time zone such as \"Europe/Berlin\"{hint}"));
        return None;
    };
    Some(Condition::WallClock {
        zone: Zone::new(zone),
        weekdays: Weekdays(days.iter().flatten().fold(0, |bits, day| bits | 1 << day)),
        hours: Hours(hours.iter().flatten().fold(0, |bits, hour| bits | 1 << hour)),
    })
}
