//! Speech and songs priced by the ten thousand, against a sum that is plainly right.

use proptest::prelude::*;
use serde_json::json;
use std::time::Duration;
use tollgate_catalog::Price;
use tollgate_store::Counters;

fn price(unit: &str, face: &str, micro: i64) -> Price {
    let faces = if unit == "characters" {
        json!({ face: micro, "output": 0, "audio_output": 0 })
    } else {
        json!({ face: micro })
    };
    let price = json!({
        "model": "m", "version": "v", "tier": null, "group": "default", "paid": false,
        "unit": unit, "faces": faces, "multiplier": "1",
    });
    serde_json::from_value(price).expect("a price")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, ..ProptestConfig::default() })]

    /// Each character costs its price whatever the script, and the audio nothing, however long.
    #[test]
    fn ten_thousand_texts_cost_their_characters(text in "\\PC{1,60}", micro in 0..200_000_000i64, ms in 0..600_000u64) {
        let characters = i64::try_from(text.chars().count()).expect("few");
        let used = Counters::speech(&text, Duration::from_millis(ms)).expect("counted");
        let charge = used.charge(&price("characters", "input", micro)).expect("a charge");
        // Micro-USD a million are thousandths of a nano-USD each, rounded up once.
        prop_assert_eq!(charge.nano(), (characters * micro + 999) / 1_000);
        let held = Counters::speech(&text, Duration::ZERO).expect("counted");
        prop_assert_eq!(held.charge(&price("characters", "input", micro)).expect("a charge"), charge);
        let seconds = if ms == 0 { 0 } else { ms.div_ceil(1_000) };
        prop_assert_eq!(used.audio_output, (seconds * 50).div_ceil(3));
    }

    #[test]
    fn ten_thousand_songs_cost_their_seconds_or_one_price(seconds in 1..3_600u64, micro in 0..1_000_000i64) {
        let used = Counters::song(seconds).expect("counted");
        let by_second = used.charge(&price("per_second", "video_second", micro)).map_err(|why| why.to_string());
        let expected = i64::try_from(seconds).expect("few") * micro * 1_000;
        prop_assert_eq!(by_second.map(|charge| charge.nano()), Ok(expected));
        let song = Counters { seconds: 0, ..used };
        prop_assert_eq!(song.charge(&price("per_call", "per_call", micro)).expect("a charge").nano(), micro * 1_000);
    }
}
