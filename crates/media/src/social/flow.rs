//! An answer that is too large to be held, rewritten while it passes: the supplier's envelope is
//! taken off, its artefacts are left out, the envelope of the specification is put around `data`,
//! and the places that decide about it are picked out.
//!
//! What comes out means the same as what [`super::write_result`] writes of the whole, and is the
//! same to the byte where there are no blanks between the members of `data`.

use super::{NotJson, Outline, Picked, PlaceLookup as _};
use bytes::Bytes;
use tollgate_wire::json::{BrokenJson, JsonStep, Object, Push, Scan, Steps};

pub struct Flow {
    push: Push,
    pass: Pass,
}

/// What is done with each step of the text.
struct Pass {
    drop: Vec<String>,
    out: Vec<u8>,
    picked: Picked,
    /// Open brackets.
    depth: usize,
    /// The name of a member of the envelope or of `data`, as it stands.
    name: Vec<u8>,
    member: Member,
    code: Vec<u8>,
    data: Data,
    /// What `data` turned out to be.
    shape: Data,
    in_data: bool,
    /// In an object: whether the member of `data` we are in is left out, and whether we are in one
    /// at all.
    dropped: bool,
    inside: bool,
    first: bool,
}

/// Which member of the supplier's envelope.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Member {
    Other,
    Code,
    Data,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Data {
    NotYet,
    Plain,
    List,
    Object,
    Done,
}

/// Longest name of a member of the envelope or of `data`.
const LONGEST_NAME: usize = 16 << 10;
/// Longest `code`.
const LONGEST_CODE: usize = 32;

impl Flow {
    pub fn new(platform: &str, capability: &str, drop: &[String], picked: Picked) -> Flow {
        let mut out = Vec::with_capacity(256);
        let mut result = Object::begin(&mut out);
        result.text("object", "social.result");
        result.text("platform", platform);
        result.text("capability", capability);
        result.key("data");
        let pass = Pass {
            drop: drop.to_vec(),
            out,
            picked,
            depth: 0,
            name: Vec::new(),
            member: Member::Other,
            code: Vec::new(),
            data: Data::NotYet,
            shape: Data::NotYet,
            in_data: false,
            dropped: false,
            inside: false,
            first: true,
        };
        Flow { push: Push::default(), pass }
    }

    /// The next piece of the supplier's text; what of ours comes of it.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Bytes, NotJson> {
        self.push.feed(bytes, &mut self.pass)?;
        Ok(Bytes::from(std::mem::take(&mut self.pass.out)))
    }

    /// The supplier's own status, as far as it was seen.
    pub fn code(&self) -> Option<i64> {
        std::str::from_utf8(&self.pass.code).ok()?.parse().ok()
    }

    /// What has come of `data` until now, without the members that are left out; before it comes,
    /// that there may be something.
    pub fn outline(&self) -> Outline {
        match (self.pass.shape, self.pass.picked.find("").is_some_and(|whole| whole.is_nothing())) {
            (Data::List | Data::Plain, true) => Outline::Nothing,
            (Data::Object, _) if self.pass.data == Data::Done && self.pass.first => Outline::Nothing,
            (Data::Plain, false) => Outline::Single,
            _ => Outline::Something,
        }
    }

    /// What was picked out until now.
    pub fn picked(&self) -> &Picked {
        &self.pass.picked
    }

    /// The supplier's text is at its end. Was it all?
    pub fn finish(&self) -> Result<(), NotJson> {
        self.push.finish()?;
        if self.pass.data == Data::Done { Ok(()) } else { Err(NotJson) }
    }

    /// The end of ours, with the parameters of the next page.
    pub fn end(next: &[(&str, String)]) -> Bytes {
        let mut out = Vec::new();
        if !next.is_empty() {
            out.extend_from_slice(br#","next":"#);
            let mut object = Object::begin(&mut out);
            next.iter().for_each(|(name, value)| object.text(name, value));
            object.end();
        }
        out.push(b'}');
        Bytes::from(out)
    }
}

impl Steps for Pass {
    fn step(&mut self, step: JsonStep, text: &[u8]) -> Result<(), BrokenJson> {
        self.depth += usize::from(matches!(step, JsonStep::Open { .. }));
        self.in_data |= self.begins_data(step);
        if self.in_data {
            self.picked.step(step, text);
            self.data(step, text)?;
            self.in_data = self.data != Data::Done;
        } else {
            self.envelope(step, text)?;
        }
        self.depth -= usize::from(step == JsonStep::Close);
        Ok(())
    }
}

impl Pass {
    fn begins_data(&self, step: JsonStep) -> bool {
        let value = match step {
            JsonStep::Open { .. } => self.depth == 2,
            JsonStep::Plain { .. } => self.depth == 1,
            _ => false,
        };
        value && self.member == Member::Data && self.data == Data::NotYet
    }

