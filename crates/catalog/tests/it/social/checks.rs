//! Every refusal of every parameter of every cell, generated from the table; and what passes.

use super::shipped;
use tollgate_catalog::social::{Cell, Param, ParamKind, ParamValue, Wrong};

/// A value that passes.
pub fn good(param: &Param) -> String {
    match param.kind {
        ParamKind::Text if !param.choices().is_empty() => param.choices()[0].clone(),
        ParamKind::Text => {
            param.example.clone().unwrap_or_else(|| "7411193113223371043".chars().take(param.max_length).collect())
        }
        ParamKind::Integer => param.min.unwrap_or(1).max(1).to_string(),
        ParamKind::Boolean => "true".to_owned(),
    }
}

/// A call with all that is required and the first member of each group.
pub fn plain(cell: &Cell) -> Vec<(String, String)> {
    let first = |at: usize| cell.require_one_of.iter().any(|group| group[0] == at);
    let needed = cell.params.iter().enumerate().filter(|(at, param)| param.required || first(*at));
    needed.map(|(_, param)| (param.name.clone(), good(param))).collect()
}

fn with(cell: &Cell, name: &str, value: &str) -> Vec<(String, String)> {
    let mut pairs = plain(cell);
    pairs.retain(|(other, _)| other != name);
    pairs.push((name.to_owned(), value.to_owned()));
    pairs
}

fn refused(cell: &Cell, pairs: &[(String, String)], name: &str, wrong: Wrong) {
    let bad = cell.check(pairs).expect_err(&format!("{} {pairs:?}", cell.model.name));
    assert_eq!((bad.param.as_str(), bad.wrong), (name, wrong), "{} {pairs:?}", cell.model.name);
    assert!(bad.message.contains(&format!("`{name}`")) && bad.message.ends_with('.'), "{}", bad.message);
}

#[test]
fn every_refusal_of_every_cell() {
    let mut cases = 0;
    for cell in shipped().social.cells() {
        cell.check(&plain(cell)).unwrap_or_else(|bad| panic!("{}: {bad:?}", cell.model.name));
        for name in cell.never_send.iter().map(String::as_str).chain(["cooky", "KEYWORD"]) {
            refused(cell, &with(cell, name, "x"), name, Wrong::Unknown);
            cases += 1;
        }
        for (at, param) in cell.params.iter().enumerate() {
            let name = param.name.as_str();
            let mut twice = with(cell, name, &good(param));
            twice.push((name.to_owned(), good(param)));
            refused(cell, &twice, name, Wrong::Repeated);
            cell.check(&with(cell, name, &good(param))).unwrap_or_else(|bad| panic!("{}: {bad:?}", cell.model.name));
            cases += 2;
            let alone = cell.require_one_of.iter().any(|group| group[0] == at);
            for absent in [false, true] {
                let mut pairs = with(cell, name, "");
                if absent {
                    pairs.pop();
                }
                cases += 1;
                match (param.required && param.default.is_none(), alone) {
                    (true, _) => refused(cell, &pairs, name, Wrong::Missing),
                    (_, true) => refused(cell, &pairs, name, Wrong::NoneOfGroup),
                    _ => drop(cell.check(&pairs).unwrap_or_else(|bad| panic!("{}: {bad:?}", cell.model.name))),
                }
            }
            cases += values(cell, param);
        }
    }
    assert!(cases > 1_500, "{cases}");
}

fn values(cell: &Cell, param: &Param) -> usize {
    let name = param.name.as_str();
    let mut bad: Vec<(String, Wrong)> = Vec::new();
    match param.kind {
        ParamKind::Text => {
            // A letter of three bytes: characters are counted, not bytes.
            bad.push(("搜".repeat(param.max_length + 1), Wrong::TooLong));
            if param.choices().is_empty() {
                cell.check(&with(cell, name, &"搜".repeat(param.max_length))).expect("as long as it may be");
            } else {
                bad.push(("not-a-value".chars().take(param.max_length).collect(), Wrong::NotAllowed));
            }
            if !param.text_keys.is_empty() {
                bad.extend([
                    ("-1".to_owned(), Wrong::NotAllowed),
                    (param.text_keys.len().to_string(), Wrong::NotAllowed),
                ]);
            }
        }
        ParamKind::Integer => {
            for text in ["x", "1.0", "+1", "1e3", "0x1", "9223372036854775808", "１", "--1", "-"] {
                bad.push((text.to_owned(), Wrong::Type));
            }
            bad.extend(param.min.map(|min| ((min - 1).to_string(), Wrong::Range)));
            bad.extend(param.max.map(|max| ((max + 1).to_string(), Wrong::Range)));
        }
        ParamKind::Boolean => bad.extend(["yes", "2", "on", "tru"].map(|text| (text.to_owned(), Wrong::Type))),
    }
    for (value, wrong) in &bad {
        refused(cell, &with(cell, name, value), name, *wrong);
    }
    bad.len()
}

