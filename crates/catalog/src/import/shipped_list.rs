//! What `catalog list` and `GET /api/admin/catalog/shipped` say of the models that come with the
//! product.

use super::{Glob, ListedModel, ShippedFile, shipped, shipped_names};
use crate::{Face, Money};
use serde_json::{Value, json};

/// A price that was looked up longer ago than so many days is stale, unless it is said otherwise.
pub const STALE_DAYS: u32 = 90;

/// How many models there are of each provider.
pub fn shipped_overview(now_ms: i64, stale_after: u32) -> Result<Vec<Value>, String> {
    let files = shipped_names().map(shipped).collect::<Result<Vec<_>, _>>()?;
    let row = |file: &ShippedFile| {
        let stale = file.models.iter().filter(|model| is_stale(&model.verified_at, now_ms, stale_after)).count();
        json!({
            "provider": file.provider, "models": file.models.len(), "verified_at": file.verified_at,
            "stale": stale, "source": file.source,
        })
    };
    Ok(files.iter().map(row).collect())
}

impl ShippedFile {
    /// Its models with their list prices; of some names only, where there are any.
    pub fn rows(&self, only: &[Glob], now_ms: i64, stale_after: u32) -> Vec<Value> {
        let asked = |model: &&ListedModel| only.is_empty() || only.iter().any(|glob| glob.matches(&model.name));
        let row = |model: &ListedModel| {
            let price = |face: Face| model.list.get(face).map(usd);
            let other = model.list.iter().find(|(face, _)| matches!(face, Face::PerCall | Face::VideoSecond));
            let unverified: Vec<&str> = model.unverified.iter().map(|face| face.name()).collect();
            json!({
                "model": model.name, "context": model.facts.get("context_window").and_then(|one| one.as_integer()),
                "input_usd": price(Face::Input).or_else(|| other.map(|(_, micro)| usd(micro))),
                "output_usd": price(Face::Output), "cache_read_usd": price(Face::CacheRead),
                "unverified": unverified, "list": model.list, "verified_at": model.verified_at,
                "stale": is_stale(&model.verified_at, now_ms, stale_after),
            })
        };
        self.models.iter().filter(asked).map(row).collect()
    }
}

fn usd(micro: u64) -> String {
    Money::from_nano(i64::try_from(micro).unwrap_or(i64::MAX).saturating_mul(1_000)).to_string()
}

/// Whether a day such as 2026-01-15 is longer ago than this; what is no day is stale.
fn is_stale(day: &str, now_ms: i64, most_days: u32) -> bool {
    let begins = || {
        let day: jiff::civil::Date = day.parse().ok()?;
        Some(day.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_millisecond())
    };
    begins().is_none_or(|at| (now_ms - at).div_euclid(86_400_000) > i64::from(most_days))
}

#[cfg(test)]
mod tests {
    use super::is_stale;

    #[test]
    fn a_price_is_stale_after_so_many_days() {
        let noon = 1_794_916_800_000; // 2026-11-17 12:00 UTC
        for (day, most, stale) in [
            ("2026-11-17", 0, false),
            ("2026-11-16", 0, true),
            ("2026-08-19", 90, false),
            ("2026-08-18", 90, true),
            ("2027-01-01", 90, false),
            ("once", 90, true),
        ] {
            assert_eq!(is_stale(day, noon, most), stale, "{day}");
        }
    }
}