    /// Around `data`: only `code` is looked at. The envelope is an object.
    fn envelope(&mut self, step: JsonStep, text: &[u8]) -> Result<(), BrokenJson> {
        match (step, self.depth) {
            (JsonStep::Plain { .. }, 0) | (JsonStep::Open { list: true }, 1) => {
                return Err(BrokenJson::Syntax { at: 0 });
            }
            (JsonStep::Name { last }, 1) => {
                self.read_name(text)?;
                if last {
                    let name = Scan::new(&self.name).string()?;
                    self.member = match () {
                        () if name.is("code") && self.code.is_empty() => Member::Code,
                        () if name.is("data") && self.data == Data::NotYet => Member::Data,
                        () => Member::Other,
                    };
                    self.name.clear();
                }
            }
            (JsonStep::Plain { .. }, 1)
                if self.member == Member::Code && self.code.len() + text.len() <= LONGEST_CODE =>
            {
                self.code.extend_from_slice(text);
            }
            _ => {}
        }
        Ok(())
    }

    fn data(&mut self, step: JsonStep, text: &[u8]) -> Result<(), BrokenJson> {
        match self.data {
            Data::NotYet => self.begin_data(step, text),
            Data::Plain => {
                self.out.extend_from_slice(text);
                if step == (JsonStep::Plain { last: true }) {
                    self.data = Data::Done;
                }
            }
            Data::List => {
                self.out.extend_from_slice(text);
                if step == JsonStep::Close && self.depth == 2 {
                    self.out.push(b'}');
                    self.data = Data::Done;
                }
            }
            Data::Object => self.object(step, text)?,
            Data::Done => {}
        }
        Ok(())
    }

