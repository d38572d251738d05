//! The `music` table of a model.

use crate::form::Form;
use crate::{MUSIC_FORMATS, MusicTable};

const MOST_TEXT: u64 = 60_000;
const SECONDS: std::ops::RangeInclusive<u64> = 1..=3_600;

pub(super) fn read(form: &mut Form<'_>) -> Option<MusicTable> {
    let mut table = form.opt_table("music")?;
    let place = table.place();
    let formats = table.words("formats", MUSIC_FORMATS);
    if formats.is_empty() {
        table.mistake("formats", "is missing: name the formats that the model has");
    }
    let seconds = table.opt_ints("seconds", SECONDS).and_then(|range| match range[..] {
        [least, most] if least <= most => Some((least, most)),
        _ => {
            table.mistake("seconds", "is the least and the most, for example [3, 600]");
            None
        }
    });
    let read = MusicTable {
        formats,
        max_prompt: table.int("max_prompt", 1..=MOST_TEXT),
        max_lyrics: table.opt_int("max_lyrics", 1..=MOST_TEXT),
        instrumental: table.flag_or("instrumental", false),
        seconds,
        links: table.flag_or("links", false),
        place,
    };
    table.finish();
    Some(read)
}
