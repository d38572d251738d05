//! The `embedding` table of a model.

use crate::EmbeddingTable;
use crate::form::Form;

/// No request has more texts.
const MOST: usize = 2_048;

pub(super) fn read(form: &mut Form<'_>) -> EmbeddingTable {
    let Some(mut table) = form.opt_table("embedding") else { return EmbeddingTable::default() };
    let read = EmbeddingTable {
        most_inputs: table.opt_int("most_inputs", 1..=MOST),
        batch: table.opt_int("batch", 1..=MOST),
        floats_only: table.flag_or("floats_only", false),
    };
    table.finish();
    read
}