    fn begin_data(&mut self, step: JsonStep, text: &[u8]) {
        self.data = match step {
            JsonStep::Open { list: true } => {
                self.out.extend_from_slice(br#"{"items":"#);
                Data::List
            }
            JsonStep::Open { list: false } => Data::Object,
            JsonStep::Plain { last: true } => Data::Done,
            _ => Data::Plain,
        };
        self.shape = if self.data == Data::Done { Data::Plain } else { self.data };
        self.out.extend_from_slice(text);
    }

    /// The members of `data`, without those that are the supplier's.
    fn object(&mut self, step: JsonStep, text: &[u8]) -> Result<(), BrokenJson> {
        match step {
            JsonStep::Name { last } if self.depth == 2 => {
                self.read_name(text)?;
                if last {
                    let name = Scan::new(&self.name).string()?;
                    self.dropped = self.drop.iter().any(|one| name.is(one));
                    self.inside = true;
                    if !self.dropped {
                        if !std::mem::take(&mut self.first) {
                            self.out.push(b',');
                        }
                        self.out.extend_from_slice(&self.name);
                    }
                    self.name.clear();
                }
            }
            JsonStep::Close if self.depth == 2 => {
                self.out.push(b'}');
                self.data = Data::Done;
            }
            JsonStep::Comma if self.depth == 2 => self.inside = false,
            _ if !self.inside || self.dropped => {}
            _ => self.out.extend_from_slice(text),
        }
        let ended = match step {
            JsonStep::Plain { last } => last && self.depth == 2,
            JsonStep::Close => self.depth == 3,
            _ => false,
        };
        self.inside &= !ended;
        Ok(())
    }

    fn read_name(&mut self, text: &[u8]) -> Result<(), BrokenJson> {
        if self.name.len() + text.len() > LONGEST_NAME {
            return Err(BrokenJson::Depth);
        }
        self.name.extend_from_slice(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{PlaceLookup, read_envelope, write_result};
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    const PLACES: [&str; 7] = ["/status", "/list", "/list/-1/cursor", "/list/0", "/deep/a/b", "/none", "/deep"];

    /// What comes out of the text in pieces, with what was picked; nothing when it is not an
    /// answer.
    fn flow(text: &[u8], size: usize, drop: &[String]) -> Option<(Vec<u8>, Flow)> {
        let picked = Picked::new(PLACES, ["search_id"]);
        let mut flow = Flow::new("p", "c", drop, picked);
        let mut out = Vec::new();
        for piece in text.chunks(size) {
            out.extend_from_slice(&flow.feed(piece).ok()?);
        }
        flow.finish().ok()?;
        out.extend_from_slice(&Flow::end(&[]));
        Some((out, flow))
    }

    /// As the whole answer gives it.
    fn whole(text: &[u8], drop: &[String]) -> Option<(Bytes, super::super::CheckedData, Option<i64>)> {
        let envelope = read_envelope(&Bytes::copy_from_slice(text)).ok()?;
        let data = envelope.data?;
        Some((write_result("p", "c", &data, drop, &[]), data, envelope.code))
    }

    /// Both ways say the same; lists and objects are compared by what judges look at.
    fn same(text: &str, drop: &[&str]) {
        let drop: Vec<String> = drop.iter().map(|one| (*one).to_owned()).collect();
        for size in [1, 2, 3, 7, 64, 4_096] {
            let (all, parts) = (whole(text.as_bytes(), &drop), flow(text.as_bytes(), size, &drop));
            assert_eq!(all.is_some(), parts.is_some(), "{text}");
            let (Some((all, data, code)), Some((out, flow))) = (all, parts) else { continue };
            let read = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).expect("JSON");
            assert_eq!(read(&out), read(&all), "{text}");
            if !text.contains(' ') {
                assert_eq!(out, all, "byte for byte");
            }
            assert_eq!(flow.code(), code, "{text}");
            assert_eq!(flow.outline(), data.outline(&drop), "{text}");
            for place in PLACES.into_iter().chain([""]) {
                let shown = |found: Option<super::super::FoundValue<'_>>| {
                    found.map(|one| {
                        (one.is_nothing(), one.is_true(), one.count(), one.plain().map(|text| text.into_owned()))
                    })
                };
                assert_eq!(shown(flow.picked().find(place)), shown(data.find(place)), "{place} of {text} in {size}");
            }
            let anywhere = |places: &dyn Fn() -> Option<String>| places();
            assert_eq!(
                anywhere(&|| Some(flow.picked().find_anywhere("search_id")?.plain()?.into_owned())),
                anywhere(&|| Some(data.find_anywhere("search_id")?.plain()?.into_owned())),
                "{text}"
            );
        }
    }

    #[test]
    fn an_answer_in_pieces_is_the_whole_answer() {
        let cases = [
            r#"{"code":200,"data":{"status":0,"list":[{"cursor":"a"},{"cursor":7411193113223371043}],"cookie":"s"}}"#,
            r#"{"data":{"cookie":{"search_id":"x"},"b":1.10,"cookie":[],"search_id":null,"z":[{"search_id":"y\n"}]},"code":0}"#,
            r#"{"code":200,"data":[{"id":1},2,[]],"router":"/x"}"#,
            r#"{"code":200,"data":[]}"#,
            r#"{"code":200,"data":{}}"#,
            r#"{"code":200,"data":null}"#,
            r#"{"code":200,"data":"text"}"#,
            r#"{"code":200,"data":12}"#,
            r#"{"code":200,"data":""}"#,
            r#"{"code":200,"data":false}"#,
            r#"{"code":200,"data":{"cookie":{"a":[1]},"cookie":"s"}}"#,
            r#"{"code":200}"#,
            r#"{"code":"200","data":{"list":[{"cursor":1},{}]}}"#,
            r#"{"data":{"list":[{"cursor":1},5],"deep":{"a":{"b":[]}}},"data":{"status":1}}"#,
            r#" { "code" : 200 , "data" : { "status" : 0 , "cookie" : [ 1 , 2 ] , "deep" : { "a" : { "b" : "c" } } } } "#,
            r#"{"code":200,"data":{"a\u0062":1,"cookie":1,"status":"ok"}}"#,
            r#"{"code":200,"params":{"data":{"status":9},"code":5},"data":{"status":0}}"#,
            r#"[{"code":200,"data":{}}]"#,
            r#"{"code":200,"data":{"status":0}"#,
            r#"{"code":200,"data":{"status":0}}x"#,
            "7",
        ];
        for text in cases {
            same(text, &["cookie"]);
            same(text, &[]);
        }
    }

    #[test]
    fn what_is_picked_stays_small() {
        let mut flow = Flow::new("p", "c", &[], Picked::new(["/list", "/text", "/cursor"], []));
        let long = "x".repeat(10 << 20);
        let entries = vec![r#"{"a":1}"#; 200_000].join(",");
        let text = json!({ "cursor": "next", "text": long }).to_string();
        let text = format!(r#"{{"code":200,"data":{{"list":[{entries}],{}}}"#, &text[1..]);
        for piece in text.as_bytes().chunks(8_192) {
            flow.feed(piece).expect("JSON");
        }
        flow.finish().expect("an end");
        let find = |place: &str| flow.picked().find(place).expect("found");
        assert_eq!(find("/list").count(), 100_000, "as many as are counted");
        assert!(
            !find("/text").is_nothing() && find("/text").plain().is_none(),
            "it is there, and too long to be shown"
        );
        assert_eq!(find("/cursor").plain().as_deref(), Some("next"));
    }

    proptest! {
        #[test]
        fn any_answer_is_the_same_in_pieces(
            members in prop::collection::vec((prop::sample::select(vec!["status", "list", "deep", "cookie", "search_id", "x"]), 0usize..8), 0..6),
            code in prop::option::of(0u16..500), late in any::<bool>(), blank in any::<bool>(),
        ) {
            let values = ["0", "null", "\"\"", "[]", "[{\"cursor\":\"c\"},{\"cursor\":9007199254740993}]", "{\"a\":{\"b\":7,\"search_id\":\"s\"}}", "{}", "[1,[2,{\"search_id\":3}]]"];
            let members: Vec<String> = members.iter().map(|(name, at)| format!("\"{name}\":{}", values[*at])).collect();
            let data = format!("\"data\":{{{}}}", members.join(if blank { " , " } else { "," }));
            let code = code.map(|code| format!("\"code\":{code}"));
            let mut parts: Vec<String> = code.into_iter().chain([data]).collect();
            if late {
                parts.reverse();
            }
            same(&format!("{{{}}}", parts.join(",")), &["cookie"]);
        }
    }
}
