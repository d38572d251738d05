//! From counters to money: which counter is charged under which face, by what the model is billed
//! by. The gateway charges with it and the audit recomputes with it, so the two cannot differ.
//! Also: which frozen prices the database has already.
//!
//! | billed by | charged | shown only |
//! |---|---|---|
//! | tokens | all token counters; `calls` where the price has `per_call`; tools that have a price, by the use | `seconds` |
//! | characters | `input` (characters); generated speech (`output`, `audio_output`) at rate zero | the rest |
//! | audio_duration | `seconds`, each 50/3 tokens, under `input`; the transcript (`output`) at rate zero | `audio_input`, the tokens the seconds are shown as; the rest |
//! | per_call | `calls`; tools that have a price, by the use | the rest |
//! | per_second | `seconds`; `calls` where the price has `per_call` | the rest |

use std::collections::HashSet;
use std::hash::BuildHasherDefault;
use std::sync::RwLock;

use tollgate_catalog::{BillingUnit, Face, Money, Price, Quantities, Uncharged};

use crate::call::counters::{Counter, Counters};
use crate::ids::LastBytes;

impl Counters {
    /// The charge at this price: the only sum there is. The gateway charges with it and the audit
    /// recomputes with it.
    pub fn charge(&self, price: &Price) -> Result<Money, Uncharged> {
        price.charge(&self.quantities(price)?)
    }

    /// The quantities this price charges for; what else was counted is shown and not charged. Where
    /// nothing of what was used is charged, all of it is passed on, and the price refuses it: used
    /// is never free by accident.
    pub fn quantities(&self, price: &Price) -> Result<Quantities, Uncharged> {
        let mut used = self.by_face(price.unit)?;
        let charges = |face| price.unit.charges(face) && price.faces.has(face);
        if used.iter().any(|(face, _)| charges(face)) {
            for face in Face::ALL {
                if used[face] != 0 && !charges(face) {
                    used[face] = 0;
                }
            }
        }
        Ok(used)
    }

    /// Every counter under the face it belongs to.
    fn by_face(&self, unit: BillingUnit) -> Result<Quantities, Uncharged> {
        let mut used = Quantities::NONE;
        // Most are zero.
        for counter in Counter::ALL.into_iter().filter(|counter| self[*counter] != 0) {
            // The database keeps 63 bits.
            if i64::try_from(self[counter]).is_err() {
                return Err(Uncharged::Overflow);
            }
            let sum = used[counter.face()].checked_add(self[counter]);
            used[counter.face()] = sum.ok_or(Uncharged::Overflow)?;
        }
        for (tool, uses) in self.tools.iter() {
            used[tool] = uses;
        }
        if unit == BillingUnit::AudioDuration {
            // A recording is charged by its seconds; the tokens they are shown as are not charged
            // again.
            used[Face::Input] = self.seconds;
            used[Face::VideoSecond] = 0;
        }
        Ok(used)
    }
}

/// Prices known to be in the database, so that each is written once and journalled only until then.
/// Their ids are halves of hashes, so the last bytes of these are as random as those of other ids.
#[derive(Default)]
pub(crate) struct KnownPrices(RwLock<HashSet<[u8; 16], BuildHasherDefault<LastBytes>>>);

impl KnownPrices {
    pub fn has(&self, id: &[u8; 16]) -> bool {
        self.0.read().unwrap_or_else(|e| e.into_inner()).contains(id)
    }

