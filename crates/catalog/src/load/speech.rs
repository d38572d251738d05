//! The `speech` table of a model.

use crate::form::Form;
use crate::{SPEECH_FORMATS, SpeechTable};

/// Longer than any text that a provider speaks in one piece.
const MOST_CHARACTERS: u64 = 1_000_000;
/// Hundredths of the usual speed.
const SPEEDS: std::ops::RangeInclusive<u32> = 1..=1_000;

pub(super) fn read(form: &mut Form<'_>) -> Option<SpeechTable> {
    let mut table = form.opt_table("speech")?;
    let place = table.place();
    let formats = table.words("formats", SPEECH_FORMATS);
    if formats.is_empty() {
        table.mistake("formats", "is missing: name the formats that the model has");
    }
    let written = table.has("made");
    let made = table.words("made", SPEECH_FORMATS);
    let speed = table.opt_ints("speed_percent", SPEEDS).and_then(|range| match range[..] {
        [least, most] if least <= most => Some((least, most)),
        _ => {
            table.mistake("speed_percent", "is the least and the most, for example [25, 400]");
            None
        }
    });
    let read = SpeechTable {
        voices: table.texts("voices"),
        made: if written { made } else { formats.clone() },
        formats,
        max_characters: table.int("max_characters", 1..=MOST_CHARACTERS),
        speed,
        instructions: table.flag_or("instructions", false),
        sample_rate: table.int_or("sample_rate", 24_000, 4_000..=192_000),
        extra: table.texts("extra"),
        place,
    };
    table.finish();
    Some(read)
}
