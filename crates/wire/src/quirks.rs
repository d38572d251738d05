//! What a provider's chat completions do not take although the dialect has it, and how a request is
//! fitted to that. Flags of a row, not code: a new provider needs none of its own.

use crate::json::{Array, EditChange, EditKey, Node, Object, quoted};
use crate::{Dropped, Problem};

/// Habits of one provider that speaks chat completions. The default is a provider without any.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ChatQuirks {
    /// Knows `max_tokens`, not `max_completion_tokens`.
    pub max_tokens_only: bool,
    /// Knows the role `system`, not `developer`.
    pub no_developer_role: bool,
    /// Takes the content of a message as one text, not as a list of parts.
    pub text_content_only: bool,
    /// Refuses members that are null.
    pub no_null_members: bool,
    /// Refuses `stream_options`.
    pub no_stream_options: bool,
    /// Wants its reasoning back as text on turns with tool calls.
    pub reasoning_back: bool,
    /// What is sent instead of a `tool_choice`: `(required, any)`, `(named, auto)`.
    pub tool_choice: Vec<(String, String)>,
    /// Parameters that are left out, and reported.
    pub drop: Vec<String>,
    /// The highest temperature; what is above becomes it, and is reported.
    pub temperature_max: Option<u8>,
    /// In which members it takes the size of a picture.
    pub picture_size: SizeMembers,
    /// The only other fields of a request for pictures that it takes; empty: it may take any.
    pub picture_fields: Vec<String>,
    /// Pictures to be changed go as links, `{"url": …}`, and never as files.
    pub picture_links: bool,
    /// A header whose value leads to the same of its servers, where the beginning of a prompt may
    /// be cached: all calls of an account carry the same.
    pub affinity: Option<String>,
    /// Where its report of usage says what the call cost in USD: members joined by dots.
    pub cost_at: Option<String>,
    /// Members of its report of usage that are the operator's affair; the first of `cost_at` is
    /// one.
    pub hide: Vec<String>,
}

/// The size of a picture in a request of OpenAI's form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SizeMembers {
    /// `size`, as OpenAI has it.
    #[default]
    Size,
    /// `aspect_ratio` and `resolution`.
    AspectRatio,
    /// `width` and `height`.
    WidthHeight,
    /// `image_size`, and `batch_size` instead of `n`.
    ImageSize,
}

impl SizeMembers {
    pub const ALL: &'static [(&'static str, SizeMembers)] = &[
        ("size", SizeMembers::Size),
        ("aspect_ratio", SizeMembers::AspectRatio),
        ("width_height", SizeMembers::WidthHeight),
        ("image_size", SizeMembers::ImageSize),
    ];

    fn word(self) -> &'static str {
        SizeMembers::ALL.iter().find(|(_, one)| *one == self).map_or("size", |(word, _)| word)
    }
}

impl ChatQuirks {
    /// What `tool_choice` can stand for, and what can be sent instead.
    pub const CHOICES: [&'static str; 5] = ["auto", "none", "required", "any", "named"];

    /// Requests pass as they are.
    pub fn is_plain(&self) -> bool {
        !self.max_tokens_only
            && !self.no_developer_role
            && !self.text_content_only
            && !self.no_null_members
            && !self.no_stream_options
            && self.tool_choice.is_empty()
            && self.drop.is_empty()
            && self.temperature_max.is_none()
    }

    /// The body as this provider takes it, and what had to be left out.
    pub fn fit(&self, body: &[u8]) -> Result<(Vec<u8>, Dropped), Problem> {
        let text = std::str::from_utf8(body).map_err(|_| Problem::not_json("The body is not valid UTF-8."))?;
        let node = Node::read(text)?;
        let mut fitting =
            Fitting { quirks: self, dropped: Dropped::default(), has_limit: node.get("max_tokens").is_some() };
        let mut out = Vec::with_capacity(body.len());
        let mut object = Object::begin(&mut out);
        for (name, value) in node.members() {
            fitting.member(&mut object, name, value)?;
        }
        object.end();
        Ok((out, fitting.dropped))
    }

    /// One word or a few for each habit.
    pub fn words(&self) -> Vec<String> {
        let flags = [
            (self.max_tokens_only, "max_tokens_only"),
            (self.no_developer_role, "no_developer_role"),
            (self.text_content_only, "text_content_only"),
            (self.no_null_members, "no_null_members"),
            (self.no_stream_options, "no_stream_options"),
            (self.reasoning_back, "reasoning_back"),
        ];
        let mut words: Vec<String> = flags.iter().filter(|(on, _)| *on).map(|(_, word)| (*word).to_owned()).collect();
        words.extend(self.tool_choice.iter().map(|(from, to)| format!("tool_choice {from} as {to}")));
        words.extend(self.drop.iter().map(|name| format!("no {name}")));
        words.extend(self.temperature_max.map(|most| format!("temperature up to {most}")));
        if self.picture_size != SizeMembers::Size {
            words.push(format!("picture_size {}", self.picture_size.word()));
        }
        if !self.picture_fields.is_empty() {
            words.push(format!("picture_fields {}", self.picture_fields.join(" ")));
        }
        words.extend(self.picture_links.then(|| "picture_links".to_owned()));
        words.extend(self.affinity.iter().map(|header| format!("affinity {header}")));
        words.extend(self.cost_at.iter().map(|path| format!("cost_at {path}")));
        words.extend(self.hide.iter().map(|name| format!("hides {name}")));
        words
    }

    /// What a report of usage says that the call cost, as it is written there.
    pub fn reported_cost(&self, usage: &str) -> Option<String> {
        let place = self.cost_at.as_ref()?;
        // Nearly no report names a cost, and every call has one.
        let name = place.split('.').next().unwrap_or_default();
        if !usage.contains(name) && !usage.contains('\\') {
            return None;
        }
        let whole = Node::read(usage).ok()?;
        // Of several reports, as Claude's streams have them, the last one counts.
        let last = whole.items().last().unwrap_or(&whole);
        let found = place.split('.').try_fold(last, |node, name| node.get(name))?;
        found.decimal().map(|_| found.raw.trim().to_owned())
    }

    /// Whether it takes this field of a request for pictures.
    pub fn takes_for_pictures(&self, field: &str) -> bool {
        self.picture_fields.is_empty() || self.picture_fields.iter().any(|own| own == field)
    }

    fn instead_of(&self, choice: &str) -> Option<&str> {
        self.tool_choice.iter().find(|(from, _)| from == choice).map(|(_, to)| to.as_str())
    }
}

struct Fitting<'q> {
    quirks: &'q ChatQuirks,
    dropped: Dropped,
    /// The request has `max_tokens` already.
    has_limit: bool,
}

