//! The `transcription` table of a model.

use crate::TranscriptionTable;
use crate::form::Form;

pub(super) fn read(form: &mut Form<'_>) -> Option<TranscriptionTable> {
    let mut table = form.opt_table("transcription")?;
    let read = TranscriptionTable {
        response_formats: table.texts("response_formats"),
        max_bytes: table.opt_size("max_bytes"),
        wav_16_bit: table.flag_or("wav_16_bit", false),
        stream: table.flag_or("stream", false),
        translations: table.flag_or("translations", false),
        place: table.place(),
    };
    if read.max_bytes == Some(0) {
        table.mistake("max_bytes", "takes no recording at all");
    }
    table.finish();
    Some(read)
}
