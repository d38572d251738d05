//! Answers of platforms: made up, but with something at every place the table names, ids above 2^53
//! as numbers, pages, and the supplier's own session data, which must not reach anybody.

use bytes::Bytes;
use serde_json::{Value, json};

use super::ask::Ask;
use super::scenario::{Choice, Play};

/// Above 2^53 and odd: a double would change it.
const ID: u64 = 7_411_193_113_223_371_043;
const ENTRIES: u64 = 3;
const STEP: u64 = 20;

/// The answer in the supplier's envelope, or in the smaller one of a source of somebody's own.
pub fn envelope(ask: &Ask, choice: &Choice, own: bool) -> Bytes {
    let page = page_of(ask);
    let pages = choice.number("pages").unwrap_or(3);
    let empty = match choice.play {
        Play::Empty | Play::NotFound => true,
        Play::Deleted => deletion_mark(ask).is_none(),
        _ => !ask.route.single && page >= pages,
    };
    let data = match choice.play {
        Play::Null => Value::Null,
        Play::EmptyObject => json!({}),
        Play::Scalar => json!(bulk(choice).unwrap_or_else(|| "Temporarily unavailable.".to_owned())),
        Play::Hollow => {
            let mut only = session();
            bulk(choice).into_iter().for_each(|text| only["cookie"] = text.into());
            only
        }
        _ => data(ask, choice, page, pages, empty),
    };
    let code = if choice.play == Play::Code { 500 } else { 200 };
    if own {
        return json!({"code": code, "router": ask.route.path, "data": data}).to_string().into();
    }
    let whole = json!({
        "code": code, "request_id": "sim-0f1e2d3c", "message": "Request successful.", "message_zh": "请求成功。",
        "support": "https://discord.sim.internal", "time": "2026-01-01 00:00:00", "time_stamp": 1_767_225_600, "time_zone": "UTC",
        "docs": "https://api.sim.internal/docs", "cache_message": "cached for 24 h", "cache_url": "https://cache.sim.internal/signed?key=1",
        "router": ask.route.path, "params": ask.given, "data": data,
    });
    whole.to_string().into()
}

/// The number of the page that is asked for, from 0: whatever parameter pages, its number tells.
fn page_of(ask: &Ask) -> u64 {
    let number = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>().parse::<u64>().ok();
    for (name, step) in &ask.route.next {
        let Some(given) = ask.get(name).and_then(number) else { continue };
        let param = ask.route.params.iter().find(|param| param.name == *name);
        let start = param.and_then(|param| param.start.as_deref()).and_then(number).unwrap_or(0);
        match step.as_str() {
            "+1" => return given.saturating_sub(start),
            "+count" => return given / ENTRIES,
            "*" => {}
            _ => return given / STEP,
        }
    }
    0
}

/// Where a platform marks a thing as deleted, of which it shows the rest as before.
fn deletion_mark(ask: &Ask) -> Option<&String> {
    ask.route.marks.iter().find(|at| at.ends_with("delete"))
}

/// What the supplier leaves in `data` of its own doings.
fn session() -> Value {
    json!({"cookie": "sim-session=secret", "debug_id": "sim-debug"})
}