impl Fitting<'_> {
    fn member(&mut self, object: &mut Object<'_>, name: &str, value: &Node<'_>) -> Result<(), Problem> {
        let quirks = self.quirks;
        if value.is_null() && quirks.no_null_members {
            return Ok(());
        }
        if quirks.drop.iter().any(|one| one == name) {
            if !value.is_null() {
                self.dropped.add(name);
            }
            return Ok(());
        }
        match name {
            "max_completion_tokens" if quirks.max_tokens_only => {
                if !self.has_limit {
                    object.raw("max_tokens", value.raw);
                }
            }
            // The gateway tells its clients what was used, whether or not the provider does.
            "stream_options" if quirks.no_stream_options => {}
            "temperature" if quirks.temperature_max.is_some_and(|most| is_above(value, most)) => {
                self.dropped.add(name);
                object.number(name, quirks.temperature_max.map_or(0, u64::from));
            }
            "tool_choice" => self.tool_choice(object, value),
            "messages" if self.looks_at_messages() => {
                let messages = self.messages(value)?;
                object.raw(name, &messages);
            }
            _ => object.raw(name, value.raw),
        }
        Ok(())
    }

    fn looks_at_messages(&self) -> bool {
        let quirks = self.quirks;
        quirks.no_developer_role || quirks.text_content_only || quirks.no_null_members
    }

    fn tool_choice(&mut self, object: &mut Object<'_>, value: &Node<'_>) {
        let choice = if value.is_map() { "named" } else { value.text().map_or("", |text| text) };
        match self.quirks.instead_of(choice) {
            None => object.raw("tool_choice", value.raw),
            Some(other) => {
                // Two words for one thing; everything else is less than was asked for.
                if !matches!((choice, other), ("required", "any") | ("any", "required")) {
                    self.dropped.add("tool_choice");
                }
                object.text("tool_choice", other);
            }
        }
    }

    fn messages(&self, value: &Node<'_>) -> Result<String, Problem> {
        let mut out = Vec::with_capacity(value.raw.len());
        let mut list = Array::begin(&mut out);
        for (at, message) in value.items().iter().enumerate() {
            let content = match message.get("content") {
                Some(content) if self.quirks.text_content_only && content.is_list() => Some(one_text(content, at)?),
                _ => None,
            };
            let edited = message.edited(|path, node| match path {
                [EditKey::Name(_)] if node.is_null() => EditChange::drop_if(self.quirks.no_null_members),
                [EditKey::Name("role")]
                    if self.quirks.no_developer_role && node.text().is_some_and(|role| role == "developer") =>
                {
                    EditChange::Put("\"system\"".into())
                }
                [EditKey::Name("content")] => {
                    content.clone().map_or(EditChange::Keep, |text| EditChange::Put(text.into()))
                }
                _ => EditChange::Keep,
            });
            list.raw(&String::from_utf8_lossy(&edited));
        }
        list.end();
        Ok(String::from_utf8_lossy(&out).into_owned())
    }
}

/// Parts of text as one text in quotes.
fn one_text(content: &Node<'_>, at: usize) -> Result<String, Problem> {
    let mut texts = Vec::with_capacity(content.items().len());
    for part in content.items() {
        match part.text_of("text") {
            Some(text) if part.str_of("type") == "text" => texts.push(text.as_ref()),
            _ => {
                let field = format!("messages[{at}].content");
                let why = format!("`{field}`: the provider of this model takes text only.");
                return Err(Problem::unsupported(&field, why));
            }
        }
    }
    Ok(String::from_utf8_lossy(&quoted(&texts.join("\n"))).into_owned())
}

