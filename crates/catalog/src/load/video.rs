//! The `video` table of a model.

use std::collections::BTreeMap;

use crate::VideoTable;
use crate::form::Form;

pub(super) fn read(form: &mut Form<'_>) -> Option<VideoTable> {
    let mut table = form.opt_table("video")?;
    let place = table.place();
    let variant = table.text("variant");
    let mut sold = BTreeMap::new();
    if let Some(mut lists) = table.opt_table("sold") {
        let names: Vec<String> = lists.keys().map(str::to_owned).collect();
        for name in names {
            let values = lists.texts(&name);
            if values.is_empty() {
                lists.mistake(&name, "sells nothing: name the values, or leave it out for all that the variant sells");
            }
            sold.insert(name, values);
        }
        lists.finish();
    }
    let one_price = table.texts("one_price");
    let tier_beside_size = table.flag_or("tier_beside_size", false);
    table.finish();
    Some(VideoTable { variant, sold, one_price, tier_beside_size, place })
}
