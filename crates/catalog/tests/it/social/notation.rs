//! Reads the notation of the specification's platform tables
//! (`keyword* s; cursor i; [a s \| b s]`), so that the shipped cells are compared with the document
//! and not with a hand copy of it.

/// A cell as the document has it. What it leaves open is `None`.
#[derive(Debug)]
pub struct Written {
    pub label: String,
    pub capability: String,
    /// In USD, as written.
    pub price: Option<String>,
    pub params: Vec<Named>,
    pub groups: Vec<Vec<String>>,
}

#[derive(Debug)]
pub struct Named {
    pub name: String,
    /// `s`, `i`, `b`.
    pub kind: Option<char>,
    /// `None` where types and flags are "not shown".
    pub required: Option<bool>,
    pub default: Option<String>,
    pub max: Option<String>,
    pub characters: bool,
}

/// Every cell of the document, in its order.
pub fn read(text: &str) -> Vec<Written> {
    let mut cells = Vec::new();
    let (mut label, mut all) = (String::new(), None);
    for line in text.lines() {
        if let Some((head, rest)) = line.split_once(" (").filter(|(head, _)| is_label(head)) {
            label = head.to_owned();
            let (about, inline) = rest.split_once(": ").unwrap_or((rest, ""));
            all = about
                .split([',', ' ', ':'])
                .find(|word| word.starts_with("0."))
                .map(|price| price.trim_end_matches('.').to_owned());
            cells.extend(inline_cells(&label, about, inline, all.as_deref()));
        }
        let columns: Vec<&str> = line.trim().trim_matches('|').split(" | ").map(str::trim).collect();
        if !line.starts_with("| ") || columns[0] == "Capability" || columns[0] == "Platform" {
            continue;
        }
        cells.push(match columns[..] {
            [of, capability, names] if is_label(of) => named_only(of, capability, names),
            [capability, price, params] => cell(&label, capability, Some(price), params),
            [capability, params] => cell(&label, capability, all.as_deref(), params),
            _ => panic!("a row of another form: {line}"),
        });
    }
    cells
}

fn is_label(word: &str) -> bool {
    word.strip_prefix('P').is_some_and(|digits| digits.parse::<u8>().is_ok())
}

/// `post: aweme_id* s. user: …`, or the one cell of a platform with `search only`.
fn inline_cells(label: &str, about: &str, inline: &str, price: Option<&str>) -> Vec<Written> {
    if about.contains("search only") {
        return vec![cell(label, "search", price, inline.trim_end_matches('.'))];
    }
    let sentences = inline.split(". ").filter_map(|one| one.split_once(": "));
    sentences.map(|(capability, params)| cell(label, capability, price, params.trim_end_matches('.'))).collect()
}

fn cell(label: &str, capability: &str, price: Option<&str>, params: &str) -> Written {
    let mut written = Written {
        label: label.to_owned(),
        capability: capability.to_owned(),
        price: price.filter(|price| !price.contains("not shown")).map(str::to_owned),
        params: Vec::new(),
        groups: Vec::new(),
    };
    // A sentence after the list explains; it is not part of it.
    let list = params.split(". `").next().unwrap_or(params);
    for piece in split(list, ';').iter().map(|piece| piece.trim()).filter(|piece| *piece != "none") {
        let (names, notes) = piece.split_once(" (").map_or((piece, ""), |(names, notes)| (names, notes));
        if let Some(group) = names.strip_prefix('[') {
            let group = group.split(']').next().expect("a closed group");
            let members: Vec<Named> =
                split(group, '|').iter().map(|one| named(one.trim().trim_end_matches('\\'), "")).collect();
            written.groups.push(members.iter().map(|one| one.name.clone()).collect());
            written.params.extend(members);
        } else {
            written.params.extend(names.split(" and ").map(|one| named(one, notes)));
        }
    }
    written
}

/// Only names and groups are shown.
fn named_only(label: &str, capability: &str, names: &str) -> Written {
    let mut written = cell(label, capability, None, &names.replace(", ", "; "));
    for param in &mut written.params {
        (param.kind, param.required) = (None, None);
    }
    written
}

/// `keyword* s` and what stands in brackets after it.
fn named(text: &str, notes: &str) -> Named {
    let text = text.trim().trim_end_matches('.');
    let (name, kind) = text.split_once(' ').map_or((text, None), |(name, kind)| (name, kind.trim().chars().next()));
    let after = |mark: &str| {
        let value = notes.split_once(mark)?.1.split(['`', ',', ')', ';', ' ']).next()?;
        (!value.is_empty()).then(|| value.to_owned())
    };
    let before = notes.split_once("` default").and_then(|(start, _)| start.rsplit('`').next()).map(str::to_owned);
    Named {
        name: name.trim_end_matches('*').to_owned(),
        kind,
        required: Some(name.ends_with('*')),
        default: before
            .or_else(|| after("default `"))
            .or_else(|| after("default ").filter(|text| text.parse::<u8>().is_ok())),
        max: after("max "),
        characters: notes.contains("1 to 100 characters"),
    }
}

/// Splits outside brackets.
fn split(text: &str, at: char) -> Vec<String> {
    let mut depth = 0;
    let mut pieces = vec![String::new()];
    for letter in text.chars() {
        match letter {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            _ => {}
        }
        match letter == at && depth == 0 {
            true => pieces.push(String::new()),
            false => pieces.last_mut().expect("one at least").push(letter),
        }
    }
    pieces
}

#[test]
fn the_notation_is_read_as_it_is_meant() {
    let text = "P1 (a), all 0.002, no trending:\n| search | keyword* s (1 to 100 characters); order* s (default `totalrank`); page i (max 100); a s and b s (x; y) |\n\
                P2 (b):\n| post | 0.004 | [video_id s \\| video_url s] (c); sort s (`latest` default, `hot`); raw |\n\
                P3 (c), all 0.01: post: id* s. user: uid* s; offset* s.\n";
    let cells = read(text);
    let names = |at: usize| cells[at].params.iter().map(|one| one.name.as_str()).collect::<Vec<_>>().join(" ");
    assert_eq!(cells.len(), 4);
    assert_eq!((names(0).as_str(), cells[0].price.as_deref()), ("keyword order page a b", Some("0.002")));
    assert!(cells[0].params[0].characters && cells[0].params[0].required == Some(true));
    assert_eq!(cells[0].params[1].default.as_deref(), Some("totalrank"));
    assert_eq!(cells[0].params[2].max.as_deref(), Some("100"));
    assert_eq!(names(1), "video_id video_url sort raw");
    assert_eq!(cells[1].groups, [["video_id", "video_url"]]);
    assert_eq!(cells[1].params[2].default.as_deref(), Some("latest"));
    assert_eq!((cells[1].params[3].kind, cells[1].params[3].required), (None, Some(false)));
    assert_eq!(
        (names(3).as_str(), cells[3].label.as_str(), cells[3].price.as_deref()),
        ("uid offset", "P3", Some("0.01"))
    );
}