fn is_above(value: &Node<'_>, most: u8) -> bool {
    value.decimal().and_then(|digits| digits.parse::<f64>().ok()).is_some_and(|asked| asked > f64::from(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(quirks: &ChatQuirks, body: &str) -> (String, String) {
        let (body, dropped) = quirks.fit(body.as_bytes()).unwrap();
        (String::from_utf8(body).unwrap(), dropped.to_string())
    }

    const BODY: &str = r#"{"model":"m","max_completion_tokens":5,"temperature":1.50,"stop":["x"],"user":null,"stream":true,"stream_options":{"include_usage":true},"tool_choice":"required","messages":[{"role":"developer","content":[{"type":"text","text":"a"},{"type":"text","text":"\"b\""}]},{"role":"assistant","content":null,"tool_calls":[]}]}"#;

    #[test]
    fn a_provider_without_habits_gets_what_was_asked() {
        let plain = ChatQuirks::default();
        assert!(plain.is_plain());
        assert_eq!(fit(&plain, BODY), (BODY.to_owned(), String::new()));
    }

    #[test]
    fn every_habit_is_met_and_what_is_lost_is_named() {
        let quirks = ChatQuirks {
            max_tokens_only: true,
            no_developer_role: true,
            text_content_only: true,
            no_null_members: true,
            no_stream_options: true,
            reasoning_back: true,
            tool_choice: vec![("required".to_owned(), "any".to_owned())],
            drop: vec!["stop".to_owned()],
            temperature_max: Some(1),
            picture_size: SizeMembers::ImageSize,
            picture_fields: vec!["user".to_owned()],
            picture_links: true,
            affinity: Some("x-session".to_owned()),
            cost_at: Some("cost".to_owned()),
            hide: vec!["is_byok".to_owned()],
        };
        let sent = r#"{"model":"m","max_tokens":5,"temperature":1,"stream":true,"tool_choice":"any","messages":[{"role":"system","content":"a\n\"b\""},{"role":"assistant","tool_calls":[]}]}"#;
        assert_eq!(fit(&quirks, BODY), (sent.to_owned(), "temperature,stop".to_owned()));
        assert!(!quirks.is_plain());
        assert!(ChatQuirks { reasoning_back: true, ..ChatQuirks::default() }.is_plain(), "the translation sees to it");
    }

    #[test]
    fn the_cost_is_read_where_the_provider_says_it() {
        let cost = |at: &str, usage: &str| {
            ChatQuirks { cost_at: Some(at.to_owned()), ..ChatQuirks::default() }.reported_cost(usage)
        };
        assert_eq!(cost("cost", r#"{"cost": 1.4e-05,"x":1}"#).as_deref(), Some("1.4e-05"));
        assert_eq!(cost("cost.total_cost", r#"{"cost":{"total_cost":0.006}}"#).as_deref(), Some("0.006"));
        for (at, usage) in [("cost", r#"{"cost":"0.1"}"#), ("cost", "{}"), ("cost.x", r#"{"cost":1}"#), ("cost", "no")]
        {
            assert_eq!(cost(at, usage), None, "{usage}");
        }
        assert_eq!(cost("cost", r#"{"c\u006fst":2}"#).as_deref(), Some("2"));
        assert_eq!(ChatQuirks::default().reported_cost(r#"{"cost":1}"#), None);
    }

    #[test]
    fn a_weaker_choice_of_tools_is_reported() {
        let to = |from: &str, to: &str| ChatQuirks {
            tool_choice: vec![(from.to_owned(), to.to_owned())],
            ..ChatQuirks::default()
        };
        let named = r#"{"tool_choice":{"type":"function","function":{"name":"f"}}}"#;
        assert_eq!(fit(&to("named", "any"), named), (r#"{"tool_choice":"any"}"#.to_owned(), "tool_choice".to_owned()));
        let auto = r#"{"tool_choice":"auto"}"#;
        assert_eq!(fit(&to("named", "any"), auto), (auto.to_owned(), String::new()));
    }

    #[test]
    fn a_picture_for_a_provider_of_texts_is_refused_by_its_place() {
        let quirks = ChatQuirks { text_content_only: true, ..ChatQuirks::default() };
        let body = r#"{"messages":[{"role":"user","content":"a"},{"role":"user","content":[{"type":"image_url","image_url":{"url":"u"}}]}]}"#;
        let problem = quirks.fit(body.as_bytes()).unwrap_err();
        assert_eq!(problem.param.as_deref(), Some("messages[1].content"));
    }

    #[test]
    fn a_limit_that_is_there_twice_is_sent_once() {
        let quirks = ChatQuirks { max_tokens_only: true, ..ChatQuirks::default() };
        let body = r#"{"max_completion_tokens":5,"max_tokens":7}"#;
        assert_eq!(fit(&quirks, body).0, r#"{"max_tokens":7}"#);
    }
}
