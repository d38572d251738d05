//! Where the entries of a list stand in an answer, and what tells one from another.

use serde_json::Value;
use tollgate_catalog::load;
use tollgate_catalog::social::SHIPPED;

/// Fields that name a thing, the likeliest first.
const IDS: [&str; 17] = [
    "id",
    "aweme_id",
    "note_id",
    "photo_id",
    "bvid",
    "rpid",
    "comment_id",
    "cid",
    "tweet_id",
    "rest_id",
    "pk",
    "item_id",
    "group_id",
    "mid",
    "object_id",
    "video_id",
    "url",
];

/// Where the shipped table knows the lists of a cell; nothing for a cell it does not have.
pub fn shipped_items(cell: &str) -> Vec<String> {
    let files: Vec<(String, String)> =
        SHIPPED.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    let found = load(&files).ok().and_then(|catalog| {
        let (platform, capability) = cell.split_once('/')?;
        Some(catalog.social.cell(platform, capability)?.answer.items.clone())
    });
    found.unwrap_or_default()
}

/// The first list with something in it at one of these places.
pub fn entries<'a>(data: &'a Value, places: &[String]) -> Option<&'a Vec<Value>> {
    let at = |place: &String| data.pointer(if place.is_empty() { "/items" } else { place }).and_then(Value::as_array);
    places.iter().filter_map(at).find(|list| !list.is_empty())
}

/// What the entry is known by: its id, or that of the thing inside it, or all of its text.
pub fn id_of(entry: &Value) -> String {
    let own = |value: &Value| IDS.iter().find_map(|name| plain(value.get(name)?));
    let inside = || entry.as_object()?.values().find_map(own);
    own(entry).or_else(inside).unwrap_or_else(|| entry.to_string())
}

/// A single value as text.
pub fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lists_and_ids_are_found() {
        let data =
            json!({"data": {"result": [{"aweme_info": {"aweme_id": 7_411_193_113_223_371_043_u64}}]}, "empty": []});
        let places = ["/empty".to_owned(), "/data/result".to_owned()];
        let list = entries(&data, &places).expect("a list");
        assert_eq!(id_of(&list[0]), "7411193113223371043");
        assert_eq!(id_of(&json!({"text": "no id"})), r#"{"text":"no id"}"#);
        assert!(entries(&data, &["/nowhere".to_owned()]).is_none());
        assert_eq!(shipped_items("bilibili/search"), ["/data/result"]);
        assert!(shipped_items("my/space").is_empty());
    }
}