fn data(ask: &Ask, choice: &Choice, page: u64, pages: u64, empty: bool) -> Value {
    let route = ask.route;
    let inside = choice.play == Play::ErrorInside;
    if route.items == [""] {
        let word = |number: u64| json!({"id": ID + number, "word": "咖啡"});
        return if empty || inside { json!([]) } else { json!([word(0), word(1)]) };
    }
    if route.items.is_empty() && empty {
        return json!({});
    }
    let deleted = choice.play == Play::Deleted;
    let mut data = session();
    data["platform_field"] = json!({"big": ID, "rate": 1.5});
    for status in &route.ok {
        let bad = match status.good.as_str() {
            "true" => json!(false),
            number if number.parse::<i64>().is_ok() => json!(10001),
            _ => json!("error"),
        };
        let none = status.not_found.as_ref().filter(|_| choice.play == Play::NotFound);
        set(&mut data, &status.at, if inside { bad } else { plain(none.unwrap_or(&status.good)) });
    }
    for (at, place) in route.items.iter().enumerate() {
        let value = match (empty || (inside && route.ok.is_empty()), route.single) {
            (true, _) if deleted => Value::Null,
            (true, _) if at == 0 || !route.single => json!([]),
            (true, _) => Value::Null,
            (false, true) if is_scalar(place) => json!(ID),
            (false, true) => json!({"id": ID, "name": "咖啡", "text": "a \"quoted\" line"}),
            (false, false) => (0..ENTRIES).map(|n| entry(page * ENTRIES + n)).collect(),
        };
        // A shorter place may have been filled with what the longer one needs.
        let inside_a_list = empty && place.contains("/0");
        let taken = inside_a_list || data.pointer(place).is_some_and(|there| !there.is_null()) && !empty;
        if !taken {
            set(&mut data, place, if at == 0 || route.single { value } else { json!([]) });
        }
    }
    if empty && deleted {
        data["filter_detail"] = json!({"filter_reason": "status_self_see", "notice": "作品已删除"});
    } else if empty {
        for at in route.marks.iter().filter(|at| !at.ends_with("delete")) {
            set(&mut data, at, json!("没有更多了"));
        }
    } else if let Some(at) = deletion_mark(ask).filter(|_| deleted) {
        set(&mut data, at, json!(1));
    }
    if !empty && !route.single {
        paging(ask, &mut data, page, pages);
    }
    // Before most status fields and behind others, as members come in the order of their names.
    if let Some(text) = bulk(choice) {
        data["filler"] = text.into();
    }
    data
}

/// As much text as the scenario asks for.
fn bulk(choice: &Choice) -> Option<String> {
    let mib = choice.number("mib").or((choice.play == Play::Huge).then_some(5))?;
    Some("搜索 result ".repeat(usize::try_from(mib << 20).unwrap_or(0) / 14))
}

fn is_scalar(place: &str) -> bool {
    let last = place.rsplit('/').next().unwrap_or_default();
    last.to_ascii_lowercase().ends_with("id") || ["url", "title", "name", "text"].contains(&last)
}

fn entry(number: u64) -> Value {
    json!({"id": ID + number, "text": format!("entry {number} 咖啡"), "likes": number})
}

fn plain(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}

fn paging(ask: &Ask, data: &mut Value, page: u64, pages: u64) {
    let last = page + 1 >= pages;
    for (name, step) in &ask.route.next {
        let kind = ask.route.params.iter().find(|param| param.name == *name).map(|param| param.kind.as_str());
        let cursor = match (last, &ask.route.end) {
            (true, Some(end)) => plain(end),
            (true, None) if ask.route.more.is_none() => json!(""),
            _ if kind == Some("integer") => json!((page + 1) * STEP),
            _ => json!(format!("cursor-{}", (page + 1) * STEP)),
        };
        match step.split_once('?') {
            _ if step == "+1" || step == "+count" => {}
            _ if step == "*" && kind == Some("integer") => data["log"][name] = json!(STEP),
            _ if step == "*" => data["log"][name] = json!(format!("sid-{name}")),
            None => set(data, step, cursor),
            Some((at, query)) => {
                let link =
                    data.pointer(at).and_then(Value::as_str).unwrap_or("https://api.sim.internal/next?x=1").to_owned();
                let value = cursor.as_str().map_or_else(|| cursor.to_string(), str::to_owned);
                set(data, at, json!(format!("{link}&{query}={value}")));
            }
        }
    }
    if let Some(more) = &ask.route.more {
        match more.strip_prefix('!') {
            Some(at) => set(data, at, json!(last)),
            None => set(data, more, json!(u8::from(!last))),
        }
    }
}

/// Puts a value at a place, making what is missing on the way.
fn set(data: &mut Value, pointer: &str, value: Value) {
    let mut at = data;
    for piece in pointer.split('/').skip(1) {
        at = match piece {
            "-1" => match at.as_array_mut().and_then(|list| list.last_mut()) {
                Some(last) => last,
                None => return,
            },
            number if number.parse::<usize>().is_ok() => {
                if at.as_array().is_none_or(Vec::is_empty) {
                    *at = json!([{}]);
                }
                &mut at[0]
            }
            name => {
                if !at.is_object() {
                    *at = json!({});
                }
                &mut at[name]
            }
        };
    }
    *at = value;
}