    pub fn add(&self, ids: impl IntoIterator<Item = [u8; 16]>) {
        self.0.write().unwrap_or_else(|e| e.into_inner()).extend(ids);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use serde_json::json;
    use tollgate_catalog::Uses;

    fn price(unit: &str, faces: serde_json::Value) -> Price {
        serde_json::from_value(json!({
            "model": "m", "version": "v", "tier": null, "group": "default", "paid": false,
            "unit": unit, "faces": faces, "multiplier": "1",
        }))
        .expect("a price")
    }

    #[test]
    fn a_price_is_known_once_it_was_added() {
        let known = KnownPrices::default();
        assert!(!known.has(&[1; 16]));
        known.add([[1; 16], [2; 16]]);
        assert!(known.has(&[1; 16]) && known.has(&[2; 16]) && !known.has(&[3; 16]));
    }

    /// `face=quantity` of what is charged, or why not.
    fn charged(counters: &Counters, price: &Price) -> String {
        match counters.quantities(price).and_then(|used| price.charge(&used).map(|charge| (used, charge))) {
            Ok((used, charge)) => {
                let faces: Vec<String> = used.iter().map(|(face, n)| format!("{}={n}", face.name())).collect();
                format!("{} {charge}", faces.join(" "))
            }
            Err(why) => why.to_string(),
        }
    }

    #[test]
    fn a_modality_says_what_it_used_and_the_unit_decides_what_is_charged() {
        let tokens = price("tokens", json!({"input": 1_000_000, "output": 2_000_000, "audio_output": 3_000_000}));
        let surcharge = price("tokens", json!({"input": 1_000_000, "output": 2_000_000, "per_call": 500}));
        let characters = price("characters", json!({"input": 15_000_000, "output": 0, "audio_output": 0}));
        let duration = price("audio_duration", json!({"input": 6_000_000, "output": 0}));
        let per_call = price("per_call", json!({"per_call": 40_000}));
        let per_second = price("per_second", json!({"video_second": 100_000}));
        let tool = price(
            "tokens",
            json!({"input": 1_000_000, "output": 2_000_000, "tool:web_search": 10_000, "tool:maps": 0}),
        );
        let searched = Counters {
            input: 10,
            calls: 1,
            tools: Uses::NONE.with(Face::WebSearch, 2).with(Face::Maps, 1).with(Face::Mcp, 9),
            ..Counters::default()
        };
        let chat = Counters { input: 10, output: 3, reasoning: 2, calls: 1, ..Counters::default() };
        let speech = Counters::speech("Hello, world!", Duration::from_millis(1_500)).expect("counted");
        let recording = Counters::recording(Duration::from_millis(60_001)).expect("counted");
        for (counters, price, want) in [
            (chat, &tokens, "input=10 output=5 0.00002"),
            (chat, &surcharge, "input=10 output=5 per_call=1 0.00052"),
            (chat, &per_call, "per_call=1 0.04"),
            (Counters::images(4), &per_call, "per_call=4 0.16"),
            (Counters::video(5), &per_second, "video_second=5 0.5"),
            (Counters::video(5), &per_call, "per_call=1 0.04"),
            (speech, &characters, "input=13 audio_output=34 0.000195"),
            (speech, &tokens, "input=13 audio_output=34 0.000115"),
            (speech, &per_call, "per_call=1 0.04"),
            // 61 seconds at 50/3 tokens each, exactly; the 1,017 tokens shown are not charged a
            // second time.
            (recording, &duration, "input=61 0.0061"),
            (recording, &per_call, "per_call=1 0.04"),
            // What has no price was not asked for: shown only.
            (searched, &tool, "input=10 tool:web_search=2 tool:maps=1 0.02001"),
            (Counters::default(), &tokens, " 0"),
        ] {
            assert_eq!(charged(&counters, price), want, "{counters:?} by {}", price.unit.name());
        }
        assert_eq!(recording.audio_input, 1_017);
        assert_eq!(Counters::images(4).input, 1, "one prompt token as an accounting entry");
    }

    #[test]
    fn what_was_used_is_never_free_because_the_model_charges_for_something_else() {
        let tokens = price("tokens", json!({"input": 1, "output": 1}));
        let per_call = price("per_call", json!({"per_call": 1}));
        let duration = price("audio_duration", json!({"input": 1, "output": 0}));
        for (counters, price, why) in [
            (Counters::video(5), &tokens, "the model has no price for per_call"),
            (Counters { calls: 0, ..Counters::video(5) }, &tokens, "the model has no price for video_second"),
            (Counters { input: 7, ..Counters::default() }, &per_call, "the model has no price for input"),
            (Counters { audio_input: 7, ..Counters::default() }, &duration, "the model has no price for audio_input"),
        ] {
            assert_eq!(charged(&counters, price), why);
        }
    }

    #[test]
    fn counters_that_cannot_be_stored_are_refused() {
        let price = price("tokens", json!({"input": 0, "output": 0}));
        let most = i64::MAX.unsigned_abs();
        let ok = Counters { input: most, output: most, reasoning: most, ..Counters::default() };
        assert_eq!(ok.charge(&price), Ok(Money::ZERO));
        assert_eq!(Counters { input: most + 1, ..ok }.charge(&price), Err(Uncharged::Overflow));
        assert!(Counters::recording(Duration::MAX).is_none());
        assert!(Counters::speech("a", Duration::from_secs(u64::MAX)).is_none());
    }
}
