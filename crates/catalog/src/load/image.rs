//! The `image` table of a model.

use crate::form::Form;
use crate::{Book, ImageTable};
use std::ops::RangeInclusive;
use std::time::Duration;

/// How long a maker may be waited for.
const TIMES: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(3_600);
/// Pictures of one call, whatever a maker takes.
const MOST: u64 = 100;

pub(super) fn read<'b>(form: &mut Form<'_>, books: impl Iterator<Item = &'b Book>, offered: bool) -> ImageTable {
    let usual = ImageTable::default();
    let books: Vec<&Book> = books.collect();
    let by = |parameter: &str| books.iter().any(|book| book.tiers_by(parameter).next().is_some());
    let (by_size, by_quality) = (by("size") || by("resolution"), by("quality"));
    let Some(mut table) = form.opt_table("image") else {
        if offered && (by_size || by_quality) {
            form.mistake(
                "image",
                "is missing: prices go by size or quality, so name `default_size`, `default_quality`",
            );
        }
        return usual;
    };
    let image = ImageTable {
        api: table.text_or("api", ""),
        most: table.opt_int("most", 1..=MOST),
        default_size: table.opt_text("default_size"),
        sizes: table.texts("sizes"),
        default_quality: table.opt_text("default_quality"),
        qualities: table.texts("qualities"),
        base64_only: table.flag_or("base64_only", false),
        sends_format: table.flag_or("sends_format", usual.sends_format),
        partial_images: table.flag_or("partial_images", false),
        streams: table.flag_or("streams", false),
        edit_images: table.int_or("edit_images", usual.edit_images, 0..=16),
        masks: table.flag_or("masks", false),
        prompt_characters: table.int_or("prompt_characters", usual.prompt_characters, 1..=32_000),
        time: table.opt_duration("time"),
        one_price: table.texts("one_price"),
        place: Some(table.place()),
    };
    if image.time.is_some_and(|time| !TIMES.contains(&time)) {
        table.mistake("time", "must be from a second to an hour");
    }
    if image.base64_only && image.sends_format && table.has("sends_format") {
        table.mistake("sends_format", "is of no use where the maker hands over base64 only");
    }
    if image.partial_images && !image.streams {
        table.mistake("partial_images", "needs `streams = true`: previews come in a stream only");
    }
    if by_size && image.default_size.is_none() {
        table.mistake("default_size", "is missing: prices go by the size, so what callers leave out must have one");
    }
    if by_quality && image.default_quality.is_none() {
        table.mistake(
            "default_quality",
            "is missing: prices go by the quality, so what callers leave out must have one",
        );
    }
    table.finish();
    image
}