#[test]
fn the_first_problem_is_reported_in_the_decided_order() {
    let cell = shipped().social.cell("bilibili", "user-posts").expect("a cell");
    let check = |query: &[(&str, &str)]| cell.check(query).map_err(|bad| (bad.param, bad.wrong)).expect_err("refused");
    let all = [("pn", "x"), ("ps", "99"), ("ps", "99"), ("order", &*"o".repeat(9_999)), ("zz", "1")];
    assert_eq!(check(&all), ("zz".to_owned(), Wrong::Unknown));
    assert_eq!(check(&all[..4]), ("ps".to_owned(), Wrong::Repeated));
    assert_eq!(check(&[all[0], all[1], all[3]]), ("uid".to_owned(), Wrong::Missing));
    assert_eq!(check(&[("uid", "1"), all[0], all[1], all[3]]), ("pn".to_owned(), Wrong::Type));
    assert_eq!(check(&[("uid", "1"), all[1], all[3]]), ("order".to_owned(), Wrong::TooLong));
    assert_eq!(check(&[("uid", "1"), all[1]]), ("ps".to_owned(), Wrong::Range));
}

#[test]
fn what_passes_is_what_is_sent() {
    let sent = |platform: &str, capability: &str, query: &[(&str, &str)]| {
        let cell = shipped().social.cell(platform, capability).expect("a cell");
        let checked = cell.check(query).expect("a good call");
        checked.pairs(cell).map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
    };
    let keyword = ("keyword", "  咖啡 ");
    assert_eq!(sent("bilibili", "search", &[keyword]), "keyword=咖啡 order=totalrank page=1 page_size=20");
    assert_eq!(
        sent("bilibili", "search", &[keyword, ("page", "3"), ("order", "")]),
        "keyword=咖啡 order=totalrank page=3 page_size=20"
    );
    assert_eq!(
        sent("wechat-channels", "search", &[keyword, ("sort", "2"), ("duration", "long")]),
        "keyword=咖啡 duration=long sort=hot"
    );
    assert_eq!(
        sent("wechat-channels", "user", &[("username", "v2_x@finder"), ("raw", "FALSE")]),
        "username=v2_x@finder raw=false"
    );
    assert_eq!(
        sent("kuaishou", "user-posts", &[("user_id", " 7 ")]),
        "user_id= 7  sort=latest",
        "an id is passed as it came"
    );
    assert_eq!(sent("twitter", "user", &[("rest_id", "44196397")]), "rest_id=44196397");
    assert_eq!(sent("douyin", "trending", &[]), "");
    let cell = shipped().social.cell("douyin", "comments").expect("a cell");
    let checked = cell.check(&[("aweme_id", "7411193113223371043"), ("cursor", "20")]).expect("a good call");
    assert_eq!(checked.get(cell, "cursor"), Some(&ParamValue::Integer(20)));
}

#[test]
fn messages_help() {
    let cell = shipped().social.cell("youtube", "search").expect("a cell");
    let message = |query: &[(&str, &str)]| cell.check(query).expect_err("refused").message;
    assert_eq!(
        message(&[("sort_by", "rating")]),
        "At least one of these is required by search of youtube: `keyword`, `continuation_token`."
    );
    assert!(
        message(&[("keywrd", "x")]).starts_with(
            "`keywrd` is not a parameter of search of youtube; did you mean \"keyword\"? It takes: keyword,"
        )
    );
    let name = "n".repeat(5_000);
    assert!(message(&[(&name, "x")]).len() < 400, "a caller's name is cut");
}
